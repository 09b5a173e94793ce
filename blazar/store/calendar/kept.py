# SPDX-License-Identifier: Apache-2.0
"""Keeps the calendar of each kind in memory, and brings it up to date before each answer.

What is kept of a resource, its uses and its generation, is read in one snapshot, always as a whole. So a copy that is
too old cannot promise anything twice: a booking is decided by generations in its transaction, and those of the copy
belong to the uses that it was planned on. It costs a lost race, after which the resources of that are read again.

A question first reads what has changed since the last one (``changes``), in the transaction in which it reads all else,
and then those resources: so it misses nothing that was committed when it began. What this process has booked itself is
not read again, if nothing else has changed of the resource (``own_bookings``). The copy of a kind is locked meanwhile,
and no longer: what is answered from is a value, and who would wait for long reads without it. A transaction that takes
its snapshot before it has the lock could find the copy newer than that, and so it does not.

A kind is read as a whole at the first question; after more changes than are worth following; if the last row that was
read is not there any more, as in a restored database; if the clock went back by an hour. If its catalog or the prices
are other ones, its generations are compared, as these changes raise them.

It is also read again each hour, in the background. A manager that is stopped in the middle of a write can commit it
after its number was given up. The generations tell of a booking then; they do not of a release, and what is free could
be refused.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from operator import itemgetter

from sqlalchemy.engine import Connection

from blazar.calendar.kept import KEPT_USES, KeptCalendar, OwnBooking
from blazar.calendar.timeline import epoch
from blazar.model.base.clock import monotonic
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import ResourceKind
from blazar.store.calendar.changes import (
    CalendarNews,
    Positions,
    forget_changes,
    is_anybody_waiting,
    read_news,
    read_positions,
)
from blazar.store.calendar.generations import read_generations
from blazar.store.calendar.kept_rows import read_all, read_closed, read_live_generations, read_resources
from blazar.store.calendar.own_bookings import Booked, take_bookings
from blazar.store.resources.catalog import CatalogCache, ResourceCatalog
from blazar.store.sql.transactions import Transactions, atomic
from blazar.store.sql.versions import Versions, read_versions

FORGETS = timedelta(hours=1)
"""Uses that have left are kept for so long after they are over: clocks of managers differ."""

RENEWED_SECONDS = 3600.0
"""What was read as a whole so long ago is read again in the background."""

WAIT_SECONDS = 1.0
"""Who waits longer for a copy reads for itself."""

WORTH_FOLLOWING = 4
"""If more than one of so many resources have changed, reading all of them is as fast."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of some kinds in one transaction; ``calendars`` has those that are kept.

    ``waits``: whether a lease waits for its turn; None if that was not read.
    """

    connection: Connection
    catalogs: Mapping[ResourceKind, ResourceCatalog]
    calendars: Mapping[ResourceKind, KeptCalendar]
    waits: bool | None = None

    def is_anybody_waiting(self) -> bool:
        """Return whether a lease waits for its turn; no statement if a calendar is kept."""
        return is_anybody_waiting(self.connection) if self.waits is None else self.waits

    def generations(self, kind: ResourceKind, ids: Collection[int]) -> Mapping[int, int]:
        """Return the generations of resources of a kind that belong to what is seen; no statement if it is kept."""
        kept = self.calendars.get(kind)
        if kept is None:
            return read_generations(self.connection, ids)
        return {id_: kept.resources[id_].generation for id_ in ids}


@dataclass(slots=True)
class _Copy:
    """What is kept of a kind: the calendar, how far it was read, and from which instant on it is right."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    calendar: KeptCalendar | None = None
    positions: Positions = field(default_factory=Positions)
    versions: Versions = (0, 0)
    since: int = 0
    doubted: set[int] = field(default_factory=set)
    noted: dict[Booked, OwnBooking] = field(default_factory=dict)
    """What this process is booking, until the rows are found."""
    others_write: bool = False
    """Whether the last news were of writes of others: then those are likely again."""
    asked_at: float = 0.0
    read_at: float = 0.0
    too_large_until: float = 0.0

    def drop(self) -> None:
        """Forget all of it."""
        self.calendar = None


