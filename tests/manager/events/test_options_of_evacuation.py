# SPDX-License-Identifier: Apache-2.0
"""Hosts are emptied as the options in ``[evacuation]`` of ``blazar.conf`` say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from blazar.clouds.simulated.server_state import MoveFault
from blazar.model.base.errors import NotEnoughResources
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from tests.configured import configured_world
from tests.manager.booking.test_best_effort import best_effort, boot, where
from tests.manager.maintenance.test_maintenance import work_to
from tests.manager.maintenance.test_migrations import boot as boot_ours
from tests.manager.maintenance.test_migrations import migrated, used
from tests.world import NOON, World

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., World]:
    """Start a service of five hosts, of which two can be emptied and none is free, with these lines in the section."""

    def begin(*lines: str) -> World:
        world = configured_world(sqlite, tmp_path, "[evacuation]", *lines, hosts=5, register=False)
        world.simulated.durations.migration = MINUTE
        for name in ("node-2", "node-3"):
            world.manager.resources.register(HOST, Registration({"name": name, "evacuable": True}))
        return world

    return begin


def _moving(world: World) -> int:
    """Return how many servers are being moved."""
    with world.simulated.inspect() as state:
        now = world.clock.now()
        return sum(migration.is_open(now) for server in state.servers.values() for migration in server.migrations)


@pytest.mark.slow
def test_hosts_are_emptied_within_the_limit_of_the_file(start):
    world = start("limit = 4")
    world.simulated.operators.spoil_move(boot(world, "node-2"), MoveFault.HANGS)
    for name in "ab":
        boot(world, "node-3", name)
    lease = best_effort(world, hosts=1)
    world.run_to(NOON + 3 * MINUTE)
    assert world.now(lease).status is LeaseStatus.IN_PROGRESS
    world.run_to(NOON + 5 * MINUTE)
    assert world.now(lease).status is LeaseStatus.TIMED_OUT


@pytest.mark.parametrize(("rate", "fits"), [(10, True), (1, False)])
def test_what_would_take_too_long_at_the_rate_of_the_file_is_refused(start, rate, fits):
    """512 MiB of memory and 1 GiB of disk take 154 s at 10 MiB a second, and 1536 s at 1."""
    world = start("limit = 10", f"rate = {rate}")
    for host in ("node-2", "node-3"):
        boot(world, host, host)
    if fits:
        assert best_effort(world, hosts=1).status is LeaseStatus.IN_PROGRESS
    else:
        with pytest.raises(NotEnoughResources):
            best_effort(world, hosts=1)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "emptied"), [("fewest", "node-2"), ("smallest", "node-3")])
def test_hosts_are_emptied_by_the_strategy_of_the_file(start, strategy, emptied):
    world = start(f"strategy = {strategy}")
    boot(world, "node-2", "large", memory_mb=2048)
    for name in "ab":
        boot(world, "node-3", name, memory_mb=64)
    lease = best_effort(world, hosts=1)
    world.run_to(NOON + 10 * MINUTE)
    assert world.hosts_of(lease) == {emptied}


@pytest.mark.parametrize(("headroom", "fits"), [(0, True), (90, False)])
def test_as_much_of_each_target_stays_free_as_the_file_says(start, headroom, fits):
    """The server takes a quarter of the memory of a host."""
    world = start(f"headroom = {headroom}")
    for host in ("node-2", "node-3"):
        boot(world, host, host, memory_mb=32768)
    if fits:
        assert best_effort(world, hosts=1).status is LeaseStatus.IN_PROGRESS
    else:
        with pytest.raises(NotEnoughResources):
            best_effort(world, hosts=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "hosts", "moving"),
    [
        (("moves_per_host = 1",), 1, 1),
        (("moves_per_host = 3",), 1, 3),
        (("moves_per_host = 3", "moves_in_all = 4"), 2, 4),
        (("moves_per_host = 3", "moves_in_all = 5"), 2, 5),
    ],
)
def test_as_many_servers_are_moved_at_a_time_as_the_file_says(start, lines, hosts, moving):
    world = start(*lines)
    for host in ("node-2", "node-3"):
        for number in range(3):
            boot(world, host, f"{host}-{number}")
    lease = best_effort(world, hosts=hosts)
    found = []
    for seconds in range(0, 300, 20):
        world.run_to(NOON + timedelta(seconds=seconds))
        found.append(_moving(world))
    assert max(found) == moving
    assert world.now(lease).status is LeaseStatus.ACTIVE


@pytest.mark.slow
def test_servers_of_the_projects_of_the_file_are_never_moved(start):
    world = start("never_move_projects = others,art")
    boot(world, "node-2")
    for name in "ab":
        world.simulated.users.boot_server(name, project_id="physics", user_id="u", host="node-3")
    best_effort(world, hosts=1)
    world.run_to(NOON + 10 * MINUTE)
    assert where(world)["theirs"] == "node-2"
    assert "node-3" not in where(world).values()


@pytest.mark.slow
def test_servers_of_leases_in_use_move_as_long_before_a_window_as_the_file_says(sqlite, tmp_path):
    start = partial(configured_world, sqlite, tmp_path)
    world = start("[evacuation]", "maintenance_lead = 45", "[manager]", "heal_active = replace")
    world.simulated.durations.migration = MINUTE
    lease = used(world)
    (old,) = world.hosts_of(lease)
    boot_ours(world, lease, old)
    migrated(world, old, start=4 * HOUR)
    work_to(world, NOON + 4 * HOUR - 46 * MINUTE)
    assert world.hosts_of(lease) == {old}
    work_to(world, NOON + 4 * HOUR - 40 * MINUTE)
    assert old not in world.hosts_of(lease)
