# SPDX-License-Identifier: Apache-2.0
"""Cards are counted by limits and budgets, and have prices of their own."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.enforcement.limits import MaxUnitsFilter
from blazar.model.base.errors import UsageDenied
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.manager.billing.ledger import charged, close, expected, publish
from tests.resources.instances.test_cards import ALIAS as A100_ALIAS
from tests.resources.instances.test_cards import ONE, TWO, aliases, devices, pgpus
from tests.resources.instances.test_cards import site as site
from tests.world import NOON, flavored, instances
from tests.world import a_host as a_whole_host

HOUR = timedelta(hours=1)
PRICES = [
    {"sku": "a100", "measure": "card", "requirement": ["==", "$gpu", "A100"], "per_hour": "2.00"},
    {"sku": "card", "measure": "card", "per_hour": "0.50"},
    {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.25"},
]


def test_a_limit_on_cards_counts_them_over_leases_and_types(site):
    rule = MaxUnitsFilter(None, of={"card": 3})
    world = site(devices(4), devices(4), filters=[rule], two=TWO, one=ONE)
    lease = world.lease(flavored(1, "two"), start=HOUR, hours=2)
    with pytest.raises(UsageDenied, match=r"2 cards.*\(max_units_of card\) 1 is left"):
        world.lease(flavored(1, "two"), start=2 * HOUR)
    world.lease(flavored(1, "one"), start=2 * HOUR)
    world.lease(instances(5, vcpus=1), start=2 * HOUR)
    with pytest.raises(UsageDenied):
        world.resize(lease, amount=2)


def test_a_budget_of_card_hours_is_used_up_by_cards_only(site):
    rule = ResourceHoursFilter({"card": 8}, parse_period("7"))
    world = site(pgpus(1, 8), filters=[rule], gpus={"resources:VGPU": "2"})
    world.lease(flavored(1, "gpus"), start=HOUR, hours=3)
    world.lease(instances(2, vcpus=1), start=HOUR, hours=9)
    with pytest.raises(UsageDenied, match="4 card-hours"):
        world.lease(flavored(1, "gpus"), start=HOUR, hours=2)
    world.lease(flavored(1, "gpus"), start=9 * HOUR, hours=1)


@pytest.mark.parametrize("in_placement", [True, False], ids=["placement", "declared"])
def test_a_card_costs_what_the_host_says_that_it_is_in(site, in_placement):
    pci = aliases(A100_ALIAS, in_placement=in_placement)
    hosts = (devices(4), devices(4)) if in_placement else ({}, {})
    world = site(*hosts, pci=pci, two=TWO)
    for host, extra in (("1", {"gpu": "A100"}), ("2", {"gpu": "L4"})):
        declared = {} if in_placement else {"pci:a100": "4"}
        world.manager.resources.change(HOST, host, ResourceChange({**extra, **declared}))
    publish(world, prices=PRICES)
    world.lease(flavored(2, "two"), start=HOUR, hours=10)
    world.lease(flavored(1, "two"), start=HOUR, hours=10)
    # By the hour 6 VCPUs, 4 cards of A100 and 2 of L4.
    assert expected(world) == 105
    close(world, NOON + 20 * HOUR)
    assert charged(world) == {"usage used": 105}


def test_whole_hosts_have_the_price_of_hosts_whatever_cards_they_have(site):
    world = site(devices(4))
    publish(world, prices=[*PRICES, {"sku": "host", "measure": "host", "per_hour": "9.00"}])
    world.lease(a_whole_host(1), start=HOUR, hours=1)
    assert expected(world) == 9
