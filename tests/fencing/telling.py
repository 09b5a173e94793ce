# SPDX-License-Identifier: Apache-2.0
"""Tell a story: let the manager stand still at a call, let others go on, and check what it touches afterwards."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from blazar.model.base.errors import BlazarError, NotFound
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import KINDS
from tests.fencing.stage import BESIDE, MINUTE, OFFERED, OTHERS, PAUSE, Photo, Stage, Template, Turn, staged
from tests.fencing.stories import Story
from tests.oracle import ADDRESS, BESIDE_HOSTS, NETWORK, PHYSICAL_HOST, SERVER, VOLUME, check_at_rest
from tests.world import NOON, a_host, a_network, addresses, devices, instances, things, volumes


def next_rooms(story: Story, cross: bool) -> list[ReservationRequest]:
    """Return what the next lease asks for: all that the lease before might have, as its own type, or by the other."""
    kind = story.rooms().resource_type
    if kind == ADDRESS:
        return [addresses(2)]
    if kind == NETWORK:
        return [a_network(), a_network()]
    if kind == VOLUME:
        return [volumes(3, size=10)]
    if kind == "generic":
        return [things(2)]
    if kind == "device":
        return [devices(2)]
    if (kind == PHYSICAL_HOST) != cross:
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
    story.unharmed(stage)
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
    assert booted or stage.next.reservations[0].resource_type in BESIDE_HOSTS


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
            r.resource_type not in (PHYSICAL_HOST, SERVER, *BESIDE_HOSTS) for r in lease.reservations
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
    assert not any(stage.store.calendar.load_live(kind) for kind in KINDS)


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
