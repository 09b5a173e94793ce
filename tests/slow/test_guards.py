# SPDX-License-Identifier: Apache-2.0
"""No action of an operator without its guard: its holder stands still at a call to the cloud, and goes on later.

Two processes are managers of one database and one cloud. The first is stopped (SIGSTOP) right before or after a
changing call. While its claim is valid, every action is refused. Later the second acts, and finishes the work; then the
first goes on, and changes nothing any more. Of all points every third one is taken; ``BLAZAR_GUARD_EVERY=1`` takes all.

What is held up is the start or the end of a lease, an operator's mending of one in use, or the clean-up that an
operator's end of what a lease has left is, or of what is not on record.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.clouds.ports import CHANGES
from blazar.clouds.simulated import FileStorage, of_size
from blazar.context import current
from blazar.manager.common.settings import Settings
from blazar.manager.repair.drift import LookFence
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import Conflict, NotFound, WrongState
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.states import EventStatus, LeaseStatus
from blazar.model.problems.problems import ProblemAction, ProblemKind, RepairRequest
from blazar.model.problems.troubles import CloudFinding
from blazar.store.sql.engine import WRITES, make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.sql.tables import events
from tests.conftest import fresh_database
from tests.openstack import eventually
from tests.oracle import check_at_rest
from tests.people import PeopledCloud
from tests.world import World, a_host, servers

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

EVERY = int(os.environ.get("BLAZAR_GUARD_EVERY", "3"))
TTL = timedelta(seconds=4)
SETTINGS = Settings(
    claim_ttl=TTL,
    promises=0,
    recheck_interval=timedelta(milliseconds=200),
    first_retry=timedelta(milliseconds=200),
    longest_sleep=timedelta(milliseconds=200),
    before_end_lead=timedelta(0),
    patience=timedelta(0),
)
REQUEST = RepairRequest("ticket 4711", dry_run=False)
ROOMS = {"host": lambda: a_host(2), "servers": lambda: servers(2)}


def a_manager(url: str, folder: Path, *, register: bool = False) -> World:
    """Return a world on a database and a cloud that other processes have, too."""
    storage = FileStorage(folder / "cloud.json", of_size(3))
    cloud = PeopledCloud(storage, clock=SystemClock())
    made = World(make_engine(url), clock=SystemClock(), cloud=cloud, settings=SETTINGS, register=register)
    made.manager.drift.pause = 0
    return made


def hold(url: str, folder: Path, number: int, phase: str, mends: str | None) -> None:
    """Be the manager that stands still at a changing call of a number, before or after it; write what it changes.

    It mends a lease, or does what is due.
    """
    world = a_manager(url, folder)
    left = [number]

    def stop(call: str, at: str) -> None:
        if not is_change(call):
            return
        if at == "after":
            with (folder / "effects").open("a", encoding="utf-8") as file:
                file.write(f"{call}\n")
        if at == phase:
            left[0] -= 1
            if left[0] == 0:
                # It is stopped from outside, where nobody in it has the lock of the cloud's file.
                (folder / "there").touch()
                eventually((folder / "go on").exists, patience=120)

    world.faults.on_call = stop
    if mends is None:
        world.manager.start()
    else:
        mend(world, mends)
    time.sleep(3600)


def mend(world: World, lease_id: str) -> tuple[str, ...]:
    """Do what an operator does about a lease that has not in the cloud what it has by the books."""
    return world.manager.drift.mend(a_finding(world, world.now_of(lease_id), ProblemKind.DRIFT), REQUEST)


def a_finding(world: World, lease: Lease, kind: ProblemKind) -> CloudFinding:
    reservation, now = lease.reservations[0], world.clock.now()
    return CloudFinding(kind, "", reservation.id, reservation.resource_type, now, now, lease.id, "x")


def effects(folder: Path) -> list[str]:
    """Return the changing calls of the first manager that have taken effect."""
    file = folder / "effects"
    return file.read_text("utf-8").splitlines() if file.exists() else []


def stands_still(pid: int) -> bool:
    """Tell whether a process is stopped."""
    return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] in "Tt"


@dataclass
class Scene:
    """A lease whose start, end, mending or clean-up the first manager is in the middle of."""

    world: World
    folder: Path
    lease: Lease
    what: str
    url: str

    @property
    def event(self) -> Event:
        """The event that is worked on."""
        found = self.world.now(self.lease).events
        return next(event for event in found if event.claimed_by is not None)

    def act(self, action: ProblemAction, event_id: str | None) -> Any:
        """Do what an operator does about it."""
        problems = self.world.manager.problems
        if action is ProblemAction.MEND:
            return mend(self.world, self.lease.id)
        if action is ProblemAction.END and self.what == "leftover":
            return problems.ends.end_leftover(a_finding(self.world, self.lease, ProblemKind.LEFTOVER), REQUEST)
        if action is ProblemAction.END:
            return problems.ends.end_lease(self.lease.id, REQUEST)
        assert event_id is not None
        acts: dict[ProblemAction, Callable[..., Any]] = {
            ProblemAction.RETRY: problems.events.retry,
            ProblemAction.RELEASE: problems.events.release,
            ProblemAction.GIVE_UP: problems.events.give_up,
        }
        return acts[action](self.lease.id, event_id, REQUEST)

    @property
    def guarded(self) -> tuple[ProblemAction, ...]:
        """What is refused while somebody works."""
        return (*GUARDED, ProblemAction.END) if self.what == "leftover" else (*GUARDED, ProblemAction.MEND)

    @property
    def mends(self) -> str | None:
        """The lease that the first manager mends; None: it does what is due."""
        return self.lease.id if self.what == "mend" else None

    def begin(self) -> None:
        """Do here what the first manager does."""
        if self.mends is not None:
            mend(self.world, self.mends)
        self.finish()

    def finish(self) -> None:
        """Let this process do all that is due."""
        self.world.manager.engine.run_due()

    def is_at_rest(self) -> bool:
        """Tell whether nothing is being worked on."""
        self.finish()
        lease = self.world.store.leases.one(self.lease.id, including_deleted=True)
        busy = any(event.status is EventStatus.IN_PROGRESS for event in lease.events)
        return not busy and (lease.deleted_at is not None or lease.status in RESTING)


RESTING = (LeaseStatus.ACTIVE, LeaseStatus.TERMINATED, LeaseStatus.ERROR)
"""States in which a lease waits for nothing but its next date."""


def is_change(call: str) -> bool:
    """Tell whether a call changes the cloud; who only looks is refused it."""
    return call in CHANGES and not isinstance(current().fence, LookFence)


def prepare(url: str, folder: Path, what: str, room: str) -> Scene:
    """Return a scene in which the first manager has something to do."""
    world = a_manager(url, folder, register=True)
    lease = world.lease(ROOMS[room](), end=world.clock.now().replace(second=0, microsecond=0) + timedelta(hours=1))
    scene = Scene(world, folder, lease, what, url)
    if what != "start":
        eventually(scene.is_at_rest)
        assert world.now(lease).status is LeaseStatus.ACTIVE
    if what == "end":
        world.change(lease, end=NOW)
    if what == "mend":
        take_away(world, lease)
    if what == "leftover":
        leave_something(scene)
    return scene


def take_away(world: World, lease: Lease) -> None:
    """Move the hosts of a lease by hand back to the freepool."""
    cloud, mark = world.simulated.compute, lease.reservations[0].id
    for host in cloud.aggregate(mark).hosts:
        cloud.remove_host(cloud.aggregate(mark).id, host)
        cloud.add_host(cloud.aggregate("freepool").id, host)


def leave_something(scene: Scene) -> None:
    """Let a lease end, bring a part of what it had back by hand, and have it ended as an operator does."""
    world, cloud = scene.world, scene.world.simulated.compute
    world.change(scene.lease, end=NOW)
    eventually(scene.is_at_rest)
    made = cloud.create_aggregate(scene.lease.reservations[0].id, None, {})
    host = sorted(cloud.aggregate("freepool").hosts)[0]
    cloud.remove_host(cloud.aggregate("freepool").id, host)
    cloud.add_host(made.id, host)
    scene.act(ProblemAction.END, None)


def count_calls(url: str, folder: Path, what: str, room: str) -> int:
    """Return how many changing calls the first manager makes, where nothing holds it up."""
    scene = prepare(url, folder, what, room)
    calls: list[str] = []

    def count(call: str, at: str) -> None:
        if at == "before" and is_change(call):
            calls.append(call)

    scene.world.faults.on_call = count
    scene.begin()
    eventually(scene.is_at_rest)
    return len(calls)


STORIES = [
    ("start", "host"),
    ("start", "servers"),
    ("end", "host"),
    ("end", "servers"),
    ("mend", "host"),
    ("leftover", "host"),
]
PARTS = 4
"""Of how many parts, each with some of the points of a story, one is tried with each change."""

GUARDED = (ProblemAction.RETRY, ProblemAction.GIVE_UP)
"""What is refused while somebody works, with what would do the same; a release, too, unless a claim lasts too long.

