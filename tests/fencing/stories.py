# SPDX-License-Identifier: Apache-2.0
"""What a manager does that may stand still: a story of every type of reservation for every step of its life."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from blazar.manager.leases import lifecycle
from blazar.model.base.moments import NOW, Moment
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, ReservationChange, ReservationRequest
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from tests.conformance.sites import PUBLIC_KEY
from tests.fencing.stage import MINUTE, Stage, Turn
from tests.oracle import STACK
from tests.world import (
    NOON,
    a_host,
    a_network,
    addresses,
    devices,
    flavored,
    instances,
    servers,
    stacks,
    things,
    volumes,
)


@dataclass(frozen=True, slots=True)
class Story:
    """What the first manager does, and to what.

    ``set_up`` brings the stage to the moment before, ``act`` is what is interrupted, and ``expect`` checks the lease
    at the end of the turn TAKEN_OVER. ``ends`` is the end of the lease after noon in the turn ENDS. ``unharmed`` checks
    at the end of every turn what nobody else has a lease for.
    """

    name: str
    rooms: Callable[[], ReservationRequest]
    set_up: Callable[[Stage, datetime], None]
    act: Callable[[Stage], object]
    expect: Callable[[Stage], None]
    turns: tuple[Turn, ...] = (Turn.TAKEN_OVER, Turn.ENDS, Turn.DELETED)
    ends: timedelta = 3 * MINUTE
    meanwhile: Callable[[Stage], None] = field(default=lambda stage: None)
    unharmed: Callable[[Stage], None] = field(default=lambda stage: None)


def lease_of(stage: Stage) -> Lease:
    """Return the lease of the story as it is by now."""
    assert stage.lease is not None
    return stage.now_of(stage.lease.id)


def create(stage: Stage, rooms: ReservationRequest, end: datetime, *, start: Moment = NOON, **more: Any) -> None:
    """Let the first manager create the lease of the story."""
    stage.lease = stage.world.lease(rooms, start=start, end=end, **more)


def started(stage: Stage, rooms: ReservationRequest, end: datetime, *, most: int = 1, **more: Any) -> None:
    """Have the lease of the story in use, with servers."""
    create(stage, rooms, end, **more)
    stage.run(stage.first, stage.clock.now())
    if rooms.resource_type == STACK:
        # It is looked at again when it may be complete.
        stage.run(stage.first, stage.clock.now() + timedelta(seconds=3))
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
            found = [lease for lease in stage.store.leases.load_past() if lease.project_id == "physics"]
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
            stage.store.resource_health.set_failed(HOST, {hosts[stage.notes["host"]]: "down"}, at=stage.clock.now())

    def act(stage: Stage) -> object:
        if name == "heal":
            return stage.first.monitor.heal()
        host = next(host for host in stage.first.resources.all(HOST) if host.name == stage.notes["host"])
        return stage.first.resources.move(HOST, host.external_id, lease_of(stage).reservations[0].id)

    def meanwhile(stage: Stage) -> None:
        if name == "heal":
            stage.cloud.operators.host_up(stage.notes["host"])
            hosts = {host.name: host.id for host in stage.first.resources.all(HOST)}
            stage.store.resource_health.set_recovered(HOST, [hosts[stage.notes["host"]]], at=stage.clock.now())

    return Story(name, rooms, set_up, act, is_(LeaseStatus.ACTIVE), meanwhile=meanwhile)


def _emptied() -> Story:
    """Servers of others are moved off a host for a lease that gets it, with the other free ones."""

    def set_up(stage: Stage, end: datetime) -> None:
        stage.cloud.durations.migration = timedelta(seconds=10)
        stage.second.resources.register(HOST, Registration({"name": EMPTIED, "evacuable": True}))
        stage.notes["servers"] = [
            stage.cloud.users.boot_server("work", project_id="bystanders", user_id="u", host=EMPTIED, **more).id
            for more in ({}, {"status": "SHUTOFF"}, {}, {})
        ]
        create(stage, a_host(3), end, start=NOW, kind=LeaseKind.BEST_EFFORT)

    def act(stage: Stage) -> object:
        return stage.run(stage.first, NOON + 2 * MINUTE)

    def unharmed(stage: Stage) -> None:
        lease = lease_of(stage)
        room = lease.event(EventType.EVACUATE)
        over = [at for at in (lease.deleted_at, room.updated_at if lifecycle.is_over(room) else None) if at is not None]
        with stage.cloud.inspect() as state:
            now = stage.clock.now()
            for server in (state.servers[id_] for id_ in stage.notes["servers"]):
                moves = [move for move in server.migrations if move.has_arrived(now)]
                assert not any(move.is_open(now) for move in server.migrations), "a move is not over"
                assert len(moves) <= 1, "a server was moved twice"
                assert server.status_at(now) in ("ACTIVE", "SHUTOFF"), server
                assert server.location(now) == (OPEN_TO_ALL if moves else EMPTIED), "a server is where none may be"
                begun = max((datetime.fromisoformat(move.asked_at) for move in server.migrations), default=NOON)
                assert begun <= min(over, default=now), "a server was moved when that was over"
        told = [server.id for project, servers in stage.world.notifier.moved for server in servers]
        assert len(told) == len(set(told)), "an owner was told twice"

    return Story("make room", a_host, set_up, act, is_(LeaseStatus.ACTIVE), unharmed=unharmed)


EMPTIED, OPEN_TO_ALL = "node-4", "node-5"
"""A host that is emptied for a lease, and one that Blazar does not know."""

ROOMS: dict[str, Callable[..., ReservationRequest]] = {
    "hosts": a_host,
    "instances": lambda amount=2, **more: instances(amount, vcpus=4, **{"affinity": True, **more}),
    "flavors": lambda amount=2, **more: flavored(amount, "small", **{"affinity": True, **more}),
    "servers": lambda amount=1, **more: servers(amount, **{"vcpus": 4, "public_key": PUBLIC_KEY, **more}),
    "stacks": lambda *flavors, **more: stacks(*(flavors or ("small", "small")), **more),
    "addresses": addresses,
    "networks": a_network,
    "things": things,
    "devices": devices,
    "volumes": lambda amount=2, **more: volumes(amount, **{"size": 5, **more}),
}
"""A reservation of every type, by a name for the tests."""

HOOKED = ("things", "devices")
"""Those that hooks give to users."""


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
        elif kind == "servers":
            told += [_changed("grow", rooms, amount=2)]
        elif kind in HOOKED:
            told += [_changed("grow", rooms, min=2, max=2)]
        elif kind == "volumes":
            # Before the start nothing of them is in the cloud.
            told = [*told[1:3], _changed("grow", rooms, amount=3, size=6)]
        elif kind == "addresses":
            told += [
                _changed("grow", rooms, amount=2),
                _changed("shrink", lambda: addresses(2), amount=1),
            ]
        if kind in ("hosts", "instances", "flavors"):
            saved = lambda rooms=rooms: rooms(before_end="snapshot")  # noqa: E731
            told.append(_event("snapshot", saved, EventType.BEFORE_END, LeaseStatus.ACTIVE))
        elif kind not in (*HOOKED, "servers", "stacks", "volumes"):
            # The next user of the address or segment keeps it from being made once more.
            told = [told[0], *(replace(story, turns=(*story.turns, Turn.GONE)) for story in told[1:])]
        found |= {f"{kind}: {story.name}": story for story in told}
    emptied = _emptied()
    return {**found, f"best effort: {emptied.name}": emptied}


STORIES = stories()
