# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers are told when they go: by metadata, which the server itself can read, and an image is begun.

The metadata say what was told, so that nothing else has to be kept for the cloud. An image is begun once, and nobody
waits for it: a start is never late because of a preemptible server.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from blazar.clouds.ports.compute import Compute, Server
from blazar.model.base.clock import zulu
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.leases.reservation import Content
from blazar.model.resources.resource import Resource
from blazar.model.use.preemption import PreemptedServer
from blazar.resources.contract.evacuation import Lends, Preempts
from blazar.resources.contract.parameters import service_names
from blazar.resources.contract.values import Action, Task
from blazar.resources.hosts.aggregates.membership import AggregateNames
from blazar.resources.hosts.aggregates.reservations import CLOSED
from blazar.resources.hosts.lending import HostLending, advise_lender, list_used
from blazar.resources.hosts.parameters import HostParameters
from blazar.resources.hosts.preemptibles import is_preemptible
from blazar.resources.hosts.snapshots import Snapshots

LOG = logging.getLogger(__name__)

ENDS_AT = "blazar:ends_at"
"""Metadata of a server: the instant at which it is deleted, as 2030-04-01T12:00:00Z."""

BEFORE_END = "blazar:before_end"
"""Metadata that the owner of a server sets: ``snapshot`` asks for an image before it goes."""


class PreemptionNotices:
    """Tells servers when they go."""

    def __init__(self, compute: Compute, snapshots: Snapshots) -> None:
        self._compute = compute
        self._snapshots = snapshots

    def give(self, resource: Resource, servers: Sequence[Server], ends_at: datetime) -> Iterator[PreemptedServer]:
        """Ensure that servers on a host say when they go, and that images are begun; yield those that exist."""
        text = zulu(ends_at)
        for server in servers:
            saved = server.metadata.get(BEFORE_END, "").strip().lower() == Action.SNAPSHOT
            if server.metadata.get(ENDS_AT) != text and not self._mark(server, text):
                continue
            if saved:
                # By the id of the server: of the reservation that needs its host, its owner knows nothing.
                tally = self._snapshots.ensure_images(server.id, (server,), project_id=server.project_id, since=None)
                for failure in tally.failures:
                    LOG.warning("Preemptible server %s goes at %s without an image: %s", server.id, text, failure)
            yield PreemptedServer(server.id, server.name, server.project_id, server.user_id, resource.id, saved)

    def _mark(self, server: Server, text: str) -> bool:
        """Set the instant; return False if the server is gone."""
        try:
            self._compute.set_server_metadata(server.id, {ENDS_AT: text})
        except NotFound:
            return False
        except (Conflict, CloudRefused) as error:
            # Its owner is told all the same; the next look tries again.
            LOG.info("Preemptible server %s cannot be marked as ending at %s: %s", server.id, text, error.message)
        return True

    def withdraw(self, server_ids: Collection[str]) -> None:
        """Ensure that servers no longer say when they go."""
        for id_ in server_ids:
            with suppress(NotFound, Conflict, CloudRefused):
                self._compute.set_server_metadata(id_, {ENDS_AT: None})


class HostPreemption:
    """Tells the preemptible servers on whole hosts, and keeps others away from then on."""

    def __init__(self, compute: Compute, names: AggregateNames, snapshots: Snapshots) -> None:
        self._compute = compute
        self._names = names
        self.notices = PreemptionNotices(compute, snapshots)

    def give_notice(self, task: Task, ends_at: datetime) -> Iterator[PreemptedServer]:
        """Close the hosts of a reservation that are in the freepool, and tell the preemptible servers there."""
        freepool = self._compute.aggregate(self._names.freepool)
        here = frozenset() if freepool is None else frozenset(freepool.hosts)
        hosts = [host for host in service_names(task.resources) if host in here]
        if freepool is not None:
            # One that returns to its zone may be closed already, by the reservation that had it.
            opened = {CLOSED + host: task.reservation.id for host in hosts if CLOSED + host not in freepool.metadata}
            if opened:
                self._compute.set_aggregate_metadata(freepool.id, opened)
        for resource in task.resources:
            host = str(resource.attributes["service_name"])
            if host in hosts:
                servers = [server for server in self._compute.servers_on(host) if is_preemptible(server)]
                yield from self.notices.give(resource, servers, ends_at)

    def withdraw_notice(self, resource: Resource, reservation_id: str, server_ids: Collection[str]) -> None:
        """Open a host that a reservation has closed, and have servers there no longer say when they go."""
        self.notices.withdraw(server_ids)
        freepool = self._compute.aggregate(self._names.freepool)
        key = CLOSED + str(resource.attributes["service_name"])
        if freepool is not None and freepool.metadata.get(key) == reservation_id:
            self._compute.set_aggregate_metadata(freepool.id, {key: None})


class HostNotices(Preempts):
    """What the type of whole hosts does for preemptible servers before a start."""

    _preempting: HostPreemption

    def give_notice(self, task: Task, ends_at: datetime) -> tuple[PreemptedServer, ...]:
        """Ensure that the preemptible servers on the hosts say when they go, and that no more are booted there."""
        return tuple(self._preempting.give_notice(task, ends_at))

    def withdraw_notice(self, resource: Resource, reservation_id: str, server_ids: Collection[str]) -> None:
        """Ensure that servers on a host no longer say when they go, and that a reservation does not close it."""
        self._preempting.withdraw_notice(resource, reservation_id, server_ids)


class HostLends(Lends):
    """How hosts of a reservation in use are lent."""

    _compute: Compute
    _lending: HostLending
    _preempting: HostPreemption

    def kept_from_lending(self, task: Task) -> int | None:
        """Return how many idle hosts are kept while others are lent; None if none are, as where servers are moved."""
        if self.action(task.reservation.parameters) is Action.MIGRATION:
            return None
        return HostParameters.of(task.reservation.parameters).kept_from_lending

    def advise_lender(self, task: Task) -> str:
        """Return how preemptible servers are sent away, as the end of a sentence; empty if nothing is lent."""
        return advise_lender(task)

    def list_unused(self, task: Task) -> frozenset[int]:
        """Return the hosts on which nothing runs but servers to which they are lent."""
        return frozenset(resource.id for resource in task.resources) - list_used(self._compute, task)

    def lend(self, task: Task, resources: Collection[Resource]) -> None:
        """Ensure that these hosts are open to preemptible servers, and no others of the reservation."""
        self._lending.open_hosts(task.reservation.id, service_names(resources))

    def recall(self, task: Task, resource: Resource, ends_at: datetime) -> tuple[PreemptedServer, ...]:
        """Ensure that the preemptible servers on a host say when they go."""
        guests = self._lending.list_guests(str(resource.attributes["service_name"]), task)
        return tuple(self._preempting.notices.give(resource, guests, ends_at))

    def take_back(self, task: Task, resource: Resource) -> int:
        """Ensure that the preemptible servers on a host go; return how many are still there."""
        return self._lending.delete_guests(str(resource.attributes["service_name"]), task)

    @abstractmethod
    def action(self, parameters: Content) -> Action:
        """Return what is done before the end."""
