# SPDX-License-Identifier: Apache-2.0
"""Who is served first, compared with the sentence of the page carried out word by word."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from blazar.calendar.queue.plan import sort_waiters
from blazar.calendar.queue.usage import Rates
from blazar.calendar.queue.values import DAY, HOUR, Waiter
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import HOST
from tests.cases import cases

NOW = 100 * DAY


def waits(name: str, project: str, *, count: int = 1, hours: int = 10, ago: float = HOUR) -> Waiter:
    return Waiter(name, project, (Demand(HOST, count, count),), hours * HOUR, NOW - ago)


def order_of(waiting, usage=None, rates=None):
    def share(waiter):
        return waiter.demands[0].min_count / 100

    found = sort_waiters(waiting, usage or {}, share, rates or Rates(), now=NOW, promise_age=DAY)
    return [waiter.lease_id for waiter in found]


def test_within_a_project_the_first_is_first():
    assert order_of([waits("b", "p", ago=10), waits("a", "p", ago=20)]) == ["a", "b"]


def test_of_two_requests_in_one_second_the_first_is_first():
    assert order_of([waits("a", "p", ago=10.2), waits("b", "p", ago=10.7)]) == ["b", "a"]


def test_the_project_with_the_least_use_is_first():
    waiting = [waits("much", "p", ago=30), waits("little", "q", ago=10)]
    assert order_of(waiting, {"p": 100.0}) == ["little", "much"]
    assert order_of(waiting, {"p": 100.0}, Rates(project_weights={"p": 1e9, "q": 1e-9})) == ["little", "much"]
    assert order_of(waiting, {"p": 100.0, "q": 60.0}, Rates(project_weights={"p": 2.0})) == ["much", "little"]


def test_one_request_for_ten_hosts_is_as_ten_for_one():
    small = [waits(f"small-{n:02}", "p", ago=100 - n) for n in range(20)]
    large = [waits(f"large-{n}", "q", count=10, ago=50 - n) for n in range(2)]
    found = order_of(small + large)
    assert found[0] == "small-00"
    assert found.index("large-0") == 1
    assert found.index("large-1") == 12


def test_those_who_have_waited_long_are_first_whatever_their_project_has():
    waiting = [waits("new", "q"), waits("old", "p", ago=DAY), waits("older", "p", ago=2 * DAY)]
    assert order_of(waiting, {"p": 1e12}) == ["older", "old", "new"]


def word_by_word(waiting, usage, rates):
    def age(waiter):
        return waiter.queued_at, waiter.lease_id

    def cost(waiter):
        return waiter.demands[0].min_count / 100 * waiter.length / rates.weight(waiter.project_id)

    left = sorted(waiting, key=age)
    used = {w.project_id: usage.get(w.project_id, 0.0) / rates.weight(w.project_id) for w in left}
    found = []
    for waiter in [w for w in left if NOW - w.queued_at >= DAY]:
        used[waiter.project_id] += cost(waiter)
        found.append(waiter)
        left.remove(waiter)
    while left:
        oldest = {}
        for waiter in left:
            oldest.setdefault(waiter.project_id, waiter)
        best = min(oldest.values(), key=lambda w: (used[w.project_id], *age(w)))
        used[best.project_id] += cost(best)
        found.append(best)
        left.remove(best)
    return [waiter.lease_id for waiter in found]


requests = st.lists(
    st.tuples(st.sampled_from("pqr"), st.integers(1, 9), st.integers(1, 50), st.integers(0, 2 * DAY)), max_size=12
)


@settings(max_examples=cases(200), deadline=None)
@given(requests, st.dictionaries(st.sampled_from("pqr"), st.floats(0, 1e5)), st.floats(0.1, 10), st.randoms())
def test_the_order_is_the_documented_one_however_the_requests_are_listed(drawn, usage, weight, random):
    waiting = [waits(f"l{n}", p, count=count, hours=h, ago=ago) for n, (p, count, h, ago) in enumerate(drawn)]
    rates = Rates(project_weights={"p": weight})
    expected = word_by_word(waiting, usage, rates)
    assert order_of(waiting, usage, rates) == expected
    random.shuffle(waiting)
    assert order_of(waiting, usage, rates) == expected
