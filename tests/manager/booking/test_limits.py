# SPDX-License-Identifier: Apache-2.0
"""What one project may have at all: bounds that are always there, besides the filters that an operator enables."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import UsageDenied
from blazar.model.base.moments import NOW
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import LeaseRequest
from blazar.model.leases.states import LeaseStatus
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)


def bounded(engine, *, exempt=(), **bounds: int) -> World:
    return World(engine, settings=Settings(bounds=Bounds(**bounds)), exempt=exempt)


def empty(world: World, project: str = "physics", hours: float = 1):
    """A lease without reservations, as some clients make them."""
    wanted = LeaseRequest(
        name="empty", user_id="curie", project_id=project, start=NOW, end=NOON + hours * HOUR, before_end=None
    )
    return world.manager.leases.create(wanted)


def refusal(make) -> str:
    with pytest.raises(UsageDenied) as refused:
        make()
    return refused.value.message


def test_a_project_has_so_many_leases_and_no_more_until_one_ends_or_is_deleted(engine):
    world = bounded(engine, leases=2)
    first, _ = empty(world), world.lease(a_host(), hours=5)
    said = refusal(lambda: empty(world))
    assert said.startswith("the project has 2 leases that have not ended; the limit is 2 (leases_per_project)")
    assert empty(world, project="art")
    world.manager.leases.delete(first.id)
    assert empty(world)
    assert refusal(lambda: world.lease(a_host()))
    world.run_to(NOON + 2 * HOUR)
    assert empty(world, hours=9)


def test_a_lease_has_so_many_reservations_and_no_more(sqlite):
    world = bounded(sqlite, reservations_of_lease=2)
    said = refusal(lambda: world.lease(a_host(), a_host(), a_host()))
    assert said.startswith("reservations: the lease would have 3 reservations; the limit is 2 (reservations_per_lease)")
    assert len(world.lease(a_host(), a_host()).reservations) == 2


def test_a_project_has_so_many_reservations_in_all_its_leases(engine):
    world = bounded(engine, reservations=3)
    world.lease(instances(1), instances(1))
    said = refusal(lambda: world.lease(instances(1), instances(1)))
    assert "has 2 reservations in leases that have not ended, and the lease would add 2; the limit is 3" in said
    assert "reservations_per_project" in said
    assert world.lease(instances(1))
    assert refusal(lambda: world.lease(instances(1)))
    assert empty(world), "a lease without reservations takes none"


def test_what_is_refused_leaves_nothing_behind(sqlite):
    world = bounded(sqlite, leases=1)
    world.lease(a_host())
    before = world.aggregates(), world.store.leases.of_project(None)
    refusal(lambda: world.lease(a_host()))
    assert (world.aggregates(), world.store.leases.of_project(None)) == before


def test_exempt_projects_are_not_bounded(sqlite):
    world = bounded(sqlite, leases=0, reservations_of_lease=0, reservations=0, exempt=["physics"])
    assert world.lease(a_host(), a_host()).status is LeaseStatus.PENDING
    assert refusal(lambda: empty(world, project="art"))


def test_the_bound_holds_for_requests_at_the_same_moment(engine):
    world = bounded(engine, leases=5)

    def attempt(_: int) -> bool:
        try:
            empty(world)
        except UsageDenied:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(attempt, range(12))) == 5


def test_changes_are_not_bounded(sqlite):
    world = bounded(sqlite, leases=1, reservations=1, reservations_of_lease=1)
    lease = world.lease(a_host())
    assert world.change(lease, name="other", end=NOON + 3 * HOUR).name == "other"


def test_a_creation_costs_one_statement_more(sqlite):
    plain = World(sqlite)
    counts = []
    for world in (plain, World(sqlite, settings=Settings(bounds=Bounds(1000, 30, 1000)), register=False)):
        world.lease(a_host())
        with counted(sqlite) as statements:
            world.lease(a_host(), start=10 * HOUR)
        counts.append(statements.count)
    assert counts[1] == counts[0] + 1


def test_a_project_leaves_so_many_leases_unconfirmed_in_a_day_and_books_firm_ones_only_then(engine):
    world = bounded(engine, lapsed=2)
    held, later = timedelta(minutes=10), 5 * HOUR
    firm = world.lease(a_host(), start=later, confirm=held)
    world.manager.leases.confirm(firm.id)
    given_up = world.lease(a_host(), start=later, confirm=held)
    world.manager.leases.delete(given_up.id)
    for _ in range(2):
        world.lease(a_host(), start=later, confirm=held)
    world.run_to(NOON + held)
    said = refusal(lambda: world.lease(a_host(), start=later, confirm=held))
    assert said.startswith("confirm_within: nobody has confirmed 2 leases of the project within a day; the limit is 2")
    world.lease(a_host(), start=later)
    world.lease(a_host(), start=later, confirm=held, project="art")
    world.clock.to(NOON + held + 24 * HOUR)
    assert world.lease(a_host(), start=later, confirm=held).is_unconfirmed
