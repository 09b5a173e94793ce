# SPDX-License-Identifier: Apache-2.0
"""A run with a waiting list: hours go by, leases end, requests come, and a pass plans when something has changed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bench.waiting.baselines import by_hour_of, queueing, refusing
from bench.waiting.cloud import ZERO, Cloud, hosts, waiter_of
from bench.waiting.fairness import Shares
from bench.waiting.traces import Parameters, trace
from blazar.calendar.queue.overlay import totals_of
from blazar.calendar.queue.plan import in_order, plan
from blazar.calendar.queue.usage import Piece, Rates, Usage, given_back, used
from blazar.calendar.queue.values import DAY, HOUR, Grant, Inventory, Limits, Plan, Promise, Waiter
from blazar.model.resource import HOST

RATES = Rates()


@dataclass(slots=True)
class Figures:
    """What a run measures; shares are from 0 to 1, times in hours.

    ``out_of_turn``: requests that started on hosts that one before them, which fits, could have had instead.
    ``broken``: promises of which the start became later. ``unpromised``: requests older than the promise age that fit
    and have no promise after a pass. ``beyond_bound``: promises of a start after all that was booked had ended.
    ``in_order`` and ``easy`` are the utilizations of the queues of ``baselines``, with their longest waits.
    ``estimates_half``: as ``estimates_good``, but what was known after half of the wait. ``fairness``: Jain's index of
    the mean uses of the projects that nearly always wait, how many these are is ``always_wait``.
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
    fairness: float | None = None
    always_wait: int = 0
    passes: int = 0
    mean_pass_ms: float = 0.0
    worst_pass_ms: float = 0.0
    seconds: float = 0.0


