# SPDX-License-Identifier: Apache-2.0
"""Hosts in the database: registered once, changed by many, gone but not forgotten."""

from __future__ import annotations

import threading

import pytest

from blazar.model.errors import Conflict, NotFound
from blazar.model.requests import ResourceChange
from blazar.model.requirements import parse_requirement
from blazar.store.engine import WRITES
from blazar.store.store import Store
from blazar.store.tables import resources as resource_table
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
    assert store.resources.named(HOST, "node-1") == host
    assert store.resources.named(HOST, "NODE-1") is None
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
    assert counts[0] == counts[1] == 3


def test_a_host_that_was_registered_before_limits_and_traits_were_kept_has_none(store, engine):
    host = a_host(store)
    with engine.execution_options(**{WRITES: True}).begin() as connection:
        connection.execute(resource_table.update().values(limits=None, traits=None))
    kept = store.resources.one(HOST, "1")
    assert (kept.limits, kept.traits) == ({}, frozenset())
    assert store.resources.refresh(HOST, {host.id: host.details}, at=NOON) == {host.id}
    assert store.resources.one(HOST, "1").details == host.details
