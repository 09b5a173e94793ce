# SPDX-License-Identifier: Apache-2.0
"""Which hosts count as failed, and since when."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import CloudUnavailable, Conflict, NotEnoughResources
from blazar.model.resources.resource import HOST
from tests.manager.health.steps import HOUR, look
from tests.observed import ObservedStore, before
from tests.statements import counted
from tests.world import NOON, TYPES, a_host


def test_one_missed_look_reshuffles_nothing(world):
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world, 1)
    assert world.hosts_of(lease) == {host}
    world.simulated.operators.host_up(host)
    look(world, 1)
    world.simulated.operators.host_down(host)
    look(world, 1)
    assert world.hosts_of(lease) == {host}
    look(world, 1)
    assert world.hosts_of(lease) != {host}


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("host_down", "its nova-compute is down"),
        ("host_disabled", "its nova-compute is disabled"),
        ("host_vanishes", "the cloud no longer knows it"),
    ],
)
def test_a_failed_host_takes_no_new_lease_and_says_why(world, trouble, reason):
    getattr(world.simulated.operators, trouble)("node-1")
    look(world)
    host = world.manager.resources.one(HOST, "1")
    assert (host.reservable, host.failure, host.failed_since, host.disabled) == (False, reason, NOON, False)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(3))
    assert world.hosts_of(world.lease(a_host(2))) == {"node-2", "node-3"}


def test_a_host_in_no_pool_counts_as_failed_until_it_is_back_in_one(world):
    freepool = world.simulated.compute.aggregate("freepool")
    world.simulated.compute.remove_host(freepool.id, "node-1")
    look(world)
    failure = world.manager.resources.one(HOST, "1").failure
    assert "(openstack aggregate add host freepool " in failure
    world.simulated.compute.add_host(freepool.id, "node-1")
    look(world)
    assert world.manager.resources.one(HOST, "1").reservable


def test_a_host_is_well_again_when_it_was_seen_so_twice(world):
    world.simulated.operators.host_down("node-1")
    look(world)
    world.simulated.operators.host_up("node-1")
    look(world, 1)
    assert not world.manager.resources.one(HOST, "1").reservable
    look(world, 1)
    host = world.manager.resources.one(HOST, "1")
    assert (host.reservable, host.failure, host.failed_since) == (True, None, None)


def test_what_was_said_of_a_host_needs_no_second_look(world):
    world.simulated.operators.host_disabled("node-1")
    world.manager.monitor.hint("node-1")
    look(world, 1)
    assert not world.manager.resources.one(HOST, "1").reservable
    world.simulated.operators.host_enabled("node-1")
    world.manager.monitor.hint("node-1")
    look(world, 1)
    assert world.manager.resources.one(HOST, "1").reservable


def test_a_cloud_that_does_not_answer_says_nothing_of_its_hosts_and_that_is_said_once(world, caplog):
    world.faults.fail_before("hypervisors", CloudUnavailable("Nova is away"), times=4)
    look(world, 4)
    assert all(host.reservable for host in world.manager.resources.all(HOST))
    assert caplog.text.count("Nova is away") == 1


def test_a_list_without_any_of_our_hosts_is_not_believed(world, caplog):
    for number in (1, 2, 3):
        world.simulated.operators.host_vanishes(f"node-{number}")
    look(world, 3)
    assert all(host.reservable for host in world.manager.resources.all(HOST))
    assert "ignored as unreliable" in caplog.text


def test_a_quiet_look_costs_a_few_statements_whatever_the_number_of_hosts(a_world):
    # With the kinds of hosts and addresses.
    world = a_world(hosts=12, types=TYPES[:4])
    look(world, 1)
    with counted(world.engine) as found:
        look(world, 1)
    # Two for each kind of resource.
    assert found.count <= 4
    calls = dict(world.faults.calls)
    look(world, 1)
    assert sum(world.faults.calls.values()) - sum(calls.values()) == 3


def test_the_monitor_records_changes_of_a_host_in_the_cloud(world):
    world.lease()
    world.run()
    zones = {host.name: host.attributes["availability_zone"] for host in world.manager.resources.all(HOST)}
    with world.simulated.change_state() as state:
        state.hosts["1"].vcpus = 8
    look(world, 1)
    assert world.manager.resources.one(HOST, "1").attributes["vcpus"] == 8
    # Not the zone of the reservation that a host is in.
    assert {host.name: host.attributes["availability_zone"] for host in world.manager.resources.all(HOST)} == zones


def test_a_host_that_is_closed_keeps_the_zone_by_which_it_is_asked_for(world):
    """Nova shows none for it: a request for a zone would find no host that sleeps or is in maintenance."""
    before = world.manager.resources.one(HOST, "1")
    world.simulated.operators.host_disabled("node-1", "blazar power")
    look(world, 1)
    assert world.simulated.cloud.compute.hypervisor(id="1").availability_zone == ""
    assert world.manager.resources.one(HOST, "1").details == before.details


def test_a_host_that_the_cloud_has_lost_can_be_deleted(world):
    world.simulated.operators.host_vanishes("node-1")
    world.manager.resources.unregister(HOST, "1")
    assert [host.name for host in world.manager.resources.all(HOST)] == ["node-2", "node-3"]


def test_a_lost_host_that_is_promised_stays_as_it_was(world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_vanishes("node-1")
    with pytest.raises(Conflict, match=lease.id):
        world.manager.resources.unregister(HOST, "1")
    world.manager.leases.delete(lease.id)
    world.faults.fail_before("servers_on", CloudUnavailable("away"))
    with pytest.raises(CloudUnavailable):
        world.manager.resources.unregister(HOST, "1")
    assert world.manager.resources.one(HOST, "1").name == "node-1"
    world.manager.resources.unregister(HOST, "1")


def test_nothing_is_promised_of_what_has_failed_since_it_was_read(world):
    def fail_first():
        world.simulated.operators.host_down("node-3")
        look(world)

    world.manager = world.another_manager(store=ObservedStore(world.store, before("bookings.commit", fail_first)))
    # node-3 is the smallest, and so the first that is tried.
    (host,) = world.hosts_of(world.lease(start=HOUR))
    assert host in ("node-1", "node-2")
