# SPDX-License-Identifier: Apache-2.0
"""What the books say of trouble: events that are late or have failed, leases that get nowhere, failed resources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.errors import StaleLease
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.problems.problems import ProblemKind
from blazar.model.problems.troubles import (
    CLEAN_UPS,
    FailedResource,
    KeptHost,
    TroubledEvent,
    TroubledLease,
    TroubleLimits,
    Troubles,
)
from blazar.model.resources.resource import ResourceKind
from blazar.store.problems.findings import read_findings
from blazar.store.sql.rows import EVENT_COLUMNS, parse_event
from blazar.store.sql.tables import UTC_TIME, events, findings, host_power, leases, reservations, resources
from blazar.store.sql.transactions import Transactions

MOST = 1000
"""Of each kind that is looked at: the oldest."""

LONGEST_RETRY = timedelta(days=1)
"""What is tried again is due before this is over, whatever the longest pause is."""

FAILING = (str(EventType.START), str(EventType.BEFORE_END))
"""Events whose failure for good somebody may still do something about; that of a change is told to who asked for it."""
LIVE = tuple(
    str(status) for status in (LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.UPDATING, LeaseStatus.ERROR)
)
ON_THE_WAY = tuple(
    str(status)
    for status in (LeaseStatus.CREATING, LeaseStatus.STARTING, LeaseStatus.UPDATING, LeaseStatus.TERMINATING)
)
_REGION = (
    sa.select(sa.func.min(reservations.c.region))
    .where(reservations.c.lease_id == leases.c.id)
    .correlate(leases)
    .scalar_subquery()
)
_LEASE = (
    leases.c.id,
    leases.c.name,
    leases.c.project_id,
    leases.c.status,
    leases.c.starts_at,
    leases.c.ends_at,
    sa.func.coalesce(_REGION, "").label("region"),
)


class TroubleStore:
    """Reads what problems are made of."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def read(
        self,
        now: datetime,
        patience: TroubleLimits,
        *,
        lease_id: str | None = None,
        only: tuple[ProblemKind, str | None, str] | None = None,
    ) -> Troubles:
        """Return all that is in trouble, or what is of one lease, in five statements.

        ``only`` is one event, lease, resource or host, by its id or label, or what was found of one reservation, in a
        region.
        """
        with self._transactions.reading() as connection:
            found = Troubles(
                _read_events(
                    connection, now, patience, *_narrow(events.c.lease_id, lease_id), *_select_only(only, "event")
                ),
                _read_leases(connection, now, patience, *_narrow(leases.c.id, lease_id), *_select_only(only, "lease")),
                _read_resources(connection, now, patience, *_not_of_lease(lease_id), *_select_only(only, "resource")),
                _read_kept_hosts(connection, *_not_of_lease(lease_id), *_select_only(only, "power")),
                read_findings(
                    connection,
                    _select_problems(now, patience),
                    *_narrow(findings.c.lease_id, lease_id),
                    *_select_only(only, "finding"),
                ),
            )
        parts = (found.events, found.leases, found.resources, found.kept, found.findings)
        return Troubles(*parts, more=any(len(part) >= MOST for part in parts))

    def list_active_leases(self) -> tuple[str, ...]:
        """Return the ids of the leases in use, in one statement."""
        active = (leases.c.deleted_at.is_(None), leases.c.status == str(LeaseStatus.ACTIVE))
        return tuple(self._transactions.scalars(sa.select(leases.c.id).where(*active).order_by(leases.c.id)))

    def shorten_claim(
        self, event_id: str, token: str, known: datetime, until: datetime
    ) -> Callable[[Connection], None]:
        """Return the part of a commit that lets a claim on an event end at ``until``, if it ends as was ``known``.

        StaleLease if it was renewed or released meanwhile.
        """

        def work(connection: Connection) -> None:
            c = events.c
            mine = (c.id == event_id, c.claimed_by == token, c.due_at == known)
            if not connection.execute(events.update().where(*mine).values(due_at=until)).rowcount:
                raise StaleLease(f"the claim on event {event_id} has changed")

        return work


def _select_problems(now: datetime, patience: TroubleLimits) -> sa.ColumnElement[bool]:
    """Select the findings that are problems: what goes by itself, or is not looked at any more, is none."""
    f = findings.c
    lasts = sa.and_(
        f.since <= sa.literal(now - patience.failed, UTC_TIME), f.seen_at > sa.literal(now - patience.looked, UTC_TIME)
    )
    return sa.and_(
        sa.or_(f.what != str(ProblemKind.LEFTOVER), f.tries >= CLEAN_UPS),
        sa.or_(f.what != str(ProblemKind.ENERGY), lasts),
    )


_COLUMNS: Mapping[str, sa.Column[Any]] = {
    "event": events.c.id,
    "lease": leases.c.id,
    "resource": resources.c.label,
    "power": resources.c.label,
    "finding": findings.c.key,
}
_FOUND = frozenset(
    {ProblemKind.LEFTOVER, ProblemKind.UNKNOWN, ProblemKind.DRIFT, ProblemKind.CHARGE, ProblemKind.ENERGY}
)


