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
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from blazar.clouds.scope import current
from blazar.clouds.simulated import Faults, FileKeeper, SimulatedCloud, of_size
from blazar.enforcement import Enforcement, News, Occasion, Question
from blazar.enforcement.limits import MaxUnitsFilter
from blazar.manager.service import ManagerService
from blazar.manager.settings import Settings
from blazar.model.clock import SystemClock
from blazar.model.errors import BlazarError
from blazar.model.lease import EventStatus, EventType, Lease, LeaseStatus
from blazar.model.requests import NOW, HostRequest, LeaseChange, LeaseRequest, ReservationChange
from blazar.resources.physical_host import HostSettings, PhysicalHost
from blazar.resources.registration import HostRegistration
from blazar.store.engine import connect
from blazar.store.migrate import upgrade
from blazar.store.store import Store
from blazar.store.tables import events
from tests.world import RecordingNotifier, a_host

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("BLAZAR_KILLS", "220"))
HOSTS = 16
LIMIT = 13
"""Hosts that all of them together may have at a time."""

SETTINGS = Settings(
    claim_ttl=timedelta(seconds=1),
    first_retry=timedelta(milliseconds=200),
    longest_retry=timedelta(seconds=1),
    longest_sleep=timedelta(milliseconds=300),
    notice_claim=timedelta(seconds=1),
    starters=4,
    enders=4,
)


class Ledger:
    """A filter that writes down what it is told, as a service outside would that nobody kills."""

    needs_use = False
    hears = frozenset(Occasion)

    def __init__(self, path: Path) -> None:
        self._path = path

    def check(self, question: Question) -> None:
        time.sleep(0.01)

    def tell(self, news: News) -> None:
        time.sleep(0.01)
        with self._path.open("a", encoding="utf-8") as book:
            book.write(f"{current().request_id} {news.occasion} {news.view.lease.id}\n")


def simulated(cloud_file: Path) -> SimulatedCloud:
    faults = Faults(latency=timedelta(milliseconds=8))
    slow = timedelta(milliseconds=150)
    keeper = FileKeeper(cloud_file, of_size(HOSTS))
    return SimulatedCloud(keeper, clock=SystemClock(), faults=faults, deletion_takes=slow, snapshot_takes=slow)


def a_manager(url: str, cloud_file: Path) -> ManagerService:
    cloud = simulated(cloud_file).cloud
    settings = HostSettings()
    return ManagerService(
        Store(connect(url, pool_size=5)),
        [PhysicalHost(cloud, settings)],
        HostRegistration(cloud, settings.pools),
        RecordingNotifier(),
        SystemClock(),
        SETTINGS,
        Enforcement([Ledger(ledger(cloud_file)), MaxUnitsFilter(LIMIT)]),
    )


def ledger(cloud_file: Path) -> Path:
    return cloud_file.with_name("ledger")


def manage(url: str, cloud_file: Path, seed: int, busy: Path) -> None:
    """Be a manager, and at the same time two users who create, change, end and delete leases."""
    manager = a_manager(url, cloud_file)
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


def use(manager: ManagerService, cloud: SimulatedCloud, dice: random.Random, busy: Path) -> None:
    while busy.exists():
        with contextlib.suppress(BlazarError):
            one_wish(manager, cloud, dice)


def one_wish(manager: ManagerService, cloud: SimulatedCloud, dice: random.Random) -> None:
    leases = [lease for lease in manager.leases(None) if lease.status in (LeaseStatus.ACTIVE, LeaseStatus.PENDING)]
    active = [lease for lease in leases if lease.status is LeaseStatus.ACTIVE]
    wish = dice.random()
    if wish < 0.30 or not leases:
        now = datetime.now(UTC).replace(second=0, microsecond=0)
        # Shorter than an hour, so that the warning, with snapshots, comes at the start.
        end = now + timedelta(minutes=dice.randint(2, 50))
        room = a_host(1, dice.randint(1, 2), before_end="snapshot")
        manager.create_lease(LeaseRequest("a lease", "curie", "physics", NOW, end, reservations=(room,)))
    elif wish < 0.42 and active:
        hosts = [h for h in cloud.aggregates() if h.name == active[0].reservations[0].id]
        for host in hosts[0].hosts if hosts else ():
            cloud.boot_server("work", project_id="physics", user_id="curie", host=host)
    elif wish < 0.60 and active:
        lease = dice.choice(active)
        growth = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 3})
        manager.update_lease(lease.id, LeaseChange(reservations=(growth,)))
    elif wish < 0.92 and active:
        manager.update_lease(dice.choice(active).id, LeaseChange(end=NOW))
    else:
        manager.delete_lease(dice.choice(leases).id)


