# SPDX-License-Identifier: Apache-2.0
"""In which state resources were: traced from the journal, and added up as second by second."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.journal.entries import FieldChange
from blazar.model.journal.object_entries import compare_fields
from blazar.model.reports.capacity import AmountTime, CapacityGroup, CapacityGrouping, sum_capacity
from blazar.model.reports.states import (
    ConditionChange,
    ConditionSpan,
    ResourceCondition,
    ResourceState,
    TracedResource,
    list_states,
    trace_conditions,
)

EPOCH = datetime(2030, 4, 1, tzinfo=UTC)
LAST = 30
SIZE = Amounts.of({"VCPU": 8})
OPEN = ResourceCondition(capacity=SIZE)


def at(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def span(start: float, end: float) -> Window:
    return Window(at(start), at(end))


@dataclass(frozen=True, slots=True)
class Use:
    start: datetime
    end: datetime
    clean_at: datetime
    amounts: Amounts | None = None


def a_use(start: int, end: int, clean: int = 0, vcpus: int | None = None) -> Use:
    return Use(at(start), at(end), at(end + clean), None if vcpus is None else Amounts.of({"VCPU": vcpus}))


def a_resource(*, uses=(), closed=(), spans=None, condition=OPEN) -> TracedResource:
    return TracedResource(1, "host", "", spans or [ConditionSpan(span(0, LAST), condition)], uses, closed)


def states(resource: TracedResource) -> list[tuple[float, float, str]]:
    """Each state with its begin and end, joined where it goes on."""
    found: list[tuple[float, float, str]] = []
    for one in list_states(resource):
        begin, end = ((x - EPOCH).total_seconds() for x in (one.window.start, one.window.end))
        if found and found[-1][1:] == (begin, str(one.state)):
            begin = found.pop()[0]
        found.append((begin, end, str(one.state)))
    return found


BY_PROPERTY = CapacityGrouping((CapacityGroup.KIND, CapacityGroup.PROPERTY), "gpu")


def sums(resources, periods):
    return sum_capacity(resources, periods, BY_PROPERTY.group_of)


def test_a_use_is_followed_by_its_cleaning_and_then_the_resource_is_free():
    assert states(a_resource(uses=[a_use(5, 10, clean=3)])) == [
        (0, 5, "free"),
        (5, 10, "promised"),
        (10, 13, "cleaning"),
        (13, LAST, "free"),
    ]


def test_what_closes_a_resource_counts_before_what_is_promised_of_it():
    assert states(a_resource(uses=[a_use(5, 10)], closed=[span(8, 12)])) == [
        (0, 5, "free"),
        (5, 8, "promised"),
        (8, 12, "maintenance"),
        (12, LAST, "free"),
    ]


def test_a_disabled_resource_in_use_is_promised_as_its_lease_goes_on():
    disabled = ResourceCondition(disabled=True, capacity=SIZE)
    assert states(a_resource(uses=[a_use(5, 10)], condition=disabled)) == [
        (0, 5, "disabled"),
        (5, 10, "promised"),
        (10, LAST, "disabled"),
    ]


def test_a_failed_resource_has_failed_also_while_a_lease_has_it():
    failed = ResourceCondition(failed=True, capacity=SIZE)
    assert states(a_resource(uses=[a_use(5, 10)], closed=[span(1, 3)], condition=failed)) == [(0, LAST, "failed")]


def test_a_host_that_is_emptied_for_leases_is_out_of_use_until_one_has_it():
    shared = ResourceCondition(evacuable=True, capacity=SIZE)
    assert states(a_resource(uses=[a_use(5, LAST)], condition=shared)) == [(0, 5, "disabled"), (5, LAST, "promised")]


def test_shares_are_added_up_and_a_whole_use_takes_all():
    (row,) = sums(
        [a_resource(uses=[a_use(0, 10, vcpus=3), a_use(5, 15, vcpus=2), a_use(20, 22)])],
        [span(0, LAST)],
    ).values()
    assert row.amounts == {"VCPU": AmountTime(8 * LAST, 3 * 10 + 2 * 10 + 8 * 2)}
    assert row.seconds[ResourceState.PROMISED] == 17
    assert row.utilization == 17 / LAST


def test_nothing_that_could_be_used_has_no_utilization():
    failed = ResourceCondition(failed=True)
    (row,) = sums([a_resource(condition=failed)], [span(0, LAST)]).values()
    assert row.utilization is None
    assert row.registered == LAST


def test_the_seconds_go_to_the_value_that_a_property_had_then():
    spans = [
        ConditionSpan(span(12, LAST), ResourceCondition(properties={"gpu": "a100"})),
        ConditionSpan(span(4, 12), ResourceCondition()),
    ]
    rows = sums([a_resource(spans=spans)], [span(0, 20), span(20, LAST)])
    assert {key: row.registered for key, row in rows.items()} == {
        (0, ("host", "a100")): 8,
        (0, ("host", None)): 8,
        (1, ("host", "a100")): 10,
    }


def test_a_resource_was_what_the_entries_since_then_say_that_it_was_before():
    entries = [
        ConditionChange(at(0)),
        ConditionChange(at(5.9), (FieldChange("failure", None, "host is down"),)),
        ConditionChange(at(9), (FieldChange("failure", "host is down", None),)),
        ConditionChange(at(12), (FieldChange("capacity.VCPU", "4", "8"), FieldChange("properties.gpu", "v100", None))),
        ConditionChange(at(40), (FieldChange("disabled", "false", "true"),)),
    ]
    latest = ResourceCondition(disabled=True, capacity=SIZE)
    found = trace_conditions(latest, entries, registered_at=at(0), removed_at=None, period=span(2, LAST))
    before = ResourceCondition(capacity=Amounts.of({"VCPU": 4}), properties={"gpu": "v100"})
    assert [(one.window, one.condition) for one in found] == [
        (span(12, LAST), ResourceCondition(capacity=SIZE)),
        (span(9, 12), before),
        (span(5, 9), ResourceCondition(failed=True, capacity=before.capacity, properties=before.properties)),
        (span(2, 5), before),
    ]


def test_nothing_is_known_of_a_resource_before_its_registration_and_after_its_removal():
    found = trace_conditions(ResourceCondition(), [], registered_at=at(3.5), removed_at=at(7.5), period=span(0, LAST))
    assert [one.window for one in found] == [span(3, 7)]
    gone = trace_conditions(ResourceCondition(), [], registered_at=at(0), removed_at=at(0.5), period=span(0, LAST))
    assert gone == []


seconds = st.integers(0, LAST)
flags = st.booleans()
conditions = st.builds(
    lambda failed, disabled, evacuable, vcpus, gpu: ResourceCondition(
        failed, disabled, evacuable, Amounts.of({"VCPU": vcpus}), {} if gpu is None else {"gpu": gpu}
    ),
    flags,
    flags,
    flags,
    st.integers(0, 4),
    st.sampled_from([None, "a100", "v100"]),
)
uses = st.builds(
    lambda start, length, clean, vcpus: a_use(start, start + length, clean, vcpus),
    seconds,
    st.integers(0, 8),
    st.integers(0, 4),
    st.none() | st.integers(1, 3),
)
windows = st.builds(lambda start, length: span(start, start + length), seconds, st.integers(1, 8))


def fields_of(condition: ResourceCondition) -> dict[str, object]:
    """What the journal has of a resource, as ``object_entries`` lists it."""
    return {
        "failure": "host is down" if condition.failed else None,
        "disabled": condition.disabled,
        "attributes.evacuable": condition.evacuable,
        **{f"capacity.{name}": amount for name, amount in condition.capacity},
        **{f"properties.{name}": value for name, value in condition.properties.items()},
    }


def expected_state(condition: ResourceCondition, second: int, used: list[Use], closed: list[Window]) -> str:
    now = at(second)
    if condition.failed:
        return "failed"
    if any(window.contains(now) for window in closed):
        return "maintenance"
    if any(use.start <= now < use.end for use in used):
        return "promised"
    if any(use.end <= now < use.clean_at for use in used):
        return "cleaning"
    return "disabled" if condition.disabled or condition.evacuable else "free"


@given(
    first=conditions,
    later=st.lists(st.tuples(seconds, conditions), max_size=4),
    used=st.lists(uses, max_size=5),
    closed=st.lists(windows, max_size=2),
    registered=seconds,
    removed=st.none() | seconds,
    cuts=st.sets(st.integers(1, LAST - 1), max_size=3),
)
def test_the_sums_are_those_of_looking_each_second(first, later, used, closed, registered, removed, cuts):
    """The oracle looks at each second what holds then, by what was written until then."""
    written = sorted(later, key=lambda one: one[0])
    entries, latest = [], first
    for second, condition in written:
        changes = compare_fields(fields_of(latest), fields_of(condition))
        entries.append(ConditionChange(at(second), changes))
        latest = condition
    spans = trace_conditions(
        latest,
        entries,
        registered_at=at(registered),
        removed_at=None if removed is None else at(removed),
        period=span(0, LAST),
    )
    borders = [0, *sorted(cuts), LAST]
    periods = [span(*pair) for pair in zip(borders, borders[1:], strict=False)]
    resource = TracedResource(1, "host", "north", spans, used, closed)
    rows = sums([resource], periods)

    expected: Counter[tuple[object, ...]] = Counter()
    for second in range(registered, LAST if removed is None else min(removed, LAST)):
        condition = first
        for when, became in written:
            condition = became if when <= second else condition
        state = expected_state(condition, second, used, closed)
        period = next(number for number, one in enumerate(periods) if one.contains(at(second)))
        group = "host", condition.properties.get("gpu")
        expected[period, group, state] += 1
        expected[period, group, "registered VCPU"] += condition.capacity.get("VCPU")
        if state == "promised":
            whole = any(use.amounts is None and use.start <= at(second) < use.end for use in used)
            shares = sum(use.amounts.get("VCPU") for use in used if use.amounts and use.start <= at(second) < use.end)
            expected[period, group, "promised VCPU"] += condition.capacity.get("VCPU") if whole else shares
    found: Counter[tuple[object, ...]] = Counter()
    for (period, group), row in rows.items():
        for state, length in row.seconds.items():
            found[period, group, str(state)] += length
        for name, amount in row.amounts.items():
            found[period, group, f"registered {name}"] += amount.registered
            found[period, group, f"promised {name}"] += amount.promised
    assert +found == +expected
