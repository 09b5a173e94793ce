# SPDX-License-Identifier: Apache-2.0
"""The store of feeds, and of the leases that they show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.feeds import MOST_ITEMS, Feed, FeedItem, FeedKind, FeedOwner, FeedPage, FeedQuestion, unknown_feed
from blazar.model.journal.entries import Verb
from blazar.model.journal.object_entries import tell_feed
from blazar.model.leases.reminders import reminders_of
from blazar.model.leases.states import EventType
from blazar.store.calendar.project_use import UNGRANTED
from blazar.store.journal.rows import write_entry
from blazar.store.leases.pages import UNDONE
from blazar.store.sql.paging import read_page
from blazar.store.sql.tables import UTC_TIME, allocations, events, feeds, leases, reservations, resources
from blazar.store.sql.transactions import Transactions, atomic

HOURLY = timedelta(hours=1)
"""How exactly the last use of a feed is written: programs read feeds often."""

_COLUMNS = (
    feeds.c.id,
    feeds.c.kind,
    feeds.c.name,
    feeds.c.user_id,
    feeds.c.project_id,
    feeds.c.created_at,
    feeds.c.expires_at,
    feeds.c.last_used_at,
    resources.c.label,
    feeds.c.resource_id,
    feeds.c.resource_type,
    feeds.c.requirement,
)
_ORDER = (feeds.c.created_at, feeds.c.id)
_FEEDS = sa.select(*_COLUMNS).select_from(feeds.outerjoin(resources, resources.c.id == feeds.c.resource_id))
_BEFORE_END = (
    sa.select(sa.func.max(events.c.time, type_=UTC_TIME))
    .where(events.c.lease_id == leases.c.id, events.c.event_type == str(EventType.BEFORE_END))
    .scalar_subquery()
)


class FeedStore:
    """Reads, adds and removes feeds. One that has expired is as if it did not exist."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def page(self, question: FeedQuestion, *, now: datetime) -> FeedPage:
        """Return a page of live feeds, oldest first or newest first. InvalidInput if the marker names none of them."""
        where = [feeds.c.expires_at > now, *_owner_condition(question.owner)]
        if question.user_id is not None:
            where.append(feeds.c.user_id == question.user_id)
        if question.project_id is not None:
            where.append(feeds.c.project_id == question.project_id)
        with self._transactions.reading() as connection:
            found = read_page(connection, question.page, _FEEDS, _ORDER, where)
        return FeedPage(tuple(_parse_feed(tuple(row)) for row in found.rows), found.last, found.count)

    def one(self, feed_id: str, owner: FeedOwner | None, *, now: datetime) -> Feed:
        """Return a live feed, of the owner if one is given; NotFound. One statement."""
        return self._one(feeds.c.id == feed_id, feeds.c.expires_at > now, *_owner_condition(owner))

    def by_secret(self, secret_hash: str, *, now: datetime) -> Feed:
        """Return the live feed whose link has the secret with this hash; NotFound. One statement."""
        return self._one(feeds.c.secret_hash == secret_hash, feeds.c.expires_at > now)

    @atomic
    def add(self, connection: Connection, feed: Feed, secret_hash: str, *, now: datetime, most: int) -> None:
        """Add a feed, and remove those of its user that have expired; InvalidInput if the user has ``most`` already."""
        of_user = feeds.c.user_id == feed.user_id

        connection.execute(feeds.delete().where(of_user, feeds.c.expires_at <= now))
        live = sa.select(sa.func.count()).select_from(feeds).where(of_user)
        if connection.execute(live).scalar_one() >= most:
            raise InvalidInput(
                f"a user has at most {most} feeds, in all projects together; revoke one that is not needed"
                if most
                else "this service makes no feeds; ask its operators",
                code="out_of_bounds",
                data={"maximum": most},
            )
        connection.execute(
            feeds.insert().values(
                id=feed.id,
                secret_hash=secret_hash,
                kind=str(feed.kind),
                name=feed.name,
                user_id=feed.user_id,
                project_id=feed.project_id,
                resource_id=feed.resource_id,
                resource_type=feed.resource_type,
                requirement=feed.requirement,
                created_at=feed.created_at,
                expires_at=feed.expires_at,
            )
        )
        write_entry(connection, tell_feed(feed, Verb.CREATED, at=now, by=current().actor))

    @atomic
    def remove(self, connection: Connection, feed_id: str, owner: FeedOwner | None, *, now: datetime) -> None:
        """Remove a live feed, of the owner if one is given; NotFound. Its link stops working at once."""
        live = (feeds.c.id == feed_id, feeds.c.expires_at > now, *_owner_condition(owner))
        row = connection.execute(_FEEDS.where(*live)).one_or_none()
        if row is None or not connection.execute(feeds.delete().where(*live)).rowcount:
            raise unknown_feed()
        write_entry(connection, tell_feed(_parse_feed(tuple(row)), Verb.DELETED, at=now, by=current().actor))

    def note_use(self, feed: Feed, *, now: datetime) -> None:
        """Write when a feed was last used, if that was an hour ago."""
        if feed.last_used_at is not None and now - feed.last_used_at < HOURLY:
            return
        used = feeds.update().where(feeds.c.id == feed.id).values(last_used_at=now)
        self._transactions.write(lambda connection: connection.execute(used))

    def find_resource(self, name: str) -> tuple[int, str] | None:
        """Return the calendar id and the label of a registered resource, by label or id; None if there is none."""
        query = sa.select(resources.c.id, resources.c.label).where(
            resources.c.live == 1, sa.or_(resources.c.label == name, resources.c.external_id == name)
        )
        with self._transactions.reading() as connection:
            row = connection.execute(query.order_by((resources.c.label == name).desc()).limit(1)).one_or_none()
        return None if row is None else (row[0], row[1])

    def items(self, feed: Feed, window: Window, *, now: datetime, cancelled_since: datetime) -> tuple[FeedItem, ...]:
        """Return the leases that a feed shows in a window, by their start; two statements.

        A lease that was deleted before its end is shown as cancelled, if that was after ``cancelled_since``. If there
        are too many, those that ended first are left out first, then those that start last.
        """
        query = _select_items(feed, window, now, cancelled_since)
        with self._transactions.reading() as connection:
            rows = sorted(connection.execute(query).all(), key=lambda row: (row.starts_at, row.id))
            reserved = _read_reserved(connection, [row[0] for row in rows])
        return tuple(_item_of(tuple(row), reserved.get(row[0], ())) for row in rows)

    def _one(self, *where: sa.ColumnElement[bool]) -> Feed:
        with self._transactions.reading() as connection:
            row = connection.execute(_FEEDS.where(*where)).one_or_none()
        if row is None:
            raise unknown_feed()
        return _parse_feed(tuple(row))


