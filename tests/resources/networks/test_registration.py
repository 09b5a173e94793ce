# SPDX-License-Identifier: Apache-2.0
"""Which segments can be registered, and how they are polled."""

from __future__ import annotations

import pytest

from blazar.clouds.simulated.state import RangeState
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import NETWORK
from blazar.resources.networks.type import NetworkReservation
from tests.resources.networks.steps import HOUR, in_cloud, vlan
from tests.world import NOON, PROJECT, World, a_network, segment_request

POLLS = 3
"""A resource has failed when that many polls say so."""


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, register=False)


def register(world: World, number: object = 101, **more: object):
    return world.manager.resources.register(NETWORK, segment_request(number, **more))


def test_a_segment_has_a_name_and_its_numbers(world):
    found = register(world, "101", capabilities={"usage_type": "storage"})
    assert (found.name, found.reservable) == ("vlan 101 on physnet1", True)
    assert found.attributes == {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 101}
    vxlan = register(world, 2**24 - 1, kind="vxlan", physical=None)
    assert (vxlan.name, vxlan.attributes["physical_network"]) == ("vxlan 16777215", None)


@pytest.mark.parametrize("again", [{}, {"kind": "vxlan", "physical": None}], ids=["vlan", "vxlan"])
def test_a_segment_is_registered_once_also_without_a_physical_network(world, again):
    register(world, 101, **again)
    with pytest.raises(Conflict, match="is registered already"):
        register(world, 101, **again)
    register(world, 102, **again)
    register(world, 101, physical="physnet2")


WRONG = {
    "type": ({"kind": "geneve"}, 'network_type is "geneve"; use one of vlan, vxlan'),
    "no type": ({"kind": None}, "Missing parameter network_type"),
    "no number": ({"number": None}, "Missing parameter segment_id"),
    "zero": ({"number": 0}, "segment_id is 0; give the id of a vlan, a whole number from 1 to 4094"),
    "beyond the last vlan": ({"number": 4095}, "segment_id is 4095; give the id of a vlan"),
    "beyond the last vxlan": ({"number": 2**24, "kind": "vxlan", "physical": None}, "from 1 to 16777215"),
    "a word": ({"number": "one"}, 'segment_id is "one"'),
    "true": ({"number": True}, "segment_id is true"),
    "a vlan nowhere": ({"physical": None}, "physical_network is null; give the name"),
    "a blank": ({"physical": " "}, 'physical_network is " "; give the name'),
    "a number": ({"physical": 7}, "physical_network is 7; give a string"),
    "a vxlan somewhere": ({"kind": "vxlan"}, 'physical_network is "physnet1", and a vxlan has none'),
}


@pytest.mark.parametrize(("wrong", "says"), WRONG.values(), ids=WRONG)
def test_what_is_no_segment_is_refused_with_the_field(world, wrong, says):
    with pytest.raises(InvalidInput) as raised:
        register(world, **{"number": 101, **wrong})
    assert says in raised.value.message
    assert world.manager.resources.all(NETWORK) == ()


def test_a_segment_with_a_network_is_refused(world):
    theirs = world.simulated.network_users.network(vlan(101), project_id="art")
    with pytest.raises(Conflict, match=f"vlan 101 on physnet1 is in use by network {theirs.id} of project art"):
        register(world)
    register(world, 102)
    register(world, 101, physical="physnet2")


def test_a_segment_that_neutron_serves_others_from_is_refused(world):
    with world.simulated.change_state() as state:
        state.ranges = [
            RangeState("vlan", "physnet1", 100, 199),
            RangeState("vlan", "physnet1", 200, 299, "art"),
            RangeState("vlan", "physnet1", 300, 399, "service"),
        ]
    with pytest.raises(InvalidInput, match=r"is in a range \(100 to 199\) from which Neutron serves all projects"):
        register(world, 199)
    with pytest.raises(InvalidInput, match="from which Neutron serves project art"):
        register(world, 200)
    for number, physical in ((300, "physnet1"), (400, "physnet1"), (150, "physnet2")):
        register(world, number, physical=physical)


def test_attributes_are_no_capabilities(world):
    with pytest.raises(InvalidInput, match="segment_id is read from the cloud"):
        register(world, capabilities={"segment_id": "7"})


def test_an_unknown_segment_is_told_as_clients_expect(world):
    with pytest.raises(NotFound, match="Object with {'network_id': 'nothing'} not found"):
        world.manager.resources.one(NETWORK, "nothing")


def failures(world: World) -> dict[int, str | None]:
    for _ in range(POLLS):
        world.manager.monitor.run_once()
    return {int(r.attributes["segment_id"]): r.failure for r in world.manager.resources.all(NETWORK)}


