# SPDX-License-Identifier: Apache-2.0
"""Checks of the books by themselves, as after a database was restored from a copy."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import ResourceKind, noun
from blazar.store.sql.tables import allocations, events, host_power, leases, resources
from blazar.store.sql.transactions import Transactions

MOST = 20
"""Rows that a check names."""

LONGEST_WAKE = timedelta(hours=1)
"""After this time a host is awake, or has failed: a wake is tried twice."""

_WORKING = tuple(
    str(status)
    for status in (
        LeaseStatus.CREATING,
        LeaseStatus.STARTING,
        LeaseStatus.UPDATING,
        LeaseStatus.TERMINATING,
        LeaseStatus.DELETING,
        LeaseStatus.IN_PROGRESS,
    )
)
_BOOKED = (str(LeaseStatus.PENDING), str(LeaseStatus.ACTIVE))


class BookCheckStore:
    """Looks for what cannot be if everything works."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def find_faults(self, now: datetime, claim_ttl: timedelta) -> tuple[str, ...]:
        """Return what is wrong, as sentences, of each kind the first few; in six statements."""
        with self._transactions.reading() as connection:
            return (
                *_find_double_promises(connection),
                *_find_idle_leases(connection),
                *_find_endless_leases(connection),
                *_find_kept_resources(connection),
                *_find_long_claims(connection, now, claim_ttl),
                *_find_lost_sleepers(connection, now),
            )


def _find_double_promises(connection: Connection) -> Iterator[str]:
    """Whole resources that two leases have at the same time; parts of shared ones are not added up here."""
    one, other = allocations.alias(), allocations.alias()
    query = (
        sa.select(resources.c.name, one.c.lease_id, other.c.lease_id)
        .select_from(
            one.join(other, one.c.resource_id == other.c.resource_id).join(
                resources, resources.c.id == one.c.resource_id
            )
        )
        .where(
            one.c.id < other.c.id,
            one.c.lease_id != other.c.lease_id,
            one.c.released_at.is_(None),
            other.c.released_at.is_(None),
            sa.or_(one.c.per_instance.is_(None), other.c.per_instance.is_(None)),
            one.c.starts_at < other.c.blocks_until,
            other.c.starts_at < one.c.blocks_until,
        )
        .order_by(resources.c.name, one.c.id)
        .limit(MOST)
    )
    for name, first, second in connection.execute(query):
        yield f"{name} is promised to lease {first} and to lease {second} at the same time"


def _find_idle_leases(connection: Connection) -> Iterator[str]:
    """Leases on their way that no event moves on."""
    due = sa.exists().where(events.c.lease_id == leases.c.id, events.c.due_at.is_not(None))
    query = (
        sa.select(leases.c.id, leases.c.status)
        .where(leases.c.deleted_at.is_(None), leases.c.status.in_(_WORKING), ~due)
        .order_by(leases.c.id)
        .limit(MOST)
    )
    for lease_id, status in connection.execute(query):
        yield f"lease {lease_id} is {status}, and no event of it is due"


def _find_endless_leases(connection: Connection) -> Iterator[str]:
    """Leases that nothing ends."""
    due = sa.exists().where(
        events.c.lease_id == leases.c.id,
        events.c.due_at.is_not(None),
        events.c.event_type.in_([str(EventType.END), str(EventType.EVACUATE), str(EventType.CREATE)]),
    )
    query = (
        sa.select(leases.c.id, leases.c.status)
        .where(leases.c.deleted_at.is_(None), leases.c.status.in_(_BOOKED), ~due)
        .order_by(leases.c.id)
        .limit(MOST)
    )
    for lease_id, status in connection.execute(query):
        yield f"lease {lease_id} is {status}, and its end is never due"


def _find_kept_resources(connection: Connection) -> Iterator[str]:
    """Resources that leases hold which are over."""
    over = sa.or_(leases.c.deleted_at.is_not(None), leases.c.status == str(LeaseStatus.TERMINATED))
    query = (
        sa.select(leases.c.id, resources.c.name)
        .select_from(
            allocations.join(leases, leases.c.id == allocations.c.lease_id).join(
                resources, resources.c.id == allocations.c.resource_id
            )
        )
        .where(allocations.c.released_at.is_(None), over)
        .order_by(leases.c.id, resources.c.name)
        .limit(MOST)
    )
    for lease_id, name in connection.execute(query):
        yield f"lease {lease_id} is over, and still has {name}"


def _find_long_claims(connection: Connection, now: datetime, claim_ttl: timedelta) -> Iterator[str]:
    """Claims that end later than any that is written now."""
    query = (
        sa.select(events.c.id, events.c.lease_id)
        .where(events.c.claimed_by.is_not(None), events.c.due_at > now + claim_ttl)
        .order_by(events.c.due_at, events.c.id)
        .limit(MOST)
    )
    for event_id, lease_id in connection.execute(query):
        yield f"event {event_id} of lease {lease_id} is claimed for longer than a claim lasts: release event:{event_id}"


def _find_lost_sleepers(connection: Connection, now: datetime) -> Iterator[str]:
    """Hosts and pools that are not on, and that nobody will wake, or that should be awake by now."""
    a, h = allocations.c, host_power.c
    missed = sa.exists().where(
        a.resource_id == h.resource_id, a.released_at.is_(None), a.starts_at <= now - LONGEST_WAKE, a.ends_at > now
    )
    changing = h.state.in_([str(PowerState.GOING_OFF), str(PowerState.WAKING)])
    reasons = {
        "it is not registered any more; switch it on yourself": resources.c.live.is_(None),
        "it has no adapter by which it could be woken; set one, or switch it on yourself": h.adapter.is_(None),
        "nobody works on that: wake it once more": sa.and_(changing, h.due_at.is_(None)),
        "it has been so for more than an hour: look at its switch": sa.and_(changing, h.since < now - LONGEST_WAKE),
        "a lease that has it began more than an hour ago: wake it": missed,
    }
    why = sa.case(*((condition, text) for text, condition in reasons.items()))
    query = (
        sa.select(resources.c.kind, resources.c.name, h.state, why)
        .select_from(host_power.join(resources, resources.c.id == h.resource_id))
        .where(h.state != str(PowerState.ON), h.rehearsed.is_(False), sa.or_(*reasons.values()))
        .order_by(resources.c.name)
        .limit(MOST)
    )
    for kind, name, state, text in connection.execute(query):
        yield f"the power of {noun(ResourceKind(kind))} {name} is {state}, and {text}"
