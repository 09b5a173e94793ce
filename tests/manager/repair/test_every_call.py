# SPDX-License-Identifier: Apache-2.0
"""A fault at each changing call of a start, of every type: two rounds later the cloud is as the books say.

What the service cannot bring back by itself is told: by a problem, which the doctor's report has, too, or to the users
whose own it is.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.engine import Engine

from blazar.clouds.ports import CHANGES
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated.state import State
from blazar.cmd import doctor
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.paging import Page
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.problems.problems import ProblemKind, ProblemQuestion
from tests.manager.repair.test_drift import every_type
from tests.observed import Killed
from tests.oracle import check_at_rest
from tests.tables import new_sqlite
from tests.world import World, servers, stacks

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
MOST_CALLS = 30
SMALL = Flavor("small", "m1.small", 1, 512, 1, public=True)
TYPES = (
    *("hosts", "instances", "affinity", "flavors", "addresses", "network", "devices", "things", "volumes", "quota"),
    *("servers", "stack"),
)

USERS_OWN = {("volumes", "begin_volume"), ("servers", "begin_boot")}
"""What was made for users, who may delete it: it is not made again, and they are told."""

BY_HAND = {
    ("hosts", "create_aggregate"): ProblemKind.RESOURCE,
    ("hosts", "add_host"): ProblemKind.RESOURCE,
}
"""What needs a hand, and which problem says so: a host that is in no aggregate of ours was taken out by somebody."""

UNSEEN = {("devices", "call_hook"), ("things", "call_hook"), ("stack", "begin_stack")}
"""What is not looked at: the protocol of hooks has no question who has a thing, and users delete stacks themselves."""

TRACELESS = {("hosts", "set_aggregate_metadata"), ("hosts", "remove_host")}
"""In which zone a host was before. The note is in the cloud alone, and Nova lets nobody put a host into two zones."""


@dataclass(frozen=True)
class Change:
    """A changing call of a start, with the state of the cloud before and after it."""

    call: str
    before: Any
    after: Any


class Judged:
    """A world with a lease that will start, and whose differences are mended as they are found."""

    def __init__(self, engine: Engine, name: str) -> None:
        settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, drift_mend=True)
        self.world = World(engine, settings=settings)
        self.world.manager.drift.pause = 0
        every = {**every_type(self.world), "servers": servers(2), "stack": stacks("small", disks=1, outside=1)}
        self.request = every[name]

    def book(self) -> Lease:
        return self.world.lease(self.request, start=HOUR, hours=8)

    def wait(self, time: timedelta = 10 * MINUTE) -> None:
        until = self.world.clock.now() + time
        while self.world.clock.now() < until:
            self.world.run_to(self.world.clock.now() + MINUTE)

    def start(self, lease: Lease) -> None:
        self.world.run_to(lease.window.start)
        self.wait()

    def record(self) -> tuple[Lease, list[Change]]:
        """Book and start a lease; return it with all that this has changed in the cloud."""
        found: list[Change] = []
        before: list[Any] = [None]

        def watch(call: str, phase: str) -> None:
            now = self.snapshot()
            if phase == "after" and now != before[0]:
                found.append(Change(call, before[0], now))
            before[0] = now

        self.world.faults.on_call = watch
        lease = self.book()
        self.start(lease)
        self.world.faults.on_call = None
        return lease, found

    def snapshot(self) -> Any:
        with self.world.simulated.inspect() as state:
            return json.loads(state.to_text())

    def undo(self, change: Change) -> None:
        """Undo a call by hand, and what cannot be without it."""
        now = undo(self.snapshot(), change.before, change.after)
        now["inventories"] = {
            host: {name: total for name, total in totals.items() if name in now["classes"]}
            for host, totals in now["inventories"].items()
        }
        self.world.simulated._storage._state = State.from_json(now)

    def round(self) -> None:
        """Let a round of all that looks at the cloud go by."""
        manager = self.world.manager
        manager.drift.run_once()
        manager.monitor.run_once()
        manager.monitor.heal(at_once=True)
        for sweep in manager.sweeps:
            sweep.run_once()
            sweep.deleted.run_once()
        self.wait()

    def differs(self) -> bool:
        """Tell whether the cloud has other things than the books say, by an oracle that is not the service's."""
        try:
            check_at_rest(self.world.store, self.world.simulated, now=self.world.clock.now(), offered=[SMALL])
        except (AssertionError, KeyError):
            return True
        return False

    def named(self) -> frozenset[ProblemKind]:
        """Return the kinds of the problems, each of which the doctor's report has, too."""
        self.wait()
        question = ProblemQuestion(Page(100, "since"))
        problems = self.world.manager.problems.page(question).items
        report = "\n".join(doctor._list_problems(self.world.manager))
        assert all(problem.id in report for problem in problems)
        return frozenset(problem.kind for problem in problems)


