# SPDX-License-Identifier: Apache-2.0
"""A manager that is paused right before the last write of a creation tells what is true of the lease."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.base.errors import ClaimLost, WrongState
from tests.api.conftest import app_of, client_of, token
from tests.world import World, a_host, instances

HOUR = timedelta(hours=1)
KINDS = {"host": a_host, "instances": instances}


@pytest.fixture
def world(a_world) -> World:
    return a_world()


def pause_before_the_last_write(world: World, monkeypatch, meanwhile) -> None:
    """Let something happen after the last call of a creation, before its last write."""
    save, left = world.store.leases.save, [meanwhile]

    def paused(before, after, **more):
        if left:
            left.pop()()
        return save(before, after, **more)

    monkeypatch.setattr(world.store.leases, "save", paused)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [0, 1, 2])
def test_it_was_undone_and_not_deleted(world, monkeypatch, kind, rounds):
    other = world.another_manager()

    def taken_over() -> None:
        world.clock.to(world.clock.now() + timedelta(minutes=2))
        for _ in range(rounds):
            other.engine.run_due()

    pause_before_the_last_write(world, monkeypatch, taken_over)
    if not rounds:
        # Nobody has taken it over: the user gets the lease.
        lease = world.lease(KINDS[kind](), start=HOUR)
        assert world.now(lease).status == "PENDING"
        return
    with pytest.raises(ClaimLost) as told:
        world.lease(KINDS[kind](), start=HOUR)
    assert "deleted" not in told.value.message
    assert "another manager has undone that" in told.value.message
    assert "held up" in told.value.message
    assert told.value.retry_after


def test_it_is_told_as_that_of_a_manager_and_not_of_the_cloud(world, monkeypatch):
    other = world.another_manager()

    def taken_over() -> None:
        world.clock.to(world.clock.now() + timedelta(minutes=2))
        for _ in range(2):
            other.engine.run_due()

    pause_before_the_last_write(world, monkeypatch, taken_over)
    http = client_of(app_of(world.manager))
    dates = {"start_date": "2031-01-01T00:00:00Z", "end_date": "2031-01-02T00:00:00Z"}
    body = {"name": "l", **dates, "reservations": [{"resource_type": "physical:host", "min": 1}]}
    answer = http.post("/v1/leases", json=body, headers={**token(), "OpenStack-API-Version": "reservation 1.1"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    (fault,) = answer.json["errors"]
    assert fault["code"] == "reservation.manager_unavailable"
    assert "the request may be sent again" in fault["detail"]


def test_what_a_user_has_deleted_meanwhile_was_deleted(world, monkeypatch):
    def deleted() -> None:
        (lease,) = world.store.leases.of_project(None)
        world.another_manager().leases.delete(lease.id)

    pause_before_the_last_write(world, monkeypatch, deleted)
    with pytest.raises(WrongState, match="was deleted while it was being created"):
        world.lease(start=HOUR)


def test_what_was_undone_and_deleted_as_well_was_deleted(world, monkeypatch):
    other = world.another_manager()

    def both() -> None:
        (lease,) = world.store.leases.of_project(None)
        other.leases.delete(lease.id)
        world.clock.to(world.clock.now() + timedelta(minutes=2))
        other.engine.run_due()

    pause_before_the_last_write(world, monkeypatch, both)
    with pytest.raises(WrongState, match="was deleted"):
        world.lease(start=HOUR)
