# SPDX-License-Identifier: Apache-2.0
"""The row of a manager: from its start to its end, and what it costs."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar import __version__
from blazar.calendar.placement import Strategy
from blazar.enforcement import Enforcement
from blazar.enforcement.limits import MaxLeaseDurationFilter
from blazar.manager.common.background import LONGEST_ERROR, BackgroundThread, Rounds
from blazar.manager.common.presence import hash_options, spell_options
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import StoreUnavailable
from blazar.model.leases.states import LeaseKind
from blazar.model.managers.presence import KEPT, RPC_VERSION, KnownManager, ManagerState
from tests.observed import ObservedStore, before, failing
from tests.openstack import eventually
from tests.statements import counted
from tests.world import NOON, World

SECOND = timedelta(seconds=1)


class Work(BackgroundThread):
    """Does in each round what the test says."""

    def __init__(self, act) -> None:
        super().__init__("work", work="The work fails", retry=60)
        self.act = act

    def _round(self) -> float:
        self.act()
        return 60.0


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The seconds of rounds, as the test sets them."""
    now = [100.0]
    monkeypatch.setattr("blazar.manager.common.background.monotonic", lambda: now[0])
    return now


def all_of(world: World) -> tuple[KnownManager, ...]:
    return world.store.managers.all(now=world.clock.now(), claim_ttl=world.settings.claim_ttl)


def test_each_beat_writes_the_row_of_a_manager_in_one_statement(world):
    world.manager.claims._round()
    assert all_of(world) == ()
    world.manager.presence.appear()
    with counted(world.engine) as first:
        world.manager.claims._round()
    (known,) = all_of(world)
    assert known.id == world.manager.claims.owner
    assert (known.up, known.facts.state, known.facts.version) == (True, ManagerState.STARTING, __version__)
    assert (known.facts.rpc_version, known.facts.started_at, known.seen_at) == (RPC_VERSION, NOON, NOON)
    assert {"engine", "heartbeat", "outbox", "sweep"} <= {thread.name for thread in known.facts.threads}
    world.clock.by(seconds=5)
    with counted(world.engine) as second:
        world.manager.claims._round()
    # An update that finds no row, the row, and old rows; then the row alone.
    assert (first.count, second.count) == (3, 1)
    assert all_of(world)[0].seen_at == NOON + 5 * SECOND


def test_claims_are_renewed_although_the_row_cannot_be_written(world):
    calls = []

    def around(name, call, *arguments, **more):
        calls.append(name)
        return before("managers.beat", failing(StoreUnavailable("away")))(name, call, *arguments, **more)

    manager = world.another_manager(store=ObservedStore(world.store, around))
    manager.presence.appear()
    with manager.claims.held(manager.claims.new()), pytest.raises(StoreUnavailable):
        manager.claims._round()
    assert calls[-2:] == ["claims.renew_claims", "managers.beat"]


def test_a_manager_tells_its_states_and_is_gone_when_it_has_stopped(world):
    first, second = world.manager, world.another_manager()
    for manager in (first, second):
        manager.presence.beat()
    first.presence.enter(ManagerState.RUNNING)
    first.presence.beat()
    assert [known.facts.state for known in all_of(world) if known.id == first.claims.owner] == ["running"]
    first.begin_stop()
    first.presence.beat()
    assert [known.facts.state for known in all_of(world) if known.id == first.claims.owner] == ["stopping"]
    first.stop()
    assert [known.id for known in all_of(world)] == [second.claims.owner]


def test_a_running_manager_tells_a_change_of_its_state_at_once(world):
    world.manager.start()
    try:
        eventually(lambda: [known.facts.state for known in all_of(world)] == ["starting"], patience=10)
        world.manager.presence.enter(ManagerState.RUNNING)
        eventually(lambda: [known.facts.state for known in all_of(world)] == ["running"], patience=5)
        (known,) = all_of(world)
        eventually(lambda: all(thread.last_round_at for thread in all_of(world)[0].facts.threads[:1]), patience=5)
    finally:
        world.manager.stop()
    assert all_of(world) == ()
    assert known.id == world.manager.claims.owner