def undo(now: Any, before: Any, after: Any) -> Any:
    """Return a state without what a call has made of another one."""
    if isinstance(now, dict):
        for key in before.keys() | after.keys():
            if before.get(key) == after.get(key):
                continue
            if key not in before:
                now.pop(key, None)
            elif key in now and key in after:
                now[key] = undo(now[key], before[key], after[key])
            else:
                now[key] = before[key]
        return now
    if isinstance(now, list):
        kept = [item for item in now if item in before or item not in after]
        return kept + [item for item in before if item not in after and item not in now]
    return before


@pytest.fixture
def judged(tmp_path) -> Callable[[str], Judged]:
    """Make worlds, each with a database of its own."""
    numbers = itertools.count()
    return lambda name: Judged(new_sqlite(tmp_path / f"{next(numbers)}.sqlite"), name)


def undone(judged: Callable[[str], Judged], name: str) -> Iterator[tuple[Judged, Lease, Change]]:
    """Yield, for each change of a creation and a start, a world in which it is undone."""
    for number in range(MOST_CALLS):
        case = judged(name)
        lease, changes = case.record()
        assert case.world.now(lease).status is LeaseStatus.ACTIVE
        assert not case.differs()
        assert case.world.manager.drift.run_once() == 0, "an untouched world differs"
        if number == len(changes):
            return
        case.undo(changes[number])
        yield case, lease, changes[number]
    raise AssertionError("there are more calls than are looked at")


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_what_is_undone_by_hand_is_brought_back_or_told(judged, name):
    for case, lease, change in undone(judged, name):
        where = (name, change.call)
        case.round()
        case.round()
        if not case.differs():
            assert case.named() == frozenset(), where
            continue
        if where in USERS_OWN:
            assert any(r.gone for r in case.world.now(lease).reservations), where
        elif where in BY_HAND:
            assert BY_HAND[where] in case.named(), where
        else:
            assert where in UNSEEN | TRACELESS, f"{where}: nobody is told that the cloud is not as the books say"


class FaultAt:
    """Fails the changing call of a number, counted from 0, before or after it: once, or that and all that follows."""

    def __init__(self, number: int, phase: str, error: BaseException, *, for_good: bool = False) -> None:
        self._left = number
        self._phase = phase
        self._error = error
        self._for_good = for_good
        self.happened = False

    def __call__(self, call: str, phase: str) -> None:
        if self.happened:
            if self._for_good:
                raise self._error
            return
        if call in CHANGES and phase == self._phase:
            self.happened = self._left == 0
            self._left -= 1
            if self.happened:
                raise self._error


def check_as_if_nothing_had_happened(case: Judged, lease: Lease, when: str) -> None:
    case.round()
    case.round()
    assert case.world.now(lease).status is LeaseStatus.ACTIVE, when
    assert not case.differs(), when
    assert case.world.manager.drift.run_once() == 0, when
    assert case.named() == frozenset(), when


@pytest.mark.share(2)
@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("name", TYPES)
def test_a_call_that_fails_or_whose_answer_is_lost_leaves_nothing_behind(judged, name, phase):
    for number in range(MOST_CALLS):
        case = judged(name)
        lease = case.book()
        case.world.faults.on_call = fault = FaultAt(number, phase, CloudUnavailable("the answer is lost"))
        case.start(lease)
        case.world.faults.on_call = None
        check_as_if_nothing_had_happened(case, lease, f"call {number} fails")
        if not fault.happened:
            return
    raise AssertionError("there are more calls than are looked at")


@pytest.mark.slow
@pytest.mark.parametrize("name", TYPES)
def test_what_a_manager_leaves_that_dies_right_after_a_call_is_finished(judged, name):
    for number in range(MOST_CALLS):
        case = judged(name)
        lease = case.book()
        case.world.faults.on_call = fault = FaultAt(number, "after", Killed(), for_good=True)
        with suppress(Killed):
            case.start(lease)
        case.world.faults.on_call = None
        case.world.manager = case.world.another_manager()
        case.world.manager.drift.pause = 0
        case.world.clock.by(seconds=31)
        case.start(lease)
        check_as_if_nothing_had_happened(case, lease, f"the manager dies after call {number}")
        if not fault.happened:
            return
    raise AssertionError("there are more calls than are looked at")
