# SPDX-License-Identifier: Apache-2.0
"""The subscription that each user has to what happens to their own leases; and what a change makes of any."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from blazar.clouds.ports.people import NO_ADDRESS, NO_MAIL
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Denied, InvalidInput, NotFound, check_revision
from blazar.model.subscriptions.details import (
    Channel,
    Subscription,
    SubscriptionChange,
    SubscriptionState,
    own_id,
    own_subscription,
    unknown_subscription,
)
from blazar.model.subscriptions.events import check_events
from blazar.store.sql.transactions import Clash


class OwnSubscriptions:
    """Shows, changes and ends these subscriptions."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._subscriptions = runtime.store.subscriptions

    def show(self, user_id: str) -> Subscription:
        """Return that of a user, also if it is not on record yet; its reason says if nothing can be sent. Denied."""
        if not self._runtime.mail.enabled:
            raise Denied(NO_MAIL)
        found = self._find(user_id)
        try:
            known = self._runtime.people.find_address(user_id) is not None
        except (CloudUnavailable, CloudRefused):
            # It may be known nevertheless; a mail that is not sent says so.
            known = True
        return found if known or found.reason is not None else replace(found, reason=NO_ADDRESS)

    def change(self, user_id: str, change: SubscriptionChange) -> Subscription:
        """Change that of a user, and return it. Denied, InvalidInput, PreconditionFailed."""
        if not self._runtime.mail.enabled:
            raise Denied(NO_MAIL)
        before = self._find(user_id)
        try:
            self._subscriptions.one(before.id)
        except NotFound:
            try:
                self._subscriptions.add_own(before)
            except Clash:
                before = self._subscriptions.one(before.id)
        check_revision(before.revision, change.revisions, "it has changed; read it, and send its tag")
        now = self._runtime.clock.now()
        after = apply_change(before, change, now)
        self._subscriptions.change(before, after, now=now)
        self._runtime.signals.subscriptions_changed()
        return after

    def by_link(self, subscription_id: str, secret: str) -> Subscription:
        """Return the subscription whose mails have a link with this secret; NotFound."""
        if not self._runtime.mail.is_secret_of(subscription_id, secret):
            raise unknown_subscription(subscription_id)
        found = self._subscriptions.one(subscription_id)
        if found.channel is not Channel.MAIL:
            raise unknown_subscription(subscription_id)
        return found

    def unsubscribe(self, subscription_id: str, secret: str) -> None:
        """Send no more mail of a subscription, for who knows the secret of its link; NotFound.

        That of a user to their own leases stays, and tells nothing; another one is removed.
        """
        found = self.by_link(subscription_id, secret)
        if not found.own:
            self._subscriptions.remove(found.id, None, now=self._runtime.clock.now())
            return
        self.change(found.user_id, SubscriptionChange(events=()))

    def _find(self, user_id: str) -> Subscription:
        try:
            return self._subscriptions.one(own_id(user_id))
        except NotFound:
            now, place = self._runtime.clock.now(), self._runtime.store.journal.last_position()
            return own_subscription(user_id, self._runtime.settings.own_events, at=now, position=place)


def apply_change(before: Subscription, change: SubscriptionChange, now: datetime) -> Subscription:
    """Return a changed subscription; InvalidInput.

    Another URL has to be confirmed by its receiver first, as that of a new subscription, and so has one that was never.
    """
    after = replace(before, revision=before.revision + 1, updated_at=now)
    if change.events is not None:
        after = replace(after, events=check_events(change.events, operator=before.trusted))
    if change.batch is not None:
        after = replace(after, batch=change.batch)
    if change.digest is not None:
        after = replace(after, digest=change.digest)
    if change.time_zone is not None:
        after = replace(after, time_zone=change.time_zone)
    if change.new_secret:
        after = replace(after, generation=before.generation + 1, secret_changed_at=now)
    if change.url is not None and change.url != before.url:
        after = replace(after, url=change.url, confirmed=False)
        if before.state is SubscriptionState.ACTIVE:
            after = replace(after, state=SubscriptionState.UNCONFIRMED)
    if change.state is SubscriptionState.PAUSED:
        return replace(after, state=SubscriptionState.PAUSED, reason=None, failing_since=None)
    if change.state is SubscriptionState.ACTIVE:
        state = SubscriptionState.ACTIVE if after.confirmed else SubscriptionState.UNCONFIRMED
        return replace(after, state=state, reason=None, failing_since=None)
    if change.state is not None:
        raise InvalidInput(f"state cannot be set to {change.state}; give active or paused", at="/state")
    return after
