# SPDX-License-Identifier: Apache-2.0
"""A manager that stands still in the middle of its work, while others go on: what it may touch when it wakes up.

A ``Stage`` has two managers. The first one works on the lease of project ``physics`` until, at a certain call to the
cloud, it stands still for one and a half times ``claim_ttl``: the clock goes on, and the second manager takes over and
finishes. Then, by the story's turn, nothing else happens, or the lease reaches its end, or is deleted, and a lease of
project ``chemistry`` starts on the same hosts or addresses, and has servers there. Then the first manager wakes up.
"""

from __future__ import annotations

import copy
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy.engine import Engine

from blazar.clouds.ports import Flavor
from blazar.clouds.simulated import MemoryStorage, SimulatedCloud, State, of_size
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService
from blazar.model.errors import BlazarError, NotFound, StoreUnavailable
from blazar.model.lease import EventType, Lease, LeaseStatus
from blazar.model.requests import LeaseChange, ReservationChange, ReservationRequest
from blazar.model.resource import ResourceKind
from blazar.resources.floating_ips.registration import mark
from blazar.store.store import Store
from tests.observed import ObservedStore
from tests.oracle import ADDRESS, HOST, check_at_rest
from tests.tables import new_sqlite, sqlite_engine
from tests.world import NOON, ManualClock, World, a_host, addresses, flavored, instances

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


class Stage:
    """Three registered hosts, one of them in the use of others all the time, and an open one."""

    def __init__(self, template: Template) -> None:
        self.clock = ManualClock(template.instant)
        self.engine = template.engine
        cloud = SimulatedCloud(MemoryStorage(copy.deepcopy(template.state)), clock=self.clock)
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
        """Boot servers wherever an active lease lets its project, or attach an address; return the servers' ids."""
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
                    for found in self.cloud.network.floating_ips(tag=mark(reservation.id))[:1]:
                        self.cloud.users.attach(found.id)
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
        return Photo(servers, hosts, access, {a: (p, port) for a, (p, port) in found.items() if p in projects})


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
    """Return a stage before the curtain: hosts and addresses registered, one host in use by others."""
    database = folder / "template.sqlite"
    engine = new_sqlite(database)
    world = World(engine, hosts=3, state=of_size(4), settings=SETTINGS)
    world.register_addresses(10, 11)
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


@dataclass(frozen=True, slots=True)
class Story:
    """What the first manager does, and to what.

    ``set_up`` brings the stage to the moment before, ``act`` is what is interrupted, and ``expect`` checks the lease
    at the end of the turn TAKEN_OVER. ``ends`` is the end of the lease after noon in the turn ENDS.
    """

    name: str
    rooms: Callable[[], ReservationRequest]
    set_up: Callable[[Stage, datetime], None]
    act: Callable[[Stage], object]
    expect: Callable[[Stage], None]
    turns: tuple[Turn, ...] = (Turn.TAKEN_OVER, Turn.ENDS, Turn.DELETED)
    ends: timedelta = 3 * MINUTE
    meanwhile: Callable[[Stage], None] = field(default=lambda stage: None)


def next_rooms(story: Story, cross: bool) -> list[ReservationRequest]:
    """Return what the next lease asks for: all that the lease before might have, as its own type, or by the other."""
    kind = story.rooms().resource_type
    if kind == ADDRESS:
        return [addresses(2)]
    if (kind == HOST) != cross:
        return [a_host(2)]
    return [instances(2, vcpus=9, affinity=False)]


def begin(story: Story, stage: Stage, turn: Turn, *, cross: bool) -> None:
    """Bring a stage to the moment before the manager acts; the next lease is booked where it follows by the clock."""
    end = NOON + (story.ends if turn is Turn.ENDS else timedelta(hours=5))
    if turn is Turn.ENDS:
        rooms = next_rooms(story, cross)
        stage.next = stage.now_of(stage.book(OTHERS, *rooms, start=end, end=end + timedelta(hours=9)))
    story.set_up(stage, end)


