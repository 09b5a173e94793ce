# SPDX-License-Identifier: Apache-2.0
"""The store of resources, with their capabilities, properties and failures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import Conflict, NotFound, WrongState, check_revision
from blazar.model.journal.object_entries import tell_property, tell_removal, tell_resource
from blazar.model.leases.reservation import Reservation
from blazar.model.power.states import PowerState
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.pools import declared_cards, find_fewer_cards
from blazar.model.resources.resource import (
    REGION,
    PropertyValues,
    Resource,
    ResourceDetails,
    ResourceKind,
    ResourceProperty,
    noun,
)
from blazar.store.journal.rows import write_entries, write_entry
from blazar.store.resources import inventory
from blazar.store.resources.catalog import CatalogCache, ResourceCatalog
from blazar.store.resources.resource_rows import (
    ENABLED,
    check_capacity,
    details_row,
    property_of,
    read_reservations,
    resource_of,
)
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import allocations, host_power, resource_capabilities, resource_properties, resources
from blazar.store.sql.transactions import Clash, Transactions, atomic
from blazar.store.sql.versions import raise_version

DETAILS = ("attributes", "capacity", "limits", "traits", "pools")
"""The columns with what the cloud says about a resource."""

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
            return inventory.load_resources(connection, kind)

    def one(self, kind: ResourceKind, external_id: str) -> Resource:
        """Return a registered resource by its id in the cloud; NotFound."""
        with self._transactions.reading() as connection:
            return inventory.load_resource(connection, kind, external_id)

    def find_by_name(self, kind: ResourceKind, name: str, *, region: str = "") -> Resource | None:
        """Return a registered resource of a region by its name."""
        with self._transactions.reading() as connection:
            found = inventory.load_resources(connection, kind, resources.c.name == name, resources.c.region == region)
            return found[0] if found else None

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Resource]:
        """Return resources, retired ones too, by calendar id and without their capabilities."""
        with self._transactions.reading() as connection:
            return inventory.load_by_ids(connection, ids)

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
        projects = None if open_to is None else list(open_to)
        columns: dict[str, object] = {"disabled": disabled, "authorized_projects": projects, "region": region}
        if disabled:
            columns |= _disabling_columns(disabling or Disabling(), since=at)

        def insert_resource(connection: Connection) -> Resource:
            row = inventory.new_row(kind, external_id, name, at) | details_row(details) | columns
            inventory.insert_resource(connection, kind, row, capabilities, at)
            raise_version(connection, kind)
            made = inventory.load_resource(connection, kind, external_id)
            write_entry(connection, tell_resource(None, made, at=at, by=current().actor))
            return made

        for _ in range(CLASHES):
            try:
                return self._transactions.write(insert_resource)
            except Clash as error:
                if self.find_by_name(kind, name, region=region) is not None or self._is_registered(kind, external_id):
                    sentence = f"{noun(kind)} {name} is registered already"
                    raise Conflict(sentence, code="already_registered") from error
                # The same property was added concurrently: now it exists. Or the label is taken: the next one is not.
        return self._transactions.write(insert_resource)

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

        NotFound; PreconditionFailed if its revision is none of those requested; Conflict if more is promised of it.
        """
        columns = _changed_columns(change, details, at)

        def write_change(connection: Connection) -> Resource:
            before = inventory.lock_resource(connection, resource_id)
            # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
            kind = inventory.change_resource(connection, resource_id, at, **columns)
            _check_revision(connection, resource_id, change.revisions)
            known = inventory.read_capabilities(connection, resource_id)
            changed = frozenset(name for name, value in change.capabilities.items() if known.get(name, value) != value)
            changed |= change.attributes.keys()
            if check is not None and changed:
                check(changed, read_reservations(connection, resource_id))
            inventory.set_capabilities(connection, kind, resource_id, change.capabilities, at)
            (made,) = inventory.load_resources(connection, kind, resources.c.id == resource_id)
            if details is not None:
                check_capacity(connection, made, at)
            elif fewer := find_fewer_cards(known, made.capabilities):
                check_capacity(connection, made, at, only=fewer)
            if before is not None:
                known_before = replace(before, capabilities=known)
                write_entry(connection, tell_resource(known_before, made, at=at, by=current().actor))
            return made

        # The same property may be added concurrently; after that it exists.
        return self._transactions.write_beside_others(write_change)

    @atomic
    def refresh(
        self, connection: Connection, kind: ResourceKind, details: Mapping[int, ResourceDetails], *, at: datetime
    ) -> frozenset[int]:
        """Write the cloud's data about resources, by calendar id, where it has changed; return which resources changed.

        Those no longer registered are ignored. What is promised of the resources stays promised; but a booking that was
        decided on the previous values does not succeed. The number of statements is constant.
        """
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
                    revision=resources.c.revision + 1,
                    **{name: sa.bindparam(f"new_{name}") for name in DETAILS},
                ),
                [
                    {"key": id_, **{f"new_{name}": value for name, value in details_row(new).items()}}
                    for id_, new in sorted(changed.items())
                ],
            )
            raise_version(connection, kind)
            refreshed = {id_: _renew(known[id_], new) for id_, new in sorted(changed.items())}
            told = (tell_resource(known[id_], new, at=at, by=current().actor) for id_, new in refreshed.items())
            write_entries(connection, [entry for entry in told if entry is not None])
        return frozenset(changed)

    def set_reservable(self, resource_id: int, reservable: bool, *, at: datetime) -> None:
        """Set whether a resource takes new allocations. NotFound."""
        self._transactions.write(lambda c: inventory.change_resource(c, resource_id, at, reservable=reservable))

    @atomic
    def withdraw(
        self, connection: Connection, resource_id: int, *, at: datetime, revisions: tuple[int, ...] | None = None
    ) -> None:
        """Exclude a resource from new allocations. NotFound; PreconditionFailed.

        Conflict if it has an allocation; WrongState if it is a host that is not on.
        """
        live = (
            sa.select(allocations.c.lease_id)
            .where(allocations.c.resource_id == resource_id, allocations.c.released_at.is_(None))
            .order_by(allocations.c.starts_at, allocations.c.lease_id)
        )

        # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
        kind = inventory.change_resource(connection, resource_id, at, reservable=False)
        _check_revision(connection, resource_id, revisions)
        holders = list(connection.execute(live).scalars())
        if holders:
            others = len(set(holders)) - 1
            more = f" and {others} more" if others else ""
            raise Conflict(
                f"the {noun(kind)} is allocated to lease {holders[0]}{more}; delete it, or wait until it ends",
                code="resource_in_use",
            )
        _check_awake(connection, resource_id)

    def retire(self, resource_id: int, *, at: datetime) -> None:
        """Remove a resource from the calendar; its past allocations stay on record. NotFound."""

        def write_end(connection: Connection) -> None:
            before = inventory.lock_resource(connection, resource_id)
            inventory.change_resource(connection, resource_id, at, reservable=False, live=None, retired_at=at)
            if before is not None:
                write_entry(connection, tell_removal(before, at=at, by=current().actor))

        self._transactions.write(write_end)

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

        def write_privacy(connection: Connection) -> ResourceProperty:
            row = connection.execute(sa.select(resource_properties).where(*where).with_for_update()).one_or_none()
            if row is None:
                raise NotFound(
                    f"no {noun(kind)} has ever had the property {name[:80]!r}; "
                    "see the list of properties for their names",
                    code="property_not_found",
                )
            connection.execute(resource_properties.update().where(*where).values(private=private, updated_at=at))
            raise_version(connection, kind)
            before = property_of(row)
            after = replace(before, private=private, updated_at=at)
            write_entry(connection, tell_property(before, after, at=at, by=current().actor))
            return after

        changed = self._transactions.write(write_privacy)
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

    def _is_registered(self, kind: ResourceKind, external_id: str) -> bool:
        with self._transactions.reading() as connection:
            return bool(inventory.load_resources(connection, kind, resources.c.external_id == external_id))


