# SPDX-License-Identifier: Apache-2.0
"""The order in which the reservations of a lease start and end. Pure.

A reservation waits for others: at the start for those that it refers to, at the end for those that refer to it, and for
those of a lower rank. What waits for what is given as a mapping from each id to the ids that it waits for.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping

from blazar.model.calendar.allocations import Allocation
from blazar.resources.contract.values import Rank

Waits = Mapping[str, frozenset[str]]
"""The reservations that each one waits for, by id."""


def sort_by_waits(waits: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return all ids, each after those that it waits for; beyond that they keep their order.

    Those in a cycle come last, in their order. Ids that are not among the keys are not waited for.
    """
    place = {id_: number for number, id_ in enumerate(waits)}
    left = {id_: len({other for other in others if other in place}) for id_, others in waits.items()}
    waiting: dict[str, list[str]] = {id_: [] for id_ in waits}
    for id_, others in waits.items():
        for other in set(others) & place.keys():
            waiting[other].append(id_)
    ready = [place[id_] for id_, count in left.items() if not count]
    heapq.heapify(ready)
    ids, order = tuple(waits), list[str]()
    while ready:
        id_ = ids[heapq.heappop(ready)]
        order.append(id_)
        for other in waiting[id_]:
            left[other] -= 1
            if not left[other]:
                heapq.heappush(ready, place[other])
    return (*order, *(id_ for id_ in ids if left[id_]))


def put_givers_first(waits: Waits, before: Collection[Allocation], after: Collection[Allocation]) -> Waits:
    """Return what waits for what in an order in which a change frees resources before it takes them.

    First come the reservations that give up something and take nothing, then those that do both, then the others: else
    two of them would have, for a moment, more of a resource than there is.
    """
    was, becomes = _amounts(before), _amounts(after)

    def place(id_: str) -> int:
        had, gets = was.get(id_, Counter()), becomes.get(id_, Counter())
        if not any(had[amount] > gets[amount] for amount in had):
            return 2
        return 1 if any(gets[amount] > had[amount] for amount in gets) else 0

    return {id_: waits[id_] for id_ in sorted(waits, key=place)}


def _amounts(allocations: Collection[Allocation]) -> dict[str, Counter[tuple[int, str]]]:
    """Return how much reservations have of each class of each resource; of one that is theirs alone, one."""
    found: dict[str, Counter[tuple[int, str]]] = defaultdict(Counter)
    for allocation in allocations:
        for name, amount in allocation.amounts or (("", allocation.count),):
            found[allocation.reservation_id][allocation.resource_id, name] += amount
    return found


def cycle_in(waits: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Return the ids of a cycle, each waiting for the next and the last for the first; none if there is no cycle."""
    clear: set[str] = set()
    in_a_cycle: set[str] = set()
    for id_ in sort_by_waits(waits):
        (clear if all(other in clear or other not in waits for other in waits[id_]) else in_a_cycle).add(id_)
    # What is left waits for something that is left, too: following that leads around.
    path: list[str] = []
    following = next((id_ for id_ in waits if id_ in in_a_cycle), None)
    while following is not None and following not in path:
        path.append(following)
        following = next(id_ for id_ in waits if id_ in waits[path[-1]] and id_ in in_a_cycle)
    return () if following is None else tuple(path[path.index(following) :])


def waits_at_end(references: Waits, ranks: Mapping[str, Rank]) -> Waits:
    """Return what each reservation waits for at the end: those that refer to it, and those of a lower rank.

    What refers to another ends with the rank of the other if that is lower: so the two never wait for each other.
    """
    effective: dict[str, Rank] = {}
    for id_ in sort_by_waits(references):
        effective[id_] = min(ranks[id_], *(effective.get(other, ranks[id_]) for other in (id_, *references[id_])))
    return {
        id_: frozenset(
            other for other, theirs in references.items() if id_ in theirs or effective[other] < effective[id_]
        )
        for id_ in references
    }
