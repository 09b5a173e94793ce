# SPDX-License-Identifier: Apache-2.0
"""Leases for which servers of others are moved away first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.evacuation.values import Rules
from blazar.clouds.simulated.server_state import MoveFault
from blazar.manager.common.busy_leases import Busy
from blazar.manager.common.notifications import render_moves
from blazar.model.base.errors import InvalidInput, NotEnoughResources, WrongState
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from blazar.resources.hosts.evacuation_options import EvacuationSettings
from blazar.resources.hosts.options import HostSettings
from tests.world import NOON, World, a_host

MINUTE = timedelta(minutes=1)
LIMIT = timedelta(minutes=10)


@pytest.fixture
def world(a_world) -> World:
    """Return a cloud of five hosts: one to lease, two that can be emptied, and two that only take servers."""
    settings = EvacuationSettings(Rules(limit=LIMIT))
    made = a_world(hosts=5, register=False, host_settings=HostSettings(evacuation=settings))
    made.simulated.durations.migration = MINUTE
    made.register("node-1")
    for name in ("node-2", "node-3"):
        made.manager.resources.register(HOST, Registration({"name": name, "evacuable": True}))
    return made


def boot(world: World, host: str, name: str = "theirs", **more) -> str:
    return world.simulated.users.boot_server(name, project_id="others", user_id="u", host=host, **more).id


def best_effort(world: World, hosts: int = 2, hours: float = 4, **more) -> Lease:
    return world.lease(a_host(hosts), kind=LeaseKind.BEST_EFFORT, hours=hours, **more)


def where(world: World) -> dict[str, str]:
    with world.simulated.inspect() as state:
        now = world.clock.now()
        return {s.name: s.location(now) for s in state.servers.values() if not s.is_gone(now)}


def is_in_order(world: World, *servers: str) -> bool:
    """Tell whether every server is ACTIVE on one host with no open move, and no host that can be emptied is pooled."""
    with world.simulated.inspect() as state:
        now = world.clock.now()
        known = [state.servers[id_] for id_ in servers]
        idle = all(s.status_at(now) == "ACTIVE" and not any(m.is_open(now) for m in s.migrations) for s in known)
    return idle and not world.pool() & {"node-2", "node-3"} and world.reservation_aggregates() == []


def why(world: World, lease: Lease) -> str:
    return world.now(lease).event(EventType.START).reason or ""


@pytest.mark.slow
def test_servers_of_others_move_away_and_the_lease_starts(world):
    server, other = boot(world, "node-2"), boot(world, "node-2", "more")
    boot(world, "node-3", "third"), boot(world, "node-3", "fourth"), boot(world, "node-3", "fifth")
    lease = best_effort(world)
    assert lease.status is LeaseStatus.IN_PROGRESS
    world.run()
    assert world.pool() >= {"node-2"}
    assert "2 servers of others are still on node-2" in why(world, lease)
    world.run_to(NOON + 3 * MINUTE)
    assert (world.now(lease).status, why(world, lease)) == (LeaseStatus.ACTIVE, "")
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-2"}
    assert {where(world)[name] for name in ("theirs", "more")} <= {"node-4", "node-5"}
    world.run_to(NOON + timedelta(hours=5))
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert is_in_order(world, server, other)


def said(world: World) -> list[tuple[str, list[str]]]:
    """Return what projects were told of their servers, message by message."""
    return [(project, sorted(server.id for server in servers)) for project, servers in world.notifier.moved]


@pytest.mark.slow
def test_each_project_is_told_once_which_of_its_servers_were_moved_and_not_for_whom(world):
    theirs, more = boot(world, "node-2"), boot(world, "node-2", "more")
    arts = world.simulated.users.boot_server("a", project_id="art", user_id="v", host="node-2", status="SHUTOFF").id
    for name in "bcdefg":
        boot(world, "node-3", name)
    lease = best_effort(world)
    world.run_to(NOON + 2 * MINUTE)
    assert (world.now(lease).status, said(world)) == (LeaseStatus.IN_PROGRESS, [])
    world.run_to(NOON + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert said(world) == [("art", [arts]), ("others", sorted([theirs, more]))]
    (cold,), live = (servers for _, servers in world.notifier.moved)
    assert (cold.user_id, cold.live, {(each.user_id, each.live) for each in live}) == ("v", False, {("u", True)})
    payload = render_moves("art", [cold])
    assert payload["servers"] == [
        {"id": arts, "user_id": "v", "live": False, "moved_at": payload["servers"][0]["moved_at"]}
    ]
    assert lease.id not in str(payload)
    assert "node-" not in str(payload)
    world.run_to(NOON + timedelta(hours=5))
    assert len(world.notifier.moved) == 2


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [False, True])
def test_owners_are_told_also_if_making_room_is_given_up_or_the_lease_is_deleted(world, deleted):
    moved, hanging = boot(world, "node-2"), boot(world, "node-2", "more")
    for name in "abc":
        boot(world, "node-3", name)
    lease = best_effort(world)
    world.simulated.operators.spoil_move(hanging, MoveFault.HANGS)
    world.run_to(NOON + 2 * MINUTE)
    assert (where(world)["theirs"], said(world)) == ("node-4", [])
    if deleted:
        world.manager.leases.delete(lease.id)
    world.run_to(NOON + LIMIT + MINUTE)
    assert world.now(lease).status is (LeaseStatus.DELETING if deleted else LeaseStatus.TIMED_OUT)
    assert is_in_order(world, moved, hanging)
    # It stays where it is.
    assert (where(world)["theirs"], said(world)) == ("node-4", [("others", [moved])])
    if not deleted:
        world.manager.leases.delete(lease.id)
        assert len(said(world)) == 1


def test_nobody_is_told_of_moves_where_none_was_needed(world):
    boot(world, "node-2")
    lease = best_effort(world)
    world.run_to(NOON + MINUTE)
    assert (world.now(lease).status, said(world)) == (LeaseStatus.ACTIVE, [])


def test_nothing_moves_for_a_lease_that_can_be_placed_otherwise(world):
    boot(world, "node-2")
    lease = best_effort(world, hosts=1)
    assert lease.status is LeaseStatus.PENDING
    world.run()
    assert world.pool(lease.reservations[0].id) == {"node-1"}
    assert where(world) == {"theirs": "node-2"}


def test_an_empty_host_is_taken_without_a_move(world):
    boot(world, "node-2")
    lease = best_effort(world)
    world.run_to(NOON + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-3"}
    assert where(world) == {"theirs": "node-2"}


def test_too_few_candidates_are_refused_and_nothing_moves(world):
    boot(world, "node-2")
    pinned = boot(world, "node-3", "pinned", locked=True)
    with pytest.raises(NotEnoughResources) as error:
        best_effort(world, hosts=3)
    assert "3 hosts needed, 1 free, and 1 that can be emptied" in error.value.message
    assert f"server {pinned} on node-3 may not be moved: it is locked" in error.value.message
    assert "1 that can be emptied; on 1 host a server may not be moved." in error.value.public
    assert where(world) == {"theirs": "node-2", "pinned": "node-3"}
    assert world.manager.leases.all(None) == ()
    assert world.pool() == {"node-1"}


def test_a_refusal_names_each_server_that_stays_and_why_and_lists_hosts_as_a_sentence_does(world):
    world.manager.resources.register(HOST, Registration({"name": "node-4", "evacuable": True}))
    locked, kept = boot(world, "node-2", locked=True), boot(world, "node-3", "kept", tags=("blazar:keep",))
    with pytest.raises(NotEnoughResources) as error:
        best_effort(world, hosts=3)
    assert error.value.message.startswith(
        "3 hosts needed, 1 free, and 1 that can be emptied; "
        f"server {locked} on node-2 may not be moved: it is locked; "
        f"server {kept} on node-3 may not be moved: it has the tag blazar:keep. "
    )
    assert error.value.public.startswith(
        "3 hosts needed, 1 free, and 1 that can be emptied; on 2 hosts a server may not be moved. "
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "server",
    [
        {"locked": True},
        {"tags": ("blazar:keep",)},
        {"status": "SUSPENDED"},
        {"hint": "5f3e"},
        {"task_state": "resize_prep"},
        {"extra_specs": {"accel:device_profile": "fpga"}},
        {"extra_specs": {"aggregate_instance_extra_specs:reservation": "5f3e"}},
    ],
)
def test_a_host_with_a_server_that_may_not_move_is_not_emptied(world, server):
    boot(world, "node-2", **server)
    boot(world, "node-3", "a"), boot(world, "node-3", "b")
    lease = best_effort(world)
    world.run_to(NOON + 3 * MINUTE)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-3"}
    assert where(world)["theirs"] == "node-2"


def test_room_for_each_but_not_for_all_is_refused(world):
    with world.simulated.inspect() as state:
        memory = {host.name: host.memory_mb for host in state.hosts.values()}
    boot(world, "node-3", "pinned", locked=True)
    # Three gigabytes are left on each host besides the headroom.
    for host in ("node-3", "node-4", "node-5"):
        boot(world, host, f"big on {host}", memory_mb=memory[host] * 9 // 10 - 3600)
    for name in "abcd":
        boot(world, "node-2", name, memory_mb=2000)
    with pytest.raises(NotEnoughResources, match="no other hosts have room for all servers of node-2[.]"):
        best_effort(world)


@pytest.mark.slow
def test_a_move_that_fails_is_tried_to_another_host(world):
    server = boot(world, "node-2")
    boot(world, "node-3", "a"), boot(world, "node-3", "b")
    world.simulated.operators.spoil_move(server, MoveFault.FAILS)
    lease = best_effort(world)
    world.run_to(NOON + 4 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    with world.simulated.inspect() as state:
        failed, done = state.servers[server].migrations
    assert failed.host != done.host


@pytest.mark.slow
def test_a_move_that_hangs_is_given_up_in_time_and_all_is_in_order(world):
    server, other = boot(world, "node-2"), boot(world, "node-2", "more")
    for name in "abc":
        boot(world, "node-3", name)
    world.simulated.operators.spoil_move(server, MoveFault.HANGS)
    lease = best_effort(world)
    world.run_to(NOON + LIMIT - MINUTE)
    assert world.now(lease).status is LeaseStatus.IN_PROGRESS
    world.run_to(NOON + LIMIT + MINUTE)
    after = world.now(lease)
    assert after.status is LeaseStatus.TIMED_OUT
    assert {r.status for r in after.reservations} == {ReservationStatus.DELETED}
    assert "no room was made in time" in why(world, lease)
    assert is_in_order(world, server, other)
    assert world.notifier.types[-1] == "lease.timed_out"
    assert world.store.calendar.of_lease(lease.id) == ()
    assert best_effort(world, hosts=1).status is LeaseStatus.PENDING
    world.manager.leases.delete(lease.id)


@pytest.mark.slow
def test_what_is_beyond_its_point_of_return_is_waited_for(world):
    server = boot(world, "node-2")
    for name in "abc":
        boot(world, "node-3", name)
    world.simulated.operators.spoil_move(server, MoveFault.POST_COPY)
    lease = best_effort(world)
    world.run_to(NOON + LIMIT + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.IN_PROGRESS
    world.simulated.operators.finish_move(server)
    world.run_to(NOON + LIMIT + 7 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TIMED_OUT
    assert is_in_order(world, server)


def test_a_lease_that_is_deleted_meanwhile_moves_nothing_more(world):
    servers = [boot(world, "node-2", name) for name in "abcd"]
    for name in "efghi":
        boot(world, "node-3", name)
    lease = best_effort(world)
    world.run()
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).deleted_at is not None
    assert is_in_order(world, *servers)
    assert where(world)["d"] == "node-2"
    # What was aborted is where it was, and there is nothing to tell.
    assert ({where(world)[name] for name in "abcd"}, said(world)) == ({"node-2"}, [])


def test_a_boot_under_way_is_waited_for(world):
    lease = best_effort(world, hosts=3)
    late = boot(world, "node-2", "late")
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert where(world)["late"] in ("node-4", "node-5")
    assert late


def test_another_manager_goes_on_after_a_crash(world):
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    lease = best_effort(world)
    for minutes in (0, 1, 2, 3):
        world.manager = world.another_manager()
        world.run_to(NOON + minutes * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_room_is_not_counted_twice_for_two_leases(world):
    """The room for servers that are still to be moved for the first lease is not that of the second one's."""
    with world.simulated.inspect() as state:
        memory = {host.name: host.memory_mb for host in state.hosts.values()}
    # Room for two more servers of this size on each of the two hosts that only take servers.
    for host in ("node-4", "node-5"):
        boot(world, host, f"big on {host}", memory_mb=memory[host] * 9 // 10 - 5000)
    for host in ("node-2", "node-3"):
        for number in range(3):
            boot(world, host, f"{number} on {host}", memory_mb=2000)
    first = best_effort(world)
    world.run()
    with pytest.raises(NotEnoughResources, match="no other hosts have room"):
        best_effort(world, hosts=1, project="chemistry")
    world.run_to(NOON + 5 * MINUTE)
    assert world.now(first).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_what_placement_does_not_know_yet_takes_room_beside_what_it_knows(a_world, monkeypatch):
    settings = EvacuationSettings(Rules(limit=LIMIT, per_host=3))
    world = a_world(hosts=5, register=False, host_settings=HostSettings(evacuation=settings))
    world.simulated.durations.migration = MINUTE
    world.manager.resources.register(HOST, Registration({"name": "node-2", "evacuable": True}))
    with world.simulated.inspect() as state:
        memory = {host.name: host.memory_mb for host in state.hosts.values()}
    # Room for three servers of this size on one host, for one on another one, and for none elsewhere.
    for host, left in (("node-1", 0), ("node-3", 0), ("node-4", 6600), ("node-5", 2600)):
        boot(world, host, f"big on {host}", memory_mb=memory[host] * 9 // 10 - left)
    servers = [boot(world, "node-2", str(number), memory_mb=2000) for number in range(4)]
    lease = best_effort(world, hosts=1)
    world.run()
    with world.simulated.inspect() as state:
        moving = [id_ for id_ in servers if state.servers[id_].migrations]
    rooms = world.simulated.evacuation.rooms

    def without_the_last(names):
        """Return what Placement says as long as it does not know the last of those that have been sent."""
        found = rooms(names)
        hidden = {moving[-1]}
        return {
            name: replace(room, consumers={id_: n for id_, n in room.consumers.items() if id_ not in hidden})
            for name, room in found.items()
        }

    assert len(moving) == 3
    with monkeypatch.context() as patched:
        patched.setattr(world.simulated.evacuation, "rooms", without_the_last)
        world.run_to(NOON + MINUTE + timedelta(seconds=20))
    world.run_to(NOON + 6 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    # Four on one host would take of the share that stays free.
    assert [where(world)[str(number)] for number in range(4)] == ["node-4", "node-4", "node-4", "node-5"]


def test_one_project_makes_room_for_one_lease_at_a_time(world):
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    first = best_effort(world)
    with pytest.raises(NotEnoughResources, match=f"room is being made for lease {first.id}"):
        best_effort(world, hosts=1)


def test_of_two_requests_of_a_project_at_once_room_is_made_for_one(world):
    world.lease(a_host(), hours=9)
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    other, first = world.another_manager(), []

    def strike(name: str, phase: str) -> None:
        # The second has seen that room is made for no lease of the project, and has booked nothing.
        world.faults.on_call = None
        mine, world.manager = world.manager, other
        first.append(best_effort(world, hosts=1))
        world.manager = mine

    world.faults.on_call = strike
    with pytest.raises(NotEnoughResources, match="room is being made for lease") as error:
        best_effort(world, hosts=1)
    assert first[0].id in error.value.message
    assert [lease.id for lease in world.store.leases.of_project("physics") if lease.kind is LeaseKind.BEST_EFFORT] == [
        first[0].id
    ]
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(first[0]).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_it_is_not_changed_while_room_is_made_nor_when_none_was_made(world):
    server = boot(world, "node-2")
    for name in "abc":
        boot(world, "node-3", name)
    world.simulated.operators.spoil_move(server, MoveFault.HANGS)
    lease = best_effort(world)
    with pytest.raises(WrongState, match="it can be changed when it has started") as error:
        world.change(lease, name="other")
    assert not isinstance(error.value, Busy)
    world.run_to(NOON + LIMIT + MINUTE)
    with pytest.raises(WrongState, match="no room was made for the lease in time"):
        world.change(lease, name="other")


@pytest.mark.slow
def test_who_loses_a_race_for_a_host_has_another_one_emptied(world):
    world.lease(a_host(), hours=9)
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    other, first = world.another_manager(), []

    def strike(name: str, phase: str) -> None:
        # The hosts are chosen, and nothing is booked.
        world.faults.on_call = None
        mine, world.manager = world.manager, other
        first.append(best_effort(world, hosts=1, project="art"))
        world.manager = mine

    world.faults.on_call = strike
    second = best_effort(world, hosts=1)
    world.run_to(NOON + 3 * MINUTE)
    assert [world.now(lease).status for lease in (*first, second)] == [LeaseStatus.ACTIVE] * 2
    assert world.pool(first[0].reservations[0].id) == {"node-2"}
    assert world.pool(second.reservations[0].id) == {"node-3"}


@pytest.mark.slow
def test_a_host_that_is_being_unregistered_is_not_emptied(world):
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    one = next(host for host in world.manager.resources.all(HOST) if host.name == "node-2")
    world.store.resources.withdraw(one.id, at=world.clock.now())
    lease = best_effort(world)
    world.run_to(NOON + 3 * MINUTE)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-3"}


def test_what_it_cannot_be_is_refused(world):
    with pytest.raises(InvalidInput, match="starts as soon as there is room"):
        best_effort(world, start=timedelta(hours=1))
    with pytest.raises(InvalidInput, match="does not wait"):
        best_effort(world, wait=timedelta(days=1))
    with pytest.raises(InvalidInput, match="one reservation of whole hosts"):
        world.lease(a_host(), a_host(), kind=LeaseKind.BEST_EFFORT)


def test_a_host_that_is_emptied_takes_no_servers_of_another(world):
    world.manager.resources.register(HOST, Registration({"name": "node-4", "evacuable": True}))
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b"), boot(world, "node-4", "c")
    lease = best_effort(world, hosts=2)
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    # The host that no lease can have goes first.
    assert where(world)["theirs" if "node-2" in world.pool(lease.reservations[0].id) else "c"] == "node-5"


def test_a_host_that_a_lease_has_lost_is_open_to_all_again(world):
    boot(world, "node-2"), boot(world, "node-3", "a"), boot(world, "node-3", "b")
    lease = best_effort(world)
    world.run()
    world.register("node-5")
    world.simulated.operators.host_down("node-2")
    for _ in range(2):
        world.manager.monitor.run_once()
    # It is still held, and stays closed.
    assert "node-2" in world.pool()
    world.run_to(NOON + 3 * MINUTE)
    assert world.pool(lease.reservations[0].id) == {"node-1", "node-5"}
    world.manager.monitor.run_once()
    assert not world.pool() & {"node-2", "node-3"}


def test_a_host_is_not_emptied_until_its_last_lease_has_returned_it(world):
    boot(world, "node-3", "pinned", locked=True)
    first = best_effort(world, hours=1)
    world.run_to(NOON + MINUTE)
    world.clock.to(NOON + timedelta(hours=1, seconds=1))
    # The end of the first is due, and nobody has begun with it.
    with pytest.raises(NotEnoughResources, match="0 free, and 0 that can be emptied"):
        best_effort(world)
    world.run_to(NOON + timedelta(hours=1, minutes=1))
    assert world.now(first).status is LeaseStatus.TERMINATED
    second = best_effort(world)
    world.run_to(NOON + timedelta(hours=1, minutes=2))
    assert world.pool(second.reservations[0].id) == {"node-1", "node-2"}


def test_what_is_left_of_a_lease_that_is_over_disturbs_no_other(world):
    boot(world, "node-3", "pinned", locked=True)
    first = best_effort(world, hours=1)
    world.run_to(NOON + timedelta(hours=2))
    assert world.now(first).status is LeaseStatus.TERMINATED
    reservation = first.reservations[0].id
    world.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    server = boot(world, "node-2")
    best_effort(world)
    world.run()
    assert world.manager.sweep.run_once() == 1
    for _ in range(2):
        world.manager.engine.run_due()
    assert world.simulated.compute.aggregate(reservation) is None
    assert "node-2" in world.pool()
    with world.simulated.inspect() as state:
        (move,) = state.servers[server].migrations
        assert move.is_open(world.clock.now())
