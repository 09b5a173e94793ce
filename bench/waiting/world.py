# SPDX-License-Identifier: Apache-2.0
"""A run with a waiting list: hours go by, leases end, requests come, and a pass plans when something has changed."""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from bench.waiting.baselines import by_hour_of, queueing, refusing
from bench.waiting.cloud import ZERO, Cloud, hosts, waiter_of
from bench.waiting.estimates import Estimates, Said
from bench.waiting.fairness import Shares
from bench.waiting.models import PROPERTY
from bench.waiting.traces import Parameters, trace, weights_of
from blazar.calendar.queue.overlay import count_totals
from blazar.calendar.queue.plan import order_waiters, plan_queue
from blazar.calendar.queue.usage import (
    ProjectUsage,
    Rates,
    UsedShare,
    charge_for_returned,
    expected_start,
    foresee_part,
    sum_use,
)
from blazar.calendar.queue.values import DAY, HOUR, Grant, Inventory, PlanBounds, Promise, QueuePlan, Waiter
from blazar.model.resources.resource import HOST, Resource

RECENT = 1000
"""Of how many leases that have ended last it is known how many ended early."""


@dataclass(slots=True)
class Figures:
    """What a run measures; shares are from 0 to 1, times in hours.

    ``out_of_turn``: requests that started on hosts that one before them, which fits, could have had instead.
    ``broken``: promises of which the start became later. ``unpromised``: requests older than the promise age that fit
    and have no promise after a pass. ``beyond_bound``: promises of a start after all that was booked had ended.
    ``in_order`` and ``easy`` are the utilizations of the queues of ``baselines``, with their longest waits.
    ``estimates_good``: requests whose first estimate was within a fifth of the wait, if all leases end as booked;
    ``estimates_half``, as known after half of the wait; ``estimates_expected``, with the part of early ends of late.
    ``hours_late``: by how much what was told first was later than what came true, on the average.
    ``fairness``: Jain's index of the mean uses for their weights of the projects that nearly always wait; how many
    these are is ``always_wait``.
    """

    utilization: float = 0.0
    refuse_only: float = 0.0
    in_order: float = 0.0
    easy: float = 0.0
    longest_wait_in_order: int = 0
    longest_wait_easy: int = 0
    served: float = 0.0
    served_refuse_only: float = 0.0
    requests: int = 0
    waiters: int = 0
    timed_out: int = 0
    withdrawn: int = 0
    promises: int = 0
    advances: int = 0
    out_of_turn: int = 0
    broken: int = 0
    unpromised: int = 0
    beyond_bound: int = 0
    longest_wait: int = 0
    longest_to_promise: int = 0
    estimates_good: float = 0.0
    estimates_half: float = 0.0
    estimates_expected: float = 0.0
    hours_late: float = 0.0
    hours_late_expected: float = 0.0
    fairness: float | None = None
    always_wait: int = 0
    passes: int = 0
    mean_pass_ms: float = 0.0
    worst_pass_ms: float = 0.0
    seconds: float = 0.0


