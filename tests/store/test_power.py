# SPDX-License-Identifier: Apache-2.0
"""The store of power: what a plan is made of, the moves that follow, and the turn of the plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.power import HostOutlook
from blazar.model.base.errors import ClaimLost
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.classes import PastWake
from blazar.model.power.hosts import PowerChange
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.resources.resource import HOST, Resource
from blazar.store.power.rows import PowerMove
from blazar.store.power.states import KEPT, KEPT_REHEARSED
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, booked, hours

MINUTE = timedelta(minutes=1)
TTL = timedelta(seconds=20)
SWITCH = PowerAddress(PowerAdapter.SIMULATED, "node-1")


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def change(store: Store, host: Resource, wanted: PowerChange, *, at=NOON) -> None:
    store.power_hosts.change(host.external_id, wanted, at=at)


def keep(store: Store, host: Resource, policy: PowerPolicy = PowerPolicy.KEEP) -> None:
    change(store, host, PowerChange(policy=policy))


def switch(store: Store, host: Resource, *, at=NOON) -> None:
    """Give a host a switch."""
    change(store, host, PowerChange(replace(SWITCH, target=host.name)), at=at)


def claim(store: Store, token: str = "me", *, now=NOON) -> bool:
    return store.power.claim_turn(token, now=now, until=now + TTL)


def go(store: Store, number: int, state: PowerState, reason: PowerReason, *, at, rehearsed: bool = True) -> None:
    """Move the host with this place in the view."""
    before = store.power.read_view(at, rehearsed=rehearsed).hosts[number]
    store.power.move("me", [PowerMove(before, before.move(state, reason, at))], rehearsed=rehearsed)


def test_hosts_are_on_until_they_are_moved(store):
    hosts = [a_host(store, number) for number in (1, 2)]
    view = store.power.read_view(NOON, rehearsed=True)
    assert [(host.resource_id, host.state) for host in view.hosts] == [(h.id, PowerState.ON) for h in hosts]
    assert view.outlooks == {}
    assert view.log.changes == 0
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    go(store, 0, PowerState.OFF, PowerReason.DONE, at=NOON + 3 * MINUTE)
    first, second = store.power.read_view(NOON + HOUR, rehearsed=True).hosts
    assert (first.state, first.reason, first.since) == (PowerState.OFF, PowerReason.DONE, NOON + 3 * MINUTE)
    assert second.state is PowerState.ON


def test_what_a_dry_run_does_is_not_real(store):
    a_host(store)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    real = store.power.read_view(NOON, rehearsed=False)
    assert real.hosts[0].state is PowerState.ON
    assert real.log.changes == 0


def test_the_log_counts_switches_within_a_day_and_a_minute(store):
    host = a_host(store)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    go(store, 0, PowerState.OFF, PowerReason.DONE, at=NOON + 3 * MINUTE)
    go(store, 0, PowerState.WAKING, PowerReason.START, at=NOON + HOUR)
    log = store.power.read_view(NOON + HOUR, rehearsed=True).log
    assert (dict(log.cycles), log.changes) == ({host.id: 1}, 1)
    later = store.power.read_view(NOON + HOUR + MINUTE, rehearsed=True).log
    assert (dict(later.cycles), later.changes) == ({host.id: 1}, 0)
    assert dict(store.power.read_view(NOON + 24 * HOUR, rehearsed=True).log.cycles) == {host.id: 0}


def test_a_rehearsal_says_how_long_hosts_slept_and_which_starts_they_missed(store):
    a_host(store)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    go(store, 0, PowerState.OFF, PowerReason.DONE, at=NOON + 3 * MINUTE)
    go(store, 0, PowerState.WAKING, PowerReason.START, at=NOON + 2 * HOUR)
    go(store, 0, PowerState.ON, PowerReason.MISSED, at=NOON + 2 * HOUR + MINUTE)
    found = store.power_hosts.sum_log(NOON - HOUR)[HOST, True]
    assert (found.slept, found.switched_off, found.missed) == (2 * HOUR - 3 * MINUTE, 1, 1)
    assert store.power_hosts.sum_log(NOON + 5 * HOUR) == {}


def test_the_outlook_of_a_host_is_its_use_and_its_next_start(store):
    used, promised, free = (a_host(store, number) for number in (1, 2, 3))
    booked(store, hours(-2, 1), used)
    booked(store, hours(3, 4), used, promised)
    booked(store, hours(6, 7), promised)
    outlooks = store.power.read_view(NOON, rehearsed=True).outlooks
    assert outlooks == {
        used.id: HostOutlook(True, None, NOON + 3 * HOUR),
        promised.id: HostOutlook(False, None, NOON + 3 * HOUR),
    }
    assert free.id not in outlooks


def test_a_host_that_is_not_returned_in_time_is_in_use(store):
    host = a_host(store)
    booked(store, hours(-2, -1), host)
    assert store.power.read_view(NOON, rehearsed=True).outlooks[host.id].in_use


def test_a_host_of_the_policy_keep_does_not_sleep(store):
    first, second = a_host(store, 1), a_host(store, 2)
    keep(store, first)
    assert [host.sleeps for host in store.power.read_view(NOON, rehearsed=True).hosts] == [False, True]
    keep(store, first, PowerPolicy.AUTO)
    assert [host.sleeps for host in store.power.read_view(NOON, rehearsed=True).hosts] == [True, True]
    assert second.id


def test_what_a_dry_run_would_have_done_is_kept_for_two_months_and_what_was_done_for_a_year(store):
    a_host(store)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    go(store, 0, PowerState.OFF, PowerReason.DONE, at=NOON + 3 * MINUTE)
    assert store.power.drop_old(now=NOON + KEPT_REHEARSED) == 0
    assert store.power.drop_old(now=NOON + KEPT_REHEARSED + MINUTE) == 1
    assert store.power_hosts.sum_log(NOON - MINUTE)[HOST, True].switched_off == 0
    host = store.power.read_view(NOON + KEPT_REHEARSED, rehearsed=True).hosts[0]
    assert host.state is PowerState.OFF
    store.power.move("me", [PowerMove(host, host.move(PowerState.WAKING, PowerReason.START, NOON))], rehearsed=False)
    assert store.power.drop_old(now=NOON + KEPT) == 1
    assert len(store.power.read_view(NOON + HOUR, rehearsed=False).log.cycles) == 1
    assert store.power.drop_old(now=NOON + KEPT + MINUTE) == 1
    assert store.power.read_view(NOON + HOUR, rehearsed=False).hosts[0].state is PowerState.WAKING


def test_a_plan_is_made_of_a_constant_number_of_statements(store, engine):
    for number in range(1, 4):
        host = a_host(store, number)
        booked(store, hours(1, 2), host)
    store.power.read_view(NOON, rehearsed=True)
    with counted(engine) as statements:
        store.power.read_view(NOON, rehearsed=True)
    assert statements.count == 7


def test_requests_for_near_starts_are_those_within_the_lead(store):
    hosts = [a_host(store, number) for number in (1, 2)]
    booked(store, hours(0, 1), *hosts)
    booked(store, hours(2, 3), *hosts)
    near = store.power.read_requests(NOON - HOUR, timedelta(minutes=30))
    assert {(one.resource_id, one.at, one.ahead) for one in near} == {(host.id, NOON, timedelta(0)) for host in hosts}
    assert len({one.lease_id for one in near}) == 1
    assert store.power.read_requests(NOON + HOUR, timedelta(minutes=30)) == ()


def test_one_manager_has_the_turn_until_it_is_over_or_its_claim_expires(store):
    assert store.power.next_turn() is None
    assert claim(store)
    assert not claim(store, "another")
    assert not claim(store, "another", now=NOON + TTL - timedelta(seconds=1))
    store.power.release_turn("me", due_at=NOON + MINUTE)
    assert store.power.next_turn() == NOON + MINUTE
    assert not claim(store, "another", now=NOON + MINUTE - timedelta(seconds=1))
    assert claim(store, "another", now=NOON + MINUTE)
    assert claim(store, "me", now=NOON + MINUTE + TTL)


def test_who_has_lost_the_turn_writes_nothing(store):
    a_host(store)
    claim(store)
    claim(store, "another", now=NOON + TTL)
    with pytest.raises(ClaimLost):
        go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON + TTL)
    with pytest.raises(ClaimLost):
        store.power.release_turn("me", due_at=NOON)
    assert store.power.read_view(NOON + TTL, rehearsed=True).hosts[0].state is PowerState.ON


def test_two_moves_of_a_host_at_once_are_both_in_the_log(store):
    a_host(store)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    going = store.power.read_view(NOON, rehearsed=True).hosts[0]
    off = going.move(PowerState.OFF, PowerReason.DONE, NOON + HOUR)
    waking = replace(off, since=NOON + HOUR).move(PowerState.WAKING, PowerReason.START, NOON + HOUR)
    store.power.move("me", [PowerMove(going, off), PowerMove(off, waking)], rehearsed=True)
    view = store.power.read_view(NOON + HOUR, rehearsed=True)
    assert view.hosts[0].state is PowerState.WAKING
    assert view.log.changes == 1


def power_of(store: Store, host, *, at=NOON):
    """Return the power of a host, as it is in truth."""
    return store.power.read_hosts_power(at, [host.id])[host.id]


def fall_asleep(store: Store, host, *, at=NOON) -> None:
    switch(store, host, at=at)
    claim(store, now=at)
    on = power_of(store, host)
    going = on.move(PowerState.GOING_OFF, PowerReason.IDLE, at)
    off = going.move(PowerState.OFF, PowerReason.DONE, at)
    store.power.move("me", [PowerMove(on, going), PowerMove(going, off)], rehearsed=False)
    store.power.release_turn("me", due_at=at)


def test_a_host_has_a_switch_by_an_operators_word_and_only_such_a_host_sleeps(store):
    first, second = a_host(store, 1), a_host(store, 2)
    switch(store, first)
    assert power_of(store, first).address == SWITCH
    assert power_of(store, second).address is None
    assert [host.sleeps for host in store.power.read_view(NOON, rehearsed=False).hosts] == [True, False]
    assert [host.sleeps for host in store.power.read_view(NOON, rehearsed=True).hosts] == [True, True]
    change(store, first, PowerChange(removes_address=True))
    assert power_of(store, first).address is None
    keep(store, second)
    assert {id_: power.policy for id_, power in store.power.read_hosts_power(NOON).items()} == {
        first.id: PowerPolicy.AUTO,
        second.id: PowerPolicy.KEEP,
    }


def test_a_dry_run_leaves_out_what_sleeps_in_truth(store):
    host, other = a_host(store, 1), a_host(store, 2)
    fall_asleep(store, host)
    assert [each.resource_id for each in store.power.read_view(NOON, rehearsed=True).hosts] == [other.id]


def put(store: Store, host, *, at=NOON) -> None:
    """Have a host switched off by a plan."""
    switch(store, host, at=at)
    claim(store, now=at)
    assert len(begin(store, host, at=at)) == 1
    store.power.release_turn("me", due_at=at)


def begin(store: Store, *hosts, at=NOON, view=None):
    view = view or store.power.read_view(at, rehearsed=False)
    found = [each for each in view.hosts if each.resource_id in {host.id for host in hosts}]
    moves = [PowerMove(each, each.move(PowerState.GOING_OFF, PowerReason.IDLE, at)) for each in found]
    return store.power.begin_moves("me", moves, view.generations, due_at=at)


def test_a_host_that_is_booked_since_the_plan_does_not_go_off(store):
    booked_one, free = a_host(store, 1), a_host(store, 2)
    claim(store)
    view = store.power.read_view(NOON, rehearsed=False)
    booked(store, hours(5, 6), booked_one)
    written = begin(store, booked_one, free, view=view)
    assert [move.before.resource_id for move in written] == [free.id]
    assert power_of(store, booked_one).state is PowerState.ON
    assert power_of(store, free).state is PowerState.GOING_OFF
    assert begin(store, free, view=view) == []


def test_a_host_on_its_way_is_claimed_by_one_manager_at_a_time(store):
    host = a_host(store)
    assert store.switches.next_due() is None
    put(store, host)
    assert store.switches.next_due() == NOON
    (due,) = store.switches.due(NOON, 10)
    assert store.switches.claim(due, "me", until=NOON + TTL)
    assert not store.switches.claim(due, "another", until=NOON + TTL)
    assert store.switches.due(NOON, 10) == ()
    (expired,) = store.switches.due(NOON + TTL, 10)
    assert store.switches.claim(expired, "another", until=NOON + 2 * TTL)
    with pytest.raises(ClaimLost):
        store.switches.postpone(due, "me", due_at=NOON)
    assert store.claims.renew_claims(["another", "me"], now=NOON + TTL, until=NOON + HOUR) == {"another"}


def test_the_states_that_a_host_passes_are_written_with_the_end_of_its_claim(store):
    host = a_host(store)
    put(store, host)
    (due,) = store.switches.due(NOON, 10)
    store.switches.claim(due, "me", until=NOON + TTL)
    view = store.switches.read_view(host.id, NOON)
    assert (view.resource.id, view.host.state, view.outlook) == (host.id, PowerState.GOING_OFF, HostOutlook())
    off = view.host.move(PowerState.OFF, PowerReason.DONE, NOON + MINUTE)
    waking = off.move(PowerState.WAKING, PowerReason.NEEDED, NOON + MINUTE)
    store.power_hosts.wake(host.external_id, at=NOON, kept_until=NOON + HOUR)
    store.switches.release("me", [view.host, off, waking], due_at=NOON + MINUTE)
    found = power_of(store, host)
    assert (found.state, found.reason, found.kept_until) == (PowerState.WAKING, PowerReason.NEEDED, NOON + HOUR)
    assert store.power.read_view(NOON + MINUTE, rehearsed=False).log.changes == 1
    assert store.power.has_sleepers()


def test_the_durations_of_wakes_are_known_with_the_last_one_at_the_end(store):
    host = a_host(store)
    claim(store)
    at = NOON
    for minutes in (5, 7):
        off = replace(power_of(store, host), state=PowerState.OFF, since=at)
        waking = off.move(PowerState.WAKING, PowerReason.START, at)
        on = waking.move(PowerState.ON, PowerReason.DONE, at + minutes * MINUTE)
        failed = waking.move(PowerState.ON, PowerReason.TIMED_OUT, at + HOUR)
        store.power.move("me", [PowerMove(off, waking), PowerMove(waking, on)], rehearsed=False)
        store.power.move("me", [PowerMove(off, waking), PowerMove(waking, failed)], rehearsed=False)
        at += HOUR
    assert store.power.read_wakes() == (PastWake(host.id, 5 * MINUTE), PastWake(host.id, 7 * MINUTE))
    assert store.switches.count_failed_wakes(host.id, NOON) == 2
    assert store.switches.count_failed_wakes(host.id, NOON + HOUR) == 1
    assert not store.power.has_sleepers()


def test_the_hosts_that_are_not_on_are_read_and_woken_in_few_statements(store, engine):
    ids = [a_host(store, number).id for number in (1, 2, 3)]
    claim(store)
    for number in (0, 1, 2):
        go(store, number, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON, rehearsed=False)
    for number in (0, 1):
        go(store, number, PowerState.OFF, PowerReason.DONE, at=NOON + 3 * MINUTE, rehearsed=False)
    with counted(engine) as read:
        asleep = store.power.read_asleep(NOON + HOUR)
    assert read.count == 1
    assert asleep.ready_at == dict.fromkeys(ids, NOON + HOUR + 11 * MINUTE)
    with counted(engine) as woken:
        found = store.power.wake_sleepers(ids, PowerReason.START, at=NOON + HOUR)
    assert [(host.resource_id, host.state, host.reason) for host in found] == [
        (id_, PowerState.WAKING, PowerReason.START) for id_ in ids[:2]
    ]
    assert woken.count <= 4
    states = [power.state for power in store.power.read_hosts_power(NOON + HOUR).values()]
    assert states == [PowerState.WAKING, PowerState.WAKING, PowerState.GOING_OFF]
    assert store.power.read_asleep(NOON + HOUR + MINUTE).ready_at[ids[0]] == NOON + HOUR + 11 * MINUTE
    assert store.power.wake_sleepers(ids, PowerReason.START, at=NOON + HOUR + MINUTE) == ()
    assert store.power.read_hosts_power(NOON + HOUR)[ids[0]].since == NOON + HOUR


def test_the_books_name_a_host_that_nobody_will_wake(store):
    a_host(store, 1)
    claim(store)
    go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON, rehearsed=False)
    (found,) = store.book_checks.find_faults(NOON + MINUTE, TTL)
    assert "is going_off, and it has no adapter" in found
