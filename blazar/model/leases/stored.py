# SPDX-License-Identifier: Apache-2.0
"""The stored form of typed values of leases, as the database and its outbox keep them."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from blazar.model.base.amounts import Amounts
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.leases.lease import SavedAllocation, SavedState
from blazar.model.leases.reservation import Content, Gone, Reservation
from blazar.model.use.policy import watch_json, watch_of

_UNASSIGNED, _FAILED, _GONE = "left_out", "lost", "gone"
_BESIDE = frozenset({_UNASSIGNED, _FAILED, _GONE})
"""What is stored beside the cloud ids."""


def cloud_ids_json(reservation: Reservation) -> dict[str, Any]:
    """Return the cloud ids of a reservation, with what is not assigned, what has failed, and what is gone."""
    more = {
        _UNASSIGNED: sorted(reservation.unassigned),
        _FAILED: sorted(reservation.failed),
        _GONE: {thing.id: thing.since.isoformat() for thing in reservation.gone},
    }
    return {**reservation.cloud_ids.values, **{key: ids for key, ids in more.items() if ids}}


def cloud_ids_of(stored: Mapping[str, Any]) -> tuple[Content, frozenset[int], frozenset[int]]:
    """Return the cloud ids of a reservation, the resources that are not assigned, and those that have failed."""
    if not _BESIDE & stored.keys():
        return Content(stored), frozenset(), frozenset()
    ids = {key: value for key, value in stored.items() if key not in _BESIDE}
    return Content(ids), frozenset(stored.get(_UNASSIGNED) or ()), frozenset(stored.get(_FAILED) or ())


def gone_of(stored: Mapping[str, Any]) -> tuple[Gone, ...]:
    """Return what a reservation has made and is gone."""
    found = stored.get(_GONE)
    return tuple(Gone(id_, datetime.fromisoformat(since)) for id_, since in found.items()) if found else ()


def saved_state_json(state: SavedState | None) -> dict[str, Any] | None:
    """Return a saved state; None for none."""
    if state is None:
        return None
    stored: dict[str, Any] = {}
    if state.allocations is not None:
        stored["held"] = [
            [a.reservation_id, a.resource_id, a.count, None if a.per_instance is None else dict(a.per_instance.items)]
            for a in state.allocations
        ]
    if state.undone:
        stored["undone"] = state.undone
    if state.action_asked_at is not None:
        stored["asked_at"] = state.action_asked_at.isoformat()
    if state.watch is not None:
        stored["watch"] = watch_json(state.watch)
    return stored


def saved_state_of(stored: Mapping[str, Any] | None) -> SavedState | None:
    """Return a saved state; None for none."""
    if stored is None:
        return None
    asked_at = stored.get("asked_at")
    held = stored.get("held")
    return SavedState(
        allocations=None
        if held is None
        else tuple(
            SavedAllocation(reservation_id, resource_id, count, None if unit is None else Amounts.of(unit))
            for reservation_id, resource_id, count, unit in held
        ),
        undone=int(stored.get("undone", 0)),
        action_asked_at=datetime.fromisoformat(asked_at) if isinstance(asked_at, str) else None,
        watch=watch_of(stored["watch"]) if "watch" in stored else None,
    )


def cause_json(cause: Cause | None, reason: str | None) -> dict[str, Any] | None:
    """Return the cause of an event's reason, with a checksum of its text; None for none."""
    if cause is None or reason is None:
        return None
    stored: dict[str, Any] = {"code": str(cause.code), "of": _checksum(reason)}
    if cause.servers:
        stored["servers"] = cause.servers
    if cause.resources:
        stored["resources"] = sorted(cause.resources)
    if cause.until is not None:
        stored["until"] = cause.until.isoformat()
    return stored


def cause_of(stored: Mapping[str, Any] | None, reason: str | None) -> Cause | None:
    """Return the cause of an event's reason; None for none, and for that of another reason.

    A manager of an earlier version, as during an upgrade, writes another text and leaves the cause as it is.
    """
    if stored is None or reason is None or stored["of"] != _checksum(reason):
        return None
    until = stored.get("until")
    return Cause(
        ReasonCode(stored["code"]),
        int(stored.get("servers", 0)),
        frozenset(stored.get("resources", ())),
        datetime.fromisoformat(until) if isinstance(until, str) else None,
    )


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode())
