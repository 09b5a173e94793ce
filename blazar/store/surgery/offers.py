# SPDX-License-Identifier: Apache-2.0
"""Reads leases that are offered to a project."""

from __future__ import annotations

from datetime import datetime

import sqlalchemy as sa

from blazar.model.base.paging import Page
from blazar.model.leases.details import LeaseFilter
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import OVER
from blazar.model.surgery import OfferPage
from blazar.store.leases.pages import details_of
from blazar.store.sql.paging import read_page
from blazar.store.sql.rows import LEASE_COLUMNS
from blazar.store.sql.tables import leases
from blazar.store.sql.transactions import Transactions

_ORDER = (leases.c.offer_expires_at, leases.c.id)
_CONTENT = LeaseFilter()


class OfferStore:
    """Reads offers."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions

    def find_giver(self, lease_id: str, taker: Actor, *, now: datetime) -> str | None:
        """Return the project of a lease that is offered to somebody; None if it is not. One statement."""
        query = sa.select(leases.c.project_id).where(leases.c.id == lease_id, *_offered_conditions(taker, now))
        with self._transactions.reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def page(self, taker: Actor, page: Page, *, now: datetime) -> OfferPage:
        """Return a page of the leases that are offered to somebody, by when that expires.

        In at most six statements. InvalidInput for an unknown marker.
        """
        where = _offered_conditions(taker, now)
        with self._transactions.reading() as connection:
            found = read_page(connection, page, sa.select(*LEASE_COLUMNS), _ORDER, where)
            return OfferPage(details_of(connection, found.rows, _CONTENT), found.last, found.count)


def _offered_conditions(taker: Actor, now: datetime) -> list[sa.ColumnElement[bool]]:
    """Return the conditions for leases that are offered to somebody."""
    return [
        leases.c.offered_to == taker.project_id,
        leases.c.offer_expires_at > now,
        sa.or_(leases.c.offered_to_user.is_(None), leases.c.offered_to_user == taker.user_id),
        leases.c.deleted_at.is_(None),
        leases.c.status.not_in([str(status) for status in OVER]),
    ]
