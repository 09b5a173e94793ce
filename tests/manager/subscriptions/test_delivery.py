# SPDX-License-Identifier: Apache-2.0
"""Who has subscribed is told what has happened: all of it, in order for each lease, whatever receivers do."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import timedelta

import pytest
import sqlalchemy as sa

from blazar.clouds.ports.webhooks import Reception, WebhookMessage, WebhookReceipt
from blazar.model.base.errors import InvalidInput
from blazar.model.base.paging import Page
from blazar.model.leases.requests import LeaseChange
from blazar.model.subscriptions.details import (
    BOTH_SECRETS,
    Rewind,
    SubscriptionChange,
    SubscriptionRequest,
    SubscriptionState,
)
from blazar.model.subscriptions.rounds import PATIENCE
from blazar.store.sql.tables import journal
from blazar.store.subscriptions import work
from tests.world import World

URL, OTHER_URL = "https://ci.example/x", "https://dead.example/x"
PROJECT = "physics"
MINUTE = timedelta(minutes=1)


def subscribe(
    world: World, *, project: str | None = PROJECT, user: str = "curie", url: str = URL, events=("lease.*",), **more
):
    request = SubscriptionRequest(project, user, url, tuple(events), **more)
    return world.manager.subscriptions.create(request).subscription


def tell(world: World) -> None:
    """Number what has happened, and send what is due."""
    world.manager.journal_numbering.run_once()
    world.manager.delivery.run_due()


def tell_for(world: World, time: timedelta, step: timedelta = MINUTE) -> None:
    """Let time pass, and send what is due meanwhile."""
    for _ in range(int(time / step)):
        world.clock.to(world.clock.now() + step)
        tell(world)


def shown(world: World, subscription):
    return world.manager.subscriptions.one(subscription.id)


def events_of(messages: list[WebhookMessage]) -> list[dict]:
    """Return the events in messages, without tests."""
    found: list[dict] = []
    for message in messages:
        value = json.loads(message.body)
        found += value if isinstance(value, list) else [value]
    return [event for event in found if event["type"] != "blazar.subscription.test"]


def accepted(world: World, url: str = URL) -> list[dict]:
    return events_of([message for message in world.webhooks.accepted if message.url == url])


def ids_of_journal(world: World, project: str | None = PROJECT) -> list[str]:
    query = sa.select(journal.c.id).where(journal.c.object_type == "lease").order_by(journal.c.position)
    if project is not None:
        query = query.where(journal.c.project_id == project)
    with world.engine.connect() as connection:
        return list(connection.execute(query).scalars())


def answer(reception: Reception, reason: str = "it does not like it", after: timedelta | None = None):
    return lambda message: WebhookReceipt(reception, reason, after)


def live(world: World, count: int = 3) -> None:
    """Let leases of the project begin and end, and change one of them."""
    for number in range(count):
        world.lease(start=timedelta(hours=2 * number + 1), hours=1, project=PROJECT, name=f"lease {number}")
    world.run()


def test_nothing_is_sent_before_a_receiver_has_accepted_a_test(world):
    world.webhooks.answers[URL] = answer(Reception.FAILED)
    made = subscribe(world)
    live(world)
    tell(world)
    assert [json.loads(message.body)["type"] for message in world.webhooks.sent] == ["blazar.subscription.test"]
    assert shown(world, made).state is SubscriptionState.UNCONFIRMED
    assert shown(world, made).reason == "it does not like it"
    world.webhooks.answers.clear()
    tell_for(world, timedelta(minutes=2))
    assert shown(world, made).state is SubscriptionState.ACTIVE
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)


def test_what_has_happened_is_told_as_cloud_events_in_order(world):
    made = subscribe(world)
    tell(world)
    lease = world.lease(start=timedelta(hours=1), hours=1, project=PROJECT, name="gan-training")
    tell(world)
    (event,) = accepted(world)
    assert event["specversion"] == "1.0"
    assert (event["source"], event["type"]) == ("/reservation", "blazar.lease.created")
    assert event["subject"] == f"leases/{lease.id}"
    assert event["sequence"] == f"{shown(world, made).position:020d}"
    told = event["data"]["lease"]
    assert (told["id"], told["name"], told["project_id"]) == (lease.id, "gan-training", PROJECT)
    assert told["revision"] is not None
    (message,) = [each for each in world.webhooks.accepted if json.loads(each.body)["id"] == event["id"]]
    assert (message.message_id, message.content_type) == (event["id"], "application/cloudevents+json")
    assert not message.trusted


def test_only_what_was_asked_for_is_told(world):
    subscribe(world, events=["lease.started"])
    tell(world)
    live(world, 1)
    world.run_to(world.clock.now() + timedelta(hours=3))
    tell(world)
    assert [event["type"] for event in accepted(world)] == ["blazar.lease.started"]


def test_a_subscription_to_one_lease_is_told_of_that_one(world):
    first = world.lease(start=timedelta(hours=1), hours=1, project=PROJECT)
    world.manager.journal_numbering.run_once()
    subscribe(world, lease_id=first.id)
    tell(world)
    world.lease(start=timedelta(hours=4), hours=1, project=PROJECT)
    world.manager.leases.change(first.id, LeaseChange(name="another"))
    tell(world)
    assert [event["subject"] for event in accepted(world)] == [f"leases/{first.id}"]


def test_members_are_told_of_their_project_and_operators_of_all(world):
    subscribe(world)
    subscribe(world, project=None, url="https://ops.example/x")
    tell(world)
    world.lease(start=timedelta(hours=1), hours=1, project=PROJECT)
    world.lease(start=timedelta(hours=3), hours=1, project="art")
    tell(world)
    assert {event["data"]["lease"]["project_id"] for event in accepted(world)} == {PROJECT}
    everything = accepted(world, "https://ops.example/x")
    assert {event["data"]["lease"]["project_id"] for event in everything} == {PROJECT, "art"}


def test_a_dead_receiver_delays_nobody_else_and_misses_nothing(world):
    world.webhooks.answers[OTHER_URL] = answer(Reception.ACCEPTED)
    dead = subscribe(world, url=OTHER_URL)
    subscribe(world)
    tell(world)
    world.webhooks.answers[OTHER_URL] = answer(Reception.FAILED, "it cannot be reached")
    live(world)
    tell(world)
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)
    calls = len([each for each in world.webhooks.sent if each.url == OTHER_URL])
    world.run_to(world.clock.now() + timedelta(hours=8))
    tell_for(world, timedelta(hours=1))
    # One call at each back-off, however much has happened.
    assert len([each for each in world.webhooks.sent if each.url == OTHER_URL]) - calls <= 8
    assert shown(world, dead).behind > 0
    assert shown(world, dead).failing_since is not None
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)
    world.webhooks.answers.clear()
    tell_for(world, timedelta(hours=2))
    assert [event["id"] for event in accepted(world, OTHER_URL)] == ids_of_journal(world)
    assert shown(world, dead).failing_since is None


def test_a_refused_message_holds_back_its_own_lease_alone_and_is_given_up_after_five_minutes(world):
    made = subscribe(world)
    tell(world)
    live(world, 2)
    first, second = sorted(world.manager.leases.all(PROJECT), key=lambda lease: lease.name)

    def refuse_creation(message: WebhookMessage) -> WebhookReceipt:
        event = json.loads(message.body)
        mine = event["subject"] == f"leases/{first.id}" and event["type"] == "blazar.lease.created"
        return WebhookReceipt(Reception.REFUSED, "no") if mine else WebhookReceipt(Reception.ACCEPTED)

    world.webhooks.answers[URL] = refuse_creation
    world.manager.leases.change(first.id, LeaseChange(name="another"))
    tell(world)
    assert {event["subject"] for event in accepted(world)} == {f"leases/{second.id}"}
    assert shown(world, made).dead == 0
    tell_for(world, timedelta(minutes=6))
    own = [event for event in accepted(world) if event["subject"] == f"leases/{first.id}"]
    assert [event["type"] for event in own] == ["blazar.lease.changed"]
    assert (shown(world, made).dead, shown(world, made).behind) == (1, 0)
    (failure,) = world.manager.subscriptions.failures(made.id, Page(10, "at")).items
    assert (failure.type, failure.subject, failure.reason) == ("blazar.lease.created", f"leases/{first.id}", "no")
    tries = [each for each in world.webhooks.sent if each.message_id == failure.id]
    assert len(tries) == 3


def history(world: World, subscription) -> list[tuple[str, str, str | None, str | None]]:
    """What the journal says of a subscription, change by change."""
    world.manager.journal_numbering.run_once()
    entries = world.store.journal.entries_after(0, None, 1000).items
    mine = [entry for entry in entries if entry.about.id == subscription.id]
    assert {entry.about.project_id for entry in mine} <= {PROJECT}
    return [(str(e.past.verb), c.field, c.before, c.after) for e in mine for c in e.past.changes]


def test_its_history_says_what_becomes_of_a_subscription_and_not_where_it_leads(world):
    made = subscribe(world, url="https://user:geheim@ci.example:8443/hooks/geheim?key=geheim")
    world.manager.subscriptions.change(made.id, SubscriptionChange(url="https://ci.example:8443/hooks/geheim2"))
    world.manager.subscriptions.change(made.id, SubscriptionChange(new_secret=True))
    world.manager.subscriptions.change(made.id, SubscriptionChange())
    world.webhooks.answers["https://ci.example:8443/hooks/geheim2"] = answer(Reception.GONE, "it answered 410")
    tell(world)
    told = history(world, made)
    assert told[:7] == [
        ("created", "channel", None, "webhook"),
        ("created", "url", None, "https://ci.example:8443/…"),
        ("created", "events", None, "lease.*"),
        ("created", "batch", None, "false"),
        ("created", "state", None, "unconfirmed"),
        ("created", "secret_generation", None, "1"),
        ("changed", "url", "https://ci.example:8443/…", "https://ci.example:8443/…"),
    ]
    assert told[7:] == [
        ("changed", "secret_generation", "1", "2"),
        ("disabled", "state", "unconfirmed", "disabled"),
        ("disabled", "reason", None, "it answered 410"),
    ]
    world.manager.subscriptions.delete(made.id)
    entries = world.store.journal.entries_after(0, None, 1000).items
    assert "geheim" not in str(entries)


def test_a_receiver_that_answers_410_is_disabled_at_once_and_can_be_resumed(world):
    made = subscribe(world)
    tell(world)
    world.webhooks.answers[URL] = answer(Reception.GONE, "it answered 410")
    live(world)
    tell(world)
    found = shown(world, made)
    assert (found.state, found.reason) == (SubscriptionState.DISABLED, "it answered 410")
    sent = len(world.webhooks.sent)
    tell_for(world, timedelta(hours=2), timedelta(minutes=10))
    assert len(world.webhooks.sent) == sent
    world.webhooks.answers.clear()
    world.manager.subscriptions.change(made.id, SubscriptionChange(state=SubscriptionState.ACTIVE))
    tell(world)
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)


def test_after_five_days_of_failures_a_subscription_is_disabled(world):
    made = subscribe(world)
    tell(world)
    world.webhooks.answers[URL] = answer(Reception.FAILED, "it cannot be reached")
    live(world)
    tell(world)
    tell_for(world, PATIENCE + timedelta(hours=3), timedelta(minutes=30))
    found = shown(world, made)
    assert (found.state, found.reason) == (SubscriptionState.DISABLED, "it cannot be reached")
    assert 80 < len(world.webhooks.sent) < 160


def test_a_receiver_is_called_again_when_it_asks_to_be(world):
    subscribe(world)
    tell(world)
    world.webhooks.answers[URL] = answer(Reception.FAILED, "it answered 429", timedelta(minutes=20))
    live(world, 1)
    tell(world)
    sent = len(world.webhooks.sent)
    tell_for(world, timedelta(minutes=19))
    assert len(world.webhooks.sent) == sent
    tell_for(world, timedelta(minutes=2))
    assert len(world.webhooks.sent) == sent + 1


def test_a_paused_subscription_is_told_afterwards_what_has_happened_meanwhile(world):
    made = subscribe(world)
    tell(world)
    world.manager.subscriptions.change(made.id, SubscriptionChange(state=SubscriptionState.PAUSED))
    live(world)
    tell(world)
    assert accepted(world) == []
    assert shown(world, made).behind > 0
    world.manager.subscriptions.change(made.id, SubscriptionChange(state=SubscriptionState.ACTIVE))
    tell(world)
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)


def test_what_is_told_once_more_has_the_same_bytes(world):
    start = world.clock.now()
    made = subscribe(world)
    tell(world)
    live(world)
    tell(world)
    first = {each.message_id: each.body for each in world.webhooks.accepted}
    world.clock.to(world.clock.now() + timedelta(days=3))
    world.run()
    tell(world)
    world.webhooks.accepted.clear()
    world.manager.subscriptions.rewind(made.id, Rewind(after=0))
    tell(world)
    again = {each.message_id: each.body for each in world.webhooks.accepted}
    tested = f"{made.id}-test-"
    assert {id_: body for id_, body in first.items() if not id_.startswith(tested)}.items() <= again.items()
    world.webhooks.accepted.clear()
    world.manager.subscriptions.rewind(made.id, Rewind(since=start + timedelta(days=1)))
    tell(world)
    assert {each.message_id for each in world.webhooks.accepted} < again.keys()
    with pytest.raises(InvalidInput, match="the last entry has the position"):
        world.manager.subscriptions.rewind(made.id, Rewind(after=10**9))


def test_a_batch_has_up_to_fifty_events_in_one_message(world):
    made = subscribe(world, batch=True)
    tell(world)
    live(world)
    tell(world)
    test, message = world.webhooks.accepted
    assert {each.content_type for each in (test, message)} == {"application/cloudevents-batch+json"}
    assert [event["type"] for event in json.loads(test.body)] == ["blazar.subscription.test"]
    assert [event["id"] for event in json.loads(message.body)] == ids_of_journal(world)
    assert shown(world, made).behind == 0


def test_a_test_on_request_is_sent_to_an_active_receiver_too(world):
    made = subscribe(world)
    tell(world)
    world.clock.to(world.clock.now() + MINUTE)
    world.manager.subscriptions.test(made.id)
    tell(world)
    types = [json.loads(each.body)["type"] for each in world.webhooks.accepted]
    assert types == ["blazar.subscription.test"] * 2
    assert shown(world, made).state is SubscriptionState.ACTIVE


def test_both_secrets_sign_for_a_day(world):
    made = subscribe(world)
    tell(world)
    world.manager.subscriptions.change(made.id, SubscriptionChange(new_secret=True))
    world.lease(start=timedelta(hours=1), hours=1, project=PROJECT)
    tell(world)
    assert world.webhooks.accepted[-1].generations == (2, 1)
    world.clock.to(world.clock.now() + BOTH_SECRETS)
    world.run()
    tell(world)
    assert world.webhooks.accepted[-1].generations == (2,)


def test_another_url_is_tested_first(world):
    made = subscribe(world)
    tell(world)
    world.webhooks.answers[OTHER_URL] = answer(Reception.FAILED)
    world.manager.subscriptions.change(made.id, SubscriptionChange(url=OTHER_URL))
    live(world)
    tell(world)
    assert accepted(world, OTHER_URL) == accepted(world) == []
    world.webhooks.answers.clear()
    tell_for(world, timedelta(minutes=2))
    assert [event["id"] for event in accepted(world, OTHER_URL)] == ids_of_journal(world)


class Killed(BaseException):
    """A manager dies: nothing that it does catches this."""


@pytest.mark.parametrize("batch", [False, True])
def test_managers_that_are_killed_while_they_send_leave_nothing_out(world, batch):
    subscribe(world, batch=batch)
    tell(world)
    for number in range(12):
        world.lease(start=timedelta(hours=2 * number + 1), hours=1, project=PROJECT, name=f"lease {number}")
    world.manager.journal_numbering.run_once()
    calls, deadly = 0, {2, 5, 6, 11, 17}

    def die_sometimes(message: WebhookMessage) -> WebhookReceipt:
        nonlocal calls
        calls += 1
        if calls in deadly:
            # Before the receiver has it, or right after.
            if calls % 2:
                world.webhooks.accepted.append(message)
            raise Killed
        return WebhookReceipt(Reception.ACCEPTED)

    world.webhooks.answers[URL] = die_sometimes
    for _ in range(40):
        manager = world.another_manager()
        try:
            manager.delivery.run_due()
        except Killed:
            world.clock.to(world.clock.now() + world.settings.claim_ttl + timedelta(seconds=1))
    seen: dict[str, dict] = {}
    for event in accepted(world):
        seen.setdefault(event["id"], event)
    assert set(seen) == set(ids_of_journal(world))
    in_order(seen.values())


def in_order(events) -> None:
    """Check that the events of each lease came in the order of their places, the first time that each came."""
    places = defaultdict(list)
    for event in events:
        places[event["subject"]].append(event["sequence"])
    assert places
    for found in places.values():
        assert found == sorted(found)


def test_who_works_on_a_subscription_stops_when_it_is_changed(world):
    made = subscribe(world)
    tell(world)
    live(world)
    world.manager.journal_numbering.run_once()

    def pause_it(message: WebhookMessage) -> WebhookReceipt:
        world.manager.subscriptions.change(made.id, SubscriptionChange(state=SubscriptionState.PAUSED))
        return WebhookReceipt(Reception.ACCEPTED)

    world.webhooks.answers[URL] = pause_it
    place = shown(world, made).position
    world.manager.delivery.run_due()
    found = shown(world, made)
    assert (found.state, found.position) == (SubscriptionState.PAUSED, place)


def test_entries_that_come_while_somebody_sends_are_told_next(world):
    made = subscribe(world)
    tell(world)
    world.lease(start=timedelta(hours=1), hours=1, project=PROJECT)
    world.manager.journal_numbering.run_once()
    more = iter([True])

    def book_another(message: WebhookMessage) -> WebhookReceipt:
        if next(more, False):
            world.lease(start=timedelta(hours=5), hours=1, project=PROJECT)
            world.manager.journal_numbering.run_once()
        return WebhookReceipt(Reception.ACCEPTED)

    world.webhooks.answers[URL] = book_another
    world.manager.delivery.run_due()
    assert [event["id"] for event in accepted(world)] == ids_of_journal(world)
    assert shown(world, made).behind == 0


def test_of_messages_that_are_refused_for_good_the_last_ones_are_kept_and_the_rest_counted(world, monkeypatch):
    monkeypatch.setattr(work, "MOST_KEPT", 3)
    made = subscribe(world)
    tell(world)
    world.webhooks.answers[URL] = answer(Reception.REFUSED, "no")
    for number in range(5):
        world.lease(start=timedelta(hours=2 * number + 1), hours=1, project=PROJECT)
        tell(world)
    tell_for(world, timedelta(minutes=40))
    found = shown(world, made)
    assert (found.dead, found.dropped, found.behind) == (3, 2, 0)
    kept = world.manager.subscriptions.failures(made.id, Page(10, "at")).items
    # Those of one moment are in the order of their ids.
    assert {item.id for item in kept} == set(ids_of_journal(world)[2:])
