# SPDX-License-Identifier: Apache-2.0
"""Two managers of three hosts, the first of which can stand still or lose its database."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import MemoryStorage, State, of_size
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService
from blazar.model.base.errors import BlazarError, StoreUnavailable
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.store.store import Store
from tests.observed import ObservedStore
from tests.people import PeopledCloud
from tests.tables import new_sqlite, sqlite_engine
from tests.world import NOON, ManualClock, World, a_host

TTL = timedelta(minutes=2)
PAUSE = 1.5 * TTL
MINUTE = timedelta(minutes=1)
OTHERS = "chemistry"
BESIDE = "biology"
SETTINGS = Settings(
    claim_ttl=TTL,
    before_end_lead=timedelta(0),
    heal_active=True,
    failures_before_healing=1,
    longest_retry=MINUTE,
    # Few looks at what others work on: their time passes all at once.
    recheck_interval=timedelta(seconds=15),
    patience=timedelta(0),
)

OFFERED = (Flavor("small", "c1.small", 2, 2048, 10, public=True), Flavor("large", "c1.large", 4, 4096, 20, public=True))
"""Flavors of operators, from which reservations of flavors copy."""

HASTY = Settings(
    claim_ttl=timedelta(seconds=1),
    recheck_interval=timedelta(milliseconds=50),
    first_retry=timedelta(milliseconds=50),
    longest_sleep=timedelta(milliseconds=100),
    starters=4,
    enders=4,
)
"""For managers that work in threads, by the clock of the machine."""


def until(condition: Callable[[], bool]) -> None:
    """Wait for something that threads do."""
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


class Turn(StrEnum):
    """What happens to the lease while its manager stands still."""

    TAKEN_OVER = "taken over"
    ENDS = "reaches its end"
    DELETED = "is deleted"
    GONE = "is deleted, and nothing follows"


class DatabaseAway(ObservedStore):
    """The store as a manager sees it whose way to the database may be cut."""

    def __init__(self, store: Store) -> None:
        super().__init__(store, self._call)
        self.away = False

    def _call(self, _: str, operation: Callable[..., Any], *args: Any, **more: Any) -> Any:
        if self.away:
            raise StoreUnavailable("the database does not answer")
        return operation(*args, **more)


@dataclass(slots=True)
class Photo:
    """What others have in the cloud."""

    servers: dict[str, str | None]
    hosts: dict[str, frozenset[str]]
    access: dict[str, frozenset[str]]
    addresses: dict[str, tuple[str, str | None]]
    networks: dict[str, frozenset[str]]
    things: dict[str, dict[str, int]]
    volumes: dict[str, tuple[int, str]]


class Stage:
    """Three registered hosts, one of them in the use of others all the time, and two open ones."""

    def __init__(self, template: Template) -> None:
        self.clock = ManualClock(template.instant)
        self.engine = template.engine
        cloud = PeopledCloud(MemoryStorage(template.state.copy()), clock=self.clock)
        self.world = World(self.engine, clock=self.clock, cloud=cloud, settings=SETTINGS, register=False)
        self.cloud = cloud
        self.store = self.world.store
        self.database = DatabaseAway(self.store)
        self.world.store = self.database  # type: ignore[assignment]
        self.first = self.world.manager = self.world.another_manager()
        self.world.store = self.store
        self.second = self.world.another_manager()
        self.lease: Lease | None = None
        self.next: Lease | None = None
        self.notes: dict[str, Any] = {}

    def book(self, project: str, *reservations: ReservationRequest, start: datetime, end: datetime, **more: Any) -> str:
        """Book a lease by way of the second manager; return its id."""
        self.world.manager = self.second
        try:
            return self.world.lease(*reservations, start=start, end=end, project=project, **more).id
        finally:
            self.world.manager = self.first

    def now_of(self, lease_id: str) -> Lease:
        """Return a lease as it is by now, deleted or not."""
        return self.store.leases.one(lease_id, including_deleted=True)

    def run(self, manager: ManagerService, instant: datetime) -> None:
        """Let time pass, one manager working on events as they fall due."""
        while (due := self.store.events.next_due()) is not None and due <= instant:
            self.clock.to(due)
            manager.engine.run_due()
        self.clock.to(instant)
        manager.engine.run_due()
        manager.outbox.run_due()

    def use(self, lease: Lease, *, most: int = 9) -> list[str]:
        """Boot servers wherever an active lease lets its project, attach an address, build on a network.

        Return the servers' ids.
        """
        booted = []
        for reservation in lease.reservations:
            match reservation.resource_type:
                case "physical:host":
                    for host in sorted(self.world.pool(reservation.id)):
                        server = self.cloud.users.boot_server(
                            "work", project_id=lease.project_id, user_id="u", host=host, hint=reservation.id
                        )
                        booted.append(server.id)
                case "virtual:floatingip":
                    for found in self.cloud.network.floating_ips(tag=reservation_tag(reservation.id))[:1]:
                        self.cloud.users.attach(found.id)
                case "network":
                    for network in self.cloud.network_users.calls.segment_networks(tag=reservation_tag(reservation.id)):
                        self.cloud.network_users.port(network.id, "compute:nova")
                        self.cloud.network_users.router(network.id)
                case "generic" | "device" | "virtual:volume":
                    pass
                case _:
                    with suppress(BlazarError):
                        for _ in range(most):
                            server = self.cloud.users.boot_reserved(reservation.id, project_id=lease.project_id)
                            booted.append(server.id)
        return booted

    def photo(self, *projects: str) -> Photo:
        """Return what these projects have in the cloud."""
        leases = [lease for lease in self.store.leases.of_project(None) if lease.project_id in projects]
        ids = {r.id for lease in leases for r in lease.reservations if lease.status is LeaseStatus.ACTIVE}
        servers = {
            s.id: s.host
            for s in self.cloud.operators.list_servers()
            if s.project_id in projects and s.status == "ACTIVE"
        }
        with self.cloud.inspect() as state:
            hosts = {a.name: frozenset(a.hosts) for a in state.aggregates.values() if a.name in ids}
            access = {f.id: frozenset(f.projects) for f in state.flavors.values() if f.id in ids}
            found = {f.address: (f.project_id, f.port_id) for f in state.floating_ips.values()}
            networks = {
                n.id: frozenset(port.id for port in state.ports.values() if port.network_id == n.id)
                for n in state.networks.values()
                if n.project_id in projects
            }
            users = {id_: {r: n for r, n in thing.users.items() if r in ids} for id_, thing in state.things.items()}
            now = self.clock.now()
            volumes = {
                v.id: (v.size_gb, v.status(now)) for v in state.block.volumes.values() if v.project_id in projects
            }
        addresses = {a: (p, port) for a, (p, port) in found.items() if p in projects}
        things = {id_: had for id_, had in users.items() if had}
        return Photo(servers, hosts, access, addresses, networks, things, volumes)


@dataclass(frozen=True, slots=True)
class Template:
    """A database and a cloud to begin each story with. One engine for all stories: it knows their statements."""

    database: Path
    engine: Engine
    state: State
    instant: datetime = NOON

    def restore(self) -> None:
        """Bring the engine's database back to the beginning."""
        self.engine.dispose()
        live = Path(str(self.engine.url.database))
        for rest in live.parent.glob(f"{live.name}*"):
            rest.unlink()
        shutil.copyfile(self.database, live)


def template(folder: Path) -> Template:
    """Return a stage before the curtain: hosts, addresses and segments registered, one host in use by others."""
    database = folder / "template.sqlite"
    engine = new_sqlite(database)
    world = World(engine, hosts=3, state=of_size(5), settings=SETTINGS)
    world.register_addresses(10, 11)
    world.register_segments(101, 102)
    world.register_pools(1)
    for name in ("microscope-1", "microscope-2"):
        world.register_thing(name)
    for name in ("edge-1", "edge-2"):
        world.register_device(name)
    for flavor in OFFERED:
        world.simulated.operators.offer_flavor(flavor)
    beside = world.lease(a_host(), project=BESIDE, end=NOON + timedelta(days=2))
    world.run()
    (host,) = world.hosts_of(beside)
    world.simulated.users.boot_server("work", project_id=BESIDE, user_id="u", host=host, hint=beside.reservations[0].id)
    with world.simulated.inspect() as made:
        pass
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return Template(database, sqlite_engine(folder / "stage.sqlite"), made)


def staged(made: Template) -> Stage:
    """Return a fresh stage."""
    made.restore()
    return Stage(made)
