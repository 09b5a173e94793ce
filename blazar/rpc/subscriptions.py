# SPDX-License-Identifier: Apache-2.0
"""The calls of the API to a manager about subscriptions.

``interface`` has all calls, and says what holds for each.
"""

from __future__ import annotations

from typing import Protocol

from blazar.model.base.paging import Page
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.subscriptions.details import (
    FailurePage,
    MadeSubscription,
    Rewind,
    Subscription,
    SubscriptionChange,
    SubscriptionPage,
    SubscriptionQuestion,
    SubscriptionRequest,
)


class Subscriptions(Protocol):
    """The calls about subscriptions."""

    def page(self, question: SubscriptionQuestion) -> SubscriptionPage:
        """Return a page of subscriptions; InvalidInput."""

    def one(self, subscription_id: str) -> Subscription:
        """Return a subscription; NotFound."""

    def create(self, request: SubscriptionRequest) -> MadeSubscription:
        """Make a subscription, and return it with its secret. InvalidInput; Denied if no web hooks are sent.

        If one was made with the key of the request, return that. Conflict if the key was sent with another request.
        """

    def replay(self, key: IdempotencyKey) -> MadeSubscription | None:
        """Return the subscription that was made with a key, as it is now; None if there is none. Conflict."""

    def change(self, subscription_id: str, change: SubscriptionChange) -> Subscription:
        """Change a subscription. NotFound, InvalidInput, Denied, PreconditionFailed."""

    def test(self, subscription_id: str) -> Subscription:
        """Have a test sent to the receiver at once, and return the subscription. NotFound, Denied."""

    def rewind(self, subscription_id: str, wanted: Rewind) -> Subscription:
        """Have what has happened be told again from a place or an instant on. NotFound, InvalidInput."""

    def mine(self, user_id: str) -> Subscription:
        """Return the subscription of a user to what happens to their own leases. Denied if no mail is sent."""

    def change_mine(self, user_id: str, change: SubscriptionChange) -> Subscription:
        """Change the subscription of a user to their own leases. Denied, InvalidInput, PreconditionFailed."""

    def check_link(self, subscription_id: str, secret: str) -> None:
        """Raise NotFound unless mails of a subscription have a link with this secret."""

    def unsubscribe(self, subscription_id: str, secret: str) -> None:
        """Send no more mail of a subscription, for who knows the secret of the link in it; NotFound."""

    def failures(self, subscription_id: str, page: Page) -> FailurePage:
        """Return a page of the messages that the receiver has refused for good; InvalidInput."""

    def delete(self, subscription_id: str, revisions: tuple[int, ...] | None = None) -> None:
        """Remove a subscription: nothing more is sent. NotFound, PreconditionFailed."""
