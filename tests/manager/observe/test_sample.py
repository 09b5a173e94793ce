# SPDX-License-Identifier: Apache-2.0
"""The sample that a manager reads for metrics: right numbers, few statements, and none once it is old."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.cmd import monitoring
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import StoreUnavailable
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.subscriptions.details import Channel, SubscriptionRequest
from blazar.observe import metrics
from blazar.store.power.rows import PowerMove
from tests.counted import number
from tests.observed import ObservedStore
from tests.statements import counted
from tests.world import World, a_host, addresses

EVERY = timedelta(seconds=30)
SAMPLED = Settings(sample_interval=EVERY, sample_properties=("gpu",), promises=0)


@pytest.fixture
def watched(engine) -> World:
    return World(engine, hosts=5, register=False, settings=SAMPLED)


def text_of(manager) -> str:
    return monitoring.list_pages(manager.sampling.read)["/metrics"].handler({}).body.decode()


def sampled(world: World) -> str:
    world.manager.sampling.run_once()
    return text_of(world.manager)


def test_leases_events_and_resources_are_told(watched):
    for n in range(1, 6):
        watched.register(f"node-{n}", **({"gpu": "a100"} if n < 3 else {"gpu": "none"}))
    watched.manager.resources.change(HOST, "5", ResourceChange({}, disabled=True))
    lease = watched.lease(a_host(2), hours=1)
    watched.run()
    watched.lease(a_host(2), start=timedelta(hours=5))
    watched.lease(a_host(4), wait=timedelta(days=1))
    watched.clock.to(lease.window.end + timedelta(seconds=90))
    text = sampled(watched)
    assert number(metrics.LEASES, text, lease_kind="scheduled", status="ACTIVE") == 1
    assert number(metrics.LEASES, text, lease_kind="scheduled", status="PENDING") == 1
    assert number(metrics.WAITING_LEASES, text, resource_type="physical:host") == 1
    assert number(metrics.WAITING_OLDEST_AGE, text) == 3690
    assert number(metrics.DUE_EVENTS, text, event="end_lease") == 1
    assert number(metrics.OLDEST_DUE_EVENT_AGE, text, event="end_lease") == 90
    assert number(metrics.DUE_EVENTS, text, event="start_lease") == 0
    states = {
        state: number(metrics.RESOURCES, text, kind="host", state=state) for state in ("free", "allocated", "disabled")
    }
    assert states == {"free": 2, "allocated": 2, "disabled": 1}
    values = {
        value: number(metrics.RESOURCES_BY_PROPERTY, text, property="gpu", value=value) for value in ("a100", "none")
    }
    assert values == {"a100": 2, "none": 3}
    has, given = (
        number(family, text, kind="host", resource_class="VCPU")
        for family in (metrics.CAPACITY, metrics.CAPACITY_ALLOCATED)
    )
    hosts = {host.name: host.capacity.get("VCPU") for host in watched.manager.resources.all(HOST)}
    assert has == sum(hosts.values())
    assert given == sum(hosts[name] for name in watched.hosts_of(lease))
    assert number(metrics.OUTBOX_MESSAGES, text) == number(metrics.OUTBOX_OLDEST_AGE, text) == 0
    assert number(metrics.SAMPLE_TIMESTAMP, text) == watched.clock.now().timestamp()


def test_the_number_of_statements_does_not_grow_with_their_number(watched):
    numbers = []
    for n in range(1, 4):
        watched.register(f"node-{n}")
        watched.register_addresses(100 + n)
        watched.lease(a_host(1), start=timedelta(hours=n))
        watched.lease(addresses(1), start=timedelta(hours=n))
        with counted(watched.engine) as statements:
            watched.manager.sampling.run_once()
        numbers.append(statements.count)
    assert numbers == [16, 16, 16]


def test_a_scrape_runs_no_statement_and_an_old_sample_is_not_told(world):
    manager = ManagerWithBrokenStore(world).manager
    manager.sampling._last = sampled_of(world)
    assert number(metrics.LEASES, text_of(manager)) == 0
    assert "blazar_resources" in text_of(manager)
    world.clock.to(world.clock.now() + 3 * EVERY + timedelta(seconds=1))
    assert "blazar_resources" not in text_of(manager)
    assert "blazar_sample_timestamp" not in text_of(manager)
    with pytest.raises(StoreUnavailable):
        manager.sampling.run_once()


def sampled_of(world: World):
    world.manager.sampling.run_once()
    return world.manager.sampling._last


class ManagerWithBrokenStore:
    """A manager of which each operation of the store fails."""

    def __init__(self, world: World) -> None:
        is_away = False

        def fail(name, call, *arguments, **more):
            if is_away:
                raise StoreUnavailable(f"{name}: the database is away")
            return call(*arguments, **more)

        world.settings = replace(world.settings, sample_interval=EVERY)
        self.manager = world.another_manager(store=ObservedStore(world.store, fail))
        is_away = True


def test_without_a_sample_nothing_is_told_and_without_a_port_none_is_read(world):
    assert "blazar_leases" not in text_of(world.manager)
    world.manager.sampling.start()
    assert world.manager.sampling.rounds.ended_at is None
    assert not world.manager.sampling._thread.is_alive()


def test_what_is_still_to_be_told_is_counted_by_channel(engine):
    world = World(engine, hosts=2, settings=SAMPLED)
    world.people.addresses["curie"] = "curie@physics.example"
    delivered = number(metrics.DELIVERIES, channel="webhook", outcome="delivered")
    request = SubscriptionRequest("physics", "curie", "https://ci.example/x", ("lease.*",))
    hook = world.manager.subscriptions.create(request).subscription
    world.manager.subscriptions.create(replace(request, url=None, channel=Channel.MAIL))
    world.manager.delivery.run_due()
    assert number(metrics.DELIVERIES, channel="webhook", outcome="delivered") == delivered + 1
    begun = world.clock.now()
    for hour, project in enumerate(("art", "physics", "physics")):
        world.lease(start=timedelta(hours=2 * hour + 1), hours=1, project=project)
    assert number(metrics.JOURNAL_UNNUMBERED, sampled(world)) > 0
    world.manager.journal_numbering.run_once()
    world.clock.to(begun + timedelta(minutes=5))
    text = sampled(world)
    assert number(metrics.JOURNAL_UNNUMBERED, text) == 0
    for channel in ("webhook", "mail"):
        assert number(metrics.OUTBOX_OLDEST_AGE, text, channel=channel) == 300
        assert number(metrics.OUTBOX_MESSAGES, text, channel=channel, state="due") > 0
        assert number(metrics.OUTBOX_MESSAGES, text, channel=channel, state="waiting") == 0
    world.webhooks.answers["https://ci.example/x"] = lambda message: WebhookReceipt(Reception.FAILED, "away")
    world.manager.delivery.run_due()
    text = sampled(world)
    assert number(metrics.OUTBOX_OLDEST_AGE, text, channel="mail") == 0
    assert number(metrics.OUTBOX_MESSAGES, text, channel="webhook", state="due") == 0
    assert number(metrics.OUTBOX_MESSAGES, text, channel="webhook", state="waiting") > 0
    world.webhooks.answers["https://ci.example/x"] = lambda message: WebhookReceipt(Reception.REFUSED, "no")
    for _ in range(8):
        world.clock.to(world.clock.now() + timedelta(minutes=5))
        world.manager.delivery.run_due()
    dead = world.manager.subscriptions.one(hook.id).dead
    assert number(metrics.OUTBOX_MESSAGES, sampled(world), channel="webhook", state="dead") == dead > 0
    assert number(metrics.DELIVERIES, channel="webhook", outcome="dead") >= dead


def test_hosts_are_counted_by_power_state_and_a_dry_run_switches_none(watched):
    for n in range(1, 5):
        watched.register(f"node-{n}")
    now, store = watched.clock.now(), watched.store.power
    store.claim_turn("me", now=now, until=now + EVERY)
    for place, rehearsed in ((0, False), (1, True)):
        host = store.read_view(now, rehearsed=rehearsed).hosts[place]
        asleep = host.move(PowerState.GOING_OFF, PowerReason.IDLE, now)
        store.move("me", [PowerMove(host, asleep)], rehearsed=rehearsed)
    text = sampled(watched)
    assert number(metrics.POWER_RESOURCES, text, kind="host", state="on") == 3
    assert number(metrics.POWER_RESOURCES, text, kind="host", state="going_off") == 1
