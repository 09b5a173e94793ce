# SPDX-License-Identifier: Apache-2.0
"""What each limit lets through, what it does not, and what it says then."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.enforcement import AllocatedResource
from blazar.enforcement.budget import ResourceHoursFilter, parse_period
from blazar.enforcement.limits import (
    MaxConcurrentLeasesFilter,
    MaxLeaseDurationFilter,
    MaxUnitsFilter,
    StartWindowFilter,
)
from blazar.enforcement.spend import SpendFilter
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import UsageDenied
from blazar.model.billing.published import draft_list
from blazar.model.billing.spending import ProjectSpending
from blazar.model.leases.limits import Bounds
from blazar.model.use.resource_hours import UsageRecord, find_longest_below, find_peak
from tests.enforcement.builders import DAY, HOUR, NOON, a_host, a_view, asking, hours, used
from tests.manager.billing.ledger import PRICES


def denial(rule, question) -> str:
    with pytest.raises(UsageDenied) as denied:
        rule.check(question)
    assert denied.value.status == 400
    return denied.value.message


def numbers(rule, question) -> tuple[object, ...]:
    """Return what programs read of a denial: limit, measure, value, used, requested, and what would fit."""
    with pytest.raises(UsageDenied) as denied:
        rule.check(question)
    data = denied.value.data
    assert list(data) == ["limit", "measure", "value", "used", "requested", "fits"]
    assert (denied.value.code, json.loads(json.dumps(data))) == ("limit_exceeded", data)
    return tuple(data.values())


class TestWhatProgramsReadOfADenial:
    def test_of_a_length(self):
        rule = MaxLeaseDurationFilter(2 * HOUR, extension=6 * HOUR)
        assert numbers(rule, asking(a_view(hours(1, 4)))) == (
            "max_lease_duration", "seconds", 7200, 0, 10800,
            {"end_date": "2030-04-01T15:00:00Z", "duration_seconds": 7200},
        )  # fmt: skip
        early = asking(a_view(hours(0, 12)), before=a_view(hours(0, 10)), now=NOON + 3 * HOUR)
        assert numbers(rule, early) == (
            "reservation_extension_window", "seconds", 21600, 0, 25200, {"retry_at": "2030-04-01T16:00:00Z"},
        )  # fmt: skip
        late = asking(a_view(hours(0, 13)), before=a_view(hours(0, 10)), now=NOON + 9 * HOUR)
        assert numbers(rule, late) == (
            "max_lease_duration", "seconds", 7200, 0, 10800,
            {"end_date": "2030-04-02T00:00:00Z", "duration_seconds": 7200},
        )  # fmt: skip

    def test_of_numbers_at_one_time(self):
        others = [used(hours(0, 2), 3)]
        assert numbers(MaxConcurrentLeasesFilter(1), asking(a_view(hours(1, 3)), others=others)) == (
            "max_concurrent_leases", "leases", 1, 1, 1,
            {"start_date": "2030-04-01T14:00:00Z", "end_date": "2030-04-01T15:00:00Z"},
        )  # fmt: skip
        assert numbers(MaxConcurrentLeasesFilter(0), asking()) == ("max_concurrent_leases", "leases", 0, 0, 1, {})
        assert numbers(MaxUnitsFilter(4), asking(a_view(hours(1, 3), hosts=2), others=others)) == (
            "max_units", "host", 4, 3, 2,
            {"amount": 1, "start_date": "2030-04-01T14:00:00Z", "end_date": "2030-04-01T15:00:00Z"},
        )  # fmt: skip

    def test_of_a_start(self):
        rule = StartWindowFilter(HOUR, DAY)
        assert numbers(rule, asking(a_view(hours(0.5, 3)))) == (
            "earliest_start", "seconds", 3600, 0, 1800, {"start_date": "2030-04-01T13:00:00Z"},
        )  # fmt: skip
        assert numbers(rule, asking(a_view(hours(25, 30)))) == (
            "latest_start", "seconds", 86400, 0, 90000, {"start_date": "2030-04-02T12:00:00Z"},
        )  # fmt: skip

    def test_of_a_budget_in_hours_that_are_rounded_up(self):
        rule = ResourceHoursFilter({"host": 5}, parse_period("month"))
        record = UsageRecord("other", "host", hours(-2.5, 0), 1)
        question = replace(asking(a_view(hours(1, 3), hosts=2)), usage=(record,))
        assert numbers(rule, question) == (
            "max_resource_hours", "host", 5, 3, 4, {"duration_seconds": 4500, "amount": 1},
        )  # fmt: skip

    def test_of_bounds(self):
        with pytest.raises(UsageDenied) as denied:
            Bounds(reservations=5).check_project(1, 3, more=3)
        assert tuple(denied.value.data.values()) == (
            "reservations_per_project", "reservations", 5, 3, 3, {"amount": 2},
        )  # fmt: skip


class TestMaxLeaseDuration:
    rule = MaxLeaseDurationFilter(2 * HOUR)

    def test_a_lease_of_just_the_limit_may_be_and_a_minute_more_may_not(self):
        self.rule.check(asking(a_view(hours(1, 3))))
        assert denial(self.rule, asking(a_view(hours(1, 3 + 1 / 60)))) == (
            "end_date: the lease would last 2 hours 1 minute; the limit is 2 hours (max_lease_duration); choose an end "
            "by 2030-04-01 15:00"
        )

    def test_without_a_limit_any_length_may_be(self):
        MaxLeaseDurationFilter(None).check(asking(a_view(hours(1, 10_000))))

    def test_an_extension_beyond_the_limit_may_not_be(self):
        assert "3 hours" in denial(self.rule, asking(a_view(hours(1, 4)), before=a_view(hours(1, 3))))

    def test_a_lease_from_before_the_limit_may_be_shortened_and_moved_but_not_prolonged(self):
        old = a_view(hours(1, 9))
        self.rule.check(asking(a_view(hours(1, 8)), before=old))
        self.rule.check(asking(a_view(hours(2, 10)), before=old))
        denial(self.rule, asking(a_view(hours(1, 10)), before=old))

    def test_projects_can_be_exempt(self):
        rule = MaxLeaseDurationFilter(2 * HOUR, exempt=["physics"])
        rule.check(asking(a_view(hours(1, 30))))
        denial(rule, asking(a_view(hours(1, 30), project="art")))


class TestExtensionWindow:
    rule = MaxLeaseDurationFilter(None, extension=timedelta(hours=6))

    def test_a_running_lease_is_extended_only_shortly_before_its_end(self):
        before, after = a_view(hours(0, 10)), a_view(hours(0, 12))
        assert denial(self.rule, asking(after, before=before, now=NOON + 4 * HOUR - timedelta(seconds=1))) == (
            "end_date: an active lease can be extended only in the last 6 hours before its end "
            "(reservation_extension_window); try again from 2030-04-01 16:00 on"
        )
        self.rule.check(asking(after, before=before, now=NOON + 4 * HOUR))

    def test_in_that_time_a_lease_is_extended_by_the_longest_length_once_more(self):
        rule = MaxLeaseDurationFilter(10 * HOUR, extension=timedelta(hours=6))
        before, late = a_view(hours(0, 10)), NOON + 9 * HOUR
        rule.check(asking(a_view(hours(0, 20)), before=before, now=late))
        assert denial(rule, asking(a_view(hours(0, 21)), before=before, now=late)) == (
            "end_date: the lease would be extended by 11 hours; the limit is 10 hours at a time "
            "(max_lease_duration); choose an end by 2030-04-02 08:00"
        )
        rule.check(asking(a_view(hours(0, 30)), before=a_view(hours(0, 20)), now=NOON + 19 * HOUR))

    def test_without_that_time_or_before_the_start_the_whole_length_counts(self):
        late = NOON + 9 * HOUR
        denial(MaxLeaseDurationFilter(10 * HOUR), asking(a_view(hours(0, 11)), before=a_view(hours(0, 10)), now=late))
        rule = MaxLeaseDurationFilter(10 * HOUR, extension=timedelta(hours=6))
        denial(rule, asking(a_view(hours(1, 12)), before=a_view(hours(1, 11))))

    def test_other_changes_and_leases_that_have_not_started_are_free(self):
        self.rule.check(asking(a_view(hours(0, 9)), before=a_view(hours(0, 10))))
        self.rule.check(asking(a_view(hours(0, 10), hosts=2), before=a_view(hours(0, 10))))
        self.rule.check(asking(a_view(hours(1, 20)), before=a_view(hours(1, 10))))
        self.rule.check(asking(a_view(hours(0, 30))))


class TestMaxConcurrentLeases:
    rule = MaxConcurrentLeasesFilter(2)

    def test_it_is_the_number_at_one_time_that_counts(self):
        one_after_the_other = [used(hours(0, 2)), used(hours(2, 4)), used(hours(4, 6))]
        self.rule.check(asking(a_view(hours(0, 6)), others=one_after_the_other))
        side_by_side = [used(hours(0, 3)), used(hours(2, 4))]
        assert denial(self.rule, asking(a_view(hours(1, 3)), others=side_by_side)) == (
            "start_date, end_date: the project has 2 other leases at one time between 2030-04-01 13:00 and 2030-04-01 "
            "15:00, and may have 2 at a time (max_concurrent_leases); choose other dates, as from 2030-04-01 13:00 to "
            "2030-04-01 14:00, or end one of them"
        )
        one = [used(hours(0, 9))]
        assert denial(MaxConcurrentLeasesFilter(1), asking(a_view(hours(1, 3)), others=one)).endswith(
            "has 1 other lease at one time between 2030-04-01 13:00 and 2030-04-01 15:00, and may have 1 at a time "
            "(max_concurrent_leases); choose other dates, or end one of them"
        )

    def test_a_lease_that_stays_within_its_own_time_is_never_denied(self):
        many = [used(hours(0, 9), lease=str(n)) for n in range(5)]
        self.rule.check(asking(a_view(hours(1, 3)), before=a_view(hours(1, 4)), others=many))
        denial(self.rule, asking(a_view(hours(1, 5)), before=a_view(hours(1, 4)), others=many))

    def test_a_limit_of_none_speaks_of_no_other_dates(self):
        assert denial(MaxConcurrentLeasesFilter(0), asking()) == (
            "the project may have no leases (max_concurrent_leases is 0); ask your operator to raise the limit"
        )

    def test_without_a_limit_any_number_may_be(self):
        MaxConcurrentLeasesFilter(None).check(asking(others=[used(hours(0, 9))] * 99))


NOTHING = [
    MaxConcurrentLeasesFilter(0),
    MaxUnitsFilter(0),
    ResourceHoursFilter({"host": 0}, parse_period("month")),
    ResourceHoursFilter({"host": 0}, parse_period("7")),
    SpendFilter(0),
]


@pytest.mark.parametrize("rule", NOTHING, ids=["leases", "hosts", "hours of months", "hours of days", "money"])
def test_who_may_have_nothing_is_not_told_to_ask_for_less_or_another_time(rule):
    lists = (draft_list(PRICES, None, now=NOON - DAY).parse(),)
    question = replace(asking(a_view()), spending=ProjectSpending(lists))
    assert denial(rule, question).endswith("; ask your operator to raise the limit")


class TestMaxUnits:
    rule = MaxUnitsFilter(4)

    def test_of_more_hosts_than_the_project_may_have_no_other_dates_are_proposed(self):
        assert denial(self.rule, asking(a_view(hosts=5))).endswith("; ask for fewer")

    def test_hosts_of_all_leases_at_one_time_count_together(self):
        self.rule.check(asking(a_view(hours(1, 3), hosts=2), others=[used(hours(0, 2), 2), used(hours(2, 3), 2)]))
        assert denial(self.rule, asking(a_view(hours(1, 3), hosts=2), others=[used(hours(0, 2), 3)])) == (
            "reservations: the lease would have 2 hosts, and of the 4 that the project may have at a time (max_units) "
            "1 is left between 2030-04-01 13:00 and 2030-04-01 15:00; ask for fewer, or choose other dates, as from "
            "2030-04-01 14:00 to 2030-04-01 15:00"
        )

    def test_a_lease_with_no_more_hosts_in_its_own_time_is_never_denied(self):
        before = a_view(hours(1, 4), hosts=9)
        self.rule.check(asking(a_view(hours(2, 4), hosts=8), before=before))
        denial(self.rule, asking(a_view(hours(2, 5), hosts=8), before=before))
        denial(self.rule, asking(a_view(hours(1, 4), hosts=10), before=before))

    def test_a_lease_without_hosts_takes_none(self):
        self.rule.check(asking(a_view(hosts=0), others=[used(hours(0, 9), 99)]))

    def test_a_limit_of_none_denies_every_host(self):
        assert "0 are left" in denial(MaxUnitsFilter(0), asking())


class TestMaxUnitsOfOtherThings:
    rule = MaxUnitsFilter(0, of={"instance": 6, "vcpu": 16})

    def servers(self, window, number: int, vcpus: int = 2):
        per_instance = Amounts.of({"VCPU": vcpus})
        return replace(
            a_view(window),
            allocated_resources=(AllocatedResource("r-1", a_host(), number, whole=False, per_instance=per_instance),),
        )

    def held(self, window, number: int, vcpus: int = 2) -> UsageRecord:
        return UsageRecord("other", "host", window, number, Amounts.of({"VCPU": vcpus}))

    def asked(self, view, *held: UsageRecord, before=None, now=NOON):
        return replace(asking(view, before=before, now=now), usage=held)

    def test_servers_and_their_vcpus_count_at_one_time_and_whole_hosts_do_not(self):
        self.rule.check(self.asked(self.servers(hours(1, 3), 6)))
        assert denial(self.rule, self.asked(self.servers(hours(1, 3), 4), self.held(hours(2, 9), 3))) == (
            "reservations: the lease would have 4 instances, and of the 6 that the project may have at a time "
            "(max_units_of instance) 3 are left between 2030-04-01 13:00 and 2030-04-01 15:00; ask for fewer, or "
            "choose other dates, as from 2030-04-01 13:00 to 2030-04-01 14:00"
        )
        message = denial(self.rule, self.asked(self.servers(hours(1, 3), 2, 8), self.held(hours(0, 2), 1)))
        assert "would have 16 vcpus, and of the 16" in message
        assert "(max_units_of vcpu) 14 are left" in message
        self.rule.check(self.asked(self.servers(hours(2, 3), 2, 8), self.held(hours(0, 2), 1)))

    def test_what_the_lease_itself_had_before_does_not_count_against_it(self):
        view = self.servers(hours(0, 9), 5)
        past = self.held(hours(0, 2), 4)
        self.rule.check(self.asked(view, past, before=self.servers(hours(0, 9), 2), now=NOON + 2 * HOUR))

    def test_what_asks_for_no_more_is_never_denied(self):
        before, over = self.servers(hours(1, 9), 8, 9), self.held(hours(0, 9), 9)
        self.rule.check(self.asked(self.servers(hours(2, 9), 7, 9), over, before=before))
        denial(self.rule, self.asked(self.servers(hours(2, 10), 7, 9), over, before=before))

    def test_what_is_not_named_has_no_limit(self):
        MaxUnitsFilter(None, of={"instance": -1}).check(self.asked(self.servers(hours(1, 3), 99)))


class TestStartWindow:
    rule = StartWindowFilter(HOUR, 7 * DAY)

    def test_a_start_too_soon_is_denied_and_told_when_it_may_be(self):
        now = NOON + timedelta(seconds=20)
        self.rule.check(asking(a_view(hours(1, 3)), now=now))
        message = denial(self.rule, asking(a_view(hours(0.5, 3)), now=now))
        assert message == (
            "start_date: a lease must be requested 1 hour ahead (earliest_start); the earliest start is "
            "2030-04-01 13:01"
        )

    def test_a_start_too_far_ahead_is_denied(self):
        self.rule.check(asking(a_view(hours(7 * 24, 7 * 24 + 1))))
        assert "at most 7 days from now (latest_start), by 2030-04-08 12:00" in denial(
            self.rule, asking(a_view(hours(7 * 24 + 1, 7 * 24 + 2)))
        )

    def test_a_lease_that_starts_when_it_did_is_not_looked_at(self):
        self.rule.check(asking(a_view(hours(0, 5)), before=a_view(hours(0, 2)), now=NOON + HOUR))
        denial(self.rule, asking(a_view(hours(0.25, 5)), before=a_view(hours(2, 5))))

    def test_a_start_now_is_fine_where_no_lead_is_asked_for(self):
        StartWindowFilter(None, DAY).check(asking(a_view(hours(0, 1)), now=NOON + timedelta(seconds=59)))


def test_the_peak_is_the_most_at_one_instant_and_touching_windows_do_not_add_up():
    assert find_peak(hours(0, 10), []) == 0
    assert find_peak(hours(0, 10), [(hours(1, 2), 3), (hours(2, 3), 4), (hours(-5, 1), 2)]) == 4
    assert find_peak(hours(0, 10), [(hours(-9, 2), 3), (hours(1, 20), 4), (hours(10, 11), 50)]) == 7


def test_the_longest_part_below_a_sum_is_found():
    busy = [(hours(2, 3), 3), (hours(3, 5), 4), (hours(8, 20), 4)]
    assert find_longest_below(hours(0, 10), busy, 3) == hours(0, 3) == find_longest_below(hours(0, 8), busy, 3)
    assert find_longest_below(hours(0, 10), busy, 2) == hours(5, 8)
    assert find_longest_below(hours(0, 10), busy, 4) == hours(0, 10)
    assert find_longest_below(hours(3, 5), busy, 3) is None
    assert find_longest_below(hours(0, 10), [], -1) is None
