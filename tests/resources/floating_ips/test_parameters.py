# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of addresses."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.leases.reservation import NO_CONTENT
from blazar.model.leases.states import LeaseStatus
from blazar.resources.hosts.options import HostSettings
from tests.resources.floating_ips.steps import HOUR, in_cloud, promised
from tests.world import NOON, addresses


def test_the_parameters_are_kept_as_clients_know_them(world):
    lease = world.lease(addresses("2", required=["203.0.113.10"]), start=HOUR)
    assert lease.reservations[0].parameters.values == {
        "network_id": "public",
        "amount": 2,
        "required_floatingips": ["203.0.113.10"],
        "before_end": "default",
    }
    assert lease.reservations[0].cloud_ids == NO_CONTENT
    assert (lease.status, promised(world, lease) >= {10}) == (LeaseStatus.PENDING, True)
    assert in_cloud(world) == {}


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"amount": 0}, "amount is 0"),
        ({"amount": -1}, "amount is -1"),
        ({"amount": ""}, "amount"),
        ({"amount": None}, "amount"),
        ({"amount": 1.5}, "amount"),
        ({"amount": 2**31}, "amount"),
        ({"network": ""}, "network_id"),
        ({"network": 5}, "network_id"),
        ({"network": None}, "network_id"),
        ({"network": "n" * 256}, "network_id"),
        ({"required": "203.0.113.10"}, "give a list"),
        ({"required": {"203.0.113.10": 1}}, "give a list"),
        ({"required": None}, "give a list"),
        ({"required": ["203.0.113"]}, r"required_floatingips\[0\]"),
        ({"amount": 2, "required": [10, "x"]}, r"required_floatingips\[1\]"),
        ({"amount": 2, "required": [10, None]}, r"required_floatingips\[1\]"),
        ({"amount": 2, "required": [3405803786]}, "required_floatingips"),
        ({"amount": 1, "required": [10, 11]}, "2 addresses, and amount is 1"),
        ({"amount": 3, "required": [10, 11, 10]}, "203.0.113.10 more than once"),
        ({"amount": 1, "required": ["198.51.100.1"]}, "198.51.100.1 .*no such floating IP is registered"),
        ({"amount": 1, "required": [99]}, "203.0.113.99 on network public: no such floating IP is registered"),
        ({"amount": 1, "required": [10], "network": "other"}, "203.0.113.10 on network other: no such"),
        ({"before_end": "snapshot"}, "before_end"),
        ({"before_end": "migration"}, "before_end"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_the_field_named(world, wrong, says):
    with pytest.raises(InvalidInput, match=says):
        world.lease(addresses(**wrong), start=HOUR)
    assert world.manager.leases.all(None) == ()


def test_a_request_for_too_many_is_refused_with_the_number_available(world):
    world.lease(addresses(7), start=HOUR)
    with pytest.raises(NotEnoughResources, match="at least 4 requested, 10 match, 3 of them free"):
        world.lease(addresses(4), start=2 * HOUR)
    with pytest.raises(NotEnoughResources, match="Not enough floating IPs available"):
        world.lease(addresses(2**31 - 1), start=HOUR)
    with pytest.raises(NotEnoughResources, match="0 match"):
        world.lease(addresses(network="elsewhere"), start=HOUR)


@pytest.mark.parametrize("default", ["snapshot", "migration", "", "none"])
def test_an_operators_default_that_saves_servers_comes_to_a_notification(a_world, default):
    world = a_world(hosts=0, host_settings=HostSettings(before_end=default))
    world.register_addresses(10)
    lease = world.lease(addresses())
    world.run_to(NOON + HOUR)
    told = "lease.event.before_end_lease" in world.notifier.types
    assert (told, world.now(lease).status) == (default != "none", LeaseStatus.ACTIVE)
