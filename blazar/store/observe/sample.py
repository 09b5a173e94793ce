# SPDX-License-Identifier: Apache-2.0
"""What the database says of all there is, in numbers, for metrics: a few statements, however much there is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.values import dataclass
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.classes import POWERED
from blazar.model.power.states import PowerState
from blazar.model.problems.problems import ProblemKind
from blazar.model.resources.pools import declared_cards
from blazar.store.observe.deliveries import Deliveries, read_deliveries
from blazar.store.resources.inventory import IS_DECLARATION
from blazar.store.sql.tables import (
    allocations,
    events,
    findings,
    host_power,
    leases,
    maintenance_resources,
    outbox,
    reservations,
    resource_capabilities,
    resource_properties,
    resources,
)
from blazar.store.sql.transactions import Transactions


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many wait, and for how long the first of them does."""

    number: int
    oldest: timedelta

    @classmethod
    def nothing(cls) -> Backlog:
        """Return that none waits."""
        return cls(0, timedelta(0))


@dataclass(frozen=True, slots=True)
class Sample:
    """Numbers of one moment.

    ``due``: events that are due and that nobody works on, by type. ``leases``: those that are not deleted, by kind and
    status. ``resources``: registered ones by kind, region and state; ``properties`` by kind, property, value and state.
    ``power``: registered hosts and pools by kind and power state.
    ``capacity`` and ``allocated``: amounts by kind, region and class. ``waiting``: leases by the types that they ask
    for. ``messages``: outbox messages by state; ``undelivered`` are all that are not given up. ``deliveries``: what the
    journal has for subscriptions. ``drift``: reservations that are not as they should be, by region.
    """

    due: Mapping[str, Backlog]
    leases: Mapping[tuple[str, ...], int]
    resources: Mapping[tuple[str, ...], int]
    properties: Mapping[tuple[str, ...], int]
    power: Mapping[tuple[str, ...], int]
    capacity: Mapping[tuple[str, ...], float]
    allocated: Mapping[tuple[str, ...], float]
    waiting: Mapping[str, Backlog]
    messages: Mapping[str, int]
    undelivered: Backlog
    deliveries: Deliveries
    drift: Mapping[tuple[str, ...], int]


