# SPDX-License-Identifier: Apache-2.0
"""What was refused, and who waited."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.reports.demand import (
    MOST,
    MOST_OF_PROJECT,
    DemandGroup,
    DemandKey,
    DemandRow,
    DemandSums,
    LeaseMoment,
    RefusalCounts,
    RefusedDemand,
    begin_of_hour,
    measure_waits,
    sum_demand,
)

EPOCH = datetime(2030, 4, 1, 13, tzinfo=UTC)
LAST = 40
HOUR = timedelta(hours=1)


def refused(**more) -> RefusedDemand:
    values = {
        "hour": EPOCH,
        "code": "not_enough_resources",
        "project_id": "physics",
        "resource_type": "virtual:instance",
        "units": 2,
        "seconds": 3600,
        "amounts": Amounts.of({"VCPU": 4}),
    }
    return RefusedDemand(**{**values, **more})


def test_the_same_request_within_an_hour_is_counted_and_not_told_apart():
    counts = RefusalCounts()
    for demand in (refused(), refused(seconds=7200), refused(), refused(hour=EPOCH + HOUR), refused(units=1)):
        counts.add(demand)
    assert counts.take() == [(refused(seconds=7200), 3), (refused(hour=EPOCH + HOUR), 1), (refused(units=1), 1)]
    assert counts.take() == []


def test_a_project_that_asks_for_ever_new_things_is_only_counted_after_some():
    counts = RefusalCounts()
    for units in range(1, MOST_OF_PROJECT + 51):
        counts.add(refused(units=units))
    counts.add(refused(project_id="chemistry"))
    # What is known already is told apart as before.
    counts.add(refused(units=1))
    found = counts.take()
    number = RefusedDemand(EPOCH, "not_enough_resources", "physics", "virtual:instance")
    assert dict(found)[number] == 50
    assert not number.is_known
    assert dict(found)[refused(units=1)] == 2
    assert dict(found)[refused(project_id="chemistry")] == 1


def test_memory_is_bounded_whatever_is_asked_for_and_no_refusal_is_lost():
    counts = RefusalCounts()
    for number in range(3 * MOST):
        counts.add(refused(project_id=f"project-{number}", units=number % 7 + 1))
    found = counts.take()
    assert len(found) <= MOST + 1
    assert sum(times for _, times in found) == 3 * MOST


def test_what_could_not_be_written_is_counted_again():
    counts = RefusalCounts()
    counts.add(refused())
    for demand, times in counts.take():
        counts.add(demand, times)
    counts.add(refused())
    assert counts.take() == [(refused(), 2)]


@given(st.data())
def test_two_requests_have_one_fingerprint_if_they_ask_for_the_same_in_one_hour(data):
    values = {
        "hour": st.sampled_from([EPOCH, EPOCH + HOUR]),
        "code": st.sampled_from(["others_wait", "limit_exceeded"]),
        "project_id": st.sampled_from(["a", "b"]),
        "resource_type": st.sampled_from(["a", "b"]),
        "requirement": st.sampled_from(["", "b"]),
        "units": st.integers(1, 2),
        "amounts": st.sampled_from([Amounts(), Amounts.of({"VCPU": 1})]),
        "seconds": st.integers(1, 2),
    }
    demands = st.builds(RefusedDemand, **values)
    one, other = data.draw(demands), data.draw(demands)
    assert (one.fingerprint == other.fingerprint) is (replace(one, seconds=0) == replace(other, seconds=0))


def test_an_hour_is_that_of_the_sites_clocks():
    late = EPOCH + timedelta(minutes=59, microseconds=5)
    assert begin_of_hour(late, ZoneInfo("UTC")) == EPOCH
    assert begin_of_hour(late, ZoneInfo("Asia/Kolkata")) == EPOCH + HOUR / 2


def at(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def moment(lease: str, second: float, status: str, *types: str) -> LeaseMoment:
    return LeaseMoment(lease, "physics", at(second), status, types or ("physical:host",))


HOSTS = DemandKey("physics", "physical:host")
PARTS = (Window(at(0), at(20)), Window(at(20), at(LAST)))


def test_a_lease_waits_until_it_is_promised_something():
    moments = [moment("a", 5.7, "WAITING"), moment("a", 25.2, "PENDING"), moment("a", 30, "ACTIVE")]
    assert measure_waits(moments, PARTS) == {
        (0, HOSTS): DemandSums(waited=15),
        (1, HOSTS): DemandSums(waited=5, granted=1),
    }


def test_what_cannot_be_made_is_not_granted_and_waits_again():
    told = ((1, "WAITING"), (4, "CREATING"), (6, "WAITING"), (9, "CREATING"), (11, "PENDING"))
    moments = [moment("a", second, status) for second, status in told]
    assert measure_waits(moments, PARTS[:1]) == {(0, HOSTS): DemandSums(waited=3 + 3, granted=1)}


def test_one_that_waits_in_vain_is_timed_out_and_one_that_is_withdrawn_neither():
    moments = [
        *(moment("a", 1, "WAITING"), moment("a", 4, "TIMED_OUT")),
        *(moment("b", 1, "WAITING"), moment("b", 3, "TERMINATED")),
        moment("c", 19, "WAITING"),
    ]
    assert measure_waits(moments, PARTS[:1]) == {(0, HOSTS): DemandSums(waited=3 + 2 + 1, timed_out=1)}


def test_a_lease_of_two_types_waits_for_each():
    found = measure_waits([moment("a", 38, "WAITING", "physical:host", "network")], PARTS)
    assert {key.resource_type: sums.waited for (_, key), sums in found.items()} == {"physical:host": 2, "network": 2}


seconds = st.integers(-10, LAST + 10)
statuses = st.sampled_from(["WAITING", "PENDING", "TIMED_OUT", "TERMINATED", "ACTIVE"])


@given(st.lists(st.lists(st.tuples(seconds, statuses), max_size=6), max_size=3))
def test_waits_are_those_of_looking_each_second(leases):
    """The oracle looks at each second of the period who waits then."""
    moments = []
    expected: Counter[int] = Counter()
    for number, told in enumerate(leases):
        told = sorted(told, key=lambda one: one[0])
        moments += [moment(str(number), second, status) for second, status in told]
        for second in range(LAST):
            last = [status for when, status in told if when <= second]
            expected[int(second >= 20)] += bool(last) and last[-1] == "WAITING"
    found: Counter[int] = Counter()
    for (part, _), sums in measure_waits(moments, PARTS).items():
        found[part] += sums.waited
    assert +found == +expected


def test_rows_are_the_sums_of_their_groups():
    few = DemandSums(2, 1, 60, {"VCPU": 240})
    sums = [
        (0, DemandKey("physics", "network", "others_wait"), few),
        (0, DemandKey("physics", "network", "limit_exceeded"), few),
        (1, DemandKey("physics", "network"), DemandSums(waited=7)),
        (0, DemandKey("chemistry", "network"), DemandSums(waited=3)),
    ]
    assert sum_demand(sums, PARTS, (DemandGroup.PROJECT,)) == (
        DemandRow(PARTS[0], ("chemistry",), DemandSums(waited=3)),
        DemandRow(PARTS[0], ("physics",), DemandSums(4, 2, 120, {"VCPU": 480})),
        DemandRow(PARTS[1], ("physics",), DemandSums(waited=7)),
    )
