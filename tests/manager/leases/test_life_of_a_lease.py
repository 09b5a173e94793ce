# SPDX-License-Identifier: Apache-2.0
"""From request to release."""

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused, CloudUnavailable, NotEnoughResources, NotFound
from blazar.model.base.moments import NOW
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from tests.world import NOON, World, a_host, instances

DOWN = CloudUnavailable("the cloud does not answer")
HOUR = timedelta(hours=1)


def statuses(world, lease):
    lease = world.now(lease)
    return lease.status, [r.status for r in lease.reservations], {e.event_type: e.status for e in lease.events}


def test_a_new_lease_is_pending_and_its_aggregate_stands_empty(world):
    lease = world.lease(start=HOUR)

    assert lease.status is LeaseStatus.PENDING
    reservation = lease.reservations[0].id
    aggregate = world.simulated.compute.aggregate(reservation)
    assert aggregate.hosts == ()
    assert aggregate.availability_zone == f"blazar_{reservation}"
    assert aggregate.metadata == {"blazar:owner": "physics"}
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_a_start_now_is_left_to_the_engine_and_keeps_no_caller_waiting(world):
    moves = world.faults.calls["add_host"], world.faults.calls["remove_host"]
    lease = world.lease(a_host(3))
    assert lease.status is LeaseStatus.PENDING
    assert (world.faults.calls["add_host"], world.faults.calls["remove_host"]) == moves
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_at_the_start_hosts_move_from_the_freepool_to_the_reservation(world):
    lease = world.lease(a_host(2), start=HOUR)
    world.run_to(NOON + HOUR)

    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)
    assert world.pool() == {"node-1", "node-2", "node-3"} - world.hosts_of(lease)


def test_at_the_end_servers_are_deleted_and_hosts_return_to_the_freepool_and_their_zone(world):
    zones = {a.name: set(a.hosts) for a in world.simulated.compute.aggregates()}
    lease = world.lease()
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host, locked=True)
    world.run_to(NOON + 2 * HOUR)

    lease_status, reservations, events = statuses(world, lease)
    assert lease_status is LeaseStatus.TERMINATED
    assert reservations == [ReservationStatus.DELETED]
    assert events[EventType.END] is EventStatus.DONE
    assert world.simulated.operators.list_servers() == ()
    assert {a.name: set(a.hosts) for a in world.simulated.compute.aggregates()} == zones
    assert world.reservation_aggregates() == []


def test_a_lease_without_reservations_goes_through_its_whole_life(world):
    lease = world.manager.leases.create(LeaseRequest("empty", "curie", "physics", NOW, NOON + 2 * HOUR))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_min_one_max_three_with_three_free_hosts_gets_three(world):
    world.lease(start=10 * HOUR)
    world.lease(a_host(2), start=20 * HOUR)
    assert len(world.hosts_of(world.lease(a_host(1, 3)))) == 3


def test_leases_that_touch_follow_each_other_on_one_host_to_the_second(a_world):
    world = a_world(hosts=1)
    first = world.lease()
    second = world.lease(start=2 * HOUR)
    world.run_to(NOON + 2 * HOUR)

    assert world.now(first).status is LeaseStatus.TERMINATED
    assert world.now(second).status is LeaseStatus.PENDING or world.now(second).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 2 * HOUR + timedelta(seconds=1))
    assert world.now(second).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_a_start_waits_for_a_previous_user_who_is_slow_to_leave_and_for_nobody_else(a_world):
    world = a_world(hosts=2, settings=Settings(recheck_interval=timedelta(seconds=10)))
    world.simulated.durations.deletion = timedelta(minutes=2)
    slow = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'))
    world.run()
    world.simulated.users.boot_server("stubborn", project_id="physics", user_id="curie", host="node-1")
    next_there = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), start=2 * HOUR)
    elsewhere = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-2"]'), start=2 * HOUR)

    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    assert world.now(slow).status is LeaseStatus.TERMINATING
    assert world.now(next_there).status is LeaseStatus.PENDING
    assert world.now(elsewhere).status is LeaseStatus.ACTIVE

    world.run_to(NOON + 2 * HOUR + timedelta(minutes=3))
    assert world.now(slow).status is LeaseStatus.TERMINATED
    assert world.now(next_there).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_nobody_gets_a_host_whose_last_user_has_not_left(a_world):
    world = a_world(hosts=1)
    world.simulated.durations.deletion = timedelta(minutes=2)
    world.lease()
    world.run()
    world.simulated.users.boot_server("stubborn", project_id="physics", user_id="curie", host="node-1")
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    with pytest.raises(NotEnoughResources):
        world.lease()


