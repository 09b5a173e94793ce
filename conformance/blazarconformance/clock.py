# SPDX-License-Identifier: Apache-2.0
"""A clock that stands still."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NOON = datetime(2030, 4, 1, 12, 0, tzinfo=UTC)


@dataclass(slots=True)
class ManualClock:
    """Time passes when the test says so."""

    instant: datetime = NOON

    def now(self) -> datetime:
        """Return the instant at which the clock stands."""
        return self.instant

    def elapsed(self) -> float:
        """Return the seconds since noon."""
        return (self.instant - NOON).total_seconds()

    def synchronize(self) -> None:
        """Do nothing: there is no other clock."""

    def offset(self) -> timedelta:
        """Return zero."""
        return timedelta(0)

    def to(self, instant: datetime) -> None:
        """Let time pass until an instant."""
        self.instant = max(self.instant, instant)

    def by(self, **span: float) -> None:
        """Let a span pass, as ``minutes=5``."""
        self.instant += timedelta(**span)
