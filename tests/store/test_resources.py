# SPDX-License-Identifier: Apache-2.0
"""Hosts in the database: registered once, changed by many, gone but not forgotten."""

from __future__ import annotations

import re
import threading

import pytest

from blazar.model.base.errors import Conflict, NotFound
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.requirements import parse_requirement
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import resources as resource_table
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOST, HOUR, NOON, a_host, booked, details, generations, hours


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def at_once(count, work):
    """Run ``work(number)`` in as many threads, all beginning together; return what each returned or raised."""
    outcomes: list[object] = [None] * count
    gate = threading.Barrier(count)

    def run(number):
        gate.wait()
        try:
            outcomes[number] = work(number)
        except Exception as error:
            outcomes[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def test_a_host_comes_back_as_it_was_registered(store):
    host = a_host(store, 1, gpu="a100", rack="7")
    assert store.resources.one(HOST, "1") == host
    assert store.resources.find_by_name(HOST, "node-1") == host
    assert store.resources.find_by_name(HOST, "NODE-1") is None
    assert host.capabilities == {"gpu": "a100", "rack": "7"}
    with pytest.raises(NotFound, match=r"\{'host_id': '2'\} not found"):
        store.resources.one(HOST, "2")


def test_a_host_is_registered_once(store):
    a_host(store)
    with pytest.raises(Conflict, match="host node-1 is registered already"):
        a_host(store)
    outcomes = at_once(4, lambda _: a_host(store, 2))
    assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 3
    assert [host.name for host in store.resources.of_kind(HOST)] == ["node-1", "node-2"]


def test_hosts_registered_at_once_with_the_same_new_property_are_all_registered(store):
    outcomes = at_once(6, lambda number: a_host(store, number, gpu="a100"))
    assert [error for error in outcomes if isinstance(error, Exception)] == []
    (gpu,) = store.resources.property_values(HOST, include_private=True)
    assert (gpu.property.name, gpu.values) == ("gpu", ("a100",))


def test_hosts_changed_at_once_with_the_same_new_property_are_all_changed(store):
    hosts = [a_host(store, number) for number in range(4)]
    at_once(4, lambda number: store.resources.change(hosts[number].id, ResourceChange({"rack": str(number)}), at=NOON))
    assert {host.capabilities["rack"] for host in store.resources.of_kind(HOST)} == {"0", "1", "2", "3"}


def test_capabilities_are_set_and_taken_away_together(store):
    host = a_host(store, 1, gpu="a100", rack="7")
    changed = store.resources.change(host.id, ResourceChange({"gpu": None, "rack": "8", "ssd": "yes"}), at=NOON)
    assert changed.capabilities == {"rack": "8", "ssd": "yes"}
    assert changed == store.resources.one(HOST, "1")


def test_private_properties_are_shown_to_operators_only(store):
    a_host(store, 1, gpu="a100", Rack="7")
    a_host(store, 2, gpu="h100")
    store.resources.set_property_private(HOST, "Rack", private=True, at=NOON)
    assert [(p.property.name, p.values) for p in store.resources.property_values(HOST, include_private=False)] == [
        ("gpu", ("a100", "h100"))
    ]
    names = [p.property.name for p in store.resources.property_values(HOST, include_private=True)]
    assert names == ["Rack", "gpu"]
    with pytest.raises(NotFound):
        store.resources.set_property_private(HOST, "rack", private=True, at=NOON)


def test_a_host_may_leave_and_come_back_and_its_past_stays(store, engine):
    host = a_host(store)
    lease = booked(store, hours(0, 1), host)
    with pytest.raises(Conflict, match=lease.id):
        store.resources.withdraw(host.id, at=NOON)
    cleaned = Store(engine, cleaning_time=hours(0, 1).duration)
    cleaned.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON)
    store.resources.withdraw(host.id, at=NOON)
    store.resources.retire(host.id, at=NOON)
    assert store.resources.of_kind(HOST) == ()
    with pytest.raises(NotFound):
        store.resources.set_reservable(host.id, True, at=NOON)
    back = a_host(store)
    assert back.id != host.id
    assert set(store.resources.by_ids([host.id, back.id])) == {host.id, back.id}


def test_every_process_sees_a_change_of_the_inventory(engine, store):
    other = Store(engine)
    host = a_host(store, 1, gpu="a100")
    wanted = parse_requirement('["==", "$reservable", "true"]', field="f")
    assert len(other.resources.catalog(HOST).matching(wanted)) == 1
    store.resources.set_reservable(host.id, False, at=NOON)
    assert other.resources.catalog(HOST).matching(wanted) == ()
    store.resources.retire(host.id, at=NOON)
    assert other.resources.catalog(HOST).resources == ()


def test_what_the_cloud_tells_is_written_again_where_it_differs(store):
    hosts = [a_host(store, number, gpu="a100") for number in (1, 2, 3)]
    before = generations(store, hosts)
    new = {hosts[0].id: details(8, traits=["FAST"]), hosts[1].id: hosts[1].details, 999: details(1)}
    assert store.resources.refresh(HOST, new, at=NOON + HOUR) == {hosts[0].id}
    changed, *same = store.resources.of_kind(HOST)
    assert (changed.details, changed.updated_at) == (new[hosts[0].id], NOON + HOUR)
    assert changed.capabilities == {"gpu": "a100"}
    assert same == hosts[1:]
    after = generations(store, hosts)
    assert {id_ for id_ in after if after[id_] != before[id_]} == {hosts[0].id}
    assert store.resources.refresh(HOST, new, at=NOON + HOUR) == frozenset()
    assert store.resources.refresh(HOST, {}, at=NOON) == frozenset()


