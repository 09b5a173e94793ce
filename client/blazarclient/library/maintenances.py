# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows: hosts that an operator books out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blazarclient.exception import NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, is_uuid, named, part_of_path
from blazarclient.library.values import Maintenance, MaintenanceImpact


class Maintenances:
    """Maintenance windows of hosts, for operators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def impact(
        self,
        name: str,
        *,
        start_date: str,
        end_date: str,
        hosts: Sequence[str] = (),
        requirement: Any = None,
        pending: str | None = None,
        active: str | None = None,
    ) -> MaintenanceImpact:
        """Return what a window would do to leases; nothing is written. Arguments as of ``create``."""
        body = _window(name, start_date, end_date, hosts, requirement, pending=pending, active=active)
        answer = self._ask("POST", "/maintenances", body=body, query={"dry_run": True}, repeatable=True)
        return decode(MaintenanceImpact, answer.part("impact"))

    def create(
        self,
        name: str,
        *,
        start_date: str,
        end_date: str,
        hosts: Sequence[str] = (),
        requirement: Any = None,
        pending: str | None = None,
        active: str | None = None,
        disable_service: bool = False,
        reason: str | None = None,
        impact_id: str | None = None,
    ) -> Maintenance:
        """Open a maintenance window. Conflict if ``impact_id`` is that of another impact than the one of now.

        ``start_date`` is a date or ``now``, ``end_date`` also a duration such as ``+PT12H``. Either ``hosts``, by id,
        or a ``requirement`` says which. ``pending``: ``move``, the default, gives leases that have not started other
        hosts; ``leave`` does not. ``active``: ``list``, the default, leaves those that have started where they are;
        ``migrate`` moves their servers live to other hosts. ``disable_service``: Nova places nothing on the hosts
        meanwhile.
        """
        disables = disable_service or None
        more: dict[str, Any] = {"pending": pending, "active": active}
        more |= {"reason": reason, "impact_id": impact_id, "disable_service": disables}
        body = _window(name, start_date, end_date, hosts, requirement, **more)
        return _read(self._ask("POST", "/maintenances", body=body))

    def get(self, maintenance_id: str) -> Maintenance:
        """Return a window with the leases that it affects. NotFound."""
        return _read(self._ask("GET", _path(maintenance_id)))

    def find(self, name_or_id: str) -> Maintenance:
        """Return the window of this id, or the one of this name that is not over, or else the last that is.

        NotFound; NoUniqueMatch if several have the name that are not over.
        """
        named(name_or_id)
        if is_uuid(name_or_id):
            try:
                return self.get(name_or_id)
            except NotFound:
                pass
        there = [each for each in self.list() if each.name == name_or_id]
        found = [each.id for each in there if each.status not in ("DONE", "CANCELLED")]
        if there and not found:
            found = [max(there, key=lambda each: each.start_date).id]
        if len(found) > 1:
            raise NoUniqueMatch(f"{len(found)} windows have the name {name_or_id}; give an id: {', '.join(found)}")
        if not found:
            raise NotFound(f"There is no maintenance window {name_or_id}", code=404)
        return self.get(found[0])

    def list(self, /, **filters: Any) -> Iterator[Maintenance]:
        """Yield the windows, without the leases that they affect. Filters: ``status``, ``limit``."""
        for item in self._transport.pages("/maintenances", "maintenances", query=filters):
            yield decode(Maintenance, item)

    def impact_of_change(self, maintenance_id: str, /, **changes: Any) -> MaintenanceImpact:
        """Return what a change of a window would do to leases; nothing is written. Arguments as of ``change``."""
        answer = self._ask("PATCH", _path(maintenance_id), body=changes, query={"dry_run": True}, repeatable=True)
        return decode(MaintenanceImpact, answer.part("impact"))

    def change(self, maintenance_id: str, /, **changes: Any) -> Maintenance:
        """Change the ``name``, ``start_date`` or ``end_date`` of a window; once it has begun only the end.

        Conflict, also if ``impact_id`` is that of another impact than the one of now.
        """
        return _read(self._ask("PATCH", _path(maintenance_id), body=changes))

    def end(self, maintenance_id: str) -> Maintenance:
        """End a window that has begun: its hosts return. Conflict."""
        return _read(self._ask("POST", f"{_path(maintenance_id)}/end"))

    def delete(self, maintenance_id: str) -> None:
        """Cancel a window that has not begun; leases that were moved stay where they are. Conflict."""
        self._ask("DELETE", _path(maintenance_id))

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        return self._transport.ask(method, path, **more)


def _window(name: str, start: str, end: str, hosts: Sequence[str], requirement: Any, **more: Any) -> Mapping[str, Any]:
    """Return the body of a request for a window."""
    given = {"hosts": list(hosts) or None, "requirement": requirement, **more}
    body = {"name": name, "start_date": start, "end_date": end}
    return {**body, **{key: value for key, value in given.items() if value is not None}}


def _path(maintenance_id: str) -> str:
    return f"/maintenances/{part_of_path(maintenance_id)}"


def _read(answer: Any) -> Maintenance:
    return decode(Maintenance, answer.part("maintenance"))
