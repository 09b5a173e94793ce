# SPDX-License-Identifier: Apache-2.0
"""Series: leases that recur."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from blazarclient.exception import BlazarClientException, InvalidRequest, NotFound, NoUniqueMatch, Uncertain
from blazarclient.library.connections import leaves_open
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, is_uuid, named, part_of_path
from blazarclient.library.values import Series
from blazarclient.library.written import Date, checked, written


class SeriesOfLeases:
    """Series of the project of the session."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        name: str,
        *,
        rule: str,
        start: str,
        reservations: Sequence[Mapping[str, Any]],
        time_zone: str | None = None,
        duration: str | None = None,
        until_local: str | None = None,
        exdates: Sequence[str] = (),
        rdates: Sequence[str] = (),
        fit: str | None = None,
        before_end_date: str | None = None,
        reminders: Sequence[Mapping[str, Any]] = (),
        max_price: str | None = None,
        quoted_at: Date | None = None,
        keep_hosts: bool | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Series:
        """Book leases that recur. NotEnoughResources or LimitExceeded if that is refused.

        ``rule`` is a recurrence rule of RFC 5545, and ``start`` the first start, a local time of ``time_zone``. Either
        ``duration`` (``PT4H``) or ``until_local`` (``17:00``, ``06:00+1d``) says how long each lasts. ``fit``: ``all``,
        the default, or ``as_many``. A long series is returned CREATING, and booked in the background. ``dry_run``:
        nothing is booked; the occurrences say what fits. ``max_price``: the most that each lease may cost.
        ``quoted_at``, of the ``price`` of an occurrence of a dry run: none costs more than by that quote until its
        ``held_until``. ``keep_hosts``: each keeps its hosts until it starts.

        With one ``idempotency_key`` at most one series is made. Uncertain if no answer came after some tries.
        """
        given = {
            "time_zone": time_zone,
            "duration": duration,
            "until_local": until_local,
            "exdates": list(exdates) or None,
            "rdates": list(rdates) or None,
            "fit": fit,
            "before_end_date": before_end_date,
            "max_price": max_price,
            "quoted_at": None if quoted_at is None else written(quoted_at),
            "keep_hosts": keep_hosts,
            "reminders": [dict(reminder) for reminder in reminders] or None,
        }
        body: dict[str, Any] = {"name": name, "rule": rule, "start": start}
        body |= {key: value for key, value in given.items() if value is not None}
        body["reservations"] = [dict(reservation) for reservation in reservations]
        key = checked(idempotency_key or str(uuid.uuid4()))
        try:
            answer = self._transport.ask(
                "POST",
                "/series",
                body=body,
                query={"dry_run": True} if dry_run else None,
                headers={"Idempotency-Key": f'"{key}"'},
                repeatable=True,
            )
        except BlazarClientException as error:
            if not leaves_open(error):
                raise
            lost = Uncertain(
                f"It is not known whether series {name} was booked: {error}",
                faults=error.faults,
                request_id=error.request_id,
            )
            lost.idempotency_key = key
            raise lost from error
        return decode(Series, answer.part("series"))

    def get(self, series_id: str) -> Series:
        """Return a series with its occurrences, also a deleted one. NotFound."""
        answer = self._transport.ask("GET", f"/series/{part_of_path(series_id)}")
        return decode(Series, answer.part("series"))

    def find(self, name_or_id: str) -> Series:
        """Return the series of this id, or the one of this name that is not deleted. NotFound; NoUniqueMatch."""
        named(name_or_id)
        if is_uuid(name_or_id):
            try:
                return self.get(name_or_id)
            except NotFound:
                pass
        found = [str(each.id) for each in self.list(fields="name") if each.name == name_or_id]
        if len(found) > 1:
            raise NoUniqueMatch(f"{len(found)} series have the name {name_or_id}; give an id: {', '.join(found)}")
        if not found:
            raise NotFound(f"There is no series {name_or_id}", code=404)
        return self.get(found[0])

    def list(self, /, **filters: Any) -> Iterator[Series]:
        """Yield the series that are not deleted, without their occurrences.

        Filters: ``status``, ``fields``, ``sort_dir``, ``limit``; for operators ``project_id``.
        """
        for item in self._transport.pages("/series", "series", query=filters):
            yield decode(Series, item)

    def change(self, series_id: str, /, *, since: str | None = None, dry_run: bool = False, **changes: Any) -> Series:
        """Change a series, all or nothing, and return the one that goes on.

        ``since`` is the ``recurrence_id`` of the first occurrence that changes; without it all that have not begun do.
        If others come before, these stay as they are, and another series continues this one. Changes: ``name``,
        ``rule``, ``start``, ``time_zone``, ``duration``, ``until_local``, ``exdates``, ``rdates``, ``reservations``,
        ``before_end_date``, ``fit``, ``keep_hosts``; ``changed``: also leases that were changed by themselves.
        InvalidRequest if there is none.
        """
        if not changes:
            raise InvalidRequest("Nothing is to change; give a name, dates, a rule or reservations")
        body = {**({} if since is None else {"from": since}), **changes}
        answer = self._transport.ask(
            "PUT",
            f"/series/{part_of_path(series_id)}",
            body=body,
            query={"dry_run": True} if dry_run else None,
            repeatable=dry_run,
        )
        return decode(Series, answer.part("series"))

    def delete(self, series_id: str, *, running: bool = False) -> None:
        """Delete a series with its leases that have not begun; ``running``: also those that have. NotFound."""
        query = {"running": True} if running else None
        self._transport.ask("DELETE", f"/series/{part_of_path(series_id)}", query=query)
