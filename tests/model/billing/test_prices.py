# SPDX-License-Identifier: Apache-2.0
"""What a lease will cost is its bill if nobody touches it, and what fits a maximum is as much as it allows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blazar.model.base.window import Window
from blazar.model.billing.accounts import BilledLease, open_account
from blazar.model.billing.charges import NANO, sum_lines
from blazar.model.billing.fits import PriceLimit, find_longest, list_cheaper_starts
from blazar.model.billing.ledger import PlannedMonth, plan_account, plan_quoted
from blazar.model.billing.prices import (
    LONGEST,
    CancellationCost,
    PricedAmount,
    PricePart,
    QuotedLease,
    quote,
    show_amount,
    show_exactly,
)
from blazar.model.billing.rating import rate, rate_fee
from blazar.model.billing.uses import BookedUse, LeaseFacts
from tests.cases import cases
from tests.model.billing.oracle import Bill, Had, Published
from tests.model.billing.test_price_lists import EXAMPLE, a_list

START = datetime(2030, 5, 2, 8, tzinfo=UTC)
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)
LISTS = [a_list(3)]


def hosts(count: int = 4, *, start: datetime = START, hours: float = 48, ahead: timedelta = 14 * 24 * HOUR):
    amounts = (PricedAmount("r", 0, "host-a100", "host", count, count),)
    return QuotedLease(amounts, Window(start, start + hours * HOUR), "p", start - ahead)


def test_four_hosts_for_two_days_cost_what_the_list_says():
    price = quote(hosts(), LISTS)
    assert price is not None
    assert (price.amount, price.currency, price.price_list, price.fee) == ("673.80", "EUR", 3, "5.00")
    assert price.parts == (
        PricePart(0, "host-a100", "host", 4, "17", "3.20", "1.25", "272.00"),
        PricePart(0, "host-a100", "host", 4, "31", "3.20", "1", "396.80"),
    )
    assert price.if_cancelled == (
        CancellationCost(START - timedelta(days=7), "0.00"),
        CancellationCost(START - timedelta(days=1), "168.45"),
        CancellationCost(START, "336.90"),
    )


def test_without_a_list_that_holds_at_the_start_there_is_no_price():
    assert quote(hosts(), []) is None
    assert quote(hosts(start=datetime(2030, 3, 20, tzinfo=UTC), ahead=HOUR), LISTS) is None
    assert quote(hosts(), [a_list(3, published_at=START)]) is None


def test_what_lasts_for_thousands_of_years_has_no_price():
    endless = replace(hosts(), window=Window(START, datetime(9999, 1, 1, tzinfo=UTC)))
    assert quote(endless, LISTS) is None
    assert quote(replace(hosts(), window=Window(START, START + LONGEST)), LISTS) is not None


def test_what_has_no_price_is_free_but_for_the_fee():
    price = quote(replace(hosts(), amounts=()), LISTS)
    assert price is not None
    assert (price.amount, price.parts) == ("5.00", ())


@pytest.mark.parametrize(
    ("nano", "decimals", "shown", "exact"),
    [
        (673_800_000_000, 2, "673.80", "673.80"),
        (5_000_000, 2, "0.00", "0.005"),
        (15_000_000, 2, "0.02", "0.015"),
        (1_500_000_000, 0, "2", "1.5"),
        (-2_500_000_000, 1, "-2.5", "-2.5"),
        (7, 9, "0.000000007", "0.000000007"),
    ],
)
def test_amounts_have_the_decimals_of_the_list_rounded_half_to_even(nano, decimals, shown, exact):
    assert show_amount(nano, decimals) == shown
    assert show_exactly(nano, decimals) == exact


quoted_leases = st.builds(
    hosts,
    st.integers(1, 40),
    start=st.integers(0, 20_000).map(lambda minutes: START + minutes * 60 * SECOND),
    hours=st.integers(1, 8_000).map(lambda minutes: minutes / 60),
    ahead=st.integers(0, 10**6).map(lambda seconds: seconds * SECOND),
)


@settings(max_examples=cases(100), deadline=None)
@given(quoted_leases)
def test_a_quote_is_what_an_independent_sum_of_the_same_lease_is(quoted):
    price = quote(quoted, LISTS)
    assert price is not None
    window = quoted.window
    count = quoted.amounts[0].amount
    bill = Bill([Published(3, LISTS[0].published_at, EXAMPLE)], "p", [(window.start, quoted.booked_at)])
    bill.add(Had("r", "host-a100", count, count, window.start, window.end, began_at=window.start), 60)
    expected = sum(due.cost for due in bill.lines.values()) + 5
    assert abs(price.value - expected) <= Fraction(1, 200) + Fraction(10, NANO)
    assert sum(Fraction(part.amount) for part in price.parts) + 5 == Fraction(quoted.sum_nano(LISTS), NANO)


@settings(max_examples=cases(200), deadline=None)
@given(quoted_leases, st.integers(1, 99))
def test_the_longest_time_that_fits_costs_no_more_and_a_second_more_does(quoted, percent):
    price = quote(quoted, LISTS)
    assert price is not None
    limit = PriceLimit(price.value * percent / 100, LISTS)
    assume(not limit.allows(quoted))
    found = find_longest(quoted, limit)
    if found is None:
        assert not limit.allows(replace(quoted, window=Window(quoted.window.start, quoted.window.start + SECOND)))
        return
    assert limit.allows(replace(quoted, window=found))
    assert not limit.allows(replace(quoted, window=Window(found.start, found.end + SECOND)))


@settings(max_examples=cases(100), deadline=None)
@given(quoted_leases, st.integers(60, 99))
def test_a_later_start_that_fits_costs_no_more_and_a_second_earlier_does(quoted, percent):
    price = quote(quoted, LISTS)
    assert price is not None
    limit = PriceLimit(price.value * percent / 100, LISTS)
    assume(not limit.allows(quoted))
    for found in list_cheaper_starts(quoted, limit):
        assert found.duration == quoted.window.duration
        assert limit.allows(replace(quoted, window=found))
        earlier = Window(found.start - SECOND, found.end - SECOND)
        assert not limit.allows(replace(quoted, window=earlier))


@settings(max_examples=cases(200))
@given(
    st.integers(1, 9),
    st.integers(-500, 500),
    st.integers(1, 40 * 24 * 60),
    st.sampled_from(["0", "0.25", "0.333333", "1"]),
    st.sampled_from(["PT7M", "PT1H"]),
)
def test_what_a_cancellation_costs_is_what_rating_says_of_all_that_is_given_back(
    count, ahead, minutes, share, round_up
):
    steps = [{"before_start": "PT30H", "share": "0.1"}, {"before_start": "PT5H", "share": share}, {"share": "0.7"}]
    lists = [a_list(3, cancellation=steps, round_up=round_up, minimum="PT3H")]
    amounts = (
        PricedAmount("r", 0, "host-a100", "host", count, count),
        PricedAmount("s", 1, "vcpu", "vcpu", 3 * count, 3 * count),
    )
    window = Window(START, START + timedelta(minutes=minutes))
    quoted = QuotedLease(amounts, window, "p", START - timedelta(minutes=1 + abs(ahead) * 7))
    price = quote(quoted, lists)
    assert price is not None
    for cost in price.if_cancelled:
        at = max(quoted.booked_at, cost.until - SECOND)
        uses = [replace(use, given_back_at=at) for use in quoted.list_uses()]
        fee = rate_fee(lists, quoted.terms, given_back_at=at)
        nano = sum_lines(rate(uses, lists, quoted.terms)) + (0 if fee is None else fee.nano)
        assert cost.amount == show_amount(nano, 2)


@settings(max_examples=cases(100), deadline=None)
@given(quoted_leases, st.sampled_from([0, 2, 4]))
def test_what_is_planned_for_a_new_lease_is_what_is_planned_of_its_facts(quoted, years):
    start, end = quoted.window.start, quoted.window.end
    quoted = replace(quoted, window=Window(start, end + timedelta(days=365 * years)))
    count = quoted.amounts[0].amount
    uses = (BookedUse("r", n, quoted.window, {"host": 1}, {"host-a100": count}) for n in range(count))
    account = open_account(BilledLease("l", "p", "u", quoted.window), "a", quoted.booked_at)
    assert plan_quoted(quoted, LISTS) == plan_account(account, LeaseFacts(tuple(uses)), LISTS)


def test_the_fee_is_planned_also_if_nothing_else_has_a_price():
    free = replace(hosts(), amounts=())
    assert list(plan_quoted(free, LISTS).values()) == [PlannedMonth(5 * NANO)]


def test_of_what_is_booked_many_years_ahead_only_the_fee_is_planned_if_it_is_known():
    ahead = timedelta(days=4 * 366)
    far = hosts(start=START + ahead, ahead=ahead)
    assert plan_quoted(far, []) == {}
    assert list(plan_quoted(far, LISTS).values()) == [PlannedMonth(5 * NANO)]
