# SPDX-License-Identifier: Apache-2.0
"""What requests are told while they wait, compared with what came true."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from blazar.calendar.queue.values import HOUR, Waiter

NEAR = 0.2


@dataclass(frozen=True, slots=True)
class Said:
    """What was said ``at`` an instant: when it starts if all leases end as booked, and when it is ``expected`` to.

    Both are None if nothing was known. ``in_time``: that is not too late for the request.
    """

    at: int
    start: int | None
    expected: int | None
    in_time: bool


@dataclass(slots=True)
class Estimates:
    """The judgement of what was said from the instant ``since`` on; those that got their wish at once do not count.

    ``good``: the first ``start`` was within a fifth of the wait. ``good_expected``: the first ``expected`` was.
    ``good_at_half``: what was said last before half of the wait. ``late`` are the hours by which the first ``start``
    was later than what came true, ``late_expected`` those of the first ``expected``, both added up.
    """

    since: int
    said: dict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))
    judged: int = 0
    good: int = 0
    good_at_half: int = 0
    good_expected: int = 0
    begun: int = 0
    late: float = 0.0
    late_expected: float = 0.0

    def says(self, lease_id: str, said: Said) -> None:
        told = self.said[lease_id]
        if not told or (told[-1].start, told[-1].in_time) != (said.start, said.in_time):
            told.append(said)

    def forget(self, lease_id: str) -> None:
        self.said.pop(lease_id, None)

    def judge(self, waiter: Waiter, start: int | None) -> None:
        """Compare what was said with the ``start``; None if it gave up."""
        told = self.said.pop(waiter.lease_id, ())
        if not told or told[0].start is None or told[0].at < self.since:
            return
        first, wish = told[0], max(waiter.earliest, waiter.queued_at)
        if first.start == start == wish:
            return
        half = wish + ((waiter.last_start if start is None else start) - wish) // 2
        at_half = [each for each in told if each.at <= max(half, first.at)][-1]
        self.judged += 1
        self.good += _is_near(first.start, first, start, wish)
        self.good_expected += _is_near(first.expected, first, start, wish)
        self.good_at_half += _is_near(at_half.start, at_half, start, wish)
        if start is not None and first.start is not None and first.expected is not None:
            self.begun += 1
            self.late += (first.start - start) / HOUR
            self.late_expected += (first.expected - start) / HOUR


def _is_near(told: int | None, said: Said, start: int | None, wish: int) -> bool:
    """Return whether what was told came true: the start within a fifth of the wait, or that there will be none."""
    if start is None:
        return not said.in_time
    return told is not None and abs(told - start) <= NEAR * (start - wish)
