# SPDX-License-Identifier: Apache-2.0
"""The stored form of typed values of leases, as the database and its outbox keep them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from blazar.model.amounts import Amounts
from blazar.model.lease import Content, SavedAllocation, SavedState

_UNASSIGNED = "left_out"


def cloud_ids_json(cloud_ids: Content, unassigned: frozenset[int]) -> dict[str, Any]:
    """Return the cloud ids of a reservation, with the resources that are not assigned."""
    return {**cloud_ids.values, **({_UNASSIGNED: sorted(unassigned)} if unassigned else {})}


def cloud_ids_of(stored: Mapping[str, Any]) -> tuple[Content, frozenset[int]]:
    """Return the cloud ids of a reservation, and the resources that are not assigned."""
    if _UNASSIGNED not in stored:
        return Content(stored), frozenset()
    ids = {key: value for key, value in stored.items() if key != _UNASSIGNED}
    return Content(ids), frozenset(stored[_UNASSIGNED] or ())


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
    )
