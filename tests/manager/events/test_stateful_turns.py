# SPDX-License-Identifier: Apache-2.0
"""Leases that wait, promises, series, maintenance windows, surgery, transfers together, in any order, by two managers.

The model is small: the earliest start that each lease was promised, and how many hosts with it. What else must hold can
be seen in the store and the cloud: nothing is promised twice, nobody who could start waits, each series has each
occurrence once, and only hosts of windows that go on carry our mark.
"""

from __future__ import annotations

import os
import random
import tempfile
import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import MaintenanceChange, MaintenanceRequest, PendingPolicy
from blazar.model.resources.resource import HOST
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit, SeriesLimits
from blazar.model.surgery import MergeRequest, OfferRequest, Partner, PartRequest, SplitRequest, SwapRequest, Terms
from tests.promises import check_promises
from tests.soak.turns import check_maintenance, check_series, check_turns, give_back
from tests.tables import new_sqlite
from tests.world import World, a_host, a_series, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
HOSTS = 3
SETTINGS = Settings(
    claim_ttl=timedelta(seconds=30),
    healing_interval=timedelta(0),
    series=SeriesLimits(horizon=timedelta(days=9)),
    max_series=4,
)
ROOMS: st.SearchStrategy[ReservationRequest] = st.one_of(
    st.builds(lambda least, more: a_host(least, least + more), st.integers(1, 3), st.integers(0, 2)),
    st.builds(instances, st.integers(1, 4), vcpus=st.sampled_from([4, 16, 31])),
)
HOURS = st.sampled_from([1, 2, 5, 12])
PROJECTS = st.sampled_from(["physics", "chemistry", "biology"])
SETTLED = {LeaseStatus.WAITING, LeaseStatus.TIMED_OUT, LeaseStatus.PENDING, LeaseStatus.ACTIVE, LeaseStatus.TERMINATED}


OPERATOR = Terms(Actor("admin", "demo", operator=True), names=True)


