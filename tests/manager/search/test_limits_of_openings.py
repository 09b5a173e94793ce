# SPDX-License-Identifier: Apache-2.0
"""Openings, alternatives and dry runs ask every limit: what they promise is granted, what they do not is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, Rolling
from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxLeaseDurationFilter, MaxUnitsFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import NotEnoughResources, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.base.window import Window
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor, LeaseRequest, ReservationRequest
from blazar.model.search.availability import Availability, AvailabilityQuestion, Change
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
CURIE = Actor("curie", PROJECT)


def hours(number: float) -> Duration:
    return Duration(seconds=int(number * 3600))


def ask(world: World, *reservations: ReservationRequest, **more: Any) -> Availability:
    question = AvailabilityQuestion(CURIE, reservations, **{"latest": hours(48), "duration": hours(1), **more})
    return world.manager.availability.find(question)


def request(*reservations: ReservationRequest, start: float = 1, length: float = 1, dry_run: bool = False):
    begin = NOON + start * HOUR
    return LeaseRequest(
        "x", "curie", PROJECT, begin, begin + length * HOUR, None, reservations, exact=True, dry_run=dry_run
    )


def refused(world: World, wanted: LeaseRequest) -> UsageDenied:
    with pytest.raises(UsageDenied) as denied:
        world.manager.leases.book(wanted)
    return denied.value


def offered(answer: Availability) -> dict[Change, Any]:
    return {each.change: each for each in answer.alternatives}


BOUNDED = [
    (Bounds(leases=1), (a_host(),), "leases_per_project"),
    (Bounds(reservations=2), (a_host(), a_host()), "reservations_per_project"),
    (Bounds(reservations_of_lease=1), (a_host(), a_host()), "reservations_per_lease"),
]


@pytest.mark.parametrize(("bounds", "wanted", "limit"), BOUNDED, ids=[limit for *_, limit in BOUNDED])
def test_bounds_of_a_project_are_told_by_openings_and_dry_runs_as_by_a_booking(sqlite, bounds, wanted, limit):
    world = World(sqlite, hosts=3, settings=Settings(bounds=bounds))
    world.lease(a_host(), start=3 * HOUR)
    opening, *_ = ask(world, *wanted).openings
    (told,) = opening.refusals
    dry, real = (refused(world, request(*wanted, dry_run=dry)) for dry in (True, False))
    assert (told.message, told.data) == (dry.message, dry.data) == (real.message, real.data)
    assert told.data["limit"] == limit
    exempt = World(sqlite, settings=Settings(bounds=bounds), exempt=[PROJECT], register=False)
    assert all(opening.refusals == () for opening in ask(exempt, *wanted).openings)
    assert exempt.manager.leases.book(request(*wanted, dry_run=True))


def test_bounds_are_no_limits_on_changes(sqlite):
    world = World(sqlite, settings=Settings(bounds=Bounds(leases=1, reservations=1, reservations_of_lease=1)))
    lease = world.lease(a_host(), start=HOUR)
    answer = ask(world, lease_id=lease.id, duration=None, end=NOON + 9 * HOUR, latest=None)
    assert [opening.refusals for opening in answer.openings] == [()]


def test_a_bound_costs_one_statement_of_a_question_and_of_a_dry_run(sqlite):
    counts = []
    for settings in (Settings(), Settings(bounds=Bounds(1000, 30, 1000))):
        world = World(sqlite, settings=settings, register=not counts)
        ask(world, a_host())
        with counted(sqlite) as question:
            ask(world, a_host())
        with counted(sqlite) as dry:
            world.manager.leases.book(request(a_host(), dry_run=True))
        counts.append((question.count, dry.count))
    assert counts[1] == (counts[0][0] + 1, counts[0][1] + 1)


def busy(sqlite, *filters: Any, hosts: int = 4) -> World:
    """A world in which others, who have no limits, have two hosts for five hours."""
    world = World(sqlite, hosts=hosts, filters=filters, exempt=["others"])
    world.lease(a_host(2), hours=5, project="others")
    return world


def test_fewer_are_offered_only_as_far_as_the_limit_allows(sqlite):
    world = busy(sqlite, MaxUnitsFilter(3), hosts=6)
    world.lease(a_host(1), hours=40)
    count = offered(ask(world, a_host(5)))[Change.COUNT]
    # Three are free, and the limit leaves two.
    assert count.counts == ({"min": 2, "max": 2},)
    none = World(sqlite, filters=[MaxUnitsFilter(0)], register=False)
    assert Change.COUNT not in offered(ask(none, a_host(5)))


def test_a_shorter_time_is_offered_only_as_long_as_the_limit_allows(sqlite):
    world = World(sqlite, hosts=1, filters=[MaxLeaseDurationFilter(timedelta(minutes=90, seconds=7))])
    world.lease(start=4 * HOUR, hours=1, project="others")
    found = offered(ask(world, a_host(), duration=hours(5)))
    assert found.keys() == {Change.DURATION}
    assert found[Change.DURATION].window.duration == timedelta(minutes=90, seconds=7)
    free = offered(ask(World(sqlite, register=False), a_host(), duration=hours(5)))
    assert free[Change.DURATION].window.duration == 4 * HOUR


def test_another_time_is_offered_only_when_it_is_granted(sqlite):
    world = busy(sqlite, ResourceHoursFilter({"host": 3}, Rolling(1)))
    world.lease(a_host(1), start=6 * HOUR, hours=2)
    # The budget of each day is spent until a day after that lease.
    world.lease(a_host(4), start=20 * HOUR, hours=1, project="others")
    answer = ask(world, a_host(3), duration=hours(1), latest=hours(72))
    first, second = answer.openings
    assert (bool(first.refusals), bool(second.refusals)) == (True, True)
    # It is beyond the openings that are listed; one host would be within the budget now.
    found = offered(answer)
    assert found[Change.TIME].window == Window(NOON + 31 * HOUR, NOON + 32 * HOUR)
    assert found[Change.COUNT].counts == ({"min": 1, "max": 1},)
    answer = ask(world, a_host(3), duration=hours(0.25), latest=hours(72))
    assert offered(answer)[Change.TIME].window == answer.openings[0].window


def test_less_is_required_only_where_that_is_granted(sqlite):
    def world(*filters: Any, register: bool = True) -> World:
        return World(sqlite, hosts=2, filters=filters, register=register)

    wanted = a_host(1, needs='["and", [">=", "$vcpus", "1"], ["==", "$hypervisor_hostname", "node-1"]]')
    free = world()
    free.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), hours=40, project="others")
    assert Change.REQUIREMENT in offered(ask(free, wanted))
    free.lease(a_host(), start=41 * HOUR)
    limited = world(MaxConcurrentLeasesFilter(0), register=False)
    assert offered(ask(limited, wanted)) == {}


def test_a_refused_lease_is_told_only_what_would_be_granted(sqlite):
    world = busy(sqlite, MaxLeaseDurationFilter(4 * HOUR))
    with pytest.raises(NotEnoughResources) as denied:
        world.manager.leases.book(request(a_host(4), start=1, length=5))
    assert denied.value.data["alternatives"] == []
    assert "It fits from" not in denied.value.message
    with pytest.raises(NotEnoughResources) as denied:
        world.manager.leases.book(request(a_host(4), start=1, length=3))
    assert [each["change"] for each in denied.value.data["alternatives"]] == ["time", "count"]
    assert "It fits from 2030-04-01 17:00 UTC on." in denied.value.message
