# SPDX-License-Identifier: Apache-2.0
"""Histories of leases on each of the databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.context import scope
from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.paging import Page
from blazar.model.journal.entries import FieldChange, Verb
from blazar.model.leases.requests import Actor
from blazar.model.surgery import SwapRequest
from blazar.store.sql.tables import journal
from blazar.store.store import Store, StoreLimits
from tests.manager.health.steps import look
from tests.manager.surgery.steps import OPERATOR
from tests.statements import counted
from tests.world import World, a_host

PAGE = Page(100, "at")
HOUR = timedelta(hours=1)


def test_a_history_survives_its_lease_until_that_is_purged(engine):
    world = World(engine)
    with scope(actor=Actor("curie", "physics")):
        lease = world.lease(a_host())
    world.run_to(lease.window.end + timedelta(hours=1))
    with counted(engine) as statements:
        told = world.store.history.page(lease.id, replace(PAGE, with_count=True))
    assert statements.count <= 4
    assert [each.verb for each in told.items] == [Verb.CREATED, Verb.STARTED, Verb.BEFORE_END, Verb.ENDED]
    assert told.count == 4
    first, *rest = told.items
    assert first.by == Actor("curie", "physics")
    assert {each.by for each in rest} == {None}
    assert FieldChange("name", None, lease.name) in first.changes
    assert len(first.moves[0].come) == 1
    deleted = world.store.leases.purge(world.clock.now(), 10)
    assert deleted["journal"] == 4
    assert world.store.history.page(lease.id, PAGE).items == ()


def test_an_entry_costs_one_statement_whatever_it_tells(engine):
    world = World(engine)
    lease = world.lease(a_host())
    found = world.store.leases.one(lease.id)
    with counted(engine) as quiet:
        same = world.store.leases.save(found, replace(found, updated_at=world.clock.now()), at=world.clock.now())
    with counted(engine) as telling:
        world.store.leases.save(same, replace(same, name="other"), at=world.clock.now())
    assert telling.count == quiet.count + 1


def test_a_long_one_loses_its_middle_again_and_again(engine):
    world = World(engine)
    lease = world.lease(a_host())
    store = Store(engine, limits=StoreLimits(history_entries=10))
    saved = store.leases.one(lease.id)
    for number in range(150):
        changed = replace(saved, name=f"n{number}", revision=saved.revision)
        saved = store.leases.save(saved, changed, at=world.clock.now())
        assert store.journal.number(10, now=world.clock.now()) == 1 + 4 * (number == 0)
    told = store.history.page(lease.id, replace(PAGE, limit=1000)).items
    assert len(told) <= 100 + 1 + 10 + 10
    (out,) = [each for each in told if each.verb is Verb.LEFT_OUT]
    assert int(out.changes[0].after) + len(told) - 1 == 151
    assert [told[99].id, told[-1].id, told[-1].changes[0].after] == ["100", "151", "n149"]
    assert out.id == str(100 + int(out.changes[0].after))


def test_of_deleted_leases_a_project_keeps_so_many_entries_and_the_oldest_go_first(engine):
    world = World(engine, hosts=2)
    leases = {
        project: [world.lease(name=f"l{n}", project=project, start=HOUR * (4 * n + 1)) for n in range(4)]
        for project in "ab"
    }
    deleted = [*leases["a"][:3], *leases["b"][:2]]
    # Those that were made last are deleted first.
    for lease in reversed(deleted):
        world.manager.leases.delete(lease.id)
        world.clock.by(minutes=1)
    world.run()
    history, now = world.store.history, world.clock.now()

    def left() -> dict[str, list[int]]:
        return {project: [len(history.page(each.id, PAGE).items) for each in of] for project, of in leases.items()}

    assert left() == {"a": [2, 2, 2, 1], "b": [2, 2, 1, 1]}
    with counted(engine) as statements:
        assert history.find_crowded_projects(4, now=now) == ("a",)
    assert statements.count == 1
    assert history.find_crowded_projects(3, now=now) == ("a", "b")
    with counted(engine) as statements:
        assert history.forget_entries("a", 4, 10, now=now) == 1
    assert statements.count == 2
    assert left() == {"a": [2, 2, 0, 1], "b": [2, 2, 1, 1]}, "the one that was deleted first"
    assert history.forget_entries("a", 4, 10, now=now) == 0
    # Three entries have room for one whole history.
    assert history.forget_entries("b", 3, 10, now=now) == 1
    assert history.forget_entries("a", 0, 1, now=now) == 1
    assert left() == {"a": [2, 0, 0, 1], "b": [2, 0, 1, 1]}, "in portions"
    assert history.forget_entries("a", 0, 1, now=now) == 1
    assert history.find_crowded_projects(0, now=now) == ("b",)


@pytest.mark.slow
def test_whatever_becomes_of_a_lease_its_entries_count_unless_a_limit_bounds_such_leases(engine):
    world = World(engine, hosts=3)
    world.waits = True
    ended = world.lease(hours=1)
    in_vain = world.lease(a_host(4), start=HOUR, wait=HOUR)
    busy = world.lease(start=HOUR, hours=1)
    deleted, active, coming = (world.lease(start=start, hours=9) for start in (HOUR, HOUR, 20 * HOUR))
    waiting = world.lease(a_host(4), start=HOUR, hours=1, wait=99 * HOUR)
    world.run_to(world.clock.now() + 2 * HOUR - timedelta(minutes=1))
    world.faults.fail_before("remove_host", CloudUnavailable("no answer"), times=1000)
    world.run_to(world.clock.now() + 2 * HOUR)
    world.manager.leases.delete(deleted.id)
    world.clock.by(hours=1)
    every = (ended, in_vain, busy, active, coming, waiting)
    states = [str(world.now_of(lease.id).status) for lease in every]
    assert states == ["TERMINATED", "TIMED_OUT", "TERMINATING", "ACTIVE", "PENDING", "WAITING"]
    history, now = world.store.history, world.clock.now()
    assert history.find_crowded_projects(0, now=now) == ("physics",)
    with counted(engine) as statements:
        assert history.forget_entries("physics", 0, 10, now=now) == 4
    assert statements.count == 2
    kept = [len(history.page(each.id, PAGE).items) > 0 for each in (*every, deleted)]
    assert kept == [False, False, False, True, True, True, False]
    # What is done to it later is told.
    world.manager.leases.delete(ended.id)
    world.run()
    assert verbs(world, ended) == ["deleted"]


@pytest.mark.slow
def test_leases_that_are_changed_all_day_and_end_leave_as_many_entries_as_are_kept(engine):
    world = World(engine, hosts=1)
    for _ in range(8):
        lease = world.lease(hours=1)
        for number in range(10):
            world.change(lease, name=f"n{number}")
        world.run_to(lease.window.end + HOUR)
        now = world.clock.now()
        for project in world.store.history.find_crowded_projects(30, now=now):
            world.store.history.forget_entries(project, 30, 10, now=now)
        with engine.connect() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(journal)).scalar_one() <= 30


def verbs(world: World, lease) -> list[str]:
    return [str(each.verb) for each in world.store.history.page(lease.id, PAGE).items]


def test_what_takes_steps_in_the_cloud_is_told_once_as_a_whole_and_not_at_all_if_it_is_undone(engine):
    world = World(engine)
    lease = world.lease(a_host())
    world.run()
    (host,) = world.hosts_of(lease)
    world.faults.fail_before("add_host", CloudUnavailable("no answer"))
    swap = SwapRequest(lease.reservations[0].id, host)
    with pytest.raises(CloudUnavailable):
        world.manager.surgery.swap(lease.id, swap, OPERATOR)
    assert verbs(world, lease) == ["created", "started"]
    world.manager.surgery.swap(lease.id, swap, OPERATOR)
    assert verbs(world, lease) == ["created", "started", "swapped"]
    (move,) = world.store.history.page(lease.id, PAGE).items[-1].moves
    assert (move.gone_count, move.come_count) == (1, 1)


def test_healing_that_follows_a_change_is_told_as_done_by_the_service(sqlite):
    world = World(sqlite, hosts=2)
    lease, other = (world.lease(start=timedelta(hours=1)) for _ in range(2))
    (host,) = world.hosts_of(lease)
    world.simulated.operators.host_down(host)
    look(world)
    world.manager.leases.delete(other.id)
    with scope(actor=Actor("curie", "physics")):
        world.change(lease, name="other")
    assert host not in world.hosts_of(lease)
    changed, moved = world.store.history.page(lease.id, PAGE).items[-2:]
    assert (changed.verb, changed.by) == (Verb.CHANGED, Actor("curie", "physics"))
    assert (moved.verb, moved.by) == (Verb.MOVED, None)
