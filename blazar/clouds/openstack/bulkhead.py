# SPDX-License-Identifier: Apache-2.0
"""Keeps calls that wait for services of a cloud from taking the last threads that do a kind of work.

A breaker knows that a service does not answer only when some calls have been waited for in vain, and a call that was
sent cannot be taken back. So it is decided before each call whether there is a thread for it, however many services
and regions may be about to hang.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, cast

from blazar.context import Pool, current
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.values import dataclass, field


class CallTarget(NamedTuple):
    """What a call goes to."""

    region: str
    service: str


@dataclass(frozen=True, slots=True)
class ThreadLimits:
    """How many of ``threads`` are ``kept`` for work without calls, and are each region's ``own``.

    A region has the others, ``common``, together with all others; a service that may hang gets ``first`` at most.
    """

    threads: int
    kept: int
    own: int
    common: int
    first: int

    @classmethod
    def of(cls, pool: Pool) -> ThreadLimits:
        """Return those of a pool; one with fewer threads than regions cannot keep one for each."""
        threads, regions = pool.threads, max(1, pool.regions)
        kept = min(threads - 1, max(1, threads // 8))
        calls = threads - kept
        own = calls if regions == 1 else max(1, calls // (2 * regions))
        common = max(0, calls - regions * own)
        return cls(threads, kept, own, common, max(1, threads // (2 if regions == 1 else 4)))

    @property
    def of_region(self) -> int:
        """The most threads that wait in one region."""
        return self.own + self.common

    @property
    def of_service(self) -> int:
        """The most threads that wait for one service of a region, so that its other services have some."""
        return max(1, self.of_region - max(1, self.of_region // 8))


def has_room(limits: ThreadLimits, calls: Mapping[CallTarget, int], target: CallTarget, *, proven: bool) -> bool:
    """Return whether one more call may be made beside those in progress; ``proven`` if its service answers."""
    most = limits.of_service if proven else min(limits.first, limits.of_service)
    if calls.get(target, 0) >= most:
        return False
    by_region: dict[str, int] = {}
    for call, count in calls.items():
        by_region[call.region] = by_region.get(call.region, 0) + count
    if sum(by_region.values()) >= limits.threads - limits.kept:
        return False
    if by_region.get(target.region, 0) < limits.own:
        return True
    return sum(max(0, count - limits.own) for count in by_region.values()) < limits.common


LONGEST_WAIT = 60.0
"""Seconds after which a call that waits looks again, though nothing has changed."""


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A call that waits for a place."""

    bulkhead: Bulkhead
    came: float

    def patience(self, pool: Pool, now: float) -> float:
        """Return for how many seconds it is not refused; 0 or less if it may be."""
        return pool.patience - (now - self.bulkhead.waited_since(pool, self.came))


@dataclass(slots=True)
class _Seen:
    """What calls of one pool have seen of a service: since when some of them are in progress without a break."""

    calls: int = 0
    busy_since: float = field(default=float("inf"))


class Bulkhead:
    """Finds a place for each call to one service of a region among the threads of the pool that makes it.

    * Of the threads of a pool, some are kept for work that calls nothing, and some for each region; calls take the
      others as they come. A service that has not answered within the patience of the pool gets few of them at first.
    * A call that finds no place waits for one, those that came first have the first. Waiting takes a thread, too, but
      one that can be had back: when the threads that are kept become busy, those that came last are refused, unless
      they have waited for less than the patience. If the service is silent for longer than that, at once.

    Safe to use from several threads.
    """

    def __init__(self, name: str, region: str = "", *, clock: Callable[[], float] = monotonic) -> None:
        self._name = name
        self.target = CallTarget(region, name)
        self._clock = clock
        self._answered_at = float("-inf")
        self._seen: dict[str, _Seen] = {}

    @contextmanager
    def admit_call(self) -> Iterator[None]:
        """Make a call within this. CloudUnavailable, and no call, if too many wait. Without a pool: no bound."""
        pool = current().pool
        if pool is None:
            yield
            return
        self._enter(pool)
        try:
            yield
        finally:
            self._leave(pool)

    def note_answer(self) -> None:
        """Note that the service has answered a call."""
        self._answered_at = self._clock()

    def is_proven(self, pool: Pool, now: float) -> bool:
        """Return whether the service has answered of late."""
        return now - self._answered_at <= pool.patience

    def _enter(self, pool: Pool) -> None:
        crowd, me = pool.crowd, _Waiting(self, self._clock())
        with crowd.changed:
            crowd.leaves(soon=False)
            crowd.line.append(me)
            try:
                while (wait := self._wait(pool, me)) > 0:
                    crowd.changed.wait(wait)
                crowd.calls[self.target] += 1
                seen = self._seen.setdefault(pool.name, _Seen())
                if not seen.calls:
                    seen.busy_since = self._clock()
                seen.calls += 1
            finally:
                crowd.line.remove(me)
                # Those behind move up.
                crowd.changed.notify_all()

    def _leave(self, pool: Pool) -> None:
        crowd = pool.crowd
        with crowd.changed:
            crowd.calls[self.target] -= 1
            self._seen[pool.name].calls -= 1
            crowd.changed.notify_all()

    def _wait(self, pool: Pool, me: _Waiting) -> float:
        """Return for how many seconds to wait before looking again; 0 if there is a place. CloudUnavailable."""
        left = current().remaining()
        if left is not None and left <= 0:
            raise CloudUnavailable(f"{self._name} took too long; the time for this request is over")
        now, crowd = self._clock(), pool.crowd
        line = cast(list[_Waiting], crowd.line)
        if _is_next(pool, line, me, now):
            return 0.0
        patience = me.patience(pool, now)
        if patience <= 0:
            limits = ThreadLimits.of(pool)
            behind = sum(waiting.patience(pool, now) <= 0 for waiting in line[line.index(me) + 1 :])
            if behind < crowd.busy - (limits.threads - limits.kept):
                crowd.leaves(soon=True)
                calls = crowd.calls[self.target]
                raise CloudUnavailable(f"{self._name} answers too slowly: {calls} calls wait for it, and no more may")
        wait = patience if patience > 0 else LONGEST_WAIT
        return wait if left is None else min(wait, left)

    def waited_since(self, pool: Pool, came: float) -> float:
        """Return since when a call that came at ``came`` waits, or those before it are waited for in vain."""
        seen = self._seen.get(pool.name)
        if seen is None or not seen.calls:
            return came
        return min(came, max(self._answered_at, seen.busy_since))


def _is_next(pool: Pool, line: list[_Waiting], me: _Waiting, now: float) -> bool:
    """Return whether there is a place for a call when all that came before it have theirs."""
    calls = Counter(cast(Mapping[CallTarget, int], pool.crowd.calls))
    limits = ThreadLimits.of(pool)
    for waiting in line:
        # One that has no place, as its service hangs, is in nobody's way.
        room = has_room(limits, calls, waiting.bulkhead.target, proven=waiting.bulkhead.is_proven(pool, now))
        if waiting is me:
            return room
        if room:
            calls[waiting.bulkhead.target] += 1
    return False


def has_idle_threads() -> bool:
    """Return whether at least half of the threads of the pool that this one is of are idle."""
    pool = current().pool
    return pool is not None and pool.crowd.busy <= pool.threads // 2
