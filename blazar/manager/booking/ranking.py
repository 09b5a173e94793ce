# SPDX-License-Identifier: Apache-2.0
"""Learns each hour which resources are scarce, so that who needs any of them is given another one."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import datetime, timedelta

from blazar.calendar.scarcity import Sought, rank_resources
from blazar.manager.booking.held_calendar import read_demand
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.leases.reservation import Content
from blazar.model.resources.resource import ResourceKind
from blazar.store.resources.catalog import ResourceCatalog
from blazar.store.resources.sought import AskedParameters

MEMORY = timedelta(days=90)
"""For how long what was asked for counts."""

INTERVAL = timedelta(hours=1)
"""How old an order may be while no resource is added."""

LOOK = 60.0
"""Seconds between two looks whether there are resources without a place in the order."""


class Ranking(BackgroundThread):
    """Orders resources by scarcity, each manager for itself: that decides only which of those that fit is taken."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("ranking", work="The order of scarce resources cannot be learned", retry=60.0)
        self._runtime = runtime
        self._ranked: dict[ResourceKind, frozenset[int]] = {}
        self._at: datetime | None = None

    def run_once(self) -> bool:
        """Order the resources if that is due; return whether it was. StoreUnavailable.

        One statement for each kind, and one if it is due.
        """
        store, now = self._runtime.store, self._runtime.clock.now()
        catalogs = {kind: store.resources.catalog(kind) for kind in {t.kind for t in self._runtime.types.values()}}
        is_old = self._at is None or not self._at <= now < self._at + INTERVAL
        if not is_old and all(catalogs[kind].by_id.keys() <= self._ranked.get(kind, frozenset()) for kind in catalogs):
            return False
        asked = store.sought.read_asked(now - MEMORY)
        sought: dict[ResourceKind, list[Sought]] = defaultdict(list)
        for parameters, seconds in asked.items():
            kind = self._kind_of(parameters)
            if kind is not None and (one := self._sought(parameters, seconds, catalogs[kind])):
                sought[kind].append(one)
        for kind, catalog in catalogs.items():
            public = catalog.capabilities - catalog.private
            tiers = rank_resources(catalog.resources, sought[kind], matching=catalog.matching, public=public)
            store.sought.rank(kind, tiers)
            self._ranked[kind] = frozenset(tiers)
        self._at = now
        return True

    def _kind_of(self, parameters: AskedParameters) -> ResourceKind | None:
        known = self._runtime.types.get(parameters.resource_type)
        return None if known is None or known.has("children") else known.kind

    def _sought(self, asked: AskedParameters, seconds: int, catalog: ResourceCatalog) -> Sought | None:
        """Return what was asked for as a demand; None if nothing is asked for in such words any more."""
        parameters = Content(json.loads(asked.parameters))
        demand = read_demand(self._runtime, catalog, asked.resource_type, asked.region, parameters)
        if demand is None:
            return None
        return Sought(demand, demand.max_count * seconds / 3600)

    def _round(self) -> float:
        self.run_once()
        return LOOK
