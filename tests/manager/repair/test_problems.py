# SPDX-License-Identifier: Apache-2.0
"""Operators see what is in trouble, with why, since when and what they can do; it goes when it is mended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import CloudUnavailable, InvalidInput, NotFound
from blazar.model.base.paging import Page
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.problems.problems import ProblemAction, ProblemKind, ProblemQuestion
from blazar.resources.instances.reservation_flavor import flavor_name
from tests.statements import counted
from tests.world import NOON, World, a_host

MINUTE = timedelta(minutes=1)
UNKNOWN = "0" * 36


def problems(world: World, **wanted):
    return world.manager.problems.page(ProblemQuestion(Page(100, "since"), **wanted)).items


def a_stuck_lease(world: World):
    """Return a lease whose host has a server of somebody else, which keeps it from starting."""
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'))
    world.run()
    return lease


def test_nothing_is_in_trouble_where_all_goes_well(world):
    world.lease(a_host())
    world.lease(a_host(), start=timedelta(hours=1))
    world.run()
    world.manager.sweep.run_once()
    assert problems(world) == ()


def test_a_step_that_nobody_takes_is_a_problem_until_it_is_done(world):
    lease = world.lease(a_host(), start=timedelta(hours=1))
    world.clock.to(lease.window.start + 2 * MINUTE)
    (problem,) = problems(world)
    assert (problem.kind, problem.since, problem.lease_id) == (ProblemKind.EVENT, lease.window.start, lease.id)
    assert problem.id == f"event:{lease.event(EventType.START).id}"
    assert problem.summary == "start_lease of lease a lease is due, and nobody works on it"
    assert "no manager runs" in problem.explanation[-1]
    assert problem.actions == (ProblemAction.RETRY,)
    assert world.manager.problems.one(problem.id) == problem
    world.run()
    assert problems(world) == ()
    with pytest.raises(NotFound, match="may have been mended"):
        world.manager.problems.one(problem.id)


def test_a_start_that_fails_again_and_again_says_why_and_when_it_is_tried_again(world):
    lease = a_stuck_lease(world)
    world.run_to(NOON + 3 * MINUTE)
    (problem,) = problems(world, lease_id=lease.id)
    assert "has failed" in problem.summary
    assert "1 server that belongs to no reservation" in problem.explanation[0]
    assert any(sentence.startswith("It is tried again at 2030-") for sentence in problem.explanation)
    assert problem.actions == (ProblemAction.RETRY, ProblemAction.GIVE_UP)


def test_a_snapshot_that_gets_nowhere_is_a_problem_after_half_an_hour(world):
    world.simulated.durations.snapshot = timedelta(hours=9)
    lease = world.lease(a_host(before_end="snapshot"), hours=4)
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("thesis", project_id="physics", user_id="u", host=host)
    begin = lease.event(EventType.BEFORE_END).time
    world.run_to(begin + 29 * MINUTE, pause=MINUTE / 2)
    assert problems(world) == ()
    world.run_to(begin + 31 * MINUTE, pause=MINUTE / 2)
    (problem,) = problems(world)
    assert problem.summary == "before_end_lease of lease a lease does not get on"
    # Between two tries it is due for a moment, which is not for lack of a manager.
    world.clock.to(begin + 32 * MINUTE)
    (between,) = problems(world)
    assert (between.summary, "no manager runs" in between.explanation[-1]) == (problem.summary, False)
    assert "images being made: 1" in problem.explanation[0]
    assert problem.actions == (ProblemAction.RETRY, ProblemAction.GIVE_UP)


def test_a_lease_that_is_long_on_its_way_and_one_that_has_failed_are_problems(world):
    lease = a_stuck_lease(world)
    world.run_to(NOON + 20 * MINUTE)
    of_lease = [problem for problem in problems(world) if problem.kind is ProblemKind.LEASE]
    assert [problem.id for problem in of_lease] == [f"lease:{lease.id}"]
    assert of_lease[0].summary == "Lease a lease has been STARTING for a long time"
    assert of_lease[0].actions == (ProblemAction.END,)
    world.run_to(lease.window.end)
    assert world.now(lease).status in (LeaseStatus.ERROR, LeaseStatus.TERMINATED)
    assert problems(world, kinds=(ProblemKind.LEASE,)) == ()


def test_what_the_sweep_finds_of_nobody_is_known_to_all_managers_and_after_a_restart(world):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()
    (problem,) = world.another_manager().problems.page(ProblemQuestion(Page(9, "since"))).items
    assert problem.id == f"unknown::{UNKNOWN}"
    assert problem.actions == (ProblemAction.END,)
    assert "restored backup" in problem.explanation[0]
    assert world.manager.problems.one(problem.id) == problem
    world.simulated.compute.delete_flavor(UNKNOWN)
    world.manager.sweep.run_once()
    assert problems(world) == ()


def test_marks_that_are_no_ids_of_reservations_are_no_problems(world):
    for mark in ("a/b", "x" * 37, "é"):
        world.simulated.compute.create_flavor(Flavor(mark, flavor_name(mark), 1, 1, 1))
    world.manager.sweep.run_once()
    assert problems(world) == ()


def test_a_silent_service_makes_no_finding_younger(world):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()
    first = problems(world)
    world.clock.by(seconds=60)
    world.faults.fail_before("flavor_names", CloudUnavailable("Nova is down"), times=2)
    world.manager.sweep.run_once()
    assert [problem.since for problem in problems(world)] == [problem.since for problem in first]


def test_pages_go_on_where_the_last_one_ended_in_as_many_statements_whatever_there_is(world):
    ids = [f"{number:036}" for number in range(5)]
    for id_ in ids:
        world.simulated.compute.create_flavor(Flavor(id_, flavor_name(id_), 1, 1, 1))
    world.manager.sweep.run_once()
    ask = world.manager.problems.page
    with counted(world.engine) as statements:
        first = ask(ProblemQuestion(Page(2, "since", with_count=True)))
    assert (statements.count, first.count, first.following is not None) == (8, 5, True)
    rest = ask(ProblemQuestion(Page(9, "since", after=first.following)))
    assert [problem.id.rpartition(":")[2] for problem in (*first.items, *rest.items)] == ids
    by_id = ask(ProblemQuestion(Page(9, "since", after=first.items[-1].id)))
    assert by_id.items == rest.items
    with pytest.raises(InvalidInput, match="marker"):
        ask(ProblemQuestion(Page(9, "since", after="event:nothing")))
    with pytest.raises(InvalidInput, match="region is 'north'"):
        problems(world, region="north")
    assert problems(world, kinds=(ProblemKind.EVENT,)) == ()
    assert problems(world, older_than=NOON) == ()


@pytest.mark.parametrize(
    "problem_id",
    ["", "event", "event:", "nothing:1", "event:x", "lease:x", "drift:x", "resource:x", "manager:x", "delivery:x:1"],
)
def test_what_is_no_problem_is_not_found(world, problem_id):
    with pytest.raises(NotFound, match="there is no problem"):
        world.manager.problems.one(problem_id)
