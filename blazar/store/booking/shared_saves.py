# SPDX-License-Identifier: Apache-2.0
"""Saves of leases that several threads want at the same time: written in one transaction, in the statements of one.

Many starts that are due at an instant are claimed, and finished, by as many threads, each with a small write. The first
of them writes at once, and nobody waits for others to come. Those that come while it is at work are written together by
the next one. What each needs of its request, such as who asked for it, is found out in its own thread before that.

A save that others might wait long for, or that may fail, keeps no other from being written: a lease that a transaction
of somebody else has locked is left to its own thread, and so are all if their transaction fails.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.context import may_change
from blazar.model.base.errors import BlazarError, StoreUnavailable
from blazar.model.base.values import dataclass, field, fields
from blazar.model.leases.lease import Lease
from blazar.observe.spans import record_write
from blazar.store.booking import history, lease_writes
from blazar.store.booking.commit import Commit
from blazar.store.booking.lease_writes import LeaseUpdate
from blazar.store.booking.ledger import is_concerned
from blazar.store.journal.rows import insert_rows, make_rows
from blazar.store.sql import state_log
from blazar.store.sql.tables import leases
from blazar.store.sql.transactions import Transactions

LOG = logging.getLogger(__name__)

MOST = 64
"""Saves in one transaction: more would keep the first ones waiting."""


PATIENCE_SECONDS = 0.25
"""Who waits longer for another one's write writes for itself."""

_BESIDES = tuple(f.name for f in fields(Commit) if f.name not in ("leases", "at", "bounds", "more", "turn"))
"""What a commit may write besides one lease."""


@dataclass(slots=True, eq=False)
class _Save:
    """A save, with what its thread waits for: its turn to write for all, or what became of it.

    One that is neither written nor has failed is for its own thread.
    """

    update: LeaseUpdate
    entries: Sequence[Mapping[str, Any]]
    woken: threading.Event = field(default_factory=threading.Event)
    is_taken: bool = False
    is_written: bool = False
    error: BlazarError | None = None


class SharedSaves:
    """Writes saves of leases of several threads together."""

    def __init__(self, transactions: Transactions) -> None:
        self._transactions = transactions
        self._lock = threading.Lock()
        # It guards all that follows.
        self._waiting: deque[_Save] = deque()
        self._writing_since: float | None = None

    def write(self, commit: Commit) -> Lease | None:
        """Write a commit that only saves a lease; return that as saved, None if it is to be written by itself.

        StaleLease, StoreUnavailable.
        """
        update = _find_sole_update(commit)
        if update is None:
            return None
        begin = time.monotonic()
        (write,) = commit.leases
        told = history.list_entries([(write.before, update.after, ())], at=commit.at, by_id={update.after.id: write})
        save = _Save(update, make_rows(told))
        try:
            self._share(save)
        finally:
            may_change()
        if not save.is_written:
            return None
        record_write(begin, time.monotonic())
        if (change := state_log.find_change(update.before, update.after)) is not None:
            state_log.log_changes([change])
        return update.after

    def _share(self, save: _Save) -> None:
        """Have a save written with others, or leave it to its thread."""
        mine = self._queue(save)
        if mine is None:
            return
        if not mine:
            save.woken.wait(PATIENCE_SECONDS)
            mine = self._take_turn(save)
            if not mine:
                if save.error is not None:
                    raise save.error
                return
        try:
            self._write_all(mine)
        finally:
            self._hand_over()
            for other in mine:
                other.woken.set()
        if save.error is not None:
            raise save.error

    def _queue(self, save: _Save) -> Sequence[_Save] | None:
        """Return what a thread is to write now: its own save, or nothing if it has to wait; None: not with others."""
        with self._lock:
            now = time.monotonic()
            if self._writing_since is None:
                self._writing_since, save.is_taken = now, True
                return [save]
            if now - self._writing_since > PATIENCE_SECONDS:
                return None
            self._waiting.append(save)
            return []

    def _take_turn(self, save: _Save) -> Sequence[_Save]:
        """Return the saves that a thread that was woken is to write; none if its own was written, or is not to be."""
        with self._lock:
            if not save.is_taken:
                if not save.woken.is_set():
                    self._waiting.remove(save)
                    return []
                self._writing_since = time.monotonic()
                mine = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                for other in mine:
                    other.is_taken = True
                save.woken.clear()
                return mine
        # It is being written, or was.
        save.woken.wait()
        return []

    def _hand_over(self) -> None:
        """Let the first of those that wait write for all of them, if anybody waits."""
        with self._lock:
            self._writing_since = time.monotonic() if self._waiting else None
            if self._waiting:
                self._waiting[0].woken.set()

    def _write_all(self, saves: Sequence[_Save]) -> None:
        """Write saves, and note with each what became of it."""
        try:
            written = self._transactions.write(lambda connection: _write_together(connection, saves))
        except BlazarError as error:
            if len(saves) == 1 or isinstance(error, StoreUnavailable):
                # If it is not known whether they were written, none is written again.
                for save in saves:
                    save.error = error
            else:
                LOG.debug("%d saves cannot be written together, but one by one: %s", len(saves), error.message)
        else:
            for save in written:
                save.is_written = True


def _find_sole_update(commit: Commit) -> LeaseUpdate | None:
    """Return the update of a lease, if a commit does nothing else that matters."""
    if len(commit.leases) != 1 or commit.turn is not None or any(getattr(commit, name) for name in _BESIDES):
        return None
    (write,) = commit.leases
    if write.before is None or not write.keeps or is_concerned(write, commit):
        return None
    update = lease_writes.find_update(write, commit.at)
    return update if update.is_complete else None


def _write_together(connection: Connection, saves: Sequence[_Save]) -> Sequence[_Save]:
    """Write those saves whose leases nobody else has locked, and that are as they were read; return which.

    StaleLease if there is only one, and it is not.
    """
    fresh = saves if len(saves) == 1 else _lock_fresh(connection, saves)
    if fresh:
        lease_writes.write_updates(connection, [save.update for save in fresh])
        insert_rows(connection, [row for save in fresh for row in save.entries])
    return fresh


def _lock_fresh(connection: Connection, saves: Sequence[_Save]) -> Sequence[_Save]:
    """Lock the leases of saves, of which each has one; return the saves of those that are as they were read."""
    by_id = {save.update.before.id: save for save in saves}
    query = sa.select(leases.c.id, leases.c.revision).where(leases.c.id.in_(sorted(by_id)))
    found = connection.execute(query.with_for_update(skip_locked=True)).all()
    known = {id_ for id_, revision in found if revision == by_id[id_].update.before.revision}
    # In the order of ids, as other managers write them.
    return [by_id[id_] for id_ in sorted(known)]
