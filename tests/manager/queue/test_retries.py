# SPDX-License-Identifier: Apache-2.0
"""Leases of the kind ``retries``: what fails although there were resources is tried again, and says why it failed."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest

from blazar.enforcement import Occasion
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput, UsageDenied, WrongState
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventStatus, EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.queue import TryFailure
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.events.test_crashes import dies
from tests.world import NOON, World, a_host, instances, servers

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.waits = True
    return world


def tried(world: World, *reservations, tries=3, wait=DAY, **more) -> Lease:
    return world.lease(*reservations, kind=LeaseKind.RETRIES, tries=tries, wait=wait, **more)


def fill(world: World) -> Lease:
    full = world.lease(a_host(3), project="biology")
    world.run()
    return full


def why(lease: Lease) -> list[TryFailure]:
    return [each.why for each in lease.wait.failed]


def refuse_the_start(world: World, call: str = "add_host", times: int = 1) -> None:
    world.faults.fail_before(call, CloudRefused("nova does not like it"), times)


def let_pass(world: World, time: timedelta) -> None:
    """Let time pass, with a look at the waiting list twice a minute."""
    until = world.clock.now() + time
    while world.clock.now() < until:
        world.run_to(min(until, world.clock.now() + 30 * SECOND))


def test_one_that_fits_is_booked_as_any_other_and_keeps_its_place(world):
    lease = tried(world)
    assert (lease.status, lease.wait.queued_at, lease.wait.tries) == (LeaseStatus.PENDING, NOON, 3)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_a_hundred_releases_that_are_of_no_use_use_no_try(world):
    keeps = world.lease(a_host(1), project="biology", hours=40)
    lease = tried(world, a_host(3))
    assert lease.status is LeaseStatus.WAITING
    for _ in range(100):
        other = world.lease(a_host(), project="chemistry", hours=1)
        world.manager.leases.delete(other.id)
        world.run()
    assert (world.now(lease).status, world.now(lease).wait.failed) == (LeaseStatus.WAITING, ())
    world.manager.leases.delete(keeps.id)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_whose_start_fails_is_undone_waits_in_its_old_place_and_is_tried_again(world):
    lease = tried(world, a_host(2))
    refuse_the_start(world)
    world.run()
    found = world.now(lease)
    assert (found.status, found.wait.queued_at) == (LeaseStatus.WAITING, NOON)
    assert world.store.calendar.of_lease(lease.id) == ()
    assert world.reservation_aggregates() == []
    assert ({r.status for r in found.reservations}, found.degraded) == ({ReservationStatus.PENDING}, False)
    (failed,) = found.wait.failed
    assert (failed.why, failed.at, "nova does not like it" in failed.text) == (TryFailure.NOT_STARTED, NOON, True)
    assert world.notifier.types[-2:] == ["lease.event.start_lease", "lease.waiting"]
    world.run_to(NOON + 59 * SECOND)
    assert world.now(lease).status is LeaseStatus.WAITING
    world.run_to(NOON + 2 * MINUTE)
    found = world.now(lease)
    assert (found.status, found.event(EventType.START).status) == (LeaseStatus.ACTIVE, EventStatus.DONE)
    assert found.window.end - found.window.start == 2 * HOUR
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_what_one_part_has_made_is_undone_when_another_fails(world):
    lease = tried(world, servers(1, user_data="c2VjcmV0"), a_host())
    refuse_the_start(world)
    world.run()
    found = world.now(lease)
    assert found.status is LeaseStatus.WAITING
    with world.simulated.inspect() as state:
        assert not state.servers
    assert found.reservations[0].parameters.values["secret"] == {"user_data": "c2VjcmV0"}
    world.run_to(NOON + 2 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    with world.simulated.inspect() as state:
        assert len(state.servers) == 1


def test_when_its_last_start_has_failed_it_is_in_error_with_all_reasons(world):
    lease = tried(world, servers(1), tries=2)
    refuse_the_start(world, "begin_boot", times=2)
    let_pass(world, 5 * MINUTE)
    found = world.now(lease)
    assert (found.status, why(found)) == (LeaseStatus.ERROR, [TryFailure.NOT_STARTED] * 2)
    world.manager.leases.delete(lease.id)
    assert world.now(lease).deleted_at is not None


def test_when_it_waits_no_longer_a_failed_start_is_final(world):
    lease = tried(world, start=HOUR, wait=30 * MINUTE)
    refuse_the_start(world)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ERROR


@pytest.mark.slow
def test_one_whose_time_is_over_before_it_could_start_is_tried_again(world):
    lease = tried(world, hours=1)
    world.faults.fail_before("add_host", CloudUnavailable("nova is away"), times=200)
    world.run_to(NOON + HOUR)
    world.faults.clear()
    world.run_to(NOON + HOUR + 5 * MINUTE)
    found = world.now(lease)
    assert (found.status, why(found)) == (LeaseStatus.ACTIVE, [TryFailure.NOT_STARTED])
    # What its owner is told is what delayed it, not only that it was too late.
    (failed,) = found.wait.failed
    assert failed.cause is ReasonCode.CLOUD_UNAVAILABLE
    assert "ended before it could start" in failed.text
    assert "nova is away" in failed.text
    assert found.window.start >= NOON + HOUR


def test_the_rest_between_tries_becomes_longer(world):
    lease = tried(world, servers(1), tries=4)
    refuse_the_start(world, "begin_boot", times=3)
    let_pass(world, 10 * MINUTE)
    begins = [failed.at for failed in world.now(lease).wait.failed]
    rests = [later - sooner for sooner, later in itertools.pairwise(begins)]
    assert MINUTE <= rests[0] < 2 * MINUTE <= rests[1] < 3 * MINUTE
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_what_cannot_be_made_with_the_request_is_tried_again(world):
    world.faults.fail_before("create_flavor", CloudUnavailable("nova is away"))
    lease = tried(world, instances(1, vcpus=1))
    assert (lease.status, why(lease)) == (LeaseStatus.WAITING, [TryFailure.NOT_PREPARED])
    world.run_to(NOON + 2 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_one_with_a_single_try_has_waited_in_vain_if_that_cannot_be_made(world):
    world.faults.fail_before("create_flavor", CloudUnavailable("nova is away"))
    lease = tried(world, instances(1, vcpus=1), tries=1)
    assert (lease.status, world.notifier.types[-1]) == (LeaseStatus.TIMED_OUT, "lease.timed_out")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.TIMED_OUT


class Denies(RecordingFilter):
    """A filter that denies physics what it asks for, so many times after the first."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def check(self, question):
        super().check(question)
        if question.wanted.lease.project_id == "physics" and self.times:
            self.times -= 1
            raise UsageDenied("physics may not")


