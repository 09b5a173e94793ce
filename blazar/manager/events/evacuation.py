# SPDX-License-Identifier: Apache-2.0
"""Evacuation: servers of others leave the hosts of a lease before its start, or that is given up in time and undone."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.actions import Actions, EventWork, act_in_order
from blazar.manager.events.results import Finished, Result, Retry
from blazar.manager.leases import lifecycle
from blazar.model.base.reasons import Reason, ReasonCode, reason
from blazar.model.leases.lease import Event, Lease, reason_of, set_reason
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.resources.contract.evacuation import Elsewhere, MovedServer
from blazar.resources.contract.values import Task


def add_evacuation(lease: Lease, limit: timedelta, now: datetime) -> Lease:
    """Return a lease that is to be booked, with the event that makes room for it, given up at its end at the latest.

    It stands before the last event, which is the creation.
    """
    event = lifecycle.new_event(EventType.EVACUATE, min(now + limit, lease.window.end), now)
    *others, creation = lease.events
    return replace(lease, events=(*others, event, creation))


def is_given_up(lease: Lease, event: Event, now: datetime) -> bool:
    """Return whether it is too late to make room."""
    return now >= (event.time or lease.window.end)


def is_unfinished(lease: Lease) -> bool:
    """Return whether making room was begun for a lease, or was to be, and neither done nor given up."""
    event = lease.event(EventType.EVACUATE)
    return event is not None and not lifecycle.is_over(event)


def set_start_reason(lease: Lease, reason: Reason | None) -> Lease:
    """Return a lease whose start, which users see, says what it waits for, or why it never came."""
    start = lease.event(EventType.START)
    return lease if start is None else lifecycle.with_event(lease, set_reason(start, reason))


LOG = logging.getLogger(__name__)


class Evacuator:
    """Works on the event that makes room. It may be begun again at any point: the cloud says how far it has come."""

    def __init__(self, runtime: Runtime, actions: Actions) -> None:
        self._runtime = runtime
        self._actions = actions

    def make_room(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Empty the hosts of a lease; when that is given up, end what was begun, and return its resources."""
        now = self._runtime.clock.now()
        if is_given_up(lease, event, now):
            result = self._actions.end(lease, event, claim)
            if not isinstance(result, Finished):
                return result
            last = reason_of(event)
            text = f"no room was made in time: {last.text}" if last else "no room was made in time"
            LOG.warning("Lease %s is given up: %s", lease.id, text)
            return Finished(result.reservations, error=reason(text, ReasonCode.NO_ROOM_MADE), moved=self._moved(lease))
        tasks = self._runtime.tasks(lease, self._runtime.store.calendar.of_lease(lease.id))
        elsewhere = find_elsewhere(self._runtime)
        work = EventWork(lambda kind, task: kind.make_room(task, elsewhere), {}, then=None, tolerant=False)
        result = work.result_of(act_in_order(self._runtime, tasks, work, now), now)
        return replace(result, moved=self._moved(lease)) if isinstance(result, Finished) else result

    def retry(self, lease: Lease, event: Event, result: Retry, at: datetime) -> tuple[Lease, datetime]:
        """Try to make room again, until it is given up in time; until then the start says what it waits for."""
        if event.time is not None and self._runtime.clock.now() < event.time:
            at = min(at, event.time)
        return set_start_reason(lease, result.reason), at

    def delete(self, lease: Lease, event: Event, claim: Claim) -> Result:
        """Return all resources of a lease that is deleted, also while room is made for it."""
        result = self._actions.end(lease, event, claim)
        if isinstance(result, Finished) and is_unfinished(lease):
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


def find_elsewhere(runtime: Runtime) -> Elsewhere:
    """Return where servers must not be moved to: hosts that leases will have, and last those that they could have."""
    hosts = {host.id: host for host in runtime.store.resources.catalog(HOST).resources if host.evacuable}
    held = runtime.store.calendar.find_promised(hosts.keys())
    emptied = runtime.store.calendar.find_promised(held, status=LeaseStatus.IN_PROGRESS) if held else ()
    return Elsewhere(
        frozenset(host.name for id_, host in hosts.items() if id_ in held),
        frozenset(host.name for id_, host in hosts.items() if id_ not in held),
        tuple(hosts[id_] for id_ in sorted(emptied)),
    )
