# SPDX-License-Identifier: Apache-2.0
"""What is stored as JSON has this form to the byte, and is read as the value that it was made of.

Databases have rows of earlier versions, and managers of an earlier version read those of this one during an upgrade. A
class may change; what is stored of it changes only together with a text here, and what reads the older form.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import psycopg

from blazar.model.base.amounts import Amounts
from blazar.model.base.moments import Duration
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import FieldChange, JournalEntry, ObjectType, ResourceMove, Subject, Verb
from blazar.model.leases.lease import Event, Lease, SavedAllocation, SavedState, TransferOffer
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.reservation import Content, Gone, Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.maintenance.windows import LeasePlan, Outcome
from blazar.model.queue import FailedTry, TryFailure, Wait
from blazar.model.resources.pools import CardPool, UnitLimits
from blazar.model.resources.resource import HOST, ResourceDetails, ResourceInventory
from blazar.model.series.checks import Fit
from blazar.model.series.details import Series, SeriesStatus, Template
from blazar.model.series.recurrence import Recurrence
from blazar.model.series.rule import Frequency, Rule
from blazar.model.use.policy import Usage, UsageSample, UseMode, UsePolicy, UseStep, UseWatch
from blazar.store.booking import allocation_writes
from blazar.store.journal.rows import entry_row
from blazar.store.maintenance.plans import plan_of, plan_row
from blazar.store.resources.resource_rows import details_row
from blazar.store.series.series_rows import series_of, series_row
from blazar.store.sql import rows
from tests.store.builders import HOUR, NOON

MICRO = timedelta(microseconds=1)
SIZE = Amounts.of({"VCPU": 4, "MEMORY_MB": 2048})


def stored(value):
    """The JSON of a column as the drivers write it."""
    return json.dumps(value)


def read(column, value):
    """A value of a column as it is read from it."""
    return json.loads(stored(value)) if isinstance(column.type, sa.JSON) else value


def a_reservation(**more) -> Reservation:
    content = Content({"resource_properties": '["==", "$rack", "ü"]', "min": 1, "max": 2})
    return Reservation(
        "r", "physical:host", "a", ReservationStatus.PENDING, NOON, None, False, False, content, Content({}), **more
    )


def an_event(**more) -> Event:
    return Event("e", str(EventType.START), NOON, EventStatus.ERROR, NOON, **more)


def a_lease(**more) -> Lease:
    window = Window(NOON, NOON + HOUR)
    return Lease("l", "a lease", "curie", "physics", window, LeaseStatus.PENDING, NOON, **more)


def read_back(lease: Lease) -> Lease:
    """The lease of the rows that are written of it, as a database returns them."""
    made = [
        (rows.LEASE_COLUMNS, rows.lease_row(lease)),
        *((rows.RESERVATION_COLUMNS, rows.reservation_row("l", n, part)) for n, part in enumerate(lease.reservations)),
        *((rows.EVENT_COLUMNS, rows.event_row("l", n, event)) for n, event in enumerate(lease.events)),
    ]
    texts = [[read(column, row[column.name]) for column in columns] for columns, row in made]
    first = 1 + len(lease.reservations)
    (found,) = rows.assemble_leases(texts[:1], texts[1:first], texts[first:])
    return found


POLICY = UsePolicy(UseMode.ON, 9 * HOUR, 2 * HOUR, HOUR, timedelta(minutes=15), 0.05)
WATCHES = {
    "of a lease that nobody has looked at": (
        UseWatch(UsePolicy(), NOON),
        '{"watch": {"since": "2030-04-01T12:00:00+00:00", "held": false, "policy": {"mode": "off", '
        '"unused_after": 32400, "idle_after": null, "warn_before": 10800, "undo": 900}, "looks": []}}',
    ),
    "of one with all that may be known": (
        UseWatch(
            POLICY,
            NOON,
            *(NOON + n * HOUR + MICRO for n in range(1, 9)),
            held=True,
            looks=(UsageSample(NOON, Usage.IDLE, "2 servers are stopped", UseStep.WARNED),),
        ),
        '{"watch": {"since": "2030-04-01T12:00:00+00:00", "used_at": "2030-04-01T13:00:00.000001+00:00", '
        '"quiet_since": "2030-04-01T14:00:00.000001+00:00", "good_at": "2030-04-01T15:00:00.000001+00:00", '
        '"warned_at": "2030-04-01T16:00:00.000001+00:00", "noticed_at": "2030-04-01T17:00:00.000001+00:00", '
        '"release_at": "2030-04-01T18:00:00.000001+00:00", "would_at": "2030-04-01T19:00:00.000001+00:00", '
        '"kept_at": "2030-04-01T20:00:00.000001+00:00", "held": true, "policy": {"idle_below": 0.05, "mode": "on", '
        '"unused_after": 32400, "idle_after": 7200, "warn_before": 3600, "undo": 900}, "looks": '
        '[["2030-04-01T12:00:00+00:00", "idle", "2 servers are stopped", "warned"]]}}',
    ),
}
SAVED = {
    "of nothing": (SavedState(), "{}"),
    "of a change of a lease that had nothing": (SavedState(allocations=()), '{"held": []}'),
    "of a change": (
        SavedState((SavedAllocation("r", 7, 1, None), SavedAllocation("r", 8, 2, SIZE)), 3, NOON),
        '{"held": [["r", 7, 1, null], ["r", 8, 2, {"MEMORY_MB": 2048, "VCPU": 4}]], "undone": 3, '
        '"asked_at": "2030-04-01T12:00:00+00:00"}',
    ),
}


@pytest.mark.parametrize("state", [*SAVED, *WATCHES])
def test_the_saved_state_of_an_event(state):
    value, text = SAVED[state] if state in SAVED else (SavedState(watch=WATCHES[state][0]), WATCHES[state][1])
    lease = a_lease(events=(an_event(saved_state=value),))
    assert stored(rows.event_row("l", 0, lease.events[0])["saved_state"]) == text
    assert read_back(lease) == lease


CAUSES = {
    "alone": (Cause(ReasonCode.RESOURCE_FAILED), '{"code": "resource_failed", "of": 3309354559}'),
    "with all that it may have": (
        Cause(ReasonCode.SERVER_IN_THE_WAY, 2, frozenset({"b", "a"}), NOON),
        '{"code": "server_in_the_way", "of": 3309354559, "servers": 2, "resources": ["a", "b"], '
        '"until": "2030-04-01T12:00:00+00:00"}',
    ),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_the_cause_of_a_reason(kind):
    cause, text = CAUSES[kind]
    lease = a_lease(events=(an_event(reason="node ü", cause=cause),))
    assert stored(rows.event_row("l", 0, lease.events[0])["cause"]) == text
    assert read_back(lease) == lease


WAITS = {
    "that asks for a start and a length": (Wait(NOON, NOON + HOUR, NOON), "null"),
    "with all that it may have": (
        Wait(
            NOON,
            NOON + HOUR,
            NOON,
            tries=3,
            failed=(
                FailedTry(NOON, TryFailure.NOT_STARTED, "node-1 is ü", ReasonCode.RESOURCE_FAILED),
                FailedTry(NOON + MICRO, TryFailure.DENIED, "no"),
            ),
            advance=True,
            latest=NOON + HOUR,
            shortest=HOUR,
            longest=3 * HOUR,
        ),
        '{"tries": 3, "failed": [["2030-04-01T12:00:00+00:00", "not_started", "node-1 is \\u00fc", '
        '"resource_failed"], ["2030-04-01T12:00:00.000001+00:00", "denied", "no", null]], "advance": true, '
        '"latest": "2030-04-01T13:00:00+00:00", "length": [3600, 10800]}',
    ),
    "that may try without end": (Wait(NOON, NOON + HOUR, NOON, tries=0), '{"tries": 0}'),
}


@pytest.mark.parametrize("kind", WAITS)
def test_the_terms_of_a_wait(kind):
    wait, text = WAITS[kind]
    lease = a_lease(wait=wait)
    assert stored(rows.lease_row(lease)["wait_terms"]) == text
    assert read_back(lease) == lease


def test_an_offer():
    lease = a_lease(offer=TransferOffer("art", None, "yours? ü", "curie", NOON + MICRO, NOON + HOUR))
    text = '{"message": "yours? \\u00fc", "offered_by": "curie", "offered_at": "2030-04-01T12:00:00.000001+00:00"}'
    assert stored(rows.lease_row(lease)["offer_terms"]) == text
    assert read_back(lease) == lease


RESERVATIONS = {
    "that has nothing": (a_reservation(), "{}"),
    "with all that it may have": (
        replace(
            a_reservation(
                unassigned=frozenset({9, 7}), failed=frozenset({3}), gone=(Gone("s-2", NOON), Gone("s-1", NOON + MICRO))
            ),
            cloud_ids=Content({"aggregate_id": 5, "servers": ["s-3"]}),
        ),
        '{"aggregate_id": 5, "servers": ["s-3"], "left_out": [7, 9], "lost": [3], "gone": '
        '{"s-2": "2030-04-01T12:00:00+00:00", "s-1": "2030-04-01T12:00:00.000001+00:00"}}',
    ),
}


@pytest.mark.parametrize("kind", RESERVATIONS)
def test_a_reservation(kind):
    reservation, text = RESERVATIONS[kind]
    lease = a_lease(reservations=(reservation,))
    row = rows.reservation_row("l", 0, reservation)
    assert stored(row["cloud_ids"]) == text
    assert stored(row["parameters"]) == (
        '{"resource_properties": "[\\"==\\", \\"$rack\\", \\"\\u00fc\\"]", "min": 1, "max": 2}'
    )
    assert read_back(lease) == lease


def test_the_plan_for_a_lease_in_a_maintenance_window():
    plan = LeasePlan("l", Outcome.MOVED, 1, {"r": {7: {9: 2, 8: 1}}, "s": {7: {}}}, (NOON, NOON + HOUR))
    row = plan_row("m", plan)
    assert stored(row["targets"]) == '{"r": {"7": {"9": 2, "8": 1}}, "s": {"7": {}}}'
    assert stored(row["openings"]) == '["2030-04-01T12:00:00+00:00", "2030-04-01T13:00:00+00:00"]'
    texts = {name: json.loads(json.dumps(row[name])) for name in ("targets", "openings")}
    assert plan_of(SimpleNamespace(**{**row, **texts})) == plan


def test_an_entry_of_the_journal():
    changes = (FieldChange("name", "a", "ü"), FieldChange("max", None, "2", "r"))
    moves = (ResourceMove("r", (7, 8), (), 2, 0),)
    about = Subject(ObjectType.LEASE, "l", "training", "physics", "curie", 3)
    row = entry_row(JournalEntry(about, NOON, Verb.CHANGED, None, changes, moves, snapshot={"status": "ACTIVE"}))
    assert stored(row["snapshot"]) == '{"status": "ACTIVE"}'
    assert stored(row["changes"]) == '[["name", "a", "\\u00fc", null], ["max", null, "2", "r"]]'
    assert stored(row["moves"]) == '[["r", [7, 8], [], 2, 0]]'


def a_series(template: Template) -> Series:
    start = datetime(2030, 4, 1, 9)
    less, more = frozenset({start + timedelta(days=1)}), frozenset({start + timedelta(days=9)})
    recurrence = Recurrence(start, "Europe/Berlin", Rule(Frequency.DAILY, count=3), HOUR, less, more)
    return Series("s", "courses", "curie", "physics", recurrence, template, Fit.ALL, SeriesStatus.ACTIVE, NOON)


TEMPLATES = {
    "of little": (
        Template((ReservationRequest("physical:host", {"min": 1}),), None, False),
        '{"reservations": [{"resource_type": "physical:host", "parameters": {"min": 1}}], "before_end": null, '
        '"operator": false}',
    ),
    "of much": (
        Template((ReservationRequest("stack", {"n": [1, "ü"]}, {"key": "k"}),), Duration(seconds=90), True),
        '{"reservations": [{"resource_type": "stack", "parameters": {"n": [1, "\\u00fc"]}, "secret": {"key": "k"}}], '
        '"before_end": {"years": 0, "months": 0, "days": 0, "seconds": 90, "zone": "UTC", "backward": false}, '
        '"operator": true}',
    ),
}


@pytest.mark.parametrize("kind", TEMPLATES)
def test_the_template_and_the_dates_of_a_series(kind):
    template, text = TEMPLATES[kind]
    series = a_series(template)
    row = series_row(series)
    assert stored(row["template"]) == text
    assert stored([row["exdates"], row["rdates"]]) == '[["2030-04-02T09:00:00"], ["2030-04-10T09:00:00"]]'
    texts = {name: json.loads(json.dumps(row[name])) for name in ("template", "exdates", "rdates")}
    assert series_of(SimpleNamespace(**{**row, **texts})) == series


def test_the_data_of_a_resource():
    limits = {"VCPU": UnitLimits(1, 8, 2), "DISK_GB": UnitLimits()}
    pool = CardPool("VGPU", 3, 2, frozenset({"HW_C"}), UnitLimits(1, 2, 1))
    inventory = ResourceInventory(SIZE, limits, frozenset({"HW_B", "HW_A"}), (pool,))
    row = details_row(ResourceDetails({"vcpus": 4, "status": None, "name": "ü"}, inventory))
    assert stored(row["attributes"]) == '{"vcpus": 4, "status": null, "name": "\\u00fc"}'
    assert stored(row["capacity"]) == '{"MEMORY_MB": 2048, "VCPU": 4}'
    assert stored(row["limits"]) == '{"VCPU": [1, 8, 2], "DISK_GB": [1, 2147483647, 1]}'
    assert stored(row["traits"]) == '["HW_A", "HW_B"]'
    assert stored(row["pools"]) == '[["VGPU", 3, 2, ["HW_C"], 1, 2, 1]]'


def test_the_size_of_an_allocation():
    allocation = Allocation(HOST, 7, "l", "r", Window(NOON, NOON + HOUR), 2, SIZE)
    whole = replace(allocation, per_instance=None)
    sent = []
    # A driver that names its parameters.
    connection = SimpleNamespace(
        dialect=psycopg.dialect(), exec_driver_sql=lambda _, values: sent.append(values), info={}
    )
    allocation_writes.insert(connection, [allocation, whole], timedelta(0))
    ((first, second),) = ((values["per_instance_0"], values["per_instance_1"]) for values in sent)
    assert first.obj == {"MEMORY_MB": 2048, "VCPU": 4}
    assert second is None
