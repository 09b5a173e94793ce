# SPDX-License-Identifier: Apache-2.0
"""The one loop over work that is due: read it, claim each piece, work on it, sleep until the next is due.

The engine of events differs, and has only the thread, the claims and the clock of this: an event waits for the turn of
its project and for a thread of its lane, of which hundreds work at a time, so that reading what is due, claiming it and
working on it are not one after the other; starts are read together; and an event is claimed in one write with its
lease, whose revision stands in for a token, and may be postponed, dropped or refused instead.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import ClassVar, Generic, TypeVar

from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, ClaimLost
from blazar.model.base.log_lines import log_level
from blazar.observe import metrics
from blazar.store.work.claims import TurnStore

LOG = logging.getLogger(__name__)

RARELY = 300.0
"""Seconds until the next look whether there is anything to do where most sites have nothing."""

Due = TypeVar("Due")
Claimed = TypeVar("Claimed")


class DueWork(BackgroundThread, Generic[Due, Claimed]):
    """A thread that works on what is due. Any number of managers may do so at a time: each piece is claimed before.

    ``page`` is how many pieces are read at a time, None for all, ``shortest`` the seconds between two rounds at least,
    and ``idle`` those until the next look if it is not known when there is work; None: as settings have it.
    """

    page: ClassVar[int | None] = None
    shortest: ClassVar[float] = 0.0
    idle: float | None = None

    def __init__(self, name: str, runtime: Runtime, *, work: str, retry: float = 1.0) -> None:
        super().__init__(name, work=work, retry=retry)
        self._runtime = runtime

    @abstractmethod
    def _due(self) -> Iterable[Due]:
        """Return what is due, the longest waiting first; one statement if that is nothing. StoreUnavailable."""

    @abstractmethod
    def _claim(self, due: Due, claim: Claim) -> Claimed | None:
        """Claim a piece of work; None if another manager was faster."""

    @abstractmethod
    def work(self, claimed: Claimed, claim: Claim) -> object:
        """Work on what is claimed, and release it. Its own errors end here."""

    def _next_due(self) -> datetime | None:
        """Return when there is work next; None if that is not known."""
        return None

    def work_on(self, due: Due) -> bool:
        """Claim a piece of work and do it; return False if another manager does. StoreUnavailable."""
        claim = self._runtime.claims.new()
        claimed = self._claim(due, claim)
        metrics.CLAIMS.add("lost_race" if claimed is None else "taken")
        if claimed is None:
            return False
        self.work(claimed, claim)
        return True

    def run_once(self) -> int:
        """Work on what is due, one after the other; return on how many. StoreUnavailable."""
        done = 0
        for due in self._due():
            if self._stopping.is_set():
                break
            done += self.work_on(due)
        return done

    def _round(self) -> float:
        if self.run_once() == self.page:
            return 0
        now, longest = self._runtime.clock.now(), self._runtime.settings.longest_sleep.total_seconds()
        if (due_at := self._next_due()) is None:
            return max(self.shortest, self.idle or longest)
        return max(self.shortest, min(longest, (due_at - now).total_seconds()))


class TurnWork(DueWork[datetime, datetime]):
    """Work that one manager does at a time, in turn with the others. As long as it is not needed nobody has a turn.

    ``every`` is the longest time between two turns. One that is due later than that, and a claim, was written by a
    clock that has gone back since: it is due at once.
    """

    every: ClassVar[timedelta]
    shortest = 1.0

    def __init__(self, name: str, runtime: Runtime, turns: TurnStore, *, work: str, retry: float) -> None:
        super().__init__(name, runtime, work=work, retry=retry)
        self._turns = turns
        self._was_needed = False

    @abstractmethod
    def _is_needed(self) -> bool:
        """Return whether there is anything to do; at most one statement. StoreUnavailable."""

    def _due(self) -> Iterable[datetime]:
        self._was_needed = self._is_needed()
        if not self._was_needed:
            return ()
        now, due_at = self._runtime.clock.now(), self._turns.next_turn()
        # No clock that has not gone back has written a later one; a little does no harm.
        latest = now + self.every + self._runtime.claims.ttl
        if due_at is not None and due_at > latest:
            self._turns.recall_turn(now=now, latest=latest)
            due_at = self._turns.next_turn()
        return (now,) if due_at is None or due_at <= now else ()

    def _next_due(self) -> datetime | None:
        return self._turns.next_turn() if self._was_needed else None

    def _take_turn(
        self, claimed: datetime, claim: Claim, progress: Callable[[datetime, Claim], None], failed: str
    ) -> None:
        """Make progress, and end the turn; a failure is only logged, and tried again in the next one."""
        with self._runtime.claims.held(claim):
            now = to_second(claimed)
            try:
                progress(now, claim)
            except BlazarError as error:
                LOG.log(log_level(error, logging.WARNING), "%s: %s", failed, error.message)
            # One who has lost the claim leaves the next turn to the other manager.
            with suppress(ClaimLost):
                self._turns.release_turn(claim.token, due_at=now + self.every)

    def _claim(self, due: datetime, claim: Claim) -> datetime | None:
        until = self._runtime.claims.begin(claim)
        return due if self._turns.claim_turn(claim.token, now=due, until=until) else None