def _narrow(column: sa.Column[Any], value: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if value is None else (column == value,)


def _not_of_lease(lease_id: str | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if lease_id is None else (sa.false(),)


def _select_only(only: tuple[ProblemKind, str | None, str] | None, table: str) -> tuple[sa.ColumnElement[bool], ...]:
    """Select one row of the table that has problems of a kind, and none of the others."""
    if only is None:
        return ()
    kind, region, key = only
    mine = "finding" if kind in _FOUND else str(kind)
    if mine != table:
        return (sa.false(),)
    if table != "finding":
        return (_COLUMNS[table] == key,)
    here = () if region is None else (findings.c.region == region,)
    return (findings.c.what == str(kind), findings.c.key == key, *here)


def _read_events(
    connection: Connection, now: datetime, patience: TroubleLimits, *where: sa.ColumnElement[bool]
) -> tuple[TroubledEvent, ...]:
    """Return the events in trouble: each way to be so is a range of an index."""
    e = events.c
    late = sa.select(e.id).where(e.due_at <= now - patience.due)
    failing = sa.select(e.id).where(e.due_at <= now + LONGEST_RETRY, e.attempts >= patience.attempts)
    # What waits for the cloud, as for a snapshot, has not failed: it is tried again and again.
    stuck = sa.select(e.id).where(e.due_at <= now + LONGEST_RETRY, e.trouble_since <= now - patience.waiting)
    held = sa.select(e.id).where(e.claimed_by.is_not(None), e.claimed_at <= now - patience.claimed)
    failed = (
        sa.select(e.id)
        .join(leases, leases.c.id == e.lease_id)
        .where(
            e.event_type.in_(FAILING),
            e.status == str(EventStatus.ERROR),
            leases.c.deleted_at.is_(None),
            leases.c.status.in_(LIVE),
            leases.c.ends_at > now,
        )
    )
    found = sa.union(late, failing, stuck, held, failed).subquery()
    since = sa.func.coalesce(e.trouble_since, e.claimed_at, e.due_at)
    query = (
        sa.select(*EVENT_COLUMNS, *_LEASE)
        .select_from(found.join(events, e.id == found.c.id).join(leases, leases.c.id == e.lease_id))
        .where(*where)
        .order_by(since, e.id)
        .limit(MOST)
    )
    return tuple(_event(row, now) for row in connection.execute(query))


def _event(row: Any, now: datetime) -> TroubledEvent:
    event = parse_event(row[: len(EVENT_COLUMNS)])
    known = [event.trouble_since, event.claimed_at if event.claimed_by else None]
    known.append(event.due_at if event.due_at is not None and event.due_at <= now else None)
    since = min((instant for instant in known if instant is not None), default=event.updated_at or event.created_at)
    return TroubledEvent(event, _lease(row[len(EVENT_COLUMNS) :], since))


def _lease(row: Any, since: datetime) -> TroubledLease:
    id_, name, project_id, status, starts_at, ends_at, region = row
    return TroubledLease(id_, name, project_id, LeaseStatus(status), starts_at, ends_at, since, region)


def _read_leases(
    connection: Connection, now: datetime, patience: TroubleLimits, *where: sa.ColumnElement[bool]
) -> tuple[TroubledLease, ...]:
    """Return leases that have failed, and those that are on their way for long: by their first trouble, or its lack."""
    trouble = (
        sa.select(sa.func.min(events.c.trouble_since, type_=UTC_TIME))
        .where(events.c.lease_id == leases.c.id)
        .correlate(leases)
        .scalar_subquery()
    )
    since = sa.func.coalesce(trouble, leases.c.updated_at, leases.c.created_at, type_=UTC_TIME)
    long = sa.and_(leases.c.status.in_(ON_THE_WAY), since <= sa.literal(now - patience.on_the_way, UTC_TIME))
    failed = sa.and_(leases.c.status == str(LeaseStatus.ERROR), leases.c.ends_at > now)
    # Both have one of few statuses: a range of the index that begins with it.
    few = leases.c.status.in_([*ON_THE_WAY, str(LeaseStatus.ERROR)])
    query = (
        sa.select(*_LEASE, since.label("since"))
        .where(few, leases.c.deleted_at.is_(None), sa.or_(failed, long), *where)
        .order_by(since, leases.c.id)
        .limit(MOST)
    )
    return tuple(_lease(row[:-1], row[-1]) for row in connection.execute(query))


def _read_resources(
    connection: Connection, now: datetime, patience: TroubleLimits, *where: sa.ColumnElement[bool]
) -> tuple[FailedResource, ...]:
    r = resources.c
    query = (
        sa.select(r.label, r.external_id, r.kind, r.name, r.region, r.failed_since, sa.func.coalesce(r.failure, ""))
        .where(r.live == 1, r.failed_since <= now - patience.failed, *where)
        .order_by(r.failed_since, r.label)
        .limit(MOST)
    )
    return tuple(FailedResource(*row) for row in connection.execute(query))


def _read_kept_hosts(connection: Connection, *where: sa.ColumnElement[bool]) -> tuple[KeptHost, ...]:
    """Return the hosts that have a switch, and stay on since they did not wake: nothing has moved them after that."""
    r, h = resources.c, host_power.c
    kept = (h.policy == str(PowerPolicy.KEEP), h.adapter.is_not(None))
    failed = (h.state == str(PowerState.ON), h.reason == str(PowerReason.TIMED_OUT), h.rehearsed.is_(False))
    query = (
        sa.select(r.kind, r.label, r.external_id, r.name, r.region, h.since)
        .join(host_power, h.resource_id == r.id)
        .where(r.live == 1, *kept, *failed, *where)
        .order_by(h.since, r.label)
        .limit(MOST)
    )
    return tuple(KeptHost(ResourceKind(kind), *more) for kind, *more in connection.execute(query))