def _renew(resource: Resource, details: ResourceDetails) -> Resource:
    """Return a resource with what the cloud says of it by now."""
    region = {REGION: resource.region} if resource.region else {}
    inventory_ = details.inventory
    return replace(
        resource,
        attributes={**details.attributes, **region},
        capacity=inventory_.capacity + declared_cards(resource.capabilities),
        limits=inventory_.limits,
        traits=inventory_.traits,
        pools=inventory_.pools,
    )


def _check_revision(connection: Connection, resource_id: int, wanted: tuple[int, ...] | None) -> None:
    """Raise PreconditionFailed if a resource that this transaction has just changed had another revision before."""
    if wanted is None:
        return
    revision = connection.execute(sa.select(resources.c.revision).where(resources.c.id == resource_id)).scalar_one() - 1
    check_revision(revision, wanted, "the resource has changed")


def _check_awake(connection: Connection, resource_id: int) -> None:
    """Raise WrongState if a resource is not on: once it is unregistered nobody would wake it.

    Its row is locked, so that no plan lets it go off in between.
    """
    h = host_power.c
    query = sa.select(h.state).where(h.resource_id == resource_id, h.rehearsed.is_(False)).with_for_update()
    state = connection.execute(query).scalar_one_or_none()
    if state is not None and state != str(PowerState.ON):
        raise WrongState(
            f"its power is {state}, and nobody could wake it once it is unregistered; wake it first, and "
            "wait until it is on"
        )


def _changed_columns(change: ResourceChange, details: ResourceDetails | None, at: datetime) -> dict[str, object]:
    """Return the columns of a resource that a change writes."""
    columns: dict[str, object] = {} if details is None else details_row(details)
    if change.disabled is not None:
        columns |= {"disabled": change.disabled, **_disabling_row(change, at)}
    if change.sets_projects:
        columns["authorized_projects"] = None if change.open_to is None else list(change.open_to)
    return columns


def _disabling_row(change: ResourceChange, at: datetime) -> dict[str, object]:
    """Return the columns that say why, since when and until when a resource is disabled.

    A resource that is disabled already keeps the time since when it is. It is NULL for one that is enabled, and the
    column ``disabled`` is not asked: MariaDB would see its new value here.
    """
    if not change.disabled:
        return ENABLED
    since = sa.func.coalesce(resources.c.disabled_since, sa.literal(at, resources.c.disabled_since.type))
    if change.disabling is None:
        return {"disabled_since": since}
    return _disabling_columns(change.disabling, since=since)


def _disabling_columns(disabling: Disabling, *, since: object) -> dict[str, object]:
    return {"disabled_reason": disabling.reason, "disabled_since": since, "disabled_until": disabling.until}
