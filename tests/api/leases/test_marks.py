# SPDX-License-Identifier: Apache-2.0
"""Whatever writes what is shown of a lease gives it another mark: nothing that is kept by the mark is ever stale."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.api.leases.v1_1.components import LEASE_KEYS
from blazar.clouds.ports.compute import Server
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.requests import Actor
from blazar.model.series.changes import SeriesChange
from blazar.model.surgery import MergeRequest, OfferRequest, Partner, PartRequest, SplitRequest, SwapRequest, Terms
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import leases
from tests.manager.health.steps import look
from tests.marks import WatchedLeases, list_changes, watched
from tests.resources.stacks.test_life import WHOLE, a_stack, furnish
from tests.world import NOON, PROJECT, World, a_host, a_network, a_series, addresses, instances, servers, volumes

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OPERATOR = Terms(Actor("root", "admin", operator=True))
CURIE = Terms(Actor("curie", PROJECT))
TURING = Terms(Actor("turing", "computing"))
FIRST = datetime(2030, 4, 2, 8, tzinfo=UTC)


@pytest.fixture
def seen(engine: sa.Engine) -> Iterator[WatchedLeases]:
    with watched(engine) as found:
        yield found
    assert found.shown
    assert found.stale == []


def live(world: World) -> None:
    lease = world.lease(a_host(2), start=HOUR, name="first", before_end=NOON + 2 * HOUR, hours=4)
    world.change(lease, name="renamed")
    world.change(lease, reminders=(Reminder(NOON + 3 * HOUR, "pack up"),))
    world.change(lease, keep_hosts=True)
    world.change(lease, start=NOON + 2 * HOUR, end=NOON + 4 * HOUR, before_end=NOON + 3 * HOUR)
    world.resize(world.now(lease), min=1, max=1)
    world.change(lease, extend_until=NOON + 8 * HOUR)
    world.run_to(NOON + 3 * HOUR)
    world.change(lease, stops_extending=True)
    world.manager.leases.delete(lease.id)
    world.lease(extend=world.clock.now() + 8 * HOUR)
    world.run_to(NOON + 4 * HOUR)
    assert world.manager.prolongation.run_once() == 1
    world.run_to(NOON + 11 * HOUR)


def fail(world: World) -> None:
    lease = world.lease(a_host(2), start=HOUR, hours=6)
    lost, other = sorted(world.hosts_of(lease))
    world.faults.fail_before("add_host", CloudUnavailable("not now"), times=3)
    world.run_to(NOON + HOUR)
    world.run_to(NOON + 2 * HOUR)
    world.simulated.operators.host_down(lost)
    look(world, 4)
    world.simulated.operators.host_up(lost)
    look(world, 4)
    pending = world.lease(start=4 * HOUR)
    (host,) = world.hosts_of(pending)
    world.simulated.operators.host_down(host)
    look(world, 4)
    world.simulated.operators.host_down(other)
    look(world, 4)
    world.run_to(NOON + 8 * HOUR)


def wait(world: World) -> None:
    world.waits = True
    full = world.lease(a_host(3), project="biology")
    world.run()
    world.lease(a_host(3), wait=DAY, name="waits")
    world.lease(a_host(3), wait=DAY, name="waits longer")
    given_up = world.lease(a_host(1), wait=DAY, name="given up")
    world.run()
    world.manager.leases.delete(given_up.id)
    world.run_to(NOON + HOUR)
    world.manager.leases.delete(full.id)
    world.run()
    world.run_to(NOON + 4 * HOUR)


def use(world: World) -> None:
    lease = world.lease(hours=48)
    world.run()
    world.run_to(NOON + 6 * HOUR)
    world.manager.leases.keep(lease.id)
    world.manager.leases.hold(lease.id, held=True)
    world.manager.leases.hold(lease.id, held=False)
    used = world.lease(hours=48)
    world.run()
    (host,) = world.hosts_of(used)
    server: Server = world.simulated.users.boot_server("work", project_id=PROJECT, user_id="u", host=host)
    world.run_to(NOON + 20 * HOUR)
    world.simulated.compute.begin_server_deletion(server.id)
    world.run_to(NOON + 40 * HOUR)


def repeat(world: World) -> None:
    made = world.manager.series.create(a_series(rule="FREQ=DAILY;COUNT=5"))
    ids = [each.lease_id for each in made.occurrences if each.lease_id is not None]
    world.change(world.now_of(ids[1]), name="another")
    world.manager.leases.delete(ids[2])
    since = FIRST.replace(tzinfo=None) + 3 * DAY
    world.manager.series.change(made.series.id, SeriesChange(since=since, start=since + HOUR))
    world.run_to(FIRST + HOUR)
    world.manager.series.delete(made.series.id)
    world.run()


def hand_on(world: World) -> None:
    lease, other = world.lease(a_host(2), start=HOUR), world.lease(a_host(1), start=HOUR)
    world.manager.surgery.merge(lease.id, MergeRequest(other.id), CURIE)
    parts = (PartRequest(world.now(lease).reservations[0].id, count=1),)
    world.manager.surgery.split(lease.id, SplitRequest(parts, None), CURIE)
    world.manager.transfers.offer(lease.id, OfferRequest("elsewhere"), CURIE)
    world.manager.transfers.withdraw(lease.id, CURIE)
    world.manager.transfers.offer(lease.id, OfferRequest("computing", message="for your course"), CURIE)
    world.manager.transfers.accept(lease.id, TURING)
    world.run_to(NOON + 4 * HOUR)


def confirm(world: World) -> None:
    lease = world.lease(start=HOUR, confirm=HOUR / 6)
    world.lease(start=HOUR, confirm=HOUR / 6)
    world.manager.leases.confirm(lease.id)
    world.run_to(NOON + HOUR)


def move(world: World) -> None:
    world.register_addresses(101, 102)
    lease = world.lease(a_host(), addresses(1), start=HOUR)
    world.store.regions.adopt_region("R1")
    world.refresh_hosts()
    (host,) = (r for r in world.store.calendar.of_lease(lease.id) if r.kind == "host")
    world.store.resources.set_reservable(host.resource_id, False, at=world.clock.now())
    world.run_to(NOON + 4 * HOUR)


def make(world: World) -> None:
    world.register_segments(101)
    world.register_addresses(101)
    lease = world.lease(instances(2), a_network(), addresses(1), start=HOUR, hours=3)
    world.run_to(NOON + HOUR)
    world.resize(world.now(lease), amount=3)
    world.run_to(NOON + 5 * HOUR)


def boot(world: World) -> None:
    furnish(world)
    lease = world.lease(servers(2), volumes(1), start=HOUR, hours=3)
    world.lease(a_stack(WHOLE), start=HOUR, hours=6)
    world.run_to(NOON + HOUR)
    server = world.now(lease).reservations[0].shown["server_ids"][0]
    world.simulated.compute.begin_server_deletion(server)
    world.run_to(NOON + 2 * HOUR)
    world.manager.sweep.run_once()
    world.run_to(NOON + 8 * HOUR)


def swap(world: World) -> None:
    lease, other = world.lease(start=HOUR), world.lease(start=HOUR)
    for partner in (None, Partner(other.id, other.reservations[0].id)):
        (given,), (taken,) = world.hosts_of(lease), world.hosts_of(other)
        request = SwapRequest(lease.reservations[0].id, given, partner and taken, partner)
        world.manager.surgery.swap(lease.id, request, OPERATOR)
    world.run_to(NOON + 4 * HOUR)


ON = UsePolicies(replace(UsePolicy(UseMode.ON)))
USED = Settings(claim_ttl=timedelta(seconds=30), use_policies=ON)

WALKS: Mapping[Callable[[World], None], frozenset[str]] = {
    live: frozenset(
        {"name", "status", "revision", "updated_at", "deleted_at", "start_date", "end_date", "before_end_date"}
        | {"reminders", "keep_hosts", "extend_if_free", "reservations/min", "reservations/status", "events/status"}
        | {"events/time", "events/finished_at", "end_reason", "reservations/allocations"}
    ),
    fail: frozenset(
        {"degraded", "conditions", "events/reason", "events/attempts", "events/next_attempt_at"}
        | {"reservations/missing_resources", "reservations/allocations/status"}
    ),
    wait: frozenset({"wait/position", "wait/estimated_start", "wait", "reservations/allocations"}),
    use: frozenset({"usage", "used_at", "release_at", "held"}),
    repeat: frozenset({"series_id", "recurrence_id"}),
    hand_on: frozenset({"project_id", "user_id", "transfer", "reservations/max"}),
    confirm: frozenset({"confirm_by", "end_reason"}),
    move: frozenset({"reservations/region", "reservations/use/addresses"}),
    make: frozenset(
        {"reservations/cloud_ids/network_id", "reservations/use/flavor_id", "reservations/amount", "reservations/made"}
        | {"reservations/allocations/count", "reservations/allocations/used/VCPU"}
    ),
    boot: frozenset(
        {"reservations/cloud_ids/server_ids", "reservations/cloud_ids/made", "reservations/cloud_ids/stack_id"}
        | {"reservations/children/status", "reservations/children/cloud_ids/volume_ids", "conditions"}
    ),
    swap: frozenset({"reservations/allocations/resource/id"}),
}
"""What is done, and what of what is shown is seen to change by it."""

FOR_EVER = frozenset({"id", "created_at", "kind"})
BY_REQUEST = frozenset({"links"})
"""Of the URL that was asked for, which is part of the question by which a page is kept."""
NOT_KEPT = frozenset({"price", "waking", "moves_others"})
"""What has a price is not kept, and the others are said of what is booked, never in a list."""


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.__name__)
def test_what_is_shown_does_not_change_without_another_mark(engine, seen, walk):
    world = World(engine, settings=USED if walk is use else None)
    walk(world)
    assert WALKS[walk] - seen.changed == frozenset()


def test_each_key_of_a_lease_is_walked():
    walked = {path.partition("/")[0] for paths in WALKS.values() for path in paths}
    assert walked | FOR_EVER | BY_REQUEST | NOT_KEPT == frozenset(LEASE_KEYS)
    assert walked & (FOR_EVER | BY_REQUEST | NOT_KEPT) == frozenset()


def test_a_change_without_another_revision_would_be_seen(a_world, sqlite):
    world = a_world()
    world.lease(start=HOUR)
    with watched(sqlite) as seen:
        for name in ("one", "other"):
            with sqlite.execution_options(**{WRITES: True}).begin() as connection:
                connection.execute(leases.update().values(name=name))
    assert seen.stale == ["operator: name", "member: name", "1.0: name"]


def test_changes_are_named_by_where_they_are():
    before = {"a": 1, "b": [{"c": 1, "d": 2}], "e": {"f": None}, "g": []}
    after = {"a": 1, "b": [{"c": 2, "d": 2}], "e": {"f": 3}, "g": [1]}
    assert list_changes(before, after) == {"b/c", "e/f", "g"}
