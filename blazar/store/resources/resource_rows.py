# SPDX-License-Identifier: Apache-2.0
"""Rows of resources and of their properties as values; what is promised of one, and what a change must leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict
from blazar.model.leases.reservation import Reservation
from blazar.model.resources.pools import CardPool, UnitLimits, declared_cards
from blazar.model.resources.resource import (
    REGION,
    Resource,
    ResourceDetails,
    ResourceKind,
    ResourceProperty,
    is_evacuable,
)
from blazar.store.sql.rows import RESERVATION_COLUMNS, AnyRow, reservation_of
from blazar.store.sql.tables import allocations, reservations

ENABLED: dict[str, object] = {"disabled_reason": None, "disabled_since": None, "disabled_until": None}
"""The columns that say why and until when a resource is disabled, of one that is not."""


def resource_of(row: AnyRow, capabilities: Mapping[str, str]) -> Resource:
    """Return a resource."""
    return Resource(
        id=row.id,
        kind=ResourceKind(row.kind),
        external_id=row.external_id,
        name=row.name,
        attributes={**row.attributes, REGION: row.region} if row.region else row.attributes,
        capabilities=capabilities,
        capacity=Amounts.of(row.capacity) + declared_cards(capabilities),
        reservable=row.reservable
        and not row.disabled
        and row.failed_since is None
        and not is_evacuable(ResourceKind(row.kind), row.attributes),
        created_at=row.created_at,
        updated_at=row.updated_at,
        limits=_limits(tuple((name, *values) for name, values in (row.limits or {}).items())),
        traits=_traits(tuple(row.traits or ())),
        disabled=row.disabled,
        failure=row.failure,
        failed_since=row.failed_since,
        authorized_projects=None if row.authorized_projects is None else frozenset(row.authorized_projects),
        label=row.label,
        revision=row.revision,
        disabled_reason=row.disabled_reason,
        disabled_since=row.disabled_since,
        disabled_until=row.disabled_until,
        region=row.region,
        withdrawn=not row.reservable,
        pools=_pools(tuple((*x[:3], tuple(x[3]), *x[4:]) for x in row.pools)) if row.pools else (),
    )


# Hosts of one model have the same data: a thousand of them share one value.
@lru_cache(maxsize=1024)
def _limits(rows: tuple[tuple[str, int, int, int], ...]) -> Mapping[str, UnitLimits]:
    return {name: UnitLimits(*values) for name, *values in rows}


@lru_cache(maxsize=1024)
def _traits(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names)


@lru_cache(maxsize=1024)
def _pools(rows: tuple[tuple[str, int, int, tuple[str, ...], int, int, int], ...]) -> tuple[CardPool, ...]:
    return tuple(
        CardPool(name, size, providers, frozenset(traits), UnitLimits(*limits))
        for name, size, providers, traits, *limits in rows
    )


def _pool_row(pool: CardPool) -> list[Any]:
    limits = pool.limits
    traits = sorted(pool.traits)
    return [pool.resource_class, pool.size, pool.providers, traits, limits.least, limits.most, limits.step]


def details_row(details: ResourceDetails) -> dict[str, Any]:
    """Return a resource's columns with data from the cloud."""
    inventory = details.inventory
    return {
        "attributes": dict(details.attributes),
        "capacity": dict(inventory.capacity.items),
        "limits": {name: [x.least, x.most, x.step] for name, x in inventory.limits.items()},
        "traits": sorted(inventory.traits),
        "pools": [_pool_row(pool) for pool in inventory.pools] or None,
    }


def property_of(row: AnyRow) -> ResourceProperty:
    """Return a property."""
    return ResourceProperty(
        id=row.id,
        kind=ResourceKind(row.kind),
        name=row.name,
        private=row.private,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


def read_reservations(connection: Connection, resource_id: int) -> tuple[Reservation, ...]:
    """Return the reservations to which a resource is promised."""
    promised = sa.select(allocations.c.reservation_id).where(
        allocations.c.resource_id == resource_id, allocations.c.released_at.is_(None)
    )
    rows = connection.execute(sa.select(*RESERVATION_COLUMNS).where(reservations.c.id.in_(promised))).all()
    return tuple(reservation_of(row) for row in rows)


def check_capacity(
    connection: Connection, resource: Resource, at: datetime, *, only: Collection[str] | None = None
) -> None:
    """Raise Conflict if a resource has less capacity than is promised of it at any time; one statement.

    Who has the whole of it has all that there is. With ``only`` no other classes are looked at.
    """
    a = allocations.c
    shared = (a.resource_id == resource.id, a.released_at.is_(None), a.per_instance.is_not(None))
    rows = connection.execute(
        sa.select(a.starts_at, a.ends_at, a.blocks_until, a.count, a.per_instance).where(*shared)
    ).all()
    steps: list[tuple[datetime, int, Amounts]] = []
    for starts_at, ends_at, blocks_until, count, unit in rows:
        # Who should have left, and has not, has it still.
        until = max(ends_at, blocks_until, at)
        promised = Amounts.of({name: amount * count for name, amount in Amounts.of(unit).items})
        steps += [(starts_at, 1, promised), (until, -1, promised)]
    taken: Counter[str] = Counter()
    peak: Counter[str] = Counter()
    # What ends at an instant leaves before what begins then.
    for _, sign, promised in sorted(steps, key=lambda step: step[:2]):
        for name, amount in promised.items:
            taken[name] += sign * amount
            peak[name] = max(peak[name], taken[name])
    for name, amount in sorted(peak.items()):
        if amount > resource.capacity.get(name) and (only is None or name in only):
            raise Conflict(
                f"{resource.name} has {amount} {name} promised at one time; give it at least that capacity, or wait "
                f"until the leases have ended",
                code="resource_in_use",
            )
