# SPDX-License-Identifier: Apache-2.0
"""What can be changed, when, and what is refused."""

from collections import Counter
from contextlib import nullcontext
from datetime import timedelta

import pytest

from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotEnoughResources, NotFound, WrongState
from blazar.model.base.moments import NOW
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from tests.world import NOON, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
ALL = {"node-1", "node-2", "node-3"}


def test_nothing_to_change_changes_nothing(world):
    lease = world.lease()
    assert world.manager.leases.update(lease.id, LeaseChange()) == world.now(lease)


def test_a_lease_can_be_renamed_also_after_its_end(world):
    lease = world.lease()
    assert world.change(lease, name="new").name == "new"
    world.run_to(NOON + 2 * HOUR)
    assert world.change(lease, name="newer").name == "newer"
    with pytest.raises(InvalidInput, match="only its name"):
        world.change(lease, end=NOON + 5 * HOUR)


def test_a_pending_lease_moves_in_both_directions_over_its_own_allocations(a_world):
    world = a_world(hosts=1)
    lease = world.lease(start=3 * HOUR)
    for shift in (MINUTE, -MINUTE, HOUR, -2 * HOUR):
        moved = world.change(lease, start=NOON + 3 * HOUR + shift, end=NOON + 5 * HOUR + shift)
        assert moved.window.start == NOON + 3 * HOUR + shift
        assert moved.event(EventType.START).due_at == NOON + 3 * HOUR + shift
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize("asked", [{}, {"end": NOON + 2 * HOUR + timedelta(seconds=10)}])
def test_a_lease_whose_end_has_come_gets_nothing_more(world, asked):
    lease = world.lease()
    world.run()
    # Still in use: its end is worked on a moment later, and may wait for what comes before it.
    world.clock.to(lease.window.end + timedelta(seconds=20))
    others = world.lease(a_host(2), hours=1)
    bigger = (ReservationChange(lease.reservations[0].id, parameters={"max": 2}),)
    before = world.now(lease)
    with pytest.raises(InvalidInput, match="end_date"):
        world.change(lease, reservations=bigger, **asked)
    assert world.now(lease) == before
    assert not world.hosts_of(lease) & world.hosts_of(others)


@pytest.mark.parametrize("days", [1, 30])
def test_a_lease_that_moves_to_another_day_has_each_of_its_hosts_once(world, days):
    lease = world.lease(a_host(1, 3), start=HOUR)
    world.change(lease, start=NOON + timedelta(days=days), end=NOON + timedelta(days=days, hours=2))
    held = [allocation.resource_id for allocation in world.store.calendar.of_lease(lease.id)]
    assert (len(held), len(set(held))) == (3, 3)
    world.lease(a_host(3), start=HOUR)


def test_servers_that_move_to_another_day_keep_their_number(world):
    lease = world.lease(instances(4, vcpus=16), start=HOUR)
    before = Counter((a.resource_id, a.count) for a in world.store.calendar.of_lease(lease.id))
    world.change(lease, start=NOON + timedelta(days=1), end=NOON + timedelta(days=1, hours=2))
    assert Counter((a.resource_id, a.count) for a in world.store.calendar.of_lease(lease.id)) == before
    assert sum(a.count for a in world.store.calendar.of_lease(lease.id)) == 4


def test_a_full_cloud_does_not_stand_in_the_way_of_a_legal_change(world):
    lease = world.lease(a_host(3), start=HOUR)
    assert world.change(lease, end=NOON + 9 * HOUR).window.end == NOON + 9 * HOUR
    assert world.resize(lease, min=2).status is LeaseStatus.PENDING
    assert world.hosts_of(lease) == ALL


def test_a_pending_reservation_grows_and_shrinks_and_keeps_the_hosts_it_can(world):
    lease = world.lease(a_host(2), start=HOUR)
    before = world.hosts_of(lease)
    world.resize(lease, min=3, max=3)
    assert world.hosts_of(lease) == ALL
    world.resize(lease, min=1, max=2)
    assert len(world.hosts_of(lease)) == 2
    world.resize(lease, min=1, max=1)
    assert world.hosts_of(lease) < ALL
    assert before <= ALL


