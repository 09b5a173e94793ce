# SPDX-License-Identifier: Apache-2.0
"""A limit that a request exceeds, as programs read it in ``data`` of a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from blazar.model.errors import UsageDenied

Fits = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A limit by its name, with its ``value`` and what is ``used`` of it besides what is ``requested``.

    All three are in the unit that ``measure`` names: ``seconds``, ``leases``, ``reservations``, or a measure of
    resources such as ``host``; those of a budget are hours of it, rounded up. ``fits`` is what would be granted
    instead, each by itself: an ``amount``, a ``duration_seconds``, other dates (``start_date`` and ``end_date``, one
    alone where only that has to change), or the same at a later time (``retry_at``).
    """

    limit: str
    measure: str
    value: int
    requested: int
    used: int = 0
    fits: Fits = field(default_factory=dict)

    def denied(self, message: str, *, pointer: str | None = None) -> UsageDenied:
        """Return the refusal with this sentence."""
        data = {
            "limit": self.limit,
            "measure": self.measure,
            "value": self.value,
            "used": self.used,
            "requested": self.requested,
            "fits": dict(self.fits),
        }
        return UsageDenied(message, pointer=pointer, data=data)
