# SPDX-License-Identifier: Apache-2.0
"""The virtual cloud: hours go by, leases end, requests come, and a pass plans when something has changed."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from bench.waiting.traces import Parameters, Request, trace
from blazar.calendar.queue.overlay import Candidates, Overlay, asked_by, totals_of
from blazar.calendar.queue.plan import in_order, plan
from blazar.calendar.queue.usage import Piece, Rates, Usage, given_back, used
from blazar.calendar.queue.values import DAY, HOUR, Grant, Inventory, Limits, Plan, Promise, Waiter
from blazar.model.amounts import Amounts
from blazar.model.demand import Demand
from blazar.model.resource import HOST, Resource

ZERO = 1_800_000_000
"""The first second; all instants are whole hours later."""

RATES = Rates()


def hosts(count: int) -> tuple[Resource, ...]:
    """Return hosts of one model."""
    made = datetime.fromtimestamp(ZERO, UTC)
    capacity = Amounts.of({"VCPU": 64})
    return tuple(Resource(n, HOST, str(n), f"host-{n:04}", {}, {}, capacity, True, made) for n in range(count))


@dataclass(slots=True)
class Figures:
    """What a run measures; shares are from 0 to 1, times in hours.

    ``out_of_turn``: requests that started on hosts that one before them, which fits, could have had instead.
    ``broken``: promises of which the start became later. ``unpromised``: requests older than the promise age that fit
    and have no promise after a pass. ``beyond_bound``: promises of a start after all that was booked had ended.
    """

    utilization: float = 0.0
    refuse_only: float = 0.0
    served: float = 0.0
    served_refuse_only: float = 0.0
    requests: int = 0
    waiters: int = 0
    timed_out: int = 0
    out_of_turn: int = 0
    broken: int = 0
    unpromised: int = 0
    beyond_bound: int = 0
    longest_wait: int = 0
    longest_to_promise: int = 0
    estimates_good: float = 0.0
    passes: int = 0
    mean_pass_ms: float = 0.0
    worst_pass_ms: float = 0.0
    seconds: float = 0.0


@dataclass(slots=True)
class Cloud:
    """What is booked: by host the uses of leases that have begun, and how much was used while it is measured."""

    parameters: Parameters
    resources: Sequence[Resource]
    running: dict[str, tuple[Grant, int]] = field(default_factory=dict)
    used_hours: int = 0

    def begin(self, grant: Grant, real: int) -> None:
        """Begin a lease that is used for so many hours."""
        self.running[grant.lease_id] = grant, grant.start + real * HOUR
        first = ZERO + self.parameters.warm_up * DAY
        last = ZERO + self.parameters.days * DAY
        span = min(grant.start + real * HOUR, last) - max(grant.start, first)
        self.used_hours += max(span, 0) // HOUR * len(grant.parts)

    def end(self, now: int) -> list[Grant]:
        """End the leases that are no longer used, and return them."""
        over = [grant for grant, until in self.running.values() if until <= now]
        for grant in over:
            del self.running[grant.lease_id]
        return over

    def inventory(self) -> Inventory:
        uses = defaultdict(list)
        for grant, _ in self.running.values():
            for part in grant.parts:
                uses[part.resource_id].append((grant.start, grant.end, 1, None))
        return Inventory(self.resources, uses)

    @property
    def utilization(self) -> float:
        p = self.parameters
        return self.used_hours / (p.hosts * (p.days - p.warm_up) * 24)


def waiter_of(request: Request, patience: int) -> Waiter:
    wanted = ZERO + request.wanted * HOUR
    return Waiter(
        request.id,
        request.project,
        (Demand(HOST, request.count, request.count),),
        request.length * HOUR,
        queued_at=ZERO + request.at * HOUR,
        wait_until=wanted + patience * HOUR,
        earliest=wanted,
    )


def refusing(p: Parameters, requests: Sequence[Request]) -> tuple[float, float]:
    """Return the utilization, and the part of requests that are served, if what does not fit is refused."""
    cloud = Cloud(p, hosts(p.hosts))
    booked: dict[str, Grant] = {}
    real = {request.id: request.real for request in requests}
    served = 0
    by_hour = defaultdict(list)
    for request in requests:
        by_hour[request.at].append(request)
    for hour in range(p.days * 24):
        now = ZERO + hour * HOUR
        cloud.end(now)
        for grant in [grant for grant in booked.values() if grant.start <= now]:
            cloud.begin(booked.pop(grant.lease_id), real[grant.lease_id])
        if not by_hour[hour]:
            continue
        calendar = {HOST: cloud.inventory()}
        overlay = Overlay(calendar, booked.values(), now, Candidates(calendar))
        for request in by_hour[hour]:
            grant = overlay.first_grant(request.id, asked_by(waiter_of(request, 0), now))
            if grant is None:
                continue
            served += 1
            overlay.add(grant)
            if grant.start <= now:
                cloud.begin(grant, request.real)
            else:
                booked[request.id] = grant
    return cloud.utilization, served / max(len(requests), 1)


class Waiting:
    """A run with a waiting list."""

    def __init__(self, p: Parameters, limits: Limits) -> None:
        self.parameters, self.limits = p, limits
        self.cloud = Cloud(p, hosts(p.hosts))
        self.requests = {request.id: request for request in trace(p)}
        self.totals = totals_of({HOST: Inventory(self.cloud.resources)})
        self.waiting: dict[str, Waiter] = {}
        self.promised: dict[str, Promise] = {}
        self.said: dict[str, tuple[int, int | None, bool]] = {}
        self.least_promised: dict[str, int] = {}
        self.pieces: dict[str, dict[str, tuple[Piece, ...]]] = defaultdict(dict)
        self.figures = Figures(requests=len(self.requests))
        self.good = self.judged = self.served = 0

    def run(self) -> Figures:
        begun = time.process_time()
        by_hour = defaultdict(list)
        for request in self.requests.values():
            by_hour[request.at].append(request)
        for hour in range(self.parameters.days * 24):
            now = ZERO + hour * HOUR
            is_due = self._ends(now) or hour % 24 == 0
            for promise in [each for each in self.promised.values() if each.grant.start <= now]:
                del self.promised[promise.waiter.lease_id]
                self._begins(promise.waiter, promise.grant)
            for waiter in [each for each in self.waiting.values() if each.last_start < now]:
                del self.waiting[waiter.lease_id]
                self.figures.timed_out += 1
                self._judge(waiter, None)
                is_due = True
            for request in by_hour[hour]:
                self.waiting[request.id] = waiter_of(request, self.parameters.patience)
            if self.waiting and (is_due or by_hour[hour]) or (self.promised and is_due):
                self._pass(now)
        f = self.figures
        f.utilization = self.cloud.utilization
        f.served = self.served / max(f.requests, 1)
        f.estimates_good = self.good / max(self.judged, 1)
        f.waiters = self.judged
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
        at, said, in_time = self.said.pop(waiter.lease_id, (0, None, False))
        if said is None or at < ZERO + self.parameters.warm_up * DAY:
            return
        wish = max(waiter.earliest, waiter.queued_at)
        if said == start == wish:
            return
        self.judged += 1
        self.good += not in_time if start is None else abs(said - start) <= 0.2 * (start - wish)

    def _pass(self, now: int) -> None:
        f = self.figures
        projects = {waiter.project_id for waiter in self.waiting.values()}
        values = {
            project: used((piece for pieces in self.pieces[project].values() for piece in pieces), now, RATES)
            for project in projects
        }
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

    def _book(self, waiter: Waiter, grant: Grant) -> None:
        self.promised[waiter.lease_id] = Promise(waiter, grant)
        known = self.least_promised.get(waiter.lease_id, grant.start)
        self.least_promised[waiter.lease_id] = min(known, grant.start)
        self.pieces[waiter.project_id][waiter.lease_id] = (_piece(self.parameters, grant),)

    def _tell(self, done: Plan, now: int) -> None:
        for grant in (*done.start_now, *done.promise):
            self.said.setdefault(grant.lease_id, (now, grant.start, True))
        for estimate in done.estimates:
            self.said.setdefault(estimate.lease_id, (now, estimate.start, estimate.in_time))

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
                    if other.start < now + waiter.length
                    for part in other.parts
                }
                room = sum(r.id not in others and r.id not in met for r in self.cloud.resources)
                self.figures.out_of_turn += room >= waiter.demands[0].min_count


def _piece(p: Parameters, grant: Grant) -> Piece:
    return Piece(len(grant.parts) / p.hosts, grant.start, grant.end)


def measured(p: Parameters, limits: Limits) -> dict[str, float]:
    """Run both ways of serving the same requests."""
    figures = Waiting(p, limits).run()
    figures.refuse_only, figures.served_refuse_only = refusing(p, trace(p))
    return asdict(figures)
