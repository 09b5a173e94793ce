# SPDX-License-Identifier: Apache-2.0
"""Two managers that plan the waiting list, book series, operate on leases and move them, and die at their writes.

``test_kill_nine`` kills at any moment of the life of leases of all types. Here hosts alone are reserved, and a manager
is killed right before or after a write of what plans: that is where a turn, a promise or an occurrence could be lost.
"""

from __future__ import annotations

import contextlib
import itertools
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

from blazar.clouds.simulated import Durations, Faults, FileStorage, of_size
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import NOW, Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.leases.states import EventStatus, LeaseKind, LeaseStatus
from blazar.model.maintenance.windows import MaintenanceChange, MaintenanceRequest
from blazar.model.resources.resource import HOST
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest, SwapRequest
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.type import PhysicalHost
from blazar.resources.instances.virtual import VirtualInstance
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store
from tests.conftest import fresh_database
from tests.manager.surgery.steps import OPERATOR
from tests.observed import ObservedStore, kill_at_one_of
from tests.oracle import check_at_rest
from tests.people import PeopledCloud
from tests.soak.turns import all_series, check_maintenance, check_series, check_turns, forgotten, give_back, windows
from tests.world import RecordingNotifier, a_host, a_series, host_request, instances, kinds_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("BLAZAR_KILLS", "220")) // 5
HOSTS = 6
PATIENCE = 120
"""Seconds within which everything comes to rest, also on a busy machine; usually ten."""
BY_THEMSELVES = 3
"""How many managers kill themselves at least."""
HURRY = 1.3
"""Seconds that one has to do so when as many have; until then it has more, as a busy machine gets nowhere in them."""

POINTS = (
    *("waiting_list.record_plan",) * 3,
    *("bookings.commit",) * 6,
    "leases.save",
    "series.add",
    "series_work.insert_occurrences",
    "series_work.book_occurrences",
    "series_work.activate_leases",
    "series.begin_deletion",
    "series.exchange",
    "maintenances.add",
    "maintenances.change",
    "maintenances.advance",
    "maintenance_plans.save_plan",
    "maintenances.release",
)
"""Writes at which a manager is killed."""

WISHES = (
    *("wait",) * 6,
    *("end",) * 4,
    *("swap", "split", "cut", "merge", "merge"),
    *("delete", "series", "series", "change", "drop", "window", "close"),
)

SETTINGS = Settings(
    before_end_lead=timedelta(0),
    claim_ttl=timedelta(seconds=1),
    first_retry=timedelta(milliseconds=200),
    longest_retry=timedelta(seconds=1),
    longest_sleep=timedelta(milliseconds=300),
    max_waiting=12,
    max_series=3,
    starters=4,
    enders=4,
)


def simulated(cloud_file: Path) -> PeopledCloud:
    storage = FileStorage(cloud_file, of_size(HOSTS))
    short = Durations(deletion=timedelta(milliseconds=50))
    return PeopledCloud(storage, clock=SystemClock(), faults=Faults(latency=timedelta(milliseconds=4)), durations=short)


def a_manager(url: str, cloud_file: Path, seed: int | None = None) -> ManagerService:
    """Return a manager, which with a ``seed`` kills itself at one of the points."""
    cloud, settings = simulated(cloud_file).cloud, HostSettings()
    store = Store(make_engine(url, pool_size=8))
    types = tuple(make(cloud, settings) for make in (PhysicalHost, VirtualInstance))
    plugins = Plugins(types, {HOST: kinds_of(cloud, settings)[HOST]}, RecordingNotifier())
    observed = (
        store if seed is None else ObservedStore(store, kill_at_one_of(POINTS, (1, 1, 2, 3), random.Random(seed)))
    )
    return ManagerService(observed, SystemClock(), SETTINGS, plugins)  # type: ignore[arg-type]