class Turns(RuleBasedStateMachine):
    """Users and an operator, who ask any of two managers."""

    leases = Bundle("leases")
    series = Bundle("series")
    windows = Bundle("windows")

    @initialize(target=leases, hours=st.sampled_from([1, 4]), ids=st.integers(0, 2**16))
    def begin(self, hours, ids=0) -> str:
        self.after = ExitStack()
        folder = self.after.enter_context(tempfile.TemporaryDirectory())
        self.engine = new_sqlite(Path(folder) / "blazar.sqlite")
        self.after.callback(self.engine.dispose)
        self.world = World(self.engine, hosts=HOSTS, settings=SETTINGS)
        self.world.waits = True
        # No clock stands at a whole second.
        self.world.clock.by(seconds=0.25)
        self.managers = [self.world.manager, self.world.another_manager()]
        # Of what comes at the same instant, the ids say what is first: with others, the same case would go another way.
        drawn = random.Random(ids)
        self.after.enter_context(patch.object(uuid, "uuid4", lambda: uuid.UUID(int=drawn.getrandbits(128), version=4)))
        self.promises: dict[str, tuple[datetime, int]] = {}
        self.hosts = [host.external_id for host in self.world.manager.resources.all(HOST)]
        # Who comes next has to wait.
        return self.world.lease(a_host(HOSTS), hours=hours, project="geology").id

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        with self.after:
            self.all_ends()

    def all_ends(self) -> None:
        world = self.world
        for number in range(1, HOSTS + 1):
            world.simulated.operators.host_up(f"node-{number}")
        for _ in range(SETTINGS.failures_before_healing):
            world.manager.monitor.run_once()
        self.settle()
        give_back(world.store, self.ask)
        self.time_passes(0)
        # What was split off a lease of a series is an ordinary lease, which may begin a week later.
        ends = [lease.window.end for lease in world.store.leases.of_project(None)]
        self.to(max([world.clock.now(), *ends]) + 4 * DAY)
        left = {lease.status for lease in world.store.leases.of_project(None)}
        assert left <= {LeaseStatus.TERMINATED, LeaseStatus.TIMED_OUT}
        assert not world.store.calendar.load_live(HOST)
        assert world.pool() == {f"node-{number}" for number in range(1, HOSTS + 1)}
        assert world.reservation_aggregates() == []
        assert all(host.enabled for host in world.simulated.compute.hypervisors())
        assert world.store.outbox.next_due() is None

    # Leases

    @rule(
        target=leases,
        rooms=st.lists(ROOMS, min_size=1, max_size=3),
        project=PROJECTS,
        hours=HOURS,
        start=st.sampled_from([0, 0, 0, 2]),
        wait=st.sampled_from([2, 12, 48]),
        latest=st.none() | st.sampled_from([1, 6]),
        shortest=st.none() | st.just(1),
        by=st.integers(0, 1),
    )
    def wait(self, rooms, project, hours, start, wait, latest, shortest, by) -> object:
        asked = {
            "start": start * HOUR if start else NOW,
            "hours": hours + start,
            "wait": wait * HOUR,
            "project": project,
            "latest": None if latest is None else latest * HOUR,
            "at_least": None if shortest is None else shortest * HOUR,
        }
        made = [self.made(by, room, **asked) for room in rooms]
        return multiple(*(lease for lease in made if lease is not None))

    @rule(target=leases, room=ROOMS, project=PROJECTS, hours=HOURS, start=st.integers(0, 5), by=st.integers(0, 1))
    def book(self, room, project, hours, start, by) -> object:
        made = self.made(by, room, start=start * HOUR if start else NOW, hours=hours + start, project=project)
        return multiple() if made is None else made

    def made(self, by: int, room: ReservationRequest, **asked) -> str | None:
        self.world.manager = self.managers[by]
        lease = self.attempt(lambda: self.world.lease(room, **asked))
        return None if lease is None else lease.id

    @rule(lease=leases, hours=st.integers(-4, 6), by=st.integers(0, 1))
    def prolong(self, lease, hours, by) -> None:
        end = self.world.now_of(lease).window.end + hours * HOUR
        self.change(by, lease, end=end)

    @rule(lease=leases, by=st.integers(0, 1))
    def end_now(self, lease, by) -> None:
        self.change(by, lease, end=NOW)

    @rule(lease=leases, by=st.integers(0, 1))
    def delete(self, lease, by) -> None:
        self.attempt(lambda: self.managers[by].leases.delete(lease))

    @rule(one=leases, other=st.none() | leases, number=st.integers(0, HOSTS - 1), by=st.integers(0, 1))
    def swap(self, one, other, number, by) -> None:
        """Give a lease another host, or let two exchange hosts."""
        mine, theirs = self.world.now_of(one), None if other is None else self.world.now_of(other)
        partner = None if theirs is None else Partner(theirs.id, theirs.reservations[0].id)
        hosts = sorted(self.world.hosts_of(mine))
        target = None if theirs is None else min(self.world.hosts_of(theirs), default="node-1")
        asked = SwapRequest(mine.reservations[0].id, hosts[number % len(hosts)] if hosts else "node-1", target, partner)
        self.operated(lambda: self.managers[by].surgery.swap(one, asked, OPERATOR), one, other or one)

    @rule(
        target=leases, lease=leases, count=st.none() | st.integers(1, 2), later=st.integers(1, 4), by=st.integers(0, 1)
    )
    def split(self, lease, count, later, by) -> object:
        """Make two leases of one, by hosts or by time."""
        found = self.world.now_of(lease)
        parts = () if count is None else (PartRequest(found.reservations[0].id, count=count),)
        asked = SplitRequest(parts, at=None if parts else found.window.start + later * HOUR)
        return self.operated(lambda: self.managers[by].surgery.split(lease, asked, OPERATOR), lease)

    @rule(lease=leases, other=leases, by=st.integers(0, 1))
    def merge(self, lease, other, by) -> None:
        self.operated(lambda: self.managers[by].surgery.merge(lease, MergeRequest(other), OPERATOR), lease, other)

    def operated(self, act: Callable, *leases: str) -> object:
        """Return the second lease that is left, if any; all of them are ordinary bookings from then on."""
        done = self.attempt(act)
        for lease in leases if done is not None else ():
            self.promises.pop(lease, None)
        return multiple(*(each.lease.id for each in done.leases[1:])) if done is not None else multiple()

    @rule(lease=leases, project=PROJECTS, by=st.integers(0, 1))
    def offer(self, lease, project, by) -> None:
        """Offer a lease to another project; a lease that is offered is an ordinary one."""
        self.attempt(lambda: self.managers[by].transfers.offer(lease, OfferRequest(project), OPERATOR))

    @rule(lease=leases, takes=st.booleans(), by=st.integers(0, 1))
    def answer(self, lease, takes, by) -> None:
        """Accept or decline what is offered."""
        offer = self.world.now_of(lease).offer
        taker = Terms(Actor("somebody", "nobody" if offer is None else offer.project_id))
        transfers = self.managers[by].transfers
        done = self.attempt(lambda: (transfers.accept if takes else transfers.decline)(lease, taker))
        if done is not None:
            self.promises.pop(lease, None)
            assert self.world.now_of(lease).project_id == offer.project_id

    # Series

    @rule(
        target=series,
        hosts=st.integers(1, 3),
        rule=st.sampled_from(["FREQ=DAILY;COUNT=4", "FREQ=DAILY;INTERVAL=3;COUNT=3", "FREQ=WEEKLY", "FREQ=DAILY"]),
        begin=st.integers(1, 30),
        hours=st.sampled_from([1, 6, 20]),
        fit=st.sampled_from(Fit),
        project=PROJECTS,
        by=st.integers(0, 1),
    )
    def recur(self, hosts, rule, begin, hours, fit, project, by) -> object:
        now = self.world.clock.now().replace(minute=0, second=0, microsecond=0, tzinfo=None)
        asked = a_series(
            a_host(hosts),
            rule=rule,
            start=now + begin * HOUR,
            length=hours * HOUR,
            fit=fit if "COUNT" in rule else Fit.AS_MANY,
            project=project,
        )
        found = self.attempt(lambda: self.managers[by].series.create(asked))
        return multiple() if found is None else found.series.id

    @rule(series=series, hours=st.sampled_from([2, 8]), later=st.booleans(), fit=st.sampled_from(Fit), data=st.data())
    def change_series(self, series, hours, later, fit, data) -> None:
        found = self.world.manager.series.one(series)
        ids = [each.recurrence_id for each in found.occurrences]
        since = data.draw(st.sampled_from(ids)) if later and ids else None
        fit = fit if found.series.recurrence.rule.has_end else Fit.AS_MANY
        change = SeriesChange(since=since, length=hours * HOUR, fit=fit)
        self.attempt(lambda: self.world.manager.series.change(series, change))

    @rule(target=leases, series=series, data=st.data())
    def one_of(self, series, data) -> object:
        ids = [each.lease_id for each in self.world.manager.series.one(series).occurrences if each.lease_id]
        return data.draw(st.sampled_from(ids)) if ids else multiple()

    @rule(series=series, running=st.booleans(), by=st.integers(0, 1))
    def delete_series(self, series, running, by) -> None:
        self.attempt(lambda: self.managers[by].series.delete(series, ends_running=running))

    # Operators and hosts

    @rule(
        target=windows,
        numbers=st.sets(st.integers(0, HOSTS - 1), min_size=1, max_size=2),
        begin=st.integers(0, 30),
        hours=st.sampled_from([1, 4, 26]),
        closes=st.booleans(),
        pending=st.sampled_from(PendingPolicy),
        by=st.integers(0, 1),
    )
    def open_window(self, numbers, begin, hours, closes, pending, by) -> object:
        start = self.world.clock.now().replace(microsecond=0) + begin * HOUR
        hosts = tuple(self.hosts[number] for number in sorted(numbers))
        end = start + hours * HOUR
        asked = MaintenanceRequest("firmware", start, end, hosts=hosts, disable_service=closes, pending=pending)
        found = self.attempt(lambda: self.managers[by].maintenances.create(asked).maintenance)
        return multiple() if found is None else found.id

    @rule(window=windows, what=st.sampled_from(["end", "cancel", "change"]), hours=st.integers(1, 9))
    def alter_window(self, window, what, hours) -> None:
        maintenances = self.world.manager.maintenances
        if what == "end":
            self.attempt(lambda: maintenances.end(window))
        elif what == "cancel":
            self.attempt(lambda: maintenances.delete(window))
        else:
            end = self.world.clock.now().replace(microsecond=0) + hours * HOUR
            self.attempt(lambda: maintenances.change(window, MaintenanceChange(end=end)))

    @rule(number=st.integers(1, HOSTS), down=st.booleans())
    def fail_or_recover(self, number, down) -> None:
        operators = self.world.simulated.operators
        (operators.host_down if down else operators.host_up)(f"node-{number}")
        for _ in range(SETTINGS.failures_before_healing):
            self.world.manager.monitor.run_once()

    # Time and managers

    @rule(minutes=st.sampled_from([0, 0, 1, 20, 60, 300]), by=st.integers(0, 1))
    def time_passes(self, minutes, by=0) -> None:
        self.world.manager = self.managers[by]
        self.to(self.world.clock.now() + timedelta(minutes=minutes))
        self.settle()

    @rule()
    def a_day_passes(self) -> None:
        self.to(self.world.clock.now() + DAY)
        self.settle()

    @rule(by=st.integers(0, 1))
    def plan(self, by) -> None:
        self.managers[by].waiting_list.run_once()

    @invariant()
    def nothing_is_promised_twice_and_no_promise_gets_worse(self) -> None:
        if not hasattr(self, "world"):
            return
        store = self.world.store
        check_promises(store, since=self.world.clock.now())
        for lease, held in store.waiting_list.load_promised():
            count = sum(each.count for each in held)
            start, least = self.promises.get(lease.id, (lease.window.start, 0))
            assert lease.window.start <= start, f"{lease.id} was promised {start}"
            assert count >= least or lease.degraded, f"{lease.id} was promised {least}"
            self.promises[lease.id] = lease.window.start, max(count, least)

    def settle(self) -> None:
        """Do all work, and check that nothing is left to do and nobody is forgotten."""
        world = self.world
        self.work()
        self.nothing_is_promised_twice_and_no_promise_gets_worse()
        now = world.clock.now()
        leases = world.store.leases.of_project(None)
        assert {lease.status for lease in leases} <= SETTLED
        assert world.store.outbox.next_due() is None
        check_turns(world.store, now)
        check_series(world.store, now)
        check_maintenance(world.store, world.simulated, now)
        # Who could start now has started.
        found = world.manager.waiting_list._snapshots.read().plan(lambda *_: None)
        assert not found.start_now, f"they could start, and wait: {found.start_now}"
        self.everybody_has_what_is_theirs(leases)

    def everybody_has_what_is_theirs(self, leases: Sequence[Lease]) -> None:
        """Check that what reservations have in the cloud is their project's, no matter who had them before."""
        owners = {r.id: lease.project_id for lease in leases for r in lease.reservations}
        for aggregate in self.world.aggregates():
            if aggregate.name in owners:
                assert aggregate.metadata["blazar:owner"] == owners[aggregate.name]
                in_use = self.world.simulated.compute.flavor(aggregate.name)
                access = self.world.simulated.compute.flavor_access(aggregate.name) if in_use else frozenset()
                assert access <= {owners[aggregate.name]}

    def to(self, instant: datetime) -> None:
        """Let time pass until then, with all work as it falls due."""
        world = self.world
        while (due := min(self.due(), default=instant)) < instant:
            world.clock.to(max(due, world.clock.now()))
            self.work()
        world.clock.to(instant)
        self.work()

    def due(self) -> list[datetime]:
        store = self.world.store
        plan = store.waiting_list.load_state().due_at if store.waiting_list.has_work() else None
        return [due for due in (store.events.next_due(), store.maintenances.next_due(), plan) if due is not None]

    def work(self) -> None:
        manager: ManagerService = self.world.manager
        for _ in range(20):
            self.world.run()
            if not manager.maintenance_work.run_once():
                return

    def ask(self, method: str, path: str) -> None:
        """Delete a series, end a window or cancel it."""
        what, name = path.split("/")[2], path.split("/")[3].partition("?")[0]
        manager = self.world.manager
        if what == "series":
            self.attempt(lambda: manager.series.delete(name, ends_running=True))
        else:
            self.attempt(
                lambda: (manager.maintenances.delete if method == "DELETE" else manager.maintenances.end)(name)
            )

    def change(self, by: int, lease: str, **values) -> Lease | None:
        changed = self.attempt(lambda: self.managers[by].leases.update(lease, LeaseChange(**values)))
        if changed is not None:
            # What its owner changes is an ordinary booking from then on.
            self.promises.pop(lease, None)
        return changed

    def attempt(self, act: Callable):
        """Do what may be refused, as a user's mistake or for want of room, and for nothing else."""
        try:
            return act()
        except BlazarError as error:
            if error.status not in (400, 404, 409):
                raise
        return None


class ManyTurns(Turns):
    """The same, far longer."""


Turns.TestCase.settings = settings(max_examples=6, stateful_step_count=20, deadline=None)
ManyTurns.TestCase.settings = settings(
    max_examples=int(os.environ.get("BLAZAR_LIVES", "200")) // 2, stateful_step_count=50, deadline=None
)
TestTurns = Turns.TestCase
TestManyTurns = pytest.mark.slow(ManyTurns.TestCase)


def test_what_was_split_off_a_lease_of_next_week_is_awaited():
    turns = Turns()
    turns.begin(hours=1)
    weekly = turns.recur(hosts=1, rule="FREQ=WEEKLY", begin=4, hours=6, fit=Fit.AS_MANY, project="chemistry", by=0)
    last = turns.world.manager.series.one(weekly).occurrences[-1].lease_id
    turns.split(lease=last, count=None, later=2, by=0)
    assert len([each for each in turns.world.store.leases.of_project("chemistry") if each.series is None]) > 0
    turns.teardown()