class SampleStore:
    """Reads samples."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def read(self, now: datetime, properties: Collection[str] = ()) -> Sample:
        """Return the numbers of a moment, all of one snapshot; public ``properties`` of resources besides."""
        with self._transactions.reading() as connection:
            messages, undelivered = _read_messages(connection, now)
            return Sample(
                due=_read_backlogs(connection, _select_due(now), now),
                leases=_count(connection, _LEASES),
                resources=_count(connection, _select_resources(now)),
                properties=_count(connection, _select_properties(now, properties)) if properties else {},
                power=_count(connection, _POWER),
                capacity=_add_up(connection.execute(_CAPACITY).all(), connection.execute(_DECLARED).all()),
                allocated=_add_up(
                    connection.execute(_select_allocated(now)).all(),
                    connection.execute(_select_declared_of_whole(now)).all(),
                ),
                waiting=_read_backlogs(connection, _WAITING, now),
                messages=messages,
                undelivered=undelivered,
                deliveries=read_deliveries(connection, now),
                drift=_count(connection, _DRIFT),
            )


_LEASES = (
    sa.select(leases.c.kind, leases.c.status, sa.func.count())
    .where(leases.c.deleted_at.is_(None))
    .group_by(leases.c.kind, leases.c.status)
)
_WAITING = (
    sa.select(
        reservations.c.resource_type,
        sa.func.count(sa.distinct(leases.c.id)),
        sa.func.min(leases.c.queued_at, type_=leases.c.queued_at.type),
    )
    .join(leases, leases.c.id == reservations.c.lease_id)
    .where(
        leases.c.status == str(LeaseStatus.WAITING), leases.c.deleted_at.is_(None), reservations.c.parent_id.is_(None)
    )
    .group_by(reservations.c.resource_type)
)
_DRIFT = (
    sa.select(findings.c.region, sa.func.count())
    .where(findings.c.what == str(ProblemKind.DRIFT))
    .group_by(findings.c.region)
)
_REGISTERED = resources.c.live.is_not(None)
# What has no row is on, as one to which only a dry run gave another state.
_ON = str(PowerState.ON)
_POWERS = (
    sa.select(
        resources.c.kind,
        sa.case((host_power.c.rehearsed.is_(True), _ON), else_=sa.func.coalesce(host_power.c.state, _ON)).label(
            "power"
        ),
    )
    .select_from(resources.outerjoin(host_power, host_power.c.resource_id == resources.c.id))
    .where(_REGISTERED, resources.c.kind.in_(map(str, POWERED)))
    .subquery()
    .c
)
_POWER = sa.select(_POWERS.kind, _POWERS.power, sa.func.count()).group_by(_POWERS.kind, _POWERS.power)
# Resources that are alike have the same text.
_AMOUNTS = sa.cast(resources.c.capacity, sa.Text)
_CAPACITY = (
    sa.select(resources.c.kind, resources.c.region, _AMOUNTS, sa.func.count())
    .where(_REGISTERED)
    .group_by(resources.c.kind, resources.c.region, _AMOUNTS)
)
# Declared cards are in no row of a resource.
_DECLARATION = (resources.c.kind, resources.c.region, resource_properties.c.name, resource_capabilities.c.value)
_DECLARED = (
    sa.select(*_DECLARATION, sa.func.count())
    .join(resource_capabilities, resource_capabilities.c.resource_id == resources.c.id)
    .join(resource_properties, resource_properties.c.id == resource_capabilities.c.property_id)
    .where(_REGISTERED, IS_DECLARATION)
    .group_by(*_DECLARATION)
)


def _select_declared_of_whole(now: datetime) -> sa.Select[Any]:
    a = allocations.c
    held = (a.released_at.is_(None), a.starts_at <= now, a.per_instance.is_(None))
    return _DECLARED.join(allocations, a.resource_id == resources.c.id).where(*held)


def _select_due(now: datetime) -> sa.Select[Any]:
    first = sa.func.min(events.c.due_at, type_=events.c.due_at.type)
    return (
        sa.select(events.c.event_type, sa.func.count(), first)
        .where(events.c.due_at <= now)
        .group_by(events.c.event_type)
    )


def _state(now: datetime) -> sa.ColumnElement[str]:
    """Return the state of a resource: the worst that it is in."""
    m, a = maintenance_resources.c, allocations.c
    closed = sa.exists().where(m.resource_id == resources.c.id, m.starts_at <= now, m.blocks_until > now)
    held = sa.exists().where(a.resource_id == resources.c.id, a.released_at.is_(None), a.starts_at <= now)
    return sa.case(
        (resources.c.failed_since.is_not(None), "failed"),
        (closed, "maintenance"),
        (resources.c.disabled | ~resources.c.reservable, "disabled"),
        (held, "allocated"),
        else_="free",
    )


def _select_resources(now: datetime) -> sa.Select[Any]:
    found = sa.select(resources.c.kind, resources.c.region, _state(now).label("state")).where(_REGISTERED).subquery().c
    key = (found.kind, found.region, found.state)
    return sa.select(*key, sa.func.count()).group_by(*key)


def _select_properties(now: datetime, names: Collection[str]) -> sa.Select[Any]:
    """Count resources by the values of properties that their operators have given them."""
    property_, value = resource_properties.c, resource_capabilities.c.value
    found = (
        sa.select(resources.c.kind, property_.name, value.label("value"), _state(now).label("state"))
        .join(resource_capabilities, resource_capabilities.c.resource_id == resources.c.id)
        .join(resource_properties, property_.id == resource_capabilities.c.property_id)
        .where(_REGISTERED, property_.name.in_(sorted(names)), property_.private.is_(sa.false()))
        .subquery()
        .c
    )
    key = (found.kind, found.name, found.value, found.state)
    return sa.select(*key, sa.func.count()).group_by(*key)


def _select_allocated(now: datetime) -> sa.Select[Any]:
    a, r = allocations.c, resources.c
    # A whole resource has no amounts of its own.
    amounts = sa.func.coalesce(sa.cast(a.per_instance, sa.Text), _AMOUNTS)
    key = (r.kind, r.region, amounts)
    return (
        sa.select(*key, sa.func.sum(a.count))
        .join(resources, r.id == a.resource_id)
        .where(a.released_at.is_(None), a.starts_at <= now)
        .group_by(*key)
    )


def _read_messages(connection: Connection, now: datetime) -> tuple[Mapping[str, int], Backlog]:
    o = outbox.c
    state = sa.case((o.due_at.is_(None), "dead"), (o.due_at <= now, "due"), else_="waiting")
    first = sa.func.min(o.created_at, type_=o.created_at.type)
    counted = sa.select(state.label("state"), sa.func.count(), first)
    rows = connection.execute(counted.where(o.due_at.is_not(None) | o.reason.is_not(None)).group_by("state")).all()
    alive = [created_at for name, _, created_at in rows if name != "dead"]
    numbers = {"due": 0, "waiting": 0, "dead": 0} | {name: number for name, number, _ in rows}
    oldest = max((now - created_at for created_at in alive), default=timedelta(0))
    return numbers, Backlog(numbers["due"] + numbers["waiting"], oldest)


def _read_backlogs(connection: Connection, query: sa.Select[Any], now: datetime) -> Mapping[str, Backlog]:
    return {name: Backlog(number, now - first) for name, number, first in connection.execute(query)}


def _count(connection: Connection, query: sa.Select[Any]) -> Mapping[Any, int]:
    return {tuple(key): int(number) for *key, number in connection.execute(query)}


def _add_up(rows: Iterable[Sequence[Any]], declarations: Iterable[Sequence[Any]]) -> Mapping[tuple[str, ...], float]:
    """Return the sums of amounts by kind, region and class, of rows with a JSON object of amounts and a number.

    ``declarations`` have a property and its value instead.
    """
    sums: dict[tuple[str, ...], float] = defaultdict(float)
    for kind, region, amounts, number in rows:
        for resource_class, amount in json.loads(amounts or "{}").items():
            sums[kind, region, resource_class] += amount * int(number)
    for kind, region, name, value, number in declarations:
        for resource_class, amount in declared_cards({name: value}):
            sums[kind, region, resource_class] += amount * int(number)
    return dict(sums)
