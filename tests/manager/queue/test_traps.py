# SPDX-License-Identifier: Apache-2.0
"""What could go wrong on a waiting list when managers, requests and hosts meet at the worst moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from unittest.mock import patch

import pytest

from blazar.clouds.simulated import of_size
from blazar.enforcement import Question
from blazar.manager.changing.creation import Creation
from blazar.manager.waiting import queue_rounds
from blazar.model.base.clock import END_OF_TIME
from blazar.model.base.errors import Conflict, NotEnoughResources, OthersWait, UsageDenied
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import SwapRequest, Terms
from tests.copies import check_copies
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.surgery.steps import OPERATOR
from tests.statements import counted
from tests.world import NOON, World, a_host

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


class During(RecordingFilter):
    """A filter during whose first check of a project something happens; it may deny what it checks, too."""

    def __init__(self, project: str, *, denies: bool = False) -> None:
        super().__init__()
        self.project, self.denies = project, denies
        self.happens: Callable[[Question], object] | None = None
        self.checks = 0

    def check(self, question):
        if question.wanted.lease.project_id != self.project:
            return
        self.checks += 1
        happens, self.happens = self.happens, None
        if happens is not None:
            happens(question)
        if self.denies:
            raise UsageDenied("not now")


def full_world(engine, *filters, hosts=3, free=0) -> World:
    """Return a world whose hosts are in use for two hours, but for a few."""
    world = World(engine, hosts=hosts, filters=filters)
    world.waits = True
    world.full = world.lease(a_host(hosts - free), project="biology")
    world.run()
    return world


def waits(world: World, *reservations, project="physics", **more) -> Lease:
    lease = world.lease(*reservations, project=project, wait=DAY, **more)
    assert lease.status is LeaseStatus.WAITING
    world.clock.to(world.clock.now() + timedelta(seconds=1))
    return lease


def status(world: World, lease: Lease) -> LeaseStatus:
    return world.now(lease).status


def test_who_does_not_wait_cannot_take_what_is_free_before_the_next_plan(sqlite):
    world = full_world(sqlite)
    lease = waits(world, a_host(3))
    world.manager.leases.delete(world.full.id)
    with pytest.raises(OthersWait):
        world.lease(a_host(), project="chemistry")
    world.run()
    assert status(world, lease) is LeaseStatus.ACTIVE


def test_what_is_given_back_to_a_manager_that_dies_is_granted_by_another(sqlite):
    world = full_world(sqlite)
    lease = waits(world, a_host(3))
    world.run()
    world.manager.leases.delete(world.full.id)
    assert world.another_manager().waiting_list.run_once() == 1
    assert len(world.hosts_of(lease)) == 3


def test_what_is_given_back_while_a_plan_is_made_leads_to_another_plan(sqlite):
    slow = During("physics", denies=True)
    world = full_world(sqlite, slow, free=1)
    denied = world.lease(a_host(), project="chemistry", hours=1)
    first, other = waits(world, a_host()), waits(world, a_host(3), project="geology")
    world.run()
    slow.happens = lambda _: world.manager.leases.delete(world.full.id)
    world.manager.leases.delete(denied.id)
    assert world.manager.waiting_list.run_once() == 0
    assert world.manager.waiting_list.run_once() == 1
    assert [len(world.hosts_of(each)) for each in (first, other)] == [0, 3]


def test_what_is_given_back_is_not_hidden_by_a_new_lease(engine):
    """As many leases as before, with revisions as before, and a clock that says that nothing was deleted since."""
    world = World(engine)
    world.waits = True
    first, second = (world.lease(a_host(3), start=hours * HOUR, hours=1, project="biology") for hours in (1, 3))
    lease = waits(world, a_host(3), start=3 * HOUR, hours=1)
    world.manager.leases.delete(first.id)
    world.run()
    world.manager.waiting_list.run_once()
    before = world.store.waiting_list.load_state()
    assert before.seen == before.now_seen
    world.manager.leases.delete(second.id)
    world.lease(a_host(3), start=20 * DAY, hours=1, project="biology")
    after = world.store.waiting_list.load_state()
    assert after.now_seen != before.now_seen
    assert world.manager.waiting_list.run_once() == 1
    assert status(world, lease) is LeaseStatus.PENDING


def test_of_two_plans_made_of_the_same_state_one_is_carried_out(sqlite):
    slow = During("physics")
    world = full_world(sqlite, slow)
    leases = [waits(world, a_host(2)), waits(world, a_host(1), project="chemistry")]
    world.run()
    granted: list[int] = []
    slow.happens = lambda _: granted.append(world.another_manager().waiting_list.run_once())
    world.manager.leases.delete(world.full.id)
    granted.append(world.manager.waiting_list.run_once())
    assert granted == [2, 0]
    assert sum(len(world.hosts_of(each)) for each in leases) == 3


def test_a_plan_grants_nothing_more_once_another_was_carried_out(engine):
    """Between its two grants another manager plans, and does not grant the second one."""
    slow = During("chemistry")
    world = full_world(engine, slow)
    first, second = waits(world, a_host()), waits(world, a_host(), project="chemistry")
    world.run()
    world.manager.leases.delete(world.full.id)
    other, prepare, passes = world.another_manager(), Creation.prepare, []

    def then_plan(self, *arguments):
        prepared = prepare(self, *arguments)
        slow.denies = True
        passes.append(other.waiting_list.run_once())
        slow.denies = False
        return prepared

    with patch.object(Creation, "prepare", then_plan):
        assert (world.manager.waiting_list.run_once(), passes) == (1, [0])
    assert (len(world.hosts_of(first)), status(world, second)) == (1, LeaseStatus.WAITING)
    assert "not now" in (world.now(second).wait.reason or "")
    world.manager.leases.delete(first.id)
    world.run()
    assert status(world, second) is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_managers_that_plan_at_once_grant_each_lease_once(engine):
    world = full_world(engine)
    managers = [world.manager, world.another_manager()]
    for _ in range(3):
        leases = [waits(world, a_host(), project=f"p{n}") for n in range(3)]
        world.manager.leases.delete(world.full.id)
        ready = threading.Barrier(len(managers))
        granted: list[int] = []

        def plan(manager, ready=ready, granted=granted) -> None:
            ready.wait(10)
            granted.append(manager.waiting_list.run_once())

        threads = [threading.Thread(target=plan, args=(manager,)) for manager in managers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        world.run()
        assert sorted(host for each in leases for host in world.hosts_of(each)) == ["node-1", "node-2", "node-3"]
        for each in leases:
            world.manager.leases.delete(each.id)
        world.run()
        world.full = world.lease(a_host(3), project="biology")
        world.run()


@pytest.mark.slow
def test_a_turn_does_not_move_to_a_host_that_one_before_needs(sqlite):
    """The host that it was granted is lost before it is booked; the other free one is needed by the lease before it."""
    slow, rack = During("chemistry"), '["==", "$rack", "a"]'
    world = World(sqlite, hosts=0, state=of_size(4), filters=[slow])
    world.waits = True
    for number in (1, 2, 3):
        world.register(f"node-{number}", rack="a")
    world.register("node-4", rack="b")
    world.lease(a_host(2, needs=rack), project="biology")
    soon_over = world.lease(a_host(2), project="biology")
    large = waits(world, a_host(3, needs=rack), hours=1)
    small = waits(world, a_host(), project="chemistry", hours=9)
    world.run()

    def lose_it(question: Question) -> None:
        (allocated,) = question.wanted.allocated_resources
        assert allocated.resource.name == "node-4"
        world.store.resources.set_reservable(allocated.resource.id, False, at=world.clock.now())

    slow.happens = lose_it
    world.manager.leases.delete(soon_over.id)
    world.run()
    assert slow.happens is None
    world.run_to(NOON + 2 * HOUR)
    assert [status(world, each) for each in (large, small)] == [LeaseStatus.ACTIVE, LeaseStatus.WAITING]


def test_who_does_not_wait_keeps_to_what_nobody_needs_when_another_is_faster(sqlite):
    """The only host that it may have is booked while enforcement is asked; the free one is needed by who waits."""
    slow, rack = During("chemistry"), '["==", "$rack", "a"]'
    world = World(sqlite, hosts=0, state=of_size(4), filters=[slow])
    world.waits = True
    for number in (1, 2, 3):
        world.register(f"node-{number}", rack="a")
    world.register("node-4", rack="b")
    world.lease(a_host(2, needs=rack), project="biology")
    large = waits(world, a_host(3, needs=rack), hours=1)
    faster: list[Lease] = []
    slow.happens = lambda _: faster.append(world.lease(a_host(), hours=9, project="geology"))
    with pytest.raises(OthersWait):
        world.lease(a_host(), hours=9, project="chemistry")
    assert [world.hosts_of(each) for each in faster] == [{"node-4"}]
    world.run_to(NOON + 2 * HOUR)
    assert status(world, large) is LeaseStatus.ACTIVE


def test_one_that_is_denied_is_asked_about_once_for_each_change(sqlite):
    never = During("physics", denies=True)
    world = full_world(sqlite, never)
    lease = waits(world, a_host())
    world.manager.leases.delete(world.full.id)
    world.run()
    before = never.checks
    for _ in range(20):
        world.run()
    assert (status(world, lease), never.checks) == (LeaseStatus.WAITING, before)


@pytest.mark.slow
def test_one_that_cannot_be_booked_holds_up_nobody_and_is_not_tried_again_and_again(sqlite, monkeypatch):
    world, tries = full_world(sqlite), []

    def is_taken(_: object, lease: Lease) -> None:
        if lease.project_id == "physics":
            tries.append(world.clock.now())
            raise Conflict("there is a network with this name")

    lease = waits(world, a_host(3))
    behind = waits(world, a_host(3), project="chemistry", hours=1 / 20)
    world.manager.leases.delete(world.full.id)
    monkeypatch.setattr(queue_rounds, "check_names", is_taken)
    for _ in range(10):
        world.run()
    assert [status(world, each) for each in (lease, behind)] == [LeaseStatus.WAITING, LeaseStatus.ACTIVE]
    assert (len(tries), world.now(lease).wait.reason) == (1, "there is a network with this name")
    world.run_to(NOON + HOUR / 4)
    assert len(tries) == 2
    monkeypatch.undo()
    world.run_to(NOON + HOUR / 2)
    assert status(world, lease) is LeaseStatus.ACTIVE


def test_where_all_is_in_use_for_ever_it_is_told_and_nothing_is_estimated(sqlite):
    world = World(sqlite)
    world.waits = True
    world.lease(a_host(3), project="biology", end=END_OF_TIME)
    lease = waits(world, a_host())
    world.run()
    found = world.now(lease).wait
    assert found.estimate is None
    assert found.reason


@pytest.mark.slow
def test_no_change_of_a_lease_takes_what_one_that_waits_needs(sqlite):
    world = full_world(sqlite, free=1)
    waiting = waits(world, a_host(3), hours=24)
    small = world.lease(a_host(), hours=1, project="chemistry")
    far = world.lease(a_host(2), start=20 * DAY, hours=24, project="chemistry")
    world.run()
    soon = {"start": NOON + 2 * HOUR, "end": NOON + 10 * HOUR}
    grown = ReservationChange(far.reservations[0].id, {"min": 3, "max": 3})
    for lease, change in (
        (small, {"end": NOON + 3 * HOUR}),
        (world.full, {"end": NOON + 3 * HOUR}),
        (far, soon),
        (far, {**soon, "reservations": (grown,)}),
    ):
        for dry_run in (False, True):
            with pytest.raises(OthersWait, match="1 lease waits for the same resources") as refused:
                world.change(lease, **change, dry_run=dry_run)
            assert refused.value.data == {"before": 1, "opening": None}
    world.run_to(NOON + 2 * HOUR)
    assert status(world, waiting) is LeaseStatus.ACTIVE


@pytest.mark.parametrize("start", [HOUR / 2, 3 * HOUR])
def test_a_change_gets_the_hosts_that_delay_nobody(sqlite, start):
    """The host that it would get is awaited, another one is not; before its start and in use."""
    world = World(sqlite, hosts=4)
    world.waits = True
    soon_over = world.lease(a_host(), hours=1, project="biology")
    lease = world.lease(a_host(), start=start, hours=9, project="chemistry")
    world.run()
    (theirs,) = world.hosts_of(soon_over)
    world.resize(lease, min=2, max=2)
    both = world.hosts_of(lease)
    world.resize(lease, min=1, max=1)
    (usual,) = both - world.hosts_of(lease)
    world.run_to(NOON + HOUR / 2)
    waiting = waits(world, a_host(2, needs=f'["in", "$hypervisor_hostname", ["{usual}", "{theirs}"]]'), hours=24)
    world.run()
    world.resize(lease, min=2, max=3)
    grown = world.hosts_of(lease)
    assert (len(grown), grown & {usual, theirs}) == (2, set())
    with pytest.raises(OthersWait):
        world.resize(lease, min=3, max=3)
    world.manager.leases.delete(soon_over.id)
    world.run()
    assert world.hosts_of(waiting) == {usual, theirs}


def test_a_swap_gets_a_host_that_delays_nobody(sqlite):
    world = World(sqlite, hosts=4)
    world.waits = True
    lease = world.lease(a_host(), hours=9, project="chemistry")
    soon_over = world.lease(a_host(), hours=1, project="biology")
    world.run()
    (mine,), (theirs,) = world.hosts_of(lease), world.hosts_of(soon_over)

    def swap(host: str, target: str | None = None, terms: Terms = OPERATOR) -> str:
        (found,) = world.manager.surgery.swap(
            lease.id, SwapRequest(lease.reservations[0].id, host, target), terms
        ).leases
        return next(each.name for each in found.held if not each.released)

    usual = swap(mine, terms=replace(OPERATOR, dry_run=True))
    waits(world, a_host(2, needs=f'["in", "$hypervisor_hostname", ["{usual}", "{theirs}"]]'), hours=24)
    world.run()
    with pytest.raises(OthersWait):
        swap(mine, usual)
    swap(mine)
    assert world.hosts_of(lease).isdisjoint({mine, usual, theirs})


def test_a_change_that_delays_nobody_is_made_as_ever(sqlite):
    world = full_world(sqlite, free=1)
    waits(world, a_host(3), hours=24)
    small = world.lease(a_host(), hours=1, project="chemistry")
    far = world.lease(a_host(), start=20 * DAY, hours=24, project="chemistry")
    world.run()
    grown = ReservationChange(far.reservations[0].id, {"min": 3, "max": 3})
    world.change(small, name="still small")
    world.change(small, end=NOON + 2 * HOUR)
    world.change(small, end=NOON + HOUR)
    world.change(far, reservations=(grown,))
    world.change(far, start=NOON + 26 * HOUR, end=NOON + 30 * HOUR)
    world.change(world.full, end=NOON + HOUR)


def test_a_change_costs_one_statement_more_while_nobody_waits(sqlite):
    world = World(sqlite)
    lease = world.lease(a_host(), hours=1)
    # What the lease has changed is read here, and not by what is counted.
    check_copies(world.store, now=NOON)
    with counted(world.engine) as statements:
        world.change(lease, end=NOON + 2 * HOUR)
    prolonging = statements.count
    with counted(world.engine) as statements:
        world.change(lease, end=NOON + HOUR)
    assert prolonging - statements.count == 5


def test_what_is_given_back_after_a_look_at_the_line_is_not_for_who_looked(sqlite):
    """The one that waits had no turn within its time then: it has one now, and is before who does not wait."""
    world = full_world(sqlite)
    waiting = world.lease(a_host(3), project="physics", wait=HOUR)
    assert waiting.status is LeaseStatus.WAITING
    look = world.manager.waiting_list.turns

    def look_then_free(options):
        try:
            return look(options)
        finally:
            world.manager.leases.delete(world.full.id)

    with patch.object(world.manager.waiting_list, "turns", look_then_free), pytest.raises(NotEnoughResources):
        world.lease(a_host(), project="direct")
    world.run()
    assert world.now(waiting).status is LeaseStatus.ACTIVE