def test_a_host_is_free_again_in_the_minute_in_which_its_lease_was_deleted(a_world):
    world = a_world(hosts=1)
    lease = world.lease()
    world.clock.by(seconds=40)
    world.run()
    world.manager.leases.delete(lease.id)
    assert world.lease().status is LeaseStatus.PENDING
    world.run()


def test_cleaning_time_is_kept_free_before_and_after_every_lease(a_world):
    world = a_world(hosts=1, cleaning_time=timedelta(minutes=10))
    world.lease(start=5 * HOUR)
    for start in (3 * HOUR, 7 * HOUR, 3 * HOUR - timedelta(minutes=9), 7 * HOUR + timedelta(minutes=9)):
        with pytest.raises(NotEnoughResources):
            world.lease(start=start)
    world.lease(start=3 * HOUR - timedelta(minutes=10))
    world.lease(start=7 * HOUR + timedelta(minutes=10))


@pytest.mark.slow
def test_a_host_that_is_left_late_is_cleaned_before_the_next_start(a_world):
    cleaning = timedelta(minutes=10)
    world = a_world(hosts=1, cleaning_time=cleaning)
    first = world.lease(hours=1)
    second = world.lease(start=HOUR + cleaning, hours=1)
    world.run()
    server = world.simulated.users.boot_server("busy", project_id="physics", user_id="curie", host="node-1")
    world.simulated.durations.deletion = timedelta(minutes=3)
    world.run_to(NOON + HOUR + cleaning)
    left = world.now(first).event(EventType.END).updated_at
    assert world.now(first).status is LeaseStatus.TERMINATED
    assert NOON + HOUR + timedelta(minutes=3) <= left
    assert world.now(second).status is LeaseStatus.PENDING
    assert world.now(second).event(EventType.START).reason == (
        f"the resources that lease {first.id} released late are being cleaned"
    )
    world.run_to(left + cleaning - timedelta(seconds=2))
    assert world.now(second).status is LeaseStatus.PENDING
    world.run_to(left + cleaning)
    assert world.now(second).status is LeaseStatus.ACTIVE
    assert world.now(second).event(EventType.START).attempts == 0
    assert server not in world.simulated.operators.list_servers()


def test_an_extension_cannot_eat_the_cleaning_time(a_world):
    world = a_world(hosts=1, cleaning_time=timedelta(minutes=10))
    first = world.lease()
    world.lease(start=2 * HOUR + timedelta(minutes=20))
    with pytest.raises(NotEnoughResources):
        world.change(first, end=NOON + 2 * HOUR + timedelta(minutes=11))
    world.change(first, end=NOON + 2 * HOUR + timedelta(minutes=10))


