# SPDX-License-Identifier: Apache-2.0
"""What a resource type may have that can move servers of others away, for leases of the kind ``best_effort``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol, runtime_checkable

from blazar.calendar.evacuation.values import Evacuation, NotEnough
from blazar.model.resource import Resource
from blazar.resources.base import Progress, Task


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What leases have or could have besides: where servers must not be moved to, and what else is being emptied.

    Hosts ``avoided``, and those to be used ``last``, by hostname. What is on the ``emptied`` hosts needs room, too.
    """

    avoided: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    emptied: tuple[Resource, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedServer:
    """A server of somebody that was moved away, ``live`` or while it was shut off, and when that was done."""

    id: str
    project_id: str
    user_id: str
    live: bool
    moved_at: datetime


@runtime_checkable
class MakesRoom(Protocol):
    """A type whose resources can be emptied of what others have there. Without it they are free, or they are not."""

    @property
    def room_limit(self) -> timedelta:
        """Return how long it may take to make room."""

    def plan_room(self, resources: Collection[Resource], needed: int, elsewhere: Elsewhere) -> Evacuation | NotEnough:
        """Return how so many of these resources are emptied, or why that cannot be. Nothing is changed."""

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that what the reservation has is empty. Its ``end`` undoes what is left of that, too."""

    def moved(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers that were moved off what the reservation has, or had, since the lease was made."""
