# SPDX-License-Identifier: Apache-2.0
"""Leases that are prolonged by themselves: as far as nobody else wants what they have, and no further."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.errors import EnforcementUnavailable, InvalidInput, UsageDenied
from blazar.model.base.moments import Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import ReservationChange
from blazar.model.leases.states import EventType, LeaseStatus
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.health.steps import ON_NODE_1
from tests.statements import counted
from tests.world import NOON, World, a_host

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)
NOT_NODE_1 = ON_NODE_1.replace("==", "!=")
LEAD = 70 * MINUTE
"""So long before its end a lease is prolonged: ten minutes before its warning."""


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite)


def active(world: World, *, hosts: int = 1, until: timedelta = DAY, hours: int = 3, **more) -> Lease:
    lease = world.lease(a_host(hosts), hours=hours, extend=NOON + until, **more)
    world.run()
    return lease


def later(world: World, instant: timedelta) -> int:
    world.run_to(NOON + instant)
    return world.manager.prolongation.run_once()


def end(world: World, lease: Lease):
    return world.now(lease).window.end


def test_a_lease_gets_all_the_time_that_is_free(world):
    lease = active(world)
    assert later(world, 3 * HOUR - LEAD - MINUTE) == 0
    assert later(world, 3 * HOUR - LEAD) == 1
    found = world.now(lease)
    assert (found.window.end, found.status) == (NOON + DAY, LeaseStatus.ACTIVE)
    assert found.event(EventType.BEFORE_END).time == NOON + DAY - HOUR
    assert world.notifier.types[-2:] == ["lease.update", "lease.extended"]
    assert later(world, DAY - HOUR) == 0
    world.run_to(NOON + DAY)
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_it_ends_where_another_lease_begins(world):
    lease = active(world, hosts=3)
    world.lease(a_host(), start=7 * HOUR, project="chemistry")
    assert later(world, 2 * HOUR) == 1
    assert end(world, lease) == NOON + 7 * HOUR


def test_what_keeps_it_is_told_and_it_is_tried_again(world):
    lease = active(world, hosts=3)
    other = world.lease(a_host(), start=3 * HOUR, project="chemistry")
    assert later(world, 2 * HOUR) == 0
    assert world.now(lease).extend.reason == "what it has is promised to others from its end on"
    world.manager.leases.delete(other.id)
    assert later(world, 2 * HOUR + MINUTE) == 1
    assert end(world, lease) == NOON + DAY


def test_it_takes_nothing_from_who_waits(world):
    world.waits = True
    lease = active(world, hosts=3)
    waiting = world.lease(a_host(), project="chemistry", wait=DAY)
    assert later(world, 2 * HOUR) == 0
    assert world.now(lease).extend.reason == "others wait for what it has"
    world.run_to(NOON + 3 * HOUR)
    assert [world.now(each).status for each in (lease, waiting)] == [LeaseStatus.TERMINATED, LeaseStatus.ACTIVE]


def test_who_waits_in_vain_or_for_something_else_keeps_nobody_from_it(world):
    world.waits = True
    lease = world.lease(a_host(needs=ON_NODE_1), hours=3, extend=NOON + DAY)
    world.run()
    world.lease(a_host(9), project="chemistry", wait=DAY)
    world.lease(a_host(), hours=5)
    world.lease(a_host(2, needs=NOT_NODE_1), project="chemistry", hours=6, wait=DAY)
    assert later(world, 2 * HOUR) == 1
    assert end(world, lease) == NOON + DAY


def warned(world: World, *, hours: int = 3) -> timedelta | None:
    """Return how long after noon a lease could end, as the warning before its end says."""
    world.run_to(NOON + (hours - 1) * HOUR)
    assert world.notifier.types[-1] == "lease.event.before_end_lease"
    until = world.notifier.extendable_until
    return until - NOON if until else None


def test_a_warning_says_how_long_a_lease_could_be(world):
    world.lease(a_host(3), hours=3)
    world.lease(a_host(), start=7 * HOUR, project="chemistry")
    assert warned(world) == 7 * HOUR


def test_a_warning_offers_nothing_that_is_promised_to_others(world):
    world.lease(a_host(3), hours=3)
    world.lease(a_host(), start=3 * HOUR, project="chemistry")
    assert warned(world) is None


def test_a_warning_offers_nothing_while_others_wait(world):
    world.waits = True
    world.lease(a_host(3), hours=3)
    world.lease(a_host(), project="chemistry", wait=DAY)
    assert warned(world) is None


def test_a_warning_is_sent_although_the_offer_is_not_known(world, monkeypatch):
    def fail(question):
        raise EnforcementUnavailable("nobody answers")

    world.lease(a_host(), hours=3)
    monkeypatch.setattr(world.manager.availability, "find", fail)
    assert warned(world) is None


class Denies(RecordingFilter):
    """A filter that denies what lasts longer than five hours."""

    def check(self, question):
        if question.wanted.lease.window.duration > 5 * HOUR:
            raise UsageDenied("five hours are enough")


def test_it_is_not_prolonged_beyond_what_enforcement_grants(sqlite):
    world = World(sqlite, filters=[Denies()])
    lease = active(world)
    assert later(world, 2 * HOUR) == 0
    assert world.now(lease).extend.reason == "five hours are enough"
    assert end(world, lease) == NOON + 3 * HOUR


def test_two_managers_prolong_it_once(world):
    lease = active(world)
    second = world.another_manager()
    world.run_to(NOON + 2 * HOUR)
    assert world.manager.prolongation.run_once() + second.prolongation.run_once() == 1
    assert end(world, lease) == NOON + DAY


def test_only_leases_in_use_are_prolonged(world):
    lease = active(world)
    world.manager.leases.delete(lease.id)
    world.lease(a_host(), start=2 * HOUR, hours=1, extend=NOON + DAY)
    assert later(world, HOUR) == 0


def test_a_change_starts_and_stops_it(world):
    lease = world.lease(a_host(), hours=3)
    world.run()
    assert world.change(lease, extend_until=NOON + DAY).extend.until == NOON + DAY
    assert world.change(lease, stops_extending=True).extend is None
    assert later(world, 2 * HOUR) == 0
    assert world.change(lease, extend_until=Duration(days=1)).extend.until == NOON + 3 * HOUR + DAY
    assert world.change(lease, end=NOON + 3 * DAY).extend is None


@pytest.mark.parametrize("until", [2 * HOUR, 3 * HOUR, -DAY, 800 * DAY])
def test_a_time_that_cannot_be_is_refused(world, until):
    with pytest.raises(InvalidInput, match=r"extend_if_free\.until"):
        world.lease(a_host(), hours=3, extend=NOON + until)
    lease = world.lease(a_host(), hours=3)
    with pytest.raises(InvalidInput, match=r"extend_if_free\.until"):
        world.change(lease, extend_until=NOON + until)


def test_a_change_that_needs_the_cloud_starts_and_stops_it_too(world):
    lease = active(world)
    grown = ReservationChange(id=lease.reservations[0].id, parameters={"min": 2, "max": 2})
    assert world.change(lease, reservations=(grown,), stops_extending=True).extend is None
    grown = replace(grown, parameters={"min": 3, "max": 3})
    assert world.change(lease, reservations=(grown,), extend_until=NOON + DAY).extend.until == NOON + DAY


def test_a_lease_that_has_waited_is_prolonged_for_as_long_as_it_asked_for(world):
    world.waits = True
    world.lease(a_host(3), hours=5, project="biology")
    world.run()
    lease = world.lease(a_host(), wait=DAY, extend=Duration(seconds=7200))
    assert world.now(lease).extend.until == NOON + 4 * HOUR
    world.run_to(NOON + 5 * HOUR)
    assert world.now(lease).extend.until == NOON + 9 * HOUR
    assert later(world, 6 * HOUR) == 1
    assert end(world, lease) == NOON + 9 * HOUR
    with pytest.raises(InvalidInput, match="give a duration") as refused:
        world.lease(a_host(), wait=DAY, extend=NOON + DAY)
    assert refused.value.pointer == "/extend_if_free/until"


def test_a_look_is_one_statement_while_nothing_is_to_be_prolonged(world):
    world.lease(a_host(), hours=3)
    world.run()
    with counted(world.engine) as statements:
        assert world.manager.prolongation.run_once() == 0
    assert statements.count == 1


def test_it_is_the_same_on_every_database(engine):
    world = World(engine)
    lease = active(world)
    assert later(world, 2 * HOUR) == 1
    assert end(world, lease) == NOON + DAY
    assert world.store.extensions.find_next_end(after=NOON) is None
