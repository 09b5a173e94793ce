# SPDX-License-Identifier: Apache-2.0
"""The store of events: which are due."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from blazar.model.base.values import dataclass
from blazar.model.leases.states import AWAITED_EVENTS, EventStatus
from blazar.store.sql.tables import events, leases, reservations
from blazar.store.sql.transactions import Transactions
from blazar.store.work.claims import EVENTS


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An event that a manager should process. ``empty``: its lease has no reservations.

    ``begun``: it was worked on, has not failed since, and is looked at again, as what the cloud makes takes a while.
    ``region`` is that of all its reservations; empty if these lie in several regions, or if it was not asked for.
    """

    lease_id: str
    event_id: str
    event_type: str
    due_at: datetime
    project_id: str
    empty: bool
    begun: bool = False
    region: str = ""

    @property
    def is_start(self) -> bool:
        """Return whether a user waits for it."""
        return self.event_type in AWAITED_EVENTS


_STARTS = sa.case((events.c.event_type.in_([str(kind) for kind in sorted(AWAITED_EVENTS)]), 0), else_=1)
_BEGUN = sa.case(((events.c.status == str(EventStatus.IN_PROGRESS)) & (events.c.attempts == 0), 1), else_=0)


def _select_due() -> sa.Select[Any]:
    """Number the due events within each project, starts apart from the rest, and those that were begun from new ones.

    Events of empty leases come last.
    """
    empty = sa.case((sa.exists().where(reservations.c.lease_id == events.c.lease_id), 0), else_=1)
    numbered = (
        sa.select(
            events.c.lease_id,
            events.c.id,
            events.c.event_type,
            events.c.due_at,
            leases.c.project_id,
            empty.label("empty"),
            _BEGUN.label("begun"),
            sa.func.row_number()
            .over(partition_by=(_STARTS, _BEGUN, leases.c.project_id), order_by=(empty, events.c.due_at, events.c.id))
            .label("turn"),
        )
        .join(leases, leases.c.id == events.c.lease_id)
        .where(events.c.due_at <= sa.bindparam("now"))
        .subquery()
    )
    due = numbered.c
    return (
        sa.select(due.lease_id, due.id, due.event_type, due.due_at, due.project_id, due.empty, due.begun)
        .order_by(due.empty, due.turn, due.due_at)
        .limit(sa.bindparam("most", type_=sa.Integer()))
    )


def _select_due_by_region() -> sa.Select[Any]:
    """Number the due events as ``_select_due`` does, within each project and region."""
    of_lease = reservations.c.lease_id == events.c.lease_id
    first, last = (
        sa.select(of(reservations.c.region)).where(of_lease).correlate(events).scalar_subquery()
        for of in (sa.func.min, sa.func.max)
    )
    region = sa.case((first == last, first), else_="")
    found = (
        sa.select(
            events.c.lease_id,
            events.c.id,
            events.c.event_type,
            events.c.due_at,
            leases.c.project_id,
            sa.case((first.is_(None), 1), else_=0).label("empty"),
            region.label("region"),
            _STARTS.label("starts"),
            _BEGUN.label("begun"),
        )
        .join(leases, leases.c.id == events.c.lease_id)
        .where(events.c.due_at <= sa.bindparam("now"))
        .subquery()
        .c
    )
    turn = sa.func.row_number().over(
        partition_by=(found.starts, found.begun, found.region, found.project_id),
        order_by=(found.empty, found.due_at, found.id),
    )
    due = sa.select(*found, turn.label("turn")).subquery().c
    return (
        sa.select(due.lease_id, due.id, due.event_type, due.due_at, due.project_id, due.empty, due.begun, due.region)
        .order_by(due.empty, due.turn, due.due_at)
        .limit(sa.bindparam("most", type_=sa.Integer()))
    )


_DUE = _select_due()
_DUE_BY_REGION = _select_due_by_region()
_NEXT_DUE = EVENTS.select_next_due()


class EventStore:
    """Reads due events."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def due(self, now: datetime, limit: int, *, by_region: bool = False) -> tuple[DueEvent, ...]:
        """Return at most ``limit`` events that are due, in one statement, the longest waiting first.

        Events are selected round-robin: the first one of each project, then the second one of each. So no project's
        events, however many are due, displace those of others. Starts and ends are selected separately, so are events
        that were begun and new ones, and ``by_region`` those of each region.
        """
        rows = self._transactions.select(_DUE_BY_REGION if by_region else _DUE, {"now": now, "most": limit})
        found = [
            DueEvent(lease_id, event_id, event_type, due_at, project_id, bool(empty), bool(begun), *region)
            for lease_id, event_id, event_type, due_at, project_id, empty, begun, *region in rows
        ]
        # Of events due at the same instant ends come first: a start may be waiting for one.
        return tuple(sorted(found, key=lambda event: (event.empty, event.due_at, event.is_start)))

    def next_due(self) -> datetime | None:
        """Return when the next event is due, which may be in the past; None if there is none."""
        found: datetime | None = self._transactions.scalar(_NEXT_DUE)
        return found
