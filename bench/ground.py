# SPDX-License-Identifier: Apache-2.0
"""What is measured on: databases, clouds, and calendars full of leases."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from bench.kinds import FLAVORS, KINDS, LAST_POOL_GB, POOL_GB, Kind, Room
from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.segments import Segment
from blazar.clouds.ports.volumes import BACKEND_NAME, POOL_NAME
from blazar.clouds.simulated import Durations, Faults, MemoryStorage, State, of_size
from blazar.clouds.simulated.state import NetworkState, SubnetState
from blazar.clouds.simulated.volume_state import PoolState, VolumeTypeState
from blazar.manager.common.notifications import Parties
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import Clock, SystemClock
from blazar.model.base.json_text import Json
from blazar.model.leases.lease import Lease
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import (
    DEVICE,
    FLOATING_IP,
    GENERIC,
    HOST,
    NETWORK,
    VOLUME,
    ResourceDetails,
    ResourceInventory,
)
from blazar.resources.contract.checked import CheckedType
from blazar.resources.contract.evacuation import MovedServer
from blazar.resources.contract.values import Given
from blazar.resources.devices.kind import Devices
from blazar.resources.floating_ips.kind import FloatingIps
from blazar.resources.floating_ips.registration import attributes_of, name_of
from blazar.resources.generic.kind import GenericResources
from blazar.resources.hosts.kind import Hosts
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.registration import HostRegistration
from blazar.resources.hosts.registration import attributes_of as attributes_of_host
from blazar.resources.networks.kind import NetworkSegments
from blazar.resources.networks.registration import attributes_of as attributes_of_segment
from blazar.resources.networks.registration import name_of as segment_name
from blazar.resources.volumes import registration as pools
from blazar.resources.volumes.kind import VolumePools
from blazar.store.resources import inventory
from blazar.store.resources.resource_rows import details_row
from blazar.store.sql.engine import WRITES, make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import allocations, events, leases, reservations
from blazar.store.sql.versions import raise_version
from blazar.store.store import Store
from tests.people import PeopledCloud

POSTGRESQL = os.environ.get("BLAZAR_TEST_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432")
MARIADB = os.environ.get("BLAZAR_TEST_MARIADB", "mysql+pymysql://root@127.0.0.1:3306")
MAINTENANCE = {"postgresql": (POSTGRESQL, "postgres"), "mariadb": (MARIADB, "mysql")}

MONTH = timedelta(days=30)
BEGIN = datetime.now(UTC).replace(second=0, microsecond=0, minute=0) + timedelta(days=60)
END = BEGIN + MONTH
"""All leases of the ground lie in this month, and so overlap a new one that takes all of it."""

SUBNET = SubnetState("public-subnet", "10.0.0.0/8", "10.0.0.1", [["10.128.0.0", "10.255.255.254"]])
FIRST_ADDRESS = IPv4Address("10.0.0.2")

Found = tuple[str, str, ResourceDetails]
"""What can be registered: its id in the cloud, its name, and what the cloud tells of it."""


class Quiet:
    """Tells nobody."""

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
        reminder: str | None = None,
    ) -> None:
        pass

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        pass


@contextmanager
def database(kind: str) -> Iterator[Engine]:
    """Make a database with tables, and drop it afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"blazar_bench_{uuid.uuid4().hex[:8]}"
        if kind == "sqlite":
            url = f"sqlite:///{Path(folder) / name}"
        else:
            base, maintenance = MAINTENANCE[kind]
            admin = sa.create_engine(f"{base}/{maintenance}", isolation_level="AUTOCOMMIT")
            with admin.connect() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE {name}")
            url = f"{base}/{name}"
        engine = make_engine(url)
        upgrade(engine)
        try:
            yield engine
        finally:
            engine.dispose()
            if kind != "sqlite":
                with admin.connect() as connection:
                    connection.exec_driver_sql(f"DROP DATABASE {name}")


