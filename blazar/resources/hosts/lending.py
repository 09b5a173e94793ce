# SPDX-License-Identifier: Apache-2.0
"""Hosts of a reservation in use that are lent to preemptible servers: as requests say it, and in the cloud.

A lent host stays in the aggregate of its reservation: its holder may boot there at any time, and an end of the lease
finds it as ever. A key in the metadata of the aggregate says to the scheduler filter that preemptible servers may run
there, too.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping

from blazar.clouds.ports.compute import Aggregate, Compute, Server
from blazar.model.base.errors import InvalidInput
from blazar.resources.contract.parameters import MOST, quote, service_names
from blazar.resources.contract.schemas import Schema
from blazar.resources.contract.values import Task
from blazar.resources.hosts.preemptibles import is_preemptible

LOG = logging.getLogger(__name__)

LEND = "lend_beyond"

LENT = "blazar:lent:"
"""Followed by a host's name, metadata key of the aggregate of its reservation; the scheduler filter reads the same."""

SCHEMA: Schema = {
    "type": ["integer", "null"],
    "minimum": 0,
    "maximum": MOST,
    "default": None,
    "title": "Lend idle hosts beyond",
    "description": "a whole number from 0; how many hosts that the lease does not use are kept, while preemptible "
    "servers of others may run on the rest, or null to lend none",
}


def read_lending(given: Mapping[str, object]) -> int | None:
    """Return how many idle hosts are kept while others are lent; None if none are. InvalidInput."""
    keep = given.get(LEND)
    if keep is None:
        return None
    if isinstance(keep, bool) or not isinstance(keep, int) or not 0 <= keep <= MOST:
        raise InvalidInput(
            f"{LEND} is {quote(keep)}; give a whole number from 0 to {MOST}, or null to lend nothing", at=f"/{LEND}"
        )
    return keep


def advise_lender(task: Task) -> str:
    """Return how preemptible servers leave hosts of a reservation, as the end of a sentence; empty if it lends none."""
    if read_lending(task.reservation.parameters.values) is None:
        return ""
    return f"; preemptible servers, to which idle hosts are lent, go with notice once {LEND} is null"


def find_guests(compute: Compute, servers: Iterable[Server], task: Task) -> frozenset[str]:
    """Return the ids of the servers on hosts of a reservation that are there only because these are lent.

    One call if any may be: preemptible servers of a project with which the reservation is shared are none.
    """
    project_id = task.lease.project_id
    others = [server for server in servers if is_preemptible(server) and server.project_id != project_id]
    aggregate = compute.aggregate(task.reservation.id) if others else None
    return list_guests(others, aggregate, project_id)


def without_guests(compute: Compute, servers: Iterable[Server], task: Task) -> tuple[Server, ...]:
    """Return the servers on hosts of a reservation but those to which a host is lent."""
    found = tuple(servers)
    guests = find_guests(compute, found, task)
    return tuple(server for server in found if server.id not in guests)


def list_used(compute: Compute, task: Task) -> frozenset[int]:
    """Return the hosts of a reservation on which servers run but those to which they are lent, by calendar id."""
    found = (server for host in service_names(task.resources) for server in compute.servers_on(host))
    used = {server.host for server in without_guests(compute, found, task)}
    return frozenset(r.id for r in task.resources if str(r.attributes["service_name"]) in used)


def list_guests(servers: Iterable[Server], aggregate: Aggregate | None, project_id: str) -> frozenset[str]:
    """Return the ids of the servers on a host of a reservation's aggregate to which its project has lent it."""
    lenders = {project_id, *(() if aggregate is None else aggregate.metadata)}
    return frozenset(s.id for s in servers if is_preemptible(s) and s.project_id not in lenders)


class HostLending:
    """Opens hosts of reservations to preemptible servers, and closes them again."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def open_hosts(self, reservation_id: str, hosts: Collection[str]) -> None:
        """Ensure that these hosts of a reservation are lent, and no others of it."""
        aggregate = self._compute.aggregate(reservation_id)
        if aggregate is None:
            return
        there = {key for key in aggregate.metadata if key.startswith(LENT)}
        wanted = {LENT + host for host in hosts if host in aggregate.hosts}
        changes = {**dict.fromkeys(sorted(wanted - there), "true"), **dict.fromkeys(sorted(there - wanted))}
        if changes:
            self._compute.set_aggregate_metadata(aggregate.id, changes)

    def list_guests(self, host: str, task: Task) -> tuple[Server, ...]:
        """Return the servers that are on a host because it is lent."""
        servers = self._compute.servers_on(host)
        guests = find_guests(self._compute, servers, task)
        return tuple(server for server in servers if server.id in guests)

    def delete_guests(self, host: str, task: Task) -> int:
        """Begin to delete the servers that are on a host because it is lent; return how many still exist."""
        guests = self.list_guests(host, task)
        for server in guests:
            self._compute.begin_server_deletion(server.id)
        return len(self.list_guests(host, task)) if guests else 0

    def evict(self, hosts: Collection[str], aggregate: Aggregate, guests: Collection[str]) -> int:
        """Close hosts that leave an aggregate, and begin to delete the guests there; return how many still exist."""
        if lent := {LENT + host: None for host in hosts if LENT + host in aggregate.metadata}:
            self._compute.set_aggregate_metadata(aggregate.id, lent)
        LOG.info("Hosts of reservation %s leave it: deleting preemptible servers %s", aggregate.name, sorted(guests))
        for server_id in sorted(guests):
            self._compute.begin_server_deletion(server_id)
        return sum(server.id in guests for host in hosts for server in self._compute.servers_on(host))