def test_new_requirements_bring_other_hosts_while_a_lease_is_pending(world):
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), start=HOUR)
    world.resize(lease, resource_properties='["==", "$hypervisor_hostname", "node-2"]')
    assert world.hosts_of(lease) == {"node-2"}


def test_a_running_lease_can_be_prolonged_while_other_hosts_are_free_for_those_who_come_later(world):
    running = world.lease(a_host(1))
    world.run()
    later = [world.lease(a_host(1), start=3 * HOUR), world.lease(a_host(1), start=3 * HOUR)]
    assert not world.hosts_of(running) & world.hosts_of(later[0])
    assert world.change(running, end=NOON + 9 * HOUR).window.end == NOON + 9 * HOUR


def test_a_lease_from_now_on_leaves_itself_room_to_be_prolonged(world):
    booked = world.lease(a_host(1), start=24 * HOUR)
    running = world.lease(a_host(1))
    assert not world.hosts_of(running) & world.hosts_of(booked)
    world.run()
    assert world.change(running, end=NOON + 48 * HOUR).window.end == NOON + 48 * HOUR


def test_an_active_reservation_grows_at_once(world):
    lease = world.lease(a_host(1))
    world.run()
    grown = world.resize(lease, min=3, max=3)
    assert grown.status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == ALL
    assert world.pool() == frozenset()


def test_an_active_reservation_keeps_hosts_that_it_no_longer_asks_for(world):
    lease = world.lease(a_host(2))
    world.run()
    with pytest.raises(NotEnoughResources, match="would no longer match"):
        world.resize(lease, resource_properties='["==", "$hypervisor_hostname", "node-99"]')
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_new_dates_alone_bring_no_new_hosts_into_an_active_reservation(world):
    other = world.lease(a_host(2), hours=1)
    lease = world.lease(a_host(1, 3))
    world.run()
    world.run_to(NOON + HOUR)
    assert world.now(other).status is LeaseStatus.TERMINATED
    world.change(lease, end=NOON + 5 * HOUR)
    assert len(world.hosts_of(lease)) == 1


def test_growth_that_the_cloud_refuses_is_undone(world):
    lease = world.lease(a_host(1))
    world.run()
    held = world.hosts_of(lease)
    world.faults.fail_before("add_host", CloudUnavailable("no answer"))
    with pytest.raises(CloudUnavailable, match="no answer"):
        world.resize(lease, min=2, max=2)
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert after.reservations[0].parameters.values["max"] == 1
    assert world.hosts_of(lease) == held
    assert world.pool() == ALL - held
    assert world.pool(lease.reservations[0].id) == held


def test_of_two_reservations_both_change_or_neither(world):
    lease = world.lease(a_host(1), a_host(1), start=HOUR)
    first, second = lease.reservations
    more = (ReservationChange(first.id, {"min": 2, "max": 2}), ReservationChange(second.id, {"min": 2, "max": 2}))
    with pytest.raises(NotEnoughResources):
        world.change(lease, reservations=more, end=NOON + 9 * HOUR)
    assert world.now(lease) == lease
    assert len(world.hosts_of(lease)) == 2


