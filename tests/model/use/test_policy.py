# SPDX-License-Identifier: Apache-2.0
"""Use it or lose it: what looks at a lease lead to, as a pure function."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.manager.use import unused
from blazar.manager.use.unused import Surroundings, UseVerdict, judge_usage, usage_of
from blazar.model.base.errors import Conflict
from blazar.model.use.policy import Usage, UseMode, UsePolicies, UsePolicy, UseStep, UseWatch

START = datetime(2030, 1, 7, 8, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
POLICY = UsePolicy(UseMode.ON)
IDLE = replace(POLICY, idle_after=timedelta(hours=24))
AROUND = Surroundings(end=START + timedelta(days=7), changed_at=START, due=1, leases=100)
UNUSED, USED, QUIET, UNKNOWN = Usage.UNUSED, Usage.USED, Usage.IDLE, Usage.UNKNOWN


def run(answers, policy: UsePolicy = POLICY, around: Surroundings = AROUND, watch: UseWatch | None = None):
    """Look whenever the last look says so, and yield the time, the answer and the verdict of each look."""
    watch = watch or unused.begin_watch(policy, START)
    now = unused.first_check(watch)
    for found in answers:
        verdict = judge_usage(watch, found, "", around, now)
        yield now, found, verdict
        watch = verdict.watch
        if verdict.next_at is None or verdict.next_at >= around.end:
            return
        assert verdict.next_at > now
        now = verdict.next_at


def steps(answers, *args, **more) -> list[tuple[timedelta, UseStep]]:
    """Return when something was done, counted from the start."""
    return [(at - START, v.step) for at, _, v in run(answers, *args, **more) if v.step is not UseStep.NOTHING]


def at_step(step: UseStep, watch: UseWatch | None = None) -> UseVerdict:
    """Return the look that led to a step, of a lease in which nothing was started."""
    return next(verdict for _, _, verdict in run([UNUSED] * 20, watch=watch) if verdict.step is step)


def test_a_lease_in_which_nothing_was_started_is_warned_noticed_and_released():
    assert steps([UNUSED] * 10) == [
        (6 * HOUR, UseStep.WARNED),
        (9 * HOUR - 15 * MINUTE, UseStep.NOTICED),
        (9 * HOUR, UseStep.RELEASED),
    ]


def test_a_lease_that_is_used_is_looked_at_once():
    assert [(at - START, v.step, v.next_at) for at, _, v in run([USED] * 9)] == [(6 * HOUR, UseStep.NOTHING, None)]


def test_any_use_takes_the_warning_back():
    looks = [v for _, _, v in run([UNUSED, UNUSED, USED])]
    assert [v.watch.release_at for v in looks] == [START + 9 * HOUR, START + 9 * HOUR, None]
    assert looks[-1].watch.used_at == START + 8 * HOUR


def test_what_is_stopped_for_long_is_released_only_if_the_policy_says_so():
    assert steps([USED, *[QUIET] * 99]) == []
    assert steps([USED, *[QUIET] * 99], IDLE) == [
        (23 * HOUR, UseStep.WARNED),
        (26 * HOUR - 15 * MINUTE, UseStep.NOTICED),
        (26 * HOUR, UseStep.RELEASED),
    ]


def test_idling_counts_from_the_first_look_that_found_it_also_if_nothing_ever_ran():
    assert steps([QUIET] * 99, IDLE)[-1] == (25 * HOUR, UseStep.RELEASED)
    assert steps([QUIET] * 20 + [USED] + [QUIET] * 99, IDLE)[-1] == (46 * HOUR, UseStep.RELEASED)


def test_what_is_gone_after_its_use_idles():
    assert steps([USED, *[UNUSED] * 99], IDLE)[-1] == (26 * HOUR, UseStep.RELEASED)


@pytest.mark.parametrize(
    "around",
    [
        replace(AROUND, doubt="the lease is degraded"),
        replace(AROUND, end=START + 11 * HOUR),
        replace(AROUND, changed_at=START + 365 * 24 * HOUR),
    ],
)
def test_in_doubt_it_stays_and_nobody_is_warned(around):
    assert steps([UNUSED] * 40, around=around) == []


def test_a_doubt_takes_the_warning_back_and_the_next_has_its_whole_time():
    first = list(run([UNUSED, UNUSED]))[-1][2]
    doubted = judge_usage(first.watch, UNUSED, "", replace(AROUND, doubt="a host is down"), START + 8 * HOUR)
    assert (doubted.watch.release_at, doubted.watch.warned_at) == (None, None)
    again = judge_usage(doubted.watch, UNUSED, "", AROUND, START + 9 * HOUR)
    assert (again.step, again.watch.release_at) == (UseStep.WARNED, START + 12 * HOUR)


def test_a_lease_that_was_changed_within_the_last_hour_stays():
    noticed = at_step(UseStep.NOTICED)
    changed = replace(AROUND, changed_at=noticed.next_at - 59 * MINUTE)
    kept = judge_usage(noticed.watch, UNUSED, "", changed, noticed.next_at)
    assert (kept.step, kept.watch.release_at) == (UseStep.NOTHING, None)


def test_after_a_look_that_failed_the_last_notice_is_repeated():
    noticed = at_step(UseStep.NOTICED)
    failed = judge_usage(noticed.watch, UNKNOWN, "", AROUND, START + 9 * HOUR)
    assert (failed.step, failed.next_at) == (UseStep.NOTHING, START + 9 * HOUR + 10 * MINUTE)
    again = judge_usage(failed.watch, UNUSED, "", AROUND, failed.next_at)
    assert (again.step, again.watch.release_at) == (UseStep.NOTICED, START + 9 * HOUR + 25 * MINUTE)
    assert judge_usage(again.watch, UNUSED, "", AROUND, again.next_at).step is UseStep.RELEASED


def test_when_more_than_a_fifth_would_be_released_in_an_hour_nothing_is():
    noticed = at_step(UseStep.NOTICED)
    at = noticed.next_at
    full = judge_usage(noticed.watch, UNUSED, "", replace(AROUND, due=21), at)
    assert (full.step, full.watch.release_at) == (UseStep.HELD_BACK, at + HOUR)
    assert judge_usage(noticed.watch, UNUSED, "", replace(AROUND, due=20), at).step is UseStep.RELEASED
    # Three of a few are no sign of a broken probe.
    assert judge_usage(noticed.watch, UNUSED, "", replace(AROUND, due=3, leases=3), at).step is UseStep.RELEASED
    assert judge_usage(noticed.watch, UNUSED, "", replace(AROUND, due=4, leases=4), at).step is UseStep.HELD_BACK
    after = judge_usage(full.watch, UNUSED, "", AROUND, full.next_at)
    assert after.step is UseStep.NOTICED


def test_a_dry_run_does_the_same_and_says_whether_it_would_have_been_wrong():
    dry = replace(POLICY, mode=UseMode.DRY_RUN)
    assert [step for _, step in steps([UNUSED] * 9, dry)] == [UseStep.WARNED, UseStep.NOTICED, UseStep.RELEASED]
    *_, last = list(run([*[UNUSED] * 8, USED], dry))
    assert (last[2].step, last[2].next_at) == (UseStep.USED_LATER, None)
    assert [look.detail for look in last[2].watch.looks if look.step is UseStep.RELEASED] == [
        "would: nothing was started in it since 2030-01-07T08:00:00Z"
    ]


def test_an_owner_keeps_a_lease_once_and_for_as_long_as_it_was_unused():
    warned = at_step(UseStep.WARNED)
    mine = unused.keep(warned.watch, START + 8 * HOUR)
    assert unused.first_check(mine) == START + 14 * HOUR
    assert [step for _, step in steps([UNUSED] * 9, watch=mine)][-1] is UseStep.RELEASED
    again = at_step(UseStep.WARNED, mine)
    with pytest.raises(Conflict, match="kept once already"):
        unused.keep(again.watch, START + 16 * HOUR)
    assert unused.keep(again.watch, START + 16 * HOUR, again=True).release_at is None


def test_a_lease_that_nothing_threatens_is_not_kept():
    for watch in (None, unused.begin_watch(POLICY, START)):
        with pytest.raises(Conflict, match="nothing to keep it from"):
            unused.keep(watch, START)


def test_what_an_operator_holds_stays():
    assert steps([UNUSED] * 40, watch=unused.hold(unused.begin_watch(POLICY, START), held=True)) == []


def test_states_that_nobody_knows_count_as_used():
    assert usage_of({}) is UNUSED
    assert usage_of({"ERROR": 3, "DELETED": 1}) is UNUSED
    assert usage_of({"SHUTOFF": 2, "SHELVED_OFFLOADED": 1, "ERROR": 1}) is QUIET
    for state in ("ACTIVE", "BUILD", "RESIZE", "MIGRATING", "PAUSED", "SUSPENDED", "VERIFY_RESIZE", "attached", "NEW"):
        assert usage_of({state: 1, "SHUTOFF": 9}) is USED


def test_one_part_that_is_not_known_makes_the_lease_not_known():
    assert unused.joint_usage([UNUSED, UNKNOWN, USED]) is UNKNOWN
    assert unused.joint_usage([UNUSED, QUIET]) is QUIET
    assert unused.joint_usage([UNUSED, USED, QUIET]) is USED
    assert unused.joint_usage([UNUSED]) is UNUSED
    assert unused.joint_usage([]) is UNKNOWN


def test_of_several_types_the_most_patient_policy_counts():
    policies = UsePolicies(
        POLICY,
        {("network", ""): replace(POLICY, unused_after=48 * HOUR), ("", "exams"): UsePolicy(UseMode.OFF)},
        exempt=frozenset({"infra"}),
    )
    both = frozenset({"network", "physical:host"})
    assert policies.of_lease(both, "p").unused_after == 48 * HOUR
    assert policies.of_lease(both, "exams") is None
    assert policies.of_lease(both, "infra") is None
    assert policies.of_lease(frozenset(), "p") is None


def test_a_policy_of_minutes_is_not_put_off_by_the_start_itself():
    short = UsePolicy(UseMode.ON, timedelta(minutes=10), warn_before=timedelta(minutes=8), undo=MINUTE)
    assert steps([UNUSED] * 20, short) == [
        (2 * MINUTE, UseStep.WARNED),
        (9 * MINUTE, UseStep.NOTICED),
        (10 * MINUTE, UseStep.RELEASED),
    ]


ANSWERS = st.lists(st.sampled_from(list(Usage)), min_size=1, max_size=60)


@given(
    answers=ANSWERS,
    doubts=st.lists(st.sampled_from(["", "", "", "degraded"]), min_size=60, max_size=60),
    idle=st.sampled_from([None, timedelta(hours=4), timedelta(hours=24)]),
    delays=st.lists(st.integers(0, 400), min_size=60, max_size=60),
)
def test_nothing_is_released_without_good_looks_two_messages_and_their_time(answers, doubts, idle, delays):
    policy = replace(POLICY, idle_after=idle)
    watch, now = unused.begin_watch(policy, START), unused.first_check(unused.begin_watch(policy, START))
    past: list[tuple[datetime, Usage, UseVerdict]] = []
    for found, doubt, delay in zip(answers, doubts, delays, strict=False):
        # Managers may be down for a while.
        now += timedelta(minutes=delay)
        verdict = judge_usage(watch, found, "", replace(AROUND, doubt=doubt), now)
        past.append((now, found, verdict))
        if verdict.step is UseStep.RELEASED:
            assert found in (UNUSED, QUIET)
            assert not doubt
            _released_in_order(past, policy)
            return
        if verdict.next_at is None or verdict.next_at > AROUND.end:
            return
        watch, now = verdict.watch, verdict.next_at


def _released_in_order(past: list[tuple[datetime, Usage, UseVerdict]], policy: UsePolicy) -> None:
    at = past[-1][0]
    warned = max(i for i, (_, _, v) in enumerate(past) if v.step is UseStep.WARNED)
    noticed = max(i for i, (_, _, v) in enumerate(past) if v.step is UseStep.NOTICED)
    assert warned < noticed < len(past) - 1
    assert at - past[warned][0] >= policy.warn_before
    assert at - past[noticed][0] >= policy.undo
    # Since the warning nothing ran; since the last notice every look was good.
    assert all(found is not USED for _, found, _ in past[warned:])
    assert all(found not in (USED, UNKNOWN) for _, found, _ in past[noticed:])
    ever = any(found in (USED, QUIET) for _, found, _ in past)
    assert policy.idle_after is not None if ever else at - START >= policy.unused_after
