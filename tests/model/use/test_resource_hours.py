# SPDX-License-Identifier: Apache-2.0
"""Resource-hours, held against counting second by second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.use.resource_hours import UsageCurve, UsageRecord, measure_amounts, roll_sums
from tests.cases import cases

ZERO = datetime(1970, 1, 1, tzinfo=UTC)
HORIZON = 60


def at(second: int) -> datetime:
    return ZERO + timedelta(seconds=second)


def span(start: int, end: int) -> Window:
    return Window(at(start), at(end))


spans = st.tuples(st.integers(20, 40), st.integers(1, 12)).map(lambda pair: (pair[0], pair[0] + pair[1]))
uses = st.lists(st.tuples(spans, st.integers(1, 4)), max_size=5)


def load(given, sign: int = 1) -> list[tuple[Window, int]]:
    return [(span(*times), sign * amount) for times, amount in given]


def by_seconds(given, start: int, end: int) -> int:
    """The oracle: what is held in each second, added up."""
    return sum(amount for (begin, over), amount in given for second in range(start, end) if begin <= second < over)


@given(uses, st.integers(0, HORIZON), st.integers(0, HORIZON))
def test_a_load_adds_up_to_what_is_held_in_each_second(given_uses, one, other):
    start, end = min(one, other), max(one, other)
    assert UsageCurve(load(given_uses)).sum_between(start, end) == by_seconds(given_uses, start, end)


@settings(max_examples=cases(300))
@given(uses, uses, uses.filter(bool), st.integers(1, 15), st.booleans())
def test_among_the_rolling_spans_that_are_looked_at_is_the_fullest(others, before, after, length, is_new):
    before = [] if is_new else before
    first = min(start for (start, _), _ in after)
    last = max(end for (_, end), _ in after)
    total = UsageCurve(load(others) + load(after))
    growth = UsageCurve(load(after) + load(before, -1))

    def sums(starts):
        grown = [t for t in starts if by_seconds(after, t, t + length) > by_seconds(before, t, t + length)]
        return max((by_seconds([*others, *after], t, t + length) for t in grown), default=None)

    looked_at = list(roll_sums(total, growth, span(first, last), length))
    everywhere = [t for t in range(first - length + 1, last) if t < last and t + length > first]
    assert sums(looked_at) == sums(everywhere)
    assert all(growth.sum_between(t, t + length) > 0 for t in looked_at)


def test_what_counts_is_hosts_or_servers_and_their_vcpus_and_anything_else_by_its_kind():
    assert measure_amounts("host", 1, None) == {"host": 1}
    assert measure_amounts("host", 3, Amounts.of({"VCPU": 4, "MEMORY_MB": 512})) == {"instance": 3, "vcpu": 12}
    assert measure_amounts("host", 1, Amounts.of({"PCPU": 4})) == {"instance": 1, "vcpu": 4}
    gpu = Amounts.of({"VCPU": 4, "CUSTOM_PCI_10DE_20B5": 2, "VGPU": 1, "NET_BW_EGR_KILOBIT_PER_SEC": 1000})
    assert measure_amounts("host", 3, gpu) == {"instance": 3, "vcpu": 12, "card": 9}
    assert measure_amounts("floatingip", 2, None) == {"floatingip": 2}
    assert UsageRecord("l", "host", span(0, 1), 2, Amounts.of({"VCPU": 1})).measures == {"instance": 2, "vcpu": 2}
