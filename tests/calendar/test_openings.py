# SPDX-License-Identifier: Apache-2.0
"""Openings are true: every start and every end is tried one by one, and booking decides."""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.openings import Budget, KindSearch, search_openings
from blazar.calendar.placement import Strategy, place
from blazar.calendar.timeline import OutsideUses, Timeline, TimelineTerms, epoch, sort_uses
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.demand import Affinity, Demand, TraitRequirements
from blazar.model.calendar.topology import ANYWHERE, SpreadOver, Together, Topology
from blazar.model.resources.pools import UnitLimits
from blazar.model.resources.requirements import Comparison, matches
from blazar.model.resources.resource import FLOATING_IP, HOST, Resource, ResourceKind
from tests.builders import NOON, a_host

CASES = int(os.environ.get("BLAZAR_CASES", "150"))
RANGE = 26
ZERO = epoch(NOON)


@dataclass(frozen=True)
class Use:
    """A use of a resource from ``start`` to ``end``, in seconds of the test; ``late``: it should have ended by now."""

    resource: int
    start: int
    end: int
    count: int = 1
    per_instance: Amounts | None = None
    late: bool = False


@dataclass(frozen=True)
class Stock:
    """The resources of one kind, their uses, and what is asked of them."""

    kind: ResourceKind
    resources: tuple[Resource, ...]
    uses: tuple[Use, ...]
    demands: tuple[Demand, ...]
    cleaning: int = 0

    def find(self, requirement):
        if requirement not in self._found:
            open_ = [r for r in self.resources if r.is_open_to("physics")]
            self._found[requirement] = [r for r in open_ if matches(requirement, r.properties)]
        return self._found[requirement]

    @cached_property
    def _found(self):
        """What fulfils a requirement does not change, and every window asks."""
        return {}

    def kind_search(self, budget: Budget) -> KindSearch:
        without_amounts = all(demand.whole for demand in self.demands)
        uses, late, after = defaultdict(list), defaultdict(list), {}
        for u in self.uses:
            known = ZERO + u.start, ZERO + u.end + self.cleaning, u.count, u.per_instance
            if u.late:
                late[u.resource].append(known)
            elif u.start < RANGE + self.cleaning:
                uses[u.resource].append(known)
            elif without_amounts or u.per_instance is None:
                after[u.resource] = min(ZERO + u.start, after.get(u.resource, ZERO + u.start))
        outside = OutsideUses(late, first_starts=after)
        timeline = Timeline(sort_uses(uses), TimelineTerms(ZERO, self.cleaning, without_amounts), outside)
        return KindSearch(self.demands, timeline, self.resources, self.find, budget)

    def occupancy(self, start: int, end: int) -> Occupancy:
        """Return the occupancy of a window, from allocations alone."""
        before, after = timedelta(seconds=self.cleaning), timedelta(seconds=self.cleaning)
        asked = Window(at(start), at(end))
        without_amounts = all(demand.whole for demand in self.demands)
        allocations = []
        for u in self.uses:
            if u.late and start > 0:
                continue
            last = max(end, u.start + 1) if u.late else u.end
            window = Window(at(u.start) - before, at(last) + after)
            # For servers, what is shared before or after the window is no reason to take another host.
            if without_amounts or u.per_instance is None or window.overlaps(asked):
                allocations.append(Allocation(self.kind, u.resource, "l", "r", window, u.count, u.per_instance))
        return Occupancy.of_allocations(asked, allocations)

    def booked(self, start: int, end: int):
        """Return the counts that a booking gets, None if it is refused."""
        try:
            # What is preferred is not compared: only where something fits.
            snapshot = Snapshot(self.resources, self.occupancy(start, end))
            placement = place(self.demands, snapshot, strategy=Strategy.PACK, matching=self.find)
        except NotEnoughResources:
            return None
        return [sum(a.count for a in assignments) for assignments in placement.assignments]


def at(seconds: int) -> datetime:
    return datetime.fromtimestamp(ZERO + seconds, UTC)


def amounts(vcpus: int, memory_mb: int) -> Amounts:
    return Amounts.of({"VCPU": vcpus, "MEMORY_MB": memory_mb})


# Strategies are made once, not in every case: Hypothesis finds out about each new one, and that took half of the time.
sizes = st.builds(amounts, st.integers(1, 3), st.integers(1, 3))
sizes_or_none = st.one_of(st.none(), sizes)
needs = st.sampled_from([TraitRequirements()] * 4 + [TraitRequirements(frozenset({"FAST"}))])
requirements = st.sampled_from([Demand(HOST, 1, 1).requirement] * 2 + [Comparison("==", "gpu", "A100")])
affinities = st.sampled_from(list(Affinity))
gpus = st.sampled_from(["A100", "none"])
racks = st.sampled_from(["r1", "r2"])
topologies = st.sampled_from(
    [
        *[ANYWHERE] * 6,
        Topology(Together("rack")),
        Topology(Together("rack", prefer=True)),
        Topology(spread=SpreadOver("rack")),
        Topology(Together("rack"), SpreadOver("gpu", 2)),
    ]
)
pairs = st.sampled_from([*[ANYWHERE] * 3, Topology(Together("rack", size=2))])
limits = st.sampled_from([{}, {}, {"VCPU": UnitLimits(1, 2)}])
traits = st.frozensets(st.just("FAST"))
projects = st.sampled_from([None] * 5 + [frozenset({"others"})])
cleaning_of_hosts = st.sampled_from([0, 0, 1, 3])
cleaning_of_addresses = st.sampled_from([0, 2])


