# SPDX-License-Identifier: Apache-2.0
"""Looks at the use of leases: what the cloud says, and what else stands in the way of a release."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import datetime, timedelta

from blazar.clouds.ports.compute import Server
from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.notifications import UNUSED_RELEASED, UNUSED_WARNING
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.read_ahead import ReadAhead
from blazar.manager.events.results import Retry
from blazar.manager.leases import lifecycle
from blazar.manager.use import unused, watch
from blazar.manager.use.watch import UsageFinding
from blazar.model.base.errors import BlazarError, ClaimLost
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.states import EventType, LeaseStatus, ReservationStatus
from blazar.model.use.policy import Usage, UsePolicy, UseStep
from blazar.resources.contract.probes import States, states_of
from blazar.resources.contract.values import Task

LOG = logging.getLogger(__name__)

LIMIT = timedelta(seconds=60)
"""How long the calls of one look may take; then it has found out nothing."""


class UsageChecker:
    """Checks whether leases are used."""

    def __init__(self, runtime: Runtime, read_ahead: ReadAhead) -> None:
        self._runtime = runtime
        self._read_ahead = read_ahead

    def policy(self, lease: Lease) -> UsePolicy | None:
        """Return the policy of a lease today; None if it is not looked at, or a type of it cannot be asked."""
        known = [self._runtime.types.get(r.resource_type) for r in lease.reservations]
        if any(type_ is None or not type_.has("probe") for type_ in known):
            return None
        names = frozenset(r.resource_type for r in lease.reservations)
        return self._runtime.settings.use_policies.of_lease(names, lease.project_id)

    def check_usage(self, lease: Lease, event: Event, claim: Claim) -> UsageFinding:
        """Return what is found now. Nothing of it is from before the claim."""
        tasks = self._read_ahead.tasks(lease)
        watched = watch.watch_of(lease)
        policy = self.policy(lease)
        # A lease keeps the policy that it started with; what is not measured any more today is not measured.
        measured = watched is not None and policy is not None and policy.idle_below is not None
        usage, detail = self._usage(tasks, watched.policy.idle_below if watched is not None and measured else None)
        due = leases = 0
        if watched is not None and watched.noticed_at is not None:
            due, leases = self._runtime.store.unused.count_releases(self._runtime.clock.now())
        brake = self._runtime.settings.use_policies.brake
        return UsageFinding(usage, detail, _doubt(lease, tasks), due, leases, brake)

    def arm(self, lease: Lease, now: datetime) -> Lease:
        """Return a lease whose start is over, with its first look if it is in use and has a policy."""
        return watch.arm(lease, self.policy(lease), now)

    def conclude(self, lease: Lease, event: Event, result: UsageFinding | Retry, now: datetime) -> Lease:
        """Return the lease after a look; one that failed has found out nothing."""
        if (until := watch.postponed_until(lease, now)) is not None:
            return watch.postpone_check(lease, event, until)
        if lease.status is not LeaseStatus.ACTIVE:
            return lifecycle.abandon(lease, event, now=now)
        finding = result if isinstance(result, UsageFinding) else UsageFinding(Usage.UNKNOWN, result.reason.text)
        return watch.apply_finding(lease, event, self.policy(lease), finding, now)

    def notify(self, lease: Lease) -> None:
        """Send what a look has led to."""
        match watch.last_step(lease):
            case UseStep.WARNED | UseStep.NOTICED:
                LOG.info(
                    "Lease %s is not used, and will be released at %s", lease.id, lease.use and lease.use.release_at
                )
                self._runtime.notifier.notify(UNUSED_WARNING, lease)
            case UseStep.RELEASED:
                LOG.warning("Lease %s is released, because it is not used", lease.id)
                self._runtime.notifier.notify(UNUSED_RELEASED, lease)
                self._runtime.signals.events_due()
            case UseStep.HELD_BACK:
                LOG.error("Lease %s is not released: too many would be in one hour, so a probe may be broken", lease.id)

    def _usage(self, tasks: Collection[Task], bound: float | None) -> tuple[Usage, str]:
        found: list[Usage] = []
        said: list[str] = []
        with scope(limit=LIMIT):
            for task in tasks:
                usage, text = self._of(task, bound)
                found.append(usage)
                said.append(f"{task.reservation.resource_type}: {text}")
                if usage in (Usage.USED, Usage.UNKNOWN):
                    # The others cannot change what comes of it.
                    break
        return unused.joint_usage(found), "; ".join(said)

    def _of(self, task: Task, bound: float | None) -> tuple[Usage, str]:
        if task.reservation.status is not ReservationStatus.ACTIVE or not task.resources:
            return Usage.UNKNOWN, f"it is {task.reservation.status}"
        try:
            known = self._runtime.type_of(task.reservation)
            if bound is not None and (servers := known.servers_in_use(task)) is not None:
                return self._measured(servers, bound)
            states = known.probe(task)
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
        return unused.usage_of(states), _text(states)

    def _measured(self, servers: Collection[Server], bound: float) -> tuple[Usage, str]:
        """Return the usage of servers, of which those that run are measured if nothing else keeps the lease."""
        running = frozenset(server.id for server in servers if server.status.upper() == "ACTIVE")
        others = [server for server in servers if server.id not in running]
        if not running or unused.usage_of(states_of(others)) is Usage.USED:
            return unused.usage_of(states_of(servers)), _text(states_of(servers))
        values = self._runtime.metrics.measure_servers(running)
        below = sum(values[id_] < bound for id_ in running & values.keys())
        unknown = len(running - values.keys())
        text = f"{below} of {len(running)} that run below {bound:g}" + (f", {unknown} unknown" if unknown else "")
        return unused.measured_usage(servers, values, bound), f"{_text(states_of(servers))} ({text})"


def _text(states: States) -> str:
    return ", ".join(f"{count} {state}" for state, count in sorted(states.items()) if count) or "nothing"


def _doubt(lease: Lease, tasks: Collection[Task]) -> str:
    """Return why a lease must not be released whatever is found; empty if nothing is known."""
    if lease.degraded or any(r.missing_resources or r.lost_ids for r in lease.reservations):
        return "it is degraded"
    if any(r.status is not ReservationStatus.ACTIVE for r in lease.reservations):
        return "a part of it has not started"
    if any(resource.failure or resource.disabled for task in tasks for resource in task.resources):
        return "a resource of it has failed or is out of use"
    before_end = lease.event(EventType.BEFORE_END)
    if before_end is not None and (before_end.claimed_by or before_end.attempts or lifecycle.is_over(before_end)):
        return "what it does before its end has begun"
    return ""