def test_after_any_crash_every_lease_gets_where_it_should_and_no_host_is_lost(postgresql_url, tmp_path):
    cloud_file = tmp_path / "cloud.json"
    engine = connect(postgresql_url)
    upgrade(engine)
    first = a_manager(postgresql_url, cloud_file)
    for number in range(1, HOSTS + 1):
        first.create_host(HostRequest(name=f"node-{number}", id=None, capabilities={}))
    engine.dispose()
    context = multiprocessing.get_context("fork")
    # A file and no lock: whoever is killed with a lock in hand keeps it.
    busy = tmp_path / "busy"
    busy.touch()
    seeds = iter(range(1000, 100000, 10))

    def born() -> multiprocessing.Process:
        process = context.Process(target=manage, args=(postgresql_url, cloud_file, next(seeds), busy), daemon=True)
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
    assert sum(caught.values()) >= KILLS / 4
    check(Store(engine), simulated(cloud_file), leases)
    check_told(Store(engine), ledger(cloud_file), leases)
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
        leases = store.leases(None)
        due = store.next_due()
        # Longer than a claim lasts: nothing is in anybody's hands, and nothing begins while the managers are stopped.
        quiet = due is None or due > datetime.now(UTC) + 3 * SETTINGS.claim_ttl
        # What has been begun, as images, may be looked at only after a while.
        begun = [e for lease in leases for e in lease.events if e.status is EventStatus.IN_PROGRESS]
        told = store.next_notice() is None
        if quiet and told and not begun and all(lease.status in stable for lease in leases):
            return leases
        time.sleep(0.2)
    raise AssertionError([(lease.id, lease.status, lease.events) for lease in leases if lease.status not in stable])


def check(store: Store, cloud: SimulatedCloud, leases: tuple[Lease, ...]) -> None:
    everything = [store.lease(lease.id, including_deleted=True) for lease in (*leases, *store.past_leases())]
    assert not [e for lease in everything for e in lease.events if e.status is EventStatus.IN_PROGRESS]
    assert {lease.status for lease in leases} <= {LeaseStatus.ACTIVE, LeaseStatus.PENDING, LeaseStatus.TERMINATED}
    for lease in leases:
        if lease.status is LeaseStatus.TERMINATED:
            assert lease.event(EventType.END).status is EventStatus.DONE
    aggregates = {a.name: a for a in cloud.aggregates()}
    assert len(aggregates) == len(cloud.aggregates()), "an aggregate is there twice"
    held: dict[str, str] = {}
    for lease in leases:
        if lease.status not in (LeaseStatus.ACTIVE, LeaseStatus.PENDING):
            continue
        promised = store.resources_by_id({a.resource_id for a in store.lease_allocations(lease.id)}).values()
        inside = set(aggregates.pop(lease.reservations[0].id).hosts)
        if lease.status is LeaseStatus.ACTIVE:
            assert inside == {host.name for host in promised}
            assert not inside & held.keys(), "a host is in two reservations"
            held |= dict.fromkeys(inside, lease.id)
    assert set(aggregates) == {"freepool", "az-1", "az-2"}, "an aggregate is left over"
    everybody = {f"node-{n}" for n in range(1, HOSTS + 1)}
    assert set(aggregates["freepool"].hosts) == everybody - held.keys(), "a host is lost"
    assert set(aggregates["az-1"].hosts) | set(aggregates["az-2"].hosts) == everybody - held.keys()
    working = {server.host for server in cloud.list_servers()}
    assert working <= held.keys()


def check_told(store: Store, ledger: Path, leases: tuple[Lease, ...]) -> None:
    """What was granted was told of once, and so was its end, and nothing else; after a death perhaps once more."""
    lines = [line.split() for line in ledger.read_text(encoding="utf-8").splitlines()]
    news = {(occasion, lease_id, request_id) for request_id, occasion, lease_id in lines}
    told = Counter((occasion, lease_id) for occasion, lease_id, _ in news)
    ended = {lease.id for lease in (*leases, *store.past_leases())} - {
        lease.id for lease in leases if lease.status is not LeaseStatus.TERMINATED
    }
    for lease in leases:
        assert told["commit-create", lease.id] == 1
        assert told["on-end", lease.id] == (lease.id in ended)
    for lease_id in ended:
        assert told["commit-create", lease_id] == told["on-end", lease_id] <= 1
    print(f"{len(news)} news, {len(lines) - len(news)} of them told again after a death")
    assert len(lines) - len(news) <= KILLS
    now = [lease for lease in leases if lease.status is not LeaseStatus.TERMINATED]
    assert sum(len(store.lease_allocations(lease.id)) for lease in now) <= LIMIT
