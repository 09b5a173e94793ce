# SPDX-License-Identifier: Apache-2.0
"""Subscriptions: they are made, changed and removed."""

from __future__ import annotations

import uuid
from dataclasses import replace

from blazar.clouds.ports.people import NO_ADDRESS, NO_MAIL
from blazar.clouds.ports.webhooks import NOT_SET, Webhooks
from blazar.manager.common.request_keys import do_once, find_record
from blazar.manager.common.runtime import Runtime
from blazar.manager.subscriptions.own import OwnSubscriptions, apply_change
from blazar.model.base.errors import Denied, InvalidInput, WrongState, check_revision
from blazar.model.base.paging import Page
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.subscriptions.details import (
    MOST_SUBSCRIPTIONS,
    Channel,
    FailurePage,
    MadeSubscription,
    Rewind,
    Subscription,
    SubscriptionChange,
    SubscriptionPage,
    SubscriptionQuestion,
    SubscriptionRequest,
    SubscriptionState,
)
from blazar.model.subscriptions.events import check_events


class SubscriptionService:
    """Answers the calls about subscriptions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._subscriptions = runtime.store.subscriptions
        self._webhooks: Webhooks = runtime.webhooks
        self._own = OwnSubscriptions(runtime)

    def page(self, question: SubscriptionQuestion) -> SubscriptionPage:
        """Return a page of subscriptions; InvalidInput."""
        return self._subscriptions.page(question)

    def one(self, subscription_id: str) -> Subscription:
        """Return a subscription; NotFound."""
        return self._subscriptions.one(subscription_id)

    def replay(self, key: IdempotencyKey) -> MadeSubscription | None:
        """Return the subscription that was made with a key, as it is now; None if there is none. Conflict."""
        record = find_record(self._runtime, key, "subscription")
        if record is None:
            return None
        return MadeSubscription(self._reveal(self._subscriptions.one(record.lease_id)), replayed=True)

    def create(self, request: SubscriptionRequest) -> MadeSubscription:
        """Make a subscription, once for each key; it is active once its receiver has accepted a test.

        InvalidInput; Denied if the service sends no web hooks.
        """
        return do_once(request.key, self.replay, lambda: self._create(request))

    def _create(self, request: SubscriptionRequest) -> MadeSubscription:
        trusted = request.project_id is None
        by_mail = request.channel is Channel.MAIL
        self._check_receiver(request, trusted=trusted)
        now = self._runtime.clock.now()
        new = Subscription(
            id=str(uuid.uuid4()),
            project_id=request.project_id,
            user_id=request.user_id,
            channel=request.channel,
            url=request.url,
            events=check_events(request.events, operator=trusted),
            created_at=now,
            lease_id=request.lease_id,
            batch=request.batch,
            state=SubscriptionState.ACTIVE if by_mail else SubscriptionState.UNCONFIRMED,
            confirmed=by_mail,
            position=(place := self._runtime.store.journal.last_position()),
            newest=place,
        )
        self._subscriptions.add(new, key=request.key, due_at=now, most=MOST_SUBSCRIPTIONS)
        self._runtime.signals.subscriptions_changed()
        return MadeSubscription(self._reveal(new))

    def change(self, subscription_id: str, change: SubscriptionChange) -> Subscription:
        """Change a subscription, and return it, with a new secret if one was made.

        NotFound, InvalidInput, Denied, PreconditionFailed.
        """
        before = self._subscriptions.one(subscription_id)
        check_revision(before.revision, change.revisions, "the subscription has changed; read it, and send its tag")
        if change.url is not None or change.new_secret:
            self._check_channel(before)
        if change.url is not None:
            self._check_url(change.url, trusted=before.trusted)
        after = apply_change(before, change, self._runtime.clock.now())
        self._subscriptions.change(before, after, now=self._runtime.clock.now())
        self._runtime.signals.subscriptions_changed()
        return self._reveal(after) if change.new_secret else after

    def delete(self, subscription_id: str, revisions: tuple[int, ...] | None = None) -> None:
        """Remove a subscription: nothing more is sent. NotFound, PreconditionFailed."""
        self._subscriptions.remove(subscription_id, revisions, now=self._runtime.clock.now())

    def test(self, subscription_id: str) -> Subscription:
        """Have a test sent to the receiver at once, and return the subscription. NotFound, Denied.

        What the receiver makes of it is seen in ``state``, ``reason`` and ``last_delivered_at`` soon after.
        """
        if self._subscriptions.one(subscription_id).channel is Channel.MAIL:
            raise WrongState("a subscription by mail needs no test: it goes to an address that Keystone knows")
        if not self._webhooks.enabled:
            raise Denied(NOT_SET)
        self._subscriptions.request_test(subscription_id, now=self._runtime.clock.now())
        self._runtime.signals.subscriptions_changed()
        return self._subscriptions.one(subscription_id)

    def rewind(self, subscription_id: str, wanted: Rewind) -> Subscription:
        """Have what has happened be told again from a place or an instant on. NotFound, InvalidInput."""
        found = self._subscriptions.one(subscription_id)
        last = self._runtime.store.journal.last_position()
        place = wanted.after
        if place is None:
            since = wanted.since or self._runtime.clock.now()
            place = self._subscriptions.find_position(since, found.project_id, found.user_id if found.own else None)
        if place > last:
            raise InvalidInput(
                f"after is {place}, and the last entry has the position {last}", at="/after", code="out_of_bounds"
            )
        self._subscriptions.rewind(subscription_id, place, now=self._runtime.clock.now())
        self._runtime.signals.subscriptions_changed()
        return self._subscriptions.one(subscription_id)

    def mine(self, user_id: str) -> Subscription:
        """Return the subscription of a user to what happens to their own leases. Denied if no mail is sent."""
        return self._own.show(user_id)

    def change_mine(self, user_id: str, change: SubscriptionChange) -> Subscription:
        """Change the subscription of a user to their own leases. Denied, InvalidInput, PreconditionFailed."""
        return self._own.change(user_id, change)

    def check_link(self, subscription_id: str, secret: str) -> None:
        """Raise NotFound unless mails of a subscription have a link with this secret."""
        self._own.by_link(subscription_id, secret)

    def unsubscribe(self, subscription_id: str, secret: str) -> None:
        """Send no more mail of a subscription, for who knows the secret of the link in it; NotFound."""
        self._own.unsubscribe(subscription_id, secret)

    def failures(self, subscription_id: str, page: Page) -> FailurePage:
        """Return a page of the messages that the receiver has refused for good; InvalidInput."""
        return self._subscriptions.failures(subscription_id, page)

    def _check_channel(self, before: Subscription) -> None:
        if before.channel is Channel.MAIL:
            raise InvalidInput("a subscription by mail has neither a url nor a secret", at="/url")

    def _check_receiver(self, request: SubscriptionRequest, *, trusted: bool) -> None:
        """Raise Denied or InvalidInput unless what is told can be sent by the channel of a request."""
        if request.channel is Channel.WEBHOOK:
            if request.url is None:
                raise InvalidInput("url is missing; give an https:// URL", code="missing_field", at="/url")
            self._check_url(request.url, trusted=trusted)
            return
        if request.url is not None:
            sentence = "url does not belong to a subscription by mail, which goes to your address in Keystone"
            raise InvalidInput(f"{sentence}; leave it out", code="unknown_field", at="/url")
        if not self._runtime.mail.enabled:
            raise Denied(NO_MAIL)
        if self._runtime.people.find_address(request.user_id) is None:
            raise InvalidInput(f"channel is mail, and {NO_ADDRESS}; have it set there", at="/channel")

    def _check_url(self, url: str, *, trusted: bool) -> None:
        if not self._webhooks.enabled:
            raise Denied(NOT_SET)
        self._webhooks.check_target(url, trusted=trusted)

    def _reveal(self, subscription: Subscription) -> Subscription:
        if subscription.channel is not Channel.WEBHOOK:
            return subscription
        secret = self._webhooks.reveal_secret(subscription.id, subscription.generation)
        return replace(subscription, secret=secret)
