# SPDX-License-Identifier: Apache-2.0
"""physical:host: whole compute hosts, assigned through one host aggregate per reservation."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Server
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.calendar.topology import describe_topology, do_lie
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventType, ReservationStatus
from blazar.model.resources.requirements import Requirement, matches
from blazar.model.resources.resource import HOST, Resource
from blazar.resources.contract.actions import (
    BEFORE_END,
    RECHECK_SOON,
    action_of,
    deletion_progress,
    find_request_time,
    progress_of_tally,
    update_values,
    with_action,
)
from blazar.resources.contract.parameters import by_service, check_property_names, divided_bounds, service_names
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Action, Done, Given, NotYet, Progress, Task, Unusable
from blazar.resources.hosts.aggregates.freepool import Freepool, NotInFreepool
from blazar.resources.hosts.aggregates.reservations import ReservationAggregates
from blazar.resources.hosts.evacuation import Emptying
from blazar.resources.hosts.lending import LEND, HostLending, without_guests
from blazar.resources.hosts.migrations import HostMigrations
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.parameters import REQUIREMENTS, SCHEMA, HostParameters
from blazar.resources.hosts.preemption import HostLends, HostNotices, HostPreemption
from blazar.resources.hosts.servers import HostMoves, WholeHostUse
from blazar.resources.hosts.shrinking import choose_hosts_to_keep
from blazar.resources.hosts.snapshots import Snapshots
from blazar.resources.hosts.topology import FIELDS, check_keys

RESOURCE_TYPE = "physical:host"


class PhysicalHost(WholeHostUse, HostMoves, HostNotices, HostLends, ResourceType):
    """The resource type ``physical:host``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = HOST
    has_named_hosts = True
    splits_by_time = True

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
        self._lending = HostLending(cloud.compute)
        self._preempting = HostPreemption(cloud.compute, settings.aggregates, self._snapshots)
        freepool = Freepool(cloud.compute, settings.aggregates)
        self._migrations = HostMigrations(cloud, self._aggregates, freepool)
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
        before = {**dict.fromkeys((*FIELDS, LEND)), **HostParameters.of(current).content.values}
        return HostParameters.checked(update_values(before, change)).content

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
        check_property_names(requirement, known, REQUIREMENTS)
        if wanted.topology:
            check_keys(wanted.topology, known)
        return Demand(
            kind=self.kind,
            min_count=wanted.min,
            max_count=wanted.max,
            requirement=requirement,
            topology=wanted.topology,
        )

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; a reservation in use keeps its hosts, and gives up empty ones only."""
        fresh = self.demand(parameters, known=known)
        held = frozenset(resource.id for resource in task.resources)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, pinned=held - task.given_up) if task.given_up else replace(fresh, preferred=held)
        before = HostParameters.of(task.reservation.parameters)
        if fresh.topology != before.topology:
            fields = " and ".join(FIELDS)
            raise Conflict(
                f"{fields} cannot be changed: the reservation is in use, and keeps its hosts; make another lease",
                at=f"/{FIELDS[0]}",
            )
        if before.max < len(held) and fresh.max_count >= before.max:
            # It has more than it asked for while its servers are moved to another host.
            fresh = replace(fresh, max_count=max(fresh.max_count, len(held)))
        if fresh.max_count < len(held):
            held = choose_hosts_to_keep(task, fresh.max_count, fresh.topology)
        if fresh.requirement != before.requirement:
            kept = [resource for resource in task.resources if resource.id in held]
            misfits = sorted(r.name for r in kept if not matches(fresh.requirement, r.properties))
            if misfits:
                after = HostParameters.of(parameters)
                field = next(f for f in REQUIREMENTS[::-1] if getattr(after, f) != getattr(before, f))
                sentence = f"{field} cannot be changed to this: reservation {task.reservation.id} is in use on"
                ending = "no longer match; a reservation keeps its hosts while it is active"
                raise NotEnoughResources(
                    f"{sentence} {', '.join(misfits)}, which would {ending}",
                    public=f"{sentence} {len(misfits)} of its hosts that would {ending}",
                    at=f"/{field}",
                )
        if (fresh.min_count, fresh.max_count) == (before.min, before.max):
            # New dates alone never add hosts to a reservation in use.
            return replace(fresh, min_count=max(1, len(held)), max_count=max(1, len(held)), pinned=held)
        return replace(fresh, min_count=max(fresh.min_count, len(held)), pinned=held)

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters with ``min`` and ``max`` divided. Conflict if groups would be divided, too."""
        topology = HostParameters.of(parameters).topology
        together = topology.together
        has_groups = together is not None and together.size and do_lie(topology, [*kept, *gone])
        if has_groups and not (do_lie(topology, kept) and do_lie(topology, gone)):
            raise Conflict(
                f"its hosts are {describe_topology(topology)}, and groups stay whole; name the hosts of whole groups "
                "as the resources of the part",
                at="/id",
            )
        return divided_bounds(parameters, kept, gone)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return that nothing keeps a reservation with its project: the aggregate gets another owner."""
        return ""

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return False: the aggregate does not depend on the parameters."""
        return False

    def prepare(self, task: Task) -> Content:
        """Ensure the reservation's aggregate, empty until the start."""
        aggregate = self._aggregates.ensure_aggregate(task.reservation.id, project_id=task.lease.project_id)
        return Content({"aggregate_id": aggregate.id})

    def start(self, task: Task) -> Progress:
        """Ensure that exactly these hosts are in the reservation's aggregate, and none in the freepool."""
        try:
            left = self._aggregates.assign_hosts(
                task.reservation.id, hosts=service_names(task.resources), project_id=task.lease.project_id
            )
        except NotInFreepool as error:
            raise Unusable(by_service(task.resources, error.reasons)) from error
        if not left.text:
            return Done()
        cause = left.cause(task.resources)
        if left.evicted:
            return NotYet(RECHECK_SOON, left.text, cause)
        raise CloudUnavailable(left.text).because(cause)

    def before_end(self, task: Task) -> Progress:
        """Ensure, by the action, that every server has an image or has moved out of the reservation."""
        reservation = task.reservation
        match self.action(reservation.parameters):
            case Action.SNAPSHOT:
                hosts = self._aggregates.hosts_of(reservation.id)
                found = (server for host in hosts for server in self._compute.servers_on(host))
                servers = without_guests(self._compute, found, task)
                saved = (*servers, *self._stranded_servers(task))
                tally = self._snapshots.ensure_images(
                    reservation.id, saved, project_id=task.lease.project_id, since=find_request_time(task)
                )
                return progress_of_tally(task, tally, "images being made")
            case Action.MIGRATION:
                event = task.lease.event(EventType.BEFORE_END)
                tally = self._migrations.ensure_empty(reservation.id, attempt=event.attempts if event else 0)
                return progress_of_tally(task, tally, "servers on their way")
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that all servers are gone, all hosts are in the freepool and the aggregate is deleted."""
        self._delete_stranded(task)
        returned = self._return_hosts(task, hosts=None)
        # Once more: one that was being shelved may have left its host between the two looks.
        if isinstance(returned, Done) and (stranded := self._delete_stranded(task)):
            return deletion_progress(stranded, "without a host being deleted")
        if task.reservation.status is ReservationStatus.DELETED:
            # Leftovers of one that has ended: by now another lease may be emptying its hosts.
            return returned
        # Last: a host with servers of the reservation is open to nobody until they are gone.
        return self._emptying.stop_and_leave_freepool(task) if isinstance(returned, Done) else returned

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure that the surplus hosts are empty and in the freepool, the former ones in the project's aggregate."""
        self._aggregates.ensure_aggregate(task.reservation.id, project_id=task.lease.project_id)
        returned = self._return_hosts(task, hosts=frozenset(service_names(surplus))) if surplus else Done()
        if task.reservation.status is ReservationStatus.ACTIVE:
            self._aggregates.reassign_returned_hosts(
                task.reservation.id, hosts=service_names(task.resources), project_id=task.lease.project_id
            )
        return returned

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have an aggregate with its own zone, or keep a host closed."""
        return self._aggregates.reservations_with_aggregate()

    def _stranded_servers(self, task: Task) -> tuple[Server, ...]:
        return self._compute.stranded_servers(task.reservation.id, task.lease.project_id)

    def _delete_stranded(self, task: Task) -> int:
        """Begin to delete the servers that no longer have a host, such as shelved ones; return their number."""
        if task.reservation.status is ReservationStatus.PENDING and not self._aggregates.hosts_of(task.reservation.id):
            return 0
        left = [s for s in self._stranded_servers(task) if not self._migrations.was_moved(s, task.reservation.id)]
        for server in left:
            self._compute.begin_server_deletion(server.id)
        return len(left)

    def _return_hosts(self, task: Task, *, hosts: frozenset[str] | None) -> Progress:
        used = hosts is None and task.reservation.status is ReservationStatus.ACTIVE
        left = self._aggregates.release_hosts(
            task.reservation.id, hosts=hosts, assigned=service_names(task.resources) if used else ()
        )
        return deletion_progress(left, "being deleted or moved away") if left else Done()
