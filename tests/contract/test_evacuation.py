# SPDX-License-Identifier: Apache-2.0
"""What an evacuation relies on in Nova and Placement: who is on a host, and what becomes of a move."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.evacuation import MovePhase
from blazar.clouds.simulated.server_state import MoveFault
from blazar.model.base.errors import CloudRefused, Conflict, NotFound

NOWHERE = "3e5e19b5-4ee1-4d0c-b1ee-000000000000"


@pytest.fixture
def evacuation(site):
    return site.cloud.evacuation


def over(site, server_id, number=1):
    """Wait until so many moves of a server are over; return the last one."""
    moves = site.soon(
        lambda: site.cloud.evacuation.moves_of(server_id),
        lambda found: len(found) == number and not any(move.is_open for move in found),
    )
    return moves[-1]


def in_order(site, places):
    """Wait until each of these servers is idle on its host alone, in Nova as in Placement, and nothing is open."""
    hosts, evacuation = site.hosts[:2], site.cloud.evacuation

    def seen():
        idle = {o.id: host for host in hosts for o in evacuation.occupants(host) if o.task_state is None}
        held = {consumer: host for host, room in evacuation.rooms(hosts).items() for consumer in room.consumers}
        return idle, held, [move for host in hosts for move in evacuation.open_moves(host)]

    site.soon(seen, lambda found: found == (places, places, []))


def test_occupants_say_what_decides_whether_they_may_be_moved(site, evacuation):
    host = site.hosts[0]
    plain, locked, stopped = site.boot(host), site.boot(host, locked=True), site.boot(host, status="SHUTOFF")
    found = {occupant.id: occupant for occupant in evacuation.occupants(host)}
    assert {i: (o.status, o.locked) for i, o in found.items()} == {
        plain.id: ("ACTIVE", False),
        locked.id: ("ACTIVE", True),
        stopped.id: ("SHUTOFF", False),
    }
    one = found[plain.id]
    assert (one.host, one.project_id, one.task_state, one.hints) == (host, site.project, None, frozenset())
    assert (one.memory_mb, one.disk_gb, one.amounts.get("VCPU")) == (512, 1, 1)
    assert (one.volume_backed, one.tags, one.group, one.specials) == (False, frozenset(), None, frozenset())
    assert evacuation.occupants(site.hosts[1]) == ()
    there = site.boot(site.hosts[1])
    both = {occupant.id: occupant.host for occupant in evacuation.occupants(*site.hosts[:2])}
    assert both == {**dict.fromkeys(found, host), there.id: site.hosts[1]}


def test_occupants_have_tags_and_a_group_with_all_its_members(site, evacuation):
    host, other = site.hosts[:2]
    group = site.cloud.compute.create_server_group("contract-group", "anti-affinity", site.project)
    try:
        one = site.boot(host, group=group, tags=("blazar:keep",))
        two = site.boot(other, group=group)
        (found,) = evacuation.occupants(host)
        assert found.tags == {"blazar:keep"}
        assert (found.group.id, found.group.policy) == (group, "anti-affinity")
        assert found.group.members == {one.id, two.id}
    finally:
        site.cloud.compute.delete_server_group(group)


def test_a_live_move_is_recorded_from_its_source_to_its_target(site, evacuation):
    host, other = site.hosts[:2]
    server = site.boot(host)
    assert evacuation.moves_of(server.id) == ()
    evacuation.begin_move(server.id, other, live=True)
    move = over(site, server.id)
    assert (move.phase, move.source, move.target, move.live) == (MovePhase.COMPLETED, host, other, True)
    assert (move.server_id, move.can_be_aborted) == (server.id, False)
    assert move.started_at <= move.changed_at
    (owner,) = evacuation.owners([server.id, NOWHERE]).values()
    assert (owner.project_id, bool(owner.user_id)) == (site.project, True)
    since = move.started_at
    assert [found for found in evacuation.moves_since(host, since) if found.server_id == server.id] == [move]
    assert move not in evacuation.moves_since(other, since)
    assert evacuation.moves_since(host, since + timedelta(days=1)) == ()
    assert evacuation.open_moves(host) == evacuation.open_moves(other) == ()
    site.soon(lambda: evacuation.occupants(other), lambda there: [o.task_state for o in there] == [None])
    assert evacuation.occupants(host) == ()
    with pytest.raises(Conflict):
        evacuation.begin_move_abort(server.id, move.id)
    # Placement has taken the server to the target, and the move has left nothing on the source.
    rooms = site.soon(lambda: evacuation.rooms([host, other]), lambda found: not found[host].consumers)
    assert set(rooms[other].consumers) == {server.id}


def test_a_stopped_server_moves_cold_and_has_to_be_confirmed(site, evacuation):
    host, other = site.hosts[:2]
    server = site.boot(host, status="SHUTOFF")
    with pytest.raises((Conflict, CloudRefused)):
        evacuation.begin_move(server.id, other, live=True)
    evacuation.begin_move(server.id, other, live=False)
    site.soon(lambda: evacuation.occupants(other), lambda there: [o.status for o in there] == ["VERIFY_RESIZE"])
    (move,) = evacuation.moves_of(server.id)
    assert (move.phase, move.live, move.is_open) == (MovePhase.TO_CONFIRM, False, True)
    assert evacuation.open_moves(host) == evacuation.open_moves(other) == (move,)
    # Until it is confirmed, the move holds the server's place on the source.
    assert set(evacuation.rooms([host])[host].consumers) == {move.consumer}
    site.cloud.compute.confirm_migration(server.id)
    assert over(site, server.id).phase is MovePhase.COMPLETED
    site.soon(lambda: evacuation.rooms([host]), lambda found: not found[host].consumers)


def test_a_move_that_the_scheduler_refuses_fails_in_its_record_alone(site, evacuation):
    host, other = site.hosts[:2]
    server = site.boot(host)
    site.service(other, enabled=False)
    evacuation.begin_move(server.id, other, live=True)
    assert over(site, server.id).phase is MovePhase.FAILED
    site.soon(lambda: evacuation.occupants(host), lambda there: [o.task_state for o in there] == [None])
    rooms = site.soon(lambda: evacuation.rooms([host, other]), lambda found: not found[other].consumers)
    assert set(rooms[host].consumers) == {server.id}


def test_a_move_that_fails_on_the_way_leaves_the_server_where_it_was(site, evacuation):
    host, other = site.hosts[:2]
    server = site.boot(host)
    site.spoil_move(server.id, MoveFault.FAILS)
    evacuation.begin_move(server.id, other, live=True)
    assert over(site, server.id).phase is MovePhase.FAILED
    site.spoil_move(server.id, None)
    in_order(site, {server.id: host})
    evacuation.begin_move(server.id, other, live=True)
    assert over(site, server.id, 2).phase is MovePhase.COMPLETED
    in_order(site, {server.id: other})


def test_a_move_that_hangs_is_aborted_and_so_is_one_that_is_queued_behind_it(site, evacuation):
    host, other = site.hosts[:2]
    hanging, queued, last = site.boot(host), site.boot(host), site.boot(host)
    site.spoil_move(hanging.id, MoveFault.HANGS)

    def phase(server):
        return [move.phase for move in evacuation.moves_of(server.id)]

    evacuation.begin_move(hanging.id, other, live=True)
    site.soon(lambda: phase(hanging), lambda found: found == [MovePhase.RUNNING])
    for server in (queued, last):
        evacuation.begin_move(server.id, other, live=True)
        site.soon(
            lambda server=server: [move.status for move in evacuation.moves_of(server.id)],
            lambda found: found == ["queued"],
        )
    found = evacuation.open_moves(host)
    assert [(move.server_id, move.can_be_aborted) for move in found] == [
        (hanging.id, True),
        (queued.id, True),
        (last.id, True),
    ]
    assert {move.id for move in evacuation.open_moves(other)} == {move.id for move in found}
    with pytest.raises(Conflict):
        evacuation.begin_move(hanging.id, site.hosts[2], live=True)
    # The servers hold their places on the target already, the moves those on the source.
    rooms = evacuation.rooms([host, other])
    assert set(rooms[other].consumers) == {hanging.id, queued.id, last.id}
    assert set(rooms[host].consumers) == {move.consumer for move in found}

    evacuation.begin_move_abort(queued.id, found[1].id)
    assert over(site, queued.id).phase is MovePhase.CANCELLED
    assert phase(hanging) == [MovePhase.RUNNING]
    evacuation.begin_move_abort(hanging.id, found[0].id)
    assert over(site, hanging.id).phase is MovePhase.CANCELLED
    # The way is free for the last one.
    assert over(site, last.id).phase is MovePhase.COMPLETED
    in_order(site, {hanging.id: host, queued.id: host, last.id: other})


def test_a_move_beyond_the_point_of_return_cannot_be_aborted_and_completes(site, evacuation):
    host, other = site.hosts[:2]
    server = site.boot(host)
    site.spoil_move(server.id, MoveFault.POST_COPY)
    evacuation.begin_move(server.id, other, live=True)
    (move,) = site.soon(
        lambda: evacuation.moves_of(server.id), lambda found: [m.phase for m in found] == [MovePhase.NO_RETURN]
    )
    assert (move.can_be_aborted, move.is_open) == (False, True)
    assert [move.id for move in evacuation.open_moves(host)] == [move.id]
    with pytest.raises(Conflict):
        evacuation.begin_move_abort(server.id, move.id)
    site.finish_move(server.id)
    assert over(site, server.id).phase is MovePhase.COMPLETED
    in_order(site, {server.id: other})


def test_what_does_not_exist_cannot_be_moved_or_aborted(site, evacuation):
    server = site.boot(site.hosts[0])
    with pytest.raises((CloudRefused, NotFound)):
        evacuation.begin_move(server.id, "no-such-node", live=True)
    with pytest.raises(NotFound):
        evacuation.begin_move(NOWHERE, site.hosts[1], live=True)
    with pytest.raises(NotFound):
        evacuation.begin_move_abort(NOWHERE, "4711")
    with pytest.raises((Conflict, NotFound)):
        evacuation.begin_move_abort(server.id, "4711")
    assert evacuation.moves_of(NOWHERE) == ()
    assert evacuation.open_moves("no-such-node") == ()


def test_room_is_what_a_host_has_less_what_its_consumers_hold(site, evacuation):
    host = site.hosts[1]
    empty = evacuation.rooms([host])[host]
    assert (empty.consumers, empty.free) == ({}, empty.inventory.capacity)
    assert empty.inventory == site.cloud.placement.inventories([host])[host]
    server = site.boot(host)
    (occupant,) = evacuation.occupants(host)
    room = evacuation.rooms([host])[host]
    assert room.consumers == {server.id: occupant.amounts}
    assert room.free + occupant.amounts == empty.free
    assert room.has_room_for(occupant.amounts)
    assert not room.has_room_for(empty.inventory.capacity)
    assert evacuation.rooms(["no-such-node"]) == {}
