# SPDX-License-Identifier: Apache-2.0
"""A plan serves each request as early as all instants, tried one by one, allow beside those before it."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from blazar.calendar.queue.overlay import FOREVER, count_totals
from blazar.calendar.queue.plan import ImmediateAnswer, answer_now, order_waiters, plan_queue
from blazar.calendar.queue.usage import ProjectUsage
from blazar.calendar.queue.values import Grant, GrantPart, Inventory, PlanBounds, Promise, Waiter
from blazar.model.base.amounts import Amounts
from blazar.model.calendar.demand import Affinity, Demand, TraitRequirements
from blazar.model.resources.resource import HOST
from tests.builders import a_host

CASES = int(os.environ.get("BLAZAR_CASES", "60"))
NOW = 1000
END = 1300
"""After all that the cases can promise."""
ANY = TraitRequirements()
FAST = TraitRequirements(frozenset({"FAST"}))
OPEN = PlanBounds(promise_age=20, promises=2, depth=5)


@dataclass(frozen=True)
class Case:
    hosts: tuple
    uses: dict
    cleaning: int
    promised: tuple[Promise, ...]
    waiting: tuple[Waiter, ...]
    usage: ProjectUsage
    limits: PlanBounds

    @property
    def calendar(self):
        return {HOST: Inventory(self.hosts, self.uses, self.cleaning)}

    @property
    def is_cautious(self):
        """Whether uses of a shared host that follow one another count together while the host is cleaned.

        The calendar counts each with the cleaning before it: it may find less room than there is, and never more.
        """
        return self.cleaning > 0 and any(demand.per_instance for each in self.waiting for demand in each.demands)

    def plan(self, **changes):
        totals = count_totals(self.calendar)
        limits = replace(self.limits, **changes)
        return plan_queue(self.calendar, self.waiting, self.promised, self.usage, totals, NOW, limits)

    @property
    def order(self):
        return order_waiters(self.waiting, self.usage, count_totals(self.calendar), NOW, self.limits)


class Grid:
    """How much of each host is used at each instant."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.used = {host.id: defaultdict(int) for host in case.hosts}
        for id_, uses in case.uses.items():
            for start, end, count, amounts in uses:
                self._add(id_, start, end, count, amounts, 1)
        for promise in case.promised:
            self.add(promise.grant)

    def add(self, grant: Grant, sign: int = 1) -> None:
        for part in grant.parts:
            end = grant.end + self.case.cleaning
            self._add(part.resource_id, grant.start, end, part.count, part.per_instance, sign)

    def _add(self, id_, start, end, count, amounts, sign):
        host = next(host for host in self.case.hosts if host.id == id_)
        amount = host.capacity.get("VCPU") if amounts is None else count * amounts.get("VCPU")
        for at in range(start, end):
            self.used[id_][at] += sign * amount

    def is_within_capacity(self) -> bool:
        return all(max(self.used[h.id].values(), default=0) <= h.capacity.get("VCPU") for h in self.case.hosts)

    def fits(self, demand: Demand, start: int, end: int) -> int:
        """Return how many instances of a demand fit throughout a window."""
        found = []
        for host in self.case.hosts:
            if not demand.traits.met_by(host.traits) or not host.reservable:
                continue
            peak = max(self.used[host.id][at] for at in range(start, end + self.case.cleaning))
            if demand.whole:
                found.append(int(peak == 0))
            else:
                free = (host.capacity.get("VCPU") - peak) // demand.per_instance.get("VCPU")
                found.append(min(free, 1) if demand.affinity is Affinity.APART else free)
        return max(found, default=0) if demand.affinity is Affinity.TOGETHER else sum(found)

    def best(self, waiter: Waiter, first: int, last: int) -> tuple[int, int, int] | None:
        """Return start, count and end: as early as possible, then as many, then for as long."""
        (demand,) = waiter.demands
        for start in range(first, min(last, END) + 1):
            count = min(self.fits(demand, start, start + waiter.shortest), demand.max_count)
            if count >= demand.min_count:
                ends = range(start + waiter.shortest, start + waiter.length + 1)
                return start, count, max(end for end in ends if self.fits(demand, start, end) >= count)
        return None


