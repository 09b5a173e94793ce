# SPDX-License-Identifier: Apache-2.0
"""What instance reservations need: flavors, server groups, resource classes and reserved capacity."""

from __future__ import annotations

import uuid

import pytest

from blazar.clouds.ports.compute import Flavor, ServerGroup
from blazar.clouds.ports.placement import ReservedCapacity
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, Conflict, NotFound


@pytest.fixture
def compute(site):
    return site.cloud.compute


@pytest.fixture
def placement(site):
    return site.cloud.placement


@pytest.fixture
def host(site):
    placement = site.cloud.placement
    if placement.reservation_provider(site.hosts[0]) is None:
        placement.create_reservation_provider(site.hosts[0])
    return site.hosts[0]


@pytest.fixture
def reservation(compute):
    """An id, and nothing of its name left afterwards."""
    id_ = str(uuid.uuid4())
    yield id_
    if compute.flavor(id_):
        compute.delete_flavor(id_)
    for group in compute.server_groups(f"reservation:{id_}"):
        compute.delete_server_group(group.id)


@pytest.fixture
def resource_class(placement, host, reservation):
    name = f"CUSTOM_RESERVATION_{reservation.upper().replace('-', '_')}"
    yield name
    if placement.reserved_capacity(host, name):
        placement.delete_inventory(host, name)
    try:
        placement.delete_resource_class(name)
    except NotFound:
        return


def a_flavor(id_, **more):
    sizes = {"vcpus": 2, "memory_mb": 512, "disk_gb": 1}
    return Flavor(id_, f"reservation:{id_}", **sizes, **more)


def test_a_flavor_has_sizes_and_extra_specs(compute, reservation):
    assert compute.flavor(reservation) is None
    made = a_flavor(reservation, ephemeral_gb=3, swap_mb=5, extra_specs={"a:b": "c", "plain": "1"})
    compute.create_flavor(made)
    assert compute.flavor(reservation) == made


def test_a_flavor_without_disk_swap_and_specs_is_one_all_the_same(compute, reservation):
    made = Flavor(reservation, f"reservation:{reservation}", 1, 64, 0)
    compute.create_flavor(made)
    assert compute.flavor(reservation) == made


def test_a_flavor_has_its_rxtx_factor_swap_and_ephemeral_disk(compute, reservation):
    made = Flavor(reservation, f"reservation:{reservation}", 2, 128, 3, 4, 512, {"a": "1"}, 2.5)
    compute.create_flavor(made)
    assert compute.flavor(reservation) == made


def test_a_public_flavor_says_so_and_has_no_list_of_projects(site, compute):
    assert compute.flavor(site.public_flavor).public
    with pytest.raises(NotFound):
        compute.flavor_access(site.public_flavor)


@pytest.mark.parametrize("flavor_id", ["nothing", "no thing", "0", "-1", "x" * 255, "..x", "détente"])
def test_a_flavor_that_nobody_made_is_none(compute, flavor_id):
    assert compute.flavor(flavor_id) is None


def test_the_id_and_the_name_of_a_flavor_are_its_own(compute, reservation):
    compute.create_flavor(a_flavor(reservation))
    for rival in (a_flavor(reservation), Flavor(reservation, "other", 1, 64, 1)):
        with pytest.raises(Conflict):
            compute.create_flavor(rival)
    with pytest.raises(Conflict):
        compute.create_flavor(Flavor(str(uuid.uuid4()), f"reservation:{reservation}", 1, 64, 1))


def test_extra_specs_are_set_and_taken_away_one_by_one(compute, reservation):
    compute.create_flavor(a_flavor(reservation, extra_specs={"a": "1", "b": "2"}))
    compute.set_flavor_specs(reservation, {"b": "3", "c": "4", "a": None, "nothing": None})
    assert compute.flavor(reservation).extra_specs == {"b": "3", "c": "4"}


