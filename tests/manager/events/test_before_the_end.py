# SPDX-License-Identifier: Apache-2.0
"""What is done for a reservation when its end comes near."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import MigrationState
from blazar.clouds.simulated import of_size
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, InvalidInput
from blazar.model.base.paging import Page
from blazar.model.journal.entries import Verb
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.resources.hosts.options import HostSettings
from blazar.resources.instances.virtual import VirtualInstance
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
WARNING = "lease.event.before_end_lease"
NO_WARNING = Settings(before_end_lead=timedelta(0))


@pytest.fixture
def roomy(a_world) -> World:
    """Three hosts that can be reserved, and node-4 and node-5, which are anybody's."""
    return a_world(hosts=3, state=of_size(5))


def running(world: World, action: str, **more: object):
    """Return a lease of two hours from noon whose action this is, and the host that it has."""
    lease = world.lease(a_host(before_end=action), **more)
    world.run()
    (host,) = world.hosts_of(lease)
    return lease, host


def boot(world: World, lease, host, name="thesis", **more):
    hint = lease.reservations[0].id
    return world.simulated.users.boot_server(name, project_id=PROJECT, user_id="curie", host=host, hint=hint, **more)


def where(world: World, server) -> str | None:
    return {s.id: s.host for s in world.simulated.operators.list_servers()}.get(server.id, "deleted")


def images(world: World) -> list[str]:
    return [image.name for image in world.simulated.operators.images()]


def told(world: World) -> int:
    """How often the bus was told, which is how often the histories say it."""
    world.manager.journal_numbering.run_once()
    entries = world.store.journal.page(JournalQuestion(Page(1000, "position"), verb=Verb.BEFORE_END)).items
    assert len(entries) == world.notifier.types.count(WARNING)
    return len(entries)


def warning(world: World, lease):
    return world.now(lease).event(EventType.BEFORE_END)


# What may be asked


@pytest.mark.parametrize("action", ["default", "", "none", "notification", "snapshot", "migration"])
def test_each_action_may_be_asked_for_under_either_name(world, action):
    plain = world.lease(a_host(before_end=action), start=10 * HOUR)
    assert plain.reservations[0].parameters.values["before_end"] == action
    request = a_host()
    other_name = {key: value for key, value in request.parameters.items() if key != "before_end"}
    alias = world.lease(type(request)("physical:host", {**other_name, "before_end_action": action}), start=20 * HOUR)
    assert alias.reservations[0].parameters.values["before_end"] == action
    assert world.resize(alias, before_end_action="none").reservations[0].parameters.values["before_end"] == "none"


def test_two_names_that_say_two_things_are_refused(world):
    request = a_host(before_end="snapshot")
    both = type(request)("physical:host", {**request.parameters, "before_end_action": "migration"})
    with pytest.raises(InvalidInput, match="before_end and before_end_action"):
        world.lease(both)


def test_an_action_that_does_not_exist_is_refused_with_those_that_do(world):
    with pytest.raises(InvalidInput, match="'notification', 'snapshot', 'migration'"):
        world.lease(a_host(before_end="email"))


@pytest.mark.parametrize(("action", "messages"), [("", 1), ("notification", 1), ("none", 0), ("snapshot", 1)])
def test_all_but_none_come_with_a_notification(world, action, messages):
    running(world, action)
    world.run_to(NOON + 2 * HOUR)
    assert told(world) == messages


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("default", "pictures", "messages"), [("", 0, 1), ("none", 0, 0), ("notification", 0, 1), ("snapshot", 1, 1)]
)
def test_the_operator_chooses_for_those_who_do_not(a_world, default, pictures, messages):
    world = a_world(host_settings=HostSettings(before_end=default))
    lease, host = running(world, "default")
    boot(world, lease, host)
    world.run_to(NOON + 2 * HOUR)
    assert (len(images(world)), told(world)) == (pictures, messages)


# Snapshots


