# SPDX-License-Identifier: Apache-2.0
"""Receivers that hang hold up neither others nor the end of the process; with the threads of a real manager."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from blazar.clouds.ports.webhooks import Reception, WebhookMessage, WebhookReceipt
from blazar.manager.subscriptions import delivery
from blazar.manager.subscriptions.delivery import FAILING, MAILING, PER_HOST, PER_PROJECT, WELL, SendingPlaces
from blazar.model.subscriptions.details import Channel, SendingLane, SubscriptionRequest, SubscriptionState
from blazar.store.subscriptions.work import DueSubscription
from tests.world import World

GOOD = "https://good.example/x"


def subscribe(world: World, project: str, url: str) -> str:
    request = SubscriptionRequest(project, "curie", url, ("lease.*",))
    return world.manager.subscriptions.create(request).subscription.id


def told_to_the_good(world: World) -> list[str]:
    return [json.loads(message.body)["type"] for message in world.webhooks.accepted if message.url == GOOD]


def wait_until(true, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


@pytest.fixture
def hanging(world) -> Iterator[Counter]:
    """Let every receiver but the good one hang; return how many calls each host has at a time at most."""
    let_go, lock = threading.Event(), threading.Lock()
    now, most = Counter(), Counter()

    def hang(message: WebhookMessage) -> WebhookReceipt:
        return hang_at(str(urlsplit(message.url).hostname))

    def hang_at(host: str) -> WebhookReceipt:
        with lock:
            for name in (host, "all"):
                now[name] += 1
                most[name] = max(most[name], now[name])
        let_go.wait(30)
        with lock:
            now.subtract([host, "all"])
        return WebhookReceipt(Reception.FAILED, "it did not answer in time")

    world.hang = hang
    world.hang_mail = lambda address, message: hang_at("mail")
    yield most
    let_go.set()
    world.manager.delivery.stop()


@pytest.mark.slow
def test_receivers_of_a_project_that_hang_delay_those_of_others_by_little(world, hanging):
    urls = [f"https://dead-{number}.example/x" for number in range(15)] + ["https://same.example/x"] * 5
    ids = [subscribe(world, "physics", url) for url in urls]
    good = subscribe(world, "art", GOOD)
    world.manager.delivery.run_due()
    assert world.manager.subscriptions.one(ids[0]).state is SubscriptionState.ACTIVE
    for url in urls:
        world.webhooks.answers[url] = world.hang
    for project in ("physics", "art"):
        world.lease(hours=1, project=project)
    world.manager.journal_numbering.run_once()
    world.manager.delivery.start()
    wait_until(lambda: hanging["all"] >= PER_PROJECT)
    wait_until(lambda: world.manager.subscriptions.one(good).behind == 0, 5)
    # Also what happens later, while they hang.
    world.run()
    world.manager.journal_numbering.run_once()
    wait_until(lambda: world.manager.subscriptions.one(good).behind == 0, 5)
    told = told_to_the_good(world)
    assert told[0] == "blazar.subscription.test"
    assert len(told) > 1
    assert hanging["same.example"] <= PER_HOST
    assert hanging["all"] <= PER_PROJECT + FAILING


@pytest.mark.slow
@pytest.mark.parametrize("channel", Channel)
def test_more_receivers_that_hang_than_are_read_at_a_time_delay_no_other(world, hanging, monkeypatch, channel):
    monkeypatch.setattr(delivery, "PAGE", 10)
    for number in range(40):
        project, user = f"physics-{number % 10}", f"curie-{number}"
        world.people.addresses[user] = f"{user}@physics.example"
        if channel is Channel.MAIL:
            request = SubscriptionRequest(project, user, None, ("lease.*",), channel=channel)
            world.manager.subscriptions.create(request)
        else:
            subscribe(world, project, f"https://dead-{number % 2}.example/x")
    subscribe(world, "art", GOOD)
    world.manager.delivery.run_due()
    for number in range(2):
        world.webhooks.answers[f"https://dead-{number}.example/x"] = world.hang
    monkeypatch.setattr(world.mail, "send", world.hang_mail)
    for number in range(10):
        world.lease(start=timedelta(days=1 + number), hours=1, project=f"physics-{number}")
    world.manager.journal_numbering.run_once()
    world.manager.delivery.start()
    wait_until(lambda: hanging["all"] >= MAILING)
    # It is due after all of them.
    world.clock.by(seconds=1)
    world.lease(start=timedelta(days=20), hours=1, project="art")
    assert world.manager.journal_numbering.run_once()
    wait_until(lambda: "blazar.lease.created" in told_to_the_good(world), 5)


def due(
    number: int, *, lane: SendingLane = SendingLane.WELL, host: str | None = None, project: str = "p"
) -> DueSubscription:
    url = "" if lane is SendingLane.MAIL else f"https://{host or number}.example/x"
    return DueSubscription(f"s-{number}", project, url, None, lane)  # type: ignore[arg-type]


def test_those_that_fail_and_those_by_mail_share_a_few_threads():
    places = SendingPlaces()
    for first, lane, most in ((0, SendingLane.FAILING, FAILING), (10, SendingLane.MAIL, MAILING)):
        taken = [places.take(due(first + number, lane=lane, project=str(number))) for number in range(5)]
        assert taken == [lane] * most + [None] * (5 - most)
        assert not places.are_free(lane)
    assert places.are_free(SendingLane.WELL)
    taken = [places.take(due(number, project=str(number))) for number in range(20, 30)]
    assert taken == [SendingLane.WELL] * WELL + [None] * (10 - WELL)
    places.give_back(due(20, project="20"), SendingLane.WELL)
    assert places.take(due(31, project="31")) is SendingLane.WELL


def test_a_host_and_a_project_have_a_few_of_them():
    places = SendingPlaces()
    taken = [places.take(due(n, host="one", project=str(n))) for n in range(3)]
    assert taken == [SendingLane.WELL] * PER_HOST + [None]
    assert [places.take(due(n)) for n in range(10, 14)] == [SendingLane.WELL] * PER_PROJECT + [None]
    # One at a time for each subscription.
    places = SendingPlaces()
    assert [places.take(due(1)) for _ in range(2)] == [SendingLane.WELL, None]


def test_a_slow_host_is_among_those_that_fail_until_it_is_faster():
    places = SendingPlaces()
    places.note_speed(due(1).url, 9.0)
    assert places.take(due(1)) is SendingLane.FAILING
    places.give_back(due(1), SendingLane.FAILING)
    places.note_speed(due(1).url, 0.1)
    assert places.take(due(1)) is SendingLane.WELL
