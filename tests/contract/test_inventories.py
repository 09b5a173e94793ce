# SPDX-License-Identifier: Apache-2.0
"""Inventories and traits of hosts, as Placement has them."""

from __future__ import annotations

import uuid

import pytest

from blazar.model.resources.pools import CardPool, UnitLimits


@pytest.fixture
def placement(site):
    return site.cloud.placement


@pytest.fixture
def host(site):
    return site.hosts[0]


@pytest.fixture
def a_class():
    return f"CUSTOM_THING_{uuid.uuid4().hex[:8].upper()}"


def test_capacity_is_what_is_not_reserved_times_the_ratio(site, placement, host):
    raw = site.inventories(host)
    assert {"VCPU", "MEMORY_MB", "DISK_GB"} <= raw.keys()
    capacity = placement.inventories([host])[host].capacity
    for name, inventory in raw.items():
        assert capacity.get(name) == int((inventory["total"] - inventory["reserved"]) * inventory["allocation_ratio"])


def test_a_unit_takes_at_most_what_there_really_is(site, placement, host):
    limits = placement.inventories([host])[host].limits
    for name, inventory in site.inventories(host).items():
        assert limits[name] == UnitLimits(1, inventory["total"], 1)


def test_slots_of_reservations_are_no_capacity(placement, host):
    if placement.reservation_provider(host) is None:
        placement.create_reservation_provider(host)
    before = placement.inventories([host])
    name = f"CUSTOM_RESERVATION_{uuid.uuid4().hex.upper()}"
    placement.create_resource_class(name)
    placement.set_inventory(host, name, 3)
    try:
        assert placement.inventories([host]) == before
    finally:
        placement.delete_inventory(host, name)
        placement.delete_resource_class(name)


def test_what_nested_providers_have_counts_and_what_is_changed_is_seen(site, placement, host, a_class):
    assert placement.inventories([host])[host].capacity.get(a_class) == 0
    rules = {"total": 4, "reserved": 1, "min_unit": 1, "max_unit": 2, "step_size": 1, "allocation_ratio": 2.0}
    site.nest(host, f"{host}_nested_1", {a_class: rules})
    inventory = placement.inventories([host])[host]
    assert (inventory.capacity.get(a_class), inventory.limits[a_class]) == (6, UnitLimits(1, 2, 1))


def test_a_class_of_several_providers_is_given_out_one_by_one(site, placement, host, a_class):
    for number in (1, 2):
        site.nest(host, f"{host}_nested_{number}", {a_class: {"total": 3, "max_unit": 3}})
    inventory = placement.inventories([host])[host]
    assert inventory.capacity.get(a_class) == 6
    assert not inventory.allows(a_class, 2)
    (pool,) = (pool for pool in inventory.pools if pool.resource_class == a_class)
    assert pool == CardPool(a_class, 3, 2, limits=UnitLimits(1, 3, 1))


def test_a_host_has_its_traits(site, placement, host):
    trait = f"CUSTOM_{uuid.uuid4().hex.upper()}"
    assert trait not in placement.inventories([host])[host].traits
    site.mark(host, trait)
    assert trait in placement.inventories(site.hosts)[host].traits
    assert trait not in placement.inventories(site.hosts)[site.hosts[1]].traits


def test_many_hosts_are_told_at_once_and_unknown_ones_left_out(site, placement):
    together = placement.inventories([*site.hosts, "no-such-node"])
    assert together == {host: placement.inventories([host])[host] for host in site.hosts}
    assert placement.inventories(["no-such-node"]) == {}
    assert placement.inventories([]) == {}