def test_growth_of_two_reservations_is_undone_in_both_when_the_cloud_refuses_the_second(world):
    lease = world.lease(a_host(1), instances(1))
    world.run()
    hosts, servers = world.now(lease).reservations
    before = world.now(lease), world.store.calendar.of_lease(lease.id), world.pool(), world.pool(hosts.id)
    world.faults.fail_before("set_inventory", CloudUnavailable("no answer"))
    more = (ReservationChange(hosts.id, {"min": 2, "max": 2}), ReservationChange(servers.id, {"amount": 2}))
    with pytest.raises(CloudUnavailable, match="no answer"):
        world.change(lease, reservations=more)
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert [r.parameters for r in after.reservations] == [r.parameters for r in before[0].reservations]
    assert {(a.resource_id, a.count) for a in world.store.calendar.of_lease(lease.id)} == {
        (a.resource_id, a.count) for a in before[1]
    }
    assert (world.pool(), world.pool(hosts.id)) == before[2:]


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"before_end": NOON + 50 * HOUR}, InvalidInput),
        ({"end": NOON - HOUR}, InvalidInput),
        ({"end": NOON + 90 * HOUR}, NotEnoughResources),
        ({"reservations": {"min": 9, "max": 9}}, NotEnoughResources),
        ({"reservations": {"min": 0}}, InvalidInput),
        ({"reservations": {"max": "many"}}, InvalidInput),
        ({"reservations": {"before_end": "explode"}}, InvalidInput),
        ({"reservations": {"resource_properties": '["==", "$colour", "red"]'}}, InvalidInput),
        ({"reservations": {"hypervisor_properties": "["}}, InvalidInput),
    ],
    ids=str,
)
@pytest.mark.parametrize("status", [LeaseStatus.PENDING, LeaseStatus.ACTIVE])
def test_no_mistake_of_a_user_touches_the_lease(world, status, changes, error):
    lease = world.lease(a_host(1), start=HOUR)
    world.lease(a_host(3), start=72 * HOUR)
    if status is LeaseStatus.ACTIVE:
        world.run_to(NOON + HOUR)
    before = world.now(lease)
    given = dict(changes)
    if "reservations" in given:
        given["reservations"] = (ReservationChange(lease.reservations[0].id, given["reservations"]),)
    with pytest.raises(error):
        world.change(lease, **given)
    assert world.now(lease) == before
    assert before.status is status


def test_growth_that_nobody_finished_is_undone_by_another_manager(world):
    class Crash(BaseException):
        pass

    def die(name, phase):
        if name == "add_host":
            world.faults.on_call = always
            raise Crash

    def always(name, phase):
        raise Crash

    lease = world.lease(a_host(1))
    world.run()
    held = world.hosts_of(lease)
    world.faults.on_call = die
    with pytest.raises(Crash):
        world.resize(lease, min=2, max=2, before_end="snapshot")
    world.faults.on_call = None
    assert world.now(lease).status is LeaseStatus.UPDATING

    world.clock.by(seconds=31)
    world.another_manager().engine.run_due()
    after = world.now(lease)
    assert after.status is LeaseStatus.ACTIVE
    assert after.reservations[0].parameters.values["before_end"] == "default"
    assert world.hosts_of(lease) == held
    assert world.pool() == ALL - held


def test_a_lease_that_would_need_more_hosts_than_are_free_stays_as_it_was(world):
    world.lease(a_host(2), start=2 * HOUR)
    lease = world.lease(a_host(2))
    before = world.now(lease)
    with pytest.raises(NotEnoughResources):
        world.change(lease, end=NOON + 3 * HOUR)
    assert world.now(lease) == before


def test_ending_now_ends_a_running_lease_at_once_and_frees_its_hosts(world):
    lease = world.lease(a_host(3))
    world.clock.by(minutes=20, seconds=30)
    world.run()
    world.change(lease, end=NOW)
    world.run()
    assert world.now(lease).status is LeaseStatus.TERMINATED
    world.lease(a_host(3))


def test_ending_now_in_the_minute_of_the_start_is_the_shortest_lease(world):
    lease = world.lease()
    world.run()
    world.clock.by(seconds=20)
    assert world.change(lease, end=NOW).window.end == NOON + timedelta(seconds=1)
    world.run()
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_the_warning_before_the_end_keeps_its_distance(world):
    lease = world.lease(before_end=NOON + HOUR + 30 * MINUTE)
    moved = world.change(lease, end=NOON + 5 * HOUR)
    assert moved.event(EventType.BEFORE_END).time == NOON + 4 * HOUR + 30 * MINUTE


