# SPDX-License-Identifier: Apache-2.0
"""The plan of sleep: what it never does, and what it does in which order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.power.traces import Month
from bench.power.world import World
from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.calendar.power import ROOM, STEP, HostOutlook, PowerLog, PowerPlan, Wake, plan
from blazar.model.calendar.demand import Demand
from blazar.model.power.settings import ClassPower, PowerSettings
from blazar.model.power.states import HostPower, PowerReason, PowerState
from blazar.model.resources.resource import HOST
from tests.builders import NOON, a_host, hours, promised

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SETTINGS = PowerSettings()
LEAD = SETTINGS.find_class("").lead
LONG_AGO = NOON - timedelta(days=3)


def on(id_: int, **more: object) -> HostPower:
    return replace(HostPower(id_, PowerState.ON, LONG_AGO), **more)


def asleep(id_: int, **more: object) -> HostPower:
    return replace(HostPower(id_, PowerState.OFF, LONG_AGO), **more)


def with_spare(spare: int, **more: object) -> PowerSettings:
    return replace(SETTINGS, classes={"": ClassPower(spare=spare)}, **more)


def plan_of(*hosts: HostPower, uses=None, log=None, settings=SETTINGS) -> PowerPlan:
    return plan(NOON, uses or {}, hosts, log or PowerLog(), settings)


def test_a_host_that_nobody_needs_is_switched_off():
    assert plan_of(on(1)) == PowerPlan(off=(1,))


@pytest.mark.parametrize(
    ("host", "use"),
    [
        (on(1), HostOutlook(in_use=True)),
        (on(1), HostOutlook(next_start=NOON + LEAD + SETTINGS.min_off - MINUTE)),
        (on(1), HostOutlook(idle_since=NOON - SETTINGS.idle_after + MINUTE)),
        (on(1, since=NOON - SETTINGS.min_on + MINUTE), HostOutlook()),
        (on(1, sleeps=False), HostOutlook()),
        (on(1, usable=False), HostOutlook()),
        (on(1, kept_until=NOON + MINUTE), HostOutlook()),
        (replace(on(1), state=PowerState.GOING_OFF), HostOutlook()),
        (replace(on(1), state=PowerState.WAKING), HostOutlook()),
    ],
    ids=["used", "promised", "just used", "just woken", "kept", "failed", "left alone", "going off", "waking"],
)
def test_a_host_stays_on(host, use):
    assert plan_of(host, uses={1: use}) == PowerPlan()


def test_a_host_sleeps_if_it_can_for_long_enough():
    assert plan_of(on(1), uses={1: HostOutlook(next_start=NOON + LEAD + SETTINGS.min_off)}).off == (1,)


def test_a_host_is_not_switched_off_more_often_than_allowed():
    assert plan_of(on(1), on(2), log=PowerLog({1: SETTINGS.cycles_per_day, 2: 1})).off == (2,)


def test_a_host_is_woken_when_the_lead_begins():
    early, due = NOON + LEAD + STEP, NOON + LEAD + STEP - timedelta(seconds=1)
    assert plan_of(asleep(1), uses={1: HostOutlook(next_start=early)}) == PowerPlan()
    assert plan_of(asleep(1), uses={1: HostOutlook(next_start=due)}).wake == (Wake(1, PowerReason.START),)


def test_a_failed_host_that_is_needed_is_woken_too():
    found = plan_of(asleep(1, usable=False), uses={1: HostOutlook(next_start=NOON + LEAD)})
    assert found.wake == (Wake(1, PowerReason.START),)


def test_a_host_that_is_to_stay_on_from_now_on_is_woken():
    assert plan_of(asleep(1, sleeps=False)).wake == (Wake(1, PowerReason.OPERATOR),)


def test_many_that_are_needed_together_are_woken_so_much_earlier():
    """With a ramp of ten a minute, 25 hosts take three of them: the first begin two minutes before the lead."""
    hosts = [asleep(id_) for id_ in range(25)]
    need = {id_: HostOutlook(next_start=NOON + LEAD + 3 * MINUTE) for id_ in range(25)}
    woken = []
    for minute in range(5):
        found = plan(
            NOON + minute * MINUTE, need, [h for h in hosts if h.resource_id not in woken], PowerLog(), SETTINGS
        )
        assert len(found.wake) <= SETTINGS.ramp
        woken += [wake.resource_id for wake in found.wake]
    assert sorted(woken) == list(range(25))


def test_the_spare_stays_awake_and_is_filled_by_those_that_sleep_longest():
    needed_first = {1: HostOutlook(next_start=NOON + 40 * HOUR), 2: HostOutlook(next_start=NOON + 30 * HOUR)}
    assert plan_of(on(1), on(2), on(3), uses=needed_first, settings=with_spare(1)).off == (3, 1)
    found = plan_of(asleep(1), asleep(2), uses=needed_first, settings=with_spare(1))
    assert found.wake == (Wake(1, PowerReason.SPARE),)


def test_a_spare_is_free_for_as_long_as_most_leases_take():
    """One that is promised earlier sleeps first, and counts only where there is none with more room."""
    uses = {1: HostOutlook(next_start=NOON + ROOM - MINUTE), 2: HostOutlook(next_start=NOON + 10 * HOUR)}
    assert plan_of(on(1), on(2), on(3), uses=uses, settings=with_spare(1)).off == (2, 1)
    assert plan_of(on(1), on(2), asleep(3), uses=uses, settings=with_spare(1)).wake == (Wake(3, PowerReason.SPARE),)
    assert plan_of(on(1), on(2), uses=uses, settings=with_spare(1)).off == (2,)
    assert plan_of(asleep(1), asleep(2), uses=uses, settings=with_spare(1)).wake == (Wake(1, PowerReason.SPARE),)


def test_a_host_that_wakes_counts_as_a_spare_and_one_that_is_promised_soon_does_not():
    waking = replace(asleep(2), state=PowerState.WAKING)
    assert plan_of(asleep(1), waking, settings=with_spare(1)) == PowerPlan()
    soon = {2: HostOutlook(next_start=NOON + MINUTE)}
    assert plan_of(asleep(1), waking, uses=soon, settings=with_spare(1)).wake == (Wake(1, PowerReason.SPARE),)


def test_each_class_has_its_own_spare():
    settings = replace(SETTINGS, classes={"gpu": ClassPower(spare=1)})
    assert plan_of(on(1, group="gpu"), on(2), settings=settings).off == (2,)


def test_wakes_for_starts_come_before_spares_and_sleep_within_the_ramp():
    need = {1: HostOutlook(next_start=NOON + MINUTE)}
    settings = with_spare(2, ramp=2)
    hosts = (asleep(1), asleep(2), on(3, group="other"))
    assert plan_of(*hosts, uses=need, settings=settings).wake == (
        Wake(1, PowerReason.START),
        Wake(2, PowerReason.SPARE),
    )
    assert plan_of(*hosts, uses=need, settings=settings).off == ()
    assert plan_of(*hosts, uses=need, log=PowerLog(changes=1), settings=settings).wake == (Wake(1, PowerReason.START),)
    assert plan_of(*hosts, uses=need, log=PowerLog(changes=2), settings=settings) == PowerPlan()


USES = st.builds(
    lambda used, idle, start: HostOutlook(
        used, None if idle is None else NOON - idle * MINUTE, None if start is None else NOON + start * MINUTE
    ),
    st.booleans(),
    st.none() | st.integers(0, 60),
    st.none() | st.integers(0, 400),
)
HOSTS = st.builds(
    lambda state, since, sleeps, usable, group: (state, NOON - since * MINUTE, sleeps, usable, group),
    st.sampled_from(PowerState),
    st.integers(0, 400),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["", "gpu"]),
)


@given(st.lists(st.tuples(HOSTS, USES), max_size=30), st.integers(0, 12), st.integers(0, 10), st.integers(0, 12))
def test_whatever_there_is_nothing_needed_is_switched_off_and_the_ramp_holds(drawn, changes, spare, ramp):
    settings = replace(SETTINGS, ramp=ramp + 1, classes={"gpu": ClassPower(spare=spare)})
    hosts = [
        HostPower(id_, state, since, sleeps=sleeps, usable=usable, group=group)
        for id_, ((state, since, sleeps, usable, group), _) in enumerate(drawn)
    ]
    uses = {id_: use for id_, (_, use) in enumerate(drawn)}
    found = plan(NOON, uses, hosts, PowerLog(changes=changes), settings)
    assert len(found.off) + len(found.wake) <= max(0, settings.ramp - changes)
    assert len({*found.off, *(wake.resource_id for wake in found.wake)}) == len(found.off) + len(found.wake)
    for id_ in found.off:
        host, use = hosts[id_], uses[id_]
        assert host.state is PowerState.ON
        assert host.sleeps
        assert not use.in_use
        assert use.next_start is None or use.next_start >= NOON + LEAD + settings.min_off
    assert all(hosts[wake.resource_id].state is PowerState.OFF for wake in found.wake)
    if len(found.wake) < max(0, settings.ramp - changes):
        missed = {h.resource_id for h in hosts if h.state is PowerState.OFF and is_late(uses[h.resource_id])}
        assert missed <= {wake.resource_id for wake in found.wake}
    left = [h for h in hosts if h.group == "gpu" and h.resource_id not in found.off and is_spare(h, uses)]
    assert len(left) >= min(spare, sum(h.group == "gpu" and is_spare(h, uses) for h in hosts))


def is_late(use: HostOutlook) -> bool:
    return use.in_use or (use.next_start is not None and use.next_start <= NOON + LEAD)


def is_spare(host: HostPower, uses) -> bool:
    use = uses[host.resource_id]
    awake = host.state in (PowerState.ON, PowerState.WAKING)
    return awake and host.usable and not use.in_use and (use.next_start is None or use.next_start >= NOON + LEAD)


def test_a_plan_for_five_hundred_hosts_takes_milliseconds():
    hosts = [on(id_) if id_ % 2 else asleep(id_) for id_ in range(500)]
    uses = {id_: HostOutlook(next_start=NOON + timedelta(minutes=id_)) for id_ in range(500)}
    times = []
    for _ in range(5):
        begin = perf_counter()
        plan(NOON, uses, hosts, PowerLog(), with_spare(80))
        times.append(perf_counter() - begin)
    assert min(times) < 0.02


def test_a_start_that_is_near_takes_hosts_that_are_awake_first():
    hosts = [a_host(id_) for id_ in range(6)]
    snapshot = Snapshot(hosts, Occupancy(), asleep=frozenset({0, 1, 2}))
    for strategy in Strategy:
        assert place([Demand(HOST, 3, 3)], snapshot, strategy=strategy).resource_ids == {3, 4, 5}
    assert {3, 4, 5} < place([Demand(HOST, 4, 4)], snapshot).resource_ids


def test_a_compact_placement_leaves_unused_hosts_to_sleep():
    window = hours(0, 2)
    others = [
        promised(0, hours(-5, -1)),
        promised(1, hours(4, 5)),
        promised(1, hours(-9, -8)),
        promised(2, hours(2, 3)),
    ]
    snapshot = Snapshot([a_host(id_) for id_ in range(4)], Occupancy.of_allocations(window, others))
    taken = [place([Demand(HOST, n, n)], snapshot, strategy=Strategy.COMPACT).resource_ids for n in (1, 2, 3)]
    assert taken == [{2}, {2, 0}, {2, 0, 1}]


def test_days_of_a_small_cloud_keep_all_starts_in_time():
    """The simulation asserts at each step that no host sleeps that is needed; here it is short, with no failures."""
    figures = World(Month("at-once", seed=1, hosts=24, days=5, spare=12, failing=0)).run()
    assert figures["starts"] > 5
    assert figures["late"] == 0
    assert figures["saved"] > 0.2


@pytest.mark.slow
@pytest.mark.parametrize(("mix", "seed"), [("ahead", 2), ("at-once", 3)])
def test_a_month_saves_two_fifths_and_starts_in_time(mix, seed):
    """Two months of ``docs/power.md``, with the options as they are if nobody sets them."""
    figures = World(Month(mix, seed=seed, learned=True)).run()
    assert figures["saved"] >= 0.4
    assert figures["late"] < 0.001 * figures["starts"]
    assert figures["late_planned"] == 0
    assert figures["most_cycles"] <= SETTINGS.cycles_per_day
