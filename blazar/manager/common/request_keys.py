# SPDX-License-Identifier: Apache-2.0
"""The keys of requests: what is asked for is done once for each, and forgotten when nobody sends it again.

With the keys the histories of past leases, old entries of the journal and notes of changes of the calendar are
forgotten, which would grow without end, too. What was forgotten meanwhile, as secrets of leases that are over, is
written over in the files of standalone mode.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import BlazarError, Conflict, FaultPlace
from blazar.model.leases.requests import IdempotencyKey, KeyRecord
from blazar.store.work.idempotency import KeyTaken

LOG = logging.getLogger(__name__)

Done = TypeVar("Done")

PAUSE_SECONDS = 600.0
PORTION = 1000
"""Keys that one transaction forgets."""
CHANGES_KEPT = timedelta(hours=6)
"""How long changes of the calendar are kept: a manager that was paused for longer reads it as a whole."""
LEASES = 200
"""Leases whose history one transaction forgets."""


def do_once(
    key: IdempotencyKey | None,
    find: Callable[[IdempotencyKey], Done | None],
    act: Callable[[], Done],
    *,
    maybe_done: tuple[type[BlazarError], ...] = (),
) -> Done:
    """Return what was done with a key before, or else do it.

    ``maybe_done`` are errors that the same request meets, too, once another one with its key has been faster.
    """
    if key is not None and (known := find(key)) is not None:
        return known
    faster: tuple[type[BlazarError], ...] = (KeyTaken, *maybe_done)
    try:
        return act()
    except faster:
        # What the other request did may be gone again by now.
        if key is None or (known := find(key)) is None:
            raise
        return known


def find_record(runtime: Runtime, key: IdempotencyKey, what: str) -> KeyRecord | None:
    """Return the record of a key; None if nothing was made with it. Conflict if it came with another request."""
    record = runtime.store.idempotency.find(key)
    if record is not None and record.fingerprint != key.fingerprint:
        raise refuse_key(f"Idempotency-Key was sent before with another request; use a new key for each {what}")
    return record


def refuse_key(sentence: str, *, code: str = "idempotency_key_reused") -> Conflict:
    """Return the error for a request whose key cannot be used for it, or not now."""
    return Conflict(sentence, code=code, at=FaultPlace("Idempotency-Key", "header"))


class KeyExpiry(BackgroundThread):
    """Forgets old keys and histories in portions. Any number of managers may do so."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(
            "forgetting",
            work="Old keys of requests, and histories of past leases, cannot be forgotten",
            retry=PAUSE_SECONDS,
            first_pause=60,
        )
        self._store = runtime.store
        self._keys = runtime.store.idempotency
        self._history = runtime.store.history
        self._clock = runtime.clock
        self._retention = runtime.settings.idempotency_retention
        self._journal = runtime.store.journal
        self._kept = runtime.settings.past_history
        self._journal_time = runtime.settings.keep_journal

    def run_once(self) -> int:
        """Forget what is old; return how many keys, histories of leases, and entries, that were.

        What is kept of the calendar is read again now and then, too.
        """
        keys = self._in_portions(lambda: self._keys.purge(self._clock.now() - self._retention, PORTION), PORTION)
        before = self._clock.now() - CHANGES_KEPT
        self._in_portions(lambda: self._store.kept_calendars.forget_changes(before, PORTION), PORTION)
        self._store.kept_calendars.renew(self._clock.now())
        histories = self._forget_histories()
        entries = self._forget_entries()
        if not self._store.overwrite_deleted():
            LOG.debug("What was forgotten stays in the log of the database until nobody reads it")
        return keys + histories + entries

    def _forget_histories(self) -> int:
        keep, total = self._kept, 0
        if keep is None:
            return 0
        now = self._clock.now()
        for project_id in self._history.find_crowded_projects(keep, now=now):
            total += self._in_portions(partial(self._history.forget_entries, project_id, keep, LEASES, now=now), LEASES)
        return total

    def _forget_entries(self) -> int:
        """Forget what was done to all but leases when it is old enough; return how many entries that were."""
        if self._journal_time is None:
            return 0
        before = self._clock.now() - self._journal_time
        return self._in_portions(lambda: self._journal.forget(before, PORTION), PORTION)

    def _in_portions(self, forget: Callable[[], int], portion: int) -> int:
        total = 0
        while not self._stopping.is_set():
            gone = forget()
            total += gone
            if gone < portion:
                break
        return total

    def _round(self) -> float:
        self.run_once()
        return PAUSE_SECONDS