@pytest.mark.parametrize(("denials", "status"), [(2, LeaseStatus.ACTIVE), (3, LeaseStatus.TIMED_OUT)])
def test_a_denial_at_its_turn_uses_a_try_and_says_why(sqlite, denials, status):
    world = World(sqlite, filters=[Denies(denials)])
    world.waits = True
    full = fill(world)
    lease = tried(world, a_host(3))
    world.manager.leases.delete(full.id)
    world.run()
    found = world.now(lease)
    assert [(each.why, each.text) for each in found.wait.failed] == [(TryFailure.DENIED, "physics may not")]
    for _ in range(20):
        # It rests, and is not asked about.
        world.run()
    assert len(world.now(lease).wait.failed) == 1
    let_pass(world, 10 * MINUTE)
    assert (world.now(lease).status, len(world.now(lease).wait.failed)) == (status, denials)


def test_a_denied_request_is_refused_at_once(sqlite):
    world = World(sqlite, filters=[Denies(1)])
    with pytest.raises(UsageDenied):
        tried(world)


def test_enforcement_is_told_that_a_lease_whose_start_failed_has_ended_and_that_it_is_granted_again(sqlite):
    hears = RecordingFilter()
    world = World(sqlite, filters=[hears])
    world.waits = True
    lease = tried(world)
    refuse_the_start(world)
    world.run()
    assert hears.heard == [str(Occasion.CREATED), str(Occasion.ENDED)]
    world.run_to(NOON + 2 * MINUTE)
    assert hears.heard == [str(Occasion.CREATED), str(Occasion.ENDED), str(Occasion.CREATED)]
    world.manager.leases.delete(lease.id)
    world.run()
    assert hears.heard[3:] == [str(Occasion.ENDED)]


def test_one_that_is_undone_can_be_deleted_but_not_changed(world):
    lease = tried(world, a_host(), servers(1))
    refuse_the_start(world, "begin_boot")
    world.faults.fail_before("delete_aggregate", CloudUnavailable("nova is away"), times=50)
    world.run()
    assert world.now(lease).status is LeaseStatus.CREATING
    with pytest.raises(WrongState):
        world.change(lease, end=NOON + 9 * HOUR)
    world.faults.clear()
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 5 * MINUTE)
    assert world.now(lease).deleted_at is not None
    assert world.store.calendar.of_lease(lease.id) == ()


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_manager_killed_at_any_step_of_a_try_and_its_undo_another_finishes_it(sqlite, phase):
    world = World(sqlite, settings=Settings(claim_ttl=timedelta(seconds=30)))
    world.waits = True
    for step in itertools.count(1):
        lease = tried(world, a_host(), instances(2, vcpus=1), project="chemistry")
        refuse_the_start(world)
        died = dies(world, world.run, step, phase)
        world.run_to(world.clock.now() + 5 * MINUTE)
        world.faults.clear()
        found = world.now(lease)
        assert found.status is LeaseStatus.ACTIVE, step
        assert len(found.wait.failed) <= 1
        assert len(world.store.calendar.of_lease(lease.id)) >= 2
        world.manager.leases.delete(lease.id)
        world.run()
        assert world.reservation_aggregates() == []
        if not died:
            return


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"wait": None}, "/wait"),
        ({"tries": 11}, "/wait/tries"),
        ({"kind": LeaseKind.SCHEDULED}, "/wait/tries"),
    ],
)
def test_some_cannot_be_asked_for(world, asked, pointer):
    with pytest.raises(InvalidInput) as refused:
        world.lease(**{"kind": LeaseKind.RETRIES, "tries": 2, "wait": DAY, **asked})
    assert refused.value.pointer == pointer


def test_the_operator_says_how_many_tries_there_are_if_the_request_does_not(sqlite):
    world = World(sqlite, settings=Settings(tries=5, most_tries=7))
    assert tried(world, tries=None).wait.tries == 5
    assert tried(world, tries=7).wait.tries == 7