def test_work_is_saved_at_the_end_itself_where_the_operator_has_warnings_off(a_world):
    world = a_world(settings=NO_WARNING)
    lease, host = running(world, "snapshot")
    boot(world, lease, host)
    world.run_to(NOON + 2 * HOUR - MINUTE)
    assert images(world) == []
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert images(world) == ["reserved_thesis"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_an_action_that_is_asked_for_later_also_gets_its_event(a_world):
    world = a_world(settings=NO_WARNING)
    lease, host = running(world, "none")
    assert warning(world, lease) is None
    boot(world, lease, host)
    world.resize(lease, before_end="snapshot")
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert images(world) == ["reserved_thesis"]


def test_an_action_that_comes_with_more_hosts_gets_its_event_too(a_world):
    world = a_world(settings=NO_WARNING)
    lease, _ = running(world, "none")
    grown = world.resize(lease, max=2, min=2, before_end="snapshot")
    assert grown.event(EventType.BEFORE_END).time == NOON + 2 * HOUR
    assert warning(world, lease).due_at == NOON + 2 * HOUR


@pytest.mark.slow
def test_servers_off_every_host_cannot_be_pictured_and_the_event_says_so(world):
    lease, host = running(world, "snapshot")
    boot(world, lease, host)
    boot(world, lease, None, "shelf", status="SHELVED_OFFLOADED")
    world.run_to(NOON + HOUR + 10 * MINUTE)
    assert images(world) == ["reserved_thesis"]
    assert "SHELVED_OFFLOADED" in warning(world, lease).reason
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert warning(world, lease).status is EventStatus.ERROR
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_server_that_leaves_its_host_while_the_end_looks_for_it_is_deleted_too(world):
    lease, host = running(world, "none")
    server = boot(world, lease, host)

    def hook(called: str, phase: str) -> None:
        if (called, phase) == ("stranded_servers", "after"):
            world.faults.on_call = None
            world.simulated.users.shelve(server.id)

    world.faults.on_call = hook
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert where(world, server) == "deleted"


def test_one_server_that_cannot_be_pictured_keeps_no_other_from_it(world):
    lease, host = running(world, "snapshot")
    boot(world, lease, host, "broken", status="ERROR")
    boot(world, lease, host, "sound")
    world.run_to(NOON + HOUR)
    assert images(world) == ["reserved_sound"]
    assert warning(world, lease).status is EventStatus.IN_PROGRESS


def test_an_image_that_a_crash_left_with_the_service_gets_its_owner(world):
    lease, host = running(world, "snapshot")
    server = boot(world, lease, host)
    reservation = lease.reservations[0].id
    world.simulated.compute.begin_snapshot(
        server.id, "reserved_thesis", {"blazar:reservation": reservation, "blazar:server": server.id}
    )
    world.simulated.compute.set_image_owner(world.simulated.operators.images()[0].id, "service")
    world.run_to(NOON + HOUR)
    assert [image.project_id for image in world.simulated.operators.images()] == [PROJECT]


def test_an_image_that_another_project_marks_is_neither_believed_nor_given_away(world):
    """Or a stranger who shows an image to all could keep work from being saved, and pass an image off as another's."""
    lease, host = running(world, "snapshot")
    server = boot(world, lease, host)
    compute = world.simulated.compute
    marks = {"blazar:reservation": lease.reservations[0].id, "blazar:server": server.id}
    compute.begin_snapshot(server.id, "forged", marks)
    compute.set_image_owner(world.simulated.operators.images()[0].id, "stranger")
    world.run_to(NOON + HOUR)
    found = {image.name: image.project_id for image in world.simulated.operators.images()}
    assert found == {"forged": "stranger", "reserved_thesis": PROJECT}


def test_a_prolonged_lease_takes_no_second_picture_unless_asked(world):
    lease, host = running(world, "snapshot")
    boot(world, lease, host)
    world.run_to(NOON + HOUR + MINUTE)
    world.change(lease, end=NOON + 4 * HOUR)
    boot(world, lease, host, "new")
    world.run_to(NOON + 3 * HOUR + MINUTE)
    assert images(world) == ["reserved_thesis", "reserved_new"]
    world.resize(lease, before_end="snapshot")
    world.run()
    assert sorted(images(world)) == ["reserved_new", "reserved_new", "reserved_thesis", "reserved_thesis"]
    world.change(lease, end=NOON + 6 * HOUR)
    world.run_to(NOON + 6 * HOUR)
    assert len(images(world)) == 4
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_who_asks_after_the_warning_gets_the_action_at_once(world):
    lease, host = running(world, "default")
    boot(world, lease, host)
    world.run_to(NOON + HOUR + 30 * MINUTE)
    world.resize(lease, before_end="snapshot")
    world.run()
    assert images(world) == ["reserved_thesis"]
    world.run_to(NOON + HOUR + 31 * MINUTE)
    assert warning(world, lease).status is EventStatus.DONE


def test_a_cloud_that_fails_for_a_moment_at_the_end_costs_no_picture(a_world):
    world = a_world(settings=NO_WARNING)
    lease, host = running(world, "snapshot")
    boot(world, lease, host)
    world.faults.fail_before("images_of_reservation", CloudUnavailable("Glance failed with 503"))
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert images(world) == ["reserved_thesis"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


# Migration


@pytest.mark.sample(2)
@pytest.mark.parametrize("status", ["ACTIVE", "PAUSED", "SHUTOFF"])
def test_servers_move_to_hosts_outside_every_pool_and_live_on(roomy, status):
    lease, host = running(roomy, "migration")
    servers = [boot(roomy, lease, host, f"work-{number}", status=status) for number in range(3)]
    roomy.run_to(NOON + HOUR + 10 * MINUTE)
    assert {where(roomy, server) for server in servers} == {"node-4", "node-5"}
    assert warning(roomy, lease).status is EventStatus.DONE
    roomy.run_to(NOON + 3 * HOUR)
    assert roomy.now(lease).status is LeaseStatus.TERMINATED
    assert {s.status for s in roomy.simulated.operators.list_servers()} == {status}
    assert {s.host for s in roomy.simulated.operators.list_servers()} == {"node-4", "node-5"}


def test_running_servers_move_live_and_stopped_ones_cold(roomy):
    lease, host = running(roomy, "migration")
    servers = [boot(roomy, lease, host, status=status) for status in ("ACTIVE", "SHUTOFF")]
    roomy.run_to(NOON + HOUR + MINUTE)
    moves = [roomy.simulated.compute.migrations_of(server.id)[-1] for server in servers]
    assert [(move.live, move.state) for move in moves] == [(True, MigrationState.DONE), (False, MigrationState.DONE)]


def test_a_server_that_no_host_takes_live_moves_cold(roomy):
    lease, host = running(roomy, "migration")
    server = boot(roomy, lease, host)
    for _ in range(2):
        roomy.faults.fail_before("begin_migration", Conflict("its devices cannot move live"))
    roomy.run_to(NOON + HOUR + MINUTE)
    assert [(m.live, m.state) for m in roomy.simulated.compute.migrations_of(server.id)] == [
        (False, MigrationState.DONE)
    ]


@pytest.mark.slow
def test_a_move_takes_its_time_and_the_end_waits_for_it(roomy):
    roomy.simulated.durations.migration = timedelta(minutes=3)
    lease, host = running(roomy, "migration", before_end=NOON + 2 * HOUR - MINUTE)
    server = boot(roomy, lease, host)
    roomy.run_to(NOON + 2 * HOUR + MINUTE)
    assert roomy.now(lease).status is LeaseStatus.ACTIVE
    roomy.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    assert roomy.now(lease).status is LeaseStatus.TERMINATED
    assert where(roomy, server) in ("node-4", "node-5")


def test_a_host_without_room_is_left_alone(roomy):
    lease, host = running(roomy, "migration")
    roomy.simulated.users.boot_server("big", project_id="biology", user_id="u", host="node-4", vcpus=10_000)
    server = boot(roomy, lease, host)
    roomy.run_to(NOON + HOUR + MINUTE)
    assert where(roomy, server) == "node-5"


@pytest.mark.slow
def test_servers_that_find_no_host_stay_and_the_event_says_why(world):
    lease, host = running(world, "migration")
    server = boot(world, lease, host)
    world.run_to(NOON + HOUR + 30 * MINUTE)
    assert where(world, server) == host
    assert "no host outside of reservations and the freepool has room" in warning(world, lease).reason
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert warning(world, lease).status is EventStatus.ERROR
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert where(world, server) == "deleted"


def test_a_server_in_a_state_that_cannot_move_keeps_no_other_from_moving(roomy):
    lease, host = running(roomy, "migration")
    broken, sound = boot(roomy, lease, host, status="ERROR"), boot(roomy, lease, host)
    roomy.run_to(NOON + HOUR + MINUTE)
    assert where(roomy, broken) == host
    assert where(roomy, sound) in ("node-4", "node-5")
    assert "it is ERROR" in warning(roomy, lease).reason


@pytest.mark.slow
def test_a_failing_cloud_is_asked_less_and_less_often(world):
    lease, host = running(world, "migration")
    boot(world, lease, host)
    world.faults.fail_before("begin_migration", CloudRefused("never"))
    world.run_to(NOON + 2 * HOUR - MINUTE)
    assert warning(world, lease).attempts < 75


# The end


@pytest.mark.parametrize("status", ["SHELVED_OFFLOADED", "ERROR"])
def test_servers_on_no_host_are_deleted_too(world, status):
    lease, host = running(world, "none")
    server = boot(world, lease, None, status=status)
    foreign = world.simulated.users.boot_server("theirs", project_id="biology", user_id="u", host=None, hint="other")
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert where(world, server) == "deleted"
    assert where(world, foreign) is None
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_server_that_was_moved_out_and_then_shelved_is_no_concern_of_the_end(roomy):
    lease, host = running(roomy, "migration")
    server = boot(roomy, lease, host)
    roomy.run_to(NOON + HOUR + MINUTE)
    with roomy.simulated.change_state() as state:
        state.servers[server.id].migrations[-1].host = None
    roomy.run_to(NOON + 2 * HOUR + MINUTE)
    assert where(roomy, server) is None


def test_a_cold_move_that_somebody_left_unconfirmed_does_not_keep_a_host_busy(roomy):
    lease, host = running(roomy, "none")
    server = boot(roomy, lease, host, status="SHUTOFF")
    roomy.simulated.compute.begin_migration(server.id, "node-4", live=False)
    assert roomy.simulated.compute.unfinished_moves_from(host) == {server.id: MigrationState.TO_CONFIRM}
    roomy.run_to(NOON + 2 * HOUR + MINUTE)
    assert roomy.simulated.compute.unfinished_moves_from(host) == {}
    assert where(roomy, server) == "node-4"
    assert roomy.now(lease).status is LeaseStatus.TERMINATED


@pytest.mark.slow
@pytest.mark.parametrize("action", ["migration", "none"])
def test_a_host_returns_only_when_a_cold_move_from_it_was_confirmed(a_world, action):
    world = a_world(hosts=3, state=of_size(5), settings=Settings(before_end_lead=MINUTE))
    world.simulated.durations.settling = 3 * MINUTE
    lease, host = running(world, action)
    server = boot(world, lease, host, status="SHUTOFF")
    world.run_to(NOON + 2 * HOUR - MINUTE)
    if action == "none":
        world.simulated.compute.begin_migration(server.id, "node-4", live=False)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.simulated.compute.servers_on(host) == ()
    assert world.simulated.compute.unfinished_moves_from(host) == {server.id: MigrationState.RUNNING}
    assert world.now(lease).status is not LeaseStatus.TERMINATED
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert {s.id: s.status for s in world.simulated.operators.list_servers()} == {server.id: "SHUTOFF"}
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_host_whose_pool_was_deleted_by_hand_returns_to_the_freepool(world):
    lease, host = running(world, "none")
    pool = world.simulated.compute.aggregate(lease.reservations[0].id)
    world.simulated.compute.remove_host(pool.id, host)
    world.simulated.compute.delete_aggregate(pool.id)
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert host in world.pool()


@pytest.mark.slow
def test_nobody_boots_into_a_reservation_that_is_ending(world):
    world.simulated.durations.deletion = timedelta(minutes=2)
    lease, host = running(world, "none")
    boot(world, lease, host)
    reservation = lease.reservations[0].id
    assert world.simulated.compute.aggregate(reservation).metadata["blazar:owner"] == PROJECT
    world.run_to(NOON + 2 * HOUR + MINUTE)
    assert "blazar:owner" not in world.simulated.compute.aggregate(reservation).metadata
    world.run_to(NOON + 2 * HOUR + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_a_type_that_is_not_offered_any_more_keeps_no_warning_waiting(world):
    lease, _ = running(world, "none")
    world.manager = world.another_manager(types=[VirtualInstance])
    world.clock.to(NOON + HOUR)
    world.run()
    assert told(world) == 1
    assert warning(world, lease).status is EventStatus.ERROR


@pytest.mark.parametrize("operators", ["default", "email"])
def test_the_words_of_older_files_for_a_warning_alone_come_to_the_notification(a_world, operators):
    world = a_world(host_settings=HostSettings(before_end=operators))
    lease, _ = running(world, "default")
    world.run_to(NOON + HOUR)
    assert told(world) == 1
    assert warning(world, lease).status is EventStatus.DONE


def test_the_warning_comes_as_early_as_the_type_that_wants_it_first(a_world):
    world = a_world(settings=Settings(before_end_leads={"physical:host": 5 * HOUR}))
    lease = world.lease(hours=24)
    assert warning(world, lease).time == NOON + 19 * HOUR
    others = world.lease(instances(1), hours=24)
    assert warning(world, others).time == NOON + 23 * HOUR


def test_a_lead_that_is_longer_than_time_itself_is_the_start(a_world):
    world = a_world(settings=Settings(before_end_lead=2**31 * MINUTE))
    assert warning(world, world.lease()).time == NOON