@st.composite
def a_waiter(draw, number: int, *, shared: bool) -> Waiter:
    least = draw(st.integers(1, 3))
    size = draw(st.sampled_from([None, 1, 2])) if shared else None
    affinity = Affinity.ANY if size is None else draw(st.sampled_from(list(Affinity)))
    demand = Demand(
        HOST,
        least,
        # No type asks for a range of instances that are all on one resource: placement takes the first that has room.
        least if affinity is Affinity.TOGETHER else least + draw(st.sampled_from([0, 0, 1, 2])),
        per_instance=None if size is None else Amounts.of({"VCPU": size}),
        affinity=affinity,
        traits=draw(st.sampled_from([TraitRequirements(), TraitRequirements(), FAST])),
    )
    length = draw(st.integers(1, 8))
    earliest = draw(st.sampled_from([0, 0, NOW + 3]))
    return Waiter(
        f"l{number}",
        draw(st.sampled_from("pqr")),
        (demand,),
        length,
        queued_at=NOW - draw(st.integers(0, 30)),
        wait_until=NOW + draw(st.sampled_from([6, 15, 200])),
        earliest=earliest,
        latest=max(earliest, NOW + draw(st.sampled_from([0, 10, 200, 200]))),
        at_least=draw(st.integers(1, length)),
        notice=draw(st.sampled_from([0, 0, 2, 5])),
    )


@st.composite
def cases(draw) -> Case:
    shared = draw(st.booleans())
    hosts = tuple(
        replace(a_host(n, vcpus=draw(st.integers(1, 4))), traits=frozenset(draw(st.sampled_from([(), ("FAST",)]))))
        for n in range(1, draw(st.integers(1, 4)) + 1)
    )
    cleaning = draw(st.sampled_from([0, 0, 2]))
    case = Case(hosts, {}, cleaning, (), (), ProjectUsage({"p": draw(st.floats(0, 50))}), OPEN)
    grid = Grid(case)
    uses, promised = defaultdict(list), []
    for _ in range(draw(st.integers(0, 8))):
        host = draw(st.sampled_from(hosts))
        start = NOW + draw(st.integers(-3, 12))
        end = start + draw(st.integers(1, 9)) + cleaning
        amounts = Amounts.of({"VCPU": 1}) if shared and draw(st.booleans()) else None
        taken = 1 if amounts else host.capacity.get("VCPU")
        if max(grid.used[host.id][at] for at in range(start, end)) + taken <= host.capacity.get("VCPU"):
            uses[host.id].append((start, end, 1, amounts))
            grid = Grid(replace(case, uses=uses))
    for number in range(draw(st.integers(0, 3))):
        waiter = draw(a_waiter(90 + number, shared=shared))
        first = max(NOW, waiter.earliest) + draw(st.integers(0, 12))
        best = grid.best(waiter, first, END)
        if best is None or not waiter.demands[0].whole:
            continue
        start, count, end = best
        ids = [
            h.id
            for h in hosts
            if waiter.demands[0].traits.met_by(h.traits)
            and not any(grid.used[h.id][t] for t in range(start, end + cleaning))
        ]
        grant = Grant(waiter.lease_id, start, end, tuple(GrantPart(0, HOST, id_) for id_ in ids[:count]))
        grid.add(grant)
        promised.append(Promise(waiter, grant))
    waiting = tuple(draw(a_waiter(number, shared=shared)) for number in range(draw(st.integers(0, 7))))
    return replace(case, uses=dict(uses), promised=tuple(promised), waiting=waiting)


def placed(done):
    return {grant.lease_id for grant in done.placed}


def granted(done):
    return {grant.lease_id: grant for grant in (*done.start_now, *done.promise)}


