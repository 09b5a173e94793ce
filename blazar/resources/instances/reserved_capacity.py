# SPDX-License-Identifier: Apache-2.0
"""Reserved capacity: inventory for servers on shared hosts, used through a private flavor per reservation.

The names of all objects in the cloud follow from the reservation's id, so that nothing has to be stored: a flavor, an
aggregate of the hosts, a custom resource class in Placement whose inventory on a host is the number of servers promised
there, and a server group if affinity or anti-affinity is asked for. A server booted with the flavor allocates one of
the class, so that Placement allows no more servers on a host than were promised there.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Aggregate, AggregateList, Server
from blazar.clouds.ports.placement import CLASS_PREFIX, reservation_id_of
from blazar.clouds.side_by_side import ask_each, side_by_side
from blazar.model.base.errors import Conflict, NotFound
from blazar.model.base.reasons import spell_count
from blazar.model.base.values import dataclass, field, replace
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.resources.contract.parameters import not_among, service_names
from blazar.resources.contract.values import Task
from blazar.resources.hosts.aggregates.freepool import HOSTS_AT_A_TIME, Freepool, NotInFreepool, for_each
from blazar.resources.hosts.aggregates.membership import AggregateNames
from blazar.resources.hosts.pci_aliases import NO_ALIASES, PciAliases
from blazar.resources.hosts.preemptibles import Preemptibles
from blazar.resources.instances.inventory import ReservationInventory
from blazar.resources.instances.reservation_flavor import (
    AFFINITY_ID,
    ReservationFlavor,
    ServerTemplate,
    flavor_name,
    group_of,
    specs_to_change,
)

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """The cloud ids of a reservation, and how many servers in the way of its capacity are still being deleted.

    At the start these are preemptible servers: while any is left, the project has no access to the flavor, nor while
    ``uncleaned`` devices of a host are missing.
    """

    cloud_ids: Content
    evicted: int
    uncleaned: Mapping[str, int] = field(default_factory=dict, hash=False)

    @property
    def missing(self) -> str:
        """Return what the capacity still lacks, in words; empty if nothing."""
        if self.evicted:
            return f"{spell_count(self.evicted, 'preemptible server')} being deleted"
        return ", ".join(f"{spell_count(n, 'device')} of {host} to be cleaned" for host, n in self.uncleaned.items())


class CapacityEnsurer:
    """Ensures what instance reservations have in the cloud."""

    def __init__(self, cloud: Cloud, names: AggregateNames, aliases: PciAliases = NO_ALIASES) -> None:
        self._compute = cloud.compute
        self._placement = cloud.placement
        self._flavor = ReservationFlavor(cloud.compute)
        self._names = names
        self._freepool = Freepool(cloud.compute, names)
        self._preemptibles = Preemptibles(cloud, aliases)

    def ensure_prerequisites(self, task: Task, template: ServerTemplate, *, starting: bool) -> Content:
        """Ensure everything that does not depend on hosts; return its cloud ids.

        A flavor that a project has access to is replaced only if the reservation is ``starting``.
        """
        group, affinity = self._ensure_flavor_and_group(task, template, starting=starting)
        if task.reservation.status is not ReservationStatus.ACTIVE:
            self._inventory(task).create_class()
        found = self._compute.aggregate(task.reservation.id)
        return _cloud_ids_of(task, group, self._ensure_aggregate(task, found, affinity))

    def open_capacity(self, task: Task, template: ServerTemplate, *, starting: bool, access: bool = True) -> Opened:
        """Ensure the prerequisites, the promised capacity on the hosts and nowhere else, and access to the flavor.

        ``access`` False leaves that to the caller. Raises Conflict if capacity to remove is in use, and NotAtHand.
        """
        (group, affinity), aggregates = side_by_side(
            lambda: self._ensure_flavor_and_group(task, template, starting=starting), self._compute.aggregates
        )
        found = aggregates.named(task.reservation.id)
        aggregate = self._ensure_aggregate(task, found, affinity)
        self._ensure_capacity(task, aggregate, aggregates)
        by_id = {str(resource.id): resource for resource in task.resources}
        left = sum(ask_each(by_id, self._preemptibles.make_room, callers=HOSTS_AT_A_TIME).values())
        uncleaned = {r.name: self._preemptibles.count_uncleaned(r) for r in task.resources} if starting else {}
        opened = Opened(_cloud_ids_of(task, group, aggregate), left, {host: n for host, n in uncleaned.items() if n})
        if access and not opened.missing:
            # Last, so that a project that can boot finds capacity.
            self._flavor.give_access(task, starting=starting)
        return opened

    def find_preempted(self, task: Task) -> Iterator[tuple[Resource, tuple[Server, ...]]]:
        """Yield the hosts of a reservation before its start, with the preemptible servers that this deletes."""
        for resource in task.resources:
            count = task.counts[resource.id]
            yield resource, self._preemptibles.find_surplus(resource, coming=task.reservation.id, count=count)

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return how much reserved capacity is in use on each host, by calendar id."""
        inventory = self._inventory(task)
        found = {resource.id: inventory.amount_in_use(resource) for resource in task.resources}
        return {id_: used for id_, used in found.items() if used is not None}

    def list_servers(self, task: Task) -> tuple[Server, ...]:
        """Return the reservation's servers, newest first, including those without a host."""
        reservation_id = task.reservation.id
        if self._compute.flavor(reservation_id) is not None:
            return self._compute.servers_of_flavor(reservation_id)
        # Somebody deleted the flavor; its servers still show its name.
        hosts = _hosts_of(task, self._compute.aggregate(reservation_id))
        on_hosts = (server for host in hosts for server in self._compute.servers_on(host))
        return tuple(server for server in on_hosts if server.flavor == flavor_name(reservation_id))

    def restore_capacity(self, task: Task, surplus: Collection[Resource], *, access: bool) -> Opened:
        """Ensure exactly the reserved capacity of ``task`` after a failed change; ``surplus`` came with the change.

        ``access``: and access to the flavor, which a transfer may have taken.

        A resource class or aggregate that somebody deleted meanwhile is created again. Servers that came with the
        change are deleted: those beyond what was promised on a host before, newest first. A server on a host on which
        nothing was promised, neither before nor by the change, was put there by an operator and stays. Hosts that
        Placement or Nova no longer knows are left out, so that the undo does not wait for them.
        """
        there = self._set_inventories_again(task)
        if left := self._delete_surplus_servers(task, surplus):
            return Opened(task.reservation.cloud_ids, left)
        try:
            aggregate = self._ensure_capacity_again(there)
        except NotInFreepool as error:
            LOG.warning("Reservation %s goes on without some of its hosts: %s", task.reservation.id, error.message)
            there = replace(there, resources=not_among(there.resources, error.reasons))
            aggregate = self._ensure_capacity_again(there)
        if access:
            self._flavor.give_access(task, starting=False)
        return Opened(_cloud_ids_of(task, group_of(task), aggregate), 0)

    def _set_inventories_again(self, task: Task) -> Task:
        """Set the inventories of ``task`` and return it without the hosts that Placement does not know."""
        inventory = self._inventory(task)
        inventory.create_class()
        lost = set()
        for resource in task.resources:
            try:
                inventory.set_total(resource.name, task.counts[resource.id])
            except NotFound as error:
                said = (task.reservation.id, resource.name, error.message)
                LOG.warning("Reservation %s has no reserved capacity on %s: %s", *said)
                lost.add(resource.id)
        return replace(task, resources=tuple(r for r in task.resources if r.id not in lost))

    def _delete_surplus_servers(self, task: Task, surplus: Collection[Resource]) -> int:
        """Delete the servers beyond what is promised on each host, newest first; return how many there were."""
        room = dict.fromkeys(service_names(surplus), 0)
        room |= {str(r.attributes["service_name"]): task.counts[r.id] for r in task.resources}
        left = 0
        for server in reversed(self.list_servers(task)):
            if server.host not in room:
                continue
            room[server.host] -= 1
            if room[server.host] < 0:
                self._compute.begin_server_deletion(server.id)
                left += 1
        return left

    def remove_capacity(self, task: Task) -> int:
        """Ensure that nothing is left; return how many servers are, as the rest stays until they are gone."""
        reservation_id = task.reservation.id
        self._flavor.take_access(reservation_id)
        servers = self.list_servers(task)
        for server in servers:
            self._compute.begin_server_deletion(server.id)
        if servers and (left := len(self.list_servers(task))):
            return left
        aggregate = self._compute.aggregate(reservation_id)
        in_use = self._drop_inventories(task, aggregate)
        # Checked again: one may have been booting when access was removed.
        if in_use or (servers := self.list_servers(task)):
            return in_use or len(servers)
        self._inventory(task).delete_class()
        for group in self._flavor.group_ids(task):
            self._flavor.delete_group(group)
        self._flavor.delete_flavor(reservation_id)
        if aggregate is not None:
            self._freepool.delete_sharing_aggregate(aggregate)
        return 0

    def reservations_in_cloud(self) -> frozenset[str]:
        """Return the ids of the reservations that have a flavor, a server group, an aggregate or a resource class."""
        names = [*self._compute.flavor_names().values(), *(group.name for group in self._compute.server_groups())]
        prefix = flavor_name("")
        aggregates = self._compute.aggregates()
        return frozenset(
            (
                *(name.removeprefix(prefix) for name in names if name.startswith(prefix)),
                *(a.name for a in aggregates if a.metadata.get("reservation") == a.name),
                *(
                    reservation_id_of(name)
                    for name in self._placement.resource_classes()
                    if name.startswith(CLASS_PREFIX)
                ),
            )
        )

    def _inventory(self, task: Task) -> ReservationInventory:
        starting = task.reservation.status is ReservationStatus.PENDING
        return ReservationInventory(self._placement, task.reservation.id, starting=starting)

    # Before the start

    def _ensure_flavor_and_group(
        self, task: Task, template: ServerTemplate, *, starting: bool
    ) -> tuple[str | None, Mapping[str, str]]:
        """Ensure what does not depend on hosts; return the server group, and the metadata that names it."""
        group = self._flavor.ensure_group(task, template.policy)
        affinity = {} if group is None else {AFFINITY_ID: group}
        self._flavor.ensure_flavor(task.reservation.id, template, affinity, starting=starting)
        # A start finds the class that the booking made; if somebody has deleted it, setting the totals makes it again.
        if task.reservation.status is ReservationStatus.ACTIVE:
            self._inventory(task).ensure_class(task.resources)
        return group, affinity

    def _ensure_aggregate(self, task: Task, found: Aggregate | None, affinity: Mapping[str, str]) -> Aggregate:
        """Ensure the reservation's aggregate; ``found`` is its last known state, None if it did not exist."""
        reservation_id, project_id = task.reservation.id, task.lease.project_id
        metadata = {
            "reservation": reservation_id,
            "filter_tenant_id": project_id,
            self._names.owner_key: project_id,
            **affinity,
        }
        if found is None:
            try:
                return self._compute.create_aggregate(reservation_id, None, metadata)
            except Conflict:
                found = self._compute.aggregate(reservation_id)
                if found is None:
                    raise
        changes = specs_to_change(found.metadata, metadata)
        if changes:
            self._compute.set_aggregate_metadata(found.id, changes)
        return found

    # While it is active

    def _ensure_capacity_again(self, task: Task) -> Aggregate:
        aggregates = self._compute.aggregates()
        found = aggregates.named(task.reservation.id)
        group = group_of(task)
        aggregate = self._ensure_aggregate(task, found, {} if group is None else {AFFINITY_ID: group})
        self._ensure_capacity(task, aggregate, aggregates)
        return aggregate

    def _ensure_capacity(self, task: Task, aggregate: Aggregate, aggregates: AggregateList) -> None:
        """Ensure the reserved capacity on the hosts, and these in the aggregate; ``aggregates`` were just read."""
        hosts = service_names(task.resources)
        self._freepool.share_hosts(aggregate, hosts=hosts, aggregates=aggregates)
        inventory = self._inventory(task)
        ask_each(
            {str(resource.id): resource for resource in task.resources},
            lambda resource: inventory.ensure_total(resource, task.counts[resource.id]),
            callers=HOSTS_AT_A_TIME,
        )
        leaving = [host for host in aggregate.hosts if host not in hosts]
        for host, hypervisor in self._hypervisor_names(leaving).items():
            if not inventory.delete_inventory(hypervisor):
                public = f"servers of reservation {task.reservation.id} are in the way of the change; delete them first"
                raise Conflict(
                    f"host {host} runs servers of reservation {task.reservation.id}; delete them first",
                    public=public,
                )
            self._freepool.stop_sharing_hosts(aggregate, hosts=(host,))

    # At the end

    def _drop_inventories(self, task: Task, aggregate: Aggregate | None) -> int:
        """Delete the reserved capacity on all hosts; return on how many it is in use."""
        names = {str(r.attributes["service_name"]): r.name for r in task.resources}
        hosts = _hosts_of(task, aggregate)
        others = self._hypervisor_names(host for host in hosts if host not in names)
        inventory = self._inventory(task)
        dropped = for_each(hosts, lambda host: inventory.delete_inventory(names.get(host) or others[host]))
        return sum(not is_gone for is_gone in dropped.values())

    def _hypervisor_names(self, hosts: Iterable[str]) -> Mapping[str, str]:
        """Return the hypervisor hostname for each service name; the service name itself if Nova does not know it."""
        wanted = set(hosts)
        if not wanted:
            return {}
        found = {h.service_name: h.hypervisor_hostname for h in self._compute.hypervisors()}
        return {host: found.get(host, host) for host in sorted(wanted)}


def _cloud_ids_of(task: Task, group: str | None, aggregate: Aggregate) -> Content:
    """Return the cloud ids to store."""
    return Content({"flavor_id": task.reservation.id, "aggregate_id": aggregate.id, "server_group_id": group})


def _hosts_of(task: Task, aggregate: Aggregate | None) -> list[str]:
    """Return the hosts on which the reservation may have capacity: before the start those in its aggregate."""
    inside = aggregate.hosts if aggregate else ()
    began = task.reservation.status is not ReservationStatus.PENDING
    return sorted({*inside, *(service_names(task.resources) if began else ())})
