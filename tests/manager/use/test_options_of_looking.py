# SPDX-License-Identifier: Apache-2.0
"""When leases that nobody uses are warned, noticed and released is what ``[unused]`` of ``blazar.conf`` says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from blazar.model.leases.states import EventType
from blazar.model.use.policy import Usage, UseStep
from tests.configured import configured_world
from tests.manager.use.test_unused import boot, is_released, started
from tests.world import NOON, World

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
ON = ("[unused]", "mode = on", "unused_after = 7200", "warn_before = 3600", "undo = 600")


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., World]:
    """Start a service with a file of these lines."""
    return partial(configured_world, sqlite, tmp_path)


def _steps(world: World, lease, *instants: int) -> list[UseStep | None]:
    """Return the last step of a lease at these minutes after noon."""
    found: list[UseStep | None] = []
    for minutes in instants:
        world.run_to(NOON + minutes * MINUTE + SECOND)
        event = world.now(lease).event(EventType.USAGE_CHECK)
        taken = [look.step for look in event.saved_state.watch.looks if look.step is not UseStep.NOTHING]
        found.append(taken[-1] if taken else None)
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("line", "instants"),
    [("", (60, 110, 120)), ("warn_before = 1800", (90, 110, 120)), ("undo = 1200", (60, 100, 120))],
    ids=["usual", "a later warning", "an earlier notice"],
)
def test_owners_are_warned_and_noticed_as_long_before_as_the_file_says(start, line, instants):
    world = start(*ON, line)
    lease = started(world)
    before = [_steps(world, lease, instant - 1, instant) for instant in instants]
    assert before == [
        [None, UseStep.WARNED],
        [UseStep.WARNED, UseStep.NOTICED],
        [UseStep.NOTICED, UseStep.RELEASED],
    ]
    assert is_released(world, lease)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("seconds", "released"), [(0, False), (7200, True), (86400, False)])
def test_what_is_stopped_is_released_after_as_long_as_the_file_says(start, seconds, released):
    world = start(*ON, f"idle_after = {seconds}")
    lease = started(world)
    boot(world, lease, status="SHUTOFF")
    world.run_to(NOON + 180 * MINUTE)
    assert is_released(world, lease) is released


PROMETHEUS = (
    *ON,
    "idle_after = 7200",
    "prometheus_url = http://127.0.0.1:9/",
    'prometheus_query = cpu{uuid=~"{server_id}"}',
)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("lines", "usage"),
    [
        (("source = states",), Usage.USED),
        (("source = prometheus",), Usage.USED),
        (("source = prometheus", "idle_below = 0.3"), Usage.IDLE),
        (("source = prometheus", "idle_below = 0.2"), Usage.USED),
    ],
)
def test_a_server_that_runs_is_idle_below_the_value_of_the_file_if_it_is_measured(start, lines, usage):
    world = start(*PROMETHEUS, *lines)
    lease = started(world)
    world.metrics.values[boot(world, lease).id] = 0.25
    world.run_to(NOON + 61 * MINUTE)
    assert world.now(lease).use.usage is usage
    assert bool(world.metrics.asked) is ("source = prometheus" in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("percent", "released"), [(60, False), (70, True)])
def test_no_more_leases_are_released_together_than_the_share_of_the_file(start, percent, released, caplog):
    """Four of six leases in use are 67 per cent."""
    world = start(*ON, f"brake_percent = {percent}", hosts=6)
    leases = [started(world) for _ in range(6)]
    for lease in leases[:2]:
        boot(world, lease)
    world.run_to(NOON + 130 * MINUTE)
    assert [is_released(world, lease) for lease in leases[2:]] == [released] * 4
    assert ("ERROR" in {record.levelname for record in caplog.records}) is not released