def is_no_better(given: tuple[int, int, int], best: tuple[int, int, int] | None) -> bool:
    """Tell whether a start, a count and an end are possible, and no better than the best."""
    return best is not None and (given[0] > best[0] or (given[0] == best[0] and given[1:] <= best[1:]))


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_each_gets_the_best_that_those_before_it_leave(case):
    done = case.plan(promises=99, promises_per_project=99)
    grid = Grid(case)
    assert grid.is_within_capacity()
    by_id = {promise.waiter.lease_id: promise for promise in case.promised}
    for grant in done.advance:
        promise = by_id[grant.lease_id]
        first = max(NOW + promise.waiter.notice, promise.waiter.earliest)
        assert first <= grant.start < promise.grant.start, "a promise moves to an earlier start, with notice"
        assert grant.end - grant.start == promise.grant.end - promise.grant.start
        assert grant.count(0) >= promise.grant.count(0)
    for promise in sorted(case.promised, key=lambda p: (p.grant.start, p.waiter.lease_id)):
        moved = {grant.lease_id: grant for grant in done.advance}.get(promise.waiter.lease_id)
        grid.add(promise.grant, -1)
        (demand,) = promise.waiter.demands
        least = replace(
            demand, min_count=promise.grant.count(0), max_count=max(demand.max_count, promise.grant.count(0))
        )
        length = promise.grant.end - promise.grant.start
        kept = replace(promise.waiter, demands=(least,), length=length, at_least=None)
        first = max(NOW + kept.notice, kept.earliest)
        best = grid.best(kept, first, promise.grant.start - 1)
        given = None if moved is None else (moved.start, moved.count(0), moved.end)
        assert given == best or (case.is_cautious and (given is None or is_no_better(given, best)))
        grid.add(moved or promise.grant)
        assert grid.is_within_capacity()
    given_to = granted(done)
    for waiter in case.order:
        if waiter.lease_id not in placed(done):
            continue
        grant = given_to[waiter.lease_id]
        best = grid.best(waiter, max(NOW, waiter.earliest), waiter.last_start)
        given = (grant.start, grant.count(0), grant.end)
        assert given == best or (case.is_cautious and is_no_better(given, best))
        grid.add(grant)
        assert grid.is_within_capacity(), "nothing is promised twice at any instant"


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_who_is_not_placed_does_not_fit_in_its_time_or_is_too_far_behind(case):
    done = case.plan(promises=99, promises_per_project=99)
    grid = Grid(case)
    for promise in case.promised:
        grid.add(promise.grant, -1)
    moved = {grant.lease_id: grant for grant in done.advance}
    for promise in case.promised:
        grid.add(moved.get(promise.waiter.lease_id, promise.grant))
    estimates = {estimate.lease_id: estimate for estimate in done.estimates}
    blocked = {each.lease_id for each in done.blocked}
    for position, waiter in enumerate(case.order, 1):
        first = max(NOW, waiter.earliest)
        if waiter.lease_id in placed(done):
            grid.add(granted(done)[waiter.lease_id])
        elif waiter.lease_id in blocked:
            assert case.is_cautious or grid.best(waiter, first, END) is None
        elif estimates[waiter.lease_id].rough:
            assert len(done.placed) >= case.limits.depth
            assert estimates[waiter.lease_id].position == position
        else:
            estimate = estimates[waiter.lease_id]
            assert not estimate.in_time
            best = grid.best(waiter, first, END)
            assert case.is_cautious or grid.best(waiter, first, waiter.last_start) is None
            assert best[0] == estimate.start or (case.is_cautious and best[0] < estimate.start)


@settings(max_examples=CASES, deadline=None)
@given(cases(), st.randoms())
def test_the_same_input_gives_the_same_plan_in_whatever_order_it_comes(case, random):
    done = case.plan()
    waiting, promised = list(case.waiting), list(case.promised)
    random.shuffle(waiting)
    random.shuffle(promised)
    assert replace(case, waiting=tuple(waiting), promised=tuple(promised)).plan() == done


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_what_one_search_says_about_larger_ones_does_not_change_the_plan(case):
    assert case.plan(skips=True) == case.plan(skips=False)