The end of a lease waits for its turn.
"""

ACTIONS = (*GUARDED, ProblemAction.MEND, ProblemAction.RELEASE, ProblemAction.END)


@pytest.fixture
def databases(tmp_path: Path) -> Iterator[Callable[[str], tuple[str, Path]]]:
    """Make a database and a folder for a cloud, by name."""
    made: list[Any] = []

    def make(name: str) -> tuple[str, Path]:
        folder = tmp_path / name
        folder.mkdir()
        source = fresh_database("postgresql", folder)
        url = next(source)
        made.append(source)
        engine = make_engine(url)
        upgrade(engine)
        engine.dispose()
        return url, folder

    yield make
    for source in made:
        next(source, None)


@pytest.mark.share(PARTS)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("what", "room"), STORIES, ids=str)
def test_nothing_happens_twice_whatever_an_operator_does_while_the_holder_stands_still(databases, what, room, part):
    calls = count_calls(*databases("whole"), what, room)
    assert calls > 1
    points = [(number, phase) for number in range(1, calls + 1) for phase in ("before", "after")]
    # A clean-up has few of them.
    every = 1 if what == "leftover" else EVERY
    for turn, (number, phase) in list(enumerate(points))[::every][part::PARTS]:
        action = ACTIONS[turn // every % len(ACTIONS)]
        where = f"{action} at call {number}, {phase} it"
        scene = prepare(*databases(f"point-{turn}"), what, room)
        holder = multiprocessing.get_context("spawn").Process(
            target=hold, args=(scene.url, scene.folder, number, phase, scene.mends), daemon=True
        )
        holder.start()
        try:
            assert holder.pid is not None
            eventually((scene.folder / "there").exists, patience=60)
            with scene.world.simulated.inspect():
                os.kill(holder.pid, signal.SIGSTOP)
                eventually(lambda pid=holder.pid: stands_still(pid))
            (scene.folder / "go on").touch()
            check_scene(scene, holder.pid, action, where)
        finally:
            holder.kill()
            holder.join()
            scene.world.engine.dispose()


def check_scene(scene: Scene, pid: int, action: ProblemAction, where: str) -> None:
    """Act while the holder has its claim, act when that has ended, let the holder go on, and look at the cloud."""
    event = scene.event
    if action is ProblemAction.RELEASE:
        last_for_hours(scene, event)
    for guarded in scene.guarded if action is ProblemAction.RELEASE else (*scene.guarded, ProblemAction.RELEASE):
        try:
            said = scene.act(guarded, event.id)
        except (Conflict, WrongState):
            continue
        raise AssertionError(f"{where}: {guarded} is not refused: {said}")
    done = effects(scene.folder)
    if action is ProblemAction.RELEASE:
        scene.act(action, event.id)
    # Nobody renews it: others may take the event over.
    eventually(lambda: claim_has_ended(scene, event), patience=30)
    if action is not ProblemAction.RELEASE:
        try:
            scene.act(action, event.id)
        except (Conflict, WrongState, NotFound):
            assert action is not ProblemAction.RETRY, where
    eventually(scene.is_at_rest, patience=30)
    before = scene.world.simulated.compute, contents(scene)
    os.kill(pid, signal.SIGCONT)
    eventually(lambda: not stands_still(pid))
    # Long enough for all that it had still to do.
    time.sleep(2)
    eventually(scene.is_at_rest, patience=30)
    assert effects(scene.folder) in (done, done), f"{where}: the first manager has changed something afterwards"
    assert contents(scene) == before[1], where
    finish_what_was_given_up(scene)
    if scene.world.store.leases.one(scene.lease.id, including_deleted=True).status is not LeaseStatus.ERROR:
        check_at_rest(scene.world.store, scene.world.simulated, now=scene.world.clock.now())


def finish_what_was_given_up(scene: Scene) -> None:
    """Do what is left to managers and operators: clean-ups of what was given up, and what was not mended."""
    lease = scene.world.now(scene.lease)
    if scene.mends is not None and lease.status is LeaseStatus.ACTIVE:
        mend(scene.world, scene.mends)
    if scene.what == "leftover":
        scene.act(ProblemAction.END, None)
    for sweep in scene.world.manager.sweeps:
        sweep.run_once()
    eventually(scene.is_at_rest, patience=30)


def contents(scene: Scene) -> Any:
    with scene.world.simulated.inspect() as state:
        return json.loads(state.to_text())


def claim_has_ended(scene: Scene, event: Event) -> bool:
    found = scene.world.store.leases.one(scene.lease.id, including_deleted=True).event_with(event.id)
    return found is None or found.due_at is None or found.due_at <= scene.world.clock.now()


def last_for_hours(scene: Scene, event: Event) -> None:
    """Let a claim last as if a clock had been wrong when it was written."""
    with scene.world.engine.execution_options(**{WRITES: True}).begin() as connection:
        later = scene.world.clock.now() + timedelta(hours=9)
        connection.execute(sa.update(events).where(events.c.id == event.id).values(due_at=later))
