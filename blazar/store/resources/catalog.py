# SPDX-License-Identifier: Apache-2.0
"""The resources of a kind, cached in the process while they do not change.

Every change of a resource raises the version of its kind, so that one row tells whether the cache is valid.
The regions of resources are changed for all kinds at once.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.occupancy import roominess_key
from blazar.model.resources.requirements import Anything, Requirement, matches
from blazar.model.resources.resource import NAMES, RESERVED_NAMES, Resource, ResourceKind
from blazar.store.resources import inventory
from blazar.store.sql.tables import leases, reservations, resources
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.sql.versions import Versions, raise_version, read_versions

REMEMBERED_REQUIREMENTS = 512
REMEMBERED_PROJECTS = 512

NO_TIERS: Mapping[int, int] = {}


class ResourceCatalog:
    """All registered resources of one kind at one version, also ``by_id``; ``tiers`` says how scarce each is.

    ``private`` names properties for operators only.

    ``restricted``: some are not open to all projects; ``has_evacuable``: some are hosts that can be emptied.
    """

    def __init__(
        self,
        version: int,
        resources: Iterable[Resource],
        *,
        private: frozenset[str] = frozenset(),
        tiers: Mapping[int, int] = NO_TIERS,
    ) -> None:
        self.version = version
        ranked = [r if r.tier == (tier := tiers.get(r.id, 0)) else replace(r, tier=tier) for r in resources]
        self.resources: tuple[Resource, ...] = tuple(sorted(ranked, key=lambda r: (r.tier, roominess_key(r))))
        self.by_id: Mapping[int, Resource] = {resource.id: resource for resource in self.resources}
        self.restricted = any(r.authorized_projects is not None for r in self.resources)
        self.has_evacuable = any(r.evacuable for r in self.resources)
        self.private = private
        # Names of properties that are the operator's own: those of the cloud override them.
        self.capabilities: frozenset[str] = frozenset().union(*(r.capabilities for r in self.resources)) - (
            RESERVED_NAMES.union(*(r.attributes for r in self.resources))
        )
        self._keys = (
            frozenset().union(*(r.properties.keys() for r in self.resources)) if self.resources else frozenset()
        )
        self._found = lru_cache(maxsize=REMEMBERED_REQUIREMENTS)(self._find)
        self._open = lru_cache(maxsize=REMEMBERED_PROJECTS)(self._known_to)

    def ranked(self, tiers: Mapping[int, int]) -> ResourceCatalog:
        """Return the same with other tiers."""
        return ResourceCatalog(self.version, self.resources, private=self.private, tiers=tiers)

    def property_names(self) -> frozenset[str]:
        """Return the names of all properties that a resource has: for operators."""
        return self._keys

    def property_names_for(self, project_id: str) -> frozenset[str]:
        """Return the names of all properties that a project may know: none that only others' resources have."""
        return self._open(project_id if self.restricted else "")

    @cached_property
    def likeness(self) -> Mapping[int, int]:
        """A number for each resource, the same for those that are equal in all that users can see."""
        known: dict[str, int] = {}
        numbers = {}
        for resource in self.resources:
            seen = {name: value for name, value in resource.properties.items() if name not in self.private | NAMES}
            projects = None if resource.authorized_projects is None else sorted(resource.authorized_projects)
            hardware = [
                sorted(resource.capacity.items),
                sorted(resource.traits),
                str(sorted(map(repr, resource.pools))),
            ]
            text = json.dumps([seen, hardware, projects], sort_keys=True, default=str)
            numbers[resource.id] = known.setdefault(text, len(known))
        return numbers

    def _known_to(self, project_id: str) -> frozenset[str]:
        if not self.restricted:
            return self._keys - self.private
        of_each = (resource.properties.keys() for resource in self.resources if resource.is_open_to(project_id))
        return frozenset().union(*of_each) - self.private

    def matching(self, requirement: Requirement) -> Sequence[Resource]:
        """Return the resources that meet a requirement, by tier, smallest first."""
        return self._found(requirement)

    def _find(self, requirement: Requirement) -> Sequence[Resource]:
        if requirement == Anything():
            return self.resources
        return tuple(r for r in self.resources if matches(requirement, r.properties))


def _read_nothing(_: Connection) -> None:
    """Do nothing: there is nothing to be read beside a catalog."""


class CatalogCache:
    """Caches the latest catalog of each kind; with each that it reads again it calls ``beside`` in that transaction."""

    def __init__(self, beside: Callable[[Connection], None] = _read_nothing) -> None:
        self._beside = beside
        self._kept: dict[str, ResourceCatalog] = {}
        self._tiers: dict[str, Mapping[int, int]] = {}
        self.price_version: int | None = None
        """The version of all price lists when a catalog was last read; 0: there was none. None: none was read."""
        self._lock = threading.Lock()

    def latest(self, kind: str) -> ResourceCatalog | None:
        """Return the cached catalog of a kind, valid or not."""
        return self._kept.get(kind)

    def read(self, connection: Connection, kind: ResourceKind, versions: Versions | None = None) -> ResourceCatalog:
        """Return the catalog of a kind; costs one statement while nothing has changed, none if its versions are known.

        These are of the same transaction.
        """
        version, self.price_version = versions or read_versions(connection, kind)
        kept = self._kept.get(kind)
        if kept is not None and kept.version == version:
            return kept
        self._beside(connection)
        private = inventory.read_private_names(connection, kind)
        found, tiers = inventory.load_resources(connection, kind), self._tiers.get(kind, NO_TIERS)
        fresh = ResourceCatalog(version, found, private=private, tiers=tiers)
        with self._lock:
            if self._tiers.get(kind, NO_TIERS) is not tiers:
                fresh = fresh.ranked(self._tiers[kind])
            latest = self._kept.get(kind)
            if latest is None or latest.version < version:
                self._kept[kind] = fresh
        return fresh

    def rank(self, kind: ResourceKind, tiers: Mapping[int, int]) -> None:
        """Order the resources of a kind by these tiers from now on; one that has none is taken first."""
        with self._lock:
            self._tiers[kind] = tiers
            kept = self._kept.get(kind)
            if kept is not None:
                self._kept[kind] = kept.ranked(tiers)


class RegionStore:
    """Reads and writes the regions of resources and reservations."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def list_used(self) -> frozenset[str]:
        """Return the regions of the registered resources; that of resources without a region is empty."""
        return frozenset(
            self._transactions.scalars(sa.select(resources.c.region).where(resources.c.live == 1).distinct())
        )

    @atomic
    def adopt_region(self, connection: Connection, region: str) -> None:
        """Give a region to all resources and reservations that have none; the number of statements is constant.

        Leases with such reservations, which show it, have another revision then.
        """
        without = sa.select(resources.c.kind).where(resources.c.region == "").distinct()
        kinds = sorted(connection.execute(without).scalars())
        of_these = sa.select(reservations.c.lease_id).where(reservations.c.region == "")
        connection.execute(leases.update().where(leases.c.id.in_(of_these)).values(revision=leases.c.revision + 1))
        for table in (resources, reservations):
            connection.execute(table.update().where(table.c.region == "").values(region=region))
        for kind in kinds:
            raise_version(connection, kind)