class KeptCalendars:
    """The calendars of all kinds; ``most`` is how many uses are kept in all, and of 0 none is.

    The kinds that were not asked for the longest are dropped first. Threads may ask at the same time.
    """

    def __init__(self, transactions: Transactions, catalogs: CatalogCache, *, most: int = KEPT_USES) -> None:
        self._transactions = transactions
        self._catalogs = catalogs
        self._most = most
        self._lock = threading.Lock()
        self._copies: dict[ResourceKind, _Copy] = {}

    @contextmanager
    def open(self, kinds: Sequence[ResourceKind], now: datetime, *, alone: bool = False) -> Iterator[Seen]:
        """Open a transaction with the calendars of kinds as they are in it.

        ``alone``: nothing else is asked of it, so that there is none if one statement tells all.
        """
        with ExitStack() as locks:
            held = {kind for kind in sorted(set(kinds)) if self._most and self._hold(kind, locks)}
            if alone and len(held) == 1 and _is_quiet(self._copies[kinds[0]], now):
                with self._transactions.reading(single=True) as connection:
                    if (seen := self._glance(connection, kinds[0])) is not None:
                        locks.close()
                        yield seen
                        return
            with self._transactions.reading() as connection:
                catalogs, calendars, waits = {}, {}, None
                for kind in kinds:
                    if kind not in held:
                        catalogs[kind] = self._catalogs.read(connection, kind)
                        continue
                    catalogs[kind], calendar, news = self._bring_up(connection, kind, now)
                    waits = waits if news is None else news.anybody_waits
                    if calendar is not None:
                        calendars[kind] = calendar
                locks.close()
                yield Seen(connection, catalogs, calendars, waits)

    @contextmanager
    def note_bookings(self, bookings: Mapping[ResourceKind, Mapping[Booked, OwnBooking]]) -> Iterator[None]:
        """Note what is committed in the block, or not if that raises an error."""
        with self._lock:
            mine = [(self._copies[kind].noted, found) for kind, found in bookings.items() if kind in self._copies]
        for noted, found in mine:
            noted.update(found)
        try:
            yield
        except BaseException:
            for noted, found in mine:
                for booked in found:
                    noted.pop(booked, None)
            raise

    def doubt(self, resource_ids: Collection[int]) -> None:
        """Read these resources again before the next answer: they were not as they are kept."""
        with self._lock:
            copies = list(self._copies.values())
        for copy in copies:
            # Of a set that is emptied by the thread that holds the copy nothing is lost: each is taken out by itself.
            copy.doubted.update(resource_ids)

    def renew(self, now: datetime) -> None:
        """Read as a whole what was read so long ago, and drop it if nobody has asked for it since."""
        with self._lock:
            copies = list(self._copies.items())
        oldest = monotonic() - RENEWED_SECONDS
        for kind, copy in copies:
            if copy.calendar is None or copy.read_at > oldest:
                continue
            is_asked = copy.asked_at > copy.read_at
            # The thread that is at work on it puts it back: then it is renewed the next time.
            copy.drop()
            if is_asked:
                with self.open([kind], now):
                    pass

    @atomic
    def forget_changes(self, connection: Connection, before: datetime, limit: int) -> int:
        """Forget at most ``limit`` notes of changes from before then; return how many."""
        return forget_changes(connection, before, limit)

    def _hold(self, kind: ResourceKind, locks: ExitStack) -> bool:
        """Lock the copy of a kind; return False if others hold it for long, as they do if the database is silent."""
        with self._lock:
            copy = self._copies.setdefault(kind, _Copy())
        if not copy.lock.acquire(timeout=WAIT_SECONDS):
            return False
        locks.callback(copy.lock.release)
        return True

    def _glance(self, connection: Connection, kind: ResourceKind) -> Seen | None:
        """Return a kind as it is in one statement; None if more has to be read than what this process has booked."""
        copy = self._copies[kind]
        known, copy.asked_at = copy.calendar, monotonic()
        assert known is not None
        try:
            news = read_news(connection, kind, copy.positions, copy.asked_at)
            if news is None or news.changed is None:
                copy.drop()
                return None
            mine = take_bookings(known, news.changed, copy.noted)
            # The rest is read in a transaction, which finds no news of it.
            copy.doubted.update(news.changed.keys() - mine.keys())
            copy.calendar = known.replace(mine) if mine else known
        except BaseException:
            copy.drop()
            raise
        kept = self._make_room(copy, copy.calendar) if mine else known
        catalog = self._catalogs.latest(kind)
        if kept is None or copy.doubted or catalog is None or catalog.version != copy.versions[0]:
            return None
        # With the same versions the price list is the one that was read with them.
        seen = Seen(connection, {kind: catalog}, {kind: kept}, news.anybody_waits)
        return seen if news.versions == copy.versions else None

    def _bring_up(
        self, connection: Connection, kind: ResourceKind, now: datetime
    ) -> tuple[ResourceCatalog, KeptCalendar | None, CalendarNews | None]:
        """Return the catalog and the calendar of a kind as they are in this transaction, and the news if it was read.

        The calendar is None if it is too large to be kept.
        """
        copy = self._copies[kind]
        copy.asked_at = monotonic()
        if copy.asked_at < copy.too_large_until:
            return self._catalogs.read(connection, kind), None, None
        known, news = copy.calendar, None
        try:
            if known is not None and epoch(now - FORGETS) >= copy.since - FORGETS.total_seconds():
                news = read_news(connection, kind, copy.positions, copy.asked_at)
            versions = read_versions(connection, kind) if news is None else news.versions
            catalog = self._catalogs.read(connection, kind, versions)
            kept = None if known is None or news is None else self._follow(connection, kind, copy, known, news, now)
            if kept is None:
                copy.noted.clear()
                copy.positions = read_positions(connection, copy.asked_at)
                copy.since, copy.read_at = epoch(now - FORGETS), copy.asked_at
                kept = read_all(connection, kind, copy.since)
            is_same, copy.calendar, copy.versions = kept is copy.calendar, kept, versions
        except BaseException:
            # Positions may be ahead of what was read.
            copy.drop()
            raise
        return catalog, kept if is_same else self._make_room(copy, kept), news

    def _follow(
        self,
        connection: Connection,
        kind: ResourceKind,
        copy: _Copy,
        kept: KeptCalendar,
        news: CalendarNews,
        now: datetime,
    ) -> KeptCalendar | None:
        """Return the calendar with what has changed; None if it has to be read as a whole."""
        if news.changed is None:
            return None
        since, versions = epoch(now - FORGETS), news.versions
        if not news.changed and not copy.doubted and versions == copy.versions:
            copy.since, copy.others_write = max(copy.since, since), False
            return kept
        mine = take_bookings(kept, news.changed, copy.noted)
        again = news.changed.keys() - mine.keys()
        while copy.doubted:
            again |= {copy.doubted.pop()} & kept.resources.keys()
        closed = None
        if versions != copy.versions:
            closed = read_closed(connection, kind, copy.since)
            generations = read_live_generations(connection, kind)
            known = {**kept.resources, **mine}
            again.update(
                id_ for id_, found in generations.items() if id_ not in known or known[id_].generation != found
            )
        if len(again) * WORTH_FOLLOWING > len(kept.resources) + 100:
            return None
        copy.since, copy.others_write = max(copy.since, since), bool(again)
        return kept.replace({**mine, **read_resources(connection, kind, again, copy.since)}, closed)

    def _make_room(self, copy: _Copy, kept: KeptCalendar) -> KeptCalendar | None:
        """Drop the calendars that were not asked for the longest, until the rest is few enough; None if this is not."""
        if kept.size > self._most:
            copy.drop()
            copy.too_large_until = copy.asked_at + FORGETS.total_seconds() / 6
            return None
        with self._lock:
            copies = list(self._copies.values())
        sizes = [(other.asked_at, found.size, other) for other in copies if (found := other.calendar) is not None]
        total = sum([size for _, size, _ in sizes])
        if total > self._most:
            # The thread that is at work on one puts it back, and makes room then.
            for _, size, other in sorted(sizes, key=itemgetter(0)):
                if other is not copy and total > self._most:
                    total -= size
                    other.drop()
        return kept


def _is_quiet(copy: _Copy, now: datetime) -> bool:
    """Return whether nothing but what this process has booked is likely to have changed."""
    if copy.calendar is None or copy.doubted or copy.others_write:
        return False
    return epoch(now - FORGETS) >= copy.since - FORGETS.total_seconds()
