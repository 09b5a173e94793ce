# SPDX-License-Identifier: Apache-2.0
"""The store of resources, with their capabilities, properties and failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.errors import Conflict, NotFound
from blazar.model.lease import Reservation
from blazar.model.requests import Disabling, ResourceChange
from blazar.model.resource import (
    PropertyValues,
    Resource,
    ResourceDetails,
    ResourceKind,
    ResourceProperty,
    check_edits,
    noun,
)
from blazar.store import resource_queries
from blazar.store.catalog import CatalogCache, ResourceCatalog
from blazar.store.promised import check_capacity, reservations_on
from blazar.store.rows import chunks, details_row, property_of, resource_of
from blazar.store.tables import allocations, resource_capabilities, resource_properties, resources
from blazar.store.transactions import Clash, Transactions

DETAILS = ("attributes", "capacity", "limits", "traits")
"""The columns with what the cloud says about a resource."""

_ENABLED: dict[str, object] = {"disabled_reason": None, "disabled_since": None, "disabled_until": None}

ChangeCheck = Callable[[frozenset[str], tuple[Reservation, ...]], None]

CLASHES = 4
"""Attempts of a write that fails because a property that it needs was added concurrently."""


class ResourceStore:
    """Reads and writes registered resources."""

    def __init__(self, transactions: Transactions, catalogs: CatalogCache) -> None:
        self._transactions = transactions
        self._catalogs = catalogs

    def of_kind(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources of a kind, oldest first."""
        with self._transactions.reading() as connection:
            return resource_queries.load(connection, kind)

    def one(self, kind: ResourceKind, external_id: str) -> Resource:
        """Return a registered resource by its id in the cloud; NotFound."""
        with self._transactions.reading() as connection:
            return resource_queries.one(connection, kind, external_id)

    def named(self, kind: ResourceKind, name: str, *, region: str = "") -> Resource | None:
        """Return a registered resource of a region by its name."""
        with self._transactions.reading() as connection:
            found = resource_queries.load(connection, kind, resources.c.name == name, resources.c.region == region)
            return found[0] if found else None

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Resource]:
        """Return resources, retired ones too, by calendar id and without their capabilities."""
        with self._transactions.reading() as connection:
            return resource_queries.by_ids(connection, ids)

    def add(
        self,
        kind: ResourceKind,
        *,
        external_id: str,
        name: str,
        details: ResourceDetails,
        capabilities: Mapping[str, str],
        at: datetime,
        disabled: bool = False,
        open_to: Collection[str] | None = None,
        disabling: Disabling | None = None,
        region: str = "",
    ) -> Resource:
        """Register a resource. Conflict if one of its kind with its id, or its name in its region, is registered."""
        columns = _disabling_columns(disabling or Disabling(), since=at) if disabled else {}

        def work(connection: Connection) -> Resource:
            resource_queries.insert(
                connection,
                kind,
                external_id=external_id,
                name=name,
                details=details,
                capabilities=capabilities,
                at=at,
                disabled=disabled,
                authorized_projects=None if open_to is None else list(open_to),
                region=region,
                **columns,
            )
            resource_queries.raise_version(connection, kind)
            return resource_queries.one(connection, kind, external_id)

        for _ in range(CLASHES):
            try:
                return self._transactions.write(work)
            except Clash as error:
                if self.named(kind, name, region=region) is not None or self._is_registered(kind, external_id):
                    sentence = f"{noun(kind)} {name} is registered already"
                    raise Conflict(sentence, code="already_registered") from error
                # The same property was added concurrently: now it exists. Or the label is taken: the next one is not.
        return self._transactions.write(work)

    def change(
        self,
        resource_id: int,
        change: ResourceChange,
        *,
        at: datetime,
        check: ChangeCheck | None = None,
        details: ResourceDetails | None = None,
    ) -> Resource:
        """Set or remove (None) capabilities; enable or disable the resource; set its projects, and its details.

        NotFound; PreconditionFailed if its edits are not those that were asked for; Conflict if more is promised of it.
        """
        columns: dict[str, object] = {} if details is None else details_row(details)
        if change.disabled is not None:
            columns |= {"disabled": change.disabled, **_disabling_of(change, at)}
        if change.sets_projects:
            columns["authorized_projects"] = None if change.open_to is None else list(change.open_to)

        def work(connection: Connection) -> Resource:
            # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
            kind = resource_queries.change(connection, resource_id, at, **columns)
            _check_edits(connection, resource_id, change.edits)
            known = resource_queries.capabilities_of(connection, resource_id)
            changed = frozenset(name for name, value in change.capabilities.items() if known.get(name, value) != value)
            changed |= change.attributes.keys()
            if check is not None and changed:
                check(changed, reservations_on(connection, resource_id))
            resource_queries.set_capabilities(connection, kind, resource_id, change.capabilities, at)
            (made,) = resource_queries.load(connection, kind, resources.c.id == resource_id)
            if details is not None:
                check_capacity(connection, made, at)
            return made

        for _ in range(CLASHES):
            # The same property may be added concurrently; after that it exists.
            with suppress(Clash):
                return self._transactions.write(work)
        return self._transactions.write(work)

    def refresh(self, kind: ResourceKind, details: Mapping[int, ResourceDetails], *, at: datetime) -> frozenset[int]:
        """Write the cloud's data about resources, by calendar id, where it has changed; return which resources changed.

        Those no longer registered are ignored. What is promised of the resources stays promised; but a booking that was
        decided on the previous values does not succeed. The number of statements is constant.
        """

        def work(connection: Connection) -> frozenset[int]:
            known: dict[int, Resource] = {}
            for part in chunks(sorted(details)):
                rows = connection.execute(sa.select(resources).where(resources.c.live == 1, resources.c.id.in_(part)))
                known.update((row.id, resource_of(row, {})) for row in rows)
            changed = {id_: details[id_] for id_, resource in known.items() if resource.details != details[id_]}
            if changed:
                connection.execute(
                    resources.update()
                    .where(resources.c.id == sa.bindparam("key"), resources.c.live == 1)
                    .values(
                        updated_at=at,
                        generation=resources.c.generation + 1,
                        edits=resources.c.edits + 1,
                        **{name: sa.bindparam(f"new_{name}") for name in DETAILS},
                    ),
                    [
                        {"key": id_, **{f"new_{name}": value for name, value in details_row(new).items()}}
                        for id_, new in sorted(changed.items())
                    ],
                )
                resource_queries.raise_version(connection, kind)
            return frozenset(changed)

        return self._transactions.write(work)

    def set_reservable(self, resource_id: int, reservable: bool, *, at: datetime) -> None:
        """Set whether a resource takes new allocations. NotFound."""
        self._transactions.write(lambda c: resource_queries.change(c, resource_id, at, reservable=reservable))

    def withdraw(self, resource_id: int, *, at: datetime, edits: tuple[int, ...] | None = None) -> None:
        """Exclude a resource from new allocations. Conflict if it has an allocation; NotFound; PreconditionFailed."""
        live = (
            sa.select(allocations.c.lease_id)
            .where(allocations.c.resource_id == resource_id, allocations.c.released_at.is_(None))
            .order_by(allocations.c.starts_at, allocations.c.lease_id)
        )

        def work(connection: Connection) -> None:
            # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
            kind = resource_queries.change(connection, resource_id, at, reservable=False)
            _check_edits(connection, resource_id, edits)
            holders = list(connection.execute(live).scalars())
            if holders:
                others = len(set(holders)) - 1
                more = f" and {others} more" if others else ""
                raise Conflict(
                    f"the {noun(kind)} is allocated to lease {holders[0]}{more}; delete it, or wait until it ends",
                    code="resource_in_use",
                )

        self._transactions.write(work)

    def retire(self, resource_id: int, *, at: datetime) -> None:
        """Remove a resource from the calendar; its past allocations stay on record. NotFound."""
        self._transactions.write(
            lambda c: resource_queries.change(c, resource_id, at, reservable=False, live=None, retired_at=at)
        )

    def property_values(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return properties with their distinct values on registered resources, by name."""
        public = () if include_private else (resource_properties.c.private.is_(False),)
        with self._transactions.reading() as connection:
            rows = connection.execute(
                sa.select(resource_properties).where(resource_properties.c.kind == str(kind), *public)
            ).all()
            pairs = connection.execute(
                sa.select(resource_capabilities.c.property_id, resource_capabilities.c.value)
                .distinct()
                .join(resources, resources.c.id == resource_capabilities.c.resource_id)
                .where(resources.c.kind == str(kind), resources.c.live == 1)
            ).all()
        values: dict[str, set[str]] = defaultdict(set)
        for property_id, value in pairs:
            values[property_id].add(value)
        # Sorted here: databases sort strings differently.
        named = sorted((row for row in rows if values[row.id]), key=lambda row: str(row.name))
        return tuple(PropertyValues(property_of(row), tuple(sorted(values[row.id]))) for row in named)

    def set_property_private(self, kind: ResourceKind, name: str, *, private: bool, at: datetime) -> ResourceProperty:
        """Show a property to all users or only to operators; NotFound."""
        where = (resource_properties.c.kind == str(kind), resource_properties.c.name == name)

        def work(connection: Connection) -> ResourceProperty:
            connection.execute(resource_properties.update().where(*where).values(private=private, updated_at=at))
            row = connection.execute(sa.select(resource_properties).where(*where)).one_or_none()
            if row is None:
                raise NotFound(
                    f"no {noun(kind)} has ever had the property {name[:80]!r}; "
                    "see the list of properties for their names",
                    code="property_not_found",
                )
            resource_queries.raise_version(connection, kind)
            return property_of(row)

        changed = self._transactions.write(work)
        # The cache of this process is used without reading the database, so update it at once.
        self.catalog(kind)
        return changed

    def catalog(self, kind: ResourceKind) -> ResourceCatalog:
        """Return all registered resources of a kind; costs one statement while nothing has changed."""
        with self._transactions.reading() as connection:
            return self._catalogs.read(connection, kind)

    def latest_catalog(self, kind: ResourceKind) -> ResourceCatalog | None:
        """Return all registered resources of a kind as they were when last read; costs nothing.

        A property that they do not have may have been added since: then call ``catalog``.
        """
        return self._catalogs.latest(kind)

    def set_failed(self, kind: ResourceKind, failures: Mapping[int, str], *, at: datetime) -> frozenset[int]:
        """Mark resources as failed, by calendar id and reason: they take no new allocation. Return those newly failed.

        Any number of processes may report the same: only one of them gets the resource returned. One statement for
        each reason, and a few more.
        """

        def work(connection: Connection) -> frozenset[int]:
            known = _failures(connection, failures)
            by_reason: dict[str, list[int]] = defaultdict(list)
            for id_, reason in failures.items():
                if id_ in known and known[id_] != reason:
                    by_reason[reason].append(id_)
            since = sa.func.coalesce(resources.c.failed_since, sa.literal(at, resources.c.updated_at.type))
            # The generation is raised, so that no booking succeeds that assumed the resource to be healthy.
            for reason, ids in by_reason.items():
                _set_condition(connection, ids, at=at, failure=reason, failed_since=since)
            resource_queries.raise_version(connection, kind)
            return frozenset(id_ for id_ in failures if id_ in known and known[id_] is None)

        return self._transactions.write(work) if failures else frozenset()

    def set_recovered(self, kind: ResourceKind, ids: Collection[int], *, at: datetime) -> frozenset[int]:
        """Mark resources as recovered: they take allocations as before. Return those that had failed."""

        def work(connection: Connection) -> frozenset[int]:
            known = _failures(connection, ids)
            changed = sorted(id_ for id_, failure in known.items() if failure is not None)
            _set_condition(connection, changed, at=at, failure=None, failed_since=None)
            if changed:
                resource_queries.raise_version(connection, kind)
            return frozenset(changed)

        return self._transactions.write(work) if ids else frozenset()

    def failed_by(self, kinds: Collection[ResourceKind], instant: datetime) -> Mapping[int, ResourceKind]:
        """Return the resources of some kinds that failed by an instant and have not recovered, with their kinds."""
        query = sa.select(resources.c.id, resources.c.kind).where(
            resources.c.failed_since <= instant,
            resources.c.live == 1,
            resources.c.kind.in_(sorted(kinds)),
        )
        with self._transactions.reading() as connection:
            return {id_: ResourceKind(kind) for id_, kind in connection.execute(query)}

    def next_enabling(self) -> datetime | None:
        """Return the earliest instant until which a resource is disabled; None if there is none."""
        query = sa.select(sa.func.min(resources.c.disabled_until)).where(resources.c.live == 1)
        with self._transactions.reading() as connection:
            found: datetime | None = connection.execute(query).scalar()
            return found

    def enable_due(self, *, at: datetime) -> tuple[Resource, ...]:
        """Enable the resources that are disabled until then or earlier; return those enabled, without capabilities."""
        due = (resources.c.live == 1, resources.c.disabled_until <= at)

        def work(connection: Connection) -> tuple[Resource, ...]:
            rows = connection.execute(sa.select(resources).where(*due).order_by(resources.c.id).with_for_update()).all()
            found = tuple(resource_of(row, {}) for row in rows)
            _set_condition(connection, [each.id for each in found], at=at, disabled=False, **_ENABLED)
            for kind in sorted({each.kind for each in found}):
                resource_queries.raise_version(connection, kind)
            return found

        return self._transactions.write(work)

    def _is_registered(self, kind: ResourceKind, external_id: str) -> bool:
        with self._transactions.reading() as connection:
            return bool(resource_queries.load(connection, kind, resources.c.external_id == external_id))


def _check_edits(connection: Connection, resource_id: int, wanted: tuple[int, ...] | None) -> None:
    """Raise PreconditionFailed if a resource that this transaction has just changed had other edits before."""
    if wanted is None:
        return
    edits = connection.execute(sa.select(resources.c.edits).where(resources.c.id == resource_id)).scalar_one() - 1
    check_edits(edits, wanted)


def _disabling_of(change: ResourceChange, at: datetime) -> dict[str, object]:
    """Return the columns that say why, since when and until when a resource is disabled.

    A resource that is disabled already keeps the time since when it is. It is NULL for one that is enabled, and the
    column ``disabled`` is not asked: MariaDB would see its new value here.
    """
    if not change.disabled:
        return _ENABLED
    since = sa.func.coalesce(resources.c.disabled_since, sa.literal(at, resources.c.disabled_since.type))
    if change.disabling is None:
        return {"disabled_since": since}
    return _disabling_columns(change.disabling, since=since)


def _disabling_columns(disabling: Disabling, *, since: object) -> dict[str, object]:
    return {
        "disabled_reason": disabling.reason,
        "disabled_since": since,
        "disabled_until": disabling.until,
    }


def _failures(connection: Connection, ids: Collection[int]) -> Mapping[int, str | None]:
    """Return the failures of registered resources, locked against concurrent changes until the transaction ends."""
    found: dict[int, str | None] = {}
    for part in chunks(sorted(ids)):
        rows = connection.execute(
            sa.select(resources.c.id, resources.c.failure)
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .order_by(resources.c.id)
            .with_for_update()
        )
        found.update((id_, failure) for id_, failure in rows)
    return found


def _set_condition(connection: Connection, ids: Collection[int], *, at: datetime, **columns: object) -> None:
    """Write the condition of resources, and raise their generations."""
    for part in chunks(ids):
        connection.execute(
            resources.update()
            .where(resources.c.id.in_(part), resources.c.live == 1)
            .values(updated_at=at, generation=resources.c.generation + 1, edits=resources.c.edits + 1, **columns)
        )