class Waiting:
    """A run with a waiting list."""

    def __init__(self, p: Parameters, limits: PlanBounds) -> None:
        self.parameters, self.limits = p, limits
        self.rates = Rates(project_weights=weights_of(p))
        self.cloud = Cloud(p, hosts(p))
        self.of_model = _of_model(self.cloud.resources)
        self.requests = {request.id: request for request in trace(p)}
        self.totals = count_totals({HOST: Inventory(self.cloud.resources)})
        self.waiting: dict[str, Waiter] = {}
        self.promised: dict[str, Promise] = {}
        self.estimates = Estimates(since=ZERO + p.warm_up * DAY)
        self.ended: deque[tuple[UsedShare, int]] = deque(maxlen=RECENT)
        self.foreseen = 1.0
        self.least_promised: dict[str, int] = {}
        self.pieces: dict[str, dict[str, tuple[UsedShare, ...]]] = defaultdict(dict)
        self.figures = Figures(requests=len(self.requests))
        self.shares = Shares()
        self.served = 0

    def run(self) -> Figures:
        begun = time.process_time()
        by_hour = by_hour_of(list(self.requests.values()))
        leaves = defaultdict(list)
        for request in self.requests.values():
            if request.withdrawn is not None:
                leaves[request.withdrawn].append(request.id)
        for hour in range(self.parameters.days * 24):
            now = ZERO + hour * HOUR
            is_due = self._ends(now) or hour % 24 == 0
            for promise in [each for each in self.promised.values() if each.grant.start <= now]:
                del self.promised[promise.waiter.lease_id]
                self._begins(promise.waiter, promise.grant)
            for lease_id in leaves.get(hour, ()):
                is_due |= self._withdraws(lease_id, now)
            for waiter in [each for each in self.waiting.values() if each.last_start < now]:
                del self.waiting[waiter.lease_id]
                self.figures.timed_out += 1
                self.estimates.judge(waiter, None)
                is_due = True
            for request in by_hour.get(hour, ()):
                self.waiting[request.id] = waiter_of(self.parameters, request, self.parameters.patience)
            if self.waiting and (is_due or hour in by_hour) or (self.promised and is_due):
                self._pass(now)
        f = self.figures
        f.utilization = self.cloud.utilization
        f.served = self.served / max(f.requests, 1)
        e = self.estimates
        f.waiters = e.judged
        f.estimates_good, f.estimates_half, f.estimates_expected = (
            good / max(e.judged, 1) for good in (e.good, e.good_at_half, e.good_expected)
        )
        f.hours_late, f.hours_late_expected = (late / max(e.begun, 1) for late in (e.late, e.late_expected))
        f.fairness, f.always_wait = self.shares.fairness()
        f.mean_pass_ms /= max(f.passes, 1)
        f.seconds = time.process_time() - begun
        return f

    def _ends(self, now: int) -> bool:
        over = self.cloud.end(now)
        for grant in over:
            mine = self.pieces[self.requests[grant.lease_id].project]
            (piece,) = mine[grant.lease_id]
            self.ended.append((piece, now))
            mine[grant.lease_id] = charge_for_returned(piece, now, self.rates)
        if over:
            self.foreseen = foresee_part(self.ended)
        return bool(over)

    def _withdraws(self, lease_id: str, now: int) -> bool:
        """Take back a request that has not begun; return whether it was there."""
        promise = self.promised.pop(lease_id, None)
        waiter = promise.waiter if promise else self.waiting.pop(lease_id, None)
        if waiter is None:
            return False
        self.estimates.forget(lease_id)
        self.figures.withdrawn += 1
        if promise:
            mine = self.pieces[waiter.project_id]
            (piece,) = mine[lease_id]
            mine[lease_id] = charge_for_returned(piece, now, self.rates)
        return True

    def _begins(self, waiter: Waiter, grant: Grant) -> None:
        f = self.figures
        if grant.start > self.least_promised.get(waiter.lease_id, grant.start):
            f.broken += 1
        self.served += 1
        wait = (grant.start - max(waiter.earliest, waiter.queued_at)) // HOUR
        f.longest_wait = max(f.longest_wait, wait)
        self.cloud.begin(grant, self.requests[waiter.lease_id].real)
        self.estimates.judge(waiter, grant.start)

    def _pass(self, now: int) -> None:
        f = self.figures
        values = {project: self._use(project, now) for project in {w.project_id for w in self.waiting.values()}}
        usage = ProjectUsage(values, self.rates)
        if now >= ZERO + self.parameters.warm_up * DAY:
            self.shares.look(usage)
        waiting, promised = list(self.waiting.values()), list(self.promised.values())
        calendar = {HOST: self.cloud.inventory()}
        begun = time.process_time()
        done = plan_queue(calendar, waiting, promised, usage, self.totals, now, self.limits)
        took = (time.process_time() - begun) * 1000
        f.passes += 1
        f.mean_pass_ms += took
        f.worst_pass_ms = max(f.worst_pass_ms, took)
        order = order_waiters(waiting, usage, self.totals, now, self.limits)
        last = max([now, *(g.end for g, _ in self.cloud.running.values()), *(p.grant.end for p in promised)])
        self._tell(done, now)
        f.advances += len(done.advance)
        f.promises += len(done.promise)
        for grant in done.advance:
            promise = self.promised[grant.lease_id]
            if grant.start >= promise.grant.start:
                f.broken += 1
            self._book(promise.waiter, grant)
        for grant in done.promise:
            waiter = self.waiting.pop(grant.lease_id)
            f.longest_to_promise = max(f.longest_to_promise, (now - waiter.queued_at) // HOUR)
            # Those promised before it in the same pass are booked before it, too.
            f.beyond_bound += grant.start > max(last, waiter.earliest)
            last = max(last, grant.end)
            self._book(waiter, grant)
        for grant in done.start_now:
            waiter = self.waiting.pop(grant.lease_id)
            self.pieces[waiter.project_id][grant.lease_id] = (self._piece(grant),)
            self._begins(waiter, grant)
        self._audit(done, order, now)

    def _use(self, project: str, now: int) -> float:
        """Return the use of a project; what has faded to a thousandth is forgotten."""
        mine = self.pieces[project]
        for lease_id in [id_ for id_, pieces in mine.items() if pieces[-1].end < now - 10 * self.rates.half_life]:
            del mine[lease_id]
        return sum_use((piece for pieces in mine.values() for piece in pieces), now, self.rates)

    def _book(self, waiter: Waiter, grant: Grant) -> None:
        self.promised[waiter.lease_id] = Promise(waiter, grant)
        known = self.least_promised.get(waiter.lease_id, grant.start)
        self.least_promised[waiter.lease_id] = min(known, grant.start)
        self.pieces[waiter.project_id][waiter.lease_id] = (self._piece(grant),)

    def _piece(self, grant: Grant) -> UsedShare:
        return UsedShare(len(grant.parts) / len(self.of_model[self._model(grant.lease_id)]), grant.start, grant.end)

    def _model(self, lease_id: str) -> str:
        return self.requests[lease_id].model

    def _tell(self, done: QueuePlan, now: int) -> None:
        for grant in (*done.start_now, *done.promise, *done.advance):
            self._says(grant.lease_id, now, grant.start)
        for estimate in done.estimates:
            self._says(estimate.lease_id, now, estimate.start, in_time=estimate.in_time)

    def _says(self, lease_id: str, now: int, start: int | None, *, in_time: bool = True) -> None:
        wish = ZERO + self.requests[lease_id].wanted * HOUR
        expected = None if start is None else expected_start(wish, start, self.foreseen)
        self.estimates.says(lease_id, Said(now, start, expected, in_time))

    def _audit(self, done: QueuePlan, order: Sequence[Waiter], now: int) -> None:
        """Count who started out of turn, from the gaps of hosts, without the code of the plan."""
        left = [waiter for waiter in order if waiter.lease_id in self.waiting and waiter.earliest <= now]
        places = {grant.lease_id: grant for grant in done.placed}
        old = [w for w in left if now - w.queued_at >= self.limits.promise_age and w.lease_id in places]
        self.figures.unpromised += len(old)
        if not left or not done.start_now:
            return
        rank = {waiter.lease_id: place for place, waiter in enumerate(order)}
        taken = {part.resource_id for grant, _ in self.cloud.running.values() for part in grant.parts}
        for grant in done.start_now:
            others = taken - {part.resource_id for part in grant.parts}
            for waiter in left:
                if rank[waiter.lease_id] > rank[grant.lease_id]:
                    break
                before = [g for id_, g in places.items() if id_ in self.waiting and rank[id_] < rank[waiter.lease_id]]
                booked = [promise.grant for promise in self.promised.values()]
                met = {
                    part.resource_id
                    for other in (*booked, *before)
                    if other.start < now + waiter.shortest
                    for part in other.parts
                }
                mine = self.of_model[self._model(waiter.lease_id)]
                room = len(mine - others - met)
                self.figures.out_of_turn += room >= waiter.demands[0].min_count


def _of_model(resources: Iterable[Resource]) -> Mapping[str, set[int]]:
    """Return the ids of the hosts of each model."""
    found: dict[str, set[int]] = defaultdict(set)
    for resource in resources:
        found[str(resource.properties[PROPERTY])].add(resource.id)
    return found


def measured(p: Parameters, limits: PlanBounds) -> dict[str, float]:
    """Run all ways of serving the same requests."""
    figures = Waiting(p, limits).run()
    requests = trace(p)
    figures.refuse_only, figures.served_refuse_only = refusing(p, requests)
    if not p.ahead and p.models == 1:
        figures.in_order, figures.longest_wait_in_order = queueing(p, requests, fills=False)
        figures.easy, figures.longest_wait_easy = queueing(p, requests, fills=True)
    return asdict(figures)
