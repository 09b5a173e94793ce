# SPDX-License-Identifier: Apache-2.0
"""The subscriptions that users have without having made one, of what happens to their own leases, by mail.

They are rows as those of others, made when the first entry that is theirs gets its place.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import to_second
from blazar.model.subscriptions.details import Subscription, own_id, own_subscription
from blazar.store.sql.rows import chunks
from blazar.store.sql.tables import subscriptions
from blazar.store.work.claims import TOLD


def add_own_subscriptions(
    connection: Connection, users: Collection[str], events: Sequence[str], *, last: int, newest: int, now: datetime
) -> None:
    """Add the subscriptions of users that have none yet; Clash if another request has just added one of them.

    They are due, and are told what comes after ``last``. One statement for each few thousand users, and one more.
    """
    ids = {own_id(user): user for user in users}
    s = subscriptions.c
    known: set[str] = set()
    for part in chunks(sorted(ids)):
        known.update(connection.execute(sa.select(s.id).where(s.id.in_(part))).scalars())
    new = [
        own_subscription(user, tuple(events), at=now, position=last, newest=newest)
        for id_, user in sorted(ids.items())
        if id_ not in known
    ]
    if new:
        connection.execute(subscriptions.insert(), [{**subscription_row(found), "due_at": now} for found in new])


def wake_own_subscriptions(
    connection: Connection, users: Collection[str], *, last: int, newest: int, now: datetime
) -> None:
    """Make the subscriptions of users due that entries after ``last`` up to ``newest`` concern.

    One statement for each few thousand users.
    """
    s = subscriptions.c
    idle = sa.and_(s.state == TOLD, s.claimed_by.is_(None), s.due_at.is_(None))
    # Nothing before these entries is theirs that they have not been told: so it need not be read.
    place = sa.case((sa.and_(idle, s.newest <= s.position), last), else_=s.position)
    due_at = sa.case((idle, sa.literal(to_second(now), type_=s.due_at.type)), else_=s.due_at)
    for part in chunks(sorted(users)):
        theirs = subscriptions.update().where(s.own.is_(sa.true()), s.user_id.in_(part))
        connection.execute(theirs.ordered_values((s.position, place), (s.newest, newest), (s.due_at, due_at)))


def subscription_row(subscription: Subscription) -> dict[str, Any]:
    """Return the columns of a new subscription, on which nobody has worked."""
    return {
        "id": subscription.id,
        "project_id": subscription.project_id,
        "user_id": subscription.user_id,
        "channel": str(subscription.channel),
        "url": subscription.url or "",
        "events": list(subscription.events),
        "lease_id": subscription.lease_id,
        "own": subscription.own,
        "digest": str(subscription.digest),
        "time_zone": subscription.time_zone,
        "batch": subscription.batch,
        "state": str(subscription.state),
        "reason": subscription.reason,
        "confirmed": subscription.confirmed,
        "generation": subscription.generation,
        "secret_changed_at": subscription.secret_changed_at,
        "position": subscription.position,
        "newest": subscription.newest,
        "testing": not subscription.confirmed,
        "attempts": 0,
        "refusals": {},
        "dropped": subscription.dropped,
        "failing_since": subscription.failing_since,
        "last_delivered_at": subscription.last_delivered_at,
        "revision": subscription.revision,
        "created_at": subscription.created_at,
        "updated_at": subscription.updated_at,
    }
