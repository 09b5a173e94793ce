# SPDX-License-Identifier: Apache-2.0
"""One service, two clouds: a reservation lies in one region, and a region that is down stops only its own leases."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from blazar.clouds.simulated.state import FlavorState
from blazar.model.base.errors import InvalidInput, NotEnoughResources, OthersWait
from blazar.model.base.moments import NOW, Duration
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.model.search.availability import AvailabilityQuestion
from tests.manager.regions.world import HOUR, TwoRegions, hosts_in, kill
from tests.world import a_host, addresses, flavored, instances


@pytest.fixture
def two(sqlite):
    return TwoRegions(sqlite)


def state(world, lease):
    return world.now(lease).status


def test_hosts_of_one_name_and_number_are_two_resources_with_ids_of_their_own(two):
    found = {(each.region, each.name): each.external_id for each in two.manager.resources.all(HOST)}
    assert found == {
        ("R1", "node-1"): "1",
        ("R1", "node-2"): "2",
        ("R2", "node-1"): "R2:1",
        ("R2", "node-2"): "R2:2",
    }
    candidates = {(c.region, c.name): c.resource_id for c in two.manager.resources.candidates(HOST)}
    assert candidates == found


def test_candidates_of_each_region_have_what_registers_them_there(sqlite):
    two = TwoRegions(sqlite, register=False)
    proposed = two.manager.resources.candidates
    first, second = (
        [each for each in proposed(FLOATING_IP) if each.region == region and each.name == "203.0.113.2 on public"]
        for region in two.regions
    )
    # The networks of both clouds have one id.
    registered = two.manager.resources.register(FLOATING_IP, Registration(second[0].registration))
    assert (registered.region, first[0].registration["region"]) == ("R2", "R1")
    found = {each.region: each.resource_id for each in proposed(FLOATING_IP) if each.name == "203.0.113.2 on public"}
    assert found == {"R1": None, "R2": registered.external_id}
    two.manager.resources.register(FLOATING_IP, Registration(first[0].registration))
    assert len([each for each in proposed(FLOATING_IP) if each.resource_id is not None]) == 2
    for each in proposed(HOST):
        two.manager.resources.register(HOST, Registration(each.registration))
    assert {each.region for each in two.manager.resources.all(HOST)} == {"R1", "R2"}


def test_a_registration_goes_to_the_region_that_it_names_or_else_to_the_first(sqlite):
    world = TwoRegions(sqlite, register=False)
    assert world.manager.resources.register(HOST, Registration({"name": "node-1"})).region == "R1"
    with pytest.raises(InvalidInput, match='region is "R3"; give one of R1, R2') as caught:
        world.register_in("R3", "node-1")
    assert caught.value.pointer == "/region"
    assert world.register_in("R2", "node-2").attributes["region"] == "R2"
    assert (world.pool(), world.free_in_second()) == ({"node-1"}, {"node-2"})


def test_a_host_of_a_region_is_unregistered_there(two):
    two.manager.resources.unregister(HOST, "R2:1")
    assert (two.pool(), two.free_in_second()) == ({"node-1", "node-2"}, {"node-2"})


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "asked",
    [
        hosts_in("R2"),
        ReservationRequest("physical:host", {**a_host().parameters, "region": "R2"}),
        instances(needs='["==", "$region", "R2"]'),
        ReservationRequest("flavor:instance", {**flavored(flavor_id="2").parameters, "region": "R2"}),
    ],
)
def test_a_lease_lives_and_ends_in_the_region_that_it_names(two, asked):
    with two.second.change_state() as cloud:
        cloud.flavors["2"] = FlavorState("2", "small", 1, 1024, 1, public=True)
    kill(two.simulated)
    lease = two.lease(asked)
    two.run()
    assert state(two, lease) is LeaseStatus.ACTIVE
    assert two.now(lease).reservations[0].region == "R2"
    assert two.regions_of(lease) == ["R2"]
    two.run_to(lease.window.end)
    assert state(two, lease) is LeaseStatus.TERMINATED
    assert two.free_in_second() == {"node-1", "node-2"}


def test_a_region_that_is_not_there_is_refused_with_those_that_are(two):
    with pytest.raises(InvalidInput, match=r"\$region that this service does not have; its regions are R1, R2"):
        two.lease(hosts_in("R9"))
    with pytest.raises(InvalidInput, match='region is "R9"; give one of R1, R2'):
        two.lease(ReservationRequest("physical:host", {**a_host().parameters, "region": "R9"}))


def test_a_reservation_never_lies_in_two_regions(two):
    assert two.regions_of(two.lease(a_host(2))) == ["R1", "R1"]
    two.lease(hosts_in("R2"))
    with pytest.raises(NotEnoughResources):
        two.lease(a_host(2))
    assert two.regions_of(two.lease(a_host(1, 2))) == ["R2"]


def test_reservations_that_name_no_region_lie_beside_the_one_that_does(two):
    lease = two.lease(a_host(), hosts_in("R2"))
    assert two.regions_of(lease) == ["R2", "R2"]


def test_a_lease_may_lie_in_two_regions_if_its_reservations_name_them(two):
    lease = two.lease(hosts_in("R1"), hosts_in("R2"))
    two.run()
    assert state(two, lease) is LeaseStatus.ACTIVE
    assert two.regions_of(lease) == ["R1", "R2"]
    assert (len(two.pool()), len(two.free_in_second())) == (1, 1)


def test_a_change_stays_in_the_region(two):
    lease = two.lease(hosts_in("R2"), start=HOUR)
    with pytest.raises(InvalidInput, match=r"its \$region cannot be changed"):
        two.resize(lease, resource_properties='["==", "$region", "R1"]')
    two.resize(lease, resource_properties="", min=2, max=2)
    assert two.regions_of(lease) == ["R2", "R2"]


def test_an_opening_lies_in_one_region(two):
    two.lease(hosts_in("R1"), hours=2)
    two.lease(hosts_in("R2"), hours=1)
    asker = Actor("curie", "physics")
    question = AvailabilityQuestion(asker, (a_host(2),), duration=Duration(seconds=3600), earliest=NOW)
    first = two.manager.availability.find(question).openings[0]
    assert first.window.start == two.clock.now().replace(second=0, microsecond=0) + HOUR
    assert (first.regions, first.counts) == (("R2",), (2,))


def test_an_address_is_taken_where_its_network_is(two):
    with two.second.change_state() as cloud:
        cloud.networks["elsewhere"] = replace(cloud.networks["public"], id="elsewhere")
    given = {"floating_network_id": "elsewhere", "floating_ip_address": "203.0.113.7", "region": "R2"}
    two.manager.resources.register(FLOATING_IP, Registration(given))
    lease = two.lease(addresses(network="elsewhere"))
    two.run()
    assert (state(two, lease), two.now(lease).reservations[0].region) == (LeaseStatus.ACTIVE, "R2")


@pytest.mark.slow
def test_while_a_region_is_down_the_leases_of_the_other_start_and_end_punctually(two):
    here, there = two.lease(hosts_in("R1"), start=HOUR), two.lease(hosts_in("R2"), start=HOUR)
    kill(two.second)
    two.run_to(here.window.start)
    assert (state(two, here), state(two, there)) == (LeaseStatus.ACTIVE, LeaseStatus.STARTING)
    two.run_to(here.window.end)
    assert state(two, here) is LeaseStatus.TERMINATED
    assert state(two, there) is not LeaseStatus.TERMINATED
    two.second.faults.clear()
    two.run_to(there.window.end + HOUR)
    assert state(two, there) is LeaseStatus.TERMINATED
    assert two.free_in_second() == {"node-1", "node-2"}


def test_a_region_that_is_down_loses_no_resource_and_the_other_is_polled(two):
    kill(two.second)
    with two.simulated.change_state() as cloud:
        cloud.hosts["1"].up = False
    for _ in range(3):
        two.manager.monitor.run_once()
    failed = {(each.region, each.name) for each in two.manager.resources.all(HOST) if each.failure}
    assert failed == {("R1", "node-1")}


def test_a_region_whose_last_host_has_gone_is_not_told_as_out_of_reach_any_more(two):
    kill(two.second)
    two.manager.monitor.run_once()
    assert {(one.subject, one.region) for one in two.manager.presence.facts().conditions} == {(HOST, "R2")}
    two.second.faults.clear()
    for host in two.manager.resources.all(HOST):
        if host.region == "R2":
            two.manager.resources.unregister(HOST, host.external_id)
    two.manager.monitor.run_once()
    assert two.manager.presence.facts().conditions == ()


def test_each_region_is_swept_by_itself(two):
    lease = two.lease(hosts_in("R1"))
    two.run()
    two.run_to(lease.window.end)
    reservation = lease.reservations[0].id
    two.simulated.compute.create_aggregate(reservation, f"blazar_{reservation}", {})
    kill(two.second)
    assert two.manager.sweeps[0].run_once() == 1
    two.run()
    assert two.simulated.compute.aggregate(reservation) is None


def test_calls_that_hang_in_one_region_hold_no_thread_of_the_other(sqlite):
    world = TwoRegions(sqlite, hosts=4)
    world.settings = replace(world.settings, starters=1, enders=1)
    world.manager = world.another_manager()
    hang, entered = threading.Event(), threading.Event()

    def wait(name: str, phase: str) -> None:
        entered.set()
        assert hang.wait(20)

    there = [world.lease(hosts_in("R2")) for _ in range(2)]
    here = world.lease(hosts_in("R1"))
    world.second.faults.on_call = wait
    world.manager.engine.start()
    try:
        assert entered.wait(10)
        for _ in range(200):
            if state(world, here) is LeaseStatus.ACTIVE:
                break
            threading.Event().wait(0.05)
        assert state(world, here) is LeaseStatus.ACTIVE
        assert not any(state(world, each) is LeaseStatus.ACTIVE for each in there)
    finally:
        hang.set()
        world.manager.engine.stop()


def test_what_was_there_before_is_in_the_first_region(world, sqlite):
    lease = world.lease()
    world.store.regions.adopt_region("R1")
    two = TwoRegions(sqlite, register=False)
    assert two.now(lease).reservations[0].region == "R1"
    assert {each.attributes["region"] for each in two.manager.resources.all(HOST)} == {"R1"}
    assert two.store.regions.list_used() == {"R1"}


def located(request: ReservationRequest, region: str) -> ReservationRequest:
    return replace(request, parameters={**request.parameters, "region": region})


def test_who_does_not_wait_takes_nothing_from_who_waits_in_any_region(sqlite):
    world = TwoRegions(sqlite)
    world.waits = True
    full = {name: world.lease(located(a_host(2), name), project="biology") for name in ("R1", "R2")}
    world.run()
    waiting = world.lease(located(a_host(2), "R1"), wait=24 * HOUR)
    assert waiting.status is LeaseStatus.WAITING
    later = 2 * HOUR
    direct = world.lease(a_host(2), start=later, project="chemistry")
    assert {r.region for r in direct.reservations} == {"R2"}
    with pytest.raises(OthersWait):
        world.lease(a_host(), start=later, project="geology")
    world.manager.leases.delete(full["R1"].id)
    world.run()
    assert world.now(waiting).status is LeaseStatus.ACTIVE
