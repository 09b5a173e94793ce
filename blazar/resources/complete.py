# SPDX-License-Identifier: Apache-2.0
"""A resource type with defaults for what it leaves out, so that the rest of the house need not ask."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta

from blazar.model.demand import Demand
from blazar.model.errors import InvalidInput
from blazar.model.lease import NO_CONTENT, Content, Reservation, ReservationStatus
from blazar.model.reasons import Cause
from blazar.model.requirements import Anything, Requirement, keys
from blazar.model.resource import Resource, ResourceKind
from blazar.resources.base import (
    Action,
    Changes,
    Child,
    ChoosesAction,
    DescribesParameters,
    Done,
    Expands,
    Given,
    ListsProjects,
    ListsReservations,
    NotYet,
    Prepares,
    Progress,
    Rank,
    Ranked,
    ReadsHistory,
    ReadsShares,
    Reference,
    Refers,
    ReportsUse,
    Requires,
    Resolves,
    ResourceType,
    Restores,
    SavesWork,
    Task,
    Unusable,
)
from blazar.resources.references import reservation_at
from blazar.resources.schemas import check_schemas


class CompleteType:
    """A resource type with all capabilities; the protocols in ``base`` say what each does."""

    def __init__(self, plain: ResourceType) -> None:
        self.resource_type = plain.resource_type
        self.kind: ResourceKind = plain.kind
        self.schema = plain.schema if isinstance(plain, DescribesParameters) else None
        self.reads_history = isinstance(plain, ReadsHistory) and plain.reads_history
        self.reads_shares = isinstance(plain, ReadsShares) and plain.reads_shares
        self.rank = plain.rank if isinstance(plain, Ranked) else Rank.COMPUTE
        self._plain = plain
        # Asked once: the check of a protocol looks at every member.
        self._resolves = plain if isinstance(plain, Resolves) else None
        self._requires = plain if isinstance(plain, Requires) else None
        self._refers = plain if isinstance(plain, Refers) else None
        self._expands = plain if isinstance(plain, Expands) else None
        self._changes = plain if isinstance(plain, Changes) else None
        self._reports_use = plain if isinstance(plain, ReportsUse) else None
        self._prepares = plain if isinstance(plain, Prepares) else None
        self._chooses_action = plain if isinstance(plain, ChoosesAction) else None
        self._saves_work = plain if isinstance(plain, SavesWork) else None
        self._restores = plain if isinstance(plain, Restores) else None
        self._lists = plain if isinstance(plain, ListsReservations) else None
        self._lists_projects = plain if isinstance(plain, ListsProjects) else None
        if self.schema is not None:
            check_schemas(f"schema of the type {self.resource_type}", [dict(self.schema)])

    @property
    def resolves(self) -> bool:
        """Return whether parameters need data from the cloud."""
        return self._resolves is not None

    @property
    def expands(self) -> bool:
        """Return whether its reservations are made of others, and take no resources themselves."""
        return self._expands is not None

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return what a new reservation is made of; by default nothing but itself."""
        if self._expands is None:
            return ()
        if not (found := tuple(self._expands.children(parameters))):
            raise TypeError(f"children of {self.resource_type} returned none; give at least one")
        return found

    def within(self, region: str) -> CompleteType:
        """Return the type of one region; there is one."""
        return self

    def parameters(self, given: Given) -> Content:
        """Return the parameters of a new reservation, checked and completed; InvalidInput names the field."""
        return self._storable("parameters", self._plain.parameters(given))

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return what a reservation demands of the calendar; InvalidInput."""
        return self._of_kind("demand", self._plain.demand(parameters, known=known))

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
                    f"{key[:80]} of a {self.resource_type} reservation cannot be changed; make another lease for it"
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

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether a change before the start changes what ``prepare`` creates; by default not."""
        return self._prepares is not None and self._prepares.must_prepare_again(before, after)

    def prepare(self, task: Task) -> Content:
        """Ensure what must exist before the start; by default nothing."""
        return self._storable("prepare", self._prepares.prepare(task)) if self._prepares else NO_CONTENT

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; by default the notification alone."""
        return self._chooses_action.action(parameters) if self._chooses_action else Action.NOTIFICATION

    def before_end(self, task: Task) -> Progress:
        """Do what the reservation's action says; by default nothing."""
        if self._saves_work is None:
            return Done()
        return self._progress("before_end", self._saves_work.before_end(task))

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
)
"""The protocols that a type has whole, or not at all."""


def required_properties(types: Mapping[str, CompleteType], reservation: Reservation) -> frozenset[str]:
    """Return the properties that a reservation's requirement names; none if its type is no longer enabled."""
    kind = types.get(reservation.resource_type)
    return frozenset() if kind is None else keys(kind.requirement(reservation.parameters))
