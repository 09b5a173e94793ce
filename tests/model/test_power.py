# SPDX-License-Identifier: Apache-2.0
"""Power states are a table of moves; leads and spares are learned from what has happened."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.model.base.errors import WrongState
from blazar.model.base.week_hours import WEEKDAYS
from blazar.model.power.classes import HostRequest, PastWake, find_group, fix_spares, learn_classes, learn_spares
from blazar.model.power.learning import (
    FACTOR,
    FIRST_LEAD,
    HOUR,
    MARGIN,
    MEMORY,
    NearRequest,
    is_working_time,
    learn_lead,
    learn_spare,
    learn_wake,
)
from blazar.model.power.settings import USUAL_WAKE, ClassPower, PowerSettings, SpareSource
from blazar.model.power.spare_rules import parse_rule
from blazar.model.power.states import MOVES, HostPower, PowerReason, PowerState
from blazar.model.resources.resource import VOLUME
from tests.builders import a_host

MONDAY = datetime(2030, 4, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TIMEOUT = timedelta(minutes=15)


def test_a_host_goes_round_by_the_table():
    host = HostPower(1, PowerState.ON, MONDAY)
    for number, (state, reason) in enumerate(
        [
            (PowerState.GOING_OFF, PowerReason.IDLE),
            (PowerState.OFF, PowerReason.DONE),
            (PowerState.WAKING, PowerReason.START),
            (PowerState.ON, PowerReason.DONE),
        ]
    ):
        host = host.move(state, reason, MONDAY + number * HOUR)
        assert (host.state, host.reason, host.since) == (state, reason, MONDAY + number * HOUR)


@pytest.mark.parametrize(
    ("before", "after"),
    [(PowerState.ON, PowerState.OFF), (PowerState.OFF, PowerState.ON), (PowerState.ON, PowerState.WAKING)],
)
def test_no_step_is_left_out(before, after):
    with pytest.raises(WrongState, match=f"{before} does not become {after}"):
        HostPower(1, before, MONDAY).move(after, PowerReason.DONE, MONDAY)


def test_from_each_state_a_host_can_be_on_again():
    reached = {PowerState.ON}
    for _ in PowerState:
        reached |= {state for state in PowerState if reached & MOVES[state].keys()}
    assert reached == set(PowerState)


def test_a_lead_has_room_for_a_wake_that_fails_and_one_that_does_not():
    wakes = [5 * MINUTE] * 190 + [9 * MINUTE] * 10
    assert learn_lead(wakes, TIMEOUT) == TIMEOUT + 9 * MINUTE + MARGIN


def test_few_wakes_say_nothing_and_old_ones_are_forgotten():
    assert learn_lead([MINUTE] * 49, TIMEOUT) == FIRST_LEAD
    assert learn_lead([60 * MINUTE] * 10 + [MINUTE] * 200, TIMEOUT) == TIMEOUT + MINUTE + MARGIN
    assert learn_lead([], timedelta(hours=1)) == HOUR + MARGIN


def test_the_spare_is_a_share_at_least():
    assert learn_spare([], 500, now=MONDAY).hosts == 80
    assert learn_spare([], 500, now=MONDAY.replace(hour=23)).hosts == 40
    assert learn_spare([NearRequest(MONDAY, 50)], 500, now=MONDAY).hosts == 80


def test_the_spare_is_half_more_than_was_asked_for_within_an_hour():
    at = MONDAY - timedelta(days=3)
    assert at.weekday() == 4
    requests = [NearRequest(at, 8), NearRequest(at + 59 * MINUTE, 4), NearRequest(at + HOUR, 5)]
    assert learn_spare(requests, 20, now=MONDAY).hosts == 18
    assert learn_spare(requests, 10, now=MONDAY).hosts == 10


def test_working_hours_and_others_do_not_count_together():
    night = MONDAY - timedelta(days=1)
    requests = [NearRequest(night, 20), NearRequest(MONDAY - MINUTE, 2)]
    assert learn_spare(requests, 40, now=MONDAY).hosts == 7
    assert learn_spare(requests, 40, now=MONDAY.replace(hour=22)).hosts == 30


def test_what_holds_for_a_class_is_learned_of_its_own_hosts():
    groups = {1: "gpu=A100", 2: "gpu=none", 3: "gpu=none"}
    wakes = [PastWake(1, 14 * MINUTE)] * 60 + [PastWake(2, 3 * MINUTE)] * 25 + [PastWake(3, 4 * MINUTE)] * 25
    classes = learn_classes(groups, [*wakes, PastWake(9, HOUR)], TIMEOUT)
    assert {name: (limits.lead, limits.wake) for name, limits in classes.items()} == {
        "gpu=A100": (TIMEOUT + 14 * MINUTE + MARGIN, 14 * MINUTE),
        "gpu=none": (TIMEOUT + 4 * MINUTE + MARGIN, 4 * MINUTE),
    }


def test_the_time_of_a_wake_is_ten_minutes_until_more_is_known():
    assert learn_wake([MINUTE] * 49) == USUAL_WAKE
    assert learn_wake([MINUTE] * 50) == MINUTE


def test_a_request_counts_for_the_classes_whose_hosts_it_has_got():
    groups = dict.fromkeys(range(1, 11), "big") | dict.fromkeys(range(11, 31), "small")
    classes = {"big": ClassPower(lead=40 * MINUTE), "small": ClassPower(lead=20 * MINUTE)}
    near = [HostRequest("one", id_, MONDAY - HOUR, 30 * MINUTE) for id_ in (1, 2, 3, 4, 11, 12)]
    near += [HostRequest("two", id_, MONDAY - HOUR, timedelta(0)) for id_ in (11, 12, 13, 14)]
    spares = {name: limits.spare for name, limits in learn_spares(classes, groups, near, now=MONDAY).items()}
    # Half more than four of each; the two small hosts of the first lease were asked for before the lead of their class.
    assert spares == {"big": 6, "small": 6}


def test_hosts_are_told_apart_by_their_values_and_pools_by_their_kind():
    host = a_host(1, gpu="A100")
    assert find_group(host, ()) == ""
    assert find_group(host, ("gpu", "rack")) == "gpu=A100, rack=none"
    assert find_group(replace(host, kind=VOLUME), ("gpu",)) == "volume"


@given(st.lists(st.tuples(st.integers(0, 20 * 24 * 60), st.integers(1, 32)), max_size=40))
def test_the_spare_is_that_of_the_worst_hour(drawn):
    """The oracle looks at each request, and at all of the hour that ends with it."""
    requests = [NearRequest(MONDAY - minutes * MINUTE, hosts) for minutes, hosts in drawn]
    known = [r for r in requests if r.at > MONDAY - MEMORY and is_working_time(r.at)]
    worst = max((sum(o.hosts for o in known if r.at - HOUR < o.at <= r.at) for r in known), default=0)
    found = learn_spare(requests, 2000, now=MONDAY)
    assert (found.hosts, found.asked) == (max(320, ceil(FACTOR * worst)), worst)


def test_settings_that_let_nothing_happen_are_refused():
    for wrong in ({"ramp": 0}, {"cycles_per_day": 0}):
        with pytest.raises(ValueError, match="at least one host"):
            PowerSettings(**wrong)


def test_the_states_have_an_order_of_time():
    assert [(a, b) for a, b in pairwise(PowerState) if b in MOVES[a]] == list(pairwise(PowerState))


VALUES = st.sampled_from(["A100", "H100", None])
RULES = st.lists(
    st.tuples(
        st.sampled_from(["", "A100", "none"]),
        st.lists(st.integers(0, 6), max_size=3, unique=True),
        st.none() | st.tuples(st.integers(0, 24), st.integers(0, 24)),
        st.integers(0, 9) | st.just("learned"),
    ).filter(lambda drawn: any(part not in ("", [], None) for part in drawn[:3])),
    max_size=4,
)


def write_rule(gpu: str, days: list[int], hours: tuple[int, int] | None, number: object) -> str:
    parts = [f"gpu={gpu}"] if gpu else []
    parts += [" ".join(WEEKDAYS[day] for day in days)] if days else []
    parts += [f"{hours[0]:02}:00-{hours[1]:02}:00"] if hours else []
    return f"{'; '.join(parts)}: {number}"


@given(RULES, VALUES, st.integers(0, 7 * 24 - 1), st.none() | st.integers(0, 9))
def test_the_first_rule_that_fits_the_class_and_the_hour_is_the_spare(drawn, gpu, hour, usual):
    """The oracle walks from the begin of a rule's hours, hour by hour, to their end."""
    monday = datetime(2030, 4, 1, tzinfo=UTC)
    rules = [parse_rule(write_rule(*one), ("gpu",)) for one in drawn]
    classes = {"class": ClassPower(spare=77, spare_source=SpareSource.ASKED, asked_at_once=51)}
    found = fix_spares(classes, {"class": {"gpu": gpu}}, rules, usual, monday + hour * HOUR)["class"]
    expected = usual
    for wanted, days, hours, number in drawn:
        first, last = hours or (0, 24)
        covered = set()
        for day in days or range(7):
            at = first
            while True:
                covered.add((day * 24 + at) % (7 * 24))
                at += 1
                if at % 24 == last % 24:
                    break
        if wanted in ("", gpu or "none") and hour in covered:
            expected = None if number == "learned" else number
            break
    assert found.spare == (77 if expected is None else expected)
    assert found.spare_source is (SpareSource.ASKED if expected is None else SpareSource.FIXED)


def test_days_may_go_over_the_end_of_the_week_and_hours_over_midnight():
    rule = parse_rule("SA-MO; 22:00-06:00: 3", ())
    times = [(6, 21, False), (6, 22, True), (0, 5, True), (0, 23, True), (1, 5, True), (1, 6, False), (2, 1, False)]
    for day, hour, expected in times:
        assert rule.holds({}, datetime(2030, 4, 1 + day, hour, tzinfo=UTC)) is expected
