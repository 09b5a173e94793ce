# SPDX-License-Identifier: Apache-2.0
"""Managers learn which hosts are scarce, and leases that ask for any host leave these to those who need them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.statements import counted
from tests.world import TYPES, World, a_host, instances

HOUR = timedelta(hours=1)
CARD = '["==", "$gpu", "A100"]'


def tiers(world: World) -> dict[str, int]:
    return {host.name: host.tier for host in world.store.resources.catalog(HOST).resources}


def taken(world: World, *asked, day: int = 0) -> frozenset[str]:
    return world.hosts_of(world.lease(*asked, start=timedelta(days=day, hours=1)))


@pytest.fixture
def mixed(world: World) -> World:
    """Three hosts, of which the one that would be taken first has a card."""
    lease = world.lease(a_host(), start=HOUR)
    [first] = [host for host in world.store.resources.catalog(HOST).resources if host.name in world.hosts_of(lease)]
    world.manager.leases.delete(lease.id)
    world.manager.resources.change(HOST, first.external_id, ResourceChange({"gpu": "A100"}))
    return world


def carded(world: World) -> str:
    return next(host.name for host in world.store.resources.catalog(HOST).resources if host.capabilities.get("gpu"))


def test_who_asks_for_any_host_gets_one_without_a_card(mixed):
    assert taken(mixed, a_host(), day=1) == {carded(mixed)}
    mixed.manager.ranking.run_once()
    plain = tiers(mixed).keys() - {carded(mixed)}
    assert taken(mixed, a_host(2)) == plain
    assert taken(mixed, a_host(needs=CARD)) == {carded(mixed)}


def test_slices_leave_the_card_alone_too(mixed):
    mixed.manager.ranking.run_once()
    assert carded(mixed) not in taken(mixed, instances(2))


def test_the_scarce_host_is_taken_when_nothing_else_is_free(mixed):
    mixed.manager.ranking.run_once()
    assert carded(mixed) in taken(mixed, a_host(3))


def test_what_was_asked_for_of_late_counts_and_what_was_long_ago_does_not(mixed):
    mixed.lease(a_host(needs=CARD), start=HOUR, hours=100)
    mixed.manager.ranking.run_once()
    sought = tiers(mixed)[carded(mixed)]
    mixed.run_to(mixed.clock.now() + timedelta(days=91))
    assert mixed.manager.ranking.run_once()
    assert 0 < tiers(mixed)[carded(mixed)] < sought


def test_it_is_learned_each_hour_and_when_hosts_are_added(mixed):
    ranking = mixed.manager.ranking
    assert ranking.run_once()
    assert not ranking.run_once()
    mixed.clock.to(mixed.clock.now() + HOUR)
    assert ranking.run_once()
    [first, *_] = mixed.store.resources.catalog(HOST).resources
    mixed.manager.resources.change(HOST, first.external_id, ResourceChange({"rack": "r1"}))
    assert not ranking.run_once()
    mixed.register_addresses(7)
    assert ranking.run_once()
    assert not ranking.run_once()


def test_the_order_stays_when_a_host_changes(mixed):
    mixed.manager.ranking.run_once()
    before = tiers(mixed)
    [first, *_] = mixed.store.resources.catalog(HOST).resources
    mixed.manager.resources.change(HOST, first.external_id, ResourceChange({"note": "x"}))
    assert tiers(mixed) == before


def test_it_costs_one_statement_for_each_kind_and_one(mixed):
    mixed.manager.ranking.run_once()
    kinds = len({make(mixed.simulated.cloud, mixed.host_settings).kind for make in TYPES})
    with counted(mixed.engine) as statements:
        mixed.manager.ranking.run_once()
    assert statements.count == kinds
    mixed.clock.to(mixed.clock.now() + HOUR)
    for day in range(20):
        mixed.lease(a_host(), start=timedelta(days=day, hours=1), hours=1)
    with counted(mixed.engine) as statements:
        mixed.manager.ranking.run_once()
    assert statements.count == kinds + 1


def test_a_request_that_nobody_could_make_any_more_is_left_out(mixed):
    lease = mixed.lease(a_host(needs=CARD), start=HOUR, hours=1)
    mixed.run_to(lease.window.end)
    for host in mixed.store.resources.catalog(HOST).resources:
        mixed.manager.resources.change(HOST, host.external_id, ResourceChange({"gpu": None}))
    mixed.manager.ranking.run_once()
    assert set(tiers(mixed).values()) == {0}
