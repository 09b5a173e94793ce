# SPDX-License-Identifier: Apache-2.0
"""Feeds: secret links by which calendar programs read leases, without a token."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from blazar.model.base.errors import NotFound
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.leases.reminders import Reminder

LIFE = timedelta(days=365)
BACK, AHEAD = timedelta(days=30), timedelta(days=366)
MOST_ITEMS = 1000
"""What a feed shows: leases of this time around now, and no more than that."""


class FeedKind(StrEnum):
    """What a feed shows: the leases of a user, a project or a resource, or when nothing is free."""

    USER = "user"
    PROJECT = "project"
    RESOURCE = "resource"
    FREE_BUSY = "free_busy"


@dataclass(frozen=True, slots=True)
class FeedOwner:
    """A user in a project, who sees only feeds of their own."""

    user_id: str
    project_id: str


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """A new feed. ``resource`` is a label or an id; ``requirement`` a JSON text that names resources of a type."""

    kind: FeedKind
    name: str
    owner: FeedOwner
    resource: str | None = None
    resource_type: str | None = None
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class Feed:
    """A feed as users see it; the secret of its link is stored nowhere. ``resource`` is a label."""

    id: str
    kind: FeedKind
    name: str
    user_id: str
    project_id: str
    created_at: datetime
    expires_at: datetime
    last_used_at: datetime | None = None
    resource: str | None = None
    resource_id: int | None = None
    resource_type: str | None = None
    requirement: str | None = None


@dataclass(frozen=True, slots=True)
class FeedQuestion:
    """A page of live feeds: of an owner (None: of everybody), and as filters say."""

    page: Page
    owner: FeedOwner | None = None
    user_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class FeedPage:
    """Feeds, and the position of the last one if more follow. ``count`` if it was asked for."""

    items: tuple[Feed, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class FeedItem:
    """A lease in a feed. ``cancelled``: it was deleted before its end. ``reserves``: resource types with amounts.

    ``reminders`` are for those who may see all of the lease.
    """

    lease_id: str
    name: str
    project_id: str
    window: Window
    before_end: datetime | None
    revision: int
    cancelled: bool
    created_at: datetime
    changed_at: datetime
    reserves: tuple[tuple[str, int], ...] = ()
    reminders: tuple[Reminder, ...] = ()


@dataclass(frozen=True, slots=True)
class FeedContent:
    """What a feed shows now: leases, or for ``FREE_BUSY`` the times in ``window`` at which nothing is free."""

    feed: Feed
    window: Window
    items: tuple[FeedItem, ...] = ()
    busy: tuple[Window, ...] = ()


def unknown_feed() -> NotFound:
    """Return the error for a feed that does not exist, has ended, or belongs to somebody else."""
    return NotFound("there is no such feed; it may have been revoked or have expired", code="feed_not_found")