def _owner_condition(owner: FeedOwner | None) -> list[sa.ColumnElement[bool]]:
    if owner is None:
        return []
    return [feeds.c.project_id == owner.project_id, feeds.c.user_id == owner.user_id]


def _select_visible(feed: Feed) -> list[sa.ColumnElement[bool]]:
    """Return which leases a feed shows."""
    match feed.kind:
        case FeedKind.USER:
            return [leases.c.project_id == feed.project_id, leases.c.user_id == feed.user_id]
        case FeedKind.PROJECT:
            return [leases.c.project_id == feed.project_id]
        case FeedKind.RESOURCE:
            held = sa.select(allocations.c.lease_id).where(allocations.c.resource_id == feed.resource_id)
            return [leases.c.id.in_(held)]
    return [sa.false()]


def _select_items(feed: Feed, window: Window, now: datetime, cancelled_since: datetime) -> sa.Select[Any]:
    """Return a query of the leases that a feed shows in a window, those to come first."""
    to_come = leases.c.ends_at > now
    ended_early = leases.c.deleted_at < leases.c.ends_at
    return (
        sa.select(
            leases.c.id,
            leases.c.name,
            leases.c.project_id,
            leases.c.starts_at,
            leases.c.ends_at,
            leases.c.revision,
            leases.c.deleted_at,
            leases.c.created_at,
            leases.c.updated_at,
            _BEFORE_END,
            leases.c.reminders,
        )
        .where(
            leases.c.ends_at > window.start,
            leases.c.starts_at < window.end,
            sa.or_(leases.c.deleted_at.is_(None), leases.c.deleted_at > cancelled_since, ~ended_early),
            ~UNDONE,
            leases.c.status.not_in(UNGRANTED),
            *_select_visible(feed),
        )
        .order_by(
            sa.case((to_come, 0), else_=1),
            sa.case((to_come, leases.c.starts_at), else_=None),
            leases.c.ends_at.desc(),
            leases.c.id,
        )
        .limit(MOST_ITEMS)
    )


def _read_reserved(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[tuple[str, int], ...]]:
    """Return the resource types that leases reserve, each with the most that it may have; no children."""
    if not ids:
        return {}
    query = sa.select(reservations.c.lease_id, reservations.c.resource_type, reservations.c.parameters)
    found: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for lease_id, resource_type, parameters in connection.execute(
        query.where(reservations.c.lease_id.in_(ids), reservations.c.parent_id.is_(None)).order_by(
            reservations.c.position
        )
    ):
        count = parameters.get("amount", parameters.get("max", 1))
        found[lease_id].append((resource_type, count if isinstance(count, int) else 1))
    return {lease_id: tuple(parts) for lease_id, parts in found.items()}


def _parse_feed(row: Sequence[Any]) -> Feed:
    id_, kind, name, user, project, created, expires, used, label, resource_id, resource_type, requirement = row
    return Feed(
        id=id_,
        kind=FeedKind(kind),
        name=name,
        user_id=user,
        project_id=project,
        created_at=created,
        expires_at=expires,
        last_used_at=used,
        resource=label,
        resource_id=resource_id,
        resource_type=resource_type,
        requirement=requirement,
    )


def _item_of(row: Sequence[Any], reserves: tuple[tuple[str, int], ...]) -> FeedItem:
    id_, name, project, starts, ends, revision, deleted, created, updated, before_end, reminding = row
    return FeedItem(
        lease_id=id_,
        name=name,
        project_id=project,
        window=Window(starts, ends),
        before_end=before_end,
        revision=revision,
        cancelled=deleted is not None and deleted < ends,
        created_at=created,
        changed_at=max(created, updated or created, deleted or created),
        reserves=reserves,
        reminders=reminders_of(reminding or ()),
    )
