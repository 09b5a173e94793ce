# SPDX-License-Identifier: Apache-2.0
"""physical:host: whole compute hosts, assigned through one host aggregate per reservation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Self

from oslo_config import cfg

from blazar.calendar.evacuation.values import Evacuation, NotEnough
from blazar.clouds.ports import Cloud, Server
from blazar.model.demand import Demand
from blazar.model.errors import CloudUnavailable, InvalidInput, NotEnoughResources
from blazar.model.lease import Content, EventType, Json, ReservationStatus
from blazar.model.requirements import Requirement, matches
from blazar.model.resource import HOST, Resource
from blazar.resources.actions import (
    BEFORE_END,
    RECHECK_SOON,
    action_of,
    asked_at,
    checked_action,
    deleting,
    progress,
    updated,
    with_action,
)
from blazar.resources.aggregates.freepool import Freepool, NotInFreepool
from blazar.resources.aggregates.reservations import ReservationAggregates
from blazar.resources.base import Action, Done, Given, NotYet, Progress, Task, Unusable
from blazar.resources.dividing import divided_bounds
from blazar.resources.hosts.emptying import Emptying
from blazar.resources.hosts.migrations import Migrations
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.schema import SCHEMA
from blazar.resources.making_room import Elsewhere, Load, MovedServer, Pace
from blazar.resources.parameters import (
    by_service,
    check_known,
    requirement_of,
    requirement_text,
    service_names,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)
from blazar.resources.probes import States, is_quiet, servers_of_project, states_of
from blazar.resources.snapshots import Snapshots

RESOURCE_TYPE = "physical:host"

REQUIREMENTS = ("hypervisor_properties", "resource_properties")


@dataclass(frozen=True, slots=True)
class HostParameters:
    """The parameters of a host reservation, named as in the API; the properties are requirements as JSON text."""

    min: int
    max: int
    hypervisor_properties: str | None
    resource_properties: str | None
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> HostParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        least = whole_number(given["min"], "min", least=1, what="a whole number of hosts")
        most = whole_number(given["max"], "max", least=1, what="a whole number of hosts")
        if most < least:
            sentence = f"max ({most}) is less than min ({least}); give a max that is at least min"
            raise InvalidInput(sentence, pointer="/max")
        action = checked_action(given)
        hypervisor, resource = (requirement_text(given[field], field) for field in REQUIREMENTS)
        return cls(least, most, hypervisor, resource, action)

    @classmethod
    def of(cls, content: Content) -> HostParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, "min"),
            stored_number(content, "max"),
            stored_maybe_text(content, "hypervisor_properties"),
            stored_maybe_text(content, "resource_properties"),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(asdict(self))

    @property
    def requirement(self) -> Requirement:
        """Return what a host must have."""
        return requirement_of(
            hypervisor_properties=self.hypervisor_properties, resource_properties=self.resource_properties
        )


class PhysicalHost:
    """The resource type ``physical:host``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = HOST

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured."""
        return cls(cloud, HostSettings.configured(conf))

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        self._cloud = cloud
        self._settings = settings
        self._aggregates = ReservationAggregates(cloud.compute, settings.aggregates)
        self._compute = cloud.compute
        self._snapshots = Snapshots(cloud.compute, settings.image_prefix)
        freepool = Freepool(cloud.compute, settings.aggregates)
        self._migrations = Migrations(cloud, self._aggregates, freepool)
        self._emptying = Emptying(cloud, freepool, settings.evacuation)

    def parameters(self, given: Given) -> Content:
        """Return min, max, both requirements and ``before_end``; other keys are left out."""
        missing = [key for key in ("min", "max", *REQUIREMENTS) if key not in given.values]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a physical:host reservation needs min, max, "
                f"hypervisor_properties and resource_properties; the latter two may be empty)"
            )
        return HostParameters.checked({BEFORE_END: "default", **with_action(given.values)}).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        return HostParameters.checked(updated(asdict(HostParameters.of(current)), change)).content

    def action(self, parameters: Content) -> Action:
        """Return the action before the end: the reservation's, or the operator's default."""
        return action_of(HostParameters.of(parameters).before_end, self._settings.before_end)

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a host must have."""
        return HostParameters.of(parameters).requirement

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for ``min`` to ``max`` whole hosts that meet both requirements."""
        wanted = HostParameters.of(parameters)
        requirement = wanted.requirement
        check_known(requirement, known, REQUIREMENTS)
        return Demand(kind=self.kind, min_count=wanted.min, max_count=wanted.max, requirement=requirement)

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; a reservation in use keeps all its hosts and can only grow."""
        fresh = self.demand(parameters, known=known)
        held = frozenset(resource.id for resource in task.resources)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=held)
        before = HostParameters.of(task.reservation.parameters)
        if before.max < len(held) and fresh.max_count >= before.max:
            # It has more than it asked for while its servers are moved to another host.
            fresh = replace(fresh, max_count=max(fresh.max_count, len(held)))
        if fresh.max_count < len(held):
            raise NotEnoughResources(
                f"the reservation of {len(held)} hosts is in use and cannot shrink to {fresh.max_count}; end the "
                f"lease, or split it and end the part that is not needed",
                pointer="/max",
            )
        if fresh.requirement != before.requirement:
            misfits = sorted(r.name for r in task.resources if not matches(fresh.requirement, r.properties))
            if misfits:
                after = HostParameters.of(parameters)
                field = next(f for f in REQUIREMENTS[::-1] if getattr(after, f) != getattr(before, f))
                sentence = f"{field} cannot be changed to this: reservation {task.reservation.id} is in use on"
                ending = "no longer match; a reservation keeps its hosts while it is active"
                raise NotEnoughResources(
                    f"{sentence} {', '.join(misfits)}, which would {ending}",
                    public=f"{sentence} {len(misfits)} of its hosts that would {ending}",
                    pointer=f"/{field}",
                )
        if (fresh.min_count, fresh.max_count) == (before.min, before.max):
            # New dates alone never add hosts to a reservation in use.
            return replace(fresh, min_count=max(1, len(held)), max_count=max(1, len(held)), pinned=held)
        return replace(fresh, min_count=max(fresh.min_count, len(held)), pinned=held)

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each host that runs servers, by calendar id."""
        used = (r for r in task.resources if self._compute.servers_on(str(r.attributes["service_name"])))
        return dict.fromkeys((resource.id for resource in used), 1)

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters with ``min`` and ``max`` divided."""
        return divided_bounds(parameters, kept, gone)

    def users(self, task: Task, resource: Resource) -> tuple[str, ...]:
        """Return the ids of the project's servers on a host."""
        servers = self._compute.servers_on(str(resource.attributes["service_name"]))
        return tuple(sorted(server.id for server in servers if server.project_id == task.lease.project_id))

    def probe(self, task: Task) -> States:
        """Return the states of the project's servers on the hosts, and of those booted into the reservation elsewhere.

        If none of these runs, the hosts are looked at one by one: whatever runs there would be deleted at the end.
        """
        ours = self._servers_of_project(task)
        states = states_of(ours.values())
        return states if not is_quiet(states) else states_of({**self._servers_on_hosts(task), **ours}.values())

    def servers_in_use(self, task: Task) -> Collection[Server]:
        """Return the project's servers on the hosts, those booted into the reservation, and those of others there."""
        return {**self._servers_on_hosts(task), **self._servers_of_project(task)}.values()

    def _servers_of_project(self, task: Task) -> dict[str, Server]:
        id_, hosts = task.reservation.id, frozenset(service_names(task.resources))
        on_hosts, nowhere = servers_of_project(self._compute, task.lease, id_)
        ours = (*(s for s in on_hosts if s.host in hosts or id_ in (s.hints or ())), *nowhere)
        return {server.id: server for server in ours}

    def _servers_on_hosts(self, task: Task) -> dict[str, Server]:
        hosts = sorted(service_names(task.resources))
        return {server.id: server for host in hosts for server in self._compute.servers_on(host)}

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return that nothing keeps a reservation with its project: the aggregate gets another owner."""
        return ""

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return False: the aggregate does not depend on the parameters."""
        return False

    def prepare(self, task: Task) -> Content:
        """Ensure the reservation's aggregate, empty until the start."""
        aggregate = self._aggregates.ensure(task.reservation.id, project_id=task.lease.project_id)
        return Content({"aggregate_id": aggregate.id})

    @property
    def room_limit(self) -> timedelta:
        """Return how long it may take to empty hosts."""
        return self._settings.evacuation.rules.limit

    def plan_room(self, resources: Collection[Resource], needed: int, elsewhere: Elsewhere) -> Evacuation | NotEnough:
        """Return how so many of these hosts are emptied of the servers of others, or why that cannot be."""
        return self._emptying.plan(resources, needed, elsewhere)

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that the evacuable hosts are in the freepool and empty."""
        return self._emptying.make_room(task, elsewhere)

    def moved(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers of others that were moved off the evacuable hosts since the lease was made."""
        return self._emptying.moved(task)

    @property
    def pace(self) -> Pace:
        """Return how servers of reservations in use are moved."""
        rules = self._settings.evacuation.rules
        return Pace(self._settings.evacuation.lead, rules.limit, max(1, rules.in_all // rules.per_host))

    def load(self, task: Task, resource: Resource) -> Load:
        """Return what the servers on a host have together, or why they cannot be moved."""
        return self._emptying.load(task, resource)

    def move_servers(self, task: Task, source: Resource, target: Resource, since: datetime) -> Progress:
        """Ensure that the servers of a host move to another one of the reservation."""
        return self._emptying.move_within(task, source, target, since)

    def stop_moving(self, task: Task, source: Resource) -> Progress:
        """Ensure that no server moves from a host any more."""
        return self._emptying.stop([source])

    def start(self, task: Task) -> Progress:
        """Ensure that exactly these hosts are in the reservation's aggregate, and none in the freepool."""
        try:
            left = self._aggregates.assign(
                task.reservation.id, hosts=service_names(task.resources), project_id=task.lease.project_id
            )
        except NotInFreepool as error:
            raise Unusable(by_service(task.resources, error.reasons)) from error
        if not left.text:
            return Done()
        cause = left.cause(task.resources)
        if left.evicted:
            return NotYet(RECHECK_SOON, left.text, cause)
        raise CloudUnavailable(left.text, cause=cause)

    def before_end(self, task: Task) -> Progress:
        """Ensure, by the action, that every server has an image or has moved out of the reservation."""
        reservation = task.reservation
        match self.action(reservation.parameters):
            case Action.SNAPSHOT:
                tally = self._snapshots.ensure(
                    reservation.id, self._servers(task), project_id=task.lease.project_id, since=asked_at(task)
                )
                return progress(task, tally, "images being made")
            case Action.MIGRATION:
                event = task.lease.event(EventType.BEFORE_END)
                tally = self._migrations.ensure(reservation.id, attempt=event.attempts if event else 0)
                return progress(task, tally, "servers on their way")
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that all servers are gone, all hosts are in the freepool and the aggregate is deleted."""
        self._delete_stranded(task)
        returned = self._return(task, hosts=None)
        # Once more: one that was being shelved may have left its host between the two looks.
        if isinstance(returned, Done) and (stranded := self._delete_stranded(task)):
            return deleting(stranded, "servers without a host are being deleted")
        if task.reservation.status is ReservationStatus.DELETED:
            # Leftovers of one that has ended: by now another lease may be emptying its hosts.
            return returned
        # Last: a host with servers of the reservation is open to nobody until they are gone.
        return self._emptying.leave(task) if isinstance(returned, Done) else returned

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure that the surplus hosts are empty and in the freepool, the former ones in the project's aggregate."""
        self._aggregates.ensure(task.reservation.id, project_id=task.lease.project_id)
        returned = self._return(task, hosts=frozenset(service_names(surplus))) if surplus else Done()
        if task.reservation.status is ReservationStatus.ACTIVE:
            self._aggregates.assign_again(
                task.reservation.id, hosts=service_names(task.resources), project_id=task.lease.project_id
            )
        return returned

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have an aggregate with its own zone, or keep a host closed."""
        return self._aggregates.reservations()

    def _servers(self, task: Task) -> tuple[Server, ...]:
        hosts = self._aggregates.hosts_of(task.reservation.id)
        on_hosts = [server for host in hosts for server in self._compute.servers_on(host)]
        return (*on_hosts, *self._stranded(task))

    def _stranded(self, task: Task) -> tuple[Server, ...]:
        return self._compute.stranded_servers(task.reservation.id, task.lease.project_id)

    def _delete_stranded(self, task: Task) -> int:
        """Begin to delete the servers that no longer have a host, such as shelved ones; return their number."""
        if task.reservation.status is ReservationStatus.PENDING and not self._aggregates.hosts_of(task.reservation.id):
            return 0
        left = [s for s in self._stranded(task) if not self._migrations.was_moved(s, task.reservation.id)]
        for server in left:
            self._compute.delete_server(server.id)
        return len(left)

    def _return(self, task: Task, *, hosts: frozenset[str] | None) -> Progress:
        used = hosts is None and task.reservation.status is ReservationStatus.ACTIVE
        left = self._aggregates.release(
            task.reservation.id, hosts=hosts, assigned=service_names(task.resources) if used else ()
        )
        return deleting(left, "servers are being deleted or moved away") if left else Done()
