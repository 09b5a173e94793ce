# SPDX-License-Identifier: Apache-2.0
"""Subscriptions as values: what is asked for, what was agreed, and how far its receiver has been told."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.errors import NotFound
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass
from blazar.model.leases.requests import IdempotencyKey

MOST_SUBSCRIPTIONS = 20
"""Subscriptions of a project."""

BOTH_SECRETS = timedelta(hours=24)
"""How long messages are signed with the former secret, too, after a new one was made."""


class Channel(StrEnum):
    """How somebody is told."""

    WEBHOOK = "webhook"
    MAIL = "mail"
    """To the address that Keystone has of who has subscribed."""


class SendingLane(StrEnum):
    """Who shares the threads that send: those of one lane are never waited for by another one."""

    WELL = "well"
    """Web hooks whose receivers do well."""
    FAILING = "failing"
    """Web hooks whose receivers did not accept the last message, or none yet."""
    MAIL = "mail"
    """All mail, which goes to one server."""


class SubscriptionState(StrEnum):
    """Whether a receiver is told."""

    UNCONFIRMED = "unconfirmed"
    """Nothing but a test is sent until the receiver has accepted one."""
    ACTIVE = "active"
    PAUSED = "paused"
    """Its owner wants nothing to be sent for a while; what happens meanwhile is told afterwards."""
    DISABLED = "disabled"
    """The service has given up: its ``reason`` says why."""


class Digest(StrEnum):
    """How often one is told by mail."""

    NONE = "none"
    """Whenever something has happened."""
    DAILY = "daily"
    """Once a day, in the morning."""


LIVE = (SubscriptionState.UNCONFIRMED, SubscriptionState.ACTIVE)
"""States in which something is sent."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """A subscription. ``project_id`` None: an operator's, of everything. ``url`` is None of one by mail.

    ``events`` are names of what is told, as ``lease.started`` or ``lease.*``; with ``lease_id`` of that lease only.
    ``position`` is that of the last entry of the journal that was dealt with, ``newest`` that of the last one that may
    concern it. ``generation`` counts its secrets, of which the last was made at ``secret_changed_at``; ``confirmed``:
    its receiver has accepted a message. ``dead`` counts messages that were refused for good and are kept, ``dropped``
    those that are not any more. ``secret`` is only known where it is told. ``own``: what happens to leases of its user
    is told by mail, in whatever project, and ``project_id`` is empty. Mail has times of ``time_zone``.
    """

    id: str
    project_id: str | None
    user_id: str
    channel: Channel
    url: str | None
    events: tuple[str, ...]
    created_at: datetime
    lease_id: str | None = None
    batch: bool = False
    state: SubscriptionState = SubscriptionState.UNCONFIRMED
    reason: str | None = None
    confirmed: bool = False
    position: int = 0
    newest: int = 0
    generation: int = 1
    secret_changed_at: datetime | None = None
    last_delivered_at: datetime | None = None
    failing_since: datetime | None = None
    dead: int = 0
    revision: int = 0
    updated_at: datetime | None = None
    secret: str | None = None
    own: bool = False
    digest: Digest = Digest.NONE
    time_zone: str = "UTC"
    dropped: int = 0

    @property
    def behind(self) -> int:
        """How many entries of the journal may still have to be told."""
        return max(0, self.newest - self.position)

    @property
    def trusted(self) -> bool:
        """Whether an operator has named its receiver."""
        return self.project_id is None

    def generations(self, now: datetime) -> tuple[int, ...]:
        """Return the generations of the secrets that sign a message now, the present one first."""
        changed = self.secret_changed_at
        if self.generation == 1 or changed is None or now - changed >= BOTH_SECRETS:
            return (self.generation,)
        return (self.generation, self.generation - 1)


@dataclass(frozen=True, slots=True)
class SubscriptionRequest:
    """A new subscription, as of ``Subscription``."""

    project_id: str | None
    user_id: str
    url: str | None
    events: tuple[str, ...]
    lease_id: str | None = None
    batch: bool = False
    channel: Channel = Channel.WEBHOOK
    key: IdempotencyKey | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionChange:
    """What is changed; None stays. ``revisions`` are those that it may have before, None: any."""

    url: str | None = None
    events: tuple[str, ...] | None = None
    batch: bool | None = None
    state: SubscriptionState | None = None
    new_secret: bool = False
    digest: Digest | None = None
    time_zone: str | None = None
    revisions: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionQuestion:
    """A page of subscriptions, of a project or of all, in some states or in any."""

    page: Page
    project_id: str | None = None
    states: tuple[SubscriptionState, ...] = ()


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    """Subscriptions, and the position of the last one if more follow. ``count`` if it was asked for."""

    items: tuple[Subscription, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """A message that was refused for good: the id, place, type and subject of its event, why, and when."""

    id: str
    position: int
    type: str
    subject: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class FailurePage:
    """Messages that were refused for good, and the position of the last one if more follow."""

    items: tuple[DeliveryFailure, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Rewind:
    """What is told again: what comes ``after`` a place of the journal, or what has happened ``since`` an instant."""

    after: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class MadeSubscription:
    """A subscription with its secret; ``replayed``: it was made by an earlier request with the same key."""

    subscription: Subscription
    replayed: bool = False


_USERS = uuid.UUID("6f2a7d1c-94f3-4b0e-8a1d-5d0b6f0c7e21")


def own_id(user_id: str) -> str:
    """Return the id of the subscription that a user has without having made one."""
    return str(uuid.uuid5(_USERS, user_id))


def own_subscription(
    user_id: str, events: tuple[str, ...], *, at: datetime, position: int, newest: int | None = None
) -> Subscription:
    """Return the subscription of a user to what happens to their own leases, as it is at first."""
    return Subscription(
        id=own_id(user_id),
        project_id="",
        user_id=user_id,
        channel=Channel.MAIL,
        url=None,
        events=events,
        created_at=at,
        state=SubscriptionState.ACTIVE,
        confirmed=True,
        position=position,
        newest=position if newest is None else newest,
        own=True,
    )


def unknown_subscription(subscription_id: str) -> NotFound:
    """Return the error for a subscription that does not exist, or belongs to another project."""
    return NotFound(f"there is no subscription {subscription_id}", code="subscription_not_found")
