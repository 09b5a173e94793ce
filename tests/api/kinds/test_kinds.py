# SPDX-License-Identifier: Apache-2.0
"""Kinds of lease, and the answer to the request for an immediate one."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.api.http.context import EXTENSION
from blazar.api.leases import services as waiters
from blazar.api.leases.services import Waiters
from blazar.model.base.errors import CloudRefused, CloudUnavailable, ManagerUnavailable, TooManyRequests
from blazar.model.leases.details import ImmediateVerdict
from blazar.model.leases.requests import LeaseDefaults
from blazar.model.leases.states import LeaseKind
from tests.api.conftest import app_of, client_of, token, with_leases
from tests.observed import ObservedManager, before, failing
from tests.statements import counted
from tests.world import NOON, World

LIMIT = 45
TRIES = 6
"""So often a start is tried within the limit."""
HOST = {"resource_type": "physical:host", "min": 1}
LEASE = {"name": "x", "end_date": "+2h", "reservations": [HOST]}
NOW = {**LEASE, "kind": "immediate"}
OPERATOR = token("root", "admin", "admin")


def client_for(world, manager=None, *, act=None, default=LeaseKind.SCHEDULED):
    """Return a client of a service in which time passes, and work is done, while a request waits."""
    app = app_of(manager or world.manager)
    services = app.extensions[EXTENSION]

    def sleep(seconds: float) -> None:
        # Not one after the other, as one may pass the time of the other.
        world.run_to(world.clock.now() + timedelta(seconds=seconds))

    waits = Waiters(sleep=act or sleep, clock=world.clock.elapsed)
    app.extensions = {EXTENSION: with_leases(services, waiters=waits, defaults=LeaseDefaults(default))}
    return client_of(app)


@pytest.fixture
def http(world):
    return client_for(world)


def ask(http, method="POST", path="/v1/leases", body=None, version="1.1", **headers):
    sent = {"OpenStack-API-Version": f"reservation {version}", **(headers or token())}
    return http.open(path, method=method, json=body, headers=sent)


def fault(answer):
    (found,) = answer.json["errors"]
    return answer.status_code, found["code"].partition(".")[2], found.get("pointer")


def leases(http, query="?state=all"):
    return ask(http, "GET", f"/v1/leases{query}").json["leases"]


def test_a_lease_is_scheduled_unless_it_says_otherwise(http):
    lease = ask(http, body=LEASE).json["lease"]
    assert (lease["kind"], lease["end_reason"], lease["status"]) == ("scheduled", None, "PENDING")
    assert ask(http, body={**LEASE, "kind": "scheduled"}).json["lease"]["kind"] == "scheduled"


def test_an_immediate_lease_is_answered_when_it_is_handed_over(http, world):
    answer = ask(http, body=NOW)
    lease = answer.json["lease"]
    assert (answer.status_code, lease["kind"], lease["status"]) == (201, "immediate", "ACTIVE")
    assert lease["start_date"] == "2030-04-01T12:00:00Z"
    assert [event["event_type"] for event in lease["events"]] == ["start_lease", "before_end_lease", "end_lease"]
    shown = ask(http, "GET", f"/v1/leases/{lease['id']}")
    assert (shown.json["lease"], shown.headers["ETag"]) == (lease, answer.headers["ETag"])


def test_1_0_knows_no_kinds(http):
    ask(http, body=NOW)
    old = {"name": "x", "start_date": "now", "end_date": "2030-04-01 14:00", "reservations": [{**HOST, "max": 1}]}
    assert ask(http, body={**old, "kind": "immediate"}, version="1.0").status_code == 400
    (lease,) = ask(http, "GET", "/v1/leases", version="1.0").json["leases"]
    assert not {"kind", "end_reason"} & lease.keys()
    assert {event["event_type"] for event in lease["events"]} == {"start_lease", "before_end_lease", "end_lease"}


def test_nobody_can_make_an_event_of_ours(http):
    old = {"name": "x", "start_date": "2030-05-01 08:00", "end_date": "2030-05-01 14:00", "reservations": []}
    answer = ask(http, body={**old, "events": [{"event_type": "immediate_by"}]}, version="1.0")
    assert answer.status_code == 400


def test_an_unknown_kind_is_refused_with_those_that_are_known(http):
    refused = ask(http, body={**LEASE, "kind": "eventual"})
    assert fault(refused) == (400, "invalid_value", "/kind")
    assert refused.json["errors"][0]["data"] == {"allowed": ["scheduled", "immediate", "retries", "best_effort"]}


@pytest.mark.parametrize("start", ["2030-04-01T12:00:00Z", "2030-04-02T12:00:00Z", "+1h"])
def test_an_immediate_lease_has_no_other_start_than_now(http, start):
    assert fault(ask(http, body={**NOW, "start_date": start}))[::2] == (400, "/start_date")
    assert leases(http) == []
    assert ask(http, body={**NOW, "start_date": "now"}).status_code == 201


def test_a_start_that_fails_is_told_with_its_reason_and_leaves_nothing(http, world):
    world.faults.fail_before("add_host", CloudRefused("node-1 is on fire"))
    refused = ask(http, body=NOW)
    assert fault(refused) == (409, "not_handed_over", None)
    (error,) = refused.json["errors"]
    assert error["detail"] == "it could not be handed over, and nothing is booked: the cloud refused a step"
    assert error["data"]["reason"] == {"code": "cloud_refused", "message": "the cloud refused a step"}
    assert "node-1" not in refused.text
    assert leases(http, "") == []
    (past,) = leases(http, "?state=past")
    assert (past["id"], past["status"], past["end_reason"]) == (error["data"]["lease_id"], "TERMINATED", "refused")
    assert world.store.events.next_due() is None
    assert world.pool() == {"node-1", "node-2", "node-3"}


def test_operators_read_the_reason_as_it_was_recorded(http, world):
    world.faults.fail_before("add_host", CloudRefused("node-1 is on fire"))
    refused = ask(http, body=NOW, **OPERATOR)
    assert "node-1 is on fire" in refused.json["errors"][0]["detail"]


def test_what_takes_longer_than_the_limit_is_refused_within_it(http, world):
    world.faults.fail_before("add_host", CloudUnavailable("busy"), times=TRIES)
    refused = ask(http, body=NOW)
    assert fault(refused) == (409, "not_handed_over", None)
    (error,) = refused.json["errors"]
    assert error["detail"].startswith("it was not handed over in 45 seconds, and nothing is booked: ")
    assert error["data"]["limit_seconds"] == LIMIT
    assert world.clock.now() <= NOON + timedelta(seconds=LIMIT + waiters.GRACE)
    assert leases(http, "") == []


def test_what_is_not_free_is_refused_as_ever_and_waits_for_nothing(http, world):
    assert ask(http, body={**NOW, "reservations": [{**HOST, "min": 3}]}).status_code == 201
    assert fault(ask(http, body=NOW))[:2] == (409, "not_enough_resources")
    assert world.clock.now() - NOON < timedelta(seconds=2)


def test_of_two_that_race_for_the_last_host_one_gets_it(world):
    ask(client_for(world), body={**LEASE, "reservations": [{**HOST, "min": 2}]})
    meet, answers = threading.Barrier(2), []
    lock = threading.Lock()

    def around(name, call, *arguments, **more):
        if name == "leases.book":
            meet.wait(10)
        return call(*arguments, **more)

    def work(_: float) -> None:
        with lock:
            world.manager.engine.run_due()

    def race() -> None:
        manager = ObservedManager(world.another_manager(), around)
        answers.append(ask(client_for(world, manager, act=work), body=NOW))

    threads = [threading.Thread(target=race) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    assert [each["status"] for each in leases(client_for(world), "?kind=immediate")] == ["ACTIVE"]


def test_a_request_that_is_sent_again_gets_the_same_lease(http):
    first = ask(http, body=NOW, **token(), **{"Idempotency-Key": "k"})
    again = ask(http, body=NOW, **token(), **{"Idempotency-Key": "k"})
    assert (again.status_code, again.headers["Idempotency-Replayed"]) == (201, "true")
    assert again.json == first.json


def test_while_it_is_not_decided_the_same_request_is_in_progress(world):
    seen = []

    def other(seconds: float) -> None:
        seen.append(fault(ask(client_for(world), body=NOW, **token(), **{"Idempotency-Key": "k"})))
        world.run_to(world.clock.now() + timedelta(seconds=seconds))

    answer = ask(client_for(world, act=other), body=NOW, **token(), **{"Idempotency-Key": "k"})
    assert (answer.status_code, seen) == (201, [(409, "request_in_progress", None)])


def test_a_refused_request_is_not_remembered(http, world):
    world.faults.fail_before("add_host", CloudRefused("not now"))
    assert ask(http, body=NOW, **token(), **{"Idempotency-Key": "k"}).status_code == 409
    assert ask(http, body=NOW, **token(), **{"Idempotency-Key": "k"}).status_code == 201


def test_if_the_api_dies_while_it_waits_the_managers_decide_it(world):
    class Gone(BaseException):
        pass

    def die(_: float) -> None:
        raise Gone

    world.faults.fail_before("add_host", CloudUnavailable("busy"), times=TRIES)
    with pytest.raises(Gone):
        ask(client_for(world, act=die), body=NOW)
    world.run_to(NOON + timedelta(seconds=LIMIT + 1))
    assert leases(client_for(world), "") == []
    assert [each["end_reason"] for each in leases(client_for(world))] == ["refused"]
    assert world.store.events.next_due() is None


def test_a_manager_that_does_not_answer_for_a_moment_is_asked_again(world):
    manager = ObservedManager(world.manager, before("leases.verdict", failing(ManagerUnavailable("gone"))))
    assert ask(client_for(world, manager), body=NOW).status_code == 201


def test_if_no_manager_decides_the_answer_says_that_it_is_not_known(world):
    def pass_time(seconds: float) -> None:
        world.clock.by(seconds=seconds)

    answer = ask(client_for(world, act=pass_time), body=NOW)
    assert fault(answer) == (503, "manager_unavailable", None)
    world.run()
    assert leases(client_for(world), "") == []


def test_a_lease_that_is_deleted_while_its_request_waits_is_no_refusal(world):
    def delete(seconds: float) -> None:
        for each in world.manager.leases.all(None):
            world.manager.leases.delete(each.id)
        world.run_to(world.clock.now() + timedelta(seconds=seconds))

    assert fault(ask(client_for(world, act=delete), body=NOW))[:2] == (409, "lease_ended")


def test_only_some_requests_wait_at_a_time_and_the_others_book_nothing(world):
    waiting, taken = Waiters(), ExitStack()
    for _ in range(waiters.MOST_OF_PROJECT):
        taken.enter_context(waiting.place("physics"))
    app = app_of(world.manager)
    app.extensions = {EXTENSION: with_leases(app.extensions[EXTENSION], waiters=waiting)}
    http = client_of(app)
    refused = ask(http, body=NOW)
    assert (fault(refused)[:2], refused.headers["Retry-After"]) == ((429, "too_many_requests"), "1")
    assert leases(http) == []
    assert ask(http, body=LEASE).status_code == 201
    for number in range(waiters.MOST - waiters.MOST_OF_PROJECT):
        taken.enter_context(waiting.place(f"p{number}"))
    assert ask(http, body=NOW, **token("bohr", "chemistry")).status_code == 429


@pytest.mark.parametrize(("threads", "most"), [(1, 1), (4, 2), (15, 7), (16, 8), (64, 8)])
def test_half_of_the_threads_are_left_for_others(threads, most):
    waiting, taken = Waiters(most=waiters.most_of(threads)), ExitStack()
    for number in range(most):
        taken.enter_context(waiting.place(f"p{number}"))
    with pytest.raises(TooManyRequests), waiting.place("physics"):
        pass


@pytest.mark.slow
def test_a_place_is_free_again_when_the_answer_is_there(http, world):
    for _ in range(2 * waiters.MOST):
        lease = ask(http, body=NOW).json["lease"]
        assert ask(http, "DELETE", f"/v1/leases/{lease['id']}").status_code == 204
        world.run()


def test_a_dry_run_says_what_would_come_and_does_not_wait(http, world):
    answer = ask(http, path="/v1/leases?dry_run=true", body=NOW)
    assert (answer.status_code, answer.json["lease"]["kind"], world.clock.now()) == (200, "immediate", NOON)
    assert leases(http) == []


def test_leases_are_found_by_their_kind(http):
    ask(http, body=LEASE)
    ask(http, body=NOW)
    assert [each["kind"] for each in leases(http, "?kind=immediate&fields=kind")] == ["immediate"]
    assert leases(http, "?fields=end_reason")[0].keys() == {"id", "end_reason"}


def test_operators_choose_the_default_and_what_may_be_booked(engine):
    kinds = frozenset({LeaseKind.IMMEDIATE})
    world = World(engine)
    world.settings = replace(world.settings, kinds=kinds)
    world.manager = world.another_manager()
    http = client_for(world, default=LeaseKind.IMMEDIATE)
    assert ask(http, body=LEASE).json["lease"]["kind"] == "immediate"
    refused = ask(http, body={**LEASE, "kind": "scheduled"})
    assert fault(refused) == (400, "invalid_value", "/kind")
    assert refused.json["errors"][0]["data"] == {"allowed": ["immediate"]}
    old = {"name": "x", "start_date": "now", "end_date": "2030-04-01 14:00", "reservations": [{**HOST, "max": 1}]}
    assert ask(http, body=old, version="1.0").status_code == 400


def test_what_it_costs(http, world):
    ask(http, body=LEASE)
    with counted(world.engine) as scheduled:
        ask(http, body=LEASE)
    looks = []
    manager = ObservedManager(world.manager, lambda name, call, *a, **k: (looks.append(name), call(*a, **k))[1])
    with counted(world.engine) as look:
        world.manager.leases.verdict(ask(client_for(world, manager), body=NOW).json["lease"]["id"])
    of_engine = [text for text in look.texts if "due_at" in text]
    assert looks.count("leases.verdict") == 2
    # Beside its booking: two looks of the request, one of this test, the details as they are then, and its start.
    asked = [text for text in look.texts if "end_reason" in text and "events.status" in text and "JOIN events" in text]
    assert (len(asked), len(of_engine) > 0, scheduled.count) == (3, True, 14)


def test_the_wait_looks_less_and_less_often():
    pauses, at = [], [0.0]

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        at[0] += seconds

    waiting = Waiters(sleep=sleep, clock=lambda: at[0])
    assert waiting.outcome(lambda: ImmediateVerdict.WAITING, timedelta(seconds=LIMIT)) is ImmediateVerdict.WAITING
    assert pauses[:5] == [0.1, 0.2, 0.4, 0.8, 1.0]
    assert (set(pauses[4:]), len(pauses) < 60, at[0] >= LIMIT) == ({1.0}, True, True)
