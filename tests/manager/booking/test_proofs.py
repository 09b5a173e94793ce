# SPDX-License-Identifier: Apache-2.0
"""A refusal says what it proves: an instant at which all hosts are full, or that no way was found."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from blazar.calendar.repack.values import RepackMode
from blazar.calendar.timeline import epoch
from blazar.manager.booking import host_search
from blazar.manager.booking.host_reading import HostReading
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.moments import Duration
from blazar.model.base.proof import ProofCode, RefusalProof
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion
from blazar.observe import metrics
from tests.api.conftest import app_of, client_of
from tests.api.leases.test_waiting import ask
from tests.counted import growing
from tests.manager.booking.test_repacking import (
    a_world,
    booked_on,
    hosts,
    in_the_way_of_a_booking,
    in_use,
    pair,
    prolong,
)
from tests.world import NOON, PROJECT, World, a_host

HOUR = timedelta(hours=1)
LATER = {"resource_type": "physical:host", "min": 1}


@pytest.fixture
def world(sqlite) -> World:
    return a_world(sqlite)


def refused(world: World, *asked, **span) -> NotEnoughResources:
    with pytest.raises(NotEnoughResources) as found:
        world.lease(*asked, **span)
    return found.value


def count_taken(world: World, leases: list[Lease], at: datetime) -> int:
    """Count the hosts of leases at an instant, as a reader of the calendar would."""
    there = [lease for lease in leases if lease.window.start <= at < lease.window.end]
    return len({host for lease in there for host in hosts(world, lease)})


def test_a_refusal_says_at_which_instant_all_is_full(world):
    booked = [world.lease(a_host(2), start=3 * HOUR, hours=2), world.lease(start=4 * HOUR, hours=4)]
    proof = refused(world, a_host(2), start=3.5 * HOUR, hours=1).proof
    assert proof is not None
    assert proof.code is ProofCode.FULL_AT
    assert proof.full is not None
    assert (proof.full.at, proof.full.hosts, proof.full.promised, proof.full.asked) == (NOON + 3.5 * HOUR, 3, 2, 2)
    assert count_taken(world, booked, proof.full.at) == proof.full.promised


def test_each_proof_holds_for_who_counts_again(sqlite):
    """On random calendars: at the instant of the proof there is no room, whatever was exchanged."""
    dice, proven = random.Random(34), 0
    world = a_world(sqlite, *[{}] * 4)
    booked: list[Lease] = []
    for _ in range(40):
        count, start, hours = dice.randint(1, 3), dice.randint(3, 14), dice.randint(1, 5)
        try:
            booked.append(world.lease(a_host(count), start=start * HOUR, hours=hours))
            continue
        except NotEnoughResources as error:
            proof = error.proof
        assert proof is not None
        if (full := proof.full) is None:
            continue
        proven += 1
        assert NOON + start * HOUR <= full.at < NOON + (start + hours) * HOUR
        assert (full.hosts, full.asked) == (4, count)
        assert count_taken(world, booked, full.at) == full.promised > full.hosts - count
    assert proven > 10


def test_what_is_not_found_in_time_is_not_proven(world, monkeypatch):
    monkeypatch.setattr(host_search, "LONGEST_SEARCH", -1)
    lease, _ = pair(world)
    with pytest.raises(NotEnoughResources) as found:
        prolong(world, lease, 8)
    assert found.value.proof == RefusalProof()
    assert found.value.proof.code is ProofCode.NOT_PROVEN


def test_a_refused_prolongation_has_a_proof_of_its_own_hosts(world):
    lease = in_use(world)
    (host,) = hosts(world, lease)
    world.change(booked_on(world, host), keep_hosts=True)
    with pytest.raises(NotEnoughResources) as found:
        prolong(world, lease, 8)
    full = found.value.proof.full
    assert (full.at, full.hosts, full.promised, full.asked) == (NOON + 4 * HOUR, 1, 1, 1)


@pytest.mark.parametrize("why", ["off", "nothing like it"])
def test_where_nobody_was_to_move_nothing_is_proven_or_not(sqlite, why):
    world = a_world(sqlite, **({"mode": RepackMode.OFF} if why == "off" else {}))
    asked = a_host(4) if why == "off" else a_host(needs='["==", "$vcpus", "17"]')
    assert refused(world, asked, start=3 * HOUR).proof is None


def test_the_answer_has_the_proof_and_the_sentence_names_nobody(world):
    world.lease(a_host(3), start=3 * HOUR, hours=4, project="chemistry", name="secret")
    http = client_of(app_of(world.manager))
    body = {"name": "x", "start_date": "2030-04-01T15:00:00Z", "end_date": "2030-04-01T17:00:00Z"}
    answer = ask(http, body={**body, "reservations": [LATER]})
    assert answer.status_code == 409
    (error,) = answer.json["errors"]
    assert error["data"]["proof"] == {
        "code": "full_at",
        "at": "2030-04-01T15:00:00Z",
        "hosts": 3,
        "promised": 3,
        "asked": 1,
    }
    told = "At 2030-04-01 15:00 UTC leases that can have no others hold 3 of 3 hosts, and 1 more is needed."
    assert told in error["detail"]
    assert not {"secret", "chemistry", *(r.name for r in world.store.resources.catalog(HOST).resources)} & set(
        answer.text.replace('"', " ").split()
    )


def test_a_question_has_the_proof_that_a_booking_is_refused_with(world, monkeypatch):
    world.lease(a_host(3), start=3 * HOUR, hours=4, project="chemistry")
    http = client_of(app_of(world.manager))
    window = {"start_date": "2030-04-01T15:00:00Z", "end_date": "2030-04-01T17:00:00Z"}

    def answered(**more):
        body = {**window, "reservations": [LATER], **more}
        return ask(http, path="/v1/availability", body=body).json["availability"]

    def refused_with():
        (error,) = ask(http, body={"name": "x", **window, "reservations": [LATER]}).json["errors"]
        return error["data"]["proof"]

    assert answered()["proof"] == refused_with()
    assert answered()["proof"]["code"] == "full_at"
    assert answered(explain=False)["proof"] is None
    assert answered(start_date="2030-04-01T12:00:00Z", end_date="2030-04-01T14:00:00Z")["proof"] is None
    monkeypatch.setattr(HostReading, "read_in_use", lambda *_: None)
    assert answered()["proof"] == refused_with()
    monkeypatch.setattr("blazar.calendar.repack.search.find_proof", lambda board: None)
    assert answered()["proof"] == refused_with() == {"code": "not_proven"}


def test_where_the_number_of_free_hosts_is_proof_enough_nothing_else_is_read(world, monkeypatch):
    world.lease(a_host(2), start=3 * HOUR, hours=4)
    monkeypatch.setattr("blazar.store.maintenance.windows.read_pieces", lambda *_, **__: pytest.fail("was read"))
    refusal = refused(world, a_host(2), start=4 * HOUR, hours=9)
    assert (refusal.proof.full.hosts, refusal.proof.full.promised, refusal.proof.full.asked) == (3, 2, 2)
    found = world.manager.availability.find(
        AvailabilityQuestion(
            Actor("curie", PROJECT),
            reservations=(a_host(2),),
            duration=Duration(seconds=3600),
            earliest=NOON + 4 * HOUR,
        )
    )
    assert found.openings[0].window.start == NOON + 7 * HOUR
    assert found.proof is not None


def test_hosts_that_a_lease_has_itself_are_no_proof_against_it(world):
    lease = world.lease(a_host(2), start=3 * HOUR, hours=4)
    world.lease(a_host(1), start=3 * HOUR, hours=4)
    runtime, requests = world.manager.leases.creator._runtime, ()
    span = epoch(lease.window.start), epoch(lease.window.end)
    for who, taken in ((lease, 1), (replace(lease, id="another"), 3)):
        in_use = HostReading(runtime, NOON, lease.window).read_in_use(who, requests)
        assert in_use.find_full(span, 4 - taken).promised == taken
        assert in_use.find_full(span, 3 - taken) is None


def test_the_number_of_hosts_is_not_told_where_some_are_open_to_others_only(world, monkeypatch):
    runtime, lease = world.manager.leases.creator._runtime, world.lease()
    assert HostReading(runtime, NOON, lease.window).read_in_use(lease, ()) is not None
    monkeypatch.setattr(world.store.resources.catalog(HOST), "restricted", True)
    assert HostReading(runtime, NOON, lease.window).read_in_use(lease, ()) is None


def test_a_dry_run_says_how_many_others_it_would_move(world):
    lease, pending = pair(world)
    http = client_of(app_of(world.manager))
    path = f"/v1/leases/{lease.id}"
    planned = ask(http, "PUT", f"{path}?dry_run=true", {"end_date": "2030-04-01T20:00:00Z"}).json["lease"]
    assert planned["moves_others"] == 1
    assert pending.id not in str(planned)
    assert (
        ask(http, "PUT", f"{path}?dry_run=true", {"end_date": "2030-04-01T15:00:00Z"}).json["lease"]["moves_others"]
        == 0
    )
    assert ask(http, "GET", path).json["lease"]["moves_others"] is None


def test_a_dry_run_of_a_booking_says_it_too(sqlite):
    world = a_world(sqlite, {}, {})
    in_the_way_of_a_booking(world)
    http = client_of(app_of(world.manager))
    body = {"name": "x", "start_date": "2030-04-01T16:00:00Z", "end_date": "2030-04-01T20:00:00Z"}
    asked = {**body, "reservations": [LATER]}
    assert ask(http, path="/v1/leases?dry_run=true", body=asked).json["lease"]["moves_others"] == 1
    assert ask(http, body=asked).json["lease"]["moves_others"] is None


def test_searches_and_what_they_found_are_counted(world, monkeypatch):
    lease, _ = pair(world)
    with growing(metrics.REPACKINGS, outcome="proven"), growing(metrics.REPACK_DURATION):
        refused(world, a_host(9), start=3 * HOUR)
    with monkeypatch.context() as hurried:
        hurried.setattr(host_search, "LONGEST_SEARCH", -1)
        with (
            growing(metrics.REPACKINGS, outcome="not_proven"),
            growing(metrics.REPACKED_LEASES, 0),
            pytest.raises(NotEnoughResources),
        ):
            prolong(world, lease, 8)
    with growing(metrics.REPACKINGS, outcome="found"), growing(metrics.REPACKED_LEASES):
        prolong(world, lease, 8)
