# SPDX-License-Identifier: Apache-2.0
"""What a refusal for money says would fit is granted, and a second or one more is not."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.enforcement import Question
from blazar.enforcement.spend import SpendFilter
from blazar.model.base.errors import UsageDenied
from blazar.model.base.window import Window
from blazar.model.billing.charges import NANO
from blazar.model.billing.prices import PricedAmount, QuotedLease
from blazar.model.billing.published import draft_list
from blazar.model.billing.spending import ProjectSpending, SpendRoom, find_affordable_count
from blazar.model.leases.states import LeaseStatus
from blazar.model.use.resource_hours import MonthSpending, SpendLimit
from tests.cases import cases
from tests.enforcement.builders import DAY, HOUR, NOON, a_view, asking
from tests.manager.billing.ledger import PRICES

SECOND = timedelta(seconds=1)
APRIL, MAY = date(2030, 4, 1), date(2030, 5, 1)
HOURS = [{"days": ["MO", "TU", "WE"], "from": "09:00", "to": "18:00", "factor": "1.25"}]


def prices(**more):
    return (draft_list({**PRICES, **more}, None, now=NOON - DAY).parse(),)


def ask(window: Window, hosts: int, lists, **months: int) -> Question:
    spent = {date(2030, int(month[1:]), 1): MonthSpending(planned=nano) for month, nano in months.items()}
    return replace(asking(a_view(window, hosts=hosts)), spending=ProjectSpending(lists, spent))


def denial(rule: SpendFilter, question: Question) -> UsageDenied | None:
    try:
        rule.check(question)
    except UsageDenied as error:
        return error
    return None


def test_months_are_limited_each_by_itself():
    rule, lists = SpendFilter(10 * NANO), prices()
    window = Window(datetime.fromisoformat("2030-04-30T14:00:00Z"), datetime.fromisoformat("2030-05-01T10:00:00Z"))
    assert denial(rule, ask(window, 1, lists)) is None
    refused = denial(rule, ask(window, 1, lists, m5=NANO // 2))
    assert refused is not None
    assert "would cost 10.00 EUR for May 2030, and of the 10.00" in refused.message
    assert "9.50 are left; ask for at most 19 hours 30 minutes" in refused.message


def test_nothing_is_said_of_what_has_no_price_or_is_changed_or_goes_on_already():
    rule = SpendFilter(0)
    window = Window(NOON, NOON + HOUR)
    assert denial(rule, asking(a_view(window))) is None
    assert denial(rule, replace(ask(window, 1, prices()), current=a_view(window))) is None
    used = ask(Window(NOON - HOUR, NOON + HOUR), 1, prices())
    lease = replace(used.wanted.lease, status=LeaseStatus.ACTIVE)
    assert denial(rule, replace(used, wanted=replace(used.wanted, lease=lease))) is None
    assert (
        denial(rule, ask(window, 1, prices(prices=[{"sku": "ip", "measure": "floatingip", "per_hour": "1"}]))) is None
    )
    assert denial(rule, ask(window, 1, prices())) is not None


def test_of_a_lease_that_begins_at_once_it_is_said_what_fits_also_if_a_second_has_passed():
    refused = denial(SpendFilter(5 * NANO), ask(Window(NOON - SECOND, NOON + 9 * HOUR), 1, prices()))
    assert refused is not None
    assert "ask for at most 5 hours" in refused.message


def test_what_is_too_dear_for_each_month_is_offered_at_the_edge_of_two():
    rule, lists = SpendFilter(20 * NANO), prices(fee="2.00")
    refused = denial(rule, ask(Window(NOON, NOON + 30 * HOUR), 1, lists, m5=8 * NANO))
    # 18 hours and the fee in April, and 12 hours, which are left, in May.
    assert refused is not None
    assert refused.message.endswith("ask for at most 18 hours, or for a start at 2030-04-30T06:00:00Z")
    # Of May a cent less is left.
    refused = denial(rule, ask(Window(NOON, NOON + 30 * HOUR), 1, lists, m5=8 * NANO + 1))
    assert refused is not None
    assert refused.message.endswith("or for a start at 2030-06-30T06:00:00Z")


@settings(max_examples=cases(60), deadline=None)
@given(
    st.integers(0, 40 * 24), st.integers(1, 200), st.integers(1, 6), st.integers(0, 300), st.integers(0, 300),
    st.sampled_from([{}, {"fee": "5.00"}, {"hours": HOURS}, {"minimum": "PT2H", "round_up": "PT1H"}]),
    st.integers(1, 400 * 3600),
)  # fmt: skip
def test_what_fits_is_granted_and_no_more(start, hours, hosts, april, may, more, most):
    rule, lists = SpendFilter(round(Fraction(most * NANO, 3600))), prices(**more)
    window = Window(NOON + start * HOUR, NOON + (start + hours) * HOUR)
    spent = {"m4": april * NANO, "m5": may * NANO}
    refused = denial(rule, ask(window, hosts, lists, **spent))
    if refused is None:
        return
    assert refused.data is not None
    fits = refused.data["fits"]

    def is_granted(other: Window, count: int = hosts) -> bool:
        return denial(rule, ask(other, count, lists, **spent)) is None

    if "duration_seconds" in fits:
        end = window.start + fits["duration_seconds"] * SECOND
        assert is_granted(Window(window.start, end))
        assert not is_granted(Window(window.start, end + SECOND))
    if "amount" in fits:
        assert is_granted(window, fits["amount"])
        assert not is_granted(window, fits["amount"] + 1)
    if "start_date" in fits:
        begin, end = datetime.fromisoformat(fits["start_date"]), datetime.fromisoformat(fits["end_date"])
        assert end - begin == window.duration
        assert is_granted(Window(begin, end))
        assert not is_granted(Window(begin - SECOND, end - SECOND))
    with pytest.raises(UsageDenied):
        rule.check(ask(window, hosts, lists, **spent))


def test_of_what_has_two_prices_the_dearest_is_taken_for_fewer():
    two = [("plain", 2, NANO), ("fast", 2, 10 * NANO)]
    lists = prices(prices=[{"sku": sku, "measure": "host", "per_hour": str(nano // NANO)} for sku, _, nano in two])
    window = Window(NOON, NOON + HOUR)
    amounts = tuple(PricedAmount("r", 0, sku, "host", many, 4) for sku, many, _ in two)
    quoted = QuotedLease(amounts, window, "physics", NOON)

    def fitting(most: int) -> int:
        return find_affordable_count(quoted, 4, SpendRoom(SpendLimit("max_spend", most * NANO), ProjectSpending(lists)))

    # Who asks for fewer may get the fast ones: one costs 10 at most, two 20, three 21.
    assert [fitting(most) for most in (9, 10, 19, 20, 21)] == [0, 1, 1, 2, 3]
