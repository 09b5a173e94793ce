"""What is measured on: databases, clouds, and calendars full of leases."""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from bench.kinds import KINDS, Kind
from blazar.api.app import create_app
from blazar.api.identity import StandaloneIdentity
from blazar.clouds.simulated import Faults, MemoryKeeper, SimulatedCloud, of_size
from blazar.manager.service import ManagerService
from blazar.manager.settings import Settings
from blazar.model.clock import Clock, SystemClock
from blazar.model.lease import Lease
from blazar.model.resource import ResourceKind
from blazar.resources.addresses import AddressRegistration
from blazar.resources.physical_host import HostSettings
from blazar.resources.registration import HostRegistration
from blazar.store import resource_queries
from blazar.store.engine import WRITES, connect
from blazar.store.migrate import upgrade
from blazar.store.store import Store
from blazar.store.tables import allocations, events, leases, reservations

POSTGRESQL = os.environ.get("BLAZAR_TEST_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432")
MARIADB = os.environ.get("BLAZAR_TEST_MARIADB", "mysql+pymysql://root@127.0.0.1:3306")
MAINTENANCE = {"postgresql": (POSTGRESQL, "postgres"), "mariadb": (MARIADB, "mysql")}

MONTH = timedelta(days=30)
BEGIN = datetime.now(UTC).replace(second=0, microsecond=0, minute=0) + timedelta(days=60)
END = BEGIN + MONTH
"""All leases of the ground lie in this month, and so overlap a new one that takes all of it."""


class Quiet:
    """Tells nobody."""

    def notify(self, notification: str, lease: Lease) -> None:
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
        engine = connect(url)
        upgrade(engine)
        try:
            yield engine
        finally:
            engine.dispose()
            if kind != "sqlite":
                with admin.connect() as connection:
                    connection.exec_driver_sql(f"DROP DATABASE {name}")


class Ground:
    """A service on a database, with a cloud of some size."""

    def __init__(
        self,
        engine: Engine,
        hosts: int,
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
        state = of_size(hosts)
        state.aggregates[1].hosts = [host.service_name for host in state.hosts.values()]
        self.simulated = SimulatedCloud(
            MemoryKeeper(state), clock=self.clock, faults=faults, deletion_takes=deletion_takes
        )
        cloud = self.simulated.cloud
        host_settings = HostSettings()
        registration = HostRegistration(cloud, host_settings.pools)
        self.manager = ManagerService(
            self.store,
            [each.make(cloud, host_settings) for each in KINDS.values()],
            registration,
            AddressRegistration(cloud.network),
            Quiet(),
            self.clock,
            settings or Settings(),
        )
        self.app = create_app(self.manager, identity=StandaloneIdentity())
        self.http = self.app.test_client()
        self._register(registration)
        self.filled = 0

    def _register(self, registration: HostRegistration) -> None:
        """Register all hosts, past the service: that takes a request each and is not what is measured."""
        now = datetime.now(UTC)
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            hypervisors = self.simulated.hypervisors()
            facts = registration.facts_of(hypervisors)
            for hypervisor in hypervisors:
                resource_queries.insert(
                    connection,
                    ResourceKind.HOST,
                    external_id=hypervisor.id,
                    name=hypervisor.hypervisor_hostname,
                    facts=facts[hypervisor.hypervisor_hostname],
                    capabilities={},
                    at=now,
                )
                self.simulated.create_reservation_provider(hypervisor.hypervisor_hostname)
            resource_queries.raise_version(connection, ResourceKind.HOST)
        self.ids = sorted(r.id for r in self.store.resources(ResourceKind.HOST))
        # A tenth of the hosts stays free: there has to be something to find.
        self.busy = self.ids[: len(self.ids) - max(1, len(self.ids) // 10)]

    def fill(self, count: int, *, most: int) -> None:
        """Bring the calendar to ``count`` leases with something of one host each, side by side in the month."""
        slot = MONTH / -(-most // len(self.busy))
        for begin in range(self.filled, count, 5000):
            self._insert(range(begin, min(begin + 5000, count)), slot)
        self.filled = max(self.filled, count)
        with self.engine.execution_options(**{WRITES: True}, isolation_level="AUTOCOMMIT").connect() as connection:
            if self.engine.dialect.name == "postgresql":
                connection.exec_driver_sql("ANALYZE")

    def _insert(self, numbers: range, slot: timedelta) -> None:
        rows: dict[sa.Table, list[dict[str, object]]] = {leases: [], reservations: [], events: [], allocations: []}
        now = datetime.now(UTC)
        unit = None if self.kind.unit is None else dict(self.kind.unit.items)
        for number in numbers:
            start = (BEGIN + slot * (number // len(self.busy))).replace(microsecond=0)
            end = max((start + slot).replace(microsecond=0), start + timedelta(seconds=1))
            lease_id, reservation_id = str(uuid.uuid4()), str(uuid.uuid4())
            stamps = {"created_at": now, "updated_at": None}
            rows[leases].append(
                {"id": lease_id, "name": f"lease {number}", "user_id": "u", "project_id": "p", "trust_id": None}
                | {"starts_at": start, "ends_at": end, "status": "PENDING", "degraded": False, "revision": 0}
                | {"deleted_at": None, **stamps}
            )
            rows[reservations].append(
                {"id": reservation_id, "lease_id": lease_id, "position": 0, "resource_type": self.kind.resource_type}
                | {"resource_id": str(uuid.uuid4()), "status": "pending", "missing_resources": False}
                | {
                    "resources_changed": False,
                    "parameters": {**self.kind.filled, "before_end": "default"},
                    "artefacts": {},
                }
                | stamps
            )
            times = (("start_lease", start), ("end_lease", end), ("before_end_lease", start))
            for position, (kind, time) in enumerate(times):
                rows[events].append(
                    {"id": str(uuid.uuid4()), "lease_id": lease_id, "position": position, "event_type": kind}
                    | {"time": time, "status": "UNDONE", "due_at": time, "claimed_by": None, "claimed_at": None}
                    | {"attempts": 0, "reason": None, "memo": None, **stamps}
                )
            rows[allocations].append(
                {"kind": "host", "resource_id": self.busy[number % len(self.busy)], "lease_id": lease_id}
                | {"reservation_id": reservation_id, "starts_at": start, "ends_at": end, "blocks_until": end}
                | {"units": self.kind.units, "unit": unit, "released_at": None}
            )
        with self.engine.execution_options(**{WRITES: True}).begin() as connection:
            for table, values in rows.items():
                connection.execute(table.insert(), values)
