# SPDX-License-Identifier: Apache-2.0
"""A plan of a series never promises more than there is, and leaves out only what does not fit."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.openings import Budget, KindSearch
from blazar.calendar.placement import Strategy, place
from blazar.calendar.series import SeriesPlan, plan_series
from blazar.calendar.timeline import Timeline, TimelineTerms, epoch, sort_uses
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotEnoughResources, OutOfTime
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.resources.requirements import Anything, Comparison, matches
from blazar.model.resources.resource import HOST, Resource
from blazar.model.series.checks import Fit
from blazar.model.series.recurrence import LocalEnd, Occurrence, Recurrence
from blazar.model.series.rule_text import parse_rule
from tests.builders import NOON, a_host

CASES = int(os.environ.get("BLAZAR_CASES", "100"))
ZERO = epoch(NOON)
RANGE = 48


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(ZERO + seconds, UTC)


@dataclass(frozen=True)
class Promise:
    """A use of a host from ``start`` to ``end``, in seconds after noon; None as amounts is all of it."""

    host: int
    start: int
    end: int
    count: int = 1
    per_instance: Amounts | None = None


@dataclass(frozen=True)
class Case:
    hosts: tuple[Resource, ...]
    promises: tuple[Promise, ...]
    demands: tuple[Demand, ...]
    spans: tuple[tuple[int, int], ...]
    cleaning: int = 0
    fit: Fit = Fit.AS_MANY

    @property
    def occurrences(self) -> list[Occurrence]:
        return [Occurrence(at(start).replace(tzinfo=None), at(start), at(end)) for start, end in self.spans]

    @property
    def kind(self) -> KindSearch:
        uses = defaultdict(list)
        for p in self.promises:
            uses[p.host].append((ZERO + p.start, ZERO + p.end + self.cleaning, p.count, p.per_instance))
        without_amounts = all(demand.whole for demand in self.demands)
        timeline = Timeline(sort_uses(uses), TimelineTerms(ZERO, self.cleaning, without_amounts))
        return KindSearch(self.demands, timeline, self.hosts, self.find, Budget(1000))

    def find(self, requirement):
        return [host for host in self.hosts if matches(requirement, host.properties)]

    def plan(self, budget: int = 1000) -> SeriesPlan:
        return plan_series(self.occurrences, [self.kind], self.fit, Budget(budget), latest=ZERO + RANGE)

    def placed(self, plan: SeriesPlan) -> list[Promise]:
        return [promise for each in plan.occurrences for promise in self.promised(each)]

    def promised(self, planned) -> list[Promise]:
        start, end = (int((each - NOON).total_seconds()) for each in (planned.occurrence.start, planned.occurrence.end))
        return [
            Promise(each.resource_id, start, end, each.count, demand.per_instance)
            for placement in planned.placements
            for demand, assignments in zip(self.demands, placement.assignments, strict=True)
            for each in assignments
        ]

    def fits(self, promises: Iterable[Promise], start: int, end: int) -> bool:
        """Return whether a booking of a window beside these promises succeeds."""
        cleaning = timedelta(seconds=self.cleaning)
        taken = [
            Allocation(
                HOST, p.host, "l", "r", Window(at(p.start) - cleaning, at(p.end) + cleaning), p.count, p.per_instance
            )
            for p in promises
        ]
        window = Window(at(start), at(end))
        occupancy = Occupancy.of_allocations(window, [a for a in taken if a.window.overlaps(window)])
        try:
            place(self.demands, Snapshot(self.hosts, occupancy), strategy=Strategy.PACK, matching=self.find)
        except NotEnoughResources:
            return False
        return True


def exceeded(hosts: Iterable[Resource], promises: Iterable[Promise], cleaning: int) -> list[tuple[int, int]]:
    """Return the hosts and the seconds at which more is promised than there is, with the cleaning after each use."""
    promises = list(promises)
    found = []
    for host in hosts:
        for second_ in range(RANGE):
            now = [p for p in promises if p.host == host.id and p.start <= second_ < p.end + cleaning]
            whole = [p for p in now if p.per_instance is None]
            vcpus = sum(p.count * p.per_instance.get("VCPU") for p in now if p.per_instance is not None)
            if len(whole) > 1 or (whole and vcpus) or vcpus > host.capacity.get("VCPU"):
                found.append((host.id, second_))
    return found


@st.composite
def cases(draw) -> Case:
    hosts = tuple(a_host(n + 1, vcpus=draw(st.integers(1, 4)), zone=draw(st.sampled_from("ab"))) for n in range(4))
    cleaning = draw(st.integers(0, 2))
    sizes = st.none() | st.integers(1, 3).map(lambda n: Amounts.of({"VCPU": n}))
    promises: list[Promise] = []
    for _ in range(draw(st.integers(0, 16))):
        start = draw(st.integers(0, RANGE - 4))
        size = draw(sizes)
        count = 1 if size is None else draw(st.integers(1, 2))
        more = Promise(draw(st.integers(1, 4)), start, start + draw(st.integers(1, 9)), count, size)
        if not exceeded(hosts, [*promises, more], cleaning):
            promises.append(more)
    demands = []
    for _ in range(draw(st.integers(1, 2))):
        least = draw(st.integers(1, 3))
        zones = st.sampled_from([Anything(), Comparison("==", "availability_zone", "a")])
        size = draw(sizes)
        affinity = Affinity.ANY if size is None else draw(st.sampled_from(Affinity))
        demands.append(
            Demand(HOST, least, least + draw(st.integers(0, 1)), draw(zones), per_instance=size, affinity=affinity)
        )
    spans, begin = [], draw(st.integers(0, 4))
    for _ in range(draw(st.integers(1, 8))):
        end = begin + draw(st.integers(1, 5))
        if end <= RANGE - cleaning:
            spans.append((begin, end))
        begin = end + draw(st.integers(0, 4))
    fit = draw(st.sampled_from(Fit))
    return Case(hosts, tuple(promises), tuple(demands), tuple(spans), cleaning, fit)


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_no_host_is_promised_beyond_its_capacity_at_any_instant(case):
    everything = [*case.promises, *case.placed(case.plan())]
    assert exceeded(case.hosts, everything, case.cleaning) == []


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_what_is_left_out_does_not_fit_and_the_nearest_opening_does(case):
    plan = case.plan()
    placed = list(case.promises)
    for each, span in zip(plan.occurrences, case.spans, strict=True):
        assert case.fits(placed, *span) == each.fits
        mine = case.promised(each)
        for demand in case.demands:
            assert not each.fits or sum(p.count for p in mine) >= demand.min_count
        placed += mine
    unfit = [number for number, each in enumerate(plan.occurrences) if not each.fits]
    if not unfit:
        return
    number = unfit[0]
    start, end = case.spans[number]
    before = case.spans[number - 1][1] if number else 0
    after = case.spans[number + 1][0] if number + 1 < len(case.spans) else RANGE
    starts = [s for s in range(before, after - (end - start) + 1) if case.fits(placed, s, s + end - start)]
    nearest = min(starts, key=lambda s: (abs(s - start), s), default=None)
    wanted = None if nearest is None else Window(at(nearest), at(nearest + end - start))
    assert plan.occurrences[number].opening == wanted


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_openings_fit_together_beside_what_is_placed(case):
    plan = case.plan()
    offered = [each.opening for each in plan.occurrences if each.opening is not None]
    for each in offered:
        assert all(not each.overlaps(w.occurrence.window) for w in plan.occurrences if w.fits)
    for second_ in range(RANGE):
        used = 0
        for p in [*case.promises, *case.placed(plan)]:
            if p.start <= second_ < p.end:
                size = case.hosts[p.host - 1].capacity if p.per_instance is None else p.per_instance
                used += p.count * size.get("VCPU")
        shared = [d for d in case.demands if d.per_instance is not None]
        asked = sum(d.min_count * d.per_instance.get("VCPU") for d in shared)
        used += asked * sum(w.contains(at(second_)) for w in offered)
        assert used <= sum(host.capacity.get("VCPU") for host in case.hosts)


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_a_series_is_booked_as_a_whole_or_as_far_as_it_fits(case):
    plan = case.plan()
    fitting = tuple(each for each in plan.occurrences if each.fits)
    whole = len(fitting) == len(plan.occurrences)
    assert plan.to_book == (() if case.fit is Fit.ALL and not whole else fitting)


@settings(max_examples=CASES, deadline=None)
@given(cases(), st.data())
def test_a_part_of_a_timeline_has_the_occupancy_of_the_whole(case, data):
    start = data.draw(st.integers(0, RANGE - 2))
    end = data.draw(st.integers(start + 1, RANGE - 1))
    whole = case.kind.timeline
    part = whole.narrow(ZERO + start, ZERO + end)
    first = data.draw(st.integers(start, end - 1))
    window = ZERO + first, ZERO + data.draw(st.integers(first + 1, end))
    one, other = whole.occupancy(*window), part.occupancy(*window)
    assert (one.taken, dict(one.peaks)) == (other.taken, dict(other.peaks))
    # The room beside a window is that of resources that can be had in it.
    left = [host.id for host in case.hosts if host.id not in one.taken]
    assert [one.room.get(id_) for id_ in left] == [other.room.get(id_) for id_ in left]


ONE_HOST = (a_host(1, vcpus=2),)
WHOLE = (Demand(HOST, 1, 1),)


def test_a_plan_does_not_forget_what_it_has_just_placed():
    # Not even if occurrences overlap, which a series does not.
    case = Case(ONE_HOST, (), WHOLE, ((0, 10), (5, 15), (10, 20)))
    assert [each.fits for each in case.plan().occurrences] == [True, False, True]


def test_two_occurrences_do_not_get_the_same_opening():
    # Both meet a use of the host; between them is time for one.
    case = Case(ONE_HOST, (Promise(1, 0, 10), Promise(1, 16, 30)), WHOLE, ((6, 10), (16, 20)))
    first, second_ = case.plan().occurrences
    assert first.opening == Window(at(10), at(14))
    assert second_.opening == Window(at(30), at(34))


def test_what_does_not_fit_has_the_reason_of_a_booking():
    case = Case(ONE_HOST, (Promise(1, 3, 5),), WHOLE, ((0, 3), (4, 8)))
    fits, unfit = case.plan().occurrences
    assert fits.reason is None
    assert unfit.reason is not None
    assert "at least 1 requested, 1 match, 0 of them free in that time" in unfit.reason


def test_openings_are_looked_for_as_long_as_the_budget_lasts():
    case = Case(ONE_HOST, (Promise(1, 3, 5),), WHOLE, ((4, 8),))
    assert case.plan(budget=0).occurrences[0].opening is None
    assert case.plan().occurrences[0].opening == Window(at(5), at(9))


def test_an_occurrence_without_time_or_in_the_past_is_left_out():
    recurrence = Recurrence(
        datetime(2030, 3, 30, 2, 30), "Europe/Paris", parse_rule("FREQ=DAILY;COUNT=4"), LocalEnd(datetime.min.time(), 1)
    )
    short = Recurrence(recurrence.start, recurrence.zone, recurrence.rule, LocalEnd(datetime(1, 1, 1, 3).time()))
    now = datetime(2030, 3, 30, 12, tzinfo=UTC)
    found = short.occurrences(Window(now - timedelta(days=1), now + timedelta(days=9)))
    kind = KindSearch(WHOLE, Timeline({}, TimelineTerms(epoch(now))), ONE_HOST, lambda _: ONE_HOST, Budget(9))
    plan = plan_series(found, [kind], Fit.ALL, Budget(9), latest=epoch(now) + 9 * 86400)
    past, skipped, *others = plan.occurrences
    assert past.reason == "its start, 2030-03-30 01:30 UTC, has passed"
    assert skipped.reason is not None
    assert "the clocks of its zone change on that day" in skipped.reason
    assert all(each.fits for each in others)
    assert plan.to_book == ()


def test_a_search_that_is_given_up_or_makes_no_sense_ends_with_its_error():
    def late() -> None:
        raise OutOfTime("too late")

    case = Case(ONE_HOST, (), WHOLE, ((0, 3),))
    with pytest.raises(OutOfTime):
        plan_series(case.occurrences, [case.kind], Fit.ALL, Budget(9, check=late), latest=ZERO + RANGE)
    nobody = Case(ONE_HOST, (), (Demand(HOST, 1, 1, required=frozenset({"node-9"})),), ((0, 3),))
    with pytest.raises(InvalidInput, match="node-9: no such host"):
        nobody.plan()
    with pytest.raises(ValueError, match="after the calendar that was read"):
        plan_series(case.occurrences, [case.kind], Fit.ALL, Budget(9), latest=ZERO + 2)


@pytest.mark.slow
def test_a_long_series_on_many_hosts_is_planned_in_bounded_time():
    hosts = tuple(a_host(n) for n in range(1, 201))
    day = 86400
    uses = defaultdict(list)
    for number in range(0, 400, 40):
        for host in hosts:
            start = ZERO + day * number + 3600 * (host.id % 24)
            uses[host.id].append((start, start + 7200, 1, None))
    first = at(0).replace(tzinfo=None)
    recurrence = Recurrence(first, "UTC", parse_rule("FREQ=DAILY;COUNT=400"), timedelta(hours=8))
    found = recurrence.occurrences(Window(at(0), at(400 * day)))
    kind = KindSearch(
        (Demand(HOST, 20, 20),),
        Timeline(sort_uses(uses), TimelineTerms(ZERO, without_amounts=True)),
        hosts,
        lambda _: hosts,
        Budget(9),
    )
    begun = time.perf_counter()
    plan = plan_series(found, [kind], Fit.ALL, Budget(9), latest=ZERO + 401 * day)
    assert len(plan.to_book) == 400
    # Some seconds.
    assert time.perf_counter() - begun < 60
