# SPDX-License-Identifier: Apache-2.0
"""Leases at microversion 1.0."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from blazarclient import exception
from blazarclient.base import BaseClientManager, part
from blazarclient.utils import API_DATE_FORMAT, elapsed, read_date, sort

NOW = "now"

Resources = list[dict[str, Any]]
"""Resources with their capabilities as keys."""


class LeaseClientManager(BaseClientManager):
    """Makes requests about leases. Dates: ``YYYY-MM-DD HH:MM`` in UTC; ``start`` may be ``now``."""

    def create(
        self,
        name: str,
        start: str,
        end: str,
        reservations: list[dict[str, Any]],
        events: list[dict[str, Any]],
        before_end: str | None = None,
        *,
        before_end_date: str | None = None,
    ) -> dict[str, Any]:
        """Create a lease and return it.

        ``before_end_date`` is another name of ``before_end``: Heat has it from the property of its leases.
        """
        values = {
            "name": name,
            "start_date": start,
            "end_date": end,
            "reservations": reservations,
            "events": events,
            "before_end_date": before_end or before_end_date,
        }
        _, body = self.request_manager.post("/leases", body=values)
        return part(body, "lease")  # type: ignore[no-any-return]

    def get(self, lease_id: str) -> dict[str, Any]:
        """Return a lease."""
        _, body = self.request_manager.get(f"/leases/{lease_id}")
        return part(body, "lease")  # type: ignore[no-any-return]

    def update(
        self,
        lease_id: str,
        name: str | None = None,
        prolong_for: str | None = None,
        reduce_by: str | None = None,
        end_date: str | None = None,
        advance_by: str | None = None,
        defer_by: str | None = None,
        start_date: str | None = None,
        reservations: list[dict[str, Any]] | None = None,
    ) -> dict[str, Any]:
        """Change a lease and return it; with nothing to change, return it as it is.

        ``prolong_for`` and ``reduce_by`` move its end, ``defer_by`` and ``advance_by`` its start; a date goes before
        both, and moving to later before moving to earlier. Seconds are rounded up to the minute in the direction in
        which the date moves, since microversion 1.0 has none.
        """
        values: dict[str, Any] = {}
        if name:
            values["name"] = name
        if any((prolong_for, reduce_by, end_date, advance_by, defer_by, start_date)):
            lease = self.get(lease_id) if any((prolong_for, reduce_by, advance_by, defer_by)) else {}
            if start_date or defer_by or advance_by:
                values["start_date"] = _moved(lease.get("start_date"), start_date, defer_by, advance_by)
            if end_date or prolong_for or reduce_by:
                values["end_date"] = _moved(lease.get("end_date"), end_date, prolong_for, reduce_by)
        if reservations:
            values["reservations"] = reservations
        if not values:
            return self.get(lease_id)
        _, body = self.request_manager.put(f"/leases/{lease_id}", body=values)
        return part(body, "lease")  # type: ignore[no-any-return]

    def delete(self, lease_id: str) -> None:
        """Delete a lease."""
        self.request_manager.delete(f"/leases/{lease_id}")

    def list(self, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return all leases of the project."""
        _, body = self.request_manager.get("/leases")
        return sort(part(body, "leases"), sort_by)

    def hosts_in_lease(self, lease_id: str) -> Resources:
        """Return the hosts that a lease has."""
        return self._in_lease(lease_id, "hosts")

    def networks_in_lease(self, lease_id: str) -> Resources:
        """Return the network segments that a lease has."""
        return self._in_lease(lease_id, "networks")

    def devices_in_lease(self, lease_id: str) -> Resources:
        """Return the devices that a lease has."""
        return self._in_lease(lease_id, "devices")

    def additional_details(self, lease_id: str) -> dict[str, Resources]:
        """Return what a lease has, by ``hosts``, ``networks`` and ``devices``."""
        return {kind: self._in_lease(lease_id, kind) for kind in ("hosts", "networks", "devices")}

    def _in_lease(self, lease_id: str, kind: str) -> Resources:
        _, body = self.request_manager.get(f"/leases/{lease_id}/{kind}")
        return part(body, kind)  # type: ignore[no-any-return]


def _moved(present: str | None, date: str | None, later: str | None, earlier: str | None) -> str:
    """Return a date as requests have it: ``date``, or the present one moved."""
    if date:
        return date if date == NOW else _checked(date)
    try:
        moved = read_date(present) + (elapsed(later) if later else -elapsed(str(earlier)))
    except OverflowError:
        raise exception.InvalidDate(f"{later or earlier} is too long: there is no such year") from None
    cut = moved.replace(second=0, microsecond=0)
    if later and cut != moved:
        cut += timedelta(minutes=1)
    return cut.astimezone(timezone.utc).strftime(API_DATE_FORMAT)


def _checked(date: str) -> str:
    try:
        return datetime.strptime(date, API_DATE_FORMAT).strftime(API_DATE_FORMAT)
    except ValueError:
        raise exception.InvalidDate(f"{date!r} is no date; write YYYY-MM-DD HH:MM, in UTC") from None
