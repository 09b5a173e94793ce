# SPDX-License-Identifier: Apache-2.0
"""Leases in use that leave hosts before these are in maintenance, servers and all, on the simulated cloud."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from blazar.calendar.evacuation.values import Rules
from blazar.clouds.simulated.server_state import MoveFault
from blazar.manager.common.settings import Settings
from blazar.manager.maintenance.migration import read_load
from blazar.model.base.errors import CloudUnavailable, NotFound, WrongState
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import ActivePolicy, MaintenanceChange, MaintenanceStatus, Outcome
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest, SwapRequest, Terms
from blazar.resources.hosts.evacuation_options import EvacuationSettings
from blazar.resources.hosts.options import HostSettings
from tests.manager.booking.test_best_effort import where
from tests.manager.maintenance.test_maintenance import (
    asked,
    id_of,
    opened,
    outcomes,
    shown,
    work_to,
)
from tests.promises import check_promises
from tests.world import NOON, PROJECT, World, a_host, instances

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LIMIT, LEAD = 6 * MINUTE, 15 * MINUTE
OPERATOR = Terms(Actor("admin", "admins", operator=True))
ON_NODE_1 = '["==", "$hypervisor_hostname", "node-1"]'


@pytest.fixture
def world(a_world) -> World:
    """Return a cloud of three hosts."""
    return a_cloud(a_world, hosts=3)


@pytest.fixture
def larger(a_world) -> World:
    """Return a cloud of five hosts."""
    return a_cloud(a_world, hosts=5)


def a_cloud(a_world, *, hosts: int) -> World:
    settings = EvacuationSettings(Rules(limit=LIMIT), lead=LEAD)
    heals = Settings(claim_ttl=timedelta(seconds=30), promises=0, heal_active=True)
    made = a_world(hosts=hosts, host_settings=HostSettings(evacuation=settings), settings=heals)
    made.simulated.durations.migration = MINUTE
    return made


def used(world: World, hosts: int = 1, **more):
    lease = world.lease(a_host(hosts), hours=12, **more)
    world.run()
    return world.now(lease)


def boot(world: World, lease, host: str, name: str = "ours", **more) -> str:
    given = {"project_id": PROJECT, "hint": lease.reservations[0].id, **more}
    return world.simulated.users.boot_server(name, user_id="u", host=host, **given).id


def used_by_one_that_hangs(world: World):
    """Return a lease in use, its host, and its server, which hangs when it is moved."""
    lease = used(world)
    (old,) = world.hosts_of(lease)
    server = boot(world, lease, old)
    world.simulated.operators.spoil_move(server, MoveFault.HANGS)
    return lease, old, server


def migrated(world: World, *names: str, start=HOUR, **more):
    return opened(world, *names, start=start, active=ActivePolicy.MIGRATE, **more)


def only(maintenance):
    (lease,) = maintenance.leases
    return lease


def pool(world: World, lease) -> set[str]:
    return set(world.pool(lease.reservations[0].id))


def told(world: World) -> Counter:
    return Counter(kind for kind, _ in world.notifier.told if kind.startswith("lease.m"))


@pytest.mark.slow
def test_servers_move_to_another_host_before_the_window_and_the_lease_leaves_the_old_one(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    server, off = boot(world, lease, old), boot(world, lease, old, "off", status="SHUTOFF")
    impact = world.manager.maintenances.create(asked(world, old, active=ActivePolicy.MIGRATE), dry_run=True).impact
    assert [(each.lease_id, each.outcome, len(each.hosts)) for each in impact.leases] == [
        (lease.id, Outcome.MIGRATED, 1)
    ]
    made = migrated(world, old, impact_id=impact.id)
    assert not only(made).done
    work_to(world, NOON + HOUR - LEAD - MINUTE)
    assert where(world) == {"ours": old, "off": old}
    assert world.hosts_of(lease) == {old}
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(world.hosts_of(lease)) == 2
    assert "2 servers are still on" in only(shown(world, made)).note
    work_to(world, NOON + HOUR - LEAD + 4 * MINUTE)
    after = only(shown(world, made))
    (new,) = world.hosts_of(lease)
    assert (after.outcome, after.done, after.note) == (Outcome.MIGRATED, True, None)
    assert [(move.source, move.target) for move in after.moves] == [
        (old.removeprefix("node-"), new.removeprefix("node-"))
    ]
    assert where(world) == {"ours": new, "off": new}
    assert (pool(world, lease), old in world.pool()) == ({new}, True)
    assert world.now(lease).window == lease.window
    assert not world.now(lease).degraded
    work_to(world, NOON + 6 * HOUR)
    assert told(world) == {"lease.moved": 1}
    assert shown(world, made).status is MaintenanceStatus.DONE
    assert where(world) == {"ours": new, "off": new}
    check_promises(world.store, since=world.clock.now())
    with world.simulated.inspect() as state:
        live = {id_: [move.live for move in state.servers[id_].migrations] for id_ in (server, off)}
    assert live == {server: [True], off: [False]}


def test_a_window_that_is_opened_late_is_given_time(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    made = world.manager.maintenances.create(
        asked(world, old, active=ActivePolicy.MIGRATE, start=timedelta())
    ).maintenance
    work_to(world, NOON + 3 * MINUTE)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MIGRATED}
    assert where(world)["ours"] != old
    assert shown(world, made).status is MaintenanceStatus.ACTIVE


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"locked": True}, "it is locked"),
        ({"tags": ("blazar:keep",)}, "it has the tag blazar:keep"),
        ({"status": "SUSPENDED"}, "it is SUSPENDED"),
        ({"hint": "5f3e"}, "it belongs to another lease"),
        ({"project_id": "others"}, "it belongs to another project than the lease"),
        ({"extra_specs": {"accel:device_profile": "fpga"}}, "its flavor has devices that cannot be moved"),
    ],
)
def test_a_lease_with_a_server_that_may_not_move_stays_untouched_and_says_why(world, server, why):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old, **server), boot(world, lease, old, "more")
    impact = world.manager.maintenances.create(asked(world, old, active=ActivePolicy.MIGRATE), dry_run=True).impact
    assert impact.leases[0].outcome is Outcome.ACTIVE
    assert why in impact.leases[0].note
    made = migrated(world, old)
    before = world.now(lease)
    work_to(world, NOON + 2 * HOUR)
    after = only(shown(world, made))
    assert (after.outcome, after.done) == (Outcome.ACTIVE, True)
    assert why in after.note
    assert world.now(lease).revision == before.revision
    assert where(world) == {"ours": old, "more": old}
    assert told(world) == {"lease.maintenance": 1}


def test_what_is_unlocked_in_time_is_moved(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    server = boot(world, lease, old, locked=True)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + 6 * MINUTE)
    assert only(shown(world, made)).outcome is Outcome.ACTIVE
    assert told(world) == {"lease.maintenance": 1}
    with world.simulated.change_state() as state:
        state.servers[server].locked = False
    work_to(world, NOON + HOUR - MINUTE)
    assert only(shown(world, made)).outcome is Outcome.MIGRATED
    assert where(world)["ours"] != old
    # What its owner was told is not so any more, and that is told at once.
    assert told(world) == {"lease.maintenance": 1, "lease.moved": 1}


def test_where_no_host_is_free_the_lease_is_listed_with_the_reason(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    world.lease(a_host(2), start=6 * HOUR, hours=1)
    made = migrated(world, old)
    work_to(world, NOON + 2 * HOUR)
    after = only(shown(world, made))
    assert (after.outcome, after.note) == (
        Outcome.ACTIVE,
        "no other host meets its requirement, has room for its servers, and is free until its end",
    )
    assert world.hosts_of(lease) == {old}


def test_what_asks_for_its_host_and_what_is_of_another_type_stays(world):
    named = world.lease(a_host(needs=ON_NODE_1), hours=12)
    shared = world.lease(instances(needs='["==", "$hypervisor_hostname", "node-2"]'), hours=12)
    world.run()
    made = migrated(world, "node-1", "node-2")
    notes = {each.lease_id: each.note for each in made.leases}
    assert outcomes(made) == {named.id: Outcome.ACTIVE, shared.id: Outcome.ACTIVE}
    assert notes[named.id].startswith("no other host meets its requirement")
    assert "reservations of the type virtual:instance keep what they have" in notes[shared.id]
    before = world.now(named).revision, world.now(shared).revision
    work_to(world, NOON + 2 * HOUR)
    assert (world.now(named).revision, world.now(shared).revision) == before


def test_a_host_on_which_the_servers_have_no_room_is_no_choice(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    with world.simulated.change_state() as state:
        for host in state.hosts.values():
            if host.name != old:
                host.memory_mb = 1024
    world.manager.monitor.run_once()
    boot(world, lease, old, memory_mb=2048)
    made = migrated(world, old)
    assert "has room for its servers" in only(made).note
    work_to(world, NOON + 2 * HOUR)
    assert world.hosts_of(lease) == {old}


def test_a_move_that_hangs_is_given_up_in_time_and_the_lease_is_as_before(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - MINUTE)
    assert len(world.hosts_of(lease)) == 2
    work_to(world, NOON + HOUR + 2 * MINUTE)
    after = only(shown(world, made))
    assert (after.outcome, after.done) == (Outcome.ACTIVE, True)
    assert after.note == "its servers could not be moved in time"
    assert world.hosts_of(lease) == pool(world, lease) == {old}
    assert where(world) == {"ours": old}
    assert world.now(lease).status is LeaseStatus.ACTIVE
    check_promises(world.store, since=world.clock.now())


def test_servers_on_both_hosts_keep_both_until_one_of_them_is_empty(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old, "first")
    server = boot(world, lease, old, "second")
    world.simulated.operators.spoil_move(server, MoveFault.HANGS)
    made = migrated(world, old)
    work_to(world, NOON + HOUR + 2 * MINUTE)
    both = world.hosts_of(lease)
    assert len(both) == 2
    assert set(where(world).values()) == both
    assert "keeps both" in only(shown(world, made)).note
    longer = world.change(lease, end=NOON + 13 * HOUR)
    assert world.hosts_of(longer) == both
    world.simulated.compute.begin_server_deletion(server)
    work_to(world, NOON + HOUR + 4 * MINUTE)
    assert world.hosts_of(lease) == both - {old}
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MIGRATED}


def test_a_window_that_is_cancelled_meanwhile_leaves_all_in_order(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE)
    assert len(world.hosts_of(lease)) == 2
    world.manager.maintenances.delete(made.id)
    work_to(world, NOON + HOUR - LEAD + 3 * MINUTE)
    assert world.hosts_of(lease) == pool(world, lease) == {old}
    assert where(world) == {"ours": old}
    assert shown(world, made).status is MaintenanceStatus.CANCELLED
    assert only(shown(world, made)).note == "the maintenance window was deleted before its servers were moved"


@pytest.mark.slow
def test_a_window_that_is_ended_while_servers_move_says_that_of_the_lease(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old, start=timedelta())
    work_to(world, NOON + MINUTE)
    assert len(world.hosts_of(lease)) == 2
    world.manager.maintenances.end(made.id)
    work_to(world, NOON + 5 * MINUTE)
    assert world.hosts_of(lease) == pool(world, lease) == {old}
    after = only(shown(world, made))
    assert (after.outcome, after.done) == (Outcome.ACTIVE, True)
    assert after.note == "the maintenance window was ended before its servers were moved"


def test_a_window_whose_time_is_changed_meanwhile_goes_on_with_what_has_begun(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    both = world.hosts_of(lease)
    assert len(both) == 2
    change = MaintenanceChange(start=NOON + 8 * HOUR, end=NOON + 9 * HOUR)
    world.manager.maintenances.change(made.id, change)
    work_to(world, NOON + HOUR)
    assert world.hosts_of(lease) == both - {old}
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MIGRATED}


def test_a_lease_that_ends_meanwhile_returns_both_hosts(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE)
    world.manager.leases.delete(lease.id)
    work_to(world, NOON + HOUR + 5 * MINUTE)
    assert world.reservation_aggregates() == []
    assert where(world) == {}
    assert world.pool() == {"node-1", "node-2", "node-3"}
    assert not any(each.lease_id == lease.id and not each.done for each in shown(world, made).leases)


@pytest.mark.slow
def test_a_lease_that_is_shortened_and_ends_while_its_servers_move_is_told_so(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE)
    world.change(lease, end=NOON + 50 * MINUTE)
    work_to(world, NOON + 2 * HOUR)
    (plan,) = shown(world, made).leases
    assert (plan.done, plan.note) == (True, "it ended before all of its servers were moved")


@pytest.mark.slow
def test_a_lease_of_many_hosts_leaves_those_that_it_can(world):
    lease = used(world, hosts=2)
    first, second = sorted(world.hosts_of(lease))
    boot(world, lease, first, "first"), boot(world, lease, second, "second")
    made = migrated(world, first, second)
    work_to(world, NOON + 2 * HOUR)
    after = only(shown(world, made))
    assert after.outcome is Outcome.PARTLY_MIGRATED
    assert len(after.moves) == 1
    assert "no other host" in after.note
    assert len(world.hosts_of(lease)) == 2
    assert told(world) == {"lease.moved": 1}


def test_where_only_to_list_is_asked_for_nothing_moves(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    made = opened(world, old)
    work_to(world, NOON + 2 * HOUR)
    assert (only(shown(world, made)).outcome, only(shown(world, made)).note) == (Outcome.ACTIVE, None)
    assert where(world) == {"ours": old}


@pytest.mark.slow
def test_two_windows_over_one_host_move_the_servers_once(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    both = [migrated(world, old), migrated(world, old, start=1.1 * HOUR)]
    work_to(world, NOON + HOUR - LEAD + 7 * MINUTE)
    (new,) = world.hosts_of(lease)
    assert where(world) == {"ours": new}
    assert new != old
    work_to(world, NOON + HOUR)
    assert world.hosts_of(lease) == {new}
    left = [[each.outcome for each in shown(world, one).leases] for one in both]
    assert left == [[Outcome.MIGRATED], []]


def test_a_reservation_that_goes_to_another_lease_meanwhile_is_migrated_there(world):
    lease = world.lease(a_host(), instances(), hours=12)
    world.run()
    reservation = lease.reservations[0].id
    (old,) = world.pool(reservation)
    boot(world, lease, old)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    assert len(world.pool(reservation)) == 2
    request = SplitRequest((PartRequest(reservation),), None)
    first, second = world.manager.surgery.split(lease.id, request, OPERATOR).leases
    work_to(world, NOON + HOUR)
    (new,) = world.pool(reservation)
    assert new != old
    assert world.hosts_of(second.lease) == {new}
    assert where(world) == {"ours": new}
    assert outcomes(shown(world, made)) == {second.lease.id: Outcome.MIGRATED}
    assert [each.id for kind, each in world.notifier.told if kind == "lease.moved"] == [second.lease.id]
    assert first.lease.id == lease.id


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["another number of hosts", "a swap", "moving it off the new host"])
def test_what_would_change_the_hosts_of_a_lease_is_refused_while_its_servers_move(world, operation):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    (new,) = world.hosts_of(lease) - {old}
    reservation = lease.reservations[0].id
    ways = {
        "another number of hosts": lambda: world.resize(lease, min=2, max=2),
        "a swap": lambda: world.manager.surgery.swap(lease.id, SwapRequest(reservation, new), OPERATOR),
        "moving it off the new host": lambda: world.manager.resources.move(HOST, id_of(world, new), reservation),
    }
    with pytest.raises(WrongState, match="are being moved off a host before its maintenance") as refused:
        ways[operation]()
    assert refused.value.code == "lease_busy"
    work_to(world, NOON + HOUR)
    assert world.hosts_of(lease) == {new}
    assert where(world) == {"ours": new}
    assert len(world.hosts_of(world.resize(lease, min=2, max=2))) == 2


@pytest.mark.slow
def test_a_new_host_that_fails_while_servers_move_there_is_not_healed_by_a_third_one(world):
    lease, old, _ = used_by_one_that_hangs(world)
    migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    both = world.hosts_of(lease)
    (new,) = both - {old}
    world.simulated.operators.host_disabled(new)
    for _ in range(3):
        world.manager.monitor.run_once()
    assert world.hosts_of(lease) == both
    work_to(world, NOON + 2 * HOUR)
    assert world.hosts_of(lease) == pool(world, lease) == {old}


def two_leases(world):
    """Return two leases in use, with their hosts and a server on each."""
    first, second = used(world), used(world)
    (one,), (other,) = world.hosts_of(first), world.hosts_of(second)
    return one, boot(world, first, one, "first"), other, boot(world, second, other, "second")


def test_what_stays_is_tried_again_while_servers_of_another_lease_move(larger):
    one, hanging, other, locked = two_leases(larger)
    larger.simulated.operators.spoil_move(hanging, MoveFault.HANGS)
    with larger.simulated.change_state() as state:
        state.servers[locked].locked = True
    migrated(larger, one, other)
    work_to(larger, NOON + HOUR - LEAD + MINUTE)
    with larger.simulated.change_state() as state:
        state.servers[locked].locked = False
    work_to(larger, NOON + HOUR - LEAD + 8 * MINUTE)
    assert where(larger)["first"] == one
    assert where(larger)["second"] not in (one, other)


def test_a_lease_for_which_the_cloud_fails_does_not_keep_the_others(larger, monkeypatch):
    one, _, other, _ = two_leases(larger)
    made = migrated(larger, one, other)
    bad = {"node-" + each.hosts[0] for each in made.leases[:1]}

    def load(runtime, task, resource):
        if resource.name in bad:
            raise CloudUnavailable("an answer that cannot be read")
        return read_load(runtime, task, resource)

    monkeypatch.setattr("blazar.manager.maintenance.migration.read_load", load)
    work_to(larger, NOON + HOUR - MINUTE)
    assert shown(larger, made).trouble == "an answer that cannot be read"
    assert {one, other} & set(where(larger).values()) == bad


@pytest.mark.slow
def test_a_lease_is_put_in_order_also_if_its_host_cannot_be_disabled(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old, disable_service=True)
    world.faults.fail_before("disable_service", CloudUnavailable("not now"), times=1000)
    work_to(world, NOON + HOUR + 5 * MINUTE)
    assert shown(world, made).trouble == "not now"
    assert world.hosts_of(lease) == pool(world, lease) == {old}


def test_what_the_cloud_does_not_find_for_a_moment_does_not_end_a_move(world):
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot(world, lease, old)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    world.faults.fail_before("open_moves", NotFound("no such server"))
    work_to(world, NOON + HOUR)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MIGRATED}
    assert len(world.hosts_of(lease)) == 1


@pytest.mark.slow
def test_leases_that_become_one_while_servers_of_both_move_leave_both_hosts(larger):
    one, _, other, _ = two_leases(larger)
    made = migrated(larger, one, other)
    first, second = sorted(each.lease_id for each in made.leases)
    work_to(larger, NOON + HOUR - LEAD + MINUTE / 2)
    both = larger.hosts_of(larger.now_of(first)) | larger.hosts_of(larger.now_of(second))
    assert len(both) == 4
    larger.manager.surgery.merge(first, MergeRequest(second), OPERATOR)
    work_to(larger, NOON + HOUR)
    assert larger.hosts_of(larger.now_of(first)) == both - {one, other} == set(where(larger).values())
    assert outcomes(shown(larger, made)) == {first: Outcome.MIGRATED}


@pytest.mark.slow
def test_a_reservation_that_goes_to_another_lease_when_the_window_is_cancelled_is_put_in_order_there(world):
    lease, second = used(world), used(world)
    (old,) = world.hosts_of(lease)
    server = boot(world, lease, old)
    world.simulated.operators.spoil_move(server, MoveFault.HANGS)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    assert len(pool(world, lease)) == 2
    world.manager.maintenances.delete(made.id)
    world.manager.surgery.merge(second.id, MergeRequest(lease.id), OPERATOR)
    work_to(world, NOON + HOUR)
    assert pool(world, lease) == {old}
    assert len(world.hosts_of(second)) == 2


@pytest.mark.slow
def test_a_host_that_cannot_be_had_in_the_cloud_is_not_asked_for_again_and_again(larger):
    lease = used(larger)
    (old,) = larger.hosts_of(lease)
    boot(larger, lease, old)
    migrated(larger, old)
    for host in ("node-1", "node-2"):
        larger.simulated.users.boot_server("stray", user_id="u", host=host, project_id="others")
    before = larger.now(lease).revision
    work_to(larger, NOON + HOUR - LEAD + 3 * MINUTE)
    (new,) = larger.hosts_of(lease)
    assert where(larger)["ours"] == new
    assert new not in (old, "node-1", "node-2")
    assert larger.now(lease).revision < before + 15


def test_a_lease_that_can_have_no_host_in_the_cloud_is_left_alone_for_a_while(larger):
    lease = used(larger)
    (old,) = larger.hosts_of(lease)
    boot(larger, lease, old)
    made = migrated(larger, old)
    for number in range(1, 6):
        if f"node-{number}" != old:
            larger.simulated.users.boot_server("stray", user_id="u", host=f"node-{number}", project_id="others")
    work_to(larger, NOON + HOUR - LEAD + 4 * MINUTE)
    tried = larger.now(lease).revision
    work_to(larger, NOON + HOUR - LEAD + 4.9 * MINUTE)
    assert larger.now(lease).revision == tried
    assert "stray" not in (only(shown(larger, made)).note or "")
    assert only(shown(larger, made)).outcome is Outcome.ACTIVE
    assert larger.hosts_of(lease) == {old}


@pytest.mark.slow
def test_a_move_that_hangs_when_the_window_is_put_off_is_given_up_and_begun_again_in_time(world):
    lease, old, _ = used_by_one_that_hangs(world)
    made = migrated(world, old)
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    assert len(world.hosts_of(lease)) == 2
    world.manager.maintenances.change(made.id, MaintenanceChange(start=NOON + 8 * HOUR, end=NOON + 9 * HOUR))
    work_to(world, NOON + HOUR - LEAD + LIMIT - MINUTE)
    assert len(world.hosts_of(lease)) == 2
    work_to(world, NOON + HOUR - LEAD + LIMIT + 2 * MINUTE)
    assert world.hosts_of(lease) == pool(world, lease) == {old}
    work_to(world, NOON + 8 * HOUR)
    assert old not in world.hosts_of(lease)
    assert outcomes(shown(world, made)) == {lease.id: Outcome.MIGRATED}


@pytest.mark.slow
def test_two_windows_together_move_no_more_servers_at_a_time_than_one(a_world):
    rules = Rules(limit=LIMIT, per_host=2, in_all=4)
    host_settings = HostSettings(evacuation=EvacuationSettings(rules, lead=LEAD))
    world = a_world(hosts=8, host_settings=host_settings)
    world.simulated.durations.migration = MINUTE
    leases = [used(world) for _ in range(4)]
    hosts = [host for lease in leases for host in world.hosts_of(lease)]
    for lease, host in zip(leases, hosts, strict=True):
        boot(world, lease, host)
    migrated(world, *hosts[:2]), migrated(world, *hosts[2:])
    work_to(world, NOON + HOUR - LEAD + MINUTE / 2)
    assert sum(len(world.hosts_of(lease)) == 2 for lease in leases) == 2
    work_to(world, NOON + HOUR)
    assert not set(hosts) & set(where(world).values())