def test_what_was_killed_is_not_up_after_its_claims_have_ended_and_is_forgotten_after_a_day(world):
    killed, survivor = world.manager, world.another_manager()
    killed.presence.beat()
    survivor.presence.beat()
    world.clock.by(seconds=world.settings.claim_ttl.total_seconds())
    survivor.presence.beat()
    assert {known.id: known.up for known in all_of(world)} == {killed.claims.owner: False, survivor.claims.owner: True}
    world.clock.to(NOON + KEPT)
    survivor.presence.beat()
    assert len(all_of(world)) == 2
    world.clock.by(hours=1)
    survivor.presence.beat()
    assert [known.id for known in all_of(world)] == [survivor.claims.owner]


def test_who_runs_alone_forgets_all_others_at_its_start(world):
    world.another_manager().presence.beat()
    world.clock.by(seconds=1)
    world.manager.presence.forget_others()
    assert all_of(world) == ()


def test_a_row_that_cannot_be_removed_is_a_warning_and_no_error(world, caplog):
    store = ObservedStore(world.store, before("managers.remove", failing(StoreUnavailable("away"))))
    manager = world.another_manager(store=store)
    manager.presence.leave()
    assert not caplog.records
    manager.presence.beat()
    with caplog.at_level(logging.WARNING):
        manager.presence.leave()
    assert "stays on the list of managers for a day, as stopping: away" in caplog.text


def test_a_thread_tells_since_when_its_rounds_fail_and_why_and_when_the_last_one_was(clock):
    errors = [StoreUnavailable("the database is away"), RuntimeError("x" * 500), None]
    work = Work(lambda: None)
    assert (work.describe(NOON).last_round_at, work.rounds.seconds_in_round()) == (None, 0)
    told = []
    for error in errors:
        work.rounds.begin()
        clock[0] += 2
        assert work.rounds.seconds_in_round() == 2
        work.rounds.end(error)
        clock[0] += 10
        told.append(work.describe(NOON))
    assert [(facts.failing_since, facts.last_round_at) for facts in told] == [
        (NOON - 10 * SECOND, NOON - 10 * SECOND),
        (NOON - 22 * SECOND, NOON - 10 * SECOND),
        (None, NOON - 10 * SECOND),
    ]
    assert [facts.error and facts.error[:30] for facts in told] == [
        "the database is away",
        f"RuntimeError: {'x' * 16}",
        None,
    ]
    assert len(told[1].error) == LONGEST_ERROR


def test_a_round_that_stands_still_is_seen_from_outside_while_it_lasts():
    rounds = Rounds()
    rounds.begin()
    eventually(lambda: rounds.seconds_in_round() > 0.01, patience=5)
    rounds.end(None)
    assert rounds.seconds_in_round() == 0


def test_rounds_of_a_thread_are_noted_whether_they_fail_or_not():
    outcomes = iter([RuntimeError("once"), None])

    def act():
        if (error := next(outcomes)) is not None:
            raise error

    work = Work(act)
    work.start()
    eventually(lambda: work.rounds.failing_since is not None, patience=5)
    work.wake()
    eventually(lambda: work.rounds.failing_since is None and work.rounds.error is None, patience=5)
    work.stop()


def test_the_hash_of_options_is_the_same_for_equal_options_and_another_for_any_other(world):
    runtime = world.manager.engine._runtime
    usual = hash_options(runtime)
    assert hash_options(replace(runtime, settings=replace(runtime.settings, seed=lambda: 1))) == usual
    for change in (
        {"claim_ttl": timedelta(seconds=21)},
        {"strategy": Strategy.RANDOM},
        {"kinds": frozenset({LeaseKind.SCHEDULED})},
        {"project_weights": {"a": 2.0}},
        {"bounds": replace(runtime.settings.bounds, leases=7)},
    ):
        assert hash_options(replace(runtime, settings=replace(runtime.settings, **change))) != usual, change
    assert hash_options(replace(runtime, types={})) != usual
    assert hash_options(replace(runtime, enforcement=Enforcement([MaxLeaseDurationFilter(timedelta(days=1))]))) != usual


@pytest.mark.slow
def test_the_hash_of_options_is_the_same_in_every_process():
    code = (
        "from blazar.manager.common.presence import spell_options as s; "
        "from blazar.manager.common.settings import Settings; print(s(Settings()))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": hashing}, capture_output=True, check=True
        ).stdout
        for hashing in ("1", "2", "3")
    }
    assert texts == {f"{spell_options(Settings())}\n".encode()}