@settings(max_examples=CASES, deadline=None)
@given(cases())
def test_each_request_is_told_one_thing_and_promises_are_bounded(case):
    done = case.plan()
    told = [each.lease_id for each in (*done.start_now, *done.promise, *done.estimates, *done.blocked)]
    assert sorted(told) == sorted(waiter.lease_id for waiter in case.waiting)
    by_id = {waiter.lease_id: waiter for waiter in case.waiting}
    young = [g for g in done.promise if NOW - by_id[g.lease_id].queued_at < case.limits.promise_age]
    later = [grant for grant in young if grant.start > by_id[grant.lease_id].earliest]
    before = [promise for promise in case.promised if promise.grant.start > promise.waiter.earliest]
    assert not later or len(later) + len(before) <= case.limits.promises
    assert all(grant.start == NOW for grant in done.start_now)
    assert all(grant.start > NOW for grant in done.promise)
    for estimate in done.estimates:
        old = NOW - by_id[estimate.lease_id].queued_at >= case.limits.promise_age
        assert not (old and estimate.in_time and not estimate.rough), "in its turn, an old request is promised"
    ids = [grant.lease_id for grant in done.placed]
    assert ids == [waiter.lease_id for waiter in case.order if waiter.lease_id in ids]


@settings(max_examples=CASES, deadline=None)
@given(cases(), a_waiter(50, shared=False))
def test_a_direct_booking_delays_nobody(case, asked):
    """It may be booked only where the plan with it, at the end of the list, is the plan without it."""
    totals = count_totals(case.calendar)
    limits = replace(case.limits, depth=99, promises=99, promises_per_project=99)
    answer = answer_now(case.calendar, case.waiting, case.promised, case.usage, totals, NOW, limits, asked)
    without = plan_queue(case.calendar, case.waiting, case.promised, case.usage, totals, NOW, limits)
    wanted = {host.id for host in case.hosts if asked.demands[0].traits.met_by(host.traits)}
    before = [
        w for w in case.waiting if any(w.demands[0].traits.met_by(h.traits) for h in case.hosts if h.id in wanted)
    ]
    grid = Grid(case)
    if before:
        for grant in without.advance:
            # Until a promise has been moved, it is where it was, too.
            grid.add(grant)
        for grant in granted(without).values():
            grid.add(grant)
    best = grid.best(asked, max(NOW, asked.earliest), asked.last_start)
    if answer.grant is None:
        assert best is None
        vain = {each.lease_id for each in without.blocked}
        vain |= {each.lease_id for each in without.estimates if each.start is None or not each.in_time}
        assert answer.before == sum(w.lease_id not in vain for w in before)
    else:
        assert (answer.grant.start, answer.grant.count(0), answer.grant.end) == best


def test_a_direct_booking_that_begins_late_is_not_measured_against_the_list():
    asked = waits("direct", earliest=NOW + 500, latest=NOW + 500)
    case = Case((a_host(1),), {}, 0, (), (waits("first", earliest=NOW + 495, length=10),), ProjectUsage(), OPEN)
    arguments = (case.calendar, case.waiting, (), ProjectUsage(), count_totals(case.calendar), NOW)
    assert answer_now(*arguments, PlanBounds(protect=1000), asked) == ImmediateAnswer(None, 1, NOW + 505, awaited=True)
    assert answer_now(*arguments, PlanBounds(protect=100), asked).grant is not None
    assert answer_now(*arguments, PlanBounds(depth=0), asked) == ImmediateAnswer(None, 1, awaited=True)


def test_who_will_have_no_turn_is_not_before_anybody():
    asked = waits("direct", earliest=NOW, latest=NOW, length=10)
    vain = waits("vain", count=2), waits("late", length=10, earliest=NOW, latest=NOW + 1)
    case = Case((a_host(1),), {1: [(NOW, NOW + 50, 1, None)]}, 0, (), vain, ProjectUsage(), OPEN)
    arguments = (case.calendar, case.waiting, (), ProjectUsage(), count_totals(case.calendar), NOW, PlanBounds())
    assert answer_now(*arguments, asked).before == 0


