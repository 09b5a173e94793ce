# SPDX-License-Identifier: Apache-2.0
"""What each resource type tells of its use: what runs is never overlooked, and what is not known is never nothing."""

from __future__ import annotations

import pytest

from blazar.clouds.openstack.servers import HINTS, OpenStackServers
from blazar.clouds.openstack.service import VersionMissing
from blazar.clouds.ports.compute import Server
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.lease import Lease
from blazar.resources.contract.values import Task
from tests.world import PROJECT, World, a_host, a_network, addresses, instances, volumes


def task(world: World, lease: Lease) -> Task:
    return world.manager.engine.worker.read_ahead.tasks(world.now(lease))[0]


def probe(world: World, lease: Lease):
    one = task(world, lease)
    return dict(world.manager.leases._runtime.type_of(one.reservation).probe(one))


def started(world: World, *reservations) -> Lease:
    lease = world.lease(*reservations)
    world.run()
    return lease


def boot(world: World, lease: Lease, **more) -> Server:
    (host,) = world.hosts_of(lease)
    return world.simulated.users.boot_server(
        "work", **{"project_id": PROJECT, "user_id": "curie", "host": host, **more}
    )


def test_hosts_show_the_servers_of_the_project_by_their_states_in_one_list(world):
    lease = started(world, a_host())
    world.faults.calls.clear()
    boot(world, lease)
    boot(world, lease, status="SHUTOFF")
    assert probe(world, lease) == {"ACTIVE": 1, "SHUTOFF": 1}
    assert world.faults.calls.total() == 1


def test_servers_elsewhere_are_not_of_the_hosts_unless_they_were_booted_into_the_reservation(world):
    lease = started(world, a_host())
    (mine,) = world.hosts_of(lease)
    other = next(f"node-{n}" for n in (1, 2, 3) if f"node-{n}" != mine)
    world.simulated.users.boot_server("else", project_id=PROJECT, user_id="u", host=other)
    world.simulated.users.boot_server("shelved", project_id=PROJECT, user_id="u", host=None, status="SHELVED_OFFLOADED")
    assert probe(world, lease) == {}
    hint = lease.reservations[0].id
    world.simulated.users.boot_server("mine", project_id=PROJECT, user_id="u", host=None, status="BUILD", hint=hint)
    assert probe(world, lease) == {"BUILD": 1}


def test_before_a_host_counts_as_unused_the_servers_of_everybody_on_it_are_looked_at(world):
    lease = started(world, a_host())
    boot(world, lease, project_id="somebody-else")
    assert probe(world, lease) == {"ACTIVE": 1}


def test_instances_show_the_servers_with_their_flavor(world):
    lease = started(world, instances(2))
    assert probe(world, lease) == {}
    world.simulated.users.boot_reserved(lease.reservations[0].id, project_id=PROJECT)
    assert probe(world, lease) == {"ACTIVE": 1}


def test_addresses_show_those_that_are_attached(world):
    world.register_addresses(10, 11)
    lease = started(world, addresses(2))
    assert probe(world, lease) == {}
    (first, _) = world.simulated.cloud.network.floating_ips(network_id="public")
    world.simulated.users.attach(first.id)
    assert probe(world, lease) == {"attached": 1}


def test_networks_show_what_users_have_built(world):
    world.register_segments(1001)
    lease = started(world, a_network())
    assert probe(world, lease) == {}
    network = str(world.now(lease).reservations[0].cloud_ids.values["network_id"])
    world.simulated.network_users.subnet(network, "10.0.0.0/24")
    assert probe(world, lease) == {"built": 1}


def test_volumes_show_those_that_are_attached(world):
    world.register_pools(1)
    lease = started(world, volumes(1))
    for _ in range(3):
        world.clock.by(minutes=1)
        world.run()
    assert probe(world, lease) == {}
    (id_,) = world.now(lease).reservations[0].cloud_ids.values["volume_ids"]
    world.simulated.volume_users.attach(id_, "some-server")
    assert probe(world, lease) == {"attached": 1}


@pytest.mark.parametrize("call", ["servers_of_project", "servers_on"])
def test_what_the_cloud_does_not_say_is_not_nothing(world, call):
    lease = started(world, a_host())
    world.faults.fail_before(call, CloudUnavailable("Nova does not answer"))
    with pytest.raises(CloudUnavailable):
        probe(world, lease)


class Nova:
    """Nova's API as the adapter sees it: lists for microversions, or that there is none."""

    def __init__(self, items, oldest: str = HINTS) -> None:
        self.items, self.oldest, self.asked = items, oldest, []

    def pages(self, path, key, *, microversion=None, params=None):
        self.asked.append(microversion)
        if tuple(map(int, microversion.split("."))) > tuple(map(int, self.oldest.split("."))):
            raise VersionMissing(f"no {microversion}")
        return iter(self.items)


def servers_of(nova: Nova):
    return OpenStackServers(type("Access", (), {"compute": nova, "image": None})()).servers_of_project("p")


ITEM = {"id": "s", "name": "work", "tenant_id": "p", "user_id": "u", "status": "ACTIVE", "OS-EXT-SRV-ATTR:host": "a"}
OF_A_CELL_THAT_IS_DOWN = {"id": "t", "tenant_id": "p", "status": "UNKNOWN", "created": "2030-01-01T00:00:00Z"}


def test_a_cell_of_nova_that_is_down_is_not_without_servers():
    for items in ([OF_A_CELL_THAT_IS_DOWN], [ITEM, OF_A_CELL_THAT_IS_DOWN]):
        with pytest.raises(CloudUnavailable, match="1 servers of the project are not known"):
            servers_of(Nova(items))


def test_an_older_nova_shows_no_hints_and_one_that_hides_cells_is_not_believed():
    nova = Nova([ITEM], oldest="2.79")
    assert [server.hints for server in servers_of(nova)] == [None]
    assert nova.asked == ["2.100", "2.69"]
    with pytest.raises(VersionMissing):
        servers_of(Nova([ITEM], oldest="2.67"))
    hinted = {**ITEM, "scheduler_hints": {"reservation": ["r1"]}}
    assert [server.hints for server in servers_of(Nova([hinted]))] == [frozenset({"r1"})]