def test_a_project_gets_access_to_a_flavor_and_loses_it(site, compute, reservation):
    compute.create_flavor(a_flavor(reservation))
    assert compute.flavor_access(reservation) == frozenset()
    compute.grant_flavor(reservation, site.project)
    with pytest.raises(Conflict):
        compute.grant_flavor(reservation, site.project)
    assert compute.flavor_access(reservation) == {site.project}
    compute.revoke_flavor(reservation, site.project)
    with pytest.raises(NotFound):
        compute.revoke_flavor(reservation, site.project)
    assert compute.flavor_access(reservation) == frozenset()


def test_a_flavor_that_does_not_exist_is_not_found(site, compute, reservation):
    for call in (
        lambda: compute.delete_flavor(reservation),
        lambda: compute.flavor_access(reservation),
        lambda: compute.grant_flavor(reservation, site.project),
        lambda: compute.revoke_flavor(reservation, site.project),
        lambda: compute.set_flavor_specs(reservation, {"a": "1"}),
        lambda: compute.set_flavor_specs(reservation, {"a": None}),
    ):
        with pytest.raises(NotFound):
            call()
    assert compute.servers_of_flavor(reservation) == ()


def test_server_groups_are_found_by_their_exact_name(site, compute, reservation):
    name = f"reservation:{reservation}"
    assert compute.server_groups(name) == ()
    one = compute.create_server_group(name, "affinity", site.project)
    two = compute.create_server_group(name, "anti-affinity", site.project)
    assert set(compute.server_groups(name)) == {
        ServerGroup(one, name, "affinity", site.project),
        ServerGroup(two, name, "anti-affinity", site.project),
    }
    assert compute.server_groups(name[:-1]) == ()
    compute.delete_server_group(one)
    assert [group.id for group in compute.server_groups(name)] == [two]
    with pytest.raises(NotFound):
        compute.delete_server_group(one)


def test_a_resource_class_may_be_created_twice_and_is_deleted_once(placement, resource_class):
    placement.create_resource_class(resource_class)
    placement.create_resource_class(resource_class)
    placement.delete_resource_class(resource_class)
    with pytest.raises(NotFound):
        placement.delete_resource_class(resource_class)


def test_an_inventory_is_set_raised_lowered_and_deleted(placement, host, resource_class):
    with pytest.raises(CloudRefused):
        placement.set_inventory(host, resource_class, 1)
    placement.create_resource_class(resource_class)
    assert placement.reserved_capacity(host, resource_class) is None
    for total in (1, 3, 3, 2):
        placement.set_inventory(host, resource_class, total)
        assert placement.reserved_capacity(host, resource_class) == ReservedCapacity(total, 0)
    with pytest.raises(Conflict):
        placement.delete_resource_class(resource_class)
    placement.delete_inventory(host, resource_class)
    with pytest.raises(NotFound):
        placement.delete_inventory(host, resource_class)
    assert placement.reserved_capacity(host, resource_class) is None


def test_inventories_of_several_reservations_lie_beside_each_other(placement, host, resource_class):
    other = resource_class + "_2"
    placement.create_resource_class(resource_class)
    placement.create_resource_class(other)
    try:
        placement.set_inventory(host, resource_class, 1)
        placement.set_inventory(host, other, 2)
        assert placement.reserved_capacity(host, resource_class) == ReservedCapacity(1, 0)
        totals = {name: n for name, n in placement.reserved_totals(host).items() if name.startswith(resource_class)}
        assert totals == {resource_class: 1, other: 2}
        placement.delete_inventory(host, resource_class)
        assert placement.reserved_capacity(host, other) == ReservedCapacity(2, 0)
    finally:
        placement.delete_inventory(host, other)
        placement.delete_resource_class(other)


