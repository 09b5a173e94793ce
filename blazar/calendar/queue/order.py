# SPDX-License-Identifier: Apache-2.0
"""The order in which requests that wait are served: first come within a project, least use first between projects."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heapreplace

from blazar.calendar.queue.usage import Rates
from blazar.calendar.queue.values import Waiter


def ordered(
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
    found = [waiter for waiter in by_age if now - waiter.queued_at >= promise_age]
    standing = {waiter.project_id: 0.0 for waiter in by_age}
    for project_id in standing:
        standing[project_id] = usage.get(project_id, 0.0) / rates.weight(project_id)

    def cost(waiter: Waiter) -> float:
        return share(waiter) * waiter.length * rates.entry_penalty / rates.weight(waiter.project_id)

    queues: dict[str, list[Waiter]] = defaultdict(list)
    for waiter in reversed(by_age[len(found) :]):
        queues[waiter.project_id].append(waiter)
    for waiter in found:
        standing[waiter.project_id] += cost(waiter)
    heap = [(standing[project_id], *_age(queue[-1]), project_id) for project_id, queue in queues.items()]
    heapify(heap)
    while heap:
        used, _, _, project_id = heap[0]
        queue = queues[project_id]
        waiter = queue.pop()
        found.append(waiter)
        if queue:
            heapreplace(heap, (used + cost(waiter), *_age(queue[-1]), project_id))
        else:
            heappop(heap)
    return found


def _age(waiter: Waiter) -> tuple[float, str]:
    return waiter.queued_at, waiter.lease_id
