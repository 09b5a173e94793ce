# SPDX-License-Identifier: Apache-2.0
"""Random leases under random price lists cost what an independent sum finds, wherever they are cut."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.window import Window
from blazar.model.billing.charges import NANO, ChargeLine, sum_lines
from blazar.model.billing.price_lists import parse_price_list
from blazar.model.billing.rating import BookedPart, ChargeTerms, PricedUse, rate
from tests.cases import cases
from tests.model.billing.oracle import DAYS, Bill, Had, Published

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ZONES = (
    *("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Chatham"),
    *("America/St_Johns", "Africa/Casablanca"),
)
NEAR_CHANGES = ("2030-03-10", "2030-03-31", "2030-04-07", "2030-09-29", "2030-10-06", "2030-10-27", "2030-11-03")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


amounts = st.integers(1, 90_000_000).map(lambda n: f"{n // 10**6}.{n % 10**6:06}")
factors = amounts | st.sampled_from(["0.5", "1.25", "2"])
some_days = st.lists(st.sampled_from(DAYS), min_size=1, max_size=7, unique=True)


@st.composite
def documents(draw: st.DrawFn, step: int, begin: datetime) -> dict[str, Any]:
    """Draw a price list whose prices change at whole steps only."""
    minutes = max(step // 60, 1)
    times = st.integers(0, 1440 // minutes - 1).map(lambda n: f"{n * minutes // 60:02}:{n * minutes % 60:02}")
    bands = st.fixed_dictionaries({"factor": factors}, optional={"days": some_days, "from": times, "to": times})
    skus = draw(st.sampled_from([("a", "b"), ("a",)]))
    document: dict[str, Any] = {
        "currency": "EUR",
        "decimals": 2,
        "valid_from": (begin + draw(st.integers(-40, 40)) * step * 7 * timedelta(seconds=1)).isoformat(),
        "time_zone": draw(st.sampled_from(ZONES)),
        "prices": [{"sku": sku, "measure": "host", "per_hour": draw(amounts)} for sku in skus],
        "hours": draw(st.lists(bands, max_size=3)),
    }
    optional = {
        "lead": st.tuples(factors, factors).map(
            lambda two: [{"below": "PT12H", "factor": two[0]}, {"below": "P3D", "factor": two[1]}]
        ),
        "amount": st.tuples(factors, factors).map(
            lambda two: [{"above": 2, "factor": two[0]}, {"above": 4, "factor": two[1]}]
        ),
        "projects": factors.map(lambda factor: [{"project_id": "p", "factor": factor}]),
        "unused": st.sampled_from(["0", "0.4", "1"]),
        "minimum": st.sampled_from(["PT1H", "P2D"]),
        "round_up": st.sampled_from(["PT7M", "PT1H"]),
        "cancellation": st.just([{"before_start": "PT24H", "share": "0.25"}, {"share": "0.5"}]),
        "early_return": st.sampled_from(["0", "0.1"]),
        "late": st.sampled_from(["free", "charge"]),
        "lost": st.sampled_from(["free", "charge"]),
    }
    return {**document, **draw(st.fixed_dictionaries({}, optional=optional))}


Case = tuple[list[Published], list[tuple[datetime, datetime]], list[tuple[datetime, datetime]], list[Had], int]


@st.composite
def leases(draw: st.DrawFn, steps: tuple[int, ...] = (1, 60, 900), longest: int = 700) -> Case:
    """Draw lists, the parts of a lease, its unused spans and its uses, with all instants at whole steps."""
    step = draw(st.sampled_from(steps))
    near = st.sampled_from(NEAR_CHANGES).map(utc)
    day = draw(near | st.integers(0, 364).map(lambda n: utc("2030-01-01") + n * DAY))
    begin = day + draw(st.integers(-100, 100)) * timedelta(seconds=step)
    if draw(st.booleans()):
        # So that the change of clocks in Europe, Africa or America lies in the lease, also if it is short.
        begin += draw(st.integers(0, 7)) * HOUR
    length = draw(st.integers(4, longest))

    def instant(low: int = 0, high: int | None = None) -> datetime:
        return begin + draw(st.integers(low, length if high is None else high)) * timedelta(seconds=step)

    def spans() -> list[tuple[datetime, datetime]]:
        borders = sorted({instant() for _ in range(draw(st.sampled_from([0, 0, 2, 4])))})
        return list(zip(borders[::2], borders[1::2], strict=False))

    published = sorted(begin - draw(st.integers(0, 200)) * HOUR for _ in range(draw(st.integers(1, 3))))
    lists = [Published(n, at, draw(documents(step, begin))) for n, at in enumerate(published, 1)]
    parts = [(begin, begin - draw(st.integers(0, 150)) * HOUR)]
    if draw(st.booleans()):
        since = instant(1)
        parts.append((since, draw(st.sampled_from([parts[0][1], begin, since]))))
    uses = [draw_use(draw, instant, spans, begin) for _ in range(draw(st.integers(1, 2)))]
    return lists, parts, spans(), uses, step


def draw_use(draw: st.DrawFn, instant: Any, spans: Any, begin: datetime) -> Had:
    first, second = instant(), instant()
    while first == second:
        second = first + timedelta(seconds=900)
    first, second = min(first, second), max(first, second)
    given_back = draw(st.sampled_from([None, None, None, begin - 3 * DAY, begin - HOUR, begin, first]))
    return Had(
        reservation=draw(st.sampled_from(["r", "s"])),
        sku=draw(st.sampled_from(["a", "b"])),
        amount=draw(st.integers(1, 5)),
        booked_amount=draw(st.integers(1, 6)),
        begin=first,
        until=second,
        added_at=draw(st.sampled_from([None, None, first, first - 2 * HOUR])),
        handed_over_at=draw(st.sampled_from([None, None, instant()])) if given_back is None else None,
        outages=tuple(spans()),
        given_back_at=given_back,
        began_at=draw(st.sampled_from([None, first, first - HOUR])),
    )


def rated(case: Case, pieces: Sequence[PricedUse] | None = None) -> tuple[ChargeLine, ...]:
    """Return the lines of a lease by the service, of all its uses or of some pieces of them."""
    lists, parts, unused, uses, _ = case
    known = [parse_price_list(one.document, version=one.version, published_at=one.published_at) for one in lists]
    terms = ChargeTerms("p", tuple(BookedPart(*part) for part in parts), tuple(Window(*span) for span in unused))
    return rate([as_use(use) for use in uses] if pieces is None else pieces, known, terms)


def as_use(had: Had) -> PricedUse:
    return PricedUse(
        reservation_id=had.reservation,
        sku=had.sku,
        amount=had.amount,
        booked_amount=had.booked_amount,
        window=Window(had.begin, had.until),
        added_at=had.added_at,
        handed_over_at=had.handed_over_at,
        outages=tuple(Window(*span) for span in had.outages),
        given_back_at=had.given_back_at,
        rounded_from=had.began_at,
    )


def cut(use: PricedUse, instants: Sequence[datetime]) -> list[PricedUse]:
    """Return a use in pieces; its reservation ends with the last one."""
    inner = sorted({instant for instant in instants if use.window.start < instant < use.window.end})
    borders = [use.window.start, *inner, use.window.end]
    pieces = [replace(use, window=Window(*pair), rounded_from=None) for pair in pairwise(borders)]
    return [*pieces[:-1], replace(pieces[-1], rounded_from=use.rounded_from)]


def key_of(line: ChargeLine) -> tuple[Any, ...]:
    price = Fraction(line.unit_nano, NANO)
    return (
        *(f"{line.month:%Y-%m}", line.reservation_id, line.sku, str(line.category), str(line.status), line.version),
        *(price, line.factor),
    )


def check(case: Case) -> None:
    lists, parts, unused, uses, step = case
    bill = Bill(lists, "p", parts, unused)
    for use in uses:
        bill.add(use, step)
    lines = rated(case)
    found = {key_of(line): line for line in lines}
    assert len(found) == len(lines)
    assert {key: line.resource_seconds for key, line in found.items()} == {
        key: due.seconds for key, due in bill.lines.items()
    }
    for key, due in bill.lines.items():
        assert found[key].nano == round(due.cost * NANO)
        assert min(use.begin for use in uses) <= found[key].window.start < found[key].window.end
        assert found[key].window.end <= max(use.until for use in uses)


@settings(max_examples=cases(2000))
@given(leases())
def test_a_lease_costs_what_the_sum_of_its_steps_does(case):
    check(case)


@settings(max_examples=cases(100))
@given(leases(steps=(900,), longest=96 * 120))
def test_a_long_lease_costs_what_the_sum_of_its_steps_does(case):
    check(case)


@settings(max_examples=cases(1000))
@given(leases(), st.lists(st.integers(0, 10**6), max_size=8))
def test_it_makes_no_difference_where_a_use_is_cut(case, offsets):
    begin = min(use.begin for use in case[3])
    instants = [begin + timedelta(seconds=n) for n in offsets]
    assert rated(case, [piece for use in case[3] for piece in cut(as_use(use), instants)]) == rated(case)


@settings(max_examples=cases(1000))
@given(leases(), st.lists(st.integers(0, 10**6), max_size=5))
def test_closings_at_any_instants_have_the_time_of_one_and_its_amount_but_for_their_rounding(case, offsets):
    begin = min(use.begin for use in case[3])
    cuts = [begin, *sorted({begin + timedelta(seconds=n) for n in offsets if n}), begin + 20000 * DAY]
    pieces = [piece for use in case[3] for piece in cut(as_use(use), cuts)]
    seconds: dict[Any, int] = defaultdict(int)
    nano: dict[Any, int] = defaultdict(int)
    for first, last in pairwise(cuts):
        now = [piece for piece in pieces if first <= piece.window.start < last]
        for line in rated(case, now):
            seconds[key_of(line)] += line.resource_seconds
            nano[key_of(line)] += line.nano
    whole = {key_of(line): line for line in rated(case)}
    assert seconds == {key: line.resource_seconds for key, line in whole.items()}
    assert all(2 * abs(nano[key] - line.nano) <= len(cuts) for key, line in whole.items())


@settings(max_examples=cases(1000))
@given(leases())
def test_the_bill_of_a_lease_that_nobody_touched_is_its_quote(case):
    lists, parts, _, uses, step = case
    plain = [replace_had(use) for use in uses]
    quote = rated((lists, parts[:1], [], plain, step))
    # Closed at the end of each month by facts: it was handed over in time, and nothing was missing.
    months = [datetime(2030 + n // 12, n % 12 + 1, 1, tzinfo=UTC) for n in range(-1, 14)]
    facts = [replace(as_use(use), handed_over_at=parts[0][0], outages=()) for use in plain]
    bill: list[ChargeLine] = []
    for first, last in pairwise(months):
        now = [piece for use in facts for piece in cut(use, months) if first <= piece.window.start < last]
        bill += rated((lists, parts[:1], [], plain, step), now)
    assert {(key_of(line), line.nano) for line in bill} == {(key_of(line), line.nano) for line in quote}
    assert sum_lines(bill) == sum_lines(quote)


def replace_had(had: Had) -> Had:
    return replace(had, outages=(), handed_over_at=None, given_back_at=None)
