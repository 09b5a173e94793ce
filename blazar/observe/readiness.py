# SPDX-License-Identifier: Apache-2.0
"""Whether a process can do its work, for load balancers and people; and whether it is stuck, for supervisors.

Checks look at what the process needs, in a thread of their own, and what they found is remembered: who asks causes no
call. A process is stuck if its own threads do not get on, successfully or not: what others lack, no restart mends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from blazar.model.base.clock import monotonic, zulu_or_none
from blazar.model.base.errors import BlazarError
from blazar.model.base.log_lines import printable
from blazar.model.base.values import dataclass, replace

INTERVAL = 10.0
"""Seconds between two looks, once everything was reached."""
FIRST_INTERVAL = 1.0
"""Seconds between two looks before that."""
LIMIT = 3.0
"""Seconds that one look may take."""
TURN_LIMIT = 120.0
"""Seconds without a turn after which a thread is stuck: more than a call to a database that no longer answers takes."""

DRAINING = "it is draining, and takes no more requests from here"
LONGEST = 300
"""Characters of an error that are shown."""


@dataclass(frozen=True, slots=True)
class Check:
    """Looks at one thing that a process needs: raises what it finds wrong."""

    name: str
    look: Callable[[], object]


@dataclass(frozen=True, slots=True)
class CheckState:
    """What a check found last: ``error`` is None if all is well, and has been so ``since`` an instant.

    ``has_worked``: all was well at least once since the process started.
    """

    name: str
    error: str | None = "it was not looked at yet"
    since: datetime | None = None
    checked_at: datetime | None = None
    milliseconds: int | None = None
    has_worked: bool = False

    def render(self) -> Mapping[str, Any]:
        """Return the state as JSON has it."""
        return {
            "name": self.name,
            "status": "ok" if self.error is None else "failing",
            "since": zulu_or_none(self.since),
            "checked_at": zulu_or_none(self.checked_at),
            "ms": self.milliseconds,
            "error": self.error,
        }


class Readiness:
    """The checks of a process. ``start`` may be called more than once, and by any thread."""

    def __init__(
        self, checks: Sequence[Check], *, limit: float = LIMIT, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._checks = tuple(checks)
        self._limit = limit
        self._now = now
        self._lock = threading.Lock()
        self._states = {check.name: CheckState(check.name) for check in checks}
        self._looking: dict[str, threading.Thread] = {}
        self._is_draining = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look from now on, in a thread."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="readiness", daemon=True)
                self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def begin_drain(self) -> None:
        """Tell load balancers from now on to send nothing more."""
        self._is_draining = True

    def list_states(self) -> tuple[CheckState, ...]:
        """Return what was found last of each."""
        return tuple(self._states.values())

    def list_failures(self) -> tuple[str, ...]:
        """Return a sentence about each that does not work now, and that the process drains if it does."""
        failing = [f"{state.name}: {state.error}" for state in self.list_states() if state.error is not None]
        return (*((DRAINING,) if self._is_draining else ()), *failing)

    def explain_refusal(self) -> str | None:
        """Return why a load balancer should send nothing; None if it may.

        What has worked once does not count any more: a shared service that fails must not take all processes out.
        """
        if self._is_draining:
            return DRAINING
        missing = [f"{state.name}: {state.error}" for state in self.list_states() if not state.has_worked]
        return "; ".join(missing) or None

    def answer_balancer(self) -> str | None:
        """Return the same, and look from now on: a WSGI server may fork before anybody asks."""
        self.start()
        return self.explain_refusal()

    def look_at_all(self) -> None:
        """Look at each thing once, one after the other."""
        for check in self._checks:
            begun_at = monotonic()
            error = self._look_at(check)
            now, old = self._now(), self._states[check.name]
            known_since = old.since if old.checked_at is not None and (old.error is None) == (error is None) else now
            self._states[check.name] = replace(
                old,
                error=error,
                since=known_since,
                checked_at=now,
                milliseconds=round(1000 * (monotonic() - begun_at)),
                has_worked=old.has_worked or error is None,
            )

    def _look_at(self, check: Check) -> str | None:
        """Return what is wrong, None if nothing is; what does not answer in time is not asked once more meanwhile."""
        outcome: list[str | None] = []

        def look() -> None:
            try:
                check.look()
                outcome.append(None)
            except Exception as error:
                # The edge of a thread: whatever it is, it is the error of the check.
                outcome.append(describe_error(error))

        earlier = self._looking.get(check.name)
        if earlier is not None and earlier.is_alive():
            return f"there was no answer within {self._limit:g} s, and there still is none"
        looking = threading.Thread(target=look, name=f"check-{check.name}", daemon=True)
        self._looking[check.name] = looking
        looking.start()
        looking.join(self._limit)
        return outcome[0] if outcome else f"there was no answer within {self._limit:g} s"

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.look_at_all()
            is_known = all(state.has_worked for state in self.list_states())
            self._stopping.wait(INTERVAL if is_known else FIRST_INTERVAL)


class Liveness:
    """Whether threads get on. ``turning`` tells of each for how many seconds it has been in its present turn."""

    def __init__(self, turning: Mapping[str, Callable[[], float]], *, limit: float = TURN_LIMIT) -> None:
        self._turning = dict(turning)
        self._limit = limit

    def list_stuck(self) -> tuple[str, ...]:
        """Return a sentence about each thread that is stuck; empty while the process lives."""
        seconds = {name: measure() for name, measure in self._turning.items()}
        return tuple(
            f"{name} has been in one turn for {lasted:.0f} s"
            for name, lasted in seconds.items()
            if lasted > self._limit
        )


def describe_error(error: Exception) -> str:
    """Return one line on what is wrong."""
    text = error.message if isinstance(error, BlazarError) else f"{type(error).__name__}: {error}"
    return printable(" ".join(text.split()), LONGEST)
