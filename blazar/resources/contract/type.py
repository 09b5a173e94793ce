# SPDX-License-Identifier: Apache-2.0
"""What a resource type does: a class whose methods are the defaults, with a base for each group of abilities."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from blazar.clouds.ports.projects import Quota, Quotas
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import NO_CONTENT, Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import Anything, Requirement, property_keys
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.resources.contract.evacuation import Evacuates, Lends, MovesServers, Preempts
from blazar.resources.contract.plugin import Plugin, check_members, defines
from blazar.resources.contract.probes import ReportsUse
from blazar.resources.contract.values import Action, Child, Done, Given, Progress, Rank, Reference, Task

Needs = Mapping[Quota, int]
"""How much of each quota is needed."""


class ReadsRequests:
    """What a type makes of the parameters of requests. By default they can be sent back, and not changed."""

    resource_type: str
    """The name in the API, as ``physical:host``."""
    kind: ResourceKind
    """The kind of resource that reservations of this type take; the API lists it with that."""
    schema: Json | None = None
    """The JSON schema of the parameters of a request; ``contract.schemas`` has parts of it. Without it forms and
    ``/v1/resources`` do not show what a request may have."""
    unique: str | None = None
    """The parameter with a name that a project can have only once at a time: leases that overlap are refused the same.
    It is null where the type makes a name of its own."""

    def parameters(self, given: Given) -> Content:
        """Return the parameters of a new reservation, checked and completed; InvalidInput names the field.

        ``given`` is resolved.
        """
        raise NotImplementedError

    def masked(self, given: Json) -> Json:
        """Return the parameters of a request as anybody may see them, by default all of them; InvalidInput.

        What this leaves out or replaces is a secret: it is kept apart (``blazar.model.leases.secrets``) for as long as
        a start may need it.
        """
        return given

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the parameters of a request, completed with data from the cloud (as the flavor of an id).

        Called before anything is read or booked, so that it may take long; ``reservation`` is the one to change,
        None for a new one. NotFound and InvalidInput name the field. By default they are taken as they are.
        """
        return given

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a resource must have; by default nothing."""
        return Anything()

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return which others of the lease are named by what ``parameters`` or ``changed`` returned; by default none.

        A reservation starts when all that it refers to are active, and ends before them; it fails if one of them fails.
        Those of a new reservation have the index that the request gives, until the manager puts ids in their place.
        """
        return ()

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return what a new reservation is made of, at least one, in the order in which tasks have them.

        A type has this or ``demand``: such reservations take no resources themselves. What they are made of is booked
        with them, starts before them and ends after them. Only their dates change.
        """
        return ()

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation demands of the calendar, for a type without ``children``.

        ``known`` are the properties that some resource has; a requirement on any other raises InvalidInput.
        """
        raise TypeError(f"{self.resource_type} takes no resources itself: ask for the demand of its children")

    def changed(self, current: Content, change: Given) -> Content:
        """Return the parameters after a change, checked; InvalidInput names the field, ResolutionNeeded."""
        for key, value in change.values.items():
            if key in current.values and current.values[key] != value:
                raise InvalidInput(
                    f"{key[:80]} of a {self.resource_type} reservation cannot be changed; make another lease for it",
                    at=f"/{key}",
                )
        return current

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation that holds resources demands after a change; in use it keeps what it has.

        Raises Conflict for what cannot be changed in the reservation's state, and UsageNeeded.
        """
        fresh = self.demand(parameters, known=known)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=frozenset(task.counts))
        count = max(1, sum(task.counts.values()))
        if fresh.whole:
            return replace(fresh, min_count=count, max_count=count, pinned=frozenset(task.counts), required=frozenset())
        return replace(fresh, min_count=count, max_count=count, kept=dict(task.counts))


class NeedsQuotas:
    """What the start needs of the project's quotas in the cloud. By default these are not looked at for a lease."""

    quotas: Quotas | None = None
    """Where the quotas are read."""

    def needs(self, parameters: Content) -> Needs:
        """Return what a reservation needs at least, without what others need that it is made of."""
        return {}

    def needs_as_part(self, parameters: Content) -> Needs:
        """Return what it needs besides if another is made of it, as users of a stack's hosts need cores."""
        return {}


