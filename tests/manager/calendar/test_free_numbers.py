# SPDX-License-Identifier: Apache-2.0
"""What is shown as free is what can be booked: calendar, capacity and openings, compared with bookings."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.moments import Duration
from blazar.model.base.paging import Page
from blazar.model.calendar.views import CalendarQuestion, CapacityQuestion, Range, Viewer
from blazar.model.leases.requests import Actor
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import GENERIC, HOST
from blazar.model.search.availability import AvailabilityQuestion
from tests.cases import cases
from tests.tables import new_sqlite
from tests.world import NOON, PROJECT, World, a_host, things

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
VIEWERS = (Viewer(PROJECT), Viewer("admin", names=True, owners=True, private=True))
COUNT = 4
KINDS = {"physical:host": (HOST, a_host), "generic": (GENERIC, things)}
NOT_DISABLED = "in use"

conditions = st.one_of(st.just(NOT_DISABLED), st.none(), st.integers(1, 8))
"""Of a resource: not disabled, disabled without a date, or disabled until so many hours after noon."""


def booked(world, request, window):
    """Return the names of all that can be booked in a window."""
    try:
        lease = world.lease(request(1, COUNT), start=window.start, end=window.end)
    except NotEnoughResources:
        return frozenset()
    found = world.hosts_of(lease)
    world.manager.leases.delete(lease.id)
    world.run()
    return found


def openings(world, request, window, count):
    question = AvailabilityQuestion(
        Actor("curie", PROJECT), reservations=(request(count),), start=window.start, end=window.end, alternatives=False
    )
    return world.manager.availability.find(question).openings


def check(world, resource_type, start):
    """Compare what is shown as free in a minute, to members and to operators, with what can be booked."""
    request = KINDS[resource_type][1]
    range_ = Range(start, start + MINUTE)
    names = {each.external_id: each.name for each in world.manager.resources.all(KINDS[resource_type][0])}
    labels = {each.label: each.name for each in world.manager.resources.all(KINDS[resource_type][0])}
    can_be = booked(world, request, range_)
    for viewer in VIEWERS:
        page = world.manager.calendar.page(CalendarQuestion(viewer, Page(9, "name"), range_, resource_type))
        free = frozenset({**names, **labels}[row.id] for row in page.rows if not row.blocks)
        asked = CapacityQuestion(viewer, range_, Duration(seconds=60), resource_type)
        (series,) = world.manager.calendar.capacity(asked).series
        assert free == can_be
        assert series.free == (len(can_be),)
        assert series.at_start.free == len(can_be)
    assert not openings(world, request, range_, len(can_be) + 1)
    assert not can_be or openings(world, request, range_, len(can_be))


@pytest.mark.parametrize("resource_type", KINDS)
@settings(max_examples=cases(60))
@given(
    disabled=st.lists(conditions, min_size=COUNT, max_size=COUNT),
    leases=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 3)), max_size=3),
    passed=st.integers(0, 9),
    ahead=st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True),
)
def test_what_is_shown_as_free_is_what_can_be_booked(resource_type, disabled, leases, passed, ahead):
    """Also where a resource should have been enabled by now and no manager has done it yet."""
    kind, request = KINDS[resource_type]
    with TemporaryDirectory() as folder:
        world = World(new_sqlite(Path(folder) / "blazar.sqlite"), hosts=COUNT)
        for number in range(COUNT):
            world.register_thing(f"microscope-{number}")
        for start, hours in leases:
            world.lease(request(), start=start * HOUR, hours=hours, project="chemistry")
        for each, condition in zip(world.manager.resources.all(kind), disabled, strict=True):
            if condition == NOT_DISABLED:
                continue
            disabling = Disabling("fan", None if condition is None else NOON + condition * HOUR)
            world.manager.resources.change(
                kind, each.external_id, ResourceChange({}, disabled=True, disabling=disabling)
            )
        world.run_to(NOON + passed * HOUR)
        for hours in ahead:
            check(world, resource_type, world.clock.now() + hours * HOUR)
        world.manager.enabler.run_once()
        check(world, resource_type, world.clock.now() + ahead[0] * HOUR)
