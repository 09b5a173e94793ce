# SPDX-License-Identifier: Apache-2.0
"""Reads leases that are offered to a project."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from blazar.model.lease import OVER
from blazar.model.lease_details import LeaseFilter
from blazar.model.paging import Page, Position
from blazar.model.requests import Actor
from blazar.model.transfers import OfferPage
from blazar.store.lease_pages import details_of
from blazar.store.paging import after_marker, ordered_by
from blazar.store.rows import LEASE_COLUMNS
from blazar.store.tables import leases
from blazar.store.transactions import Transactions

_ORDER: tuple[sa.ColumnElement[Any], sa.ColumnElement[Any]] = (leases.c.offer_expires_at, leases.c.id)
_CONTENT = LeaseFilter()


class OfferStore:
    """Reads offers."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def giver(self, lease_id: str, taker: Actor, *, now: datetime) -> str | None:
        """Return the project of a lease that is offered to somebody; None if it is not. One statement."""
        query = sa.select(leases.c.project_id).where(leases.c.id == lease_id, *_to(taker, now))
        with self._transactions.reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def page(self, taker: Actor, page: Page, *, now: datetime) -> OfferPage:
        """Return a page of the leases that are offered to somebody, by when that expires.

        In at most six statements. InvalidInput for an unknown marker.
        """
        where = _to(taker, now)
        with self._transactions.reading() as connection:
            after = after_marker(connection, page, *_ORDER, where)
            query = sa.select(*LEASE_COLUMNS).where(*where, *after).order_by(*ordered_by(page, *_ORDER))
            rows = connection.execute(query.limit(page.limit + 1)).all()
            items = details_of(connection, rows[: page.limit], _CONTENT)
            total = sa.select(sa.func.count()).select_from(leases).where(*where)
            count = connection.execute(total).scalar_one() if page.with_count else None
        following = None
        if len(rows) > page.limit and (offer := items[-1].lease.offer) is not None:
            following = Position(offer.expires_at.isoformat(), items[-1].lease.id)
        return OfferPage(items, following, count)


def _to(taker: Actor, now: datetime) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for leases that are offered to somebody."""
    return [
        leases.c.offered_to == taker.project_id,
        leases.c.offer_expires_at > now,
        sa.or_(leases.c.offered_to_user.is_(None), leases.c.offered_to_user == taker.user_id),
        leases.c.deleted_at.is_(None),
        leases.c.status.not_in([str(status) for status in OVER]),
    ]
