# SPDX-License-Identifier: Apache-2.0
"""Two regions on every database, in as many statements as one region, and in any order of bookings and failures."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import hypothesis.strategies as st
import pytest
import sqlalchemy as sa
from hypothesis import settings
from hypothesis.stateful import invariant, multiple, rule
from sqlalchemy.engine import Engine

from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.moments import NOW, Duration
from blazar.model.base.paging import Condition, Operator, Page
from blazar.model.leases.details import LeaseFilter
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion
from blazar.store.sql import tables
from tests.manager.leases.test_stateful_mixed import HOSTS, Mixed
from tests.manager.regions.world import HOUR, TwoRegions, hosts_in, kill
from tests.statements import counted
from tests.tables import new_sqlite
from tests.uses import TYPES_WITH_USES
from tests.world import World, a_host, instances

IN_A_REGION = st.one_of(
    st.builds(a_host, st.integers(1, 2), st.integers(2, 3)),
    st.builds(instances, st.integers(1, 3), vcpus=st.sampled_from([1, 8, 31])),
)
REGIONS_OF = sa.select(tables.reservations.c.id, tables.reservations.c.region)
FAILED = sa.select(tables.leases.c.id).where(
    tables.leases.c.status == str(LeaseStatus.ERROR),
    tables.leases.c.deleted_at.is_(None),
    tables.reservations.c.lease_id == tables.leases.c.id,
)


def test_all_of_a_lease_in_a_region_works_on_every_database(engine):
    two = TwoRegions(engine)
    here, there = two.lease(hosts_in("R1")), two.lease(hosts_in("R2"))
    kill(two.second)
    two.run()
    assert [two.now(lease).status for lease in (here, there)] == [LeaseStatus.ACTIVE, LeaseStatus.STARTING]
    two.second.faults.clear()
    two.run_to(two.clock.now() + timedelta(minutes=5))
    assert two.now(there).status is LeaseStatus.ACTIVE
    wanted = LeaseFilter(conditions=(Condition("region", Operator.EQ, ("R2",)),))
    assert [each.lease.id for each in two.manager.leases.page(wanted, Page(10, "created_at")).items] == [there.id]
    question = AvailabilityQuestion(
        Actor("curie", "physics"), (hosts_in("R2", 2),), duration=Duration(seconds=3600), earliest=NOW
    )
    assert two.manager.availability.find(question).openings[0].regions == ("R2",)
    assert two.store.resources.find_by_name(HOST, "node-1", region="R2").external_id == "R2:1"
    assert two.store.regions.list_used() == {"R1", "R2"}
    two.manager.monitor.run_once()
    two.run_to(there.window.end)
    assert two.now(there).status is LeaseStatus.TERMINATED


def test_what_was_there_before_is_adopted_on_every_database(engine):
    before = World(engine)
    lease = before.lease()
    before.store.regions.adopt_region("R1")
    two = TwoRegions(engine, register=False)
    assert (two.now(lease).reservations[0].region, two.store.regions.list_used()) == ("R1", {"R1"})


def test_a_booking_in_the_first_region_costs_as_many_statements_as_without_regions(tmp_path):
    counts = []
    for make in (World, TwoRegions):
        engine = new_sqlite(tmp_path / f"{make.__name__}.sqlite")
        world = make(engine, hosts=3)
        world.lease(a_host())
        with counted(engine) as book:
            lease = world.lease(a_host(), instances())
        with counted(engine) as change:
            world.manager.leases.update(lease.id, LeaseChange(end=lease.window.end + HOUR))
        with counted(engine) as find:
            world.manager.availability.find(
                AvailabilityQuestion(
                    Actor("curie", "physics"),
                    (a_host() if make is World else hosts_in("R1"),),
                    duration=Duration(seconds=3600),
                )
            )
        with counted(engine) as delete:
            world.manager.leases.delete(lease.id)
        counts.append((book.count, change.count, find.count, delete.count))
    # That a region is full is not proven by counting: who asks when something is free reads the leases of its hosts.
    (book, change, find, delete), of_region = counts
    assert of_region == (book, change, find + 4, delete)


class RegionalMixed(Mixed):
    """Reservations of every type in two regions, the second of which is down at times."""

    leases = Mixed.leases
    was_down = False

    def new_world(self, engine: Engine) -> World:
        self.two = TwoRegions(engine, hosts=HOSTS, types=TYPES_WITH_USES)
        return self.two

    def teardown(self) -> None:
        if hasattr(self, "two"):
            self.two.second.faults.clear()
        super().teardown()
        if hasattr(self, "two"):
            assert self.two.free_in_second() == {f"node-{number}" for number in range(1, HOSTS + 1)}

    @rule(down=st.booleans())
    def the_second_region_fails_or_is_back(self, down: bool) -> None:
        if down:
            self.was_down = True
            kill(self.two.second)
        else:
            self.two.second.faults.clear()

    @rule(target=leases, region=st.sampled_from(["R1", "R2"]), room=IN_A_REGION, quarters=st.integers(1, 16))
    def create_in(self, region: str, room: ReservationRequest, quarters: int) -> object:
        there = ReservationRequest(room.resource_type, {**room.parameters, "region": region})
        lease = self.attempt(lambda: self.world.lease(there, hours=quarters / 4))
        return multiple() if lease is None else lease.id

    @invariant()
    def no_lease_is_spoiled(self) -> None:
        """Nor is one in the second region, but that it could not start in all its time, as the region was down."""
        if hasattr(self, "two"):
            with self.engine.connect() as connection:
                failed = set(connection.execute(FAILED).scalars())
                there = set(connection.execute(FAILED.where(tables.reservations.c.region == "R2")).scalars())
            assert failed == (there if self.was_down else set())

    @invariant()
    def every_reservation_lies_in_its_region(self) -> None:
        if hasattr(self, "two"):
            of = {each.id: each.region for each in self.two.store.resources.of_kind(HOST)}
            with self.engine.connect() as connection:
                regions = dict(connection.execute(REGIONS_OF).tuples().all())
            for held in self.two.store.calendar.load_live(HOST):
                assert of[held.resource_id] == regions[held.reservation_id]

    def attempt(self, act: Callable[[], Lease]) -> Lease | None:
        """Do what may be refused, also because the second region is down."""
        try:
            return super().attempt(act)
        except CloudUnavailable:
            return None


RegionalMixed.TestCase.settings = settings(max_examples=3, stateful_step_count=20, deadline=None)
TestRegionalMixed = RegionalMixed.TestCase


class ManyRegionalMixed(RegionalMixed):
    """The same, far longer."""


ManyRegionalMixed.TestCase.settings = settings(
    max_examples=int(os.environ.get("BLAZAR_LIVES", "60")), stateful_step_count=50, deadline=None
)
TestManyRegionalMixed = pytest.mark.slow(ManyRegionalMixed.TestCase)
