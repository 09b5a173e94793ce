# SPDX-License-Identifier: Apache-2.0
"""The place of a lease on the waiting list, its failed tries, and the stored form of both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from blazar.model.base.clock import later
from blazar.model.base.reasons import ReasonCode
from blazar.model.base.values import dataclass, replace


class TryFailure(StrEnum):
    """Why a try failed for which there were resources.

    ``DENIED``: enforcement denied it. ``OTHERS_FASTER``: every attempt to book them lost a race. ``NOT_PREPARED``:
    what the lease needs before its start could not be made. ``NOT_STARTED``: its start failed.
    """

    DENIED = "denied"
    OTHERS_FASTER = "others_faster"
    NOT_PREPARED = "not_prepared"
    NOT_STARTED = "not_started"


@dataclass(frozen=True, slots=True)
class FailedTry:
    """A try that failed; the ``text`` is for operators, but that of a denial for everybody.

    ``cause`` is why a start failed.
    """

    at: datetime
    why: TryFailure
    text: str
    cause: ReasonCode | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The place of a lease on the waiting list, or the place that it had.

    It asked for resources at ``queued_at``, from ``earliest`` on, and gives up ``until`` then. ``position`` counts from
    1, None before the first plan; ``estimate`` is when it will probably start, None if nothing is known; of a promised
    start, as it was when that last changed. ``reason`` is why no waiting helps as things are. ``tries`` is how many
    tries may fail, None if they are not counted, and ``failed`` are those that did. ``advance``: it is booked at a
    start that was promised, and that becomes earlier if possible. It starts no later than ``latest``, None if any start
    will do. If ``shortest`` is given, that is how long it has to be at least, and ``longest`` how long it was asked
    for: it gets as much of that as fits. ``max_price`` is the most that it may cost, a decimal; None: any price.
    """

    queued_at: datetime
    until: datetime
    earliest: datetime
    position: int | None = None
    estimate: datetime | None = None
    reason: str | None = None
    tries: int | None = None
    failed: tuple[FailedTry, ...] = ()
    advance: bool = False
    latest: datetime | None = None
    shortest: timedelta | None = None
    longest: timedelta | None = None
    max_price: str | None = None

    @property
    def gives_up_at(self) -> datetime:
        """Return when it gives up: after that no start is of use to it."""
        return self.until if self.latest is None else min(self.until, later(self.latest, timedelta(seconds=1)))

    @property
    def is_spent(self) -> bool:
        """Tell whether it has no try left."""
        return self.tries is not None and len(self.failed) >= self.tries


def terms_json(wait: Wait) -> dict[str, Any] | None:
    """Return what is stored beside the columns of a wait; None for nothing."""
    stored: dict[str, Any] = {}
    if wait.tries is not None:
        stored["tries"] = wait.tries
    if wait.failed:
        stored["failed"] = [
            [t.at.isoformat(), str(t.why), t.text, None if t.cause is None else str(t.cause)] for t in wait.failed
        ]
    if wait.advance:
        stored["advance"] = True
    if wait.latest is not None:
        stored["latest"] = wait.latest.isoformat()
    if wait.shortest is not None and wait.longest is not None:
        stored["length"] = [int(wait.shortest.total_seconds()), int(wait.longest.total_seconds())]
    if wait.max_price is not None:
        stored["max_price"] = wait.max_price
    return stored or None


def with_terms(wait: Wait, stored: Mapping[str, Any] | None) -> Wait:
    """Return a wait with what is stored beside its columns."""
    if not stored:
        return wait
    failed = tuple(
        FailedTry(datetime.fromisoformat(at), TryFailure(why), text, None if cause is None else ReasonCode(cause))
        for at, why, text, cause in stored.get("failed", ())
    )
    latest = stored.get("latest")
    shortest, longest = (timedelta(seconds=s) for s in stored["length"]) if "length" in stored else (None, None)
    return replace(
        wait,
        tries=stored.get("tries"),
        failed=failed,
        advance=bool(stored.get("advance")),
        latest=None if latest is None else datetime.fromisoformat(latest),
        shortest=shortest,
        longest=longest,
        max_price=stored.get("max_price"),
    )