def calls_of(story: Story, stage: Stage, turn: Turn, *, cross: bool = False) -> list[str]:
    """Return the calls that the manager makes to the cloud in a story where it does not stand still."""
    begin(story, stage, turn, cross=cross)
    calls: list[str] = []
    stage.world.faults.on_call = lambda name, phase: calls.append(name) if phase == "before" else None
    try:
        story.act(stage)
    finally:
        stage.world.faults.on_call = None
    return calls


def tell(
    story: Story, stage: Stage, turn: Turn, at: tuple[int, str], *, cross: bool = False, away: bool = False
) -> bool:
    """Tell a story in which the manager stands still at a call; tell whether it came to that call.

    ``cross``: the next lease is of another type. ``away``: it does not stand still, but has no database all the while,
    and none until what it does is over.
    """
    begin(story, stage, turn, cross=cross)
    mine = stage.photo("physics")
    came = []
    number = [0]

    def strike(name: str, phase: str) -> None:
        if phase == "before":
            number[0] += 1
        if (number[0], phase) != at:
            return
        stage.world.faults.on_call = None
        came.append(name)
        pass_time(story, stage, turn, cross=cross)
        stage.notes["others"] = stage.photo(OTHERS, BESIDE)
        stage.database.away = away

    stage.world.faults.on_call = strike
    answer: object = None
    try:
        answer = story.act(stage)
    except BlazarError as error:
        stage.notes["error"] = error
    finally:
        stage.world.faults.on_call = None
        stage.database.away = False
    if not came:
        return False
    stage.notes["answer"] = answer
    check_untouched(stage)
    both = (stage.first, stage.second)
    for _ in range(3):
        for manager in both:
            stage.run(manager, stage.clock.now() + MINUTE)
        check_untouched(stage)
    sweep(stage)
    check_untouched(stage)
    check_at_rest(stage.store, stage.cloud, now=stage.clock.now(), offered=OFFERED)
    check_lease(story, stage, turn, mine)
    check_usable(stage)
    check_all_returns(stage)
    return True


def pass_time(story: Story, stage: Stage, turn: Turn, *, cross: bool) -> None:
    """Be what happens while a manager stands still."""
    stage.run(stage.second, stage.clock.now() + PAUSE)
    story.meanwhile(stage)
    if turn in (Turn.DELETED, Turn.GONE) and stage.lease is not None:
        with suppress(NotFound):
            stage.second.leases.delete(stage.lease.id)
        stage.run(stage.second, stage.clock.now() + MINUTE)
    if turn is Turn.DELETED:
        now = stage.clock.now().replace(second=0, microsecond=0) + MINUTE
        rooms = next_rooms(story, cross)
        stage.next = stage.now_of(stage.book(OTHERS, *rooms, start=now, end=now + timedelta(hours=9)))
    if stage.next is None:
        return
    for _ in range(20):
        if stage.now_of(stage.next.id).status is LeaseStatus.ACTIVE:
            break
        stage.run(stage.second, stage.clock.now() + MINUTE)
    stage.next = stage.now_of(stage.next.id)
    assert stage.next.status is LeaseStatus.ACTIVE, f"the next lease does not start: {stage.next.events}"
    booted = stage.use(stage.next)
    assert booted or stage.next.reservations[0].resource_type == ADDRESS


def check_untouched(stage: Stage) -> None:
    """Check that others have what they had."""
    now = stage.photo(OTHERS, BESIDE)
    before = stage.notes["others"]
    lost = before.servers.keys() - now.servers.keys()
    assert not lost, f"servers of another lease were deleted: {lost}"
    assert now == before, f"something of another lease was touched: {before} became {now}"


