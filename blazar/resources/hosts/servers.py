# SPDX-License-Identifier: Apache-2.0
"""What the type of whole hosts does with the servers on them: tells of their use, and moves them away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from blazar.calendar.evacuation.values import EvacuationPlan, NotEnough
from blazar.clouds.ports.compute import Compute, Server
from blazar.model.resources.resource import Resource
from blazar.resources.contract.evacuation import Elsewhere, Evacuates, Load, MovedServer, MovesServers, Pace
from blazar.resources.contract.parameters import service_names
from blazar.resources.contract.probes import ReportsUse, States, is_quiet, servers_of_project, states_of
from blazar.resources.contract.values import Progress, Task
from blazar.resources.hosts.evacuation import Emptying
from blazar.resources.hosts.lending import list_used, without_guests
from blazar.resources.hosts.options import HostSettings


class WholeHostUse(ReportsUse):
    """The use of whole hosts: the servers on them, and those booted into the reservation."""

    _compute: Compute

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each host that runs servers but those to which it is lent, by calendar id."""
        return dict.fromkeys(list_used(self._compute, task), 1)

    def occupied(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each host that runs servers, also of those to whom it is lent."""
        return dict.fromkeys((resource.id for resource in task.resources if self._on_host(resource)), 1)

    def _on_host(self, resource: Resource) -> tuple[Server, ...]:
        return self._compute.servers_on(str(resource.attributes["service_name"]))

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
        found = (server for host in hosts for server in self._compute.servers_on(host))
        return {server.id: server for server in without_guests(self._compute, found, task)}


class HostMoves(Evacuates, MovesServers):
    """How servers leave whole hosts: those of others for a lease, and those of a lease before a maintenance window."""

    _settings: HostSettings
    _emptying: Emptying

    @property
    def room_limit(self) -> timedelta:
        """Return how long it may take to empty hosts."""
        return self._settings.evacuation.rules.limit

    def plan_room(
        self, resources: Collection[Resource], needed: int, elsewhere: Elsewhere
    ) -> EvacuationPlan | NotEnough:
        """Return how so many of these hosts are emptied of the servers of others, or why that cannot be."""
        return self._emptying.plan_evacuation(resources, needed, elsewhere)

    def make_room(self, task: Task, elsewhere: Elsewhere) -> Progress:
        """Ensure that the evacuable hosts are in the freepool and empty."""
        return self._emptying.make_room(task, elsewhere)

    def moved(self, task: Task) -> tuple[MovedServer, ...]:
        """Return the servers of others that were moved off the evacuable hosts since the lease was made."""
        return self._emptying.moved_servers(task)

    @property
    def pace(self) -> Pace:
        """Return how servers of reservations in use are moved."""
        rules = self._settings.evacuation.rules
        return Pace(self._settings.evacuation.lead, rules.limit, max(1, rules.in_all // rules.per_host))

    def load(self, task: Task, resource: Resource) -> Load:
        """Return what the servers on a host have together, or why they cannot be moved."""
        return self._emptying.load_of_host(task, resource)

    def move_servers(self, task: Task, source: Resource, target: Resource, since: datetime) -> Progress:
        """Ensure that the servers of a host move to another one of the reservation."""
        return self._emptying.move_servers_within(task, source, target, since)

    def stop_moving(self, task: Task, source: Resource) -> Progress:
        """Ensure that no server moves from a host any more."""
        return self._emptying.stop_moves([source])
