# SPDX-License-Identifier: Apache-2.0
"""When is it free, and why not: the answers of a manager, and that they are true."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from blazar.calendar.openings import KindSearch
from blazar.clouds.simulated import of_size
from blazar.enforcement.budget import PeriodCalendar, ResourceHoursFilter
from blazar.enforcement.limits import MaxLeaseDurationFilter, MaxUnitsFilter, StartWindowFilter
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import InvalidInput, NotEnoughResources, NotFound, OutOfTime, UsageDenied
from blazar.model.base.moments import NOW, Duration
from blazar.model.leases.requests import Actor, LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import FLOATING_IP, HOST
from blazar.model.search.availability import AvailabilityQuestion, Change, LimitedBy, StepCode
from blazar.rpc import codec
from tests.statements import counted
from tests.world import NOON, PROJECT, ManualClock, World, WorldMaker, a_host, addresses, instances

HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
CURIE = Actor("curie", PROJECT)
A100 = '["==", "$gpu", "A100"]'


def hours(number: float) -> Duration:
    return Duration(seconds=int(number * 3600))


def ask(world: World, *reservations: ReservationRequest, by: Actor = CURIE, **more: Any):
    question = AvailabilityQuestion(by, reservations, **{"latest": hours(48), **more})
    answer = world.manager.availability.find(question)
    call = "availability.find"
    # Whatever is asked and answered also passes the message bus.
    arguments = codec.encode_arguments(call, {"question": question})
    assert codec.decode_arguments(call, arguments) == {"question": question}
    assert codec.decode_answer(call, codec.encode_answer(call, answer)) == answer
    return answer


def book(world: World, opening, *reservations: ReservationRequest):
    window = opening.window
    request = LeaseRequest("found", "curie", PROJECT, window.start, window.end, reservations=reservations)
    return world.manager.leases.create(request)


@pytest.fixture
def world(make_world: WorldMaker) -> World:
    """Four hosts, two of which have a GPU: one is promised from now on for five hours, one from hour 3 to 8."""
    world = make_world(hosts=2, cleaning_time=timedelta(minutes=30))
    world.register("node-3", gpu="A100")
    world.register("node-4", gpu="A100")
    world.lease(a_host(needs=A100), hours=5, project="others")
    world.lease(a_host(needs=A100), start=3 * HOUR, hours=5, project="others")
    return world


@pytest.fixture
def make_world(engine) -> WorldMaker:
    def make(**more: Any) -> World:
        more.setdefault("hosts", 4)
        return World(engine, state=of_size(6), **more)

    return make


def test_an_opening_can_be_booked_and_nothing_is_free_before(world: World):
    answer = ask(world, a_host(2, needs=A100), duration=hours(4))
    (opening,) = answer.openings
    assert opening.window.start == NOON + 8.5 * HOUR
    assert opening.last_start == NOON + 44 * HOUR
    assert opening.open_until is None
    assert opening.counts == (2,)
    assert (answer.complete, answer.searched_until) == (True, NOON + 48 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(2, needs=A100), start=timedelta(hours=8, minutes=29), hours=4)
    assert len(world.hosts_of(book(world, opening, a_host(2, needs=A100)))) == 2


def test_how_long_an_opening_stays_open_is_exact(world: World):
    opening, second = ask(world, a_host(1, 2, needs=A100), duration=hours(2)).openings
    # Before the lease that begins at 3 there has to be time for cleaning.
    assert (opening.window.start, opening.last_start) == (NOON, NOON + HOUR / 2)
    assert opening.open_until == NOON + 2.5 * HOUR
    assert opening.counts == (1,)
    assert second.window.start == NOON + 5.5 * HOUR
    assert second.counts == (1,)


def test_reasons_say_what_each_part_leaves(world: World):
    needs = f'["and", {A100}, [">=", "$vcpus", "1"]]'
    answer = ask(world, a_host(2, needs=needs), duration=hours(4))
    (reason,) = answer.reasons
    assert [(s.code, s.remaining, s.removed, s.pointer) for s in reason.steps] == [
        (StepCode.REGISTERED, 4, None, None),
        (StepCode.REQUIREMENT, 2, None, "/reservations/0/resource_properties/1"),
        (StepCode.REQUIREMENT, 2, None, "/reservations/0/resource_properties/2"),
        (StepCode.PROMISED, 0, 2, None),
    ]
    assert reason.steps[-1].until == NOON + 8.5 * HOUR
    assert (reason.asked, reason.free) == (2, 0)
    assert reason.message == (
        "4 hosts; 2 with gpu == A100; 2 with vcpus >= 1; 2 booked until 2030-04-01 20:30 UTC; 0 free"
    )


def test_disabled_and_foreign_hosts_are_told_apart(world: World):
    world.manager.resources.change(HOST, "4", ResourceChange({}, disabled=True))
    world.manager.resources.change(HOST, "1", ResourceChange({}, open_to=("others",), sets_projects=True))
    (reason,) = ask(world, a_host(3), duration=hours(1)).reasons
    assert [(s.code, s.remaining) for s in reason.steps] == [
        (StepCode.REGISTERED, 3),
        (StepCode.DISABLED, 2),
        (StepCode.PROMISED, 1),
    ]


def test_alternatives_fit(world: World):
    answer = ask(world, a_host(2, needs=A100), duration=hours(2))
    found = {each.change: each for each in answer.alternatives}
    assert list(found) == [Change.TIME, Change.COUNT, Change.REQUIREMENT]
    assert found[Change.TIME].window == answer.openings[0].window
    assert found[Change.COUNT].counts == ({"min": 1, "max": 1},)
    assert found[Change.REQUIREMENT].drop == "/reservations/0/resource_properties"
    long = ask(world, a_host(1, needs=A100), duration=hours(4))
    shorter = next(each for each in long.alternatives if each.change is Change.DURATION)
    assert shorter.window.end == NOON + 2.5 * HOUR


def test_only_what_alone_excludes_hosts_is_left_out_in_turn(world: World, monkeypatch: pytest.MonkeyPatch):
    placements = []
    placed = KindSearch.place
    monkeypatch.setattr(KindSearch, "place", lambda *given: placements.append(given) or placed(*given))
    parts = ", ".join(f'[">=", "$vcpus", {-number}]' for number in range(300))
    answer = ask(world, a_host(needs=f'["and", {parts}, {A100}]'), duration=hours(4), latest=hours(5))
    (alternative,) = [each for each in answer.alternatives if each.change == "requirement"]
    assert alternative.drop == "/reservations/0/resource_properties/301"
    assert len(placements) < 10


def test_a_window_fits_or_not(world: World):
    start, end = NOON + HOUR, NOON + 2 * HOUR
    yes = ask(world, a_host(3), start=start, end=end)
    assert [o.window.start for o in yes.openings] == [start]
    assert yes.openings[0].last_start == start
    no = ask(world, a_host(4), start=start, end=end)
    assert (no.openings, len(no.reasons)) == ((), 1)
    (time, *_) = no.alternatives
    assert time.window.start == NOON + 8.5 * HOUR


def test_servers_and_addresses_are_searched_together(world: World):
    world.register_addresses(10, 11)
    world.lease(addresses(2), start=2 * HOUR, hours=8)
    wanted = (instances(2), addresses(1))
    first, second = ask(world, *wanted, duration=hours(1)).openings[:2]
    assert (first.window.start, first.last_start) == (NOON, NOON + HOUR / 2)
    assert second.window.start == NOON + 10.5 * HOUR
    assert first.counts == (2, 1)
    book(world, second, *wanted)


def test_a_lease_does_not_stand_in_its_own_way(world: World):
    mine = world.lease(a_host(2), start=HOUR, hours=1, project=PROJECT)
    more = ReservationChange(mine.reservations[0].id, {"min": 3, "max": 3})
    answer = ask(world, lease_id=mine.id, changes=(more,), duration=hours(1), earliest=NOON + HOUR)
    assert answer.openings[0].window.start == NOON + HOUR
    assert answer.openings[0].counts == (3,)
    same = ask(world, lease_id=mine.id, end=NOON + 1.5 * HOUR)
    assert same.openings[0].counts == (2,)


def test_the_other_addresses_of_a_lease_are_a_reason(world: World):
    world.register_addresses(10, 11, 12, 13)
    mine = world.lease(addresses(2, required=[10, 11]), addresses(1, required=[12]), start=HOUR, hours=1)
    more = ReservationChange(mine.reservations[0].id, {"amount": 4})
    reason, _ = ask(world, lease_id=mine.id, changes=(more,)).reasons
    assert reason.steps[-1].code is StepCode.OTHER_RESERVATIONS
    assert (reason.asked, reason.free) == (4, 3)


def test_how_far_a_lease_can_be_extended(world: World):
    mine = world.lease(a_host(1, needs=A100), start=9 * HOUR, hours=1)
    world.lease(a_host(2, needs=A100), start=15 * HOUR, hours=1, project="others")
    extension = ask(world, lease_id=mine.id).extension
    assert (extension.open_until, extension.limited_by) == (NOON + 14.5 * HOUR, LimitedBy.PROMISED)
    world.change(mine, end=NOON + 14.5 * HOUR)
    with pytest.raises(NotEnoughResources):
        world.change(mine, end=NOON + 14.5 * HOUR + timedelta(minutes=1))


def test_a_lease_that_is_longer_than_a_range_can_be_extended(world: World):
    mine = world.lease(a_host(1), start=HOUR, hours=24 * 900)
    ends = mine.window.end
    extension = ask(world, lease_id=mine.id, latest=None).extension
    assert (extension.open_until, extension.limited_by) == (ends + timedelta(days=30), LimitedBy.RANGE)
    (longer,) = ask(world, lease_id=mine.id, end=ends + HOUR, latest=None).openings
    assert longer.window.end == ends + HOUR
    with pytest.raises(InvalidInput, match="366 days") as refused:
        ask(world, lease_id=mine.id, latest=ends + timedelta(days=367))
    assert refused.value.pointer == "/latest"


def test_a_range_that_is_not_named_is_no_longer_than_operators_allow(make_world: WorldMaker):
    world = make_world(settings=Settings(search_range=timedelta(days=2)))
    mine = world.lease(a_host(1), start=HOUR, hours=1)
    assert ask(world, a_host(1), duration=hours(1), latest=None).range.end == NOON + timedelta(days=2)
    assert len(ask(world, a_host(1), start=NOON, end=NOON + HOUR, latest=None).openings) == 1
    assert ask(world, lease_id=mine.id, latest=None).extension.open_until == mine.window.end + timedelta(days=2)
    for more, pointer in (({"end": NOON + 49 * HOUR}, "/end_date"), ({"latest": NOON + 49 * HOUR}, "/latest")):
        with pytest.raises(InvalidInput) as refused:
            ask(world, a_host(1), **{"start": NOON, "end": NOON + HOUR, **more})
        assert refused.value.pointer == pointer


def test_a_lease_in_use_is_extended_as_far_as_its_host_is_free(world: World):
    mine = world.lease(a_host(2, needs='["<", "$id", "3"]'), hours=1)
    world.run()
    world.lease(a_host(1, needs='["==", "$id", "1"]'), start=6 * HOUR, hours=1, project="others")
    extension = ask(world, lease_id=mine.id).extension
    assert (extension.open_until, extension.limited_by) == (NOON + 5.5 * HOUR, LimitedBy.PROMISED)
    refused = ask(world, lease_id=mine.id, end=NOON + 6 * HOUR)
    assert refused.openings == ()
    assert StepCode.IN_USE in [step.code for step in refused.reasons[0].steps]


def test_limits_of_the_project_are_told_with_each_opening(make_world: WorldMaker):
    limited = make_world(
        filters=[
            ResourceHoursFilter({"host": 5}, PeriodCalendar()),
            MaxUnitsFilter(3),
            MaxLeaseDurationFilter(3 * HOUR),
        ]
    )
    (opening,) = ask(limited, a_host(2), duration=hours(2)).openings
    assert opening.refusals == ()
    (opening,) = ask(limited, a_host(4), duration=hours(4)).openings
    hours_left, units, duration = (refusal.message for refusal in opening.refusals)
    assert "host-hours" in hours_left
    assert "max_units" in units
    assert "max_lease_duration" in duration
    mine = limited.lease(a_host(), start=HOUR, hours=1)
    extension = ask(limited, lease_id=mine.id).extension
    assert (extension.open_until, extension.limited_by) == (NOON + 4 * HOUR, LimitedBy.LIMIT)
    assert "max_lease_duration" in extension.refusals[0].message


def test_an_extension_up_to_a_limit_is_exact_to_the_second(make_world: WorldMaker):
    limited = make_world(filters=[MaxLeaseDurationFilter(timedelta(hours=3, seconds=59))])
    mine = limited.lease(a_host(), start=HOUR, hours=1)
    extension = ask(limited, lease_id=mine.id).extension
    last = NOON + timedelta(hours=4, seconds=59)
    assert (extension.open_until, extension.limited_by) == (last, LimitedBy.LIMIT)
    with pytest.raises(UsageDenied):
        limited.change(mine, end=last + SECOND, exact=True)
    assert limited.change(mine, end=last, exact=True).window.end == last
    again = ask(limited, lease_id=mine.id).extension
    assert (again.open_until, again.limited_by) == (last, LimitedBy.LIMIT)
    assert "max_lease_duration" in again.refusals[0].message


def test_limits_are_told_with_a_window_in_which_a_lease_keeps_its_resources(make_world: WorldMaker):
    limited = make_world(filters=[StartWindowFilter(None, 2 * HOUR)])
    mine = limited.lease(a_host(), start=HOUR, hours=4)
    (same,) = ask(limited, lease_id=mine.id, end=NOON + 4 * HOUR).openings
    assert same.refusals == ()
    (moved,) = ask(limited, lease_id=mine.id, start=NOON + 3 * HOUR, end=NOON + 4 * HOUR).openings
    with pytest.raises(UsageDenied) as refused:
        limited.change(mine, start=NOON + 3 * HOUR, end=NOON + 4 * HOUR)
    assert [each.message for each in moved.refusals] == [refused.value.message]


def test_a_search_that_takes_too_long_is_given_up(make_world: WorldMaker, monkeypatch: pytest.MonkeyPatch):
    clock = ManualClock()
    hurried = make_world(clock=clock)
    wanted = (instances(1), instances(2), a_host())
    hurried.lease(a_host(4), hours=1)
    placed = KindSearch.place

    def slowly(*given: Any) -> Any:
        clock.by(seconds=8)
        return placed(*given)

    monkeypatch.setattr(KindSearch, "place", slowly)
    with pytest.raises(OutOfTime, match="longer than 15 seconds") as given_up:
        ask(hurried, *wanted, duration=hours(2))
    assert (given_up.value.status, given_up.value.code) == (503, "manager_unavailable")
    assert given_up.value.retry_after == 5
    # What is refused stays refused, without the reasons that take too long.
    with pytest.raises(NotEnoughResources, match=r"free in that time\.$"):
        hurried.lease(a_host(5), start=2 * HOUR)


def test_statements_do_not_depend_on_what_is_found(world: World):
    def cost(*reservations: ReservationRequest, **more: Any) -> int:
        ask(world, *reservations, duration=hours(1), **more)
        with counted(world.engine) as statements:
            world.manager.availability.find(
                AvailabilityQuestion(CURIE, reservations, duration=hours(1), latest=hours(48), **more)
            )
        return statements.count

    one = cost(a_host())
    for number in range(5):
        world.lease(a_host(4), start=(10 + 2 * number) * HOUR, hours=1, project="others")
    assert cost(a_host(5)) == one == 1
    # The first window is taken: whether others can make room is read as for a booking, whatever is found.
    full = cost(a_host(4), limit=20)
    for number in range(5):
        world.lease(a_host(4), start=(21 + 2 * number) * HOUR, hours=1, project="others")
    assert cost(a_host(4), limit=20) == full == one + 3


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"duration": hours(0)}, "/duration"),
        ({"duration": hours(49)}, "/duration"),
        ({"duration": hours(1), "latest": Duration(days=400)}, "/latest"),
        ({"duration": hours(1), "earliest": NOON - HOUR}, "/earliest"),
        ({"start": NOON - HOUR, "end": NOON + HOUR}, "/start_date"),
        ({"start": NOON + HOUR, "end": NOON}, "/end_date"),
        ({"end": Duration(years=9999)}, "/end_date"),
    ],
)
def test_impossible_times_are_refused(world: World, more: dict[str, datetime | Duration], pointer: str):
    with pytest.raises(InvalidInput) as refused:
        ask(world, a_host(), **more)
    assert refused.value.pointer == pointer


def test_a_refusal_says_why_and_what_would_fit(world: World):
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(a_host(2, needs=A100), hours=3)
    assert refused.value.message == (
        "Not enough hosts available: at least 2 requested, 2 match, 0 of them free in that time. "
        "2 asked for; 4 hosts; 2 with gpu == A100; 2 booked until 2030-04-01 20:30 UTC; 0 free. "
        "It fits from 2030-04-01 20:30 UTC on. "
        "At 2030-04-01 12:00 UTC leases that can have no others hold 1 of 2 hosts, and 2 more are needed."
    )
    data = refused.value.data
    assert data is not None
    assert data["as_of"] == "2030-04-01T12:00:00Z"
    assert data["reasons"][0]["free"] == 0
    assert [each["change"] for each in data["alternatives"]] == ["time", "requirement"]
    assert codec.encode_error(refused.value)["pointer"] == "/reservations/0"


def test_a_refused_change_says_why_and_the_switch_turns_it_off(world: World, make_world: WorldMaker):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), start=HOUR, hours=1)
    with pytest.raises(NotEnoughResources, match="9 asked for; 4 hosts; 2 with id < 3; 2 free"):
        world.resize(mine, min=9, max=9)
    world.manager.leases._refusals._enabled = False
    with pytest.raises(NotEnoughResources) as refused:
        world.resize(mine, min=9, max=9)
    assert refused.value.message.endswith("free in that time.")


def test_a_refused_dry_run_of_a_change_says_why_and_what_would_fit(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), instances(1), start=9 * HOUR, hours=1)
    needs, one = '["<", "$id", "2"]', mine.reservations[0].id
    change = LeaseChange(
        reservations=(ReservationChange(one, {"min": 2, "max": 2, "resource_properties": needs}),), asked_by=CURIE
    )
    told = []
    for dry_run in (True, False):
        with pytest.raises(NotEnoughResources) as refused:
            world.manager.leases.change(mine.id, replace(change, dry_run=dry_run))
        told.append(refused.value)
    dry, real = told
    assert dry.data is not None
    assert (dry.data, dry.message, dry.pointer) == (real.data, real.message, "/reservations/0")
    pointers = [step.get("pointer") for step in dry.data["reasons"][0]["steps"]]
    assert "/reservations/0/resource_properties" in pointers
    count = next(each for each in dry.data["alternatives"] if each["change"] == "count")
    assert count["reservations"][0] == {"id": one, "min": 1, "max": 1}


def test_reasons_of_a_change_point_at_what_the_change_names(world: World):
    mine = world.lease(
        a_host(1, needs=A100), a_host(1, needs='["==", "$id", "1"]'), start=9 * HOUR, hours=1, project=PROJECT
    )
    world.lease(a_host(1, needs='["==", "$id", "2"]'), start=8 * HOUR, hours=3, project="others")
    named = ReservationChange(mine.reservations[1].id, {"min": 2, "max": 2, "resource_properties": '["<", "$id", "3"]'})
    (reason,) = ask(world, lease_id=mine.id, changes=(named,)).reasons
    assert (reason.reservation, reason.pointer) == (1, "/reservations/0")
    assert reason.steps[1].pointer == "/reservations/0/resource_properties"
    world.lease(a_host(2, needs=A100), start=11 * HOUR, hours=1, project="others")
    (reason,) = ask(world, lease_id=mine.id, end=NOON + 12 * HOUR).reasons
    assert (reason.reservation, reason.pointer, {step.pointer for step in reason.steps}) == (0, None, {None})


def test_an_ended_lease_is_asked_about_in_vain(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), hours=1)
    world.run_to(NOON + HOUR)
    for more in ({}, {"end": NOON + 2 * HOUR}, {"duration": hours(1)}, {"start": NOON + 2 * HOUR}):
        with pytest.raises(InvalidInput, match="has ended") as refused:
            ask(world, lease_id=mine.id, **more)
        assert (refused.value.code, refused.value.data) == ("lease_ended", {"status": "TERMINATED"})


def test_a_lease_whose_end_has_passed_is_asked_about_in_vain(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), hours=1)
    world.run()
    world.clock.to(NOON + 1.5 * HOUR)
    for more in ({}, {"end": NOON + 2 * HOUR}):
        with pytest.raises(InvalidInput, match="The lease ended at 2030-04-01 13:00") as refused:
            ask(world, lease_id=mine.id, **more)
        assert refused.value.code == "lease_ended"


def test_ending_a_lease_now_is_answered_as_the_change_would_be(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), hours=2)
    world.run()
    world.clock.by(minutes=5, seconds=7)
    now = NOON + timedelta(minutes=5, seconds=7)
    answer = ask(world, lease_id=mine.id, end=NOW, latest=None)
    (opening,) = answer.openings
    assert (opening.window.start, opening.window.end, opening.counts) == (NOON, now, (1,))
    past = "12:05:06 is in the past; it is 2030-04-01 12:05:07 UTC now"
    with pytest.raises(InvalidInput, match=past) as refused:
        ask(world, lease_id=mine.id, end=now - SECOND)
    assert (refused.value.code, refused.value.pointer) == ("date_in_past", "/end_date")
    assert world.change(mine, end=NOW, exact=True).window.end == now


def test_another_start_alone_keeps_the_end_as_the_change_does(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), start=10 * HOUR, hours=2)
    (opening,) = ask(world, lease_id=mine.id, start=NOON + 9 * HOUR).openings
    changed = world.change(mine, start=NOON + 9 * HOUR)
    assert (opening.window.start, opening.window.end) == (changed.window.start, changed.window.end)


def test_a_lease_that_lacks_a_host_cannot_be_extended(world: World):
    mine = world.lease(a_host(2, needs='["<", "$id", "3"]'), start=HOUR, hours=2)
    world.manager.resources.change(HOST, "1", ResourceChange({}, disabled=True))
    extension = ask(world, lease_id=mine.id).extension
    assert (extension.open_until, extension.limited_by) == (NOON + 3 * HOUR, None)
    # Its own time it keeps, whatever has become of its hosts.
    (shorter,) = ask(world, lease_id=mine.id, end=NOON + 2 * HOUR).openings
    assert (shorter.open_until, shorter.counts) == (NOON + 3 * HOUR, (2,))


def test_servers_for_which_no_room_is_left_cannot_be_extended(world: World):
    mine = world.lease(instances(8, vcpus=16, memory_mb=1024), start=9 * HOUR, hours=2)
    for number in range(1, 5):
        world.manager.resources.change(HOST, str(number), ResourceChange({}, open_to=("others",), sets_projects=True))
    extension = ask(world, lease_id=mine.id).extension
    assert (extension.open_until, extension.limited_by) == (NOON + 11 * HOUR, None)


def test_servers_that_stay_together_are_explained_by_the_host_that_they_use(world: World):
    mine = world.lease(instances(1, vcpus=1, affinity=True), hours=5)
    world.run()
    (held,) = world.store.calendar.of_lease(mine.id)
    host = next(each for each in world.store.resources.catalog(HOST).resources if each.id == held.resource_id)
    needs = f'["==", "$id", "{held.resource_id}"]'
    world.lease(instances(1, vcpus=host.capacity.get("VCPU") - 1, needs=needs), hours=5)
    change = ReservationChange(mine.reservations[0].id, {"amount": 2})
    answer = ask(world, lease_id=mine.id, changes=(change,))
    (reason,) = answer.reasons
    assert (answer.openings, reason.asked, reason.free) == ((), 2, 1)
    assert reason.steps[-1].code is StepCode.AFFINITY
    assert "on the host in use; 1 instance fits" in reason.message
    with pytest.raises(NotEnoughResources, match="2 instances requested, 4 hosts match, 1 instances fit") as refused:
        world.manager.leases.update(mine.id, LeaseChange(reservations=(change,), asked_by=CURIE))
    assert refused.value.data is not None


def test_what_explains_a_refusal_is_a_sentence_of_its_own(world: World):
    world.register_addresses(10, 11)
    world.lease(addresses(1, required=[10]), start=HOUR, hours=2, project="others")
    with pytest.raises(NotEnoughResources, match="or none. 1 asked for; "):
        world.lease(addresses(1, required=[10]), start=HOUR, hours=2)


def test_a_time_that_a_refusal_names_is_one_at_which_it_fits(world: World):
    world.lease(a_host(4), start=9 * HOUR, hours=1 + 8 / 3600)
    with pytest.raises(NotEnoughResources) as refused:
        world.lease(a_host(4), start=9 * HOUR, hours=1)
    assert "booked until 2030-04-01 22:30:08 UTC" in refused.value.message
    assert "It fits from 2030-04-01 22:30:08 UTC on." in refused.value.message
    free = NOON + 10.5 * HOUR + 8 * SECOND
    world.manager.leases.create(LeaseRequest("x", "curie", PROJECT, free, free + HOUR, reservations=(a_host(4),)))


def test_a_change_of_reservations_alone_is_no_extension(world: World):
    mine = world.lease(a_host(1, needs='["<", "$id", "3"]'), start=HOUR, hours=1)
    more = ReservationChange(mine.reservations[0].id, {"min": 7, "max": 7})
    answer = ask(world, lease_id=mine.id, changes=(more,))
    assert (answer.openings, answer.extension) == ((), None)
    assert answer.reasons[0].asked == 7


def test_how_long_a_shorter_lease_could_be(world: World):
    mine = world.lease(a_host(4), start=10 * HOUR, hours=20)
    world.lease(a_host(4), start=31 * HOUR, hours=1, project="others")
    end = NOON + 30 * HOUR
    for asked in (end - HOUR, end):
        (opening,) = ask(world, lease_id=mine.id, end=asked).openings
        assert opening.open_until == NOON + 30.5 * HOUR
    (opening,) = ask(world, lease_id=mine.id, end=end - HOUR, latest=end).openings
    assert opening.open_until is None
    world.change(mine, end=NOON + 30.5 * HOUR)


def test_a_lease_can_move_within_its_time_and_beyond(world: World):
    mine = world.lease(a_host(4), start=10 * HOUR, hours=20)
    world.lease(a_host(4), start=35 * HOUR, hours=1, project="others")
    start, latest = NOON + 10 * HOUR, NOON + 48 * HOUR
    one, two = ask(world, lease_id=mine.id, duration=hours(5), earliest=start, latest=latest).openings
    assert (one.window.start, one.last_start, one.open_until) == (start, NOON + 29.5 * HOUR, NOON + 34.5 * HOUR)
    assert (two.window.start, two.last_start) == (NOON + 36.5 * HOUR, NOON + 43 * HOUR)
    first = ask(world, lease_id=mine.id, duration=hours(5), earliest=start, latest=latest, limit=1)
    assert (first.openings, first.searched_until, first.complete) == ((one,), one.last_start + SECOND, True)


def test_the_search_for_a_change_goes_on_after_what_was_found(world: World):
    mine = world.lease(a_host(4), start=10 * HOUR, hours=20)
    world.lease(a_host(4), start=30.5 * HOUR, hours=1, project="others")
    start = NOON + 10 * HOUR
    first = ask(world, lease_id=mine.id, duration=hours(5), earliest=start, limit=1)
    (opening,) = first.openings
    assert (opening.last_start, opening.open_until) == (NOON + 25 * HOUR, NOON + 30 * HOUR)
    assert (first.searched_until, first.complete) == (NOON + 25 * HOUR + SECOND, True)
    (second,) = ask(world, lease_id=mine.id, duration=hours(5), earliest=first.searched_until).openings
    assert second.window.start == NOON + 32 * HOUR


def test_a_lease_that_lacks_a_host_can_move_within_its_time(world: World):
    mine = world.lease(a_host(4), start=10 * HOUR, hours=20)
    world.manager.resources.change(HOST, "1", ResourceChange({}, disabled=True))
    start = NOON + 10 * HOUR
    for limit in (1, 2):
        answer = ask(world, lease_id=mine.id, duration=hours(5), earliest=start, limit=limit)
        (opening,) = answer.openings
        assert (opening.window.start, opening.last_start) == (start, NOON + 25 * HOUR)
        assert (answer.searched_until, answer.complete) == (start + 48 * HOUR, True)


def test_a_lease_in_use_keeps_its_start(world: World):
    mine = world.lease(a_host(2, needs='["<", "$id", "3"]'), hours=1)
    world.run()
    with pytest.raises(InvalidInput, match="can no longer be changed") as refused:
        ask(world, lease_id=mine.id, start=NOON + HOUR / 2, end=NOON + 2 * HOUR)
    assert refused.value.pointer == "/start_date"
    (opening,) = ask(world, lease_id=mine.id, start=NOON, end=NOON + 2 * HOUR).openings
    assert opening.window.start == NOON
    world.lease(a_host(1, needs='["==", "$id", "1"]'), start=3 * HOUR, hours=1, project="others")
    refused_end = ask(world, lease_id=mine.id, end=NOON + 6 * HOUR)
    assert refused_end.openings == ()
    assert Change.TIME not in [each.change for each in refused_end.alternatives]


def test_a_network_cannot_be_left_out(world: World):
    world.register_addresses(10)
    world.lease(addresses(1), hours=100, project="others")
    answer = ask(world, addresses(1), duration=hours(1))
    assert answer.alternatives == ()
    assert answer.reasons[0].steps[1].pointer == "/reservations/0/network_id"


def test_a_network_without_addresses_for_the_project_does_not_exist(world: World):
    (address,) = world.register_addresses(10)
    assert ask(world, addresses(1), duration=hours(1)).openings
    restricted = ResourceChange({}, open_to=("others",), sets_projects=True)
    world.manager.resources.change(FLOATING_IP, address.external_id, restricted)
    for network in ("public", "nope"):
        with pytest.raises(NotFound, match=f'network_id: there is no "{network}"') as unknown:
            ask(world, a_host(), addresses(1, network=network), duration=hours(1))
        assert unknown.value.pointer == "/reservations/1/network_id"


def test_nothing_is_found_beyond_the_last_year(world: World):
    late = datetime(8999, 12, 31, 23, tzinfo=NOON.tzinfo)
    for asked in ({"start": late, "end": hours(48)}, {"earliest": late, "duration": hours(48)}):
        with pytest.raises(InvalidInput, match="beyond the year 8999") as refused:
            ask(world, a_host(), **asked, latest=None)
        assert refused.value.code == "invalid_window"
    answer = ask(world, a_host(), earliest=late - HOUR, duration=hours(1), latest=None)
    (opening,) = answer.openings
    assert opening.last_start + HOUR == answer.range.end == datetime(8999, 12, 31, 23, 59, 59, tzinfo=NOON.tzinfo)