class Ground:
    """A service on a database, with a cloud of so many hosts, and so many addresses that can be reserved.

    What the ``kind`` takes of these is registered.
    """

    def __init__(
        self,
        engine: Engine,
        size: int,
        *,
        kind: Kind = KINDS["physical:host"],
        faults: Faults | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        deletion_takes: timedelta = timedelta(0),
    ) -> None:
        self.engine = engine
        self.kind = kind
        self.store = Store(engine)
        self.clock = clock or SystemClock()
        state = of_size(size)
        state.networks["public"] = NetworkState("public", "public", subnets=[SUBNET])
        if kind.resources == VOLUME:
            _add_pools(state, size)
        state.aggregates[1].hosts = [host.service_name for host in state.hosts.values()]
        self.simulated = PeopledCloud(
            MemoryStorage(state), clock=self.clock, faults=faults, durations=Durations(deletion=deletion_takes)
        )
        for flavor in FLAVORS:
            self.simulated.operators.offer_flavor(flavor)
        cloud = self.simulated.cloud
        host_settings = HostSettings()
        registration = HostRegistration(cloud, host_settings.aggregates)
        self.manager = ManagerService(
            self.store,
            self.clock,
            settings or Settings(),
            Plugins(
                types=tuple(each.make(cloud, host_settings) for each in KINDS.values()),
                kinds={
                    HOST: Hosts(registration),
                    FLOATING_IP: FloatingIps(cloud.network),
                    NETWORK: NetworkSegments(cloud.segments),
                    DEVICE: Devices(cloud.hooks),
                    GENERIC: GenericResources(cloud.hooks),
                    VOLUME: VolumePools(cloud.volumes),
                },
                notifier=Quiet(),
            ),
        )
        self.app = create_app(self.manager, identity=StandaloneIdentity())
        self.http = self.app.test_client()
        # As a request for it would be kept.
        self._kept = list(self._as_kept(kind, kind.filled, cloud, host_settings))
        match kind.resources:
            case "host":
                self._register(self._hosts(registration))
            case "floatingip":
                self._register(self._addresses(size))
            case "network":
                self._register(self._segments(size))
            case "volume":
                self._register(self._pools())
            case "device":
                self._register(self._hooked(Devices(cloud.hooks), size))
            case "generic":
                self._register(self._hooked(GenericResources(cloud.hooks), size, **{"class": "bench"}))
        self.filled = 0

    def _as_kept(self, kind: Kind, room: Room, cloud: Cloud, settings: HostSettings) -> Iterator[tuple[str, Json]]:
        """Return type and parameters of a reservation, and of those that it is made of."""
        type_ = CheckedType(kind.make(cloud, settings))
        content = type_.parameters(type_.resolve(Given(room), project_id="p"))
        yield kind.resource_type, dict(content.values)
        for child in type_.children(content):
            yield from self._as_kept(KINDS[child.resource_type], child.parameters, cloud, settings)

    def _hosts(self, registration: HostRegistration) -> Iterator[Found]:
        hypervisors = self.simulated.compute.hypervisors()
        details = registration.details_of({h.hypervisor_hostname: attributes_of_host(h) for h in hypervisors})
        for hypervisor in hypervisors:
            self.simulated.placement.create_reservation_provider(hypervisor.hypervisor_hostname)
            yield hypervisor.id, hypervisor.hypervisor_hostname, details[hypervisor.hypervisor_hostname]

    def _segments(self, count: int) -> Iterator[Found]:
        for number in range(1, count + 1):
            segment = Segment("vxlan", None, number)
            details = ResourceDetails(attributes_of_segment(segment), ResourceInventory())
            yield str(uuid.uuid4()), segment_name(segment), details

    def _pools(self) -> Iterator[Found]:
        with self.simulated.inspect() as state:
            for pool, type_ in zip(state.block.pools, state.block.types.values(), strict=True):
                given = {pools.POOL: pool.name, pools.TYPE: type_.name, pools.SIZE: pool.total_gb}
                attributes = {
                    **pools.read_pool(given),
                    pools.TYPE_ID: type_.id,
                    pools.BACKUPS: False,
                    pools.OPEN_TO: "",
                }
                details = ResourceDetails(attributes, ResourceInventory(pools.capacity_of(attributes)))
                yield str(uuid.uuid4()), pool.name, details

    def _hooked(self, kind: Devices | GenericResources, count: int, **given: str) -> Iterator[Found]:
        for number in range(count):
            url = f"https://hooks.example/{number}"
            found = kind.find(Registration({"name": f"bench-{number}", "hook_url": url, **given}))
            yield found.external_id, found.name, kind.details(found)

    def _addresses(self, count: int) -> Iterator[Found]:
        for number in range(count):
            address = str(FIRST_ADDRESS + number)
            details = ResourceDetails(attributes_of("public", SUBNET.id, address), ResourceInventory())
            yield str(uuid.uuid4()), name_of("public", address), details

    def _register(self, found: Iterator[Found]) -> None:
        """Register resources, past the service: that takes a request each and is not what is measured."""
        kind, now = self.kind.resources, datetime.now(UTC)
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            for number, (external_id, name, details) in enumerate(found):
                # Of ten thousand random labels two are the same now and then, and one clash would undo them all.
                label = {"label": f"{kind[0]}-{number:06}"}
                row = inventory.new_row(kind, external_id, name, now) | details_row(details) | label
                inventory.insert_resource(connection, kind, row, {}, now)
            raise_version(connection, kind)
        self.ids = sorted(r.id for r in self.store.resources.of_kind(kind))
        # A tenth stays free: there has to be something to find.
        self.busy = self.ids[: len(self.ids) - max(1, len(self.ids) // 10)]

    def fill(self, count: int, *, most: int) -> None:
        """Bring the calendar to ``count`` leases with something of one resource each, side by side in the month."""
        slot = MONTH / -(-most // len(self.busy))
        for begin in range(self.filled, count, 5000):
            self._insert(range(begin, min(begin + 5000, count)), slot)
        self.filled = max(self.filled, count)
        with self.engine.execution_options(**{WRITES: True}, isolation_level="AUTOCOMMIT").connect() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.exec_driver_sql("ANALYZE")

    def insert_one(self) -> None:
        """Insert the rows of one lease, past the service: what a creation writes of it, and nothing that it reads."""
        self._insert(range(self.filled, self.filled + 1), timedelta(hours=1))

    def _insert(self, numbers: range, slot: timedelta) -> None:
        rows: dict[sa.Table, list[dict[str, object]]] = {leases: [], reservations: [], events: [], allocations: []}
        now = datetime.now(UTC)
        per_instance = None if self.kind.per_instance is None else dict(self.kind.per_instance.items)
        for number in numbers:
            start = (BEGIN + slot * (number // len(self.busy))).replace(microsecond=0)
            end = max((start + slot).replace(microsecond=0), start + timedelta(seconds=1))
            lease_id, ids = str(uuid.uuid4()), [str(uuid.uuid4()) for _ in self._kept]
            stamps = {"created_at": now, "updated_at": None}
            rows[leases].append(
                {"id": lease_id, "name": f"lease {number}", "user_id": "u", "project_id": "p", "trust_id": None}
                | {"starts_at": start, "ends_at": end, "status": "PENDING", "degraded": False, "revision": 0}
                | {"deleted_at": None, **stamps}
            )
            rows[reservations] += [
                {"id": id, "lease_id": lease_id, "position": position, "resource_type": resource_type}
                | {"resource_id": str(uuid.uuid4()), "status": "pending", "missing_resources": False}
                | {"resources_changed": False, "parameters": parameters, "cloud_ids": {}, **stamps}
                | {"parent_id": ids[0] if position else None}
                for position, (id, (resource_type, parameters)) in enumerate(zip(ids, self._kept, strict=True))
            ]
            times = (("start_lease", start), ("end_lease", end), ("before_end_lease", start))
            for position, (kind, time) in enumerate(times):
                rows[events].append(
                    {"id": str(uuid.uuid4()), "lease_id": lease_id, "position": position, "event_type": kind}
                    | {"time": time, "status": "UNDONE", "due_at": time, "claimed_by": None, "claimed_at": None}
                    | {"attempts": 0, "reason": None, "saved_state": None, **stamps}
                )
            rows[allocations].append(
                {
                    "kind": str(self.kind.resources),
                    "resource_id": self.busy[number % len(self.busy)],
                    "lease_id": lease_id,
                }
                # What is made of others takes nothing itself.
                | {"reservation_id": ids[-1], "starts_at": start, "ends_at": end, "blocks_until": end}
                | {"count": self.kind.count, "per_instance": per_instance, "released_at": None}
            )
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            for table, values in rows.items():
                connection.execute(table.insert(), values)


def _add_pools(state: State, count: int) -> None:
    """Add pools to a cloud, each with a private type that leads to it alone."""
    for number in range(count):
        size = LAST_POOL_GB if number >= count - max(1, count // 10) else POOL_GB
        pool, name = PoolState(f"node@disks#{number}", "disks", str(number), size), f"disks-{number}"
        state.block.pools.append(pool)
        specs = {BACKEND_NAME: pool.backend_name, POOL_NAME: pool.pool_name}
        state.block.types[name] = VolumeTypeState(name, name, public=False, specs=specs)