def test_a_start_is_retried_with_growing_pauses_while_the_cloud_is_down(world):
    lease = world.lease(start=HOUR)
    world.faults.fail_before("add_host", DOWN, times=3)
    world.run_to(NOON + HOUR)
    start = world.now(lease).event(EventType.START)
    assert (world.now(lease).status, start.attempts, start.reason) == (
        LeaseStatus.STARTING,
        1,
        "the cloud does not answer",
    )
    assert start.due_at == NOON + HOUR + timedelta(seconds=1)
    world.run_to(NOON + HOUR + timedelta(seconds=1 + 2 + 4))
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_lasting_failure_at_the_start_is_told_with_its_reason_and_the_rest_of_the_lease_starts(world):
    lease = world.lease(a_host(), a_host(), start=HOUR)
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    world.run_to(NOON + HOUR)

    lease_status, reservations, events = statuses(world, lease)
    assert lease_status is LeaseStatus.ERROR
    assert reservations == [ReservationStatus.ERROR, ReservationStatus.ACTIVE]
    assert events[EventType.START] is EventStatus.ERROR
    assert world.now(lease).event(EventType.START).reason == "no such host"

    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_new_dates_give_a_lease_that_failed_to_start_another_chance(world):
    lease = world.lease(start=HOUR)
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ERROR

    changed = world.change(lease, end=NOON + 5 * HOUR)
    assert changed.status is LeaseStatus.PENDING
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_lease_whose_time_passed_while_the_service_was_down_is_over_when_it_is_back(world):
    lease = world.lease(start=HOUR)
    world.clock.to(NOON + 5 * HOUR)
    world.run()
    world.run_to(NOON + 5 * HOUR + timedelta(seconds=5))
    lease_status, reservations, events = statuses(world, lease)
    assert lease_status is LeaseStatus.TERMINATED
    assert events[EventType.START] is EventStatus.ERROR
    assert reservations == [ReservationStatus.DELETED]
    assert world.reservation_aggregates() == []
    assert world.notifier.types == ["lease.create", "lease.event.start_lease", "lease.event.end_lease"]


def test_an_end_is_retried_until_it_succeeds(world):
    lease = world.lease()
    world.run()
    world.faults.fail_before("remove_host", CloudRefused("not now"), times=10)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    assert world.now(lease).event(EventType.END).reason == "not now"
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_a_creation_that_the_cloud_refuses_leaves_nothing_behind(world):
    world.faults.fail_before("create_aggregate", DOWN)
    with pytest.raises(CloudUnavailable, match="does not answer"):
        world.lease(a_host(3))
    assert world.manager.leases.all(None) == ()
    assert world.reservation_aggregates() == []
    assert len(world.hosts_of(world.lease(a_host(3)))) == 3


def test_a_creation_whose_answer_from_the_cloud_was_lost_leaves_no_aggregate(world):
    world.faults.fail_after("create_aggregate", DOWN)
    with pytest.raises(CloudUnavailable):
        world.lease()
    assert world.reservation_aggregates() == []


def test_a_second_reservation_that_fails_takes_the_first_one_with_it(world):
    calls = []

    def refuse_second(name, phase):
        if name == "create_aggregate" and phase == "before":
            calls.append(name)
            if len(calls) == 2:
                raise DOWN

    world.faults.on_call = refuse_second
    with pytest.raises(CloudUnavailable):
        world.lease(a_host(), a_host())
    assert world.reservation_aggregates() == []
    assert world.manager.leases.all(None) == ()


def test_two_reservations_of_one_lease_never_share_the_last_host(world):
    with pytest.raises(NotEnoughResources, match="reservation"):
        world.lease(a_host(2), a_host(2))
    lease = world.lease(a_host(2), a_host(1))
    assert world.hosts_of(lease) == {"node-1", "node-2", "node-3"}


def test_a_creation_that_nobody_finished_is_undone_by_any_manager(world):
    class Crash(BaseException):
        pass

    def crash(name, phase):
        if name == "create_aggregate" and phase == "after":
            world.faults.on_call = die
            raise Crash

    def die(name, phase):
        raise Crash

    world.faults.on_call = crash
    with pytest.raises(Crash):
        world.lease()
    world.faults.on_call = None
    (lease,) = world.manager.leases.all(None)
    assert lease.status is LeaseStatus.CREATING

    survivor = world.another_manager()
    survivor.engine.run_due()
    assert len(world.manager.leases.all(None)) == 1
    world.clock.by(seconds=31)
    survivor.engine.run_due()
    assert world.manager.leases.all(None) == ()
    assert world.reservation_aggregates() == []
    assert len(world.hosts_of(world.lease(a_host(3)))) == 3


