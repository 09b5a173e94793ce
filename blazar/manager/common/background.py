# SPDX-License-Identifier: Apache-2.0
"""Background threads of a manager: rounds of work with pauses between them, and the signals that end a pause."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta

from blazar.model.base.clock import monotonic
from blazar.model.base.errors import BlazarError
from blazar.model.base.log_lines import Trouble, log_level, printable
from blazar.model.base.values import dataclass, field
from blazar.model.managers.presence import ThreadFacts
from blazar.observe import metrics

LOG = logging.getLogger("blazar.manager")


LONGEST_ERROR = 200
"""Characters that are told of why the rounds of a thread fail."""


@dataclass(slots=True)
class Rounds:
    """What the rounds of a thread have come to, by the seconds of ``monotonic``. One thread writes, any may read."""

    begun_at: float | None = None
    ended_at: float | None = None
    failing_since: float | None = None
    error: str | None = None

    def begin(self) -> None:
        """Note that a round begins."""
        self.begun_at = monotonic()

    def end(self, error: Exception | None) -> None:
        """Note that a round has ended, and why if it failed."""
        self.begun_at, self.ended_at = None, monotonic()
        if error is None:
            self.failing_since = self.error = None
            return
        sentence = error.message if isinstance(error, BlazarError) else f"{type(error).__name__}: {error}"
        self.error = printable(sentence, LONGEST_ERROR)
        self.failing_since = self.failing_since or self.ended_at

    def seconds_in_round(self) -> float:
        """Return for how long a round lasts by now; 0 between two."""
        begun_at = self.begun_at
        return 0.0 if begun_at is None else monotonic() - begun_at


class BackgroundThread(ABC):
    """Does rounds in a thread of its own until it is stopped; ``wake`` cuts the pause between two short.

    ``first_pause`` are the seconds before the first round, ``settle`` those between a wake and the round that follows.
    ``work`` is what fails if a round does, as a sentence, and ``retry`` the seconds until the next round then.
    """

    def __init__(
        self,
        name: str,
        *,
        work: str,
        retry: float = 1.0,
        first_pause: float = 0,
        settle: float = 0,
    ) -> None:
        self._purpose = work
        self._retry = retry
        self.rounds = Rounds()
        self._trouble = Trouble(LOG, f"The thread {name} works")
        self._first_pause = first_pause
        self._settle = settle
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def name(self) -> str:
        """Return the name of the thread."""
        return self._thread.name

    @abstractmethod
    def _round(self) -> float:
        """Do one round; return the seconds until the next one."""

    def _failed(self, error: Exception) -> float:
        """Log the error of a round; return the seconds until the next round."""
        if not isinstance(error, BlazarError):
            self._trouble.log_failure(f"{self._purpose}, retrying in {self._retry:g} s", error)
        elif log_level(error) < logging.ERROR:
            LOG.debug("%s: %s", self._purpose, error.message)
        else:
            self._trouble.log_failure(f"{self._purpose}, retrying in {self._retry:g} s: {error.message}")
        return self._retry

    def describe(self, now: datetime) -> ThreadFacts:
        """Return how the rounds went, in the time of a clock that says it is ``now``."""
        ended_at, failing_since, rounds = self.rounds.ended_at, self.rounds.failing_since, monotonic()
        last = None if ended_at is None else now - timedelta(seconds=rounds - ended_at)
        since = None if failing_since is None else now - timedelta(seconds=rounds - failing_since)
        return ThreadFacts(self._thread.name, last, since, self.rounds.error)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Begin the next round soon; it sees whatever was there before this call."""
        self._woken.set()

    def begin_stop(self) -> None:
        """Begin no more rounds; the one in progress continues."""
        self._stopping.set()
        self._woken.set()

    def stop(self) -> None:
        """Finish the round in progress, and return."""
        self.begin_stop()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        self._pause(self._first_pause)
        while not self._stopping.is_set():
            self.rounds.begin()
            try:
                pause = self._round()
                self._end_round(None)
                self._trouble.log_recovery()
            except Exception as error:
                # The edge of the thread: it survives whatever goes wrong in one round.
                self._end_round(error)
                pause = self._failed(error)
            self._pause(pause)

    def _end_round(self, error: Exception | None) -> None:
        self.rounds.end(error)
        metrics.THREAD_ROUNDS.add(self._thread.name, "ok" if error is None else "failed")
        metrics.THREAD_LAST_ROUND.set_to_now(self._thread.name)

    def _pause(self, seconds: float) -> None:
        if self._woken.wait(seconds):
            # Before the round: a wake during the round is for the next one.
            self._woken.clear()
            self._stopping.wait(self._settle)


class Signal:
    """A call of those whom something concerns: they connect when they are made, and it is sent when that happens."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []

    def connect(self, listener: Callable[[], None]) -> None:
        """Call a listener, too, whenever the signal is sent."""
        self._listeners.append(listener)

    def __call__(self) -> None:
        """Send the signal."""
        for listener in self._listeners:
            listener()


@dataclass(frozen=True, slots=True)
class Signals:
    """The signals between the parts of a manager.

    ``events_due``: a new event may be due before the one that the engine sleeps for. ``resources_freed``: a lease has
    returned some. ``resources_opened``: hosts are back from maintenance. ``work_taken_over``: another manager has left
    work behind, and perhaps something in the cloud. ``messages_written``: there may be a message for filters to send.
    ``entries_numbered``: there are new entries of the journal to read. ``subscriptions_changed``: somebody may
    have to be told.
    """

    events_due: Signal = field(default_factory=Signal)
    resources_freed: Signal = field(default_factory=Signal)
    resources_opened: Signal = field(default_factory=Signal)
    work_taken_over: Signal = field(default_factory=Signal)
    messages_written: Signal = field(default_factory=Signal)
    entries_numbered: Signal = field(default_factory=Signal)
    subscriptions_changed: Signal = field(default_factory=Signal)
