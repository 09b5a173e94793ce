# SPDX-License-Identifier: Apache-2.0
"""What is refused is counted where it is refused, and written each minute."""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound, StoreUnavailable, UsageDenied
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import LeaseChange, LeaseRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.reports.demand import DemandKey, DemandQuestion, DemandSums
from tests.observed import ObservedStore, before, failing
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
NEEDS = '["==", "$vcpus", "9999"]'


def a_request(hosts: int) -> LeaseRequest:
    return LeaseRequest("a lease", "curie", PROJECT, NOON, NOON + HOUR, reservations=(a_host(hosts),))


def written(world: World) -> dict[DemandKey, DemandSums]:
    world.manager.refused_requests.write()
    day = NOON.date()
    return {found.key: found.sums for found in world.store.demand.read_days(day, day)}


def test_it_is_known_what_was_asked_for(world):
    with pytest.raises(NotEnoughResources):
        world.lease(
            a_host(2, needs='["==", "$vcpus", "9999"]'), instances(3, vcpus=2, memory_mb=100, disk_gb=0), hours=2
        )
    hosts, servers = sorted(written(world).items(), key=lambda item: item[0].resource_type)
    assert hosts == (
        DemandKey(PROJECT, "physical:host", "not_enough_resources", NEEDS),
        DemandSums(1, 1, 2 * 7200),
    )
    assert servers[0].requirement == ""
    assert servers[1] == DemandSums(1, 1, 3 * 7200, {"MEMORY_MB": 300 * 7200, "VCPU": 6 * 7200})


def test_what_is_wrong_with_a_request_is_no_demand(world):
    with suppress(InvalidInput):
        world.lease(a_host(needs="[}"))
    assert written(world) == {}


def test_what_a_limit_refuses_counts_with_its_code(a_world):
    world = a_world(settings=Settings(bounds=Bounds(reservations_of_lease=1), promises=0))
    with pytest.raises(UsageDenied):
        world.lease(a_host(), a_host())
    assert written(world) == {DemandKey(PROJECT, "physical:host", "limit_exceeded"): DemandSums(refused=2)}


def test_a_refused_change_counts_as_one_of_the_owners_project(world):
    lease = world.lease(a_host(), start=HOUR)
    world.lease(a_host(3), start=4 * HOUR, hours=2)
    with pytest.raises(NotEnoughResources):
        world.manager.leases.update(lease.id, LeaseChange(end=NOON + 5 * HOUR))
    key = DemandKey(PROJECT, "physical:host", "not_enough_resources")
    assert written(world) == {key: DemandSums(refused=1)}


def test_a_manager_that_stops_writes_what_it_has_counted(world):
    with suppress(NotEnoughResources):
        world.lease(a_host(9))
    world.manager.refused_requests.stop()
    assert sum(sums.refused for sums in written(world).values()) == 1


def test_what_cannot_be_written_is_written_later(world):
    down = before("demand.add", failing(StoreUnavailable("the database does not answer")))
    manager = world.another_manager(store=ObservedStore(world.store, down))
    for _ in range(2):
        with suppress(NotEnoughResources):
            manager.leases.create(a_request(9))
    with pytest.raises(StoreUnavailable):
        manager.refused_requests.write()
    assert written(world) == {}
    manager.refused_requests.write()
    (sums,) = written(world).values()
    assert (sums.refused, sums.refused_distinct) == (2, 1)


def test_nothing_is_written_where_nothing_was_refused(world):
    with counted(world.engine) as statements:
        world.manager.refused_requests.write()
    assert statements.count == 0


def test_a_refusal_costs_no_statement_more(a_world):
    def count(world: World) -> int:
        with suppress(NotEnoughResources):
            world.lease(a_host(9))
        with counted(world.engine) as statements, suppress(NotEnoughResources):
            world.lease(a_host(9))
        return statements.count

    world = a_world()
    before = count(world)
    world.manager.refused_requests.count_lease = lambda *_: None
    assert count(world) == before


@pytest.mark.parametrize("seed", range(3))
def test_the_counts_are_those_of_a_list_of_all_refusals(world, seed):
    """Members ask for anything at any time; the list has each request that an error says was refused."""
    chance = random.Random(seed)
    told: list[tuple[datetime, str, str, int, int]] = []
    for _ in range(80):
        hosts, hours, project = chance.choice((1, 2, 4)), chance.choice((1, 2)), chance.choice(("physics", "biology"))
        try:
            world.lease(a_host(hosts), hours=hours, project=project)
        except NotEnoughResources as error:
            hour = world.clock.now().replace(minute=0)
            told.append((hour, project, error.code, hosts, hours * 3600))
        if chance.random() < 0.3:
            world.manager.refused_requests.write()
        if chance.random() < 0.5:
            world.run_to(world.clock.now() + timedelta(minutes=10))
    expected: dict[DemandKey, DemandSums] = defaultdict(DemandSums)
    longest: dict[tuple[object, ...], int] = defaultdict(int)
    for hour, project, code, hosts, seconds in told:
        key = DemandKey(project, "physical:host", code)
        expected[key] += DemandSums(refused=1)
        longest[key, hour, hosts] = max(longest[key, hour, hosts], seconds)
    for (key, _, hosts), seconds in longest.items():
        expected[key] += DemandSums(0, 1, hosts * seconds)
    assert len(told) > 20
    assert written(world) == expected


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(3))
def test_leases_waited_as_long_as_they_were_seen_waiting(world, seed):
    """The oracle looks every five minutes which leases wait; everything happens at such a time."""
    world.waits, chance, step = True, random.Random(seed), timedelta(minutes=5)
    seen, made, in_vain = 0, [], set()
    for _ in range(120):
        if chance.random() < 0.4:
            wait, hours = chance.randrange(1, 40) * step, chance.randrange(1, 20) / 12
            with suppress(NotEnoughResources):
                made.append(world.lease(a_host(chance.choice((1, 2, 3))), hours=hours, wait=wait).id)
        if made and chance.random() < 0.1:
            with suppress(NotFound, Conflict):
                world.manager.leases.delete(chance.choice(made))
        world.run()
        states = {id_: world.now_of(id_).status for id_ in made}
        seen += list(states.values()).count(LeaseStatus.WAITING) * int(step.total_seconds())
        in_vain |= {id_ for id_, status in states.items() if status is LeaseStatus.TIMED_OUT}
        world.clock.to(world.clock.now() + step)
    end = world.clock.now()
    (row,) = world.manager.reports.demand(DemandQuestion(NOON, end)).rows
    assert (row.sums.waited, row.sums.timed_out) == (seen, len(in_vain))
    assert row.sums.granted > 3
