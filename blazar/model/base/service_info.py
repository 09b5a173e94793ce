# SPDX-License-Identifier: Apache-2.0
"""What clients cannot know of the service otherwise."""

from __future__ import annotations

from datetime import datetime, timedelta

from blazar.model.base.values import dataclass


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """The most that a request may ask for; and the most that a user may have of what is read.

    A range of the calendar is at most ``longest_range``, begins at most ``back`` ago (for members ``back_of_members``),
    and ends at most ``ahead`` from now. Capacity has at most ``points`` in all ``groups``. Of the properties of
    resources, and of the values of each, the list shows no more than ``properties`` and ``property_values``.
    A user has at most ``feeds_of_user``, in all projects together.
    """

    longest_range: timedelta = timedelta(days=366)
    back: timedelta = timedelta(days=366)
    back_of_members: timedelta = timedelta(days=31)
    ahead: timedelta = timedelta(days=5 * 365 + 2)
    points: int = 100_000
    groups: int = 100
    properties: int = 200
    property_values: int = 100
    feeds_of_user: int = 20

    def back_for(self, *, operator: bool) -> timedelta:
        """Return how long ago a range may begin."""
        return self.back if operator else min(self.back, self.back_of_members)


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
    ``search_range`` is the longest range of a search for free time, ``confirm_within`` the longest time for which a
    lease may be unconfirmed.
    ``limits`` are those that are configured for all projects. ``reads`` bounds what a request may read, and
    ``idempotency`` is how long the keys of requests are remembered. ``channels`` are the ways by which subscribers are
    told, by their names.
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
    channels: tuple[str, ...] = ()
    confirm_within: timedelta = timedelta(0)