def sweep(stage: Stage) -> None:
    """Have whatever is left over found and ended, by either manager."""
    for manager in (stage.first, stage.second):
        manager.sweep.run_once()
        stage.run(manager, stage.clock.now() + MINUTE)


def check_lease(story: Story, stage: Stage, turn: Turn, mine: Photo) -> None:
    """Check that the lease itself is as it should be, and that its users lost nothing while it goes on."""
    if turn is Turn.TAKEN_OVER:
        story.expect(stage)
    elif stage.lease is not None:
        lease = stage.now_of(stage.lease.id)
        gone = lease.deleted_at is not None
        assert gone or (turn is Turn.ENDS and lease.status is LeaseStatus.TERMINATED), lease.status
    lease = stage.now_of(stage.lease.id) if stage.lease is not None else None
    if lease is not None and lease.deleted_at is None and lease.status is LeaseStatus.ACTIVE:
        lost = mine.servers.keys() - stage.photo("physics").servers.keys()
        assert not lost, f"servers of a lease that goes on were deleted: {lost}"


def check_usable(stage: Stage) -> None:
    """Check that each project with an active lease with room for a server can boot one."""
    for lease in stage.store.leases.of_project(None):
        if lease.status is LeaseStatus.ACTIVE and all(
            r.resource_type not in (HOST, ADDRESS) for r in lease.reservations
        ):
            has = [s for s in stage.cloud.operators.list_servers() if s.project_id == lease.project_id]
            room = sum(a.count for a in stage.store.calendar.of_lease(lease.id))
            assert len(stage.use(lease)) == room - len(has), "the users of an active lease cannot boot servers"


def check_all_returns(stage: Stage) -> None:
    """Check that all is free for others when every lease has been deleted."""
    for lease in stage.store.leases.of_project(None):
        stage.second.leases.delete(lease.id)
    stage.run(stage.second, stage.clock.now() + 5 * MINUTE)
    assert stage.store.leases.of_project(None) == ()
    check_at_rest(stage.store, stage.cloud, now=stage.clock.now(), offered=OFFERED)
    assert not any(stage.store.calendar.live(kind) for kind in ResourceKind)


# The stories


def lease_of(stage: Stage) -> Lease:
    """Return the lease of the story as it is by now."""
    assert stage.lease is not None
    return stage.now_of(stage.lease.id)


def create(stage: Stage, rooms: ReservationRequest, end: datetime, *, start: datetime = NOON, **more: Any) -> None:
    """Let the first manager create the lease of the story."""
    stage.lease = stage.world.lease(rooms, start=start, end=end, **more)


def started(stage: Stage, rooms: ReservationRequest, end: datetime, *, most: int = 1, **more: Any) -> None:
    """Have the lease of the story in use, with servers."""
    create(stage, rooms, end, **more)
    stage.run(stage.first, stage.clock.now())
    stage.use(lease_of(stage), most=most)


def is_(*statuses: LeaseStatus) -> Callable[[Stage], None]:
    """Return a check that the lease is in one of these."""

    def check(stage: Stage) -> None:
        assert lease_of(stage).status in statuses, lease_of(stage)

    return check


def is_gone(stage: Stage) -> None:
    """Check that the lease was deleted."""
    assert lease_of(stage).deleted_at is not None


def _created(rooms: Callable[[], ReservationRequest]) -> Story:
    def set_up(stage: Stage, end: datetime) -> None:
        stage.notes["end"] = end

    def act(stage: Stage) -> object:
        stage.clock.to(NOON)
        try:
            return stage.world.lease(rooms(), start=NOON + MINUTE, end=stage.notes["end"])
        finally:
            found = [lease for lease in stage.store.leases.past() if lease.project_id == "physics"]
            found += [lease for lease in stage.store.leases.of_project(None) if lease.project_id == "physics"]
            stage.lease = found[0] if found else None

    def expect(stage: Stage) -> None:
        # What is answered is true: a lease that is there, or an error and none.
        answer = stage.notes["answer"]
        there = [lease for lease in stage.store.leases.of_project(None) if lease.project_id == "physics"]
        assert [lease.id for lease in there] == ([answer.id] if answer is not None else []), (answer, there)

    # Nobody has been told of its id, so that nobody can delete it.
    return Story("create", rooms, set_up, act, expect, turns=(Turn.TAKEN_OVER, Turn.ENDS))


