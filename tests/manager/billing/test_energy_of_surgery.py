# SPDX-License-Identifier: Apache-2.0
"""The energy of leases that are split, merged and passed on: in all it is that of their hosts, told once."""

from __future__ import annotations

from collections import Counter

import pytest

from blazar.model.leases.requests import Actor
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.sql.tables import allocations, charges
from tests.manager.billing.ledger import CURIE, HOUR, close, publish, rows
from tests.manager.billing.test_energy_of_charges import OVER, TERMS, record
from tests.world import NOON, World, a_host

WATTS = {hour: 100 + 10 * hour for hour in range(12)}
"""Each hour has another mean, so that what is told of a wrong hour, or twice, is seen."""


@pytest.fixture
def world(a_world) -> World:
    world = a_world(hosts=4, energy=TERMS)
    publish(world)
    record(world, WATTS, dict.fromkeys(WATTS, 400))
    return world


def told(world: World) -> Counter[str]:
    """Return the watt-hours that each lease is told in all."""
    found: Counter[str] = Counter()
    for row in rows(world, charges):
        if row["category"] == "energy":
            assert (row["energy_source"], row["carbon_state"]) == ("measured", "known")
            found[row["lease_id"]] += row["wh"]
    return found


def split(world: World, lease):
    """Split the last reservation of a lease off; return both leases."""
    parts = (PartRequest(lease.reservations[-1].id),)
    return world.manager.surgery.split(lease.id, SplitRequest(parts, None, "second"), Terms(CURIE)).leases


def drawn(first: int, last: int) -> int:
    """Return what a host draws from one hour to another."""
    return sum(WATTS[hour] for hour in range(first, last))


@pytest.mark.parametrize("hour", [0, 4])
def test_what_is_split_off_is_told_from_then_on(world, hour):
    lease = world.lease(a_host(2), a_host(1), start=HOUR, hours=8)
    world.run_to(NOON + hour * HOUR)
    both = split(world, lease)
    close(world, OVER)
    second = both[1].lease.id
    begin = max(1, hour)
    assert told(world) == {lease.id: 3 * drawn(1, 9) - drawn(begin, 9), second: drawn(begin, 9)}


@pytest.mark.parametrize("hour", [0, 4])
@pytest.mark.parametrize("into", [0, 1])
def test_leases_that_become_one_are_told_as_one_from_then_on(world, hour, into):
    leases = [world.lease(a_host(count), start=HOUR, hours=8) for count in (1, 2)]
    world.run_to(NOON + hour * HOUR)
    kept, gone = leases[into], leases[1 - into]
    world.manager.surgery.merge(kept.id, MergeRequest(gone.id), Terms(CURIE))
    close(world, OVER)
    of_gone = (1, 2)[1 - into] * drawn(1, max(1, hour))
    assert told(world) == Counter({kept.id: 3 * drawn(1, 9) - of_gone, gone.id: of_gone})


def test_what_was_split_passed_on_and_shortened_adds_up_to_what_its_hosts_drew(world):
    lease = world.lease(a_host(1), a_host(1), start=HOUR, hours=8)
    world.run_to(NOON + 2 * HOUR)
    both = split(world, lease)
    second = both[1].lease
    world.run_to(NOON + 3 * HOUR)
    world.manager.transfers.offer(second.id, OfferRequest("biology"), Terms(CURIE))
    world.manager.transfers.accept(second.id, Terms(Actor("ivan", "biology")))
    world.run_to(NOON + 5 * HOUR)
    world.change(world.now(lease), end=NOON + 7 * HOUR)
    close(world, OVER)
    assert told(world) == {lease.id: drawn(1, 7) + drawn(1, 2), second.id: drawn(2, 9)}
    by_project = Counter[str]()
    for row in rows(world, charges):
        by_project[row["project_id"]] += row["wh"] or 0
    assert by_project == {"physics": drawn(1, 7) + drawn(1, 3), "biology": drawn(3, 9)}


def test_what_is_told_is_that_of_the_page_and_of_the_record_of_what_was_had(world):
    lease = world.lease(a_host(1), a_host(1), start=HOUR, hours=5)
    world.run_to(NOON + 3 * HOUR)
    both = split(world, lease)
    close(world, OVER)
    hosts = {host.id for host in world.store.resources.catalog(HOST).resources}
    had = [(row["starts_at"], row["ends_at"]) for row in rows(world, allocations) if row["resource_id"] in hosts]
    assert sum(drawn(int((begin - NOON) / HOUR), int((end - NOON) / HOUR)) for begin, end in had) == 2 * drawn(1, 6)
    assert sum(told(world).values()) == 2 * drawn(1, 6)
    pages = [world.manager.reports.lease_energy(one.lease.id) for one in both]
    assert sum(page.energy_wh for page in pages) == 2 * drawn(1, 6)
