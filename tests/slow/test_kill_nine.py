# SPDX-License-Identifier: Apache-2.0
"""Two managers on one PostgreSQL, one of them killed again and again, at any moment of anything."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated import Durations, Faults, FileStorage, of_size
from blazar.clouds.simulated.volume_state import PoolState
from blazar.enforcement import Enforcement, Occasion
from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.enforcement.external import CHECK_CREATE, CHECK_UPDATE, ExternalServiceFilter, StaticToken
from blazar.enforcement.limits import MaxUnitsFilter
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EndReason, EventStatus, EventType, LeaseKind, LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, HOST, NETWORK, VOLUME
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.resources.hosts.options import HostSettings
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import events
from blazar.store.store import Store
from tests.conformance.sites import PUBLIC_KEY
from tests.enforcement.conftest import TOKEN, Service, example
from tests.oracle import check_at_rest
from tests.people import PeopledCloud
from tests.uses import TYPES_WITH_USES, OutOfOrder, using
from tests.world import (
    RecordingNotifier,
    a_host,
    a_network,
    address_request,
    addresses,
    device_request,
    devices,
    flavored,
    host_request,
    instances,
    kinds_of,
    segment_request,
    servers,
    stacks,
    thing_request,
    things,
    units,
    volumes,
)

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("BLAZAR_KILLS", "220"))
HOSTS = 16
LIMIT = 11
"""Hosts that all of them together may have at a time, so that servers always find room on the others."""
ADDRESSES = range(10, 26)
SEGMENTS = range(101, 113)
OFFERED = tuple(
    Flavor(name, f"c1.{name}", vcpus, 2048, 10, extra_specs={"quota:cpu_shares": "100"}, public=True)
    for name, vcpus in (("small", 1), ("large", 4))
)

ROOMS: tuple[Callable[[random.Random], ReservationRequest], ...] = (
    lambda dice: a_host(1, dice.randint(1, 2), before_end="snapshot"),
    lambda dice: instances(
        dice.randint(1, 3),
        vcpus=dice.randint(1, 6),
        affinity=dice.choice((None, True, False)),
        before_end=dice.choice(("snapshot", "none")),
    ),
    lambda dice: flavored(
        dice.randint(1, 3),
        dice.choice(OFFERED).id,
        affinity=dice.choice((None, True, False)),
        before_end=dice.choice(("snapshot", "none")),
    ),
    lambda dice: addresses(dice.randint(1, 3)),
    lambda dice: a_network(network_description="work"),
    lambda dice: units(dice.randint(1, 3)) if dice.random() < 0.5 else things(1, dice.randint(1, 2)),
    lambda dice: devices(1, dice.randint(1, 2)),
    lambda dice: volumes(dice.randint(1, 2), size=dice.choice((2, 4)), before_end=dice.choice(("snapshot", "none"))),
    lambda dice: volumes(dice.randint(1, 2), size=dice.choice((2, 4)), mode="quota"),
    lambda dice: servers(
        dice.randint(1, 2),
        vcpus=dice.randint(1, 4),
        affinity=dice.choice((None, True, False)),
        before_end=dice.choice(("snapshot", "none")),
        public_key=dice.choice((None, PUBLIC_KEY)),
    ),
    lambda dice: stacks(
        *(dice.choice(OFFERED).id for _ in range(dice.randint(1, 2))),
        disks=dice.randint(0, 1),
        outside=dice.randint(0, 1),
        before_end=dice.choice(("snapshot", "none")),
    ),
)
"""What users ask for, type by type."""

GROWTH: dict[str, Callable[[random.Random], dict[str, object]]] = {
    "physical:host": lambda dice: {"min": 2, "max": 3},
    "virtual:instance": lambda dice: {"amount": dice.randint(1, 5)},
    "flavor:instance": lambda dice: {"amount": dice.randint(1, 5)},
    "virtual:floatingip": lambda dice: {"amount": dice.randint(1, 4)},
    "network": lambda dice: {"before_end": dice.choice(("none", "default"))},
    "device": lambda dice: {"max": dice.randint(1, 3)},
    "virtual:volume": lambda dice: {"amount": dice.randint(1, 4)} if dice.random() < 0.5 else {"size": 5},
    "virtual:server": lambda dice: {"amount": dice.randint(1, 4)},
    "virtual:stack": lambda dice: {},
    "generic": lambda dice: {"amount": dice.randint(1, 4)} if dice.random() < 0.5 else {"max": dice.randint(1, 3)},
}
"""What users change, by type."""

SETTINGS = Settings(
    claim_ttl=timedelta(seconds=1),
    first_retry=timedelta(milliseconds=200),
    longest_retry=timedelta(seconds=1),
    longest_sleep=timedelta(milliseconds=300),
    outbox_claim=timedelta(seconds=1),
    outbox_settling=timedelta(seconds=2),
    immediate_timeout=timedelta(seconds=8),
    starters=4,
    enders=4,
)


def simulated(cloud_file: Path) -> PeopledCloud:
    faults = Faults(latency=timedelta(milliseconds=8))
    slow = timedelta(milliseconds=150)
    storage = FileStorage(cloud_file, of_size(HOSTS))
    return PeopledCloud(
        storage,
        clock=SystemClock(),
        faults=faults,
        durations=Durations(deletion=slow, snapshot=slow, boot=slow, stack=slow),
    )


def asking(service_url: str) -> ExternalServiceFilter:
    """The filter that asks and tells the example service, which nobody kills, over HTTP."""
    names = (CHECK_CREATE, CHECK_UPDATE, *map(str, Occasion))
    return ExternalServiceFilter(
        {name: service_url + name for name in names}, credential=StaticToken("X-Auth-Token", TOKEN)
    )


def a_manager(url: str, cloud_file: Path, service_url: str) -> ManagerService:
    cloud = simulated(cloud_file).cloud
    settings = HostSettings()
    return ManagerService(
        Store(make_engine(url, pool_size=5)),
        SystemClock(),
        SETTINGS,
        Plugins(
            tuple(make(cloud, settings) for make in TYPES_WITH_USES),
            kinds_of(cloud, settings),
            RecordingNotifier(),
            Enforcement(
                [asking(service_url), MaxUnitsFilter(LIMIT), ResourceHoursFilter({"host": 10**6}, parse_period("30"))]
            ),
        ),
    )


def manage(url: str, cloud_file: Path, service_url: str, seed: int, busy: Path) -> None:
    """Be a manager, and at the same time two users who create, change, end and delete leases."""
    manager = a_manager(url, cloud_file, service_url)
    manager.start()
    users = [
        threading.Thread(target=use, args=(manager, simulated(cloud_file), random.Random(seed + n), busy))
        for n in range(2)
    ]
    for user in users:
        user.start()
    for user in users:
        user.join()
    while True:
        time.sleep(1)


def use(manager: ManagerService, cloud: PeopledCloud, dice: random.Random, busy: Path) -> None:
    while busy.exists():
        with contextlib.suppress(BlazarError):
            one_wish(manager, cloud, dice)


def one_wish(manager: ManagerService, cloud: PeopledCloud, dice: random.Random) -> None:
    leases = [lease for lease in manager.leases.all(None) if lease.status in (LeaseStatus.ACTIVE, LeaseStatus.PENDING)]
    active = [lease for lease in leases if lease.status is LeaseStatus.ACTIVE]
    wish = dice.random()
    if wish < 0.30 or not leases:
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        # Shorter than an hour, so that the warning, with snapshots, comes at the start.
        end = now + timedelta(minutes=dice.randint(2, 50))
        rooms = tuple(dice.choice(ROOMS)(dice) for _ in range(dice.choice((1, 1, 2, 3))))
        kind = dice.choice((LeaseKind.SCHEDULED, LeaseKind.SCHEDULED, LeaseKind.IMMEDIATE))
        asked = LeaseRequest("a lease", "curie", "physics", NOW, end, reservations=using(rooms), kind=kind)
        manager.leases.create(asked)
    elif wish < 0.42 and active:
        # The servers of a stack are its own.
        for reservation in (r for r in dice.choice(active).reservations if r.parent is None):
            make_use_of(cloud, reservation)
    elif wish < 0.60 and active:
        lease = dice.choice(active)
        growth = tuple(
            ReservationChange(r.id, GROWTH[r.resource_type](dice)) for r in lease.reservations if r.parent is None
        )
        manager.leases.update(lease.id, LeaseChange(reservations=growth))
    elif wish < 0.92 and active:
        manager.leases.update(dice.choice(active).id, LeaseChange(end=NOW))
    else:
        manager.leases.delete(dice.choice(leases).id)


def make_use_of(cloud: PeopledCloud, reservation: Reservation) -> None:
    """Boot servers into a reservation, as many as there is a host or one slot for; attach one of its
    addresses, build on its network.
    """
    match reservation.resource_type:
        case "physical:host":
            for aggregate in cloud.compute.aggregates():
                for host in aggregate.hosts if aggregate.name == reservation.id else ():
                    cloud.users.boot_server("work", project_id="physics", user_id="curie", host=host)
        case "virtual:floatingip":
            for found in cloud.network.floating_ips(tag=reservation_tag(reservation.id))[:1]:
                cloud.users.attach(found.id)
        case "network":
            for network in cloud.network_users.calls.segment_networks(tag=reservation_tag(reservation.id)):
                cloud.network_users.port(network.id, "compute:nova")
                cloud.network_users.router(network.id)
        case "generic" | "device" | "virtual:volume" | "virtual:server" | "virtual:stack":
            pass
        case _:
            cloud.users.boot_reserved(reservation.id, project_id="physics", user_id="curie")


@pytest.fixture
def service() -> Iterator[Service]:
    """The example service, which takes a moment for everything."""
    made = Service(example.Books(10**9))
    made.manners = [lambda handler, path: bool(time.sleep(0.01))]
    yield made
    made.stop()


def test_after_any_crash_every_lease_gets_where_it_should_and_nothing_is_lost(postgresql_url, tmp_path, service):
    cloud_file = tmp_path / "cloud.json"
    engine = make_engine(postgresql_url)
    upgrade(engine)
    first = a_manager(postgresql_url, cloud_file, service.url)
    for number in range(1, HOSTS + 1):
        first.resources.register(HOST, host_request(name=f"node-{number}", id=None, capabilities={}))
    for number in ADDRESSES:
        first.resources.register(FLOATING_IP, address_request("public", f"203.0.113.{number}"))
    for number in SEGMENTS:
        first.resources.register(NETWORK, segment_request(number))
    for number in range(8):
        first.resources.register(GENERIC, thing_request(f"thing-{number}", capacity=1 + number % 2 * 5))
    for number in range(3):
        first.resources.register(DEVICE, device_request(f"edge-{number}"))
    for number in (1, 2):
        pool = PoolState(f"node@disks#{number}", "disks", str(number), 20)
        simulated(cloud_file).volume_users.add_pool(pool, type_name=f"disks-{number}")
        given = {"pool": pool.name, "volume_type": f"disks-{number}", "gigabytes": 20}
        first.resources.register(VOLUME, Registration(given))
    for flavor in OFFERED:
        simulated(cloud_file).operators.offer_flavor(flavor)
    engine.dispose()
    context = multiprocessing.get_context("fork")
    # A file and no lock: a process that is killed while it has a lock keeps it.
    busy = tmp_path / "busy"
    busy.touch()
    seeds = iter(range(1000, 100000, 10))

    def born() -> multiprocessing.Process:
        arguments = (postgresql_url, cloud_file, service.url, next(seeds), busy)
        process = context.Process(target=manage, args=arguments, daemon=True)
        process.start()
        return process

    managers = [born(), born()]
    dice = random.Random(7)
    caught: Counter[str] = Counter()
    try:
        for _ in range(KILLS):
            time.sleep(dice.uniform(0.1, 0.5))
            victim = managers.pop(dice.randrange(2))
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
            caught += in_hand(engine, victim.pid)
            managers.append(born())
        busy.unlink()
        leases = settled(Store(engine))
    finally:
        for process in managers:
            process.kill()
            process.join()
    print(f"{KILLS} kills; in the dead managers' hands: {dict(caught)}; {len(leases)} leases at the end")
    # What is due together is written together: fewer moments in which an event is in hand.
    assert sum(caught.values()) >= KILLS / 6
    check(Store(engine), simulated(cloud_file), leases)
    check_told(Store(engine), service, leases)
    engine.dispose()


def in_hand(engine: sa.Engine, pid: int) -> Counter[str]:
    """Return what kinds of events the dead had claimed."""
    with engine.connect() as connection:
        rows = connection.execute(
            sa.select(events.c.event_type).where(events.c.claimed_by.like(f"%:{pid}:%"), events.c.due_at.is_not(None))
        ).all()
    return Counter(row[0] for row in rows)


def settled(store: Store) -> tuple[Lease, ...]:
    """Wait until nothing is going on any more, and return all leases there are."""
    stable = {LeaseStatus.ACTIVE, LeaseStatus.PENDING, LeaseStatus.TERMINATED, LeaseStatus.ERROR}
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        leases = store.leases.of_project(None)
        due = store.events.next_due()
        # Longer than a claim lasts: nothing is in anybody's hands, and nothing begins while the managers are stopped.
        quiet = due is None or due > datetime.now(UTC) + 3 * SETTINGS.claim_ttl
        # What has been begun, as images, may be looked at only after a while.
        begun = [e for lease in leases for e in lease.events if e.status is EventStatus.IN_PROGRESS]
        told = store.outbox.next_due() is None
        if quiet and told and not begun and all(lease.status in stable for lease in leases):
            return leases
        time.sleep(0.2)
    raise AssertionError([(lease.id, lease.status, lease.events) for lease in leases if lease.status not in stable])


def check(store: Store, cloud: PeopledCloud, leases: tuple[Lease, ...]) -> None:
    for lease in leases:
        if lease.status is LeaseStatus.TERMINATED:
            assert lease.event(EventType.END).status is EventStatus.DONE
        assert not any(OutOfOrder.__name__ in (event.reason or "") for event in lease.events)
    for lease in (*leases, *store.leases.load_past()):
        # Handed over, or refused, or deleted before that.
        kept = store.leases.one(lease.id, including_deleted=True)
        assert not kept.is_undecided or kept.end_reason in (EndReason.DELETED, EndReason.REFUSED)
        assert kept.end_reason is not EndReason.REFUSED or kept.deleted_at is not None
    check_at_rest(store, cloud, now=datetime.now(UTC), offered=OFFERED)


def check_told(store: Store, service: Service, leases: tuple[Lease, ...]) -> None:
    """What was granted was told of once, and so was its end, and nothing else; after a death perhaps once more."""
    heard = [each for each in service.got if not each[0].startswith("check-")]
    lines = [(occasion, body["lease_id"], headers["X-OpenStack-Request-ID"]) for occasion, body, headers in heard]
    news = set(lines)
    told = Counter((occasion, lease_id) for occasion, lease_id, _ in news)
    ended = {lease.id for lease in (*leases, *store.leases.load_past())} - {
        lease.id for lease in leases if lease.status is not LeaseStatus.TERMINATED
    }
    for lease in leases:
        assert told["commit-create", lease.id] == 1
        assert told["on-end", lease.id] == (lease.id in ended)
    for lease_id in ended:
        # Who died while it told of a new lease may not have been heard, and then its end is told all the same.
        assert told["commit-create", lease_id] <= told["on-end", lease_id] <= 1
    print(f"{len(news)} news, {len(lines) - len(news)} of them told again after a death")
    assert len(lines) - len(news) <= KILLS
    now = [lease for lease in leases if lease.status is not LeaseStatus.TERMINATED]
    held = [a for lease in now for a in store.calendar.of_lease(lease.id)]
    hosts = {resource.id for resource in store.resources.of_kind(HOST)}
    assert sum(a.per_instance is None and a.resource_id in hosts for a in held) <= LIMIT