def _event(
    name: str,
    rooms: Callable[[], ReservationRequest],
    kind: EventType,
    status: LeaseStatus,
    **more: Any,
) -> Story:
    """An event of the timetable, which falls due at the time it has in set_up."""

    def set_up(stage: Stage, end: datetime) -> None:
        match kind:
            case EventType.START:
                create(stage, rooms(), end)
            case EventType.END:
                started(stage, rooms(), NOON + MINUTE if end > NOON + timedelta(hours=1) else end)
            case EventType.BEFORE_END:
                started(stage, rooms(), end, before_end=NOON + MINUTE)

    def act(stage: Stage) -> object:
        event = lease_of(stage).event(kind)
        assert event is not None
        assert event.time is not None
        return stage.run(stage.first, event.time)

    def expect(stage: Stage) -> None:
        is_(status)(stage)
        if name == "snapshot":
            names = [image.metadata["blazar:server"] for image in stage.cloud.operators.images()]
            assert sorted(names) == sorted(stage.photo("physics").servers), "not one image of every server"

    return Story(name, rooms, set_up, act, expect, **more)


def _deleted(rooms: Callable[[], ReservationRequest]) -> Story:
    def set_up(stage: Stage, end: datetime) -> None:
        started(stage, rooms(), end)

    def act(stage: Stage) -> object:
        return stage.first.leases.delete(lease_of(stage).id)

    return Story("delete", rooms, set_up, act, is_gone)


def _changed(
    name: str,
    rooms: Callable[[], ReservationRequest],
    *,
    before_the_start: bool = False,
    ends: timedelta = 3 * MINUTE,
    **parameters: Any,
) -> Story:
    def set_up(stage: Stage, end: datetime) -> None:
        if before_the_start:
            create(stage, rooms(), end, start=NOON + MINUTE)
        else:
            started(stage, rooms(), end)
        stage.notes["before"] = dict(lease_of(stage).reservations[0].parameters.values)

    def act(stage: Stage) -> object:
        change = ReservationChange(lease_of(stage).reservations[0].id, parameters)
        return stage.first.leases.update(lease_of(stage).id, LeaseChange(reservations=(change,)))

    def expect(stage: Stage) -> None:
        is_(LeaseStatus.ACTIVE)(stage)
        now = dict(lease_of(stage).reservations[0].parameters.values)
        if stage.notes["answer"] is not None:
            assert all(now[key] == value for key, value in parameters.items()), "a change that was granted is gone"
        elif not before_the_start:
            assert now == stage.notes["before"], "a change that was refused was made"

    return Story(name, rooms, set_up, act, expect, ends=ends)


def _healed(name: str, rooms: Callable[[], ReservationRequest]) -> Story:
    """A host of a lease in use fails without servers on it, and others take its place; or an operator moves it."""

    def set_up(stage: Stage, end: datetime) -> None:
        create(stage, rooms(), end)
        stage.run(stage.first, stage.clock.now())
        (stage.notes["host"],) = stage.world.hosts_of(lease_of(stage))
        if name == "heal":
            stage.cloud.operators.host_down(stage.notes["host"])
            hosts = {host.name: host.id for host in stage.first.resources.all(HOST)}
            stage.store.resources.set_failed(
                ResourceKind.HOST, {hosts[stage.notes["host"]]: "down"}, at=stage.clock.now()
            )

    def act(stage: Stage) -> object:
        if name == "heal":
            return stage.first.monitor.heal()
        host = next(host for host in stage.first.resources.all(HOST) if host.name == stage.notes["host"])
        return stage.first.resources.move(ResourceKind.HOST, host.external_id, lease_of(stage).reservations[0].id)

    def meanwhile(stage: Stage) -> None:
        if name == "heal":
            stage.cloud.operators.host_up(stage.notes["host"])
            hosts = {host.name: host.id for host in stage.first.resources.all(HOST)}
            stage.store.resources.set_recovered(ResourceKind.HOST, [hosts[stage.notes["host"]]], at=stage.clock.now())

    return Story(name, rooms, set_up, act, is_(LeaseStatus.ACTIVE), meanwhile=meanwhile)


