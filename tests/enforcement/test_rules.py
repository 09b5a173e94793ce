# SPDX-License-Identifier: Apache-2.0
"""What rules of operators let through, what they do not, and what a refusal says and offers."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from blazar.enforcement import Enforcement
from blazar.model.base.errors import UsageDenied
from blazar.model.base.window import Window
from blazar.model.leases.lease import PartOfSeries
from blazar.model.rules.documents import parse_rule
from blazar.model.use.resource_hours import ProjectUse, UsageRecord
from tests.enforcement.builders import HOUR, NOON, a_view, asking, hours
from tests.rules import a_rule


def holding(*documents, **options) -> Enforcement:
    enforcement = Enforcement(**options)
    enforcement.take_rules(
        [parse_rule(f"r-{number}", one, revision=number, created_at=NOON) for number, one in enumerate(documents)]
    )
    return enforcement


def denial(enforcement: Enforcement, question) -> UsageDenied:
    with pytest.raises(UsageDenied) as denied:
        enforcement.check(question, {})
    return denied.value


def window(start: str, end: str) -> Window:
    first, last = (datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (start, end))
    return Window(first, last)


def at_night(**content):
    """A question for a lease from Monday 23:00 to Tuesday 03:00 by the clocks of Berlin."""
    return asking(a_view(window("2030-04-01T21:00", "2030-04-02T01:00")))


class TestHours:
    def test_a_start_at_night_is_denied_and_the_next_morning_is_offered(self):
        found = denial(holding(a_rule()), at_night())
        assert found.message == (
            "start_date: 2030-04-01 21:00 is not in the opening hours (rule r-0, Europe/Berlin); choose other dates, "
            "as from 2030-04-02 06:00 to 2030-04-02 10:00"
        )
        assert found.data["fits"] == {"start_date": "2030-04-02T06:00:00Z", "end_date": "2030-04-02T10:00:00Z"}
        assert (found.data["limit"], found.pointer) == ("r-0", "/start_date")

    def test_an_end_at_night_is_denied_if_it_counts(self):
        late = asking(a_view(window("2030-04-01T14:00", "2030-04-01T20:00")))
        holding(a_rule()).check(late, {})
        assert (
            "2030-04-01 20:00 is not in the opening hours" in denial(holding(a_rule(apply="start_end")), late).message
        )
        whole = denial(holding(a_rule(apply="all")), late)
        assert whole.data["fits"]["start_date"] == "2030-04-02T06:00:00Z"

    def test_what_is_longer_than_any_day_is_to_be_shortened(self):
        long = asking(a_view(window("2030-04-01T14:00", "2030-04-03T14:00")))
        found = denial(holding(a_rule(apply="all")), long)
        assert found.message == (
            "end_date: a lease ends before the next closing time, and begins after the last (rule r-0, Europe/Berlin); "
            "choose another end, as 2030-04-01 18:00"
        )
        assert found.data["fits"] == {"end_date": "2030-04-01T18:00:00Z"}
        holding(a_rule(apply="all", longest_across="PT12H")).check(long, {})

    def test_a_lease_in_use_is_extended_up_to_the_closing_time(self):
        before = a_view(hours(-1, 1))
        longer = asking(a_view(hours(-1, 9)), before=before)
        found = denial(holding(a_rule(apply="all")), longer)
        assert found.data["fits"] == {"end_date": "2030-04-01T18:00:00Z"}

    def test_a_change_that_asks_for_no_more_time_is_never_denied(self):
        night = window("2030-04-01T21:00", "2030-04-02T01:00")
        shorter = asking(a_view(Window(night.start, night.end - HOUR), hosts=2), before=a_view(night))
        holding(a_rule(apply="all")).check(shorter, {})

    @pytest.mark.parametrize(
        ("applies_to", "denied"),
        [
            ({"projects": ["physics"]}, True),
            ({"projects": ["chemistry"]}, False),
            ({"except_projects": ["physics"]}, False),
            ({"resource_types": ["physical:host"]}, True),
            ({"resource_types": ["virtual:floatingip"]}, False),
        ],
    )
    def test_for_whom_a_rule_holds(self, applies_to, denied):
        enforcement = holding(a_rule(applies_to=applies_to))
        if denied:
            denial(enforcement, at_night())
        else:
            enforcement.check(at_night(), {})

    def test_nothing_holds_for_exempt_projects_nor_by_a_rule_that_is_not_active(self):
        holding(a_rule(), exempt=["physics"]).check(at_night(), {})
        asleep = holding({**a_rule(), "active": False})
        asleep.check(at_night(), {})
        assert not asleep.enabled

    def test_a_rule_that_came_meanwhile_is_looked_at_though_the_question_is_the_same(self):
        passed: dict[int, object] = {}
        enforcement = holding(a_rule(open=[{}]))
        enforcement.check(at_night(), passed)
        enforcement.take_rules([parse_rule("nights", a_rule(), revision=2, created_at=NOON)])
        with pytest.raises(UsageDenied):
            enforcement.check(at_night(), passed)


class TestGaps:
    GAP = a_rule("gap", at_least="PT12H", over="PT6H")

    def had(self, start: float, end: float, *, kind: str = "host", series: str | None = None) -> UsageRecord:
        return UsageRecord("other", kind, hours(start, end), series_id=series)

    def asked(self, start: float, end: float, *usage: UsageRecord, before=None, series: str | None = None):
        view = a_view(hours(start, end))
        if series is not None:
            of = PartOfSeries(series, datetime(2030, 4, 1, 12))
            view = replace(view, lease=replace(view.lease, series=of))
        return replace(asking(view, before=before), usage=usage)

    def test_the_next_lease_comes_later(self):
        found = denial(holding(self.GAP), self.asked(10, 12, self.had(-2, 8)))
        assert found.message == (
            "start_date, end_date: the project has a lease from 2030-04-01 10:00 to 2030-04-01 20:00, and between it "
            "and the next lie 12 hours at least (rule r-0); choose other dates, as from 2030-04-02 08:00 to "
            "2030-04-02 10:00"
        )
        fits = {"start_date": "2030-04-02T08:00:00Z", "end_date": "2030-04-02T10:00:00Z"}
        assert (found.data["value"], found.data["requested"], found.data["fits"]) == (43200, 7200, fits)

    def test_booking_in_front_counts_too(self):
        denial(holding(self.GAP), self.asked(1, 9, self.had(20, 21)))
        holding(self.GAP).check(self.asked(1, 7, self.had(20, 21)), {})

    def test_what_is_far_enough_or_followed_a_short_one_is_granted(self):
        holding(self.GAP).check(self.asked(20, 22, self.had(-2, 8)), {})
        holding(self.GAP).check(self.asked(8, 10, self.had(2, 8)), {})

    def test_occurrences_of_a_series_and_other_kinds_do_not_count(self):
        holding(self.GAP).check(self.asked(10, 12, self.had(-2, 8, series="s"), series="s"), {})
        denial(holding(self.GAP), self.asked(10, 12, self.had(-2, 8, series="s"), series="t"))
        holding(self.GAP).check(self.asked(10, 12, self.had(-2, 8, kind="floatingip")), {})
        any_kind = a_rule("gap", at_least="PT12H", same="any")
        denial(holding(any_kind), self.asked(10, 12, self.had(-2, 8, kind="floatingip")))

    def test_what_a_lease_had_itself_is_no_other_lease(self):
        before = a_view(hours(-8, 1))
        own = UsageRecord("l-1", "host", hours(-8, -2))
        holding(self.GAP).check(self.asked(-8, 9, own, before=before), {})

    def test_starts_are_those_that_all_rules_allow(self):
        enforcement = holding(self.GAP, a_rule())
        use = ProjectUse("physics", 1, (), usage=(self.had(-2, 8),))
        lease = a_view(hours(1, 3)).lease
        runs = enforcement.list_starts(lease, {"host"}, use, NOON, NOON + 48 * HOUR)
        # Until 18:00 on the first day it would lie within what the project has already.
        shown = [(f"{datetime.fromtimestamp(at, UTC):%d %H:%M:%S}") for run in runs for at in run]
        assert shown == ["01 12:00:00", "01 17:59:59", "02 08:00:00", "02 17:59:59", "03 06:00:00", "03 12:00:00"]
        assert enforcement.needs_use
        assert enforcement.usage_window(hours(1, 3)) == hours(-11, 15)

    @pytest.mark.parametrize("same", ["kind", "any"])
    @pytest.mark.parametrize("seed", range(20))
    def test_starts_are_those_at_which_a_booking_is_granted(self, seed, same):
        chance = random.Random(seed)
        gap = a_rule("gap", at_least=f"PT{chance.randint(1, 9)}H", over=f"PT{chance.randint(1, 3)}H", same=same)
        usage = tuple(
            UsageRecord(f"other-{number}", chance.choice(("host", "floatingip")), hours(start, start + length))
            for number in range(4)
            for start, length in [(chance.randint(-8, 56), chance.randint(1, 6))]
        )
        enforcement, length = holding(gap), chance.randint(1, 6)
        granted = [start for start in range(49) if self.is_granted(enforcement, start, length, usage)]
        use = ProjectUse("physics", 1, (), usage=usage)
        lease = a_view(hours(0, length)).lease
        runs = enforcement.list_starts(lease, {"host"}, use, NOON, NOON + 48 * HOUR)
        begin = int(NOON.timestamp())
        assert [s for s in range(49) if any(a <= begin + 3600 * s <= b for a, b in runs)] == granted

    def is_granted(self, enforcement, start: int, length: int, usage) -> bool:
        try:
            enforcement.check(self.asked(start, start + length, *usage), {})
        except UsageDenied:
            return False
        return True
