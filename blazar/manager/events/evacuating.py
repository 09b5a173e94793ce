# SPDX-License-Identifier: Apache-2.0
"""Makes room for a lease: servers of others leave its hosts, or that is given up in time and undone."""

from __future__ import annotations

import logging
from dataclasses import replace

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.acting import Actions, Work, act_in_order
from blazar.manager.events.results import Finished, Result
from blazar.manager.lease import making_room
from blazar.model.event_reasons import reason_of
from blazar.model.lease import Event, Lease, LeaseStatus
from blazar.model.reasons import ReasonCode, reason
from blazar.model.resource import HOST
from blazar.resources.base import Task
from blazar.resources.making_room import Elsewhere, MovedServer

LOG = logging.getLogger(__name__)


class Evacuating:
    """Works on the event that makes room. It may be begun again at any point: the cloud says how far it has come."""

    def __init__(self, runtime: Runtime, actions: Actions) -> None:
        self._runtime = runtime
        self._actions = actions

    def make_room(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Empty the hosts of a lease; when that is given up, end what was begun, and return its resources."""
        now = self._runtime.clock.now()
        if making_room.is_given_up(lease, event, now):
            result = self._actions.end(lease, event, claim)
            if not isinstance(result, Finished):
                return result
            last = reason_of(event)
            text = f"no room was made in time: {last.text}" if last else "no room was made in time"
            LOG.warning("Lease %s is given up: %s", lease.id, text)
            return Finished(result.reservations, error=reason(text, ReasonCode.NO_ROOM_MADE), moved=self._moved(lease))
        tasks = self._runtime.tasks(lease, self._runtime.store.calendar.of_lease(lease.id))
        elsewhere = elsewhere_of(self._runtime)
        work = Work(lambda kind, task: kind.make_room(task, elsewhere), {}, then=None, tolerant=False)
        result = work.result_of(act_in_order(self._runtime, tasks, work, now), now)
        return replace(result, moved=self._moved(lease)) if isinstance(result, Finished) else result

    def delete(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Return all resources of a lease that is deleted, also while room is made for it."""
        result = self._actions.end(lease, event, claim)
        if isinstance(result, Finished) and making_room.is_unfinished(lease):
            return replace(result, moved=self._moved(lease))
        return result

    def _moved(self, lease: Lease) -> tuple[MovedServer, ...]:
        """Return the servers that were moved away for a lease, off hosts that it has lost meanwhile, too."""
        held = self._runtime.store.calendar.ever_assigned(lease.id)
        resources = self._runtime.store.resources.by_ids(frozenset().union(*held.values()))
        found: dict[str, MovedServer] = {}
        for r in lease.reservations:
            task = Task(lease, r, tuple(resources[id_] for id_ in sorted(held.get(r.id, ()))))
            found |= {server.id: server for server in self._runtime.type_of(r).moved(task)}
        return tuple(found.values())


def elsewhere_of(runtime: Runtime) -> Elsewhere:
    """Return where servers must not be moved to: hosts that leases will have, and last those that they could have."""
    hosts = {host.id: host for host in runtime.store.resources.catalog(HOST).resources if host.evacuable}
    held = runtime.store.calendar.held(hosts.keys())
    emptied = runtime.store.calendar.held(held, status=LeaseStatus.IN_PROGRESS) if held else ()
    return Elsewhere(
        frozenset(host.name for id_, host in hosts.items() if id_ in held),
        frozenset(host.name for id_, host in hosts.items() if id_ not in held),
        tuple(hosts[id_] for id_ in sorted(emptied)),
    )