@cache
def some_uses(first: int, last: int, most: int):
    """Uses of the resources with these numbers."""
    return st.lists(a_use(st.sampled_from(range(first, last + 1))), max_size=most)


@cache
def some_of(values: tuple, most: int, *, unique: bool = False):
    return st.lists(st.sampled_from(values), max_size=most, unique=unique)


@st.composite
def hosts(draw) -> Stock:
    """Hosts: some disabled, restricted or too small, and demands for whole ones and for servers."""
    count = draw(st.integers(1, 4))
    resources = tuple(
        replace(
            a_host(n, reservable=draw(st.integers(0, 5)) > 0, gpu=draw(gpus), rack=draw(racks)),
            capacity=amounts(draw(st.integers(1, 5)), draw(st.integers(1, 5))),
            limits=draw(limits),
            traits=draw(traits),
            authorized_projects=draw(projects),
        )
        for n in range(1, count + 1)
    )
    uses, demands = draw(some_uses(1, count, 8)), draw(some_demands)
    return Stock(HOST, resources, tuple(uses), tuple(demands), draw(cleaning_of_hosts))


@st.composite
def a_use(draw, resource):
    per_instance = draw(sizes_or_none)
    count = 1 if per_instance is None else draw(st.integers(1, 2))
    if draw(st.integers(0, 9)) == 0:
        return Use(draw(resource), -9, -4, count, per_instance, late=True)
    start = draw(st.integers(-5, RANGE + 4))
    return Use(draw(resource), start, max(1, start + draw(st.integers(1, 8))), count, per_instance)


@st.composite
def a_demand(draw):
    per_instance = draw(sizes_or_none)
    least = draw(st.integers(1, 3))
    affinity = Affinity.ANY if per_instance is None else draw(affinities)
    requirement = draw(requirements)
    most = least + draw(st.integers(0, 2))
    topology = ANYWHERE
    if per_instance is None:
        topology = draw(topologies if least % 2 or most % 2 else pairs)
    return Demand(HOST, least, most, requirement, per_instance, affinity, traits=draw(needs), topology=topology)


some_demands = st.lists(a_demand(), min_size=1, max_size=3)
some_hosts = hosts()


@st.composite
def leases_in_use(draw) -> Stock:
    """Hosts of which the demands have some already: whole ones pinned, parts of others kept, or only preferred."""
    stock = draw(some_hosts)
    demands, owned = [], set()
    for demand in stock.demands:
        ids = draw(some_of(tuple(r.id for r in stock.resources), demand.min_count, unique=True))
        kept = held_by(demand, [id_ for id_ in ids if id_ not in owned], draw)
        owned |= set(ids) if demand.whole else set()
        demands.append(replace(demand, **kept, preferred=frozenset(ids), entitled=draw(st.booleans())))
    in_parts = {id_ for demand in demands for id_ in demand.kept}
    assume(not any(demand.pinned & in_parts for demand in demands))
    return replace(stock, demands=tuple(demands))


def held_by(demand, ids, draw):
    """Return what a demand has in use of these hosts, at most what it needs."""
    if demand.whole:
        return {"pinned": frozenset(ids)}
    if demand.affinity is Affinity.TOGETHER:
        return {"kept": {id_: draw(st.integers(1, demand.min_count)) for id_ in ids[:1]}}
    return {"kept": dict.fromkeys(ids, 1)}


@st.composite
def addresses(draw) -> Stock:
    """Addresses, of which some are required by name."""
    last = 100 + draw(st.integers(2, 4))
    resources = tuple(
        replace(a_host(n, reservable=draw(st.integers(0, 5)) > 0), kind=FLOATING_IP, capacity=Amounts())
        for n in range(101, last + 1)
    )
    whole = tuple(replace(use, per_instance=None, count=1) for use in draw(some_uses(101, last, 5)))
    amount = draw(st.integers(1, 2))
    required = frozenset(draw(some_of(tuple(r.name for r in resources), amount)))
    demands = [Demand(FLOATING_IP, amount, amount, required=required)]
    if draw(st.integers(0, 3)) == 0:
        demands.append(Demand(FLOATING_IP, 1, 1))
    return Stock(FLOATING_IP, resources, whole, tuple(demands), draw(cleaning_of_addresses))