def test_a_deleted_lease_is_not_found_but_stays_on_record(world):
    lease = world.lease()
    world.run()
    world.manager.leases.delete(lease.id)
    with pytest.raises(NotFound, match=f"{{'lease_id': '{lease.id}'}} not found"):
        world.manager.leases.one(lease.id)
    assert [past.id for past in world.store.leases.load_past()] == [lease.id]
    assert world.pool() == {"node-1", "node-2", "node-3"}


@pytest.mark.slow
def test_a_deletion_that_takes_time_goes_on_in_the_background_visibly(world):
    world.simulated.durations.deletion = timedelta(minutes=3)
    lease = world.lease()
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id="physics", user_id="curie", host=host)
    world.manager.leases.delete(lease.id)
    assert world.manager.leases.one(lease.id).status is LeaseStatus.DELETING
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + timedelta(minutes=4))
    with pytest.raises(NotFound):
        world.manager.leases.one(lease.id)
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_a_lease_can_be_deleted_while_its_start_keeps_failing(world):
    lease = world.lease()
    world.faults.fail_before("add_host", DOWN, times=5)
    world.run()
    assert world.now(lease).status is LeaseStatus.STARTING
    world.faults.clear()
    world.manager.leases.delete(lease.id)
    assert world.manager.leases.all(None) == ()
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_servers_of_others_found_at_the_start_are_not_deleted_and_told_about(world):
    lease = world.lease(a_host(3), start=HOUR)
    server = world.simulated.users.boot_server("stray", project_id="art", user_id="frida", host="node-2")
    world.run_to(NOON + HOUR + timedelta(seconds=30))
    assert world.simulated.operators.list_servers() == (server,)
    assert world.now(lease).status is LeaseStatus.STARTING
    assert "node-2 runs 1 server" in world.now(lease).event(EventType.START).reason
    world.simulated.compute.begin_server_deletion(server.id)
    world.run_to(NOON + HOUR + timedelta(minutes=2))
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_no_step_leaves_a_host_in_no_pool(a_world):
    world = a_world(hosts=2)
    seen = []

    def watch(name, phase):
        if phase == "after":
            with world.simulated.inspect() as state:
                pools = [
                    a for a in state.aggregates.values() if a.name == "freepool" or (a.zone or "").startswith("blazar_")
                ]
                for host in ("node-1", "node-2"):
                    seen.append(any(host in a.hosts for a in pools))

    world.faults.on_call = watch
    world.lease(a_host(2))
    world.run()
    world.run_to(NOON + 3 * HOUR)
    assert seen
    assert all(seen)


def test_an_end_does_not_wait_for_a_host_that_cannot_return_to_its_zone(a_world):
    world = a_world(hosts=2)
    lease = world.lease(a_host(2))
    later = world.lease(a_host(needs=["==", "$hypervisor_hostname", "node-2"]), start=2 * HOUR, project="bio")
    world.run()
    # Nova loses a host, and has it again: in no aggregate, it takes anybody's servers.
    world.simulated.operators.host_returns(world.simulated.operators.host_vanishes("node-1"))
    stranger = world.simulated.users.boot_server("stranger", project_id="art", user_id="frida", host="node-1")
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.store.calendar.of_lease(lease.id) == ()
    assert world.now(later).status is LeaseStatus.ACTIVE
    assert world.pool() == {"node-1"}
    assert world.simulated.operators.list_servers() == (stranger,)


@pytest.mark.parametrize("asked", [a_host(2), instances(2, affinity=False)])
def test_an_end_does_not_wait_for_a_host_that_only_its_aggregate_still_names(a_world, asked):
    world = a_world(hosts=2)
    lease = world.lease(asked)
    world.run()
    with world.simulated.change_state() as state:
        del state.hosts["1"]
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.store.calendar.of_lease(lease.id) == ()
    assert "node-2" in world.pool()
    assert world.pool(lease.reservations[0].id) == {"node-1"}


