# SPDX-License-Identifier: Apache-2.0
"""The work on lending: hosts that leases in use do not use are lent to preemptible servers, and taken back in time.

It is a part of the work on notices, and done in its turns: who is on a host that is taken back is told as before a
start. Each step is written before it is done in the cloud, and done again until it is so.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.runtime import Runtime, tasks_of
from blazar.model.base.errors import BlazarError
from blazar.model.base.values import dataclass
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.use.lending import LendingPlan, LendingRules, LentHost, plan_lending
from blazar.model.use.preemption import PreemptedPlace, Preemption
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


@dataclass(frozen=True, slots=True)
class Recall:
    """What a turn leads to: what was ``told``, and the hosts that are ``over``, as nobody lends them any more.

    Of what was told before, ``coming`` are the places that are still taken back, even if the cloud did not answer now,
    and ``gone`` those whose servers went with the lease, or with the host.
    """

    told: tuple[Preemption, ...]
    over: tuple[LentHost, ...]
    coming: frozenset[PreemptedPlace]
    gone: frozenset[PreemptedPlace]


class LendingWork:
    """Lends and takes back, as one of the managers at a time."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store.lending
        self._looked_at: datetime | None = None
        # Since when hosts are seen unused, by reservation: who begins to look waits as long as if it began then.
        self._idle: dict[str, dict[int, datetime]] = {}

    def progress(self, now: datetime, claim: Claim, known: Collection[Preemption]) -> Recall:
        """Lend and take back; return what servers on hosts that are taken back are told. ``end`` is called after."""
        rows = self._store.read()
        lenders = tuple(self._find_lenders(rows, now))
        lending = {lender.task.reservation.id for lender in lenders}
        # Of leases that are over: their end has emptied the hosts.
        over = [row for row in rows if row.reservation_id not in lending]
        told: list[Preemption] = []
        is_due = self._looked_at is None or now - self._looked_at >= LOOK
        if is_due:
            self._looked_at = now
            self._idle = {id_: since for id_, since in self._idle.items() if id_ in lending}
        for lender in lenders:
            try:
                with scope(limit=self._runtime.settings.poll_limit):
                    current = self._look(lender, now, claim) if is_due else lender
                    told.extend(self._tell(current, now))
                    over.extend(self._take_back(current, now))
            except BlazarError as error:
                LOG.warning("Reservation %s lends nothing more for now: %s", lender.task.reservation.id, error.message)
        gone = _find_places(known, over)
        return Recall(tuple(told), tuple(over), _find_places(known, rows) - gone, gone)

    def end(self, recall: Recall, now: datetime, claim: Claim) -> None:
        """Write that hosts are not lent any more, after what their servers were told is settled."""
        self._store.end(claim.token, recall.over, at=now)

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
                # Without notices nothing is lent, and what was lent before is taken back.
                keep = known.kept_from_lending(task) if self._runtime.settings.preemption_notice else None
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

    def _tell(self, lender: Lender, now: datetime) -> Iterator[Preemption]:
        """Ensure that servers on hosts that are taken back say when they go; yield what they were told."""
        reservation = lender.task.reservation
        for resource in lender.task.resources:
            lent = lender.lent.get(resource.id)
            if lent is not None and lent.ends_at is not None and lent.ends_at > now:
                for server in lender.type.recall(lender.task, resource, lent.ends_at):
                    yield Preemption(server, reservation.id, reservation.resource_type, lent.ends_at)

    def _take_back(self, lender: Lender, now: datetime) -> Iterator[LentHost]:
        """Ensure that servers go whose time is over; yield the hosts that are back."""
        resources = {resource.id: resource for resource in lender.task.resources}
        for id_, lent in lender.lent.items():
            # One that the reservation does not have any more was emptied when it was given away.
            if id_ not in resources:
                yield lent
                continue
            due = lent.ends_at is not None and lent.ends_at <= now
            if due and not lender.type.take_back(lender.task, resources[id_]):
                yield lent


def _find_places(told: Collection[Preemption], hosts: Collection[LentHost]) -> frozenset[PreemptedPlace]:
    """Return the places on these lent hosts of which servers were told."""
    pairs = {(host.reservation_id, host.resource_id) for host in hosts}
    return frozenset(p.place for p in told if (p.reservation_id, p.server.resource_id) in pairs)
