# SPDX-License-Identifier: Apache-2.0
"""What a resource type may have that can move servers away, or tells them that they go, and the values of that.

Those of others are moved for leases of the kind ``best_effort``; those of a lease in use itself, before its resources
are in maintenance. Preemptible ones are told.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta

from blazar.calendar.evacuation.values import EvacuationPlan, NotEnough
from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass
from blazar.model.resources.resource import Resource
from blazar.model.use.preemption import PreemptedServer
from blazar.resources.contract.values import Done, Progress, Task


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


class Evacuates:
    """What a type does whose resources can be emptied of what others have there. By default they are free, or not."""

    @property
    def room_limit(self) -> timedelta | None:
        """How long it may take to make room; None if that cannot be."""
        return None

    def plan_room(
        self, resources: Collection[Resource], needed: int, elsewhere: Elsewhere
    ) -> EvacuationPlan | NotEnough:
        """Return how so many of these resources are emptied, or why that cannot be. Nothing is changed."""
        return NotEnough(needed, 0, ())

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that what the reservation has is empty. Its ``end`` undoes what is left of that, too."""
        return Done()

    def moved(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers that were moved off what the reservation has, or had, since the lease was made."""
        return ()


@dataclass(frozen=True, slots=True)
class Pace:
    """How servers of leases in use are moved: from how long before a maintenance window on, and how long at least.

    ``at_once`` is from how many resources servers are moved at a time.
    """

    lead: timedelta
    limit: timedelta
    at_once: int


@dataclass(frozen=True, slots=True)
class Load:
    """What servers of a reservation have of a resource together, and what another one must have for them.

    ``obstacle`` is why they cannot be moved, empty if they can.
    """

    amounts: Amounts = Amounts()
    traits: frozenset[str] = frozenset()
    obstacle: str = ""

    def fits(self, resource: Resource) -> bool:
        """Return whether another resource, when it is free, takes them all."""
        return self.traits <= resource.traits and all(resource.capacity.get(name) >= n for name, n in self.amounts)


class MovesServers:
    """What a type does that moves servers from one resource of a reservation in use to another one of it.

    By default a reservation in use keeps what it has.
    """

    @property
    def pace(self) -> Pace | None:
        """How servers are moved; None if they are not."""
        return None

    def load(self, task: Task, resource: Resource) -> Load:
        """Return what the servers on a resource have together, or why they cannot be moved. Nothing is changed."""
        type_ = task.reservation.resource_type
        return Load(obstacle=f"reservations of the type {type_} keep what they have while in use")

    def move_servers(self, task: Task, source: Resource, target: Resource, since: datetime) -> Progress:
        """Ensure that servers leave a resource for another one of the reservation; Done when none is left.

        Failures before ``since`` do not count.
        """
        return Done()

    def stop_moving(self, task: Task, source: Resource) -> Progress:
        """Ensure that no server moves from a resource any more; Done when none does."""
        return Done()


class Preempts:
    """How servers that have to make way are told before. By default there are none."""

    def give_notice(self, task: Task, ends_at: datetime) -> tuple[PreemptedServer, ...]:
        """Ensure that the servers which the start of a reservation deletes say when that is; return them.

        An image of those whose owners want one is begun. Called several times before a start: more may have come.
        """
        return ()

    def withdraw_notice(self, resource: Resource, reservation_id: str, server_ids: Collection[str]) -> None:
        """Ensure that servers on a resource no longer say when they go, and that it is open to others again.

        A reservation does not start there as it was told. Servers that are gone are no error.
        """


class Lends:
    """How resources of a reservation in use are lent to preemptible servers. By default none are."""

    def kept_from_lending(self, task: Task) -> int | None:
        """Return how many of the unused resources are kept while others are lent; None if none are to be lent."""
        return None

    def advise_lender(self, task: Task) -> str:
        """Return how a lender gets rid of servers of others, as the end of a sentence; empty if nothing is lent."""
        return ""

    def list_unused(self, task: Task) -> frozenset[int]:
        """Return the resources that the reservation does not use, by calendar id; lent ones, too. CloudError."""
        return frozenset()

    def lend(self, task: Task, resources: Collection[Resource]) -> None:
        """Ensure that these resources of a reservation are open to preemptible servers, and no others of it."""

    def recall(self, task: Task, resource: Resource, ends_at: datetime) -> tuple[PreemptedServer, ...]:
        """Ensure that the preemptible servers on a resource that was lent say when they go; return them."""
        return ()

    def take_back(self, task: Task, resource: Resource) -> int:
        """Ensure that the preemptible servers on a resource go; return how many are still there."""
        return 0
