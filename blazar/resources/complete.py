# SPDX-License-Identifier: Apache-2.0
"""A resource type with defaults for what it leaves out, so that the rest of the house need not ask."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.evacuation.values import Evacuation, NotEnough
from blazar.clouds.ports import Server
from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput
from blazar.model.lease import NO_CONTENT, Content, Json, Reservation, ReservationStatus
from blazar.model.reasons import Cause
from blazar.model.requirements import Anything, Requirement, keys
from blazar.model.resource import Resource, ResourceKind
from blazar.resources.base import (
    Action,
    Changes,
    Child,
    DescribesParameters,
    Done,
    Expands,
    Given,
    NotYet,
    Progress,
    Rank,
    Ranked,
    Reference,
    Refers,
    Requires,
    Resolves,
    ResourceType,
    TakesResources,
    Task,
    Unusable,
)
from blazar.resources.capabilities import able
from blazar.resources.gone import MadeById, TellsGone
from blazar.resources.in_projects import ListsInProjects
from blazar.resources.making_room import Elsewhere, Load, MakesRoom, MovedServer, MovesServers, Pace
from blazar.resources.masking import masks_secrets
from blazar.resources.named import NamesOnce
from blazar.resources.optional import (
    ChoosesAction,
    Divides,
    KeepsSecrets,
    ListsProjects,
    ListsReservations,
    Prepares,
    ReadsHistory,
    ReadsShares,
    ReportsUse,
    Restores,
    SavesWork,
    Transfers,
)
from blazar.resources.probes import ListsServers, NamesUsers, ProbesUse, States
from blazar.resources.quotas import Needs, NeedsQuota, NeedsQuotaAsPart
from blazar.resources.references import reservation_at
from blazar.resources.schemas import check_schemas


class CompleteType:
    """A resource type with all capabilities; the protocols in ``base`` say what each does."""

    def __init__(self, plain: ResourceType) -> None:
        check_form(plain)
        self.resource_type = plain.resource_type
        self.kind: ResourceKind = plain.kind
        described, ranked, named = able(plain, DescribesParameters), able(plain, Ranked), able(plain, NamesOnce)
        history, shares = able(plain, ReadsHistory), able(plain, ReadsShares)
        self.schema = None if described is None else described.schema
        self.reads_history = history is not None and history.reads_history
        self.reads_shares = shares is not None and shares.reads_shares
        self.rank = Rank.COMPUTE if ranked is None else ranked.rank
        self.unique = None if named is None else named.unique
        self._plain = plain
        self._needs_quota = able(plain, NeedsQuota)
        self._needs_as_part = able(plain, NeedsQuotaAsPart)
        self.quotas = None if self._needs_quota is None else self._needs_quota.quotas
        self._resolves = able(plain, Resolves)
        self.resolves = self._resolves is not None  # Parameters need data from the cloud.
        self._requires = able(plain, Requires)
        self._refers = able(plain, Refers)
        self._takes = able(plain, TakesResources)
        self._expands = able(plain, Expands)
        self.expands = self._expands is not None  # It is made of other reservations, and takes no resources itself.
        self._changes = able(plain, Changes)
        self._reports_use = able(plain, ReportsUse)
        self._prepares = able(plain, Prepares)
        self._divides = able(plain, Divides)
        self._keeps_secrets = able(plain, KeepsSecrets)
        self._chooses_action = able(plain, ChoosesAction)
        self._saves_work = able(plain, SavesWork)
        self._restores = able(plain, Restores)
        self._lists = able(plain, ListsReservations)
        self._lists_projects = able(plain, ListsProjects)
        self._lists_in_projects = able(plain, ListsInProjects)
        self._probes_use = able(plain, ProbesUse)
        self._names_users = able(plain, NamesUsers)
        self._lists_servers = able(plain, ListsServers)
        self._tells_gone = able(plain, TellsGone)
        self._makes_room = able(plain, MakesRoom)
        self._transfers = able(plain, Transfers)
        self._moves_servers = able(plain, MovesServers)
        if self.schema is not None:
            check_schemas(f"schema of the type {self.resource_type}", [dict(self.schema)])

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return what a new reservation is made of; by default nothing but itself."""
        if self._expands is None:
            return ()
        if not (found := tuple(self._expands.children(parameters))):
            raise TypeError(f"children of {self.resource_type} returned none; give at least one")
        return found

    def needs(self, parameters: Content) -> Needs:
        """Return what a reservation needs of the quotas of its project; by default nothing."""
        return {} if self._needs_quota is None else self._needs_quota.needs(parameters)

    def needs_as_part(self, parameters: Content) -> Needs:
        """Return what a reservation needs besides if another is made of it; by default nothing."""
        return {} if self._needs_as_part is None else self._needs_as_part.needs_as_part(parameters)

    def within(self, region: str) -> CompleteType:
        """Return the type of one region; there is one."""
        return self

    def parameters(self, given: Given) -> Content:
        """Return the parameters of a new reservation, checked and completed; InvalidInput names the field."""
        return self._storable("parameters", self._plain.parameters(given))

    def masked(self, given: Json) -> Json:
        """Return the parameters of a request as anybody may see them; by default all of them. InvalidInput."""
        return given if self._keeps_secrets is None else self._keeps_secrets.masked(given)

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation demands of the calendar; InvalidInput. Not for a type that ``expands``."""
        if self._takes is None:
            raise TypeError(f"{self.resource_type} takes no resources itself: ask for the demand of its children")
        return self._of_kind("demand", self._takes.demand(parameters, known=known))

    @property
    def room_limit(self) -> timedelta | None:
        """Return how long it may take to make room; None if it makes none."""
        return None if self._makes_room is None else self._makes_room.room_limit

    def plan_room(self, resources: Collection[Resource], needed: int, elsewhere: Elsewhere) -> Evacuation | NotEnough:
        """Return how so many of these resources are emptied, or why that cannot be; by default none is."""
        if self._makes_room is None:
            return NotEnough(needed, 0, ())
        return self._makes_room.plan_room(resources, needed, elsewhere)

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that what the reservation has is empty; by default it is."""
        if self._makes_room is None:
            return Done()
        return self._progress("make_room", self._makes_room.make_room(task, elsewhere))

    def moved(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers of others that were moved away for the lease; by default none."""
        return () if self._makes_room is None else self._makes_room.moved(task)

    @property
    def pace(self) -> Pace | None:
        """Return how servers of reservations in use are moved; None if they are not."""
        return None if self._moves_servers is None else self._moves_servers.pace

    def load(self, task: Task, resource: Resource) -> Load:
        """Return what the servers on a resource have together; by default they cannot be moved."""
        if self._moves_servers is None:
            return Load(obstacle=f"reservations of the type {self.resource_type} keep what they have while in use")
        return self._moves_servers.load(task, resource)

    def move_servers(self, task: Task, source: Resource, target: Resource, since: datetime) -> Progress:
        """Ensure that servers leave a resource for another one of the reservation; by default there are none."""
        if self._moves_servers is None:
            return Done()
        return self._progress("move_servers", self._moves_servers.move_servers(task, source, target, since))

    def stop_moving(self, task: Task, source: Resource) -> Progress:
        """Ensure that no server moves from a resource any more; by default none does."""
        if self._moves_servers is None:
            return Done()
        return self._progress("stop_moving", self._moves_servers.stop_moving(task, source))

    @masks_secrets
    def start(self, task: Task) -> Progress:
        """Ensure that the project can use the resources, and no others."""
        try:
            return self._progress("start", self._plain.start(task))
        except Unusable as error:
            if not error.reasons.keys() & {resource.id for resource in task.resources}:
                raise TypeError(
                    f"start of {self.resource_type} raised Unusable for none of its resources: give calendar ids"
                ) from error
            raise

    @masks_secrets
    def end(self, task: Task) -> Progress:
        """Ensure that nothing of the reservation is left."""
        return self._progress("end", self._plain.end(task))

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the parameters of a request, completed with data from the cloud; by default as they are."""
        if self._resolves is not None:
            return self._resolves.resolve(given, project_id=project_id, reservation=reservation)
        return given

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a resource must have; by default nothing."""
        return self._requires.requirement(parameters) if self._requires else Anything()

    def references(self, parameters: Content) -> tuple[Reference, ...]:
        """Return the references in parameters; by default none."""
        if self._refers is None:
            return ()
        found = tuple(self._refers.references(parameters))
        for each in found:
            if not isinstance(each, Reference) or reservation_at(parameters, each.pointer) != each.reservation:
                raise TypeError(
                    f"references of {self.resource_type} returned {each!r:.120}, which is not at its pointer"
                )
        return found

    def changed(self, current: Content, change: Given) -> Content:
        """Return the parameters after a change; by default they can only be sent back as they are. InvalidInput."""
        if self._changes is not None:
            return self._storable("changed", self._changes.changed(current, change))
        for key, value in change.values.items():
            if key in current.values and current.values[key] != value:
                raise InvalidInput(
                    f"{key[:80]} of a {self.resource_type} reservation cannot be changed; make another lease for it",
                    pointer=f"/{key}",
                )
        return current

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; by default a reservation in use keeps exactly what it has."""
        if self._changes is not None:
            return self._of_kind("demand_again", self._changes.demand_again(task, parameters, known=known))
        fresh = self.demand(parameters, known=known)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=frozenset(task.counts))
        count = max(1, sum(task.counts.values()))
        if fresh.whole:
            return replace(fresh, min_count=count, max_count=count, pinned=frozenset(task.counts), required=frozenset())
        return replace(fresh, min_count=count, max_count=count, kept=dict(task.counts))

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return the count in use of each resource, by calendar id; by default none."""
        return self._reports_use.in_use(task) if self._reports_use else {}

    def users(self, task: Task, resource: Resource) -> tuple[str, ...]:
        """Return the ids of what runs on a resource of a reservation in use; by default none is known."""
        return () if self._names_users is None else self._names_users.users(task, resource)

    @property
    def probes_use(self) -> bool:
        """Return whether it can tell what users have in a reservation."""
        return self._probes_use is not None

    def probe(self, task: Task) -> States | None:
        """Return how many things users have in a reservation in use, by state; None if it cannot tell."""
        return None if self._probes_use is None else self._probes_use.probe(task)

    def servers_in_use(self, task: Task) -> Collection[Server] | None:
        """Return the servers that keep a reservation in use; None if its use is not that of servers."""
        return None if self._lists_servers is None else self._lists_servers.servers_in_use(task)

    @property
    def tells_gone(self) -> bool:
        """Return whether it can tell what is gone of what it has made."""
        return self._tells_gone is not None

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which of the ids of what it has made the cloud does not have any more; by default none is known."""
        return frozenset() if self._tells_gone is None else frozenset(self._tells_gone.gone(made))

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters of both parts of a reservation; None if it cannot be divided, as by default."""
        return None if self._divides is None else self._divides.divided(parameters, kept, gone)

    @property
    def prepares(self) -> bool:
        """Return whether something exists in the cloud before the start."""
        return self._prepares is not None

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project; empty if it can. By default none can."""
        if self._transfers is None:
            return f"is of type {self.resource_type}, which stays with the project that it was made for"
        return str(self._transfers.transfer_obstacle(task, project_id))

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether a change before the start changes what ``prepare`` creates; by default not."""
        return self._prepares is not None and self._prepares.must_prepare_again(before, after)

    @masks_secrets
    def prepare(self, task: Task) -> Content:
        """Ensure what must exist before the start; by default nothing."""
        return self._storable("prepare", self._prepares.prepare(task)) if self._prepares else NO_CONTENT

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; by default the notification alone."""
        return self._chooses_action.action(parameters) if self._chooses_action else Action.NOTIFICATION

    @masks_secrets
    def before_end(self, task: Task) -> Progress:
        """Do what the reservation's action says; by default nothing."""
        if self._saves_work is None:
            return Done()
        return self._progress("before_end", self._saves_work.before_end(task))

    @masks_secrets
    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Undo a failed change; by default by a start with exactly the resources from before it."""
        if self._restores is not None:
            return self._progress("restore", self._restores.restore(task, surplus))
        return self.start(task) if task.reservation.status is ReservationStatus.ACTIVE else Done()

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have anything in the cloud; by default none is known."""
        return frozenset(self._lists.reservations_in_cloud(resources)) if self._lists else frozenset()

    def projects_in_cloud(self, resources: Collection[Resource]) -> Mapping[int, frozenset[str]]:
        """Return the projects that can use resources by what has no mark; by default none is known."""
        return self._lists_projects.projects_in_cloud(resources) if self._lists_projects else {}

    @property
    def lists_in_projects(self) -> bool:
        """Return whether it can list what is in projects."""
        return self._lists_in_projects is not None

    def reservations_in_projects(self, projects: Collection[str]) -> frozenset[str]:
        """Return the reservations that have something in these projects; by default none is known."""
        if self._lists_in_projects is None:
            return frozenset()
        return frozenset(self._lists_in_projects.reservations_in_projects(projects))

    def _progress(self, method: str, value: Progress) -> Progress:
        if isinstance(value, NotYet):
            given = isinstance(value.after, timedelta) and isinstance(value.reason, str)
            if not given or not isinstance(value.cause, Cause):
                raise TypeError(
                    f"{method} of {self.resource_type} returned {value!r:.80}; give a timedelta and a reason"
                )
            return (
                value if value.cloud_ids is None else replace(value, cloud_ids=self._storable(method, value.cloud_ids))
            )
        if not isinstance(value, Done):
            raise TypeError(f"{method} of {self.resource_type} returned {type(value).__name__}, not Done or NotYet")
        return value if value.cloud_ids is None else replace(value, cloud_ids=self._storable(method, value.cloud_ids))

    def _storable(self, method: str, content: object) -> Content:
        if not isinstance(content, Content):
            raise TypeError(f"{method} of {self.resource_type} returned {type(content).__name__}, not Content")
        try:
            json.dumps(dict(content.values))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{method} of {self.resource_type} returned values that are not JSON: {error}") from error
        return content

    def _of_kind(self, method: str, demand: object) -> Demand:
        if not isinstance(demand, Demand) or demand.kind != self.kind:
            raise TypeError(f"{method} of {self.resource_type} returned {demand!r:.80}, not a Demand for its kind")
        return demand


CAPABILITIES: tuple[type, ...] = (
    Resolves,
    Requires,
    Refers,
    Expands,
    Changes,
    ReportsUse,
    Prepares,
    ChoosesAction,
    SavesWork,
    Restores,
    MakesRoom,
    MovesServers,
)
"""The protocols that a type has whole, or not at all."""


def check_form(plain: object) -> None:
    """Raise InvalidInput unless a type, or its class, takes resources itself or is made of others: one of these."""
    takes, expands = hasattr(plain, "demand"), hasattr(plain, "children")
    if takes == expands:
        has = "both demand and children" if takes else "neither demand nor children"
        raise InvalidInput(f"it has {has}: a type takes resources itself, or is made of others")
    if expands and hasattr(plain, "demand_again"):
        raise InvalidInput("it has children and demand_again: what is made of others changes in its dates only")


def required_properties(types: Mapping[str, CompleteType], reservation: Reservation) -> frozenset[str]:
    """Return the properties that a reservation's requirement names; none if its type is no longer enabled."""
    kind = types.get(reservation.resource_type)
    return frozenset() if kind is None else keys(kind.requirement(reservation.parameters))
