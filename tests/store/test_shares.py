# SPDX-License-Identifier: Apache-2.0
"""What projects have of shared resources at present, and had before, on each database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.manager.leases.lifecycle import begin_update
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, booked, hours, rebook

EACH = Amounts.of({"VCPU": 2})


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


@pytest.fixture
def hosts(store):
    return [a_host(store, number) for number in (1, 2)]


def become(
    store: Store, lease: Lease, status: LeaseStatus, of_it: ReservationStatus, *, release: bool = False
) -> Lease:
    """Give a lease and its reservation another status."""
    reservations = tuple(replace(each, status=of_it) for each in lease.reservations)
    after = replace(lease, status=status, reservations=reservations)
    released = [each.id for each in reservations] if release else []
    return store.leases.save(lease, after, release=released, at=NOON)


def shares(store: Store, hosts, *, besides: str = "none", project: str = "physics"):
    """Return what the project has of the hosts at noon, by their order."""
    found = store.calendar.project_shares(project, [h.id for h in hosts], besides=besides, now=NOON)
    return [sum(each.get("VCPU") for each in found.get(h.id, {}).values()) for h in hosts]


def test_shares_are_those_of_reservations_that_are_in_use_or_starting(store, hosts):
    first = booked(store, hours(0, 2), hosts[0], per_instance=EACH)
    second = booked(store, hours(0, 4), *hosts, per_instance=EACH)
    booked(store, hours(1, 4), hosts[0], per_instance=EACH)
    assert shares(store, hosts) == [0, 0]
    become(store, first, LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    assert shares(store, hosts) == [2, 0]
    second = become(store, second, LeaseStatus.STARTING, ReservationStatus.PENDING)
    assert shares(store, hosts) == [4, 2]
    assert shares(store, hosts[1:]) == [2]
    assert shares(store, hosts, besides=second.reservations[0].id) == [2, 0]
    assert shares(store, hosts, project="art") == [0, 0]
    second = become(store, second, LeaseStatus.TERMINATING, ReservationStatus.ACTIVE)
    assert shares(store, hosts) == [2, 0]
    become(store, second, LeaseStatus.TERMINATED, ReservationStatus.DELETED, release=True)
    assert shares(store, hosts) == [2, 0]


def test_of_a_lease_that_is_being_changed_the_share_is_what_it_had(store, hosts, engine):
    lease = booked(store, hours(0, 2), hosts[0], per_instance=EACH)
    lease = become(store, lease, LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    (held,) = store.calendar.of_lease(lease.id)
    updating = begin_update(lease, held=[held], token="a-token", now=NOON, until=NOON + HOUR)
    more = replace(held, per_instance=Amounts.of({"VCPU": 5}))
    updating = rebook(store, lease, updating, AllocationPlan((more,)), at=NOON)
    with counted(engine) as statements:
        assert shares(store, hosts) == [2, 0]
    assert statements.count == 1
    assert shares(store, hosts, besides=lease.reservations[0].id) == [0, 0]
    rebook(store, updating, replace(updating, status=LeaseStatus.ACTIVE), AllocationPlan((more,)), at=NOON)
    assert shares(store, hosts) == [5, 0]


def test_shares_cost_one_statement_however_many_there_are(store, hosts, engine):
    for _ in range(5):
        found = booked(store, hours(0, 2), *hosts, per_instance=EACH)
        become(store, found, LeaseStatus.ACTIVE, ReservationStatus.ACTIVE)
    with counted(engine) as statements:
        assert shares(store, hosts) == [10, 10]
    assert statements.count == 1


def test_the_last_reservation_is_that_of_a_project_that_has_the_resource_no_more(store, hosts, engine):
    one, other = hosts
    for _ in range(2):
        past = become(
            store,
            booked(store, hours(0, 2), one, per_instance=EACH),
            LeaseStatus.TERMINATED,
            ReservationStatus.DELETED,
            release=True,
        )
    gone = booked(store, hours(0, 3), other, per_instance=EACH)
    become(store, gone, LeaseStatus.TERMINATED, ReservationStatus.DELETED, release=True)
    # One that is to come has nothing yet, and one that has begun has.
    booked(store, hours(5, 6), one, per_instance=EACH)
    booked(store, hours(0, 6), other, per_instance=EACH)
    asked = {one.id: {"physics", "art"}, other.id: {"physics"}}
    with counted(engine) as statements:
        found = store.leases.last_reservations(asked, NOON)
    assert found == {(one.id, "physics"): past.reservations[0].id}
    assert statements.count == 2
    later = store.leases.last_reservations(asked, NOON + 5 * HOUR)
    assert later == {}
    assert store.leases.last_reservations({one.id: set()}, NOON) == {}
