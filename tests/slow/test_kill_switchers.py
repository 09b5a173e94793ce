# SPDX-License-Identifier: Apache-2.0
"""Two managers that switch hosts, and are killed in each state of a host, while leases come and go.

Their clock is sixty times as fast as ours, so that a night passes in minutes.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import random
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blazar.clouds.simulated import Durations, Faults, FileStorage, of_size
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import BlazarError
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.states import MARK, HostPower, PowerState
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.type import PhysicalHost
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import power_log
from blazar.store.store import Store
from tests.conftest import fresh_database
from tests.observed import ObservedStore, kill_at_one_of
from tests.people import PeopledCloud
from tests.world import RecordingNotifier, a_host, host_request, kinds_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TIMES = 60
"""How much faster than ours the clock of the managers is."""
HOSTS, RAMP = 6, 3
KILLS = int(os.environ.get("BLAZAR_KILLS", "220")) // 8
MINUTE = timedelta(minutes=1)
LEAD = 30 * MINUTE
LATE = 6 * MINUTE
"""How late a start may be that was booked before the lead, in the time of the managers: their turns, and two kills."""
PATIENCE = 150
POINTS = (
    *("switches.claim", "switches.note_attempt", "switches.release") * 3,
    *("power.begin_moves", "power.claim_turn", "power.release_turn", "power.wake_sleepers"),
)
"""Calls before or after which a manager is killed."""


class FastClock(SystemClock):
    """A clock that is faster than that of this machine, and the same in all processes."""

    def now(self) -> datetime:
        """Return what it shows."""
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        return begin + (super().now() - begin) * TIMES

    def elapsed(self) -> float:
        """Return seconds that are as short."""
        return super().elapsed() * TIMES


SETTINGS = Settings(
    before_end_lead=timedelta(0),
    claim_ttl=2 * MINUTE,
    first_retry=timedelta(seconds=6),
    longest_retry=timedelta(seconds=30),
    longest_sleep=timedelta(milliseconds=200),
    starters=4,
    enders=4,
    power=PowerSettings(
        PowerMode.ON,
        spare=0,
        idle_after=timedelta(0),
        min_off=10 * MINUTE,
        min_on=2 * MINUTE,
        wake_timeout=6 * MINUTE,
        shutdown_timeout=2 * MINUTE,
        ramp=RAMP,
        cycles_per_day=100,
    ),
)


def simulated(cloud_file: Path) -> PeopledCloud:
    short = Durations(shutdown=timedelta(seconds=30), wake=2 * MINUTE)
    faults = Faults(latency=timedelta(milliseconds=2))
    return PeopledCloud(FileStorage(cloud_file, of_size(HOSTS)), clock=FastClock(), faults=faults, durations=short)


def a_manager(url: str, cloud_file: Path, seed: int | None = None) -> ManagerService:
    """Return a manager, which with a ``seed`` kills itself at one of the points."""
    cloud, settings = simulated(cloud_file).cloud, HostSettings()
    store = Store(make_engine(url, pool_size=8))
    plugins = Plugins(
        (PhysicalHost(cloud, settings),),
        {HOST: kinds_of(cloud, settings)[HOST]},
        RecordingNotifier(),
        powers={"": cloud.power},
    )
    observed = (
        store if seed is None else ObservedStore(store, kill_at_one_of(POINTS, (1, 2, 3, 5), random.Random(seed)))
    )
    return ManagerService(observed, FastClock(), SETTINGS, plugins)  # type: ignore[arg-type]


def manage(url: str, cloud_file: Path, seed: int | None) -> None:
    a_manager(url, cloud_file, seed).start()
    while True:
        time.sleep(1)


class Site:
    """What a user, an operator and an observer do, and what they have seen."""

    def __init__(self, url: str, cloud_file: Path) -> None:
        self.manager = a_manager(url, cloud_file)
        self.engine = make_engine(url)
        self.store = Store(self.engine)
        self.cloud = simulated(cloud_file)
        self.clock = FastClock()
        self.dice = random.Random(7)
        self.ahead: dict[str, Lease] = {}
        """Leases that were booked before the lead."""
        self.lateness: dict[str, timedelta] = {}
        self.seen: Counter[str] = Counter()

    def register(self) -> None:
        for number in range(1, HOSTS + 1):
            name = f"node-{number}"
            host = self.manager.resources.register(HOST, host_request(name=name, id=None, capabilities={}))
            address = PowerAddress(PowerAdapter.SIMULATED, name)
            self.manager.power.change(host.external_id, PowerChange(address))

    def powers(self) -> dict[str, HostPower]:
        found = self.store.power.read_hosts_power(self.clock.now())
        return {host.name: found[host.id] for host in self.store.resources.catalog(HOST).resources}

    def act(self) -> None:
        """Do one of the things that may be done at any time."""
        number = self.dice.randint(1, HOSTS)
        what = self.dice.choice(("far", "far", "near", "server", "end", "end", "end", "wake", "hand"))
        with contextlib.suppress(BlazarError):
            if what in ("far", "near"):
                ahead = (
                    self.dice.randint(1, 20) * MINUTE if what == "near" else LEAD + self.dice.randint(2, 30) * MINUTE
                )
                start = (self.clock.now() + ahead).replace(second=0, microsecond=0)
                rooms = (a_host(1, self.dice.randint(1, 2)),)
                asked = LeaseRequest("a", "curie", "physics", start, start + 5 * MINUTE, reservations=rooms)
                lease = self.manager.leases.create(asked)
                if what == "far":
                    self.ahead[lease.id] = lease
            elif what == "server":
                self.boot(f"node-{number}")
            elif what == "end":
                self.clear()
            elif what == "wake":
                self.manager.power.wake(self.store.resources.catalog(HOST).resources[number - 1].external_id)
            elif self.powers()[f"node-{number}"].state is PowerState.OFF:
                self.cloud.operators.press_power(f"node-{number}", on=True)

    def forget_wishes(self) -> None:
        """Let no host stay on for hours, which would leave nothing to switch."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE host_power SET kept_until = NULL WHERE state = 'on'")

    def boot(self, name: str) -> None:
        """Boot a server, as Nova does: on a host that is open."""
        if self.powers()[name].state is PowerState.ON and self.marks()[name] is None:
            self.cloud.users.boot_server("w", project_id="physics", user_id="u", host=name, status="ACTIVE")

    def clear(self) -> None:
        """Delete all servers."""
        with self.cloud.change_state() as state:
            state.servers.clear()

    def marks(self) -> dict[str, str | None]:
        with self.cloud.inspect() as state:
            return {host.name: None if host.enabled else host.disabled_reason for host in state.hosts.values()}

    def watch(self) -> None:
        """Check what must hold at any instant, and note how late starts are."""
        before = self.powers()
        with self.cloud.inspect() as state:
            now = self.clock.now()
            occupied = {server.location(now) for server in state.servers.values() if not server.is_gone(now)}
            dead = {name for name, machine in state.machines.items() if not machine.is_on(now)}
        marks, after = self.marks(), self.powers()
        assert not occupied & dead, f"{occupied & dead} have servers and no power"
        for name, host in after.items():
            self.seen[str(host.state)] += 1
            if host.state is PowerState.OFF and before[name] == host:
                assert marks[name] == MARK, f"{name} sleeps and is open"
                assert name not in occupied
        for lease in self.store.leases.of_project(None):
            known = self.ahead.get(lease.id)
            if known is not None and lease.status in (LeaseStatus.PENDING, LeaseStatus.STARTING):
                self.lateness[lease.id] = self.clock.now() - known.window.start

    def settle(self) -> None:
        """Give all back; then all hosts sleep, and after that all of them wake."""
        self.clear()
        for lease in self.store.leases.of_project(None):
            with contextlib.suppress(BlazarError):
                self.manager.leases.delete(lease.id)
        self.wait(PowerState.OFF, MARK)
        for host in self.store.resources.catalog(HOST).resources:
            self.manager.power.wake(host.external_id)
        self.wait(PowerState.ON, None)

    def wait(self, state: PowerState, mark: str | None) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            self.watch()
            self.forget_failures()
            found, marks = {name: host.state for name, host in self.powers().items()}, self.marks()
            if {*found.values()} == {state} and {*marks.values()} == {mark}:
                return
            assert time.monotonic() < end, (found, marks)
            if state is PowerState.OFF:
                self.forget_wishes()
            time.sleep(0.3)

    def forget_failures(self) -> None:
        """Have hosts switched off again that did not wake twice: a slow test machine is slow to boot, too."""
        with self.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE host_power SET policy = 'auto'")


