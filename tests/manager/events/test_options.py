# SPDX-License-Identifier: Apache-2.0
"""A manager works as the options in ``blazar.conf`` say: on claims, failed hosts, leases that wait, and leftovers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

import pytest

from blazar.context import current
from blazar.model.leases.details import ImmediateVerdict
from blazar.model.leases.states import LeaseKind, LeaseStatus
from blazar.model.resources.resource import HOST
from tests.configured import configured_world
from tests.manager.booking.test_immediate import boot_on_all
from tests.manager.enforcement.recording import RecordingFilter
from tests.manager.health.steps import look
from tests.world import NOON, World, a_host, instances

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)

Start = Callable[..., World]


@pytest.fixture
def start(sqlite, tmp_path) -> Start:
    """Start a service of three hosts with a file of these lines."""
    return partial(configured_world, sqlite, tmp_path)


def test_an_immediate_lease_is_refused_when_the_file_says(start):
    world = start("[api]", "immediate_timeout = 20")
    boot_on_all(world)
    lease = world.lease(a_host(3), kind=LeaseKind.IMMEDIATE)
    world.run_to(NOON + 19 * SECOND)
    assert world.manager.leases.verdict(lease.id) is ImmediateVerdict.WAITING
    world.run_to(NOON + 20 * SECOND)
    assert world.manager.leases.verdict(lease.id) is ImmediateVerdict.GONE


def _waiting(world: World, *projects: str) -> list:
    """Fill all hosts for two hours, and have a lease of each of these projects wait."""
    world.waits = True
    world.full = world.lease(a_host(3), project="biology")
    world.run()
    leases = []
    for project in projects:
        leases.append(world.lease(a_host(3), project=project, wait=timedelta(days=1)))
        world.clock.by(seconds=1)
    world.run()
    return leases


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", [0, 1, 2])
def test_as_many_starts_are_promised_as_the_file_says(start, number):
    world = start("[api]", f"promises = {number}")
    leases = _waiting(world, "physics", "chemistry", "art")
    assert [world.now(lease).is_promised for lease in leases] == [True] * number + [False] * (3 - number)


def test_a_promised_start_is_moved_with_the_notice_of_the_file(start):
    world = start("[api]", "promise_notice = 30")
    (lease,) = _waiting(world, "physics")
    assert world.now(lease).window.start == NOON + 2 * HOUR
    world.manager.leases.delete(world.full.id)
    world.run()
    assert NOON + 30 * MINUTE <= world.now(lease).window.start <= NOON + 31 * MINUTE


def test_work_is_taken_over_when_the_file_says(start):
    world = start("[manager]", "claim_ttl = 60")
    lease = world.lease(start=HOUR)
    world.clock.to(NOON + HOUR)
    other = world.another_manager()

    def stop_here(name: str, phase: str) -> None:
        raise KeyboardInterrupt

    world.faults.on_call = stop_here
    with pytest.raises(KeyboardInterrupt):
        world.run()
    world.faults.on_call = None
    world.clock.by(seconds=59)
    other.engine.run_due()
    assert world.now(lease).status is not LeaseStatus.ACTIVE
    world.clock.by(seconds=2)
    other.engine.run_due()
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_leftovers_are_searched_for_as_often_as_the_file_says(start):
    world = start("[manager]", "sweep_interval = 90")
    assert world.manager.sweep._round() == 90


@pytest.mark.parametrize(("seconds", "begins"), [(0, False), (3600, True)])
def test_leftovers_are_never_searched_for_if_the_file_says_so(start, seconds, begins):
    sweep = start("[manager]", f"sweep_interval = {seconds}").manager.sweep
    sweep.start()
    try:
        assert sweep._thread.is_alive() is begins
    finally:
        sweep.begin_stop()
        sweep.stop()


@pytest.mark.parametrize("only_reported", [True, False])
def test_leftovers_are_only_reported_if_the_file_says_so(start, only_reported):
    world = start("[manager]", f"sweep_dry_run = {only_reported}")
    lease = world.lease()
    world.run_to(lease.window.end + MINUTE)
    left = lease.reservations[0].id
    world.simulated.compute.create_aggregate(left, f"blazar_{left}", {})
    assert world.manager.sweep.run_once() == 1
    world.run()
    assert (world.simulated.compute.aggregate(left) is not None) is only_reported


def test_a_request_spends_as_many_seconds_in_the_cloud_as_the_file_says(start):
    world = start("[manager]", "request_limit = 7")
    left: list[float] = []
    world.faults.on_call = lambda name, phase: left.append(current().remaining() or 0)
    world.lease(instances(1))
    assert left
    assert 6 < max(left) <= 7


@pytest.mark.parametrize(("action", "replaced"), [("none", False), ("replace", True)])
def test_a_host_in_use_is_replaced_if_the_file_says_so(start, action, replaced):
    world = start("[manager]", f"heal_active = {action}")
    lease = world.lease()
    world.run()
    (lost,) = world.hosts_of(lease)
    world.simulated.operators.host_down(lost)
    look(world)
    assert (world.hosts_of(lease) != {lost}) is replaced


def test_a_host_fails_after_as_many_polls_as_the_file_says(start):
    world = start("[physical:host]", "failures_before_healing = 3")
    world.simulated.operators.host_down("node-1")
    look(world, 2)
    assert world.manager.resources.one(HOST, "1").reservable
    look(world, 1)
    assert not world.manager.resources.one(HOST, "1").reservable


def _polls(world: World) -> int:
    """Return how often the hosts have been polled in a round of the monitor."""
    before = world.faults.calls["hypervisors"]
    world.manager.monitor._round()
    return int(world.faults.calls["hypervisors"] - before)


def test_hosts_are_polled_as_often_as_the_file_says(start):
    world = start("[physical:host]", "polling_interval = 25")
    found = []
    for seconds in (0, 24, 1, 24, 1):
        world.clock.by(seconds=seconds)
        found.append(_polls(world) > 0)
    assert found == [True, False, True, False, True]


@pytest.mark.parametrize("polled", [True, False])
def test_hosts_are_polled_if_the_file_says_so(start, polled):
    world = start("[physical:host]", f"enable_polling_monitor = {polled}")
    assert (_polls(world) > 0) is polled


@pytest.mark.sample(2)
@pytest.mark.parametrize(("minutes", "healed"), [(30, False), (180, True), (0, True)])
def test_leases_are_healed_at_once_that_start_within_the_interval_of_the_file(start, minutes, healed):
    world = start("[physical:host]", f"healing_interval = {minutes}")
    lease = world.lease(start=2 * HOUR)
    (lost,) = world.hosts_of(lease)
    world.simulated.operators.host_down(lost)
    look(world)
    assert (world.hosts_of(lease) != {lost}) is healed


def test_later_leases_are_healed_by_a_check_at_the_interval_of_the_file(start):
    world = start("[physical:host]", "healing_interval = 30", "polling_interval = 7200")
    monitor = world.manager.monitor
    monitor._round()
    healed = []
    monitor._healing.run = lambda **_: healed.append(world.clock.now())  # type: ignore[method-assign]
    for minutes in (29, 1, 29, 1):
        world.clock.by(minutes=minutes)
        monitor._round()
    assert healed == [NOON + 30 * MINUTE, NOON + 60 * MINUTE]


def test_a_message_is_sent_as_many_times_as_the_file_says(start):
    books = RecordingFilter()
    world = start("[enforcement]", "notice_attempts = 4", filters=[books])
    books.deaf = 99
    world.lease()
    for _ in range(9):
        world.manager.outbox.run_due()
        world.clock.by(minutes=10)
    assert books.tries == 4


@pytest.mark.parametrize(("action", "prefix"), [("snapshot", "kept_"), ("notification", None)])
def test_servers_are_saved_before_the_end_as_the_file_says_and_images_named_so(start, action, prefix):
    world = start("[physical:host]", f"before_end = {action}", "[nova]", "image_prefix = kept_")
    lease = world.lease(hours=3)
    world.run()
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("work", project_id=lease.project_id, user_id="u", host=host)
    world.run_to(NOON + 2 * HOUR + 30 * MINUTE)
    with world.simulated.inspect() as state:
        names = [image.name for image in state.images.values()]
    assert len(names) == (prefix is not None)
    assert all(name.startswith(str(prefix)) for name in names)
