# SPDX-License-Identifier: Apache-2.0
"""Filters are told what was committed, once and in order."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import CloudRefused, WrongState
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import outbox
from tests.manager.enforcement.recording import DOWN, HOUR, RecordingFilter, rows
from tests.world import NOON, World, a_host


def test_what_was_booked_changed_and_ended_is_told_in_this_order_once(world, books):
    lease = world.lease(a_host(1))
    world.run()
    world.change(lease, end=NOON + 3 * HOUR, asked_by=Actor("root", "operators"))
    world.resize(lease, min=2, max=2)
    world.run_to(NOON + 3 * HOUR)
    world.run_to(NOON + 5 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 6 * HOUR)
    assert books.heard == ["commit-create", "commit-update", "commit-update", "on-end"]
    created, moved, grown, ended = books.told
    assert {notification.view.lease.id for notification in books.told} == {lease.id}
    assert created.view.lease.status is LeaseStatus.PENDING
    assert (moved.context.user_id, moved.view.window.end) == ("curie", NOON + 3 * HOUR)
    assert [notification.context.requested_by.user_id for notification in (created, moved, grown)] == [
        "curie",
        "root",
        "curie",
    ]
    assert [notification.before and notification.before.window.end for notification in books.told] == [
        None, NOON + 2 * HOUR, NOON + 3 * HOUR, None
    ]  # fmt: skip
    assert [notification.view.hosts for notification in books.told] == [1, 1, 2, 2]
    assert (ended.at, ended.context.user_id) == (NOON + 3 * HOUR, "curie")


def test_a_lease_deleted_before_its_start_has_ended(world, books):
    lease = world.lease(start=HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert books.heard == ["commit-create", "on-end"]
    assert books.told[-1].view.hosts == 1


def test_a_lease_that_never_started_has_ended_at_its_end(world, books):
    world.faults.fail_before("add_host", CloudRefused("broken"), times=99)
    lease = world.lease()
    world.run()
    world.faults.clear()
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_in_error_that_is_deleted_has_ended_once(world, books):
    world.faults.fail_before("add_host", CloudRefused("broken"), times=99)
    lease = world.lease()
    world.run()
    assert world.now(lease).status is LeaseStatus.ERROR
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_whose_teardown_fails_again_and_again_ends_once_and_at_once(world, books):
    lease = world.lease()
    world.run()
    world.faults.fail_before("remove_host", DOWN, times=5)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    assert books.heard == ["commit-create", "on-end"]
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 4 * HOUR)
    assert world.pool() == {"node-1", "node-2", "node-3"}
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_that_ended_while_no_manager_ran_is_told_of_when_one_runs_again(world, books):
    world.lease()
    world.run()
    world.clock.by(days=3)
    survivor = world.another_manager()
    survivor.engine.run_due()
    survivor.outbox.run_due()
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_ended_early_is_told_of_at_that_time(world, books):
    lease = world.lease(hours=9)
    world.run_to(NOON + HOUR)
    world.change(lease, end=NOON + HOUR)
    world.run_to(NOON + HOUR)
    assert books.heard == ["commit-create", "commit-update", "on-end"]
    assert books.told[-1].at == NOON + HOUR


def test_what_never_came_to_be_is_told_of_neither_way(world, books):
    world.faults.fail_before("create_aggregate", CloudRefused("no"))
    with pytest.raises(CloudRefused):
        world.lease()
    world.run_to(NOON + 9 * HOUR)
    assert (len(books.asked), books.told) == (1, [])


def test_a_growth_that_the_cloud_refuses_is_not_told_of(world, books):
    lease = world.lease()
    world.run()
    world.faults.fail_before("add_host", CloudRefused("no"))
    with pytest.raises(CloudRefused):
        world.resize(lease, min=2, max=2)
    world.run()
    assert books.heard == ["commit-create"]


def test_a_lease_deleted_while_it_was_created_is_told_of_neither_way(world, books):
    def delete(name, phase):
        if name == "create_aggregate" and phase == "after":
            world.faults.on_call = None
            (lease,) = world.manager.leases.all(None)
            world.manager.leases.delete(lease.id)

    world.faults.on_call = delete
    with pytest.raises(WrongState):
        world.lease()
    world.run_to(NOON + 9 * HOUR)
    assert books.told == []


def test_nobody_to_hear_means_nothing_is_kept(sqlite):
    world = World(sqlite, filters=[RecordingFilter(occasions=frozenset())])
    world.lease()
    world.run_to(NOON + 3 * HOUR)
    assert rows(world, outbox) == 0