def waits(name: str, *, project="p", count=1, length=5, traits=ANY, **others) -> Waiter:
    return Waiter(name, project, (Demand(HOST, count, count, traits=traits),), length, NOW - 1, **others)


def planned(waiting, *, hosts=2, uses=None, limits=OPEN, fast=0):
    traits = [frozenset({"FAST"} if n < fast else ()) for n in range(hosts)]
    inventory = tuple(replace(a_host(n), traits=traits[n]) for n in range(hosts))
    case = Case(inventory, uses or {}, 0, (), tuple(waiting), ProjectUsage(), limits)
    return case.plan()


def test_one_that_enforcement_refuses_does_not_hold_up_the_line():
    limits = replace(OPEN, denied={"a": "the budget is used up"})
    done = planned([waits("a", count=2), waits("b", count=2)], limits=limits)
    assert [(each.lease_id, each.reason) for each in done.blocked] == [("a", "the budget is used up")]
    assert [grant.lease_id for grant in done.start_now] == ["b"]


def test_what_a_project_gets_in_the_same_plan_counts_against_its_limit():
    limits = replace(OPEN, denies=lambda waiter, grant, others: "one lease at a time" if others else None)
    done = planned([waits("a"), waits("b"), waits("c", project="q")], limits=limits)
    assert [grant.lease_id for grant in done.start_now] == ["a", "c"]
    assert [each.lease_id for each in done.blocked] == ["b"]


def test_a_request_that_only_hosts_promised_for_ever_fit_is_told_so():
    for_ever = {0: [(NOW - 5, FOREVER + 364 * 86400, 1, None)]}
    done = planned([waits("a", count=2), waits("b", count=3), waits("c")], uses=for_ever)
    assert [(each.lease_id, each.reason[:40]) for each in done.blocked] == [
        ("a", "what matches is too small, or promised w"),
        ("b", "at least 3 requested, and only 2 of the "),
    ]
    assert [grant.lease_id for grant in done.start_now] == ["c"]


def test_a_request_deep_in_the_list_starts_if_nobody_before_it_wants_its_resources():
    far = [waits(f"w{n:05}", length=9, traits=TraitRequirements(frozenset(), frozenset({"FAST"}))) for n in range(3000)]
    done = planned([*far, waits("x", traits=FAST), waits("y"), waits("z", traits=FAST)], hosts=3, fast=1)
    assert {grant.lease_id for grant in done.start_now} == {"w00000", "w00001", "x"}
    assert len(done.placed) == OPEN.depth + 1
    assert [e.lease_id for e in done.estimates if e.lease_id in "yz"] == ["y", "z"]


def test_hopeless_ones_do_not_use_up_the_depth():
    busy = {0: [(NOW - 5, NOW + 50, 1, None)], 1: [(NOW - 5, NOW + 50, 1, None)]}
    hopeless = [waits(f"a{n}", wait_until=NOW + 10) for n in range(20)]
    done = planned([*hopeless, waits("b")], uses=busy)
    assert [grant.lease_id for grant in done.promise] == ["b"]
    assert {(each.in_time, each.start) for each in done.estimates} == {(False, NOW + 50)}


def test_those_behind_the_depth_are_told_a_guess_from_the_rate_of_grants():
    limits = replace(OPEN, depth=1, grants_per_day=24.0)
    done = planned([waits("a"), waits("b"), waits("c", wait_until=NOW + 3600)], limits=limits)
    guesses = [(e.lease_id, e.position, e.start, e.rough, e.in_time) for e in done.estimates]
    assert guesses == [("b", 2, NOW + 7200, True, True), ("c", 3, NOW + 10800, True, False)]


@pytest.mark.parametrize(
    "wrong", [{"length": 0}, {"at_least": 9}, {"at_least": 0}, {"earliest": 9, "latest": 8}], ids=str
)
def test_a_request_that_makes_no_sense_cannot_be_made(wrong):
    with pytest.raises(ValueError, match="possible|before"):
        waits("a", **wrong)