def test_every_process_sees_what_the_cloud_tells_again(engine, store):
    other = Store(engine)
    host = a_host(store)
    assert other.resources.catalog(HOST).resources == (host,)
    store.resources.refresh(HOST, {host.id: details(8)}, at=NOON)
    assert [r.capacity.get("VCPU") for r in other.resources.catalog(HOST).resources] == [8]


def test_many_hosts_are_refreshed_in_as_many_statements_as_one(sqlite):
    store = Store(sqlite)
    counts = []
    for number in (1, 12):
        hosts = [a_host(store, 100 * number + n) for n in range(number)]
        with counted(sqlite) as statements:
            store.resources.refresh(HOST, {host.id: details(number) for host in hosts}, at=NOON)
        counts.append(statements.count)
    assert counts[0] == counts[1] == 4


def test_a_host_that_was_registered_before_limits_and_traits_were_kept_has_none(store, engine):
    host = a_host(store)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(resource_table.update().values(limits=None, traits=None))
    kept = store.resources.one(HOST, "1")
    assert (kept.limits, kept.traits) == ({}, frozenset())
    assert store.resources.refresh(HOST, {host.id: host.details}, at=NOON) == {host.id}
    assert store.resources.one(HOST, "1").details == host.details


def test_labels_are_random_and_new_when_a_host_comes_back(store):
    host = a_host(store)
    assert re.fullmatch("h-[0-9a-hjkmnp-tv-z]{6}", host.label)
    assert store.resources.one(HOST, "1").label == host.label
    store.resources.retire(host.id, at=NOON)
    back = a_host(store)
    assert back.label != host.label
    assert len({a_host(store, number).label for number in range(2, 22)} | {back.label}) == 21


def test_every_change_that_operators_see_raises_the_edits_and_a_booking_does_not(store):
    host = a_host(store)
    seen = [host.revision]

    def note():
        seen.append(store.resources.one(HOST, "1").revision)

    store.resources.change(host.id, ResourceChange({"gpu": "a100"}), at=NOON)
    note()
    store.resources.change(host.id, ResourceChange({}, disabled=True), at=NOON)
    note()
    store.resources.refresh(HOST, {host.id: details(8)}, at=NOON)
    note()
    store.resource_health.set_failed(HOST, {host.id: "down"}, at=NOON)
    note()
    store.resource_health.set_recovered(HOST, [host.id], at=NOON)
    note()
    store.resources.set_reservable(host.id, False, at=NOON)
    note()
    assert seen == [0, 1, 2, 3, 4, 5, 6]
    booked(store, hours(0, 1), host)
    store.resources.refresh(HOST, {host.id: details(8)}, at=NOON)
    store.resource_health.set_recovered(HOST, [host.id], at=NOON)
    note()
    assert seen[-1] == 6


def test_a_host_is_disabled_with_a_reason_since_then_until_then(store):
    def state(host):
        return host.disabled, host.disabled_reason, host.disabled_since, host.disabled_until

    def change(hour, disabled, disabling=None):
        asked = ResourceChange({}, disabled=disabled, disabling=disabling)
        return state(store.resources.change(host.id, asked, at=NOON + hour * HOUR))

    host = a_host(store)
    assert state(host) == (False, None, None, None)
    assert change(1, True, Disabling("fan", NOON + 9 * HOUR)) == (True, "fan", NOON + HOUR, NOON + 9 * HOUR)
    # As API 1.0 says it: nothing is known of the reason, and nothing is lost.
    assert change(2, True) == (True, "fan", NOON + HOUR, NOON + 9 * HOUR)
    assert change(3, True, Disabling("disk")) == (True, "disk", NOON + HOUR, None)
    assert change(4, False) == (False, None, None, None)
    assert change(5, True) == (True, None, NOON + 5 * HOUR, None)
    born_disabled = store.resources.add(
        HOST,
        external_id="2",
        name="node-2",
        details=details(16),
        capabilities={},
        at=NOON,
        disabled=True,
        disabling=Disabling("new"),
    )
    assert state(born_disabled) == (True, "new", NOON, None)


def test_hosts_are_enabled_when_their_time_has_come_and_by_one_process(store, engine):
    until = {1: NOON + 2 * HOUR, 2: NOON + 3 * HOUR, 3: None}
    hosts = {number: a_host(store, number) for number in until}
    assert store.resource_health.find_next_enabling() is None
    for number, instant in until.items():
        asked = ResourceChange({}, disabled=True, disabling=Disabling(f"reason {number}", instant))
        store.resources.change(hosts[number].id, asked, at=NOON)
    assert store.resource_health.find_next_enabling() == NOON + 2 * HOUR
    assert store.resource_health.enable_due(at=NOON + 1.9 * HOUR) == ()
    outcomes = at_once(3, lambda _: Store(engine).resource_health.enable_due(at=NOON + 2 * HOUR))
    assert sorted(host.id for outcome in outcomes for host in outcome) == [hosts[1].id]
    enabled, *others = store.resources.catalog(HOST).resources
    assert (enabled.reservable, enabled.disabled_reason, enabled.disabled_until) == (True, None, None)
    assert [other.reservable for other in others] == [False, False]
    assert store.resource_health.find_next_enabling() == NOON + 3 * HOUR
    store.resources.retire(hosts[2].id, at=NOON)
    assert store.resource_health.find_next_enabling() is None
