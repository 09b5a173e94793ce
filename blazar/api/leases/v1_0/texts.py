# SPDX-License-Identifier: Apache-2.0
"""Leases as JSON text of 1.0 and of version 2, from rows: byte by byte what ``render`` gives for the values.

Lists of tens of thousands of leases are written so; most of the time of a list went into values of which each is
needed once.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from blazar.api.http.answers import encode
from blazar.api.http.shapes import Json
from blazar.api.leases.v1_0 import render
from blazar.model.base.values import dataclass
from blazar.model.leases.details import EventRow, LeaseRow, LeaseRows, LeaseText, ReservationRow
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import SHOWN_IDS, Content, Reservation
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.leases.stored import cloud_ids_of

_quote = json.encoder.encode_basestring_ascii
_LONGEST_KEPT = 2048
"""Characters of parameters and cloud ids that are remembered as they are shown: most leases ask for the same few."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STATUS = {str(status): _quote(render.show_status(status)) for status in LeaseStatus}
_OWN_KEYS = frozenset(
    {"id", "lease_id", "resource_id", "resource_type", "status", "missing_resources", "resources_changed"}
    | {"created_at", "updated_at"}
)
_FLAG = {True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class LeaseWriter:
    """Writes leases of one format: ``shown`` gives the values, ``of_v2`` says with whose keys."""

    shown: Callable[[Lease], Json]
    of_v2: bool = False

    def write(self, rows: LeaseRows) -> Iterator[LeaseText]:
        """Yield the leases of rows, in any order."""
        kept: dict[str, list[ReservationRow]] = defaultdict(list)
        for reservation in rows.reservations:
            kept[reservation[0]].append(reservation)
        due: dict[str, list[EventRow]] = defaultdict(list)
        for event in rows.events:
            due[event[0]].append(event)
        for row in rows.leases:
            text = self._lease(row, kept.get(row[0], ()), due.get(row[0], ()))
            yield LeaseText(row[0], row[1], row[4], text.encode())
        for lease in rows.waiting:
            yield LeaseText(lease.id, lease.revision, lease.project_id, encode(self.shown(lease)).encode())

    def _lease(self, row: LeaseRow, kept: Sequence[ReservationRow], due: Sequence[EventRow]) -> str:
        id_, _, name, user, project, start, end, trust, status, degraded, made, changed = row
        lease_id = _quote(id_)
        head = f'{{"id":{lease_id},"name":{_quote(name)},'
        whose = f'"user_id":{_quote(user)},"project_id":{_quote(project)},'
        dates = f'"start_date":{_iso(start)},"end_date":{_iso(end)},'
        trusted = f'"trust_id":{_or_null(trust)},'
        reservations = f'"reservations":[{",".join(self._reservations(lease_id, kept))}],'
        events = f'"events":[{",".join([_event(lease_id, event) for event in due])}]'
        stamps = f'"created_at":{_space(made)},"updated_at":{_space_or_null(changed)}'
        if not self.of_v2:
            states = f'"status":{_STATUS[status]},"degraded":{_FLAG[degraded]},'
            return f"{head}{whose}{dates}{trusted}{states}{stamps},{reservations}{events}}}"
        warned = f'"before_end_date":{_find_warning(due)},'
        return f'{head}{dates}{warned}{whose}{trusted}{reservations}{events},"status":{_STATUS[status]},{stamps}}}'

    def _reservations(self, lease_id: str, kept: Sequence[ReservationRow]) -> Iterator[str]:
        """Yield the reservations that a user asked for; what one is made of lacks, it lacks itself."""
        missing = {row[11] for row in kept if row[5]}
        changed = {row[11] for row in kept if row[6]}
        for row in kept:
            if row[11] is not None:
                continue
            _, id_, kind, resource_id, status, lacks, differs, parameters, cloud_ids, made, updated, _ = row
            own = (
                f'"id":{_quote(id_)},"lease_id":{lease_id},"resource_id":{_or_null(resource_id)},'
                f'"resource_type":{_quote(kind)},"status":{_quote(status)},'
                f'"missing_resources":{_FLAG[lacks or id_ in missing]},'
                f'"resources_changed":{_FLAG[differs or id_ in changed]},'
                f'"created_at":{_space(made)},"updated_at":{_space_or_null(updated)}}}'
            )
            yield _merge(self._parameters(kind, parameters, cloud_ids), own)

    def _parameters(self, kind: str, parameters: str, cloud_ids: str) -> str:
        ids = cloud_ids if SHOWN_IDS.get(kind, True) else "{}"
        brief = len(parameters) + len(ids) <= _LONGEST_KEPT
        return (_show_and_remember if brief else _show)(kind, parameters, ids, self.of_v2)


def _show(kind: str, parameters: str, cloud_ids: str, of_v2: bool) -> str:
    """Return what of a reservation its type gives, as JSON."""
    made, _, _ = cloud_ids_of(json.loads(cloud_ids))
    content = Content(json.loads(parameters))
    reservation = Reservation("", kind, None, ReservationStatus.PENDING, _EPOCH, parameters=content, cloud_ids=made)
    shown = render.find_known_parameters(reservation)
    return encode(render.rename_action(shown) if of_v2 else shown)


_show_and_remember = lru_cache(maxsize=1024)(_show)


def _merge(shown: str, own: str) -> str:
    """Return an object of what a type gives and of what all reservations have, as one of both."""
    if shown == "{}":
        return f"{{{own}"
    if _has_own_key(shown):
        # One of its names may be one of ours, which then keeps its place and has our value.
        return encode({**json.loads(shown), **json.loads(f"{{{own}")})
    return f"{shown[:-1]},{own}"


@lru_cache(maxsize=1024)
def _has_own_key(shown: str) -> bool:
    """Return whether a text may have a key that all reservations have; most are one of the few that are remembered."""
    return any(f'"{key}":' in shown for key in _OWN_KEYS)


def _event(lease_id: str, row: EventRow) -> str:
    _, id_, kind, time, status, made, updated = row
    return (
        f'{{"id":{_quote(id_)},"lease_id":{lease_id},"event_type":{_quote(kind)},'
        f'"time":{"null" if time is None else _iso(time)},"status":{_or_null(status)},'
        f'"created_at":{_space(made)},"updated_at":{_space_or_null(updated)}}}'
    )


def _find_warning(due: Sequence[EventRow]) -> str:
    time = next((row[3] for row in reversed(due) if row[2] == EventType.BEFORE_END), None)
    return "null" if time is None else _iso(time)


def _or_null(text: str | None) -> str:
    return "null" if text is None else _quote(text)


def _iso(text: str) -> str:
    return f'"{text[:10]}T{text[11:19]}.{text[20:26]:0<6}"'


def _space(text: str) -> str:
    return f'"{text[:19]}"'


def _space_or_null(text: str | None) -> str:
    return "null" if text is None else f'"{text[:19]}"'
