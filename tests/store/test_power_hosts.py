# SPDX-License-Identifier: Apache-2.0
"""The store of the power of hosts as operators see and set it: changes, wakes, the log of a host, and its sums."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.errors import InvalidInput, NotFound, WrongState
from blazar.model.base.paging import Page
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange, PowerSums
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import host_power, journal
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host
from tests.store.test_power import MINUTE, SWITCH, change, claim, fall_asleep, go, keep, power_of, switch


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def told(engine, host) -> list[dict[str, tuple[str | None, str | None]]]:
    """Return what the journal tells of the power of a host, an entry each: the fields, before and after."""
    with engine.connect() as connection:
        rows = connection.execute(_select_changes(host)).all()
    return [{field.removeprefix("power."): (before, after) for field, before, after, _ in row.changes} for row in rows]


def _select_changes(host):
    query = journal.select().where(journal.c.object_id == f"host/{host.external_id}", journal.c.verb == "changed")
    return query.order_by(journal.c.seq)


def test_changes_are_told_by_the_journal_and_what_is_so_already_is_not(store, engine):
    host, other = a_host(store, 1), a_host(store, 2)
    switch(store, host)
    switch(store, host)
    keep(store, host)
    change(store, host, PowerChange(removes_address=True))
    found = store.power_hosts.one(host.external_id).power
    assert (found.address, found.policy, found.state) == (None, PowerPolicy.KEEP, PowerState.ON)
    assert [one.power.policy for one in store.power_hosts.all()] == [PowerPolicy.KEEP, PowerPolicy.AUTO]
    assert told(engine, host) == [
        {"adapter": (None, "simulated"), "target": (None, "node-1")},
        {"policy": ("auto", "keep")},
        {"adapter": ("simulated", None), "target": ("node-1", None)},
    ]
    assert told(engine, other) == []


def test_hosts_are_read_in_two_statements_however_many_there_are(store, engine):
    for number in (1, 2, 3):
        switch(store, a_host(store, number))
    store.power_hosts.all()
    with counted(engine) as statements:
        assert len(store.power_hosts.all()) == 3
    assert statements.count <= 2
    with pytest.raises(NotFound):
        store.power_hosts.one("9")


def test_the_switch_of_a_host_that_sleeps_may_be_mended_and_not_taken_away(store):
    host = a_host(store)
    fall_asleep(store, host)
    mended = replace(SWITCH, target="node-one")
    change(store, host, PowerChange(mended))
    with pytest.raises(WrongState, match="is off, and nobody could wake it"):
        change(store, host, PowerChange(removes_address=True))
    assert power_of(store, host).address == mended


SYSTEM = "https://10.30.0.11/redfish/v1/Systems/1"


@pytest.mark.parametrize(
    ("adapter", "had", "wanted"),
    [
        (PowerAdapter.REDFISH, SYSTEM, SYSTEM),
        (PowerAdapter.REDFISH, SYSTEM, "https://10.30.0.11:443/redfish/v1/Systems/1/"),
        (PowerAdapter.IRONIC, "rack-1", "rack-1"),
        (PowerAdapter.SIMULATED, "node-1", "node-1"),
    ],
    ids=["same", "other spelling", "ironic", "simulated"],
)
def test_a_host_does_not_get_the_switch_of_another_one(store, adapter, had, wanted):
    first, second = a_host(store, 1), a_host(store, 2)
    change(store, first, PowerChange(PowerAddress(adapter, had)))
    # Its own is so already.
    change(store, first, PowerChange(PowerAddress(adapter, had)))
    with pytest.raises(WrongState, match="target is the switch of host node-1, which would go off with node-2"):
        change(store, second, PowerChange(PowerAddress(adapter, wanted)))
    change(store, first, PowerChange(removes_address=True))
    change(store, second, PowerChange(PowerAddress(adapter, wanted)))


def test_a_hook_switches_several_hosts_and_knows_them_apart(store):
    hook = PowerAddress(PowerAdapter.HOOK, "https://switch.example.org/")
    for number in (1, 2):
        change(store, a_host(store, number), PowerChange(hook))
    assert [host.sleeps for host in store.power.read_view(NOON, rehearsed=False).hosts] == [True, True]


def test_hosts_that_were_given_one_switch_at_once_do_not_sleep(store, engine):
    hosts = [a_host(store, number) for number in (1, 2, 3)]
    for host in hosts:
        switch(store, host)
    with engine.begin() as connection:
        connection.execute(host_power.update().where(host_power.c.resource_id == hosts[1].id).values(target="node-1"))
    view = store.power.read_view(NOON, rehearsed=False)
    assert [host.sleeps for host in view.hosts] == [False, False, True]
    assert all(host.sleeps for host in store.power.read_view(NOON, rehearsed=True).hosts)


def test_a_host_that_sleeps_is_woken_once(store, engine):
    host, later = a_host(store), NOON + HOUR
    fall_asleep(store, host)
    for _ in range(2):
        store.power_hosts.wake(host.external_id, at=later, kept_until=later + HOUR)
    found = power_of(store, host, at=later)
    assert (found.state, found.reason, found.since) == (PowerState.WAKING, PowerReason.OPERATOR, later)
    assert found.kept_until == later + HOUR
    assert store.switches.next_due() == later
    assert store.power.wake_sleepers([host.id], PowerReason.START, at=later) == ()
    assert store.power.read_view(later, rehearsed=False).log.changes == 1
    woken = {"state": ("off", "waking"), "kept_until": (None, "2030-04-01T14:00:00Z")}
    assert told(engine, host)[1:] == [woken]


def test_a_host_that_is_on_in_truth_is_kept_and_not_woken(store):
    host, rehearsed = a_host(store, 1), a_host(store, 2)
    claim(store)
    go(store, 1, PowerState.GOING_OFF, PowerReason.IDLE, at=NOON)
    go(store, 1, PowerState.OFF, PowerReason.DONE, at=NOON)
    for each in (host, rehearsed):
        store.power_hosts.wake(each.external_id, at=NOON, kept_until=NOON + HOUR)
        found = power_of(store, each)
        assert (found.state, found.kept_until) == (PowerState.ON, NOON + HOUR)
    assert store.power_hosts.one(rehearsed.external_id).rehearsed.state is PowerState.OFF
    assert store.switches.next_due() is None


def a_night(store: Store, *, rehearsed: bool = False) -> None:
    """Let the first host sleep for two hours from noon on, and wake within five minutes."""
    asleep, awake = NOON + 3 * MINUTE, NOON + 2 * HOUR
    for state, reason, at in (
        (PowerState.GOING_OFF, PowerReason.IDLE, NOON),
        (PowerState.OFF, PowerReason.DONE, asleep),
        (PowerState.WAKING, PowerReason.START, awake),
        (PowerState.ON, PowerReason.DONE, awake + 5 * MINUTE),
    ):
        go(store, 0, state, reason, at=at, rehearsed=rehearsed)


def test_the_log_of_a_host_has_pages_in_both_directions(store, engine):
    host = a_host(store)
    claim(store)
    a_night(store)
    for descending, order in (
        (False, ["going_off", "off", "waking", "on"]),
        (True, ["on", "waking", "off", "going_off"]),
    ):
        page = Page(3, "id", descending=descending, with_count=True)
        with counted(engine) as statements:
            first = store.power_hosts.log(host.external_id, page)
        assert (statements.count <= 4, first.count) == (True, 4)
        rest = store.power_hosts.log(host.external_id, replace(page, after=first.following))
        assert [str(move.after) for move in (*first.items, *rest.items)] == order
        assert rest.following is None
    slept = next(move for move in first.items if move.before is PowerState.OFF)
    assert (slept.lasted, slept.reason, slept.rehearsed) == (2 * HOUR - 3 * MINUTE, PowerReason.START, False)
    with pytest.raises(InvalidInput):
        store.power_hosts.log(host.external_id, Page(3, "id", after="x"))


def test_sums_count_sleep_from_their_begin_on_and_a_dry_run_apart(store, engine):
    a_host(store)
    claim(store)
    a_night(store)
    a_night(store, rehearsed=True)
    with counted(engine) as statements:
        found = store.power_hosts.sum_log(NOON - HOUR)
    assert statements.count == 1
    assert found == dict.fromkeys(
        ((HOST, False), (HOST, True)), PowerSums(2 * HOUR - 3 * MINUTE, switched_off=1, woken=1)
    )
    half = store.power_hosts.sum_log(NOON + HOUR)
    assert half[HOST, False] == PowerSums(HOUR, woken=1)
    assert store.power_hosts.sum_log(NOON + 9 * HOUR) == {}


def test_a_wake_that_fails_and_a_start_that_is_missed_are_counted(store):
    a_host(store)
    claim(store)
    for number, reason in enumerate((PowerReason.TIMED_OUT, PowerReason.MISSED)):
        at = NOON + number * HOUR
        go(store, 0, PowerState.GOING_OFF, PowerReason.IDLE, at=at, rehearsed=False)
        go(store, 0, PowerState.OFF, PowerReason.DONE, at=at, rehearsed=False)
        go(store, 0, PowerState.WAKING, PowerReason.START, at=at, rehearsed=False)
        go(store, 0, PowerState.ON, reason, at=at + MINUTE, rehearsed=False)
    found = store.power_hosts.sum_log(NOON - HOUR)[HOST, False]
    assert found == PowerSums(timedelta(0), switched_off=2, failed=1, missed=1)
