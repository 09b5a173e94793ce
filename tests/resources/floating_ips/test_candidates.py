# SPDX-License-Identifier: Apache-2.0
"""Which addresses are proposed to operators: those that can be registered, of every external network."""

from __future__ import annotations

from collections import Counter

import pytest

from blazar.clouds.simulated.state import NetworkState, SubnetState
from blazar.model.base.errors import CloudUnavailable
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import FLOATING_IP
from blazar.resources.floating_ips import registration
from blazar.resources.floating_ips.registration import MOST
from tests.resources.floating_ips.steps import DOWN, HOUR, KIND, add_ipv6, created, ip
from tests.world import NOON, addresses


def proposed(world):
    return world.manager.resources.candidates(FLOATING_IP)


def names(world, *, registered: bool | None = None) -> list[str]:
    found = proposed(world)
    return [each.name for each in found if registered is None or registered == (each.resource_id is not None)]


def add(world, network_id: str, *subnets: SubnetState, name: str = "", external: bool = True) -> None:
    with world.simulated.change_state() as state:
        state.networks[network_id] = NetworkState(network_id, name, external, list(subnets))


@pytest.fixture
def empty(a_world):
    """A world whose cloud has no network at first."""
    world = a_world(hosts=0)
    with world.simulated.change_state() as state:
        state.networks.clear()
    return world


@pytest.mark.slow
def test_every_address_that_is_proposed_can_be_registered_and_no_other(a_world):
    world = a_world(hosts=0)
    world.simulated.operators.take_address("public", ip(66))
    created(world, 77, project="art")
    (known,) = world.register_addresses(10)
    free = [each for each in proposed(world) if each.resource_id is None]
    # The gateway is .1, and the pool begins at .128.
    assert [each.registration["floating_ip_address"] for each in free] == [
        ip(number) for number in range(2, 128) if number not in (10, 66, 77)
    ]
    (registered,) = [each for each in proposed(world) if each.resource_id is not None]
    assert (registered.name, registered.resource_id) == ("203.0.113.10 on public", known.external_id)
    for each in free:
        world.manager.resources.register(FLOATING_IP, Registration(each.registration))
    assert names(world, registered=False) == []
    assert len(names(world, registered=True)) == 124


def test_registered_addresses_that_are_in_use_are_in_the_list_with_their_ids(world):
    before = {each.resource_id for each in proposed(world)} - {None}
    lease = world.lease(addresses(2), start=HOUR)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status == "ACTIVE"
    assert {each.resource_id for each in proposed(world)} - {None} == before
    assert before == {each.external_id for each in world.manager.resources.all(KIND)}
    assert not set(names(world, registered=True)) & set(names(world, registered=False))


def test_addresses_come_by_network_subnet_and_number(empty):
    add(empty, "n-2", SubnetState("s-3", "198.51.100.8/30"), SubnetState("s-2", "198.51.100.0/29"), name="second")
    add(empty, "n-1", SubnetState("s-1", "192.0.2.0/30", "192.0.2.2"), name="third")
    add(empty, "n-0", SubnetState("s-0", "10.0.0.0/29"), name="inside", external=False)
    assert [each.name for each in proposed(empty)] == [
        *(f"198.51.100.{number} on second" for number in (1, 2, 3, 4, 5, 6, 9, 10)),
        "192.0.2.1 on third",
    ]


def test_networks_of_one_name_or_of_none_are_told_apart_by_their_ids(empty):
    for number, name in enumerate(("wide", "wide", ""), 1):
        add(empty, f"n-{number}", SubnetState(f"s-{number}", f"192.0.2.{number}/32"), name=name)
    assert names(empty) == ["192.0.2.3 on n-3", "192.0.2.1 on wide n-1", "192.0.2.2 on wide n-2"]
    assert len({each.id for each in proposed(empty)}) == 3


def test_of_each_subnet_the_first_are_proposed_beside_what_is_registered(empty):
    add(empty, "n", SubnetState("a", "10.0.0.0/8"), SubnetState("b", "172.16.0.0/12"), name="wide")
    assert len(names(empty)) == 2 * MOST
    assert (names(empty)[0], names(empty)[MOST]) == ("10.0.0.1 on wide", "172.16.0.1 on wide")
    for each in proposed(empty)[:3]:
        empty.manager.resources.register(FLOATING_IP, Registration(each.registration))
    free = names(empty, registered=False)
    assert (len(free), free[0]) == (2 * MOST, "10.0.0.4 on wide")
    assert len(names(empty)) == 2 * MOST + 3


def test_pools_are_passed_over_without_a_look_at_their_addresses(empty, monkeypatch):
    looked = Counter[str]()
    plain = registration.use_by_subnet

    def counting(subnet, address):
        looked[address] += 1
        return plain(subnet, address)

    monkeypatch.setattr(registration, "use_by_subnet", counting)
    # The second pool lies in the first one.
    pools = [["10.0.0.3", "10.255.255.252"], ["10.0.0.9", "10.7.0.0"]]
    add(empty, "n", SubnetState("a", "10.0.0.0/8", "10.0.0.1", pools), name="wide")
    assert names(empty) == ["10.0.0.2 on wide", "10.255.255.253 on wide", "10.255.255.254 on wide"]
    assert len(looked) == 6


def test_addresses_of_ipv6_are_listed_only_if_they_are_registered(empty):
    add(empty, "n", SubnetState("six", "2001:db8::/64"), SubnetState("four", "192.0.2.1/32"), name="both")
    assert names(empty) == ["192.0.2.1 on both"]
    add_ipv6(empty, "n", "six", "2001:db8::10")
    assert names(empty) == ["192.0.2.1 on both", "2001:db8::10 on both"]
    assert names(empty, registered=True) == ["2001:db8::10 on both"]


def test_the_number_of_calls_is_that_of_networks_and_not_of_addresses(empty):
    calls = Counter[str]()
    empty.simulated.faults.on_call = lambda name, phase: calls.update([name] if phase == "before" else [])
    for number in range(3):
        add(empty, f"n-{number}", SubnetState(f"s-{number}", f"10.{number}.0.0/16"), name=f"n-{number}")
    # Of a network that allocates everything itself nothing is asked.
    full = SubnetState("full", "10.9.0.0/16", "10.9.0.1", [["10.9.0.2", "10.9.255.254"]])
    add(empty, "full", full, name="full")
    assert len(names(empty)) == 3 * MOST
    assert calls == {"external_networks": 1, "floating_ips": 3, "used_addresses": 3}


@pytest.mark.parametrize("call", ["external_networks", "floating_ips", "used_addresses"])
def test_a_cloud_that_does_not_answer_is_told_and_no_list_is_made_up(a_world, call):
    world = a_world(hosts=0)
    world.simulated.faults.fail_before(call, DOWN)
    with pytest.raises(CloudUnavailable, match="does not answer"):
        proposed(world)
    assert len(proposed(world)) == 126