def manage(url: str, cloud_file: Path, seed: int, busy: Path) -> None:
    """Be a manager that dies, and at the same time two users and an operator."""
    manager = a_manager(url, cloud_file, seed if busy.exists() else None)
    manager.start()
    users = [threading.Thread(target=use, args=(manager, random.Random(f"{seed}:{n}"), busy)) for n in range(3)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    while True:
        time.sleep(1)


def use(manager: ManagerService, dice: random.Random, busy: Path) -> None:
    while busy.exists():
        time.sleep(dice.uniform(0, 0.05))
        with contextlib.suppress(BlazarError, IndexError):
            one_wish(manager, dice)


def one_wish(manager: ManagerService, dice: random.Random) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    leases = manager.leases.all(None)
    match dice.choice(WISHES):
        case "wait":
            least = dice.randint(1, 4)
            asked = a_host(least, dice.randint(least, HOSTS)) if dice.random() < 0.7 else instances(3, vcpus=4)
            wanted = LeaseRequest(
                f"lease {dice.random()}",
                "curie",
                dice.choice(("physics", "chemistry")),
                NOW,
                now + timedelta(seconds=dice.randint(3, 20)),
                reservations=(asked,),
                kind=dice.choice((LeaseKind.SCHEDULED, LeaseKind.SCHEDULED, LeaseKind.RETRIES)),
                wait_until=now + timedelta(seconds=dice.randint(5, 60)),
                extend_until=dice.choice((None, None, Duration(seconds=10))),
            )
            manager.leases.create(wanted)
        case "end":
            active = [lease for lease in leases if lease.status is LeaseStatus.ACTIVE]
            manager.leases.update(dice.choice(active).id, LeaseChange(end=NOW))
        case "swap" | "split" | "cut" | "merge" as operation:
            live = [lease for lease in leases if lease.status in (LeaseStatus.PENDING, LeaseStatus.ACTIVE)]
            operate(manager, dice, operation, live)
        case "delete":
            manager.leases.delete(dice.choice(leases).id)
        case "series":
            rule = dice.choice(("FREQ=DAILY;COUNT=4", "FREQ=WEEKLY;COUNT=3", "FREQ=MONTHLY"))
            begins = now.replace(tzinfo=None) + timedelta(hours=dice.randint(1, 9))
            fit = Fit.AS_MANY if rule == "FREQ=MONTHLY" else dice.choice((Fit.ALL, Fit.AS_MANY))
            length = dice.choice((1, 6)) * timedelta(hours=1)
            manager.series.create(a_series(a_host(dice.randint(1, 3)), rule=rule, start=begins, fit=fit, length=length))
        case "change":
            length = dice.choice((2, 5)) * timedelta(hours=1)
            found = manager.series.one(dice.choice(all_series(manager.series)).id)
            since = dice.choice((None, dice.choice(found.occurrences).recurrence_id))
            manager.series.change(found.series.id, SeriesChange(since=since, length=length, fit=Fit.AS_MANY))
        case "drop":
            manager.series.delete(dice.choice(all_series(manager.series)).id)
        case "window":
            begin = now + dice.choice((timedelta(seconds=1), timedelta(hours=dice.randint(1, 30))))
            hosts = dice.sample([host.external_id for host in manager.resources.all(HOST)], 2)
            end = begin + dice.choice((timedelta(seconds=5), timedelta(hours=8)))
            asked_for = MaintenanceRequest("firmware", begin, end, hosts=tuple(hosts), disable_service=True)
            manager.maintenances.create(asked_for)
        case "close":
            window = dice.choice(windows(manager.maintenances))
            match dice.choice(("end", "delete", "change")):
                case "end":
                    manager.maintenances.end(window.id)
                case "delete":
                    manager.maintenances.delete(window.id)
                case _:
                    manager.maintenances.change(window.id, MaintenanceChange(end=now + timedelta(seconds=4)))


def operate(manager: ManagerService, dice: random.Random, operation: str, leases: list[Lease]) -> None:
    lease = dice.choice(leases)
    reservation = dice.choice(lease.reservations).id
    match operation:
        case "swap":
            held = manager.leases.details(lease.id).held
            manager.surgery.swap(lease.id, SwapRequest(reservation, dice.choice(held).name), OPERATOR)
        case "split":
            manager.surgery.split(lease.id, SplitRequest((PartRequest(reservation, count=1),)), OPERATOR)
        case "cut":
            middle = lease.window.start + lease.window.duration / 2
            manager.surgery.split(lease.id, SplitRequest(at=middle.replace(microsecond=0)), OPERATOR)
        case _:
            same = [each for each in leases if each.project_id == lease.project_id and each.id != lease.id]
            near = [o for o in same if o.window == lease.window or o.window.start == lease.window.end]
            manager.surgery.merge(lease.id, MergeRequest(dice.choice(near or same).id), OPERATOR)


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    yield from fresh_database(request.param, tmp_path)


def test_wherever_a_manager_is_killed_nobody_is_forgotten_or_served_twice(url, tmp_path):
    cloud_file = tmp_path / "cloud.json"
    engine = make_engine(url)
    upgrade(engine)
    first = a_manager(url, cloud_file)
    for number in range(1, HOSTS + 1):
        first.resources.register(HOST, host_request(name=f"node-{number}", id=None, capabilities={}))
    engine.dispose()
    context = multiprocessing.get_context("fork")
    busy = tmp_path / "busy"
    busy.touch()
    seeds = itertools.count(1000)

    def born() -> multiprocessing.process.BaseProcess:
        process = context.Process(target=manage, args=(url, cloud_file, next(seeds), busy), daemon=True)
        process.start()
        return process

    managers = [born(), born()]
    how: Counter[str] = Counter()
    try:
        for _ in range(KILLS):
            victim = next_to_die(managers, HURRY if how["by itself"] >= BY_THEMSELVES else PATIENCE / 4)
            how["by itself" if not victim.is_alive() else "later"] += 1
            victim.kill()
            victim.join()
            assert victim.exitcode == -signal.SIGKILL
            managers.remove(victim)
            managers.append(born())
        busy.unlink()
        for process in managers:
            process.kill()
            process.join()
        managers = [born(), born()]
        store, cloud = Store(engine), simulated(cloud_file)
        until_it_holds(lambda: check_rest(store, cloud))
        kinds = Counter(str(lease.kind) for lease in store.leases.load_past())
        until_it_holds(lambda: served(first, store))
        until_it_holds(lambda: check_rest(store, cloud))
    finally:
        for process in managers:
            process.kill()
            process.join()
    print(f"{dict(how)}; {dict(kinds)}; {len(windows(store.maintenances))} windows")
    assert how["by itself"] >= BY_THEMSELVES
    engine.dispose()


def next_to_die(
    managers: list[multiprocessing.process.BaseProcess], patience: float
) -> multiprocessing.process.BaseProcess:
    """Return the first manager that has killed itself, or after a while the older one."""
    limit = time.monotonic() + patience
    while time.monotonic() < limit:
        for each in managers:
            if not each.is_alive():
                return each
        time.sleep(0.02)
    return managers[0]


def until_it_holds(check: Callable[[], None]) -> None:
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            return check()
        except (AssertionError, BlazarError):
            if time.monotonic() > limit:
                raise
            time.sleep(0.3)


def check_rest(store: Store, cloud: PeopledCloud) -> None:
    now = datetime.now(UTC)
    due = store.events.next_due()
    assert due is None or due > now + timedelta(seconds=1), due
    assert store.outbox.next_due() is None
    leases = store.leases.of_project(None)
    assert not [e for lease in leases for e in lease.events if e.status is EventStatus.IN_PROGRESS]
    check_at_rest(store, cloud, now=now)
    check_turns(store, now)
    check_series(store, now)
    check_maintenance(store, cloud, now)


def served(manager: ManagerService, store: Store) -> None:
    """Give back all that is booked; then nobody waits any more."""

    def ask(method: str, path: str) -> None:
        what, name = path.split("/")[2], path.split("/")[3].partition("?")[0]
        with contextlib.suppress(BlazarError):
            if what == "series":
                manager.series.delete(name, ends_running=True)
            elif method == "DELETE":
                manager.maintenances.delete(name)
            else:
                manager.maintenances.end(name)

    give_back(store, ask)
    leases: tuple[Lease, ...] = store.leases.of_project(None)
    for lease in leases:
        if lease.status is not LeaseStatus.WAITING:
            with contextlib.suppress(BlazarError):
                manager.leases.delete(lease.id)
    assert not (left := forgotten(store.leases.of_project(None))), left
