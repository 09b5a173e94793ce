# SPDX-License-Identifier: Apache-2.0
"""What reservations of addresses rely on: external networks, floating IPs by address and tag, ports that have one."""

from __future__ import annotations

import uuid

import pytest

from blazar.model.base.errors import CloudError, CloudUnavailable, Conflict, NotFound

GONE = "0d5f1a52-0000-4000-8000-3f1f0c0a9e01"
"""An id that nothing has."""


@pytest.fixture
def network(site):
    return site.cloud.network


def made(site, number: int, **more):
    wanted = {
        "network_id": site.external,
        "subnet_id": site.subnet,
        "address": site.address(number),
        "project_id": site.project,
        "description": "reservation:x",
        **more,
    }
    return site.cloud.network.create_floating_ip(**wanted)


def test_a_network_has_subnets_with_gateway_and_pools(site, network):
    found = network.network(site.external)
    assert (found.id, found.external) == (site.external, True)
    (subnet,) = found.subnets
    assert (subnet.id, subnet.cidr, subnet.gateway) == (site.subnet, site.cidr, site.address(1))
    assert subnet.pools == ((site.address(128), site.address(254)),)


def test_external_networks_are_listed_with_their_subnets(site, network):
    wanted = network.network(site.external)
    found = {each.id: each for each in network.external_networks()}
    assert found[site.external] == wanted
    assert all(each.external for each in found.values())


@pytest.mark.parametrize("name", ["no-such-network", "", "../subnets", "a b&id=c", GONE])
def test_a_network_that_does_not_exist_is_none(network, name):
    assert network.network(name) is None


def test_a_floating_ip_has_the_address_and_the_project_that_were_asked_for(site, network):
    found = made(site, 10)
    assert (found.address, found.network_id, found.project_id) == (site.address(10), site.external, site.project)
    assert (found.attached, found.tags, found.description) == (False, frozenset(), "reservation:x")
    assert network.floating_ips(network_id=site.external) == (found,)
    assert network.floating_ips(network_id=site.external, addresses=[site.address(10), site.address(11)]) == (found,)
    assert network.floating_ips(network_id=site.external, addresses=[site.address(11)]) == ()
    assert network.floating_ips(network_id=site.external, addresses=[]) == ()
    assert network.floating_ips(network_id=str(uuid.uuid4())) == ()


def test_an_address_belongs_to_one(site, network):
    made(site, 10)
    for rival in ({}, {"project_id": uuid.uuid4().hex}):
        with pytest.raises(Conflict):
            made(site, 10, **rival)
    assert len(network.floating_ips(network_id=site.external)) == 1


def test_an_address_in_a_pool_is_given_to_an_operator_all_the_same(site):
    assert made(site, 130).address == site.address(130)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"network_id": GONE}, NotFound),
        ({"subnet_id": GONE}, CloudError),
        ({"address": "198.18.0.10"}, CloudError),
    ],
    ids=["network", "subnet", "address"],
)
def test_what_cannot_be_is_refused(site, network, wrong, error):
    with pytest.raises((error, NotFound)):
        made(site, 10, **wrong)
    assert network.floating_ips(network_id=site.external) == ()


def test_tags_are_replaced_and_searched_for(site, network):
    one, two = made(site, 10), made(site, 11)
    network.set_address_tags(one.id, ["blazar", "reservation:a"])
    network.set_address_tags(two.id, ["blazar", "reservation:b", "old"])
    network.set_address_tags(two.id, ["blazar", "reservation:b"])
    (found,) = network.floating_ips(tag="reservation:a")
    assert (found.id, found.tags) == (one.id, {"blazar", "reservation:a"})
    (other,) = network.floating_ips(tag="reservation:b")
    assert (other.id, other.tags) == (two.id, {"blazar", "reservation:b"})
    assert network.floating_ips(tag=f"reservation:{uuid.uuid4()}") == ()
    assert {f.id for f in network.floating_ips(network_id=site.external, tag="blazar")} == {one.id, two.id}


def test_addresses_are_searched_for_by_their_whole_description(site, network):
    sign = f"reservation:{uuid.uuid4()}"
    made(site, 10, description=f"{sign} and more")
    one = made(site, 11, description=sign)
    assert [found.id for found in network.floating_ips(description=sign)] == [one.id]
    assert network.floating_ips(description=f"reservation:{uuid.uuid4()}") == ()


def test_a_floating_ip_is_attached_detached_and_deleted(site, network):
    found = made(site, 10)
    site.attach(found.id)
    (attached,) = network.floating_ips(network_id=site.external)
    assert attached.attached
    network.detach_floating_ip(found.id)
    network.detach_floating_ip(found.id)
    assert network.floating_ips(network_id=site.external) == (found,)
    site.attach(found.id)
    network.delete_floating_ip(found.id)
    assert network.floating_ips(network_id=site.external) == ()
    assert made(site, 10).address == site.address(10)


def test_a_floating_ip_that_does_not_exist_is_not_found(network):
    for call in (
        lambda: network.delete_floating_ip(GONE),
        lambda: network.detach_floating_ip(GONE),
    ):
        with pytest.raises(NotFound):
            call()
    with pytest.raises((NotFound, CloudUnavailable)):
        network.set_address_tags(GONE, ["blazar"])


def test_what_has_an_address_and_is_no_floating_ip_is_told(site, network):
    made(site, 10)
    site.take_address(site.address(12))
    assert network.used_addresses(site.external, [site.address(10), site.address(11)]) == {}
    users = network.used_addresses(site.external, [site.address(10), site.address(12)])
    assert list(users) == [site.address(12)]
    assert users[site.address(12)].startswith("port ")
    everybody = network.used_addresses(site.external)
    assert everybody[site.address(12)] == users[site.address(12)]
    assert site.address(10) not in everybody
    with pytest.raises(Conflict):
        made(site, 12)


def test_many_addresses_are_asked_for_at_once(site, network):
    made(site, 10)
    every = [site.address(number) for number in range(2, 250)]
    assert [found.address for found in network.floating_ips(network_id=site.external, addresses=every)] == [
        site.address(10)
    ]
    assert site.address(10) not in network.used_addresses(site.external, every)
