# SPDX-License-Identifier: Apache-2.0
"""The store of price lists: versions are added, and none is ever changed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import current
from blazar.model.base.errors import Conflict
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.published import Publication, PublishedList, unknown_list
from blazar.model.journal.object_entries import tell_price_list
from blazar.store.journal.rows import write_entry
from blazar.store.sql.rows import AnyRow
from blazar.store.sql.tables import UTC_TIME, accounts, price_lists, resources
from blazar.store.sql.transactions import Clash, Transactions
from blazar.store.sql.versions import PRICE_VERSION, PRICES, raise_version

_P = price_lists.c
_ALL = sa.select(price_lists).order_by(_P.version)
_LAST_BOOKING = sa.select(sa.func.max(accounts.c.opened_at, type_=UTC_TIME))
_VERSION = sa.select(PRICE_VERSION)


def read_price_lists(connection: Connection) -> tuple[PriceList, ...]:
    """Return all price lists, oldest first, in one statement; ``PriceListCache`` reads them only if there are more."""
    return tuple(_parse_row(row).parse() for row in connection.execute(_ALL))


class PriceListCache:
    """Caches all price lists of a database."""

    def __init__(self) -> None:
        self._kept: tuple[int, tuple[PriceList, ...]] = (0, ())
        self._lock = threading.Lock()

    def read(self, connection: Connection) -> tuple[PriceList, ...]:
        """Return all price lists, oldest first; costs one statement while none is added."""
        version = connection.execute(_VERSION).scalar_one() or 0
        kept, lists = self._kept
        if kept == version:
            return lists
        lists = read_price_lists(connection)
        with self._lock:
            self._kept = version, lists
        return lists

    def read_known(self, connection: Connection, version: int | None) -> tuple[PriceList, ...]:
        """Return all price lists of this version, 0 of none; costs nothing if they are known.

        None: the version is not known, either.
        """
        kept, lists = self._kept
        return lists if version == kept else self.read(connection)

    def latest(self, version: int | None) -> tuple[PriceList, ...] | None:
        """Return all price lists if this version of them is known; None: they have to be read."""
        kept, lists = self._kept
        return lists if version == kept else None


class PriceListStore:
    """Reads and adds price lists; ``version`` returns the last one that was seen beside a catalog, None if none was."""

    def __init__(
        self, transactions: Transactions, cache: PriceListCache, version: Callable[[], int | None] = lambda: None
    ) -> None:
        self._transactions = transactions
        self.cache = cache
        self._version = version

    def known(self) -> tuple[PriceList, ...]:
        """Return the price lists as of the last read of a catalog, oldest first; no statement unless one was added."""
        lists = self.cache.latest(self._version())
        return self.read() if lists is None else lists

    def read(self) -> tuple[PriceList, ...]:
        """Return all price lists, oldest first; one statement while none is added."""
        with self._transactions.reading() as connection:
            return self.cache.read(connection)

    def list_published(self) -> tuple[PublishedList, ...]:
        """Return all price lists with their documents, oldest first; one statement."""
        return tuple(map(_parse_row, self._transactions.select(_ALL)))

    def one(self, version: int) -> PublishedList:
        """Return a price list with its document; NotFound. One statement."""
        rows = self._transactions.select(sa.select(price_lists).where(_P.version == version))
        if not rows:
            raise unknown_list(version)
        return _parse_row(rows[0])

    def newest(self) -> PublishedList | None:
        """Return the price list that was published last; None: there is none. One statement."""
        rows = self._transactions.select(sa.select(price_lists).order_by(_P.version.desc()).limit(1))
        return _parse_row(rows[0]) if rows else None

    def add(self, publication: Publication, now: Callable[[], datetime] | None = None) -> Publication:
        """Add a price list, and return it as it is published: ``now``; None: when it says itself.

        Who books at the time has either written that before, and keeps the prices of before, or plans once more and
        knows of the list. Conflict if another one has its version. Eight statements; without ``now`` four.
        """

        def work(connection: Connection) -> Publication:
            published = publication
            if now is not None:
                outdate_plans(connection)
                # It is read after all bookings that are being written have ended: these must not be charged by it.
                last_booking = connection.execute(_LAST_BOOKING).scalar_one()
                published = replace(publication, new=publication.new.hold_from(now(), last_booking))
            _insert(connection, published)
            return published

        try:
            return self._transactions.write(work)
        except Clash:
            raise Conflict(
                f"price list {publication.new.version} was published meanwhile by somebody else; look at it, and "
                "publish again"
            ) from None


def outdate_plans(connection: Connection) -> None:
    """Raise the generations of all resources once nobody is booking them: what is planned has to be planned again."""
    live = resources.c.live == 1
    # In the order of bookings, so that none waits for another one that waits for it.
    connection.execute(sa.select(resources.c.id).where(live).order_by(resources.c.id).with_for_update())
    connection.execute(resources.update().where(live).values(generation=resources.c.generation + 1))


def _insert(connection: Connection, publication: Publication) -> None:
    new = publication.new
    connection.execute(
        price_lists.insert().values(
            version=new.version,
            published_at=new.published_at,
            valid_from=new.valid_from,
            published_by=new.published_by or "",
            digest=new.digest,
            content=new.content,
        )
    )
    raise_version(connection, PRICES)
    write_entry(connection, tell_price_list(publication, by=current().actor))


def _parse_row(row: AnyRow) -> PublishedList:
    return PublishedList(row.version, row.published_at, row.valid_from, row.content, row.published_by or None)
