# SPDX-License-Identifier: Apache-2.0
"""Looks at the use of leases: what the cloud says, and what else stands in the way of a release."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import timedelta

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.lease import lifecycle, unused, watching
from blazar.manager.lease.watching import Looked
from blazar.model.errors import BlazarError, ClaimLost
from blazar.model.lease import Event, EventType, Lease, ReservationStatus
from blazar.model.unused import Usage, UsePolicy
from blazar.resources.base import Task

LOG = logging.getLogger(__name__)

LIMIT = timedelta(seconds=60)
"""How long the calls of one look may take; then it has found out nothing."""


class Looking:
    """Looks at leases."""

    def __init__(self, runtime: Runtime, read_ahead: ReadAhead) -> None:
        self._runtime = runtime
        self._read_ahead = read_ahead

    def policy(self, lease: Lease) -> UsePolicy | None:
        """Return the policy of a lease today; None if it is not looked at, or a type of it cannot be asked."""
        known = [self._runtime.types.get(r.resource_type) for r in lease.reservations]
        if any(each is None or not each.probes_use for each in known):
            return None
        names = frozenset(r.resource_type for r in lease.reservations)
        return self._runtime.settings.use_policies.of_lease(names, lease.project_id)

    def look(self, lease: Lease, event: Event, claim: Claim) -> Looked:
        """Return what is found now. Nothing of it is from before the claim."""
        tasks = self._read_ahead.tasks(lease)
        usage, detail = self._usage(tasks)
        watch = watching.watch_of(lease)
        due = leases = 0
        if watch is not None and watch.noticed_at is not None:
            due, leases = self._runtime.store.unused.releases(self._runtime.clock.now())
        brake = self._runtime.settings.use_policies.brake
        return Looked(usage, detail, _doubt(lease, tasks), due, leases, brake)

    def _usage(self, tasks: Collection[Task]) -> tuple[Usage, str]:
        found: list[Usage] = []
        said: list[str] = []
        with scope(limit=LIMIT):
            for task in tasks:
                usage, text = self._of(task)
                found.append(usage)
                said.append(f"{task.reservation.resource_type}: {text}")
                if usage in (Usage.USED, Usage.UNKNOWN):
                    # The others cannot change what comes of it.
                    break
        return unused.joint_usage(found), "; ".join(said)

    def _of(self, task: Task) -> tuple[Usage, str]:
        if task.reservation.status is not ReservationStatus.ACTIVE or not task.resources:
            return Usage.UNKNOWN, f"it is {task.reservation.status}"
        try:
            states = self._runtime.type_of(task.reservation).probe(task)
        except ClaimLost:
            raise
        except BlazarError as error:
            return Usage.UNKNOWN, error.message
        except Exception as error:
            # The edge of a probe: whatever fails in it, nothing was found out.
            LOG.exception("The use of reservation %s of lease %s is not known", task.reservation.id, task.lease.id)
            return Usage.UNKNOWN, f"internal error: {type(error).__name__}"
        if states is None:
            return Usage.UNKNOWN, "its type cannot tell"
        text = ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if count) or "nothing"
        return unused.usage_of(states), text


def _doubt(lease: Lease, tasks: Collection[Task]) -> str:
    """Return why a lease must not be released whatever is found; empty if nothing is known."""
    if lease.degraded or any(r.missing_resources or r.lost for r in lease.reservations):
        return "it is degraded"
    if any(r.status is not ReservationStatus.ACTIVE for r in lease.reservations):
        return "a part of it has not started"
    if any(resource.failure or resource.disabled for task in tasks for resource in task.resources):
        return "a resource of it has failed or is out of use"
    before_end = lease.event(EventType.BEFORE_END)
    if before_end is not None and (before_end.claimed_by or before_end.attempts or lifecycle.is_over(before_end)):
        return "what it does before its end has begun"
    return ""