def test_a_host_that_gets_a_zone_while_it_is_handed_over_is_handed_over_a_moment_later(a_world):
    world = a_world(hosts=1)
    cloud = world.simulated
    zones = {a.name: set(a.hosts) for a in cloud.compute.aggregates()}
    home = next(a for a in cloud.compute.aggregates() if a.availability_zone and "node-1" in a.hosts)
    cloud.compute.remove_host(home.id, "node-1")
    lease = world.lease()

    def return_it(name, phase):
        if name == "add_host" and phase == "before":
            world.faults.on_call = None
            cloud.compute.add_host(home.id, "node-1")

    world.faults.on_call = return_it
    world.run()
    assert world.now(lease).status is LeaseStatus.STARTING
    world.run_to(NOON + timedelta(minutes=1))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    world.run_to(NOON + 2 * HOUR)
    assert {a.name: set(a.hosts) for a in cloud.compute.aggregates()} == zones


def test_the_before_end_warning_comes_an_hour_before_the_end_or_at_the_start_of_a_short_lease(world):
    long, short = world.lease(hours=5), world.lease(hours=0.5)
    assert long.event(EventType.BEFORE_END).time == NOON + 4 * HOUR
    assert short.event(EventType.BEFORE_END).time == NOON
    # Of events that are due at one moment the start may be looked at last: the warning waits for it.
    world.run_to(NOON + timedelta(minutes=1))
    assert world.notifier.types.count("lease.event.before_end_lease") == 1


@pytest.mark.slow
def test_snapshots_are_taken_before_the_end_awaited_and_not_repeated(a_world):
    world = a_world()
    world.simulated.durations.snapshot = timedelta(minutes=3)
    lease = world.lease(a_host(before_end="snapshot"), before_end=NOON + 2 * HOUR - timedelta(minutes=1))
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("thesis", project_id="physics", user_id="curie", host=host)
    world.run_to(NOON + 2 * HOUR + timedelta(minutes=1))
    (image,) = world.simulated.operators.images()
    assert (image.name, image.project_id, image.status) == ("reserved_thesis", "physics", "saving")
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.simulated.operators.list_servers()) == 1

    world.run_to(NOON + 2 * HOUR + timedelta(minutes=4))
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert [image.status for image in world.simulated.operators.images()] == ["active"]


def test_a_failing_before_end_spoils_neither_the_reservation_nor_the_lease(world):
    lease = world.lease(a_host(before_end="snapshot"))
    world.run()
    world.faults.fail_before("images_of_reservation", CloudRefused("no images here"))
    world.run_to(NOON + HOUR)
    lease_status, reservations, events = statuses(world, lease)
    assert (lease_status, reservations) == (LeaseStatus.ACTIVE, [ReservationStatus.ACTIVE])
    assert events[EventType.BEFORE_END] is EventStatus.ERROR
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_the_world_is_told_what_happens_in_the_words_it_knows(world):
    lease = world.lease()
    world.run()
    world.change(lease, end=NOON + 3 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    world.manager.leases.delete(lease.id)
    assert [(kind, str(told.status)) for kind, told in world.notifier.told] == [
        ("lease.create", "PENDING"),
        ("lease.event.start_lease", "ACTIVE"),
        ("lease.update", "ACTIVE"),
        ("lease.event.before_end_lease", "ACTIVE"),
        ("lease.event.end_lease", "TERMINATED"),
        ("lease.delete", "DELETING"),
    ]


def test_the_life_of_a_lease_is_the_same_on_every_database(engine):
    world = World(engine)
    lease = world.lease(a_host(1, 2))
    world.run()
    assert world.resize(lease, max=3, min=3).status is LeaseStatus.ACTIVE
    world.run_to(NOON + HOUR)
    world.change(lease, end=NOON + 4 * HOUR)
    world.run_to(NOON + 4 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.pool() == {"node-1", "node-2", "node-3"}
    world.manager.leases.delete(lease.id)
    assert world.manager.leases.all("physics") == ()
    assert len(world.store.leases.load_past()) == 1