ROOMS: dict[str, Callable[..., ReservationRequest]] = {
    "hosts": a_host,
    "instances": lambda amount=2, **more: instances(amount, vcpus=4, **{"affinity": True, **more}),
    "flavors": lambda amount=2, **more: flavored(amount, "small", **{"affinity": True, **more}),
    "addresses": addresses,
}
"""A reservation of every type, by a name for the tests."""


def stories() -> dict[str, Story]:
    """Return every story, by type and name."""
    found: dict[str, Story] = {}
    for kind, rooms in ROOMS.items():
        slots = kind in ("instances", "flavors")
        told = [
            _created(rooms),
            _event("start", rooms, EventType.START, LeaseStatus.ACTIVE),
            _event("end", rooms, EventType.END, LeaseStatus.TERMINATED),
            _deleted(rooms),
        ]
        if kind == "hosts":
            told += [
                _changed("grow", rooms, min=2, max=2),
                _healed("heal", rooms),
                _healed("move", rooms),
                _event("migration", lambda: a_host(before_end="migration"), EventType.BEFORE_END, LeaseStatus.ACTIVE),
            ]
        elif slots:
            apart = lambda rooms=rooms: rooms(1, affinity=False)  # noqa: E731
            told += [
                _changed("grow", rooms, amount=3),
                _changed("grow to another host", apart, amount=2),
                _changed("shrink", lambda rooms=rooms: rooms(3), amount=1),
                _healed("heal", lambda rooms=rooms: rooms(1)),
                _healed("move", lambda rooms=rooms: rooms(1)),
            ]
            larger = {"vcpus": 6} if kind == "instances" else {"flavor_id": "large"}
            told += [_changed("change before the start", rooms, before_the_start=True, **larger)]
        else:
            told += [
                _changed("grow", rooms, amount=2),
                _changed("shrink", lambda: addresses(2), amount=1),
            ]
        if kind != "addresses":
            saved = lambda rooms=rooms: rooms(before_end="snapshot")  # noqa: E731
            told.append(_event("snapshot", saved, EventType.BEFORE_END, LeaseStatus.ACTIVE))
        else:
            # The next user of the address keeps it from being made once more.
            told = [replace(story, turns=(*story.turns, Turn.GONE)) for story in told]
        found |= {f"{kind}: {story.name}": story for story in told}
    return found


STORIES = stories()


def staged(made: Template) -> Stage:
    """Return a fresh stage."""
    made.restore()
    return Stage(made)


def walk(
    story: Story, made: Template, turn: Turn, *, cross: bool = False, away: bool = False, every: int = 1
) -> tuple[int, list[str]]:
    """Tell a story once for each call and phase (or each so-manieth); return how often, and what went wrong."""
    calls = calls_of(story, staged(made), turn, cross=cross)
    points = [(number, phase) for number in range(1, len(calls) + 1) for phase in ("before", "after")][::every]
    wrong = []
    for at in points:
        try:
            if not tell(story, staged(made), turn, at, cross=cross, away=away):
                wrong.append(f"{at}: it did not come to that call")
        except AssertionError as error:
            wrong.append(f"{at[1]} call {at[0]} ({calls[at[0] - 1]}): {str(error).splitlines()[0]}")
    return len(points), wrong
