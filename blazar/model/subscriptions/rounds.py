# SPDX-License-Identifier: Apache-2.0
"""What follows a round of messages to a receiver: how far it has been told, and when it is told more. Pure.

A receiver that does not answer is called again after longer and longer pauses, at last hourly. One that answers and
refuses a message is asked three times, and then is told the next one. Of one object nothing is told before what
happened to it earlier has been accepted, or given up; other objects do not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from blazar.model.base.values import dataclass, field

BACK_OFF = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800))
HOURLY = timedelta(hours=1)
"""The pauses after the first failures, and after each further one."""

JITTER = 0.1
"""The share by which an hour is longer or shorter, so that receivers that failed together are not called together."""

REFUSALS = 3
BETWEEN_REFUSALS = (timedelta(minutes=1), timedelta(minutes=4))
"""How often a receiver may refuse a message, and the pauses between."""

PATIENCE = timedelta(days=5)
"""How long a receiver may fail before nothing is sent to it any more."""


MORNING = time(8)
"""The local time of a daily digest."""


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message that was not accepted: the place of its entry, its id, type and subject, and the reason."""

    position: int
    id: str
    type: str
    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Round:
    """What has become of the messages of a round, in their order.

    ``accepted`` is how many were. ``refused`` are those that a living receiver does not want; ``held`` is the place of
    the first one that waits behind such a one, or was not sent for want of time. ``failure`` is why the receiver could
    not be reached, and ``after`` when it wants to be called again; nothing was sent after that. ``gone``: it wants no
    message any more. ``through`` is the place up to which entries were read.
    """

    through: int
    accepted: int = 0
    refused: tuple[Undelivered, ...] = ()
    held: int | None = None
    failed: int | None = None
    failure: str | None = None
    after: timedelta | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class ReceiverStanding:
    """How a receiver stands: its place, failures since the last success, and since when it fails.

    ``refusals`` are how often it has refused messages that are still to be told, by their ids.
    """

    position: int
    attempts: int = 0
    refusals: Mapping[str, int] = field(default_factory=dict)
    failing_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What is written after a round.

    ``pause`` is the time until the next round, None: as soon as there is more to tell. ``dead`` are messages that are
    given up. ``disabled``: nothing is sent any more, for the ``reason``. ``delivered``: something was accepted.
    """

    standing: ReceiverStanding
    pause: timedelta | None = None
    dead: tuple[Undelivered, ...] = ()
    reason: str | None = None
    disabled: bool = False
    delivered: bool = False


def decide_round(before: ReceiverStanding, result: Round, *, now: datetime, chance: float) -> Decision:
    """Return what follows a round; ``chance`` is a number from 0 to 1, of which the jitter is made."""
    delivered = result.accepted > 0
    counts = {message.id: before.refusals.get(message.id, 0) + 1 for message in result.refused}
    dead = tuple(message for message in result.refused if counts[message.id] >= REFUSALS)
    waiting = tuple(message for message in result.refused if counts[message.id] < REFUSALS)
    left = min((place for place in (result.held, result.failed, *(m.position for m in waiting)) if place), default=None)
    reason = result.failure or next((message.reason for message in result.refused), None)
    standing = ReceiverStanding(
        position=result.through if left is None else max(before.position, left - 1),
        attempts=0 if result.failure is None else 1 if delivered else before.attempts + 1,
        refusals={message.id: counts[message.id] for message in waiting},
        failing_since=_failing_since(before, result, now),
    )
    since = standing.failing_since
    disabled = result.gone or (since is not None and now - since >= PATIENCE)
    if disabled:
        return Decision(standing, None, dead, reason, disabled=True, delivered=delivered)
    pause: timedelta | None = None
    if result.failure is not None:
        pause = pause_after(standing.attempts, chance=chance, wanted=result.after)
    elif waiting:
        pause = BETWEEN_REFUSALS[counts[waiting[0].id] - 1]
    elif left is not None:
        pause = timedelta(0)
    return Decision(standing, pause, dead, reason, delivered=delivered)


def _failing_since(before: ReceiverStanding, result: Round, now: datetime) -> datetime | None:
    """Return since when nothing has been accepted; None if the last that was sent to a receiver that answers was."""
    if result.failure is None and not result.refused and not result.gone:
        return None
    if result.accepted:
        return None if result.failure is None else now
    return before.failing_since or now


def pause_after(attempts: int, *, chance: float, wanted: timedelta | None = None) -> timedelta:
    """Return how long a receiver is left alone that has failed so often; what it asks for holds within an hour."""
    if wanted is not None:
        return min(HOURLY, max(BACK_OFF[0], wanted))
    if attempts <= len(BACK_OFF):
        return BACK_OFF[attempts - 1]
    return HOURLY * (1 + JITTER * (2 * chance - 1))


def next_digest(after: datetime, zone: str) -> datetime:
    """Return the first morning after an instant, in UTC, by the clocks of a zone."""
    local = ZoneInfo(zone)
    day = after.astimezone(local).date()
    # The day after the next one is late enough wherever a day is left out.
    mornings = (datetime.combine(day + timedelta(days=n), MORNING, local).astimezone(UTC) for n in range(3))
    return next(morning for morning in mornings if morning > after)
