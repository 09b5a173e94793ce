# SPDX-License-Identifier: Apache-2.0
"""``/v1/managers``: what operators see of running managers, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.base.errors import StoreUnavailable
from blazar.model.leases.states import EventStatus, EventType
from blazar.model.managers.presence import RPC_VERSION, ManagerState, make_token
from tests.api.conftest import app_of, client_of, token
from tests.observed import ObservedStore, before, failing
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

OPERATOR = token("root", "admin", "admin")
TTL = timedelta(seconds=30)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def listed(http, *, version: str = "1.1", who=OPERATOR):
    return http.get("/v1/managers", headers={"OpenStack-API-Version": f"reservation {version}", **who})


def claim_start(world: World, holder: str):
    """Let a manager have claimed the start of a lease, which is due."""
    lease = world.lease(a_host(), start=timedelta(hours=1))
    start = lease.event(EventType.START)
    mine = replace(
        start,
        status=EventStatus.IN_PROGRESS,
        claimed_by=make_token(holder),
        claimed_at=NOON,
        due_at=NOON + TTL,
        attempts=1,
    )
    events = tuple(mine if event is start else event for event in lease.events)
    return world.store.leases.save(lease, replace(lease, events=events), at=NOON), start


def test_an_operator_sees_two_managers_and_the_work_of_one_that_was_killed(world, http):
    killed, survivor = world.manager, world.another_manager()
    killed.presence.beat()
    lease, start = claim_start(world, killed.claims.owner)
    world.clock.by(seconds=31)
    survivor.presence.enter(ManagerState.RUNNING)
    survivor.presence.beat()
    with counted(world.engine) as statements:
        answer = listed(http)
    assert (answer.status_code, statements.count, answer.json["links"]) == (200, 2, [])
    found = {manager["id"]: manager for manager in answer.json["managers"]}
    gone, there = found[killed.claims.owner], found[survivor.claims.owner]
    assert (gone["up"], gone["state"], there["up"], there["state"]) == (False, "starting", True, "running")
    assert gone["work"] == [
        {
            "event_id": start.id,
            "lease_id": lease.id,
            "event_type": "start_lease",
            "since": "2030-04-01T12:00:00Z",
        }
    ]
    assert (there["work"], there["regions"], there["options_agree"]) == ([], [""], True)
    assert (there["seen_at"], there["rpc_version"]) == ("2030-04-01T12:00:31Z", RPC_VERSION)
    assert {"name": "engine", "last_round_at": None, "failing_since": None, "error": None} in there["threads"]


def test_nobody_else_sees_managers_and_before_1_1_there_are_none(http):
    assert [listed(http, who=token(*who)).status_code for who in (("curie", PROJECT), ("nova", "art", "service"))] == [
        403,
        403,
    ]
    assert listed(http, version="1.0").status_code == 404


def test_a_manager_that_is_asked_whether_it_is_there_says_how_fast_its_database_answers(world):
    manager = world.another_manager()
    with counted(world.engine) as statements:
        pong = manager.service.ping()
    assert statements.count == 1
    assert (pong.manager_id, pong.state, pong.now) == (manager.claims.owner, "starting", NOON)
    assert (pong.database_error, 0 <= pong.database_seconds < 10) == (None, True)
    store = ObservedStore(world.store, before("managers.measure_answer", failing(StoreUnavailable("it is away"))))
    pong = world.another_manager(store=store).service.ping()
    assert (pong.database_seconds, pong.database_error) == (None, "it is away")
