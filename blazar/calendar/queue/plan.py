# SPDX-License-Identifier: Apache-2.0
"""What each request on the waiting list gets, so that none is delayed by one behind it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from blazar.calendar.queue.overlay import (
    FOREVER,
    Asked,
    Candidates,
    Overlay,
    Shapes,
    Wanted,
    ask_earlier,
    make_question,
)
from blazar.calendar.queue.usage import ProjectUsage, Rates, Totals, dominant_share
from blazar.calendar.queue.values import DAY, Blocked, Calendar, Estimate, Grant, PlanBounds, Promise, QueuePlan, Waiter
from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass, field, replace
from blazar.model.resources.resource import ResourceKind, noun


def plan_queue(
    calendar: Calendar,
    waiting: Sequence[Waiter],
    promised: Sequence[Promise],
    usage: ProjectUsage,
    totals: Totals,
    now: int,
    limits: PlanBounds,
) -> QueuePlan:
    """Return what a pass over the waiting list does at an instant. The same input gives the same plan.

    First promises are moved to earlier starts where something has become free. Then each request, in order, gets its
    earliest opening beside all promises and all requests before it: it starts, is promised that start, or only has its
    place, which nobody behind it takes. ``calendar`` does not contain what is promised in ``promised``.
    """
    return _Pass.begin(calendar, promised, now, limits).run(
        order_waiters(waiting, usage, totals, now, limits), promised
    )


def order_waiters(
    waiting: Sequence[Waiter], usage: ProjectUsage, totals: Totals, now: int, limits: PlanBounds
) -> list[Waiter]:
    """Return the order in which requests are served; those that enforcement has refused cost their project nothing."""

    def asked(waiter: Waiter) -> float:
        if waiter.lease_id in limits.denied:
            return 0.0
        counts = [demand.min_count for demand in waiter.demands]
        return dominant_share(waiter.demands, counts, waiter.project_id, totals, usage.rates)

    return sort_waiters(waiting, usage.values, asked, usage.rates, now=now, promise_age=limits.promise_age)


@dataclass(frozen=True, slots=True)
class ImmediateAnswer:
    """The answer to a request that does not wait: the ``grant``, or None, and how many requests are before it.

    ``opening`` is the earliest start that the waiting list leaves to it, None if that has not been searched for.
    ``awaited``: somebody waits for what it could take, also if nobody before it has a turn as things are. What becomes
    free in between is theirs all the same.
    """

    grant: Grant | None
    before: int = 0
    opening: int | None = None
    awaited: bool = False


def answer_now(
    calendar: Calendar,
    waiting: Sequence[Waiter],
    promised: Sequence[Promise],
    usage: ProjectUsage,
    totals: Totals,
    now: int,
    limits: PlanBounds,
    asked: Waiter,
) -> ImmediateAnswer:
    """Return whether a request may be booked at once: it is last in the order, and has no patience.

    If somebody waits for a resource that it could take, it gets its start only if nobody who waits is delayed by it.
    One that begins after ``protect`` is not measured against the waiting list.
    """
    before = _find_competitors(calendar, waiting, limits, asked)
    exempt = asked.earliest > now + limits.protect or not before
    served = _Pass.begin(calendar, promised, now, limits)
    if not exempt:
        if len(before) > limits.depth:
            return ImmediateAnswer(None, len(before), awaited=True)
        done = served.run(order_waiters(waiting, usage, totals, now, limits), promised)
        for left in served.left:
            # Until a promise has been moved, it is where it was.
            served.overlay.add(left)
        if any(estimate.rough and estimate.lease_id in before for estimate in done.estimates):
            # One that is not placed could be delayed unseen.
            return ImmediateAnswer(None, len(before), awaited=True)
    grant = served.overlay.first_grant(asked.lease_id, make_question(asked, now))
    if grant is None:
        opening = served.overlay.find_earliest_start(replace(make_question(asked, now), last=FOREVER))
        if not exempt:
            # Those that have no turn, as things are, delay nobody.
            before -= {blocked.lease_id for blocked in done.blocked}
            before -= {e.lease_id for e in done.estimates if e.start is None or not e.in_time}
        return ImmediateAnswer(None, 0 if exempt else len(before), opening, awaited=not exempt)
    return ImmediateAnswer(grant, 0, grant.start)


def _find_competitors(calendar: Calendar, waiting: Sequence[Waiter], limits: PlanBounds, asked: Waiter) -> set[str]:
    """Return the leases that wait for a resource that a request could take; those that are denied do not count."""
    candidates = Candidates(calendar)
    return {
        waiter.lease_id
        for waiter in waiting
        if waiter.lease_id not in limits.denied
        and _do_compete(candidates.ids_by_kind(waiter), candidates.ids_by_kind(asked))
    }


@dataclass(frozen=True, slots=True)
class Delay:
    """Which requests would start later, or not in their time, and what all get that wait, as things are.

    ``resources`` are those of the time that is asked for.
    """

    leases: tuple[str, ...]
    resources: frozenset[int]


def find_delayed(
    calendar: Calendar,
    waiting: Sequence[Waiter],
    promised: Sequence[Promise],
    usage: ProjectUsage,
    totals: Totals,
    now: int,
    limits: PlanBounds,
    *,
    before: Sequence[Grant],
    after: Sequence[Grant],
) -> Delay:
    """Return which requests would start later, or not in their time, if leases had ``after`` instead of ``before``.

    ``calendar`` has none of them. Those that are too far behind to be placed could be delayed unseen, and count, too.
    """
    order = order_waiters(waiting, usage, totals, now, limits)

    def served(grants: Sequence[Grant]) -> QueuePlan:
        under_way = _Pass.begin(calendar, promised, now, limits)
        for grant in grants:
            under_way.overlay.add(grant)
        return under_way.run(order, promised)

    is_so, would_be = served(before), served(after)
    starts = {grant.lease_id: grant.start for grant in would_be.placed}
    later = [grant.lease_id for grant in is_so.placed if starts.get(grant.lease_id, FOREVER) > grant.start]
    first, last = min(grant.start for grant in after), max(grant.end for grant in after)
    theirs = [grant for grant in (*is_so.advance, *is_so.placed) if grant.start < last and first < grant.end]
    return Delay(
        (*later, *(estimate.lease_id for estimate in is_so.estimates if estimate.rough)),
        frozenset(part.resource_id for grant in theirs for part in grant.parts),
    )


def _do_compete(one: Wanted, other: Wanted) -> bool:
    return any(kind == its and not ids.isdisjoint(theirs) for kind, ids in one for its, theirs in other)


@dataclass(slots=True)
class _Pass:
    """A pass under way: its overlay, and what it has decided so far."""

    overlay: Overlay
    candidates: Candidates
    shapes: Shapes
    now: int
    limits: PlanBounds
    start_now: list[Grant] = field(default_factory=list)
    promise: list[Grant] = field(default_factory=list)
    advance: list[Grant] = field(default_factory=list)
    estimates: list[Estimate] = field(default_factory=list)
    blocked: list[Blocked] = field(default_factory=list)
    placed: list[Grant] = field(default_factory=list)
    granted: dict[str, list[Grant]] = field(default_factory=dict)
    depths: Counter[Wanted] = field(default_factory=Counter)
    left_out: dict[ResourceKind, set[int]] = field(default_factory=dict)
    left: list[Grant] = field(default_factory=list)
    """Where promises were that have been moved."""

    @classmethod
    def begin(cls, calendar: Calendar, promised: Sequence[Promise], now: int, limits: PlanBounds) -> _Pass:
        candidates = Candidates(calendar)
        overlay = Overlay(calendar, [promise.grant for promise in promised], now, candidates)
        return cls(overlay, candidates, Shapes(candidates), now, limits)

    def run(self, order: Sequence[Waiter], promised: Sequence[Promise]) -> QueuePlan:
        self._advance_promises(promised)
        promises = sum(promise.grant.start > promise.waiter.earliest for promise in promised)
        ranks: Counter[str] = Counter()
        for position, waiter in enumerate(order, 1):
            wanted = self.candidates.ids_by_kind(waiter)
            if self._is_behind(wanted, waiter):
                self._guess_start(waiter, position)
                continue
            grant = self._search_grant(waiter, position)
            if grant is None:
                continue
            # The first start that was asked for is an ordinary booking: it could as well be made directly.
            asked = grant.start <= max(self.now, waiter.earliest)
            old = self.limits.promises > 0 and self.now - waiter.queued_at >= self.limits.promise_age
            few = ranks[waiter.project_id] < self.limits.promises_per_project and promises < self.limits.promises
            booked = asked or old or few
            granted = self.granted.get(waiter.project_id, ())
            if booked and (reason := self.limits.denies(waiter, grant, granted)):
                self.blocked.append(Blocked(waiter.lease_id, reason))
                continue
            self.overlay.add(grant)
            self.placed.append(grant)
            self.depths[wanted] += 1
            if not booked:
                self.estimates.append(Estimate(waiter.lease_id, position, grant.start))
                continue
            self.granted.setdefault(waiter.project_id, []).append(grant)
            if grant.start <= self.now:
                self.start_now.append(grant)
                continue
            self.promise.append(grant)
            if not asked:
                promises += 1
                ranks[waiter.project_id] += not old
        return self._make_plan()

    def _make_plan(self) -> QueuePlan:
        return QueuePlan(
            tuple(self.start_now),
            tuple(self.promise),
            tuple(self.advance),
            tuple(self.estimates),
            tuple(self.blocked),
            tuple(self.placed),
        )

    def _is_behind(self, wanted: Wanted, waiter: Waiter) -> bool:
        """Return whether a request is too far behind, or could take from one before it that is."""
        if waiter.lease_id in self.limits.denied:
            return False
        is_behind = self.depths[wanted] >= self.limits.depth
        if not is_behind and not any(not ids.isdisjoint(self.left_out.get(kind, ())) for kind, ids in wanted):
            return False
        for kind, ids in wanted:
            self.left_out.setdefault(kind, set()).update(() if ids <= self.left_out.get(kind, set()) else ids)
        return True

    def _advance_promises(self, promised: Sequence[Promise]) -> None:
        """Move promises to earlier starts, the earliest first."""
        for promise in sorted(promised, key=lambda promise: (promise.grant.start, promise.waiter.lease_id)):
            asked = ask_earlier(promise.waiter, promise.grant, self.now)
            if asked.first > asked.last:
                continue
            self.overlay.remove(promise.grant)
            grant = self.overlay.first_grant(promise.waiter.lease_id, asked)
            self.overlay.add(grant or promise.grant)
            if grant is not None:
                self.advance.append(grant)
                self.left.append(promise.grant)

    def _search_grant(self, waiter: Waiter, position: int) -> Grant | None:
        """Return what a request gets and when; None if it is blocked, or nothing fits in its time."""
        if reason := self.limits.denied.get(waiter.lease_id):
            self.blocked.append(Blocked(waiter.lease_id, reason))
            return None
        asked = make_question(waiter, self.now)
        try:
            grant = self._first_grant(waiter, asked)
        except InvalidInput as error:
            self.blocked.append(Blocked(waiter.lease_id, str(error)))
            return None
        if grant is None:
            self._estimate_late(waiter, asked, position)
            return None
        return grant

    def _first_grant(self, waiter: Waiter, asked: Asked) -> Grant | None:
        if not self.limits.skips:
            return self.overlay.first_grant(waiter.lease_id, asked)
        first = self.shapes.first_to_try(asked)
        grant = self.overlay.first_grant(waiter.lease_id, replace(asked, first=first)) if first <= asked.last else None
        self.shapes.learn_no_fit_before(asked, None if grant is None else grant.start)
        return grant

    def _estimate_late(self, waiter: Waiter, asked: Asked, position: int) -> None:
        """Tell when a request would fit that does not fit in its time, or why it never does."""
        if asked.last < FOREVER:
            grant = self._first_grant(waiter, replace(asked, last=FOREVER))
            if grant is not None:
                self.estimates.append(Estimate(waiter.lease_id, position, grant.start, in_time=False))
                return
        self.blocked.append(Blocked(waiter.lease_id, self._explain_never(waiter)))

    def _explain_never(self, waiter: Waiter) -> str:
        for demand in waiter.demands:
            found = self.candidates.candidates_for(waiter.project_id, demand)
            if demand.per_instance is None and len(found) < demand.min_count:
                asked, name = f"at least {demand.min_count} requested", noun(demand.kind)
                if not found:
                    return f"{asked}, and no matching {name} can be reserved; wait until one is registered or enabled"
                return (
                    f"{asked}, and only {len(found)} of the matching {name}s can be reserved; request fewer, or wait "
                    "until more are registered or enabled"
                )
        return "what matches is too small, or promised without an end; request less"

    def _guess_start(self, waiter: Waiter, position: int) -> None:
        """Tell one that is too far behind to be placed when its turn may be."""
        rate = self.limits.grants_per_day
        start = self.now + round(position / rate * DAY) if rate else None
        in_time = start is None or start <= waiter.last_start
        self.estimates.append(Estimate(waiter.lease_id, position, start, rough=True, in_time=in_time))


def sort_waiters(
    waiting: Iterable[Waiter],
    usage: Mapping[str, float],
    share: Callable[[Waiter], float],
    rates: Rates,
    *,
    now: int,
    promise_age: int,
) -> list[Waiter]:
    """Return the requests in the order in which they are served.

    First those that have waited for ``promise_age``, oldest first. Then again and again the oldest request of the
    project with the least use for its weight; what it asks for counts as used before the next is chosen, so that one
    request for ten hosts and ten requests for one are served alike. Ties are decided by age, then by lease id.
    """
    by_age = sorted(waiting, key=_age)
    oldest = [waiter for waiter in by_age if now - waiter.queued_at >= promise_age]
    standing = {waiter.project_id: 0.0 for waiter in by_age}
    for project_id in standing:
        standing[project_id] = usage.get(project_id, 0.0) / rates.weight(project_id)

    def cost(waiter: Waiter) -> float:
        return share(waiter) * waiter.length * rates.entry_penalty / rates.weight(waiter.project_id)

    for waiter in oldest:
        standing[waiter.project_id] += cost(waiter)
    return [*oldest, *_take_turns(by_age[len(oldest) :], standing, cost)]


def _take_turns(
    by_age: Sequence[Waiter], standing: Mapping[str, float], cost: Callable[[Waiter], float]
) -> Iterator[Waiter]:
    """Yield requests, again and again the oldest one of the project with the lowest standing, which it raises."""
    queues: dict[str, list[Waiter]] = defaultdict(list)
    for waiter in reversed(by_age):
        queues[waiter.project_id].append(waiter)
    heap = [(standing[project_id], *_age(queue[-1]), project_id) for project_id, queue in queues.items()]
    heapify(heap)
    while heap:
        used, _, _, project_id = heap[0]
        queue = queues[project_id]
        waiter = queue.pop()
        yield waiter
        if queue:
            heapreplace(heap, (used + cost(waiter), *_age(queue[-1]), project_id))
        else:
            heappop(heap)


def _age(waiter: Waiter) -> tuple[float, str]:
    return waiter.queued_at, waiter.lease_id
