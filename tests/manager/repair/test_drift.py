# SPDX-License-Identifier: Apache-2.0
"""What reservations in use have in the cloud is compared with the books, without changing it, and mended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import CloudUnavailable, NotFound, WrongState
from blazar.model.base.paging import Page
from blazar.model.leases.states import LeaseStatus
from blazar.model.problems.problems import ProblemAction, ProblemKind, ProblemQuestion, RepairRequest
from blazar.observe import metrics
from tests.configured import configured_world
from tests.counted import growing, number
from tests.world import World, a_host, a_network, addresses, devices, flavored, instances, things, volumes


def problems(world: World):
    question = ProblemQuestion(Page(100, "since"), (ProblemKind.DRIFT,))
    return world.manager.problems.page(question).items


def look(world: World) -> int:
    return world.manager.drift.run_once()


@pytest.fixture
def world(a_world) -> World:
    made = a_world()
    made.manager.drift.pause = 0
    return made


def to_freepool(world: World, lease) -> str:
    """Move the host of a lease to the freepool by hand, as an operator might; return its name."""
    (host,) = world.hosts_of(lease)
    cloud = world.simulated.compute
    cloud.remove_host(cloud.aggregate(lease.reservations[0].id).id, host)
    cloud.add_host(cloud.aggregate("freepool").id, host)
    return host


def test_a_host_that_was_moved_by_hand_is_found_and_mended(world):
    lease, other = world.lease(a_host()), world.lease(a_host())
    world.run()
    assert look(world) == 0
    host = to_freepool(world, lease)
    before = world.aggregates()
    assert look(world) == 1
    assert world.aggregates() == before
    (problem,) = problems(world)
    assert problem.id == f"drift:{lease.reservations[0].id}"
    assert "It would call" in problem.explanation[0]
    assert problem.actions == (ProblemAction.MEND,)
    act = world.manager.problems.act
    dry = act(problem.id, ProblemAction.MEND, RepairRequest("ticket 4711"))
    assert "To mend" in dry.said[0]
    assert world.aggregates() == before
    done = act(problem.id, ProblemAction.MEND, RepairRequest("ticket 4711", dry_run=False))
    assert done.said == (f"Reservation {lease.reservations[0].id} is mended.",)
    assert host in world.simulated.compute.aggregate(lease.reservations[0].id).hosts
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert problems(world) == ()
    assert look(world) == 0
    assert world.now(other).status is LeaseStatus.ACTIVE


def test_what_was_mended_by_hand_is_gone_after_the_next_look_or_says_so(world):
    lease = world.lease(a_host())
    world.run()
    host = to_freepool(world, lease)
    look(world)
    (problem,) = problems(world)
    cloud = world.simulated.compute
    cloud.remove_host(cloud.aggregate("freepool").id, host)
    cloud.add_host(cloud.aggregate(lease.reservations[0].id).id, host)
    done = world.manager.problems.act(problem.id, ProblemAction.MEND, RepairRequest("x", dry_run=False))
    assert done.said == ("It is as it should be by now.",)
    with pytest.raises(NotFound):
        world.manager.problems.one(problem.id)


def test_what_differs_is_told_in_metrics_until_it_is_mended(world):
    lease = world.lease(a_host())
    world.run()
    sampling = world.manager.sampling

    def tell() -> list[float]:
        sampling.run_once()
        return [value.number for value in sampling.read() if value.family is metrics.DRIFT_FINDINGS]

    assert tell() == [0]
    to_freepool(world, lease)
    look(world)
    assert number(metrics.DRIFT_LAST_SUCCESS) > 1.7e9
    assert tell() == [1]
    with growing(metrics.DRIFT_MENDS, outcome="mended"):
        world.manager.problems.act(problems(world)[0].id, ProblemAction.MEND, RepairRequest("x", dry_run=False))
    assert tell() == [0]


def test_a_cloud_that_does_not_answer_makes_no_finding_and_takes_none_away(world):
    lease = world.lease(a_host())
    world.run()
    to_freepool(world, lease)
    look(world)
    before = problems(world)
    world.faults.fail_before("aggregates", CloudUnavailable("Nova is down"), times=99)
    world.faults.fail_before("aggregate", CloudUnavailable("Nova is down"), times=99)
    assert look(world) == 0
    assert [problem.id for problem in problems(world)] == [problem.id for problem in before]


def test_a_lease_that_is_being_changed_or_has_ended_is_not_looked_at(world):
    lease = world.lease(a_host())
    world.run()
    to_freepool(world, lease)
    world.run_to(lease.window.end)
    assert look(world) == 0


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (WrongState("it is being changed"), False),
        (NotFound("it is gone"), False),
        (CloudUnavailable("Nova is down"), True),
        (KeyError("a fault of a type"), True),
    ],
)
def test_only_a_reservation_that_cannot_be_looked_at_keeps_findings_of_others(world, monkeypatch, error, stays):
    over, other = world.lease(a_host()), world.lease(a_host(), hours=9)
    world.run()
    to_freepool(world, over)
    assert look(world) == 1
    world.run_to(over.window.end)
    seen = []

    def fail(lease, reservation):
        seen.append(lease.id)
        raise error

    monkeypatch.setattr(world.manager.drift, "look", fail)
    assert look(world) == 0
    assert seen == [other.id]
    assert bool(problems(world)) is stays


def test_what_differs_of_a_lease_that_is_over_is_forgotten_when_it_is_to_be_mended(world):
    lease = world.lease(a_host())
    world.run()
    to_freepool(world, lease)
    look(world)
    (problem,) = problems(world)
    world.run_to(lease.window.end)
    before = world.aggregates()
    done = world.manager.problems.act(problem.id, ProblemAction.MEND, RepairRequest("x", dry_run=False))
    assert done.said == ("Its lease is over: there is nothing to mend.",)
    assert problems(world) == ()
    assert world.aggregates() == before


def every_type(world: World):
    """Return a request for a reservation of each type of resource, with what it needs."""
    world.register_addresses(10)
    world.register_segments(101)
    world.register_device()
    world.register_thing()
    world.register_pools(1)
    world.simulated.operators.offer_flavor(Flavor("small", "m1.small", 1, 512, 1, public=True))
    return {
        "hosts": a_host(),
        "instances": instances(2),
        "affinity": instances(2, affinity=True),
        "flavors": flavored(),
        "addresses": addresses(),
        "network": a_network(),
        "devices": devices(),
        "things": things(),
        "volumes": volumes(),
        "quota": volumes(2, mode="quota"),
    }


@pytest.mark.parametrize(
    "name",
    ["hosts", "instances", "affinity", "flavors", "addresses", "network", "devices", "things", "volumes", "quota"],
)
def test_right_after_a_start_nothing_differs_of_any_type(world, name):
    lease = world.lease(every_type(world)[name])
    world.run()
    world.run_to(world.clock.now() + timedelta(minutes=2))
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert look(world) == 0, [problem.explanation for problem in problems(world)]


def test_reservations_in_use_are_looked_at_as_often_as_the_file_says(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, "[manager]", "drift_interval = 90")
    assert world.manager.drift._round() == 90


@pytest.mark.parametrize(("seconds", "begins"), [(0, False), (3600, True)])
def test_reservations_in_use_are_never_looked_at_if_the_file_says_so(sqlite, tmp_path, seconds, begins):
    drift = configured_world(sqlite, tmp_path, "[manager]", f"drift_interval = {seconds}").manager.drift
    drift.start()
    try:
        assert drift._thread.is_alive() is begins
    finally:
        drift.begin_stop()
        drift.stop()


@pytest.mark.parametrize("mends", [True, False])
def test_what_differs_is_mended_at_once_only_if_the_file_says_so(sqlite, tmp_path, mends):
    world = configured_world(sqlite, tmp_path, "[manager]", f"drift_mend = {mends}")
    world.manager.drift.pause = 0
    lease = world.lease(a_host())
    world.run()
    host = to_freepool(world, lease)
    assert look(world) == 1
    assert (host in world.simulated.compute.aggregate(lease.reservations[0].id).hosts) is mends
    assert look(world) == int(not mends)