def test_a_warning_that_was_given_is_taken_back_and_given_again(world):
    lease = world.lease()
    world.run_to(NOON + HOUR)
    moved = world.change(lease, end=NOON + 9 * HOUR)
    assert moved.event(EventType.BEFORE_END).status is EventStatus.UNDONE
    assert "lease.event.before_end_lease.stop" in world.notifier.types
    world.run_to(NOON + 8 * HOUR)
    assert world.notifier.types.count("lease.event.before_end_lease") == 2


def test_a_prolonged_lease_does_not_end_at_its_old_date(world):
    lease = world.lease()
    world.run()
    world.change(lease, end=NOON + 4 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_the_action_before_the_end_can_be_changed_also_while_the_lease_runs(world):
    lease = world.lease(a_host(3))
    world.run()
    assert world.resize(lease, before_end="snapshot").reservations[0].parameters.values["before_end"] == "snapshot"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"start": NOON + HOUR}, "can no longer be changed"),
        ({"end": NOON - MINUTE}, "in the past"),
        ({"before_end": NOON + 5 * HOUR}, "out of lease limits"),
        ({"before_end": NOON}, "out of lease limits"),
    ],
)
def test_dates_of_a_running_lease_that_make_no_sense_are_refused(world, changes, says):
    lease = world.lease()
    world.run()
    before = world.now(lease)
    with pytest.raises(InvalidInput, match=says):
        world.change(lease, **changes)
    assert world.now(lease) == before


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"start": NOON - MINUTE}, "in the past"),
        ({"start": NOON + 9 * HOUR}, "End date must be later than start date."),
        ({"end": NOON + HOUR}, "End date must be later than start date."),
        ({"end": NOON + MINUTE}, "End date must be later than start date."),
    ],
)
def test_dates_of_a_pending_lease_that_make_no_sense_are_refused(world, changes, says):
    lease = world.lease(start=HOUR)
    with pytest.raises(InvalidInput, match=says):
        world.change(lease, **changes)


def test_reservations_can_be_neither_added_nor_removed_nor_change_their_type(world):
    lease = world.lease()
    with pytest.raises(InvalidInput, match="has no reservation"):
        world.change(lease, reservations=(ReservationChange("somebody-elses", {"max": 2}),))
    with pytest.raises(Conflict, match="resource_type cannot be changed"):
        world.change(lease, reservations=(ReservationChange(lease.reservations[0].id, {}, "virtual:instance"),))


def test_a_lease_that_is_being_started_cannot_be_changed(world):
    lease = world.lease()
    world.faults.fail_before("add_host", CloudUnavailable("no answer"), times=9)
    world.run()
    with pytest.raises(WrongState, match="STARTING"):
        world.change(lease, end=NOON + 9 * HOUR)
    with pytest.raises(WrongState, match="STARTING"):
        world.change(lease, name="new")


def test_what_does_not_exist_is_not_found(world):
    with pytest.raises(NotFound):
        world.manager.leases.update("no-such-lease", LeaseChange(name="x"))
    with pytest.raises(NotFound):
        world.manager.leases.delete("no-such-lease")


@pytest.mark.parametrize("fails", [False, True])
def test_however_often_a_lease_is_changed_its_record_grows_no_longer(world, fails):
    lease = world.lease(instances(1))
    world.run()
    known = {event.id for event in world.now(lease).events}
    for number in range(6):
        if fails:
            world.faults.fail_before("set_inventory", CloudUnavailable("away"))
        with pytest.raises(CloudUnavailable) if fails else nullcontext():
            world.resize(lease, amount=2 if fails else 2 - number % 2)
        world.clock.by(minutes=1)
        world.run()
    now = world.now(lease)
    (update,) = (event for event in now.events if event.id not in known)
    assert now.status is LeaseStatus.ACTIVE
    assert update.status is (EventStatus.ERROR if fails else EventStatus.DONE)
    assert update.created_at == NOON + 5 * MINUTE
    assert (update.reason is not None) is fails
