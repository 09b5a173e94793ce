# SPDX-License-Identifier: Apache-2.0
"""Allocations of a lease during a change whose outcome is not known yet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window, enclose
from blazar.model.calendar.allocations import Allocation

PerReservation = Mapping[str, Amounts]
"""Reservation id → the amounts that it takes of one resource."""


def union(held: Collection[Allocation], planned: Collection[Allocation]) -> tuple[Allocation, ...]:
    """Return the union of what a lease has, for its window, and of what is planned, for the new window.

    It keeps both outcomes possible. At every instant, of every class, a resource is promised exactly the larger of what
    the lease has and what is planned at that instant, summed over all reservations of the lease. So it is never
    promised beyond its capacity, even where reservations swap resources. What is in both counts once, for both windows.
    Each reservation has an allocation on every resource that is planned for it, except on shared resources that another
    reservation still has whole. All allocations of ``held`` have one window, and so have those of ``planned``.
    """
    if not held or not planned:
        return (*held, *planned)
    old, new = next(iter(held)).window, next(iter(planned)).window
    if old.start > new.end or new.start > old.end:
        return (*held, *planned)
    found: list[Allocation] = []
    before, after = _group_by_resource(held), _group_by_resource(planned)
    for resource_id in dict.fromkeys((*before, *after)):
        found += _join_allocations(before.get(resource_id, ()), after.get(resource_id, ()), old, new)
    return tuple(found)


def _group_by_resource(allocations: Iterable[Allocation]) -> Mapping[int, list[Allocation]]:
    found: dict[int, list[Allocation]] = defaultdict(list)
    for allocation in allocations:
        found[allocation.resource_id].append(allocation)
    return found


def _join_allocations(
    held: Collection[Allocation], planned: Collection[Allocation], old: Window, new: Window
) -> Iterator[Allocation]:
    both = enclose((old, new))
    had_whole, gets_whole = (any(a.per_instance is None for a in allocations) for allocations in (held, planned))
    if had_whole and gets_whole:
        # Recorded for the reservation that gets it, so that an undo knows where it may be by then.
        yield from (replace(a, window=both) for a in planned)
    elif had_whole or gets_whole:
        whole, shared, others = (held, planned, (new, old)) if had_whole else (planned, held, (old, new))
        yield from whole
        yield from (replace(a, window=window) for a in shared for window in _cut_outside(*others))
    else:
        yield from _split_layers(held, planned, old, new, both).allocations()


@dataclass(frozen=True, slots=True)
class _Layers:
    """What reservations take of one resource, by window; windows add up where they overlap."""

    like: Mapping[str, Allocation]
    layers: Mapping[Window, PerReservation]

    def allocations(self) -> Iterator[Allocation]:
        for window, shares in self.layers.items():
            for reservation_id, amounts in shares.items():
                if amounts:
                    yield _resize(self.like[reservation_id], window, amounts)


def _split_layers(
    held: Collection[Allocation], planned: Collection[Allocation], old: Window, new: Window, both: Window
) -> _Layers:
    """Split shared use into what lasts for both windows, the rest in the old window, and the additions in the new one.

    Of each class, what lasts is the smaller of the sums before and after: then the sum of all three parts is the larger
    one where the windows overlap. Each reservation keeps the smaller of its own two amounts; the rest of what lasts
    passes from reservations that shrink to those that grow.
    """
    had, gets = _sum_by_reservation(held), _sum_by_reservation(planned)
    ids = tuple(dict.fromkeys((*had, *gets)))
    none = Amounts()
    lasting = {id_: _take_least(had.get(id_, none), gets.get(id_, none)) for id_ in ids}
    less = {id_: had.get(id_, none).minus(lasting[id_]) for id_ in ids}
    more = {id_: gets.get(id_, none).minus(lasting[id_]) for id_ in ids}
    passing = _take_least(_sum_amounts(less.values()), _sum_amounts(more.values()))
    less, _ = _subtract_amounts(less, passing)
    more, passed = _subtract_amounts(more, passing)
    layers: dict[Window, dict[str, Amounts]] = {}
    for window, shares in ((both, lasting), (both, passed), (old, less), (new, more)):
        layer = layers.setdefault(window, {})
        for id_, amounts in shares.items():
            layer[id_] = layer.get(id_, none) + amounts
    # The planned allocation, if there is one: it has the amounts per instance of the new size.
    return _Layers({a.reservation_id: a for a in (*held, *planned)}, layers)


def _subtract_amounts(shares: PerReservation, amounts: Amounts) -> tuple[dict[str, Amounts], dict[str, Amounts]]:
    """Return the amounts by reservation minus ``amounts`` in all, and what was subtracted from each."""
    left, taken = {}, {}
    for id_, share in shares.items():
        taken[id_] = _take_least(share, amounts)
        left[id_] = share.minus(taken[id_])
        amounts = amounts.minus(taken[id_])
    return left, taken


def _sum_by_reservation(allocations: Iterable[Allocation]) -> PerReservation:
    found: dict[str, Amounts] = {}
    for allocation in allocations:
        found[allocation.reservation_id] = found.get(allocation.reservation_id, Amounts()) + _amounts(allocation)
    return found


def _amounts(allocation: Allocation) -> Amounts:
    return allocation.amounts or Amounts()


def _resize(like: Allocation, window: Window, amounts: Amounts) -> Allocation:
    """Return an allocation of these amounts: as a count of the reservation's instances, if that is possible."""
    if like.per_instance:
        name, amount = like.per_instance.items[0]
        count = amounts.get(name) // amount
        if like.per_instance.times(count) == amounts:
            return replace(like, window=window, count=count)
    return replace(like, window=window, count=1, per_instance=amounts)


def _cut_outside(window: Window, other: Window) -> Iterator[Window]:
    """Yield the parts of a window that are before and after another one."""
    if window.start < other.start:
        yield Window(window.start, min(window.end, other.start))
    if other.end < window.end:
        yield Window(max(window.start, other.end), window.end)


def _take_least(one: Amounts, other: Amounts) -> Amounts:
    return Amounts.of({name: min(amount, other.get(name)) for name, amount in one})


def _sum_amounts(amounts: Iterable[Amounts]) -> Amounts:
    total = Amounts()
    for amount in amounts:
        total += amount
    return total
