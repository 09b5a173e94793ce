# SPDX-License-Identifier: Apache-2.0
"""Reasons of events and conditions from 1.1 on: a code, a sentence with numbers, and since when."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.api.leases.rules import View
from blazar.api.leases.v1_1 import reasons
from blazar.manager.common.settings import Settings
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudRefused, Conflict
from blazar.model.base.reasons import Cause, ReasonCode, reason
from blazar.model.leases.details import HeldResource, LeaseDetails
from blazar.model.leases.lease import Event
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import GENERIC, HOST, VOLUME
from tests.api.leases.test_leases import ADMIN, asking
from tests.manager.health.steps import ON_NODE_1, look
from tests.statements import counted
from tests.store.builders import NOON as THEN
from tests.store.builders import a_lease, hours
from tests.world import NOON, a_host, addresses, instances

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
MEMBER, OPERATOR = View(operator=False, names=False), View(operator=True, names=True)
SECRETS = ("cn-secret", "lease-secret", "server-secret", "project-secret", "4711")
TEXT = "host cn-secret runs server-secret of project-secret, lease-secret"
OWN = HeldResource("r", 7, HOST, "4711", "cn-secret", "h-own000", 1, None, False)
"""Its label is for members to see; its id and its name are not."""


@pytest.fixture
def http(world):
    return asking(world)


def shown(http, lease, headers=None):
    return http("GET", f"/v1/leases/{lease.id}", headers=headers).json["lease"]


def event_of(http, lease, kind=EventType.START, headers=None):
    return next(e for e in shown(http, lease, headers)["events"] if e["event_type"] == kind)


def conditions(http, lease):
    return [(c["type"], c["since"]) for c in shown(http, lease)["conditions"]]


@pytest.mark.parametrize("kind", [EventType.START, EventType.BEFORE_END, EventType.END, "of-a-client"])
@pytest.mark.parametrize("code", [*ReasonCode, None])
def test_no_sentence_for_a_member_names_what_is_not_the_leases_own(code, kind):
    causes = [Cause(code), Cause(code, 3, until=NOON), Cause(code, 1).at(7, 4711)] if code else [None]
    details = LeaseDetails(a_lease(hours(1, 2)), (OWN,))
    for cause in causes:
        event = Event("e", kind, NOON, EventStatus.UNDONE, THEN, reason=TEXT, cause=cause)
        for_members, for_operators = (reasons.of_event(event, details, view) for view in (MEMBER, OPERATOR))
        assert not [word for word in SECRETS if word in json.dumps(for_members)]
        assert for_members.keys() == {"code", "message"}
        assert for_members["code"] == (code or for_members["code"])
        assert for_operators["detail"] == TEXT
        assert "{" not in for_members["message"]


def test_a_sentence_about_missing_resources_counts_and_names_them():
    held = [replace(OWN, resource_id=n, label=f"h-{n}", name=f"cn-{n}") for n in range(6)]
    lost = Reservation("r", "physical:host", None, ReservationStatus.ACTIVE, THEN, failed=frozenset({0}))
    several = replace(lost, failed=frozenset(range(5)))

    def told(reservation, missing, view=MEMBER):
        return reasons.of_missing(reservation, held, missing, view)["message"]

    assert told(lost, 1) == "1 of 6 hosts has failed (h-0); it is used again when it is back"
    assert told(lost, 1, OPERATOR) == "1 of 6 hosts has failed (cn-0); it is used again when it is back"
    assert told(several, 5) == (
        "5 of 6 hosts have failed (h-0, h-1, h-2, 2 more); they are used again when they are back"
    )
    assert told(lost, 0) == told(lost, None)
    assert told(lost, None) == "a resource of the reservation has failed (h-0); it is used again when it is back"


@pytest.mark.parametrize(("kind", "word"), [(HOST, "servers"), (VOLUME, "volumes"), (GENERIC, "units")])
def test_a_sentence_about_what_is_missing_of_a_shared_resource_says_what_that_is(kind, word):
    held = [replace(OWN, kind=kind, count=3, per_instance=Amounts.of({"X": 1}))]
    lacking = Reservation("r", "x", None, ReservationStatus.ACTIVE, THEN)
    message = reasons.of_missing(lacking, held, 2, MEMBER)["message"]
    assert message == f"2 of 3 {word} have failed; they are used again when they are back"


@pytest.mark.slow
def test_a_start_that_waits_for_a_late_user_names_nobody_and_says_until_when(a_world):
    world = a_world(hosts=1, cleaning_time=timedelta(minutes=10))
    http = asking(world)
    first = world.lease(hours=1, project="art")
    second = world.lease(start=HOUR + timedelta(minutes=10), hours=1)
    world.run()
    world.simulated.users.boot_server("busy", project_id="art", user_id="curie", host="node-1")
    world.simulated.durations.deletion = timedelta(minutes=3)
    world.run_to(NOON + HOUR + timedelta(minutes=10))
    left = world.now(first).event(EventType.END).updated_at
    start = event_of(http, second)
    until = (left + timedelta(minutes=10)).strftime("%Y-%m-%dT%H:%M:")
    assert start["reason"]["code"] == "previous_user_not_left"
    assert f"being cleaned after the previous user, until {until}" in start["reason"]["message"]
    assert conditions(http, second) == [("start_delayed", "2030-04-01T13:10:00Z")]
    assert first.id in event_of(http, second, headers=ADMIN)["reason"]["detail"]
    for word in (first.id, first.reservations[0].id, "node-1", "busy"):
        assert word not in json.dumps(shown(http, second))
    world.run_to(left + timedelta(minutes=10))
    assert (world.now(second).status, conditions(http, second)) == (LeaseStatus.ACTIVE, [])
    assert event_of(http, second)["reason"]["code"] == "previous_user_not_left", "it says why it was late"


@pytest.mark.slow
def test_a_server_in_the_way_is_told_with_the_label_of_the_host(http, world):
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs=ON_NODE_1))
    world.run()
    (held,) = shown(http, lease)["reservations"][0]["allocations"]
    assert event_of(http, lease)["reason"] == {
        "code": "server_in_the_way",
        "message": f"a server that belongs to no reservation is in the way ({held['resource']['id']}); an operator has "
        f"to move it",
    }
    assert conditions(http, lease) == [("start_delayed", "2030-04-01T12:00:00Z")]
    world.run_to(NOON + HOUR)
    assert conditions(http, lease) == [("start_delayed", "2030-04-01T12:00:00Z")], "it lasts"
    world.run_to(NOON + 3 * HOUR)
    assert event_of(http, lease)["reason"]["code"] == "lease_ended"
    assert conditions(http, lease) == [("start_failed", "2030-04-01T14:00:00Z")], "nothing was there to save"
    assert event_of(http, lease, EventType.BEFORE_END)["reason"] == {
        "code": "lease_ended",
        "message": "the lease was not in use by then; there was nothing to save",
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CloudRefused("Nova refused cn-secret"), "cloud_refused"),
        (KeyError("cn-secret"), "internal_error"),
    ],
)
def test_an_error_of_the_cloud_is_told_as_a_code(http, world, error, code):
    lease = world.lease(a_host(2))
    world.faults.fail_before("add_host", error, times=9)
    world.run()
    start = event_of(http, lease)
    assert start["reason"]["code"] == code
    assert "secret" not in json.dumps(shown(http, lease))


def test_a_quota_of_the_cloud_is_told_as_such(http, world):
    world.register_addresses(10)
    over = Conflict("Quota exceeded for project-secret").because(ReasonCode.QUOTA_EXCEEDED)
    world.faults.fail_before("create_floating_ip", over)
    lease = world.lease(addresses(1))
    world.run()
    assert event_of(http, lease)["reason"] == {
        "code": "quota_exceeded",
        "message": "a quota of the project is exceeded; delete something in it, or ask for a larger one",
    }


@pytest.mark.slow
def test_an_end_that_waits_for_its_servers_says_how_many(http, world):
    lease = world.lease(a_host(needs=ON_NODE_1))
    world.run()
    for name in ("one", "two"):
        world.simulated.users.boot_server(name, project_id="physics", user_id="curie", host="node-1")
    world.simulated.durations.deletion = 9 * MINUTE
    world.run_to(NOON + 2 * HOUR)
    assert event_of(http, lease, EventType.END)["reason"] == {
        "code": "resource_not_ready",
        "message": "its servers are still being deleted, 2 left",
    }
    assert conditions(http, lease) == [("end_delayed", "2030-04-01T14:00:00Z")]
    world.run_to(NOON + 2 * HOUR + 5 * MINUTE)
    assert conditions(http, lease) == [("end_delayed", "2030-04-01T14:00:00Z")]


@pytest.mark.slow
def test_work_that_cannot_be_saved_is_counted(http, world):
    lease = world.lease(a_host(needs=ON_NODE_1, before_end="snapshot"))
    world.run()
    server = {"project_id": "physics", "user_id": "curie", "hint": lease.reservations[0].id}
    world.simulated.users.boot_server("thesis", host="node-1", **server)
    world.simulated.users.boot_server("shelf", host=None, status="SHELVED_OFFLOADED", **server)
    world.run_to(NOON + 2 * HOUR - 5 * MINUTE)
    saving = event_of(http, lease, EventType.BEFORE_END)["reason"]
    assert saving == {"code": "save_failed", "message": "1 of its servers could not be saved"}
    world.run_to(NOON + 2 * HOUR + MINUTE)
    failed = event_of(http, lease, EventType.BEFORE_END)["reason"]
    assert failed["code"] == "not_finished_at_end"
    assert [name for name, _ in conditions(http, lease)] == ["save_failed"]


@pytest.mark.parametrize("asked", [a_host(2), instances(2, affinity=False)], ids=["hosts", "instances"])
def test_resources_are_missing_since_they_failed_and_later_since_they_failed_again(http, world, asked):
    lease = world.lease(asked)
    world.run()
    lost = min(world.hosts_of(lease))
    world.clock.by(minutes=10)
    world.simulated.operators.host_down(lost)
    look(world)
    (condition,) = shown(http, lease)["conditions"]
    assert (condition["type"], condition["since"], condition["count"]) == (
        "missing_resources",
        "2030-04-01T12:10:00Z",
        1,
    )
    assert condition["reason"]["code"] == "resource_failed"
    assert condition["reason"]["message"].startswith("1 of 2 ")
    assert lost not in json.dumps(shown(http, lease))
    world.clock.by(minutes=10)
    http("PUT", f"/v1/leases/{lease.id}", {"name": "renamed"})
    world.change(lease, end=NOON + 5 * HOUR)
    look(world)
    assert conditions(http, lease) == [("missing_resources", "2030-04-01T12:10:00Z")], "other changes leave it"
    world.simulated.operators.host_up(lost)
    look(world, 3)
    assert conditions(http, lease) == []
    world.clock.by(minutes=10)
    world.simulated.operators.host_down(lost)
    look(world)
    assert conditions(http, lease) == [("missing_resources", "2030-04-01T12:30:00Z")]


def test_a_host_that_is_left_out_of_the_start_is_missing_since_then_and_the_start_says_so(http, world):
    lease = world.lease(a_host(3), start=HOUR)
    world.simulated.operators.host_vanishes("node-2")
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert conditions(http, lease) == [("missing_resources", "2030-04-01T13:00:00Z")]
    start, (condition,) = event_of(http, lease), shown(http, lease)["conditions"]
    (label,) = [
        each["resource"]["id"]
        for each in shown(http, lease)["reservations"][0]["allocations"]
        if each["status"] == "failed"
    ]
    assert (start["status"], start["reason"]["code"]) == ("DONE", "resource_failed")
    assert label in start["reason"]["message"]
    assert condition["reason"]["message"] == (f"1 of 3 hosts has failed ({label}); it is used again when it is back")


def test_resources_have_changed_since_the_first_was_replaced(a_world):
    world = a_world(hosts=4, settings=Settings(heal_active=True, claim_ttl=timedelta(seconds=30)))
    http = asking(world)
    lease = world.lease(a_host(1))
    world.run()
    for minutes in (10, 10):
        world.clock.by(minutes=minutes)
        (host,) = world.hosts_of(lease)
        world.simulated.operators.host_down(host)
        look(world)
    assert conditions(http, lease) == [("resources_changed", "2030-04-01T12:10:00Z")]


def test_a_lease_that_is_to_start_once_more_is_not_late(http, world):
    world.faults.fail_before("add_host", CloudRefused("no such host"))
    lease = world.lease()
    world.run()
    assert conditions(http, lease) == [("start_failed", "2030-04-01T12:00:00Z")]
    world.clock.by(minutes=5)
    later = {"end_date": "2030-04-01T15:00Z"}
    assert http("PUT", f"/v1/leases/{lease.id}", later).status_code == 200
    assert conditions(http, lease) == []
    assert event_of(http, lease)["reason"] is None


def test_an_address_that_another_has_taken_is_a_failed_resource(world):
    http = asking(world)
    world.register_addresses(10, 11)
    lease = world.lease(addresses(2), start=HOUR)
    world.simulated.network.create_floating_ip(
        network_id="public", subnet_id="public-subnet", address="203.0.113.10", project_id="art", description=""
    )
    world.run_to(NOON + HOUR)
    assert "resource_failed" in json.dumps(shown(http, lease))
    assert "art" not in json.dumps(shown(http, lease)).replace("start", "")


def test_rows_of_an_earlier_version_are_shown_by_their_text_and_last_change(http, world):
    lease = world.lease(a_host(2))
    world.run()
    now = world.now(lease)
    old = replace(
        now,
        events=tuple(
            replace(e, status=EventStatus.ERROR, reason="Quota exceeded, says cn-secret", updated_at=NOON + MINUTE)
            if e.event_type == EventType.START
            else e
            for e in now.events
        ),
        reservations=tuple(replace(r, missing_resources=True, updated_at=NOON + 2 * MINUTE) for r in now.reservations),
    )
    world.store.leases.save(now, old, at=NOON)
    assert conditions(http, lease) == [
        ("missing_resources", "2030-04-01T12:02:00Z"),
        ("start_failed", "2030-04-01T12:01:00Z"),
    ]
    assert event_of(http, lease)["reason"] == {
        "code": "quota_exceeded",
        "message": "a quota of the project is exceeded; delete something in it, or ask for a larger one",
    }


def test_a_reason_costs_no_statement(http, world):
    lease = world.lease()
    with counted(world.engine) as plain:
        shown(http, lease)
    now = world.now(lease)
    marked = tuple(replace(e, reason="x", cause=reason("x", ReasonCode.INTERNAL_ERROR).cause) for e in now.events)
    world.store.leases.save(now, replace(now, events=marked), at=NOON)
    with counted(world.engine) as explained:
        shown(http, lease)
    assert explained.count == plain.count
