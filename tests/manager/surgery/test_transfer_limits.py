# SPDX-License-Identifier: Apache-2.0
"""Who gets a lease is asked as for a new one; what the giver had ends."""

from __future__ import annotations

import pytest

from blazar.enforcement import Occasion
from blazar.enforcement.limits import MaxConcurrentLeasesFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import EnforcementUnavailable, UsageDenied
from blazar.model.base.moments import NOW
from blazar.model.leases.limits import Bounds
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import OfferRequest, Terms
from tests.manager.booking.test_commitments import LOST, NO, Strict
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.surgery.steps import HOUR
from tests.observed import Killed
from tests.world import NOON, PROJECT, World, a_host

CURIE = Terms(Actor("curie", PROJECT))
TURING = Terms(Actor("turing", "computing"))


def offered(world: World, **lease):
    made = world.lease(a_host(), **lease)
    world.run()
    world.manager.transfers.offer(made.id, OfferRequest("computing"), CURIE)
    world.manager.outbox.run_due()
    return made


def accept(world: World, lease) -> None:
    world.manager.transfers.accept(lease.id, TURING)
    world.manager.outbox.run_due()


def told(books) -> list[tuple[str, str]]:
    return [(str(each.occasion), each.view.lease.project_id) for each in books.told]


@pytest.mark.parametrize("start", [NOW, HOUR], ids=["in use", "before its start"])
def test_filters_hear_of_a_new_lease_and_of_the_end_of_the_givers(sqlite, start):
    books = RecordingFilter()
    world = World(sqlite, filters=[books])
    lease = offered(world, start=start)
    books.told.clear()
    books.asked.clear()
    accept(world, lease)
    assert sorted(told(books)) == [(str(Occasion.CREATED), "computing"), (str(Occasion.ENDED), PROJECT)]
    (asked,) = books.asked
    assert (asked.wanted.project_id, asked.current) == ("computing", None)


def test_one_that_has_to_accept_it_may_refuse(sqlite):
    books = Strict()
    world = World(sqlite, filters=[books])
    lease = offered(world, start=NOW)
    books.told.clear()
    books.objects[Occasion.CREATED] = NO
    with pytest.raises(UsageDenied):
        accept(world, lease)
    world.run()
    world.manager.outbox.run_due()
    found = world.now(lease)
    assert (found.project_id, found.status) == (PROJECT, LeaseStatus.ACTIVE)
    assert told(books) == [(str(Occasion.CREATED), "computing")]
    books.objects.clear()
    accept(world, lease)
    assert world.now(lease).project_id == "computing"
    assert sorted(told(books)[1:]) == [(str(Occasion.CREATED), "computing"), (str(Occasion.ENDED), PROJECT)]


def test_what_may_have_been_accepted_is_taken_back(sqlite):
    books = Strict()
    world = World(sqlite, filters=[books])
    lease = offered(world, start=NOW)
    books.told.clear()
    books.objects[Occasion.CREATED] = LOST
    with pytest.raises(EnforcementUnavailable):
        accept(world, lease)
    books.objects.clear()
    world.run_to(NOON + HOUR / 2)
    world.manager.outbox.run_due()
    assert world.now(lease).project_id == PROJECT
    assert told(books) == [(str(Occasion.CREATED), "computing"), (str(Occasion.ENDED), "computing")]


def test_a_manager_that_dies_after_the_acceptance_takes_it_back(sqlite):
    books = Strict()
    world = World(sqlite, filters=[books])
    lease = offered(world, start=NOW)
    books.told.clear()

    def die() -> None:
        books.meanwhile = lambda: None
        raise Killed

    books.meanwhile = die
    with pytest.raises(Killed):
        accept(world, lease)
    world.manager = world.another_manager()
    world.run_to(NOON + HOUR / 2)
    world.manager.outbox.run_due()
    assert world.now(lease).project_id == PROJECT
    assert told(books) == [(str(Occasion.CREATED), "computing"), (str(Occasion.ENDED), "computing")]


def test_the_takers_own_limit_counts(sqlite):
    world = World(sqlite, filters=[MaxConcurrentLeasesFilter(1)])
    lease = offered(world, start=HOUR)
    mine = world.lease(a_host(), start=HOUR, project="computing")
    with pytest.raises(UsageDenied):
        accept(world, lease)
    assert world.now(lease).project_id == PROJECT
    world.manager.leases.delete(mine.id)
    world.run()
    accept(world, lease)
    # The giver has room again, the taker has not.
    world.lease(a_host(), start=HOUR)
    with pytest.raises(UsageDenied):
        world.lease(a_host(), start=HOUR, project="computing")


def test_the_takers_number_of_leases_is_bounded(sqlite):
    world = World(sqlite, settings=Settings(bounds=Bounds(leases=1)))
    lease = offered(world, start=HOUR)
    mine = world.lease(a_host(), start=HOUR, project="computing")
    with pytest.raises(UsageDenied):
        accept(world, lease)
    world.manager.leases.delete(mine.id)
    world.run()
    accept(world, lease)
    assert world.now(lease).project_id == "computing"


def test_what_the_taker_books_while_the_lease_is_on_its_way_counts(sqlite):
    world = World(sqlite, filters=[MaxConcurrentLeasesFilter(1)])
    lease = offered(world, start=HOUR)

    def book(name: str, when: str) -> None:
        if when == "before":
            world.faults.on_call = None
            world.lease(a_host(), start=HOUR, project="computing")

    world.faults.on_call = book
    with pytest.raises(UsageDenied):
        accept(world, lease)
    world.run()
    assert world.now(lease).project_id == PROJECT
    assert world.simulated.compute.aggregate(lease.reservations[0].id).metadata["blazar:owner"] == PROJECT