def true_openings(stocks, length):
    """Try every start, and from the first start of each run every end."""

    @cache
    def booked(start, end):
        found = []
        for stock in stocks:
            if (counts := stock.booked(start, end)) is None:
                return None
            found.append(counts)
        return found

    fits = [booked(s, s + length) is not None for s in range(RANGE - length + 1)]
    found = []
    for s, fit in enumerate(fits):
        if not fit or (s and fits[s - 1]):
            continue
        last = s
        while last + 1 < len(fits) and fits[last + 1]:
            last += 1
        ends = [e for e in range(s + length, RANGE + 1) if booked(s, e) is not None]
        found.append((s, last, None if ends[-1] == RANGE else ends[-1], booked(s, s + length)))
    return found


def found_openings(stocks, length, *, placements=10**6, limit=10**6, earliest=0):
    budget = Budget(placements)
    kinds = [stock.kind_search(budget) for stock in stocks]
    return search_openings(kinds, budget, length=length, earliest=ZERO + earliest, latest=ZERO + RANGE, limit=limit)


def shown(openings):
    return [
        (
            o.start - ZERO,
            o.last_start - ZERO,
            None if o.open_until is None else o.open_until - ZERO,
            [[sum(a.count for a in part) for part in placement.assignments] for placement in o.placements],
        )
        for o in openings
    ]


some_addresses = addresses()
some_leases = leases_in_use()
questions = st.tuples(
    st.one_of(
        st.tuples(some_hosts),
        st.tuples(some_addresses),
        st.tuples(some_hosts, some_addresses),
    ),
    st.integers(1, 9),
)
changes = st.tuples(st.one_of(st.tuples(some_leases), st.tuples(some_leases, some_addresses)), st.integers(1, 9))


@settings(max_examples=CASES)
@given(questions)
def test_openings_are_those_of_trying_every_start_and_every_end(question):
    stocks, length = question
    found = found_openings(stocks, length)
    assert found.complete
    assert found.searched_until == ZERO + RANGE
    assert shown(found.openings) == true_openings(stocks, length)


# Each of these tries every start and every end with backtracking: as costly as two of the others.
@settings(max_examples=CASES // 2)
@given(changes)
def test_openings_for_a_lease_in_use_are_those_of_trying_every_start_and_every_end(question):
    stocks, length = question
    # Who gets what is left beyond the minimums depends on the order of what is preferred.
    found = [times for *times, _ in shown(found_openings(stocks, length).openings)]
    assert found == [times for *times, _ in true_openings(stocks, length)]


@settings(max_examples=CASES)
@given(questions, st.integers(1, 2), st.integers(0, 3))
def test_a_search_in_parts_finds_what_a_search_in_one_does(question, limit, placements):
    stocks, length = question
    starts, earliest = [], 0
    for _ in range(200):
        found = found_openings(stocks, length, limit=limit, placements=placements + 3, earliest=earliest)
        starts += [s for o in shown(found.openings) for s in range(o[0], o[1] + 1)]
        earliest = found.searched_until - ZERO
        if earliest > RANGE - length:
            break
    expected = [s for first, last, *_ in true_openings(stocks, length) for s in range(first, last + 1)]
    assert starts == expected


@settings(max_examples=CASES)
@given(questions, st.integers(0, RANGE - 1))
def test_the_occupancy_of_a_window_is_that_of_the_allocations(question, start):
    stocks, length = question
    start = min(start, RANGE - length)
    for stock in stocks:
        if all(demand.whole for demand in stock.demands):
            # Then no part of a resource is told apart from the whole.
            stock = replace(stock, uses=tuple(replace(u, count=1, per_instance=None) for u in stock.uses))
        ours = stock.kind_search(Budget(1)).timeline.occupancy(ZERO + start, ZERO + start + length)
        theirs = stock.occupancy(start, start + length)
        assert ours.taken == theirs.taken
        assert {id_: ours.peaks[id_] for id_ in ours.peaks} == {id_: theirs.peaks[id_] for id_ in theirs.peaks}


def test_a_required_address_that_is_not_there_is_refused():
    stock = Stock(FLOATING_IP, (), (), (Demand(FLOATING_IP, 1, 1, required=frozenset({"public 203.0.113.9"})),))
    with pytest.raises(Exception, match="no such floating IP"):
        found_openings([stock], 2)


def test_a_whole_month_of_a_thousand_hosts_needs_one_placement_for_each_opening():
    day = 86400
    uses = {
        n: [(ZERO + day * (d + n % 2), ZERO + day * (d + n % 2 + 1), 1, None) for d in range(0, 30, 2)]
        for n in range(1, 1001)
    }
    budget = Budget(2000)
    resources = [a_host(n) for n in range(1, 1001)]
    kind = KindSearch(
        [Demand(HOST, 501, 501)],
        Timeline(sort_uses(uses), TimelineTerms(ZERO, without_amounts=True)),
        resources,
        lambda requirement: resources,
        budget,
    )
    found = search_openings([kind], budget, length=day, earliest=ZERO, latest=ZERO + 40 * day, limit=5)
    assert [o.start - ZERO for o in found.openings] == [30 * day]
    assert budget.used == 1
