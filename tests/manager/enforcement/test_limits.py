# SPDX-License-Identifier: Apache-2.0
"""Limits on what a project has at one time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxLeaseDurationFilter, MaxUnitsFilter
from blazar.enforcement.payload import question_body
from blazar.model.base.errors import UsageDenied
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import FLOATING_IP
from tests.manager.enforcement.recording import HOUR
from tests.statements import counted
from tests.world import NOON, World, a_host, addresses, instances, volumes


def test_limits_count_what_the_project_has_and_nothing_of_others(sqlite):
    world = World(sqlite, hosts=9, filters=[MaxUnitsFilter(3)])
    world.lease(a_host(2), start=HOUR)
    world.lease(a_host(3), start=HOUR, project="art")
    with pytest.raises(UsageDenied, match=r"1 is left"):
        world.lease(a_host(2), start=2 * HOUR)
    lease = world.lease(a_host(1), start=2 * HOUR)
    with pytest.raises(UsageDenied):
        world.resize(lease, min=2, max=2)
    world.manager.leases.delete(lease.id)
    world.lease(a_host(3), start=3 * HOUR)


def test_a_limit_on_servers_at_one_time_holds_over_leases_and_changes(engine):
    world = World(engine, hosts=2, filters=[MaxUnitsFilter(None, of={"instance": 5})])
    lease = world.lease(instances(3, vcpus=1), start=HOUR, hours=9)
    with pytest.raises(UsageDenied, match="2 are left"):
        world.lease(instances(3, vcpus=1), start=2 * HOUR)
    world.lease(instances(2, vcpus=1), start=2 * HOUR)
    world.lease(a_host(1), start=2 * HOUR)
    world.run_to(NOON + 5 * HOUR)
    world.resize(lease, amount=1)
    world.run_to(NOON + 6 * HOUR)
    world.resize(lease, amount=5)
    with pytest.raises(UsageDenied, match="0 are left"):
        world.lease(instances(1, vcpus=1), start=HOUR)
    world.manager.leases.delete(lease.id)
    world.lease(instances(5, vcpus=1), start=HOUR)


@pytest.mark.slow
def test_a_limit_on_gib_holds_over_leases_growths_and_both_modes(engine):
    rules = [
        MaxUnitsFilter(None, of={"gigabyte": 30, "volume": 5}),
        ResourceHoursFilter({"gigabyte": 200}, parse_period("7")),
    ]
    world = World(engine, register=False, filters=rules)
    world.register_pools(1, gigabytes=100)
    lease = world.lease(volumes(2, size=10), hours=4)
    world.lease(volumes(1, size=5, mode="quota"), hours=4)
    with pytest.raises(UsageDenied, match=r"6 gigabytes.*\(max_units_of gigabyte\) 5 are left"):
        world.lease(volumes(1, size=6), hours=2)
    with pytest.raises(UsageDenied, match=r"\(max_units_of volume\) 2 are left"):
        world.lease(volumes(3, size=1), hours=2)
    world.run_to(NOON)
    with pytest.raises(UsageDenied, match="26 gigabytes"):
        world.resize(lease, size=13)
    assert world.resize(lease, size=12).reservations[0].parameters.values["size"] == 12
    with pytest.raises(UsageDenied, match="gigabyte-hours"):
        world.lease(volumes(1, size=20), start=5 * HOUR, hours=5)


def test_addresses_are_no_hosts_for_a_limit_on_hosts(sqlite):
    world = World(sqlite, hosts=3, filters=[MaxUnitsFilter(1), MaxConcurrentLeasesFilter(9)])
    world.register_addresses(*range(10, 20))
    world.lease(addresses(3), start=HOUR)
    lease = world.lease(a_host(1), addresses(3), start=HOUR)
    world.run_to(NOON + HOUR)
    change = ReservationChange(lease.reservations[1].id, {"amount": 5})
    assert world.change(lease, reservations=(change,)).status is LeaseStatus.ACTIVE
    with pytest.raises(UsageDenied, match="the lease would have 1 host,"):
        world.lease(a_host(1), addresses(1))


def test_addresses_have_limits_and_budgets_of_their_own(sqlite):
    filters = [
        MaxUnitsFilter(None, of={"floatingip": 3}),
        ResourceHoursFilter({"floatingip": 6}, parse_period("month")),
    ]
    world = World(sqlite, hosts=1, filters=filters)
    world.register_addresses(*range(10, 20))
    with pytest.raises(UsageDenied, match="max_units_of floatingip"):
        world.lease(addresses(4), start=HOUR, hours=1)
    world.lease(addresses(2), start=HOUR, hours=2)
    with pytest.raises(UsageDenied, match="max_resource_hours"):
        world.lease(addresses(3), start=9 * HOUR, hours=1)
    world.lease(addresses(2), start=9 * HOUR, hours=1)


def test_filters_see_the_addresses_that_a_reservation_is_to_have(world, books):
    world.register_addresses(10, 11)
    lease = world.lease(a_host(), addresses(2), start=HOUR)
    (question,) = books.asked
    body = question_body(question)["lease"]["reservations"]
    assert [len(reservation["allocations"]) for reservation in body] == [1, 2]
    shown = sorted(body[1]["allocations"], key=lambda a: a["floating_ip_address"])
    first, _ = world.manager.resources.all(FLOATING_IP)
    assert shown[0] == {
        "id": first.external_id,
        "floating_network_id": "public",
        "subnet_id": "public-subnet",
        "floating_ip_address": "203.0.113.10",
        "reservable": True,
        "created_at": "2030-04-01 12:00:00",
        "updated_at": None,
    }
    assert (body[1]["network_id"], body[1]["amount"], body[1]["required_floatingips"]) == ("public", 2, [])
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_addresses_are_limited_at_a_time_and_by_the_hour_and_are_no_hosts(engine):
    units = MaxUnitsFilter(0, of={"floatingip": 3})
    world = World(
        engine, hosts=0, filters=[units, ResourceHoursFilter({"host": 0, "floatingip": 20}, parse_period("month"))]
    )
    world.register_addresses(*range(10, 20))
    lease = world.lease(addresses(2), start=HOUR, hours=5)
    with pytest.raises(UsageDenied, match=r"\(max_units_of floatingip\) 1 is left"):
        world.lease(addresses(2), start=2 * HOUR)
    with pytest.raises(UsageDenied, match=r"take 12 floatingip-hours .* 10 are left"):
        world.lease(addresses(3), start=9 * HOUR, hours=4)
    world.manager.leases.delete(lease.id)
    world.lease(addresses(3), start=9 * HOUR, hours=4)


def test_a_limit_holds_for_changes_of_dates(sqlite):
    world = World(sqlite, filters=[MaxConcurrentLeasesFilter(1)])
    world.lease(start=5 * HOUR)
    lease = world.lease(start=2 * HOUR)
    with pytest.raises(UsageDenied):
        world.change(lease, end=NOON + 6 * HOUR)
    assert world.change(lease, end=NOON + 5 * HOUR).window.end == NOON + 5 * HOUR


def test_of_two_requests_at_once_for_the_rest_of_a_limit_one_is_denied(engine):
    """The two meet after both have been let through, on two managers, on each database."""
    here = World(engine, hosts=6, filters=[MaxUnitsFilter(3)])
    here.lease(a_host(1))
    there = World(engine, hosts=6, filters=[MaxUnitsFilter(3)], register=False, cloud=here.simulated, clock=here.clock)
    both = threading.Barrier(2, timeout=20)
    for world in (here, there):
        check, waited = world.enforcement.check, []

        def together(question, passed, check=check, waited=waited):
            check(question, passed)
            if not waited:
                waited.append(True)
                both.wait()

        world.enforcement.check = together

    def ask(world):
        try:
            return len(world.hosts_of(world.lease(a_host(2))))
        except UsageDenied:
            return 0

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ask, (here, there))) == [0, 2]
    assert len(here.manager.leases.all("physics")) == 2


def test_the_first_two_bookings_of_a_project_can_meet_as_well(engine):
    here = World(engine, hosts=6, filters=[MaxConcurrentLeasesFilter(1)])
    there = World(
        engine, filters=[MaxConcurrentLeasesFilter(1)], register=False, cloud=here.simulated, clock=here.clock
    )
    first = []

    def meet(question, passed, check=here.enforcement.check):
        check(question, passed)
        if not first:
            first.append(there.lease())

    here.enforcement.check = meet
    with pytest.raises(UsageDenied):
        here.lease()
    assert [lease.id for lease in here.manager.leases.all("physics")] == [first[0].id]


def test_a_lease_that_is_getting_more_for_longer_counts_with_all_of_it_meanwhile(engine):
    world = World(engine, hosts=6, filters=[MaxUnitsFilter(3)])
    lease = world.lease(a_host(1))
    world.run()
    denied = []

    def meanwhile(name, phase):
        if name == "add_host":
            world.faults.on_call = None
            with pytest.raises(UsageDenied) as error:
                world.lease(a_host(2), start=3 * HOUR)
            denied.append(error.value.message)

    world.faults.on_call = meanwhile
    more = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 2})
    world.change(lease, end=NOON + 9 * HOUR, reservations=(more,))
    assert "1 is left" in denied[0]
    assert world.lease(a_host(1), start=3 * HOUR).status is LeaseStatus.PENDING


@pytest.mark.slow
def test_statements_with_filters_do_not_grow_with_hosts_or_leases(sqlite):
    world = World(
        sqlite,
        hosts=30,
        filters=[MaxLeaseDurationFilter(24 * HOUR), MaxConcurrentLeasesFilter(99), MaxUnitsFilter(999)],
    )
    world.lease()

    def cost(hosts):
        with counted(world.engine) as statements:
            world.lease(a_host(hosts), start=HOUR)
        return statements.count

    few = cost(1)
    for number in range(20):
        world.lease(start=(number + 10) * HOUR)
    assert cost(10) == few