def test_a_poll_makes_one_call_and_tells_of_networks_that_are_not_ours(world):
    world.register_segments(*range(101, 121))
    lease = world.lease(a_network(needs='["=", "$segment_id", "101"]'))
    world.run()
    theirs = world.simulated.network_users.network(vlan(102), project_id="art")
    world.faults.calls.clear()
    found = failures(world)
    assert world.faults.calls["segment_networks"] == POLLS
    assert {number: reason for number, reason in found.items() if reason} == {
        102: f"vlan 102 on physnet1 is in use by network {theirs.id} of project art"
    }
    with world.simulated.change_state() as state:
        del state.networks[theirs.id]
    assert not any(failures(world).values())
    assert set(in_cloud(world)) == {101}
    assert world.now(lease).reservations[0].missing_resources is False


def test_a_false_mark_on_the_network_of_a_reservation_fails_no_segment(world):
    world.register_segments(101)
    lease = world.lease(a_network())
    world.run()
    (network,) = in_cloud(world).values()
    world.simulated.network_users.rename(network.id, tags=["reservation:other", "reservation:\0"])
    assert failures(world) == {101: None}
    world.manager.monitor.heal()
    assert f"reservation:{lease.reservations[0].id}" in in_cloud(world)[101].tags
    assert failures(world) == {101: None}


@pytest.mark.parametrize(("project", "fails"), [("art", True), (PROJECT, False)])
def test_a_mark_of_another_project_does_not_hide_that_a_segment_is_taken(world, project, fails):
    register(world, 101)
    lease = world.lease(a_network(), start=HOUR)
    theirs = world.simulated.network_users.network(vlan(101), project_id=project)
    sign = f"reservation:{lease.reservations[0].id}"
    world.simulated.network_users.rename(theirs.id, tags=["blazar", sign], description=sign)
    for _ in range(POLLS):
        world.manager.monitor.run_once()
    (segment,) = world.manager.resources.all(NETWORK)
    assert (segment.failure is not None) is fails
    assert world.now(lease).degraded is fails


def test_marks_that_cannot_be_ids_are_no_leftovers(world):
    world.register_segments(101)
    theirs = world.simulated.network_users.network(vlan(300), project_id="art")
    false = [f"reservation:{text}" for text in ("", "\0", "\n", "x" * 37, "é")]
    world.simulated.network_users.rename(theirs.id, tags=["blazar", *false, "reservation:x"])
    found = world.manager.resources.all(NETWORK)
    assert NetworkReservation(world.simulated.cloud).reservations_in_cloud(found) == {"x"}


def test_a_network_of_a_reservation_that_is_over_is_a_failure_of_its_segment(world):
    world.register_segments(101)
    theirs = world.simulated.network_users.network(vlan(101), project_id="art")
    world.simulated.network_users.rename(theirs.id, tags=["blazar", "reservation:long-ago"])
    assert "is in use by network" in (failures(world)[101] or "")


def test_a_segment_that_is_promised_cannot_be_unregistered(world):
    (segment,) = world.register_segments(101)
    lease = world.lease(a_network(), start=HOUR)
    with pytest.raises(Conflict, match="the network segment is allocated to lease"):
        world.manager.resources.unregister(NETWORK, segment.external_id)
    world.manager.leases.delete(lease.id)
    world.manager.resources.unregister(NETWORK, segment.external_id)
    assert world.manager.resources.all(NETWORK) == ()


UNKNOWN = "vlan 7 on physnet9 cannot have a network (there is no physical network physnet9 for VLANs); correct "


def on_nowhere(world: World) -> None:
    """Register a segment whose physical network Neutron does not have: no call that only reads tells."""
    register(world, 7, physical="physnet9")


def test_a_segment_on_a_physical_network_that_neutron_does_not_have_is_found_at_its_first_start(world):
    on_nowhere(world)
    lease = world.lease(a_network())
    world.run()
    start = world.now(lease).event(EventType.START)
    assert world.now(lease).status is LeaseStatus.ERROR
    assert start.reason is not None
    assert start.reason.startswith(
        UNKNOWN + "network_vlan_ranges in Neutron's configuration, or unregister the segment"
    )
    assert start.reason.endswith("; nothing else is free to take its place")
    (segment,) = world.manager.resources.all(NETWORK)
    assert (segment.failure or "").startswith(UNKNOWN)


def test_it_stays_failed_for_an_hour_as_no_poll_can_see_that_or_until_it_is_refreshed(world):
    on_nowhere(world)
    (segment,) = world.manager.resources.all(NETWORK)

    def failure_after(lease: Lease, minutes: int) -> str:
        world.run()
        world.manager.leases.delete(lease.id)
        world.clock.by(minutes=minutes)
        for _ in range(POLLS):
            world.manager.monitor.run_once()
        return world.manager.resources.one(NETWORK, segment.external_id).failure or ""

    assert failure_after(world.lease(a_network()), 50).startswith(UNKNOWN)
    with pytest.raises(NotEnoughResources):
        world.lease(a_network())
    world.manager.resources.refresh(NETWORK, segment.external_id)
    assert failure_after(world.lease(a_network()), 61) == ""


def test_another_segment_takes_its_place(world):
    on_nowhere(world)
    lease = world.lease(a_network(), start=HOUR)
    world.register_segments(101)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    (network,) = world.simulated.segments.segment_networks(tag="blazar")
    assert [each.segment_id for each in network.segments] == [101]