@pytest.fixture
def url(tmp_path):
    yield from fresh_database("postgresql", tmp_path)


def test_wherever_a_manager_is_killed_no_host_is_forgotten_and_no_start_is_late(url, tmp_path):
    cloud_file = tmp_path / "cloud.json"
    engine = make_engine(url)
    upgrade(engine)
    engine.dispose()
    site = Site(url, cloud_file)
    site.register()
    context = multiprocessing.get_context("fork")
    seeds = itertools.count(1000)

    def bear(*, deadly: bool = True) -> multiprocessing.process.BaseProcess:
        process = context.Process(target=manage, args=(url, cloud_file, next(seeds) if deadly else None), daemon=True)
        process.start()
        return process

    managers, how = [bear(), bear()], Counter[str]()
    try:
        for _ in range(KILLS):
            limit = time.monotonic() + 4
            while all(each.is_alive() for each in managers) and time.monotonic() < limit:
                if site.dice.random() < 0.15:
                    site.act()
                    site.forget_wishes()
                site.watch()
                time.sleep(0.2)
            victim = next((each for each in managers if not each.is_alive()), managers[0])
            how["later" if victim.is_alive() else "by itself"] += 1
            victim.kill()
            victim.join()
            managers.remove(victim)
            managers.append(bear())
        for process in managers:
            process.kill()
            process.join()
        managers = [bear(deadly=False), bear(deadly=False)]
        site.settle()
    finally:
        for process in managers:
            process.kill()
            process.join()
    late = sorted(site.lateness.values(), reverse=True)
    print(f"{dict(how)}; {dict(site.seen)}; {len(site.ahead)} booked ahead, latest {late[:5]}")
    assert {"on", "going_off", "off", "waking"} <= site.seen.keys()
    assert not late or late[0] < LATE
    check_ramp(site)
    site.engine.dispose()


def check_ramp(site: Site) -> None:
    """Check that the plan has switched no more hosts in a minute than the ramp allows."""
    with site.engine.connect() as connection:
        rows = connection.execute(power_log.select().order_by(power_log.c.at)).all()
    planned = [row.at for row in rows if (row.after, row.reason) in {("going_off", "idle"), ("waking", "spare")}]
    for index, at in enumerate(planned):
        assert sum(at <= other < at + MINUTE for other in planned[index:]) <= RAMP
    assert len([row for row in rows if row.after == "off"]) > HOSTS
