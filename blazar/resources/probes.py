# SPDX-License-Identifier: Apache-2.0
"""The capability of types that can tell what users have in a reservation, and whether it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Protocol, runtime_checkable

from blazar.clouds.ports import Compute, Server
from blazar.model.lease import Lease
from blazar.model.resource import Resource
from blazar.model.unused import DEAD_STATES, IDLE_STATES
from blazar.resources.base import Task

States = Mapping[str, int]
"""How many things are in each state, as ``{"ACTIVE": 3}``."""


@runtime_checkable
class ProbesUse(Protocol):
    """A type that can tell whether a reservation is used. Without it leases that have one are never released."""

    def probe(self, task: Task) -> States:
        """Return how many things users have in a reservation in use, by state; empty if there is nothing at all.

        A state that is in neither ``DEAD_STATES`` nor ``IDLE_STATES`` of ``blazar.model.unused`` counts as used. What a
        cloud does not say must never look like nothing: then CloudUnavailable is raised. The calls are few: one list
        for a lease that is used.
        """


@runtime_checkable
class NamesUsers(Protocol):
    """A type that can name what runs on one of its resources. Without it nobody is told what is in the way."""

    def users(self, task: Task, resource: Resource) -> tuple[str, ...]:
        """Return the ids of the servers on a resource of a reservation in use; of other projects none."""


@runtime_checkable
class ListsServers(Protocol):
    """A type whose use is that of servers, each of which can be measured."""

    def servers_in_use(self, task: Task) -> Collection[Server]:
        """Return all servers that keep a reservation in use. Raises as for ``probe``: one that is missing is harmed."""


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
