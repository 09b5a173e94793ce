# SPDX-License-Identifier: Apache-2.0
"""The work on lending: hosts that leases in use do not use are lent to preemptible servers, and taken back in time.

It is a part of the work on notices, and done in its turns: who is on a host that is taken back is told as before a
start. Each step is written before it is done in the cloud, and done again until it is so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime, tasks_of
from blazar.model.base.errors import BlazarError
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.use.lending import LendingPlan, LendingRules, LentHost, plan_lending
from blazar.model.use.preemption import Preemption
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Task

LOG = logging.getLogger(__name__)

LOOK = timedelta(minutes=1)
"""The time between two looks at who uses what, which costs a call for each host of a lease that lends."""


@dataclass(frozen=True, slots=True)
class Lender:
    """A reservation that lends hosts, or has lent some; ``keep`` None: it lends no more of them."""

    task: Task
    type: ResourceType
    keep: int | None
    lent: Mapping[int, LentHost]


class LendingWork:
    """Lends and takes back, as one of the managers at a time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store.lending
        self._looked_at: datetime | None = None
        # Since when hosts are seen unused, by reservation: who begins to look waits as long as if it began then.
        self._idle: dict[str, dict[int, datetime]] = {}

    def progress(self, now: datetime, claim: Claim) -> Iterator[Preemption]:
        """Lend and take back; yield what servers on hosts that are taken back are told."""
        rows = self._store.read()
        lenders = tuple(self._find_lenders(rows, now))
        known = {lender.task.reservation.id for lender in lenders}
        # Of leases that are over: their end has emptied the hosts.
        self._store.end(claim.token, [row for row in rows if row.reservation_id not in known], at=now)
        is_due = self._looked_at is None or now - self._looked_at >= LOOK
        if is_due:
            self._looked_at = now
            self._idle = {id_: since for id_, since in self._idle.items() if id_ in known}
        for lender in lenders:
            try:
                with scope(limit=self._runtime.settings.poll_limit):
                    current = self._look(lender, now, claim) if is_due else lender
                    yield from self._take_back(current, now, claim)
            except BlazarError as error:
                LOG.warning("Reservation %s lends nothing more for now: %s", lender.task.reservation.id, error.message)

    def _find_lenders(self, rows: tuple[LentHost, ...], now: datetime) -> Iterator[Lender]:
        ids = self._store.list_lenders({row.reservation_id for row in rows})
        found = self._runtime.store.leases.load_starts(ids, now=now) if ids else {}
        for seen in found.values():
            if seen.lease.status in (LeaseStatus.TERMINATED, LeaseStatus.DELETING):
                continue
            for task in tasks_of(seen.lease, seen.allocations, seen.resources):
                lent = {row.resource_id: row for row in rows if row.reservation_id == task.reservation.id}
                known = self._runtime.types.get(task.reservation.resource_type)
                if known is None or task.reservation.status is not ReservationStatus.ACTIVE:
                    continue
                keep = known.kept_from_lending(task)
                if lent or keep is not None:
                    yield Lender(task, known, keep, lent)

    def _look(self, lender: Lender, now: datetime, claim: Claim) -> Lender:
        """Decide what is lent and taken back, write it, and have it so; return how it is then."""
        task = lender.task
        unused = lender.type.list_unused(task)
        before = self._idle.get(task.reservation.id, {})
        idle = {id_: before.get(id_, now) for id_ in unused}
        self._idle[task.reservation.id] = idle
        plan = self._plan(lender, idle, now)
        after = dict(lender.lent)
        after |= {id_: LentHost(task.reservation.id, id_, now) for id_ in plan.lent}
        for id_, ends_at in plan.recalled.items():
            after[id_] = LentHost(task.reservation.id, id_, after[id_].since, ends_at)
        self._store.write(claim.token, [after[id_] for id_ in (*plan.lent, *plan.recalled)])
        lender.type.lend(task, [r for r in task.resources if r.id in after and after[r.id].ends_at is None])
        if plan.lent or plan.recalled:
            counts = len(plan.lent), len(plan.recalled)
            LOG.info("Reservation %s lends %d hosts more, and takes back %d", task.reservation.id, *counts)
        return Lender(task, lender.type, lender.keep, after)

    def _plan(self, lender: Lender, idle: Mapping[int, datetime], now: datetime) -> LendingPlan:
        settings, task = self._runtime.settings, lender.task
        rules = LendingRules(lender.keep, settings.lend_after, settings.preemption_notice)
        # So that the look which takes the last ones back comes a whole notice before the end.
        until = task.lease.window.end - 2 * LOOK
        hosts = frozenset(resource.id for resource in task.resources)
        return plan_lending(hosts, idle, lender.lent, rules, now=now, until=until)

    def _take_back(self, lender: Lender, now: datetime, claim: Claim) -> Iterator[Preemption]:
        task, over = lender.task, []
        reservation = task.reservation
        resources = {resource.id: resource for resource in task.resources}
        for id_, lent in lender.lent.items():
            if id_ not in resources:
                # It was given away, and emptied before.
                over.append(lent)
            elif lent.ends_at is not None and lent.ends_at > now:
                for server in lender.type.recall(task, resources[id_], lent.ends_at):
                    yield Preemption(server, reservation.id, reservation.resource_type, lent.ends_at)
            elif lent.ends_at is not None and not lender.type.take_back(task, resources[id_]):
                over.append(lent)
        self._store.end(claim.token, over, at=now)
