# SPDX-License-Identifier: Apache-2.0
"""A service of two regions, R1 and R2: two simulated clouds with hosts of the same names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy.engine import Engine

from blazar.clouds.simulated import Faults, MemoryStorage, of_size
from blazar.clouds.simulated.storage import StateStorage
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationRequest
from blazar.model.resources.changes import Registration
from blazar.model.resources.regions import Regions
from blazar.model.resources.resource import HOST, Resource, ResourceKind
from blazar.resources.contract.regional import combine_regions
from blazarconformance.clock import ManualClock
from tests.people import PeopledCloud
from tests.world import World, a_host

REGIONS = Regions(("R1", "R2"))


class TwoRegions(World):
    """A world with a second cloud; by default two hosts are registered in each region.

    ``storages`` are those of the clouds, by default in memory.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        hosts: int = 2,
        register: bool = True,
        storages: tuple[StateStorage, StateStorage] | None = None,
        **more: Any,
    ) -> None:
        clock = ManualClock()
        self.regions = REGIONS
        first, self.second = (
            PeopledCloud(storage, clock=clock, faults=Faults(sleep=lambda _: None))
            for storage in storages or (MemoryStorage(of_size(hosts)), MemoryStorage(of_size(hosts)))
        )
        super().__init__(engine, hosts=hosts, register=False, cloud=first, clock=clock, **more)
        for number in range(1, hosts + 1) if register else ():
            for region in REGIONS:
                self.register_in(region, f"node-{number}")

    def another_manager(self, **_: Any) -> ManagerService:
        clouds = dict(zip(self.regions, (self.simulated.cloud, self.second.cloud), strict=False))
        made = {
            name: (
                tuple(make(cloud, self.host_settings) for make in self._types),
                self._kinds(cloud, self.host_settings),
            )
            for name, cloud in clouds.items()
        }
        types, kinds = combine_regions(self.regions, made)
        return ManagerService(
            self.store,
            self.clock,
            self.settings,
            Plugins(
                types,
                kinds,
                self.notifier,
                self.enforcement,
                self.regions,
                powers={name: cloud.power for name, cloud in clouds.items()},
            ),
        )

    def configured_for(self, *names: str) -> None:
        """Go on with a manager that serves these regions, the first of them on the first cloud."""
        self.regions = Regions(names)
        self.manager = self.another_manager()

    def register_in(self, region: str, name: str) -> Resource:
        return self.register_one(HOST, region, Registration({"name": name}))

    def register_one(self, kind: ResourceKind, region: str, request: Registration) -> Resource:
        """Register a resource of any kind in a region."""
        located = replace(request, given={**request.given, "region": region})
        return self.manager.resources.register(kind, located)

    def regions_of(self, lease: Lease) -> list[str]:
        """Return the regions of the hosts that are promised to a lease, sorted."""
        held = self.store.calendar.of_lease(lease.id)
        found = self.store.resources.by_ids({each.resource_id for each in held})
        return sorted(found[each.resource_id].region for each in held)

    def free_in_second(self) -> frozenset[str]:
        """Return the hosts in the freepool of R2."""
        with self.second.inspect() as state:
            return frozenset(h for each in state.aggregates.values() if each.name == "freepool" for h in each.hosts)


def kill(cloud: PeopledCloud) -> None:
    """No service of the cloud answers any more, until its faults are cleared."""

    def fail(name: str, phase: str) -> None:
        if phase == "before":
            raise CloudUnavailable(f"{name}: the cloud is down")

    cloud.faults.on_call = fail


def hosts_in(region: str, minimum: int = 1, maximum: int | None = None) -> ReservationRequest:
    """Ask for hosts of a region."""
    return a_host(minimum, maximum, needs=f'["==", "$region", "{region}"]')


HOUR = timedelta(hours=1)
WorldMaker = Callable[..., TwoRegions]