class ListsCloud:
    """What the sweep finds of a type in the cloud; by default nothing.

    ``resources`` are all registered ones of its kind. The number of calls does not depend on that of reservations.
    """

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have anything in the cloud."""
        return frozenset()

    def reservations_in_projects(self, projects: Collection[str]) -> frozenset[str]:
        """Return those that have something in these projects, in a cloud that lists one project at a time."""
        return frozenset()

    def projects_in_cloud(self, resources: Collection[Resource]) -> Mapping[int, frozenset[str]]:
        """Return the projects that can use each resource by what has no mark of a reservation, as a quota, by calendar
        id."""
        return {}


class Operates:
    """What operations on several leases may do with reservations of a type; by default little."""

    has_named_hosts: bool = False
    """Whether its resources are hosts, of which each can be swapped, exchanged or given up by name.

    Such a type has the parameters ``min`` and ``max``, and its ``demand_again`` keeps all that is not ``given_up``."""
    splits_by_time: bool = False
    """Whether a lease can be split at a moment: nothing is made for its whole time. Such parts can be merged again."""

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters of what stays, and of what goes with its resources, when it is split before its start.

        None, as by default, if it cannot be divided: then it goes to another lease as a whole, or not at all.
        """
        return None

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project, as the end of a sentence that begins with its id; empty if
        it can. Reads the cloud.

        ``prepare``, ``start`` and ``restore`` then give what exists already to the project that the lease has now, and
        take it from any other. Whether servers run in the reservation is asked by ``servers_in_use``.
        """
        return f"is of type {task.reservation.resource_type}, which stays with the project that it was made for"


class ResourceType(
    ReadsRequests, NeedsQuotas, ReportsUse, ListsCloud, Operates, Evacuates, MovesServers, Preempts, Lends, Plugin
):
    """A resource type. It has ``demand`` or ``children``, one of the two, and what else it needs not by default.

    ``start``, ``end``, ``prepare``, ``before_end`` and ``restore`` are idempotent: they read the present state and
    change it to the desired one, so that a retry after a crash at any point completes the work. They raise
    ``CloudUnavailable`` (a retry may help) or another ``BlazarError`` (it does not).
    """

    needed = ("resource_type", "kind", "parameters", "start", "end")
    together: ClassVar[tuple[tuple[str, ...], ...]] = (
        ("changed", "demand_again"),
        ("prepare", "must_prepare_again"),
        ("room_limit", "plan_room", "make_room", "moved"),
        ("pace", "load", "move_servers", "stop_moving"),
        ("give_notice", "withdraw_notice"),
        ("kept_from_lending", "list_unused", "lend", "recall", "take_back"),
    )
    rank: Rank = Rank.COMPUTE
    """When its reservations end among those of their lease."""
    reads_history: bool = False
    """Whether tasks need what a reservation had before (``former``, ``turns``): for a cloud that cannot be asked. It
    costs a statement."""
    reads_shares: bool = False
    """Whether tasks need what other reservations of the project have (``shares``): for limits of the cloud that are
    for all of them together."""

    def within(self, region: str) -> ResourceType:
        """Return the type of one region; by default there is one. CloudUnavailable if it is not configured any more."""
        return self

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether a change before the start changes what ``prepare`` creates."""
        return False

    def prepare(self, task: Task) -> Content:
        """Ensure what must exist before the start, by default nothing; return the cloud ids to store."""
        return NO_CONTENT

    def start(self, task: Task) -> Progress:
        """Ensure that the project can use the resources, and no others."""
        raise NotImplementedError

    def action(self, parameters: Content) -> Action:
        """Return the action before the end of a reservation; by default the notification."""
        return Action.NOTIFICATION

    def before_end(self, task: Task) -> Progress:
        """Do what the action says besides the notification; by default nothing."""
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that nothing of the reservation is left: use ended, resources returned, cloud objects deleted.

        It is called for reservations that never started, too.
        """
        raise NotImplementedError

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Undo a failed change: ensure the reservation as in ``task``, and that the ``surplus`` resources are returned.

        By default that is a start with the resources from before. What cannot be undone must not be done before: a
        ``start`` whose task is ``undoable`` leaves it, returns ``Done(left=…)``, and is called again when the change is
        final.
        """
        return self.start(task) if task.reservation.status is ReservationStatus.ACTIVE else Done()


def check_form(plugin: ResourceType | type[ResourceType]) -> None:
    """Raise InvalidInput unless a type, or its class, has what is needed, and takes resources or is made of others."""
    check_members(plugin)
    has = plugin.has if isinstance(plugin, ResourceType) else partial(defines, plugin)
    takes, expands = has("demand"), has("children")
    if takes == expands:
        found = "both demand and children" if takes else "neither demand nor children"
        raise InvalidInput(f"it has {found}: a type takes resources itself, or is made of others")
    if expands and has("demand_again"):
        raise InvalidInput("it has children and demand_again: what is made of others changes in its dates only")


def required_properties(types: Mapping[str, ResourceType], reservation: Reservation) -> frozenset[str]:
    """Return the properties that a reservation's requirement names; none if its type is no longer enabled."""
    kind = types.get(reservation.resource_type)
    return frozenset() if kind is None else property_keys(kind.requirement(reservation.parameters))
