# SPDX-License-Identifier: Apache-2.0
"""The resources of a kind, cached in the process while they do not change.

Every change of a resource raises the version of its kind, so that one row tells whether the cache is valid.
The regions of resources are changed for all kinds at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.calendar.occupancy import roominess_key
from blazar.model.resources.requirements import Anything, Requirement, matches
from blazar.model.resources.resource import RESERVED_NAMES, Resource, ResourceKind
from blazar.store.resources import inventory
from blazar.store.sql.tables import reservations, resources
from blazar.store.sql.transactions import Transactions, atomic

REMEMBERED_REQUIREMENTS = 512
REMEMBERED_PROJECTS = 512


class ResourceCatalog:
    """All registered resources of one kind at one version, also ``by_id``.

    ``private`` names properties for operators only.

    ``restricted``: some are not open to all projects; ``has_evacuable``: some are hosts that can be emptied.
    """

    def __init__(self, version: int, resources: Iterable[Resource], *, private: frozenset[str] = frozenset()) -> None:
        self.version = version
        self.resources: tuple[Resource, ...] = tuple(sorted(resources, key=roominess_key))
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

    def property_names(self) -> frozenset[str]:
        """Return the names of all properties that a resource has: for operators."""
        return self._keys

    def property_names_for(self, project_id: str) -> frozenset[str]:
        """Return the names of all properties that a project may know: none that only others' resources have."""
        return self._open(project_id if self.restricted else "")

    def _known_to(self, project_id: str) -> frozenset[str]:
        if not self.restricted:
            return self._keys - self.private
        of_each = (resource.properties.keys() for resource in self.resources if resource.is_open_to(project_id))
        return frozenset().union(*of_each) - self.private

    def matching(self, requirement: Requirement) -> Sequence[Resource]:
        """Return the resources that meet a requirement, smallest first."""
        return self._found(requirement)

    def _find(self, requirement: Requirement) -> Sequence[Resource]:
        if requirement == Anything():
            return self.resources
        return tuple(r for r in self.resources if matches(requirement, r.properties))


class CatalogCache:
    """Caches the latest catalog of each kind."""

    def __init__(self) -> None:
        self._kept: dict[str, ResourceCatalog] = {}
        self.price_version: int | None = None
        """The version of the last price list when a catalog was last read; 0: there was none. None: none was read."""
        self._lock = threading.Lock()

    def latest(self, kind: str) -> ResourceCatalog | None:
        """Return the cached catalog of a kind, valid or not."""
        return self._kept.get(kind)

    def read(self, connection: Connection, kind: ResourceKind) -> ResourceCatalog:
        """Return the catalog of a kind; costs one statement while nothing has changed."""
        version, self.price_version = inventory.read_versions(connection, kind)
        kept = self._kept.get(kind)
        if kept is not None and kept.version == version:
            return kept
        private = inventory.read_private_names(connection, kind)
        fresh = ResourceCatalog(version, inventory.load_resources(connection, kind), private=private)
        with self._lock:
            latest = self._kept.get(kind)
            if latest is None or latest.version < version:
                self._kept[kind] = fresh
        return fresh


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
        """Give a region to all resources and reservations that have none; the number of statements is constant."""
        without = sa.select(resources.c.kind).where(resources.c.region == "").distinct()
        kinds = sorted(connection.execute(without).scalars())
        for table in (resources, reservations):
            connection.execute(table.update().where(table.c.region == "").values(region=region))
        for kind in kinds:
            inventory.raise_inventory_version(connection, ResourceKind(kind))