class Waiting:
    """A run with a waiting list."""

    def __init__(self, p: Parameters, limits: Limits) -> None:
        self.parameters, self.limits = p, limits
        self.cloud = Cloud(p, hosts(p.hosts))
        self.requests = {request.id: request for request in trace(p)}
        self.totals = totals_of({HOST: Inventory(self.cloud.resources)})
        self.waiting: dict[str, Waiter] = {}
        self.promised: dict[str, Promise] = {}
        self.said: dict[str, list[tuple[int, int | None, bool]]] = {}
        self.least_promised: dict[str, int] = {}
        self.pieces: dict[str, dict[str, tuple[Piece, ...]]] = defaultdict(dict)
        self.figures = Figures(requests=len(self.requests))
        self.shares = Shares()
        self.good = self.good_at_half = self.judged = self.served = 0

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
                self._judge(waiter, None)
                is_due = True
            for request in by_hour.get(hour, ()):
                self.waiting[request.id] = waiter_of(request, self.parameters.patience)
            if self.waiting and (is_due or hour in by_hour) or (self.promised and is_due):
                self._pass(now)
        f = self.figures
        f.utilization = self.cloud.utilization
        f.served = self.served / max(f.requests, 1)
        f.estimates_good = self.good / max(self.judged, 1)
        f.estimates_half = self.good_at_half / max(self.judged, 1)
        f.waiters = self.judged
        f.fairness, f.always_wait = self.shares.fairness()
        f.mean_pass_ms /= max(f.passes, 1)
        f.seconds = time.process_time() - begun
        return f

    def _ends(self, now: int) -> bool:
        over = self.cloud.end(now)
        for grant in over:
            mine = self.pieces[self.requests[grant.lease_id].project]
            if grant.end > now:
                (piece,) = mine[grant.lease_id]
                mine[grant.lease_id] = given_back(piece, now, RATES)
        return bool(over)

    def _withdraws(self, lease_id: str, now: int) -> bool:
        """Take back a request that has not begun; return whether it was there."""
        promise = self.promised.pop(lease_id, None)
        waiter = promise.waiter if promise else self.waiting.pop(lease_id, None)
        if waiter is None:
            return False
        self.said.pop(lease_id, None)
        self.figures.withdrawn += 1
        if promise:
            mine = self.pieces[waiter.project_id]
            (piece,) = mine[lease_id]
            mine[lease_id] = given_back(piece, now, RATES)
        return True

    def _begins(self, waiter: Waiter, grant: Grant) -> None:
        f = self.figures
        if grant.start > self.least_promised.get(waiter.lease_id, grant.start):
            f.broken += 1
        self.served += 1
        wait = (grant.start - max(waiter.earliest, waiter.queued_at)) // HOUR
        f.longest_wait = max(f.longest_wait, wait)
        self.cloud.begin(grant, self.requests[waiter.lease_id].real)
        self._judge(waiter, grant.start)

    def _judge(self, waiter: Waiter, start: int | None) -> None:
        """Compare what was said first with what came true; those who got their wish at once were told nothing."""
        told = self.said.pop(waiter.lease_id, ())
        if not told or told[0][1] is None or told[0][0] < ZERO + self.parameters.warm_up * DAY:
            return
        wish = max(waiter.earliest, waiter.queued_at)
        if told[0][1] == start == wish:
            return
        half = wish + ((waiter.last_start if start is None else start) - wish) // 2
        self.judged += 1
        self.good += _is_good(told[0], start, wish)
        self.good_at_half += _is_good([each for each in told if each[0] <= max(half, told[0][0])][-1], start, wish)

    def _pass(self, now: int) -> None:
        f = self.figures
        values = {project: self._use(project, now) for project in {w.project_id for w in self.waiting.values()}}
        if now >= ZERO + self.parameters.warm_up * DAY:
            self.shares.look(values)
        usage = Usage(values, RATES)
        waiting, promised = list(self.waiting.values()), list(self.promised.values())
        calendar = {HOST: self.cloud.inventory()}
        begun = time.process_time()
        done = plan(calendar, waiting, promised, usage, self.totals, now, self.limits)
        took = (time.process_time() - begun) * 1000
        f.passes += 1
        f.mean_pass_ms += took
        f.worst_pass_ms = max(f.worst_pass_ms, took)
        order = in_order(waiting, usage, self.totals, now, self.limits)
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
            self.pieces[waiter.project_id][grant.lease_id] = (_piece(self.parameters, grant),)
            self._begins(waiter, grant)
        self._audit(done, order, now)

    def _use(self, project: str, now: int) -> float:
        """Return the use of a project; what has faded to a thousandth is forgotten."""
        mine = self.pieces[project]
        for lease_id in [id_ for id_, pieces in mine.items() if pieces[-1].end < now - 10 * RATES.half_life]:
            del mine[lease_id]
        return used((piece for pieces in mine.values() for piece in pieces), now, RATES)

    def _book(self, waiter: Waiter, grant: Grant) -> None:
        self.promised[waiter.lease_id] = Promise(waiter, grant)
        known = self.least_promised.get(waiter.lease_id, grant.start)
        self.least_promised[waiter.lease_id] = min(known, grant.start)
        self.pieces[waiter.project_id][waiter.lease_id] = (_piece(self.parameters, grant),)

    def _tell(self, done: Plan, now: int) -> None:
        for grant in (*done.start_now, *done.promise, *done.advance):
            self._says(grant.lease_id, now, grant.start, True)
        for estimate in done.estimates:
            self._says(estimate.lease_id, now, estimate.start, estimate.in_time)

    def _says(self, lease_id: str, now: int, start: int | None, in_time: bool) -> None:
        told = self.said.setdefault(lease_id, [])
        if not told or told[-1][1:] != (start, in_time):
            told.append((now, start, in_time))

    def _audit(self, done: Plan, order: Sequence[Waiter], now: int) -> None:
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
                room = sum(r.id not in others and r.id not in met for r in self.cloud.resources)
                self.figures.out_of_turn += room >= waiter.demands[0].min_count


def _is_good(told: tuple[int, int | None, bool], start: int | None, wish: int) -> bool:
    """Return whether what was told came true: the start within a fifth of the wait, or that there will be none."""
    _, said, in_time = told
    if start is None:
        return not in_time
    return said is not None and abs(said - start) <= 0.2 * (start - wish)


def _piece(p: Parameters, grant: Grant) -> Piece:
    return Piece(len(grant.parts) / p.hosts, grant.start, grant.end)


def measured(p: Parameters, limits: Limits) -> dict[str, float]:
    """Run all ways of serving the same requests."""
    figures = Waiting(p, limits).run()
    requests = trace(p)
    figures.refuse_only, figures.served_refuse_only = refusing(p, requests)
    if not p.ahead:
        figures.in_order, figures.longest_wait_in_order = queueing(p, requests, fills=False)
        figures.easy, figures.longest_wait_easy = queueing(p, requests, fills=True)
    return asdict(figures)
