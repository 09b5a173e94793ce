# SPDX-License-Identifier: Apache-2.0
"""What others do with the same requests: refuse, serve strictly in order, or fill in behind the first.

``refusing`` has the placement of the product. The queues only count hosts, which is exact as long as all hosts are of
one model and nothing is booked ahead; it is never worse than with a placement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bench.waiting.cloud import ZERO, Cloud, hosts, waiter_of
from bench.waiting.traces import Parameters, Request
from blazar.calendar.queue.overlay import Candidates, Overlay, make_question
from blazar.calendar.queue.values import HOUR, Grant
from blazar.model.resources.resource import HOST


def by_hour_of(requests: Sequence[Request]) -> dict[int, list[Request]]:
    """Return which requests come in each hour."""
    found: dict[int, list[Request]] = defaultdict(list)
    for request in requests:
        found[request.at].append(request)
    return found


def refusing(p: Parameters, requests: Sequence[Request]) -> tuple[float, float]:
    """Return the utilization, and the part of requests that are served, if what does not fit is refused."""
    cloud = Cloud(p, hosts(p))
    booked: dict[str, Grant] = {}
    real = {request.id: request.real for request in requests}
    served = 0
    by_hour = by_hour_of(requests)
    for hour in range(p.days * 24):
        now = ZERO + hour * HOUR
        cloud.end(now)
        for grant in [grant for grant in booked.values() if grant.start <= now]:
            cloud.begin(booked.pop(grant.lease_id), real[grant.lease_id])
        if hour not in by_hour:
            continue
        calendar = {HOST: cloud.inventory()}
        overlay = Overlay(calendar, booked.values(), now, Candidates(calendar))
        for request in by_hour[hour]:
            grant = overlay.first_grant(request.id, make_question(waiter_of(p, request, 0), now))
            if grant is None:
                continue
            served += 1
            overlay.add(grant)
            if grant.start <= now:
                cloud.begin(grant, request.real)
            else:
                booked[request.id] = grant
    return cloud.utilization, served / max(len(requests), 1)


def queueing(p: Parameters, requests: Sequence[Request], *, fills: bool) -> tuple[float, int]:
    """Return the utilization and the longest wait in hours of a queue in order of arrival.

    The first of the queue waits until it fits. ``fills``: meanwhile others begin that do not delay it (EASY: nobody
    behind the first is protected).
    """
    by_hour, running, queue = by_hour_of(requests), dict[str, tuple[int, int, int]](), list[Request]()
    free, used, longest = p.hosts, 0, 0
    for hour in range(p.days * 24):
        for id_, (count, _, until) in list(running.items()):
            if until <= hour:
                free += count
                del running[id_]
        queue = [each for each in (*queue, *by_hour.get(hour, ())) if _waits(each, hour, p.patience)]
        begun = set()
        for request, count in _chosen(queue, free, list(running.values()), hour, fills):
            begun.add(request.id)
            free -= count
            until = hour + request.real
            running[request.id] = count, hour + request.length, until
            longest = max(longest, hour - request.at)
            used += max(min(until, p.days * 24) - max(hour, p.warm_up * 24), 0) * count
        queue = [each for each in queue if each.id not in begun]
    return used / (p.hosts * (p.days - p.warm_up) * 24), longest


def _waits(request: Request, hour: int, patience: int) -> bool:
    last = request.wanted + patience if request.latest is None else min(request.latest, request.wanted + patience)
    return hour <= last and (request.withdrawn is None or hour < request.withdrawn)


def _chosen(
    queue: Sequence[Request], free: int, running: list[tuple[int, int, int]], hour: int, fills: bool
) -> Iterator[tuple[Request, int]]:
    """Yield which requests begin now, each with its count of hosts."""
    place = 0
    while place < len(queue) and queue[place].least <= free:
        request = queue[place]
        count = min(request.count, free)
        yield request, count
        free -= count
        running.append((count, hour + request.length, 0))
        place += 1
    if place == len(queue) or not fills:
        return
    first, then = queue[place], free
    shadow = hour
    for count, until, _ in sorted(running, key=lambda each: each[1]):
        if then >= first.least:
            break
        then, shadow = then + count, until
    extra = then - first.least
    for request in queue[place + 1 :]:
        is_over = hour + request.length <= shadow
        count = min(request.count, free if is_over else min(free, extra))
        if count >= request.least:
            yield request, count
            free -= count
            extra -= 0 if is_over else count