def test_the_hosts_that_have_some_of_a_class_are_found_by_the_class(placement, host, resource_class):
    assert placement.hosts_with_unused(resource_class) == frozenset()
    placement.create_resource_class(resource_class)
    assert placement.hosts_with_unused(resource_class) == frozenset()
    placement.set_inventory(host, resource_class, 2)
    assert placement.hosts_with_unused(resource_class) == {host}
    placement.delete_inventory(host, resource_class)
    assert placement.hosts_with_unused(resource_class) == frozenset()


def test_a_host_without_a_provider_has_no_inventory(placement, resource_class):
    assert placement.reserved_capacity("no-such-node", resource_class) is None
    assert placement.reserved_totals("no-such-node") == {}
    for call in (
        lambda: placement.set_inventory("no-such-node", resource_class, 1),
        lambda: placement.delete_inventory("no-such-node", resource_class),
    ):
        with pytest.raises(NotFound):
            call()


@pytest.fixture
def open_reservation(site, compute, placement, host, reservation, resource_class):
    """A flavor that the site's project may use, and reserved capacity for two servers on a host."""
    specs = {f"resources:{resource_class}": "1", "aggregate_instance_extra_specs:reservation": reservation}
    placement.create_resource_class(resource_class)
    placement.set_inventory(host, resource_class, 2)
    compute.create_flavor(Flavor(reservation, f"reservation:{reservation}", 1, 64, 0, extra_specs=specs))
    aggregate = compute.create_aggregate(reservation, None, {"reservation": reservation})
    compute.add_host(aggregate.id, host)
    compute.grant_flavor(reservation, site.project)
    yield reservation
    for server in compute.servers_of_flavor(reservation):
        compute.begin_server_deletion(server.id)
    site.soon(lambda: compute.servers_of_flavor(reservation), lambda left: left == ())


def test_a_server_keeps_what_its_flavor_said(site, compute, host, open_reservation):
    compute.set_flavor_specs(open_reservation, {"blazar:preemptible": "true"})
    server_id = site.boot_reserved(open_reservation)
    compute.set_flavor_specs(open_reservation, {"blazar:preemptible": None})
    (server,) = [server for server in compute.servers_on(host) if server.id == server_id]
    assert server.extra_specs["blazar:preemptible"] == "true"
    assert "blazar:preemptible" not in compute.flavor(open_reservation).extra_specs


def test_servers_of_a_flavor_use_reserved_capacity_and_are_found_wherever_they_are(
    site, compute, placement, host, open_reservation, resource_class
):
    one, two = site.boot_reserved(open_reservation), site.boot_reserved(open_reservation)
    found = compute.servers_of_flavor(open_reservation)
    assert {server.id for server in found} == {one, two}
    assert {server.host for server in found} == {host}
    assert {server.flavor for server in found} == {f"reservation:{open_reservation}"}
    assert {server.project_id for server in found} == {site.project}
    assert {server.extra_specs[f"resources:{resource_class}"] for server in found} == {"1"}
    assert {server.amounts for server in found} == {Amounts.of({"VCPU": 1, "MEMORY_MB": 64})}
    assert placement.reserved_capacity(host, resource_class) == ReservedCapacity(2, 2)
    with pytest.raises(Conflict):
        placement.delete_inventory(host, resource_class)
    placement.set_inventory(host, resource_class, 1)
    assert placement.reserved_capacity(host, resource_class) == ReservedCapacity(1, 2)

    site.shelve(one)
    assert {s.id: s.host for s in compute.servers_of_flavor(open_reservation)} == {one: None, two: host}
    site.soon(lambda: placement.reserved_capacity(host, resource_class), lambda seen: seen == ReservedCapacity(1, 1))
    for server in (one, two):
        compute.begin_server_deletion(server)
    site.soon(lambda: compute.servers_of_flavor(open_reservation), lambda left: left == ())
    site.soon(lambda: placement.reserved_capacity(host, resource_class), lambda seen: seen == ReservedCapacity(1, 0))
    placement.delete_inventory(host, resource_class)
