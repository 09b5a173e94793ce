# SPDX-License-Identifier: Apache-2.0
"""What clients cannot know of the service otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from blazar.model.reading import ReadBounds


@dataclass(frozen=True, slots=True)
class StatedLimit:
    """A limit on the leases of a project, by the name that refusals use: ``value`` in ``unit``, as ``seconds``."""

    limit: str
    value: int
    unit: str


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """Facts about a service: ``now`` is its clock, ``resource_types`` are those of which reservations can be made.

    ``before_end`` is the action where a reservation names none, ``lead`` the time before the end at which it is done.
    ``search_range`` is the longest range of a search for free time.
    ``limits`` are those that are configured for all projects. ``reads`` bounds what a request may read, and
    ``idempotency`` is how long the keys of requests are remembered.
    """

    now: datetime
    resource_types: tuple[str, ...]
    before_end: str
    lead: timedelta
    cleaning: timedelta
    search_range: timedelta
    limits: tuple[StatedLimit, ...] = ()
    reads: ReadBounds = ReadBounds()
    idempotency: timedelta = timedelta(hours=24)
