# SPDX-License-Identifier: Apache-2.0
"""Findings stay while looks find the same, with their age and their tries; troubles are read by their indexes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.leases.states import EventStatus, EventType, LeaseStatus
from blazar.model.problems.problems import ProblemKind
from blazar.model.problems.troubles import CloudFinding, TroubleLimits
from blazar.model.resources.resource import HOST
from blazar.store.problems.findings import MOST, Look
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, booked, hours

MINUTE = timedelta(minutes=1)


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def look(*keys, at=NOON, what=ProblemKind.UNKNOWN, types=("physical:host",), region="", detail="", lease_id=None):
    found = {key: CloudFinding(what, region, key, "physical:host", at, at, lease_id, detail) for key in keys}
    return Look(what, region, at, found, types)


def test_what_is_found_again_keeps_its_age_and_what_is_gone_is_forgotten(store):
    first = store.findings.record(look("a", "b"))
    assert first.new == {"a", "b"}
    again = store.findings.record(look("b", "c", at=NOON + HOUR, detail="more"))
    assert again.new == {"c"}
    assert [(f.key, f.since, f.seen_at, f.detail) for f in again.findings] == [
        ("b", NOON, NOON + HOUR, "more"),
        ("c", NOON + HOUR, NOON + HOUR, "more"),
    ]
    assert store.troubles.read(NOON, TroubleLimits()).findings == again.findings


def test_what_a_type_does_not_tell_this_time_stays_on_record(store):
    store.findings.record(look("a"))
    assert [f.key for f in store.findings.record(look(types=("virtual:volume",))).findings] == ["a"]
    assert store.findings.record(look()).findings == ()


def test_regions_and_kinds_of_findings_are_apart(store):
    store.findings.record(look("a", region="north"))
    store.findings.record(look("a", region="south"))
    store.findings.record(look("a", what=ProblemKind.DRIFT))
    store.findings.record(look(region="north"))
    left = store.troubles.read(NOON, TroubleLimits()).findings
    assert [(f.what, f.region) for f in left] == [(ProblemKind.DRIFT, ""), (ProblemKind.UNKNOWN, "south")]
    store.findings.forget(left[1])
    assert store.troubles.read(NOON, TroubleLimits()).findings == left[:1]


def test_leftovers_are_problems_after_three_clean_ups_and_tries_are_counted_for_a_lease(store):
    leftover = look("a", "b", what=ProblemKind.LEFTOVER, lease_id="1")
    (finding, _) = store.findings.record(leftover).findings
    assert store.troubles.read(NOON, TroubleLimits()).findings == ()
    store.findings.count_try(finding, tries=3, next_at=NOON + HOUR)
    shown = store.troubles.read(NOON, TroubleLimits(), lease_id="1").findings
    assert [(f.key, f.tries, f.next_at) for f in shown] == [("a", 3, NOON + HOUR), ("b", 3, NOON + HOUR)]
    assert store.troubles.read(NOON, TroubleLimits(), lease_id="2").findings == ()
    only = store.troubles.read(NOON, TroubleLimits(), only=(ProblemKind.LEFTOVER, "", "b")).findings
    assert [f.key for f in only] == ["b"]


def test_no_more_are_kept_than_a_person_reads_and_statements_do_not_grow_with_them(store, engine):
    many = [f"r{number:05}" for number in range(MOST + 7)]
    assert len(store.findings.record(look(*many)).findings) == MOST
    with counted(engine) as few:
        store.findings.record(look(*many, at=NOON + HOUR))
    assert few.count <= 12
    kept = store.findings.record(look(*many[-9:])).findings
    assert len(kept) == 9


def in_trouble(store, lease, becomes=None, **values):
    """Write what is wrong with an event of a lease."""
    event = replace(lease.event(EventType.START), **values)
    events = tuple(event if known.id == event.id else known for known in lease.events)
    after = replace(lease, events=events, status=becomes or lease.status, updated_at=NOON)
    return store.leases.save(lease, after, at=NOON)


def test_each_way_to_be_in_trouble_is_found_and_what_goes_well_is_not(store, engine):
    host = a_host(store)
    leases = [booked(store, hours(1 + number, 2 + number), host) for number in range(6)]
    now = NOON + 30 * MINUTE
    late = in_trouble(store, leases[0], due_at=now - MINUTE)
    failing = in_trouble(store, leases[1], due_at=now + MINUTE, attempts=5, trouble_since=NOON)
    held = in_trouble(
        store,
        leases[2],
        due_at=now + MINUTE,
        becomes=LeaseStatus.STARTING,
        claimed_by="ctl1:7:a:b",
        claimed_at=now - 11 * MINUTE,
    )
    over = {"status": EventStatus.ERROR, "due_at": None, "trouble_since": NOON}
    failed = in_trouble(store, leases[3], becomes=LeaseStatus.ERROR, **over)
    in_trouble(store, leases[4], due_at=now - MINUTE / 2, attempts=4)
    store.resource_health.set_failed(HOST, {host.id: "it burns"}, at=NOON)
    with counted(engine) as statements:
        troubles = store.troubles.read(now, TroubleLimits())
    assert statements.count <= 6
    assert {found.lease.id for found in troubles.events} == {late.id, failing.id, held.id, failed.id}
    assert {(lease.id, lease.status) for lease in troubles.leases} == {
        (failed.id, LeaseStatus.ERROR),
        (held.id, LeaseStatus.STARTING),
    }
    assert [(resource.name, resource.failure) for resource in troubles.resources] == [("node-1", "it burns")]
    assert not troubles.more
    of_one = store.troubles.read(now, TroubleLimits(), lease_id=held.id)
    assert [found.lease.id for found in of_one.events] == [held.id]
    assert of_one.resources == ()
    only = store.troubles.read(now, TroubleLimits(), only=(ProblemKind.EVENT, None, late.event(EventType.START).id))
    assert [found.lease.id for found in only.events] == [late.id]
    assert only.leases == only.resources == only.findings == ()
