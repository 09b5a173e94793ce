# SPDX-License-Identifier: Apache-2.0
"""What types tell of the use of their reservations: what is in use, and whether it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from blazar.clouds.ports.compute import Compute, Server
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import Resource
from blazar.model.use.policy import DEAD_STATES, IDLE_STATES
from blazar.resources.contract.values import Task

States = Mapping[str, int]
"""How many things are in each state, as ``{"ACTIVE": 3}``."""


MadeById = Mapping[str, Sequence[str]]
"""The ids of what reservations have made, by reservation id."""


class ReportsUse:
    """What a type tells of the use of its reservations. By default it knows of none."""

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return the count in use of each resource, by calendar id; what is in use is not replaced."""
        return {}

    def occupied(self, task: Task) -> Mapping[int, int]:
        """Return the count of what keeps each resource from being given up: what is in use, and what is lent."""
        return self.in_use(task)

    def users(self, task: Task, resource: Resource) -> tuple[str, ...]:
        """Return the ids of the servers on a resource of a reservation in use; of other projects none."""
        return ()

    def probe(self, task: Task) -> States | None:
        """Return how many things users have in a reservation in use, by state; empty if there is nothing at all.

        A state that is in neither ``DEAD_STATES`` nor ``IDLE_STATES`` of ``blazar.model.use.policy`` counts as used.
        What a cloud does not say must never look like nothing: then CloudUnavailable is raised. The calls are few: one
        list for a lease that is used. By default None: such leases are never released because nobody uses them.
        """
        return None

    def servers_in_use(self, task: Task) -> Collection[Server] | None:
        """Return all servers that keep a reservation in use; None if its use is not that of servers.

        Raises as for ``probe``: one that is missing is harmed. With ``[unused] source = prometheus`` they are measured.
        """
        return None

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which of the ids of what it has made the cloud does not have any more. CloudError.

        A list may be incomplete, as when a cell is down: what it lacks is looked up by its id, and only what the cloud
        then says it does not know is gone. ``_IDS_OF`` in ``blazar/model/leases/reservation.py`` says which cloud id
        has the ids; by default leases do not show what is made.
        """
        return frozenset()


def states_of(servers: Collection[Server]) -> States:
    """Return how many servers are in each state of Nova."""
    return Counter(server.status.upper() for server in servers)


def is_quiet(states: States) -> bool:
    """Return whether nothing of this runs."""
    return not any(count for state, count in states.items() if state not in DEAD_STATES | IDLE_STATES)


def servers_of_project(compute: Compute, lease: Lease, reservation_id: str) -> tuple[list[Server], list[Server]]:
    """Return the servers of a lease's project: those on hosts, and those on none that may be of a reservation."""
    servers = compute.servers_of_project(lease.project_id)
    on_hosts = [server for server in servers if server.host]
    # One that is being scheduled has no host yet; where hints are not shown, it may be of any reservation.
    nowhere = [s for s in servers if not s.host and (s.hints is None or reservation_id in s.hints)]
    return on_hosts, nowhere
