# SPDX-License-Identifier: Apache-2.0
"""Vectors of amounts: the capacity of a resource, and what one instance of a demand takes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from blazar.model.base.values import dataclass

_Items = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Amounts:
    """Amounts by resource class, as in ``VCPU 64, MEMORY_MB 515000, DISK_GB 890``.

    Classes are named as in Placement and carry their unit (MiB in ``MEMORY_MB``, GiB in ``DISK_GB``).
    A class that is not named has the amount 0; an amount is never negative.
    """

    items: _Items = ()

    def __post_init__(self) -> None:
        if any(amount < 0 for _, amount in self.items):
            raise ValueError(f"an amount is negative in {self.items}")

    @classmethod
    def of(cls, amounts: Mapping[str, int]) -> Amounts:
        """Build from a mapping of class name to amount; zeros are dropped."""
        return cls(tuple(sorted((name, n) for name, n in amounts.items() if n)))

    def __iter__(self) -> Iterator[tuple[str, int]]:
        return iter(self.items)

    def __bool__(self) -> bool:
        return bool(self.items)

    def get(self, name: str) -> int:
        """Return the amount of one class, 0 if it is not named."""
        return next((amount for key, amount in self.items if key == name), 0)

    def __add__(self, other: Amounts) -> Amounts:
        total = dict(self.items)
        for name, amount in other.items:
            total[name] = total.get(name, 0) + amount
        return Amounts.of(total)

    def minus(self, other: Amounts) -> Amounts:
        """Return these amounts minus the others. Raise ValueError if a class would become negative."""
        return Amounts.of(
            {name: self.get(name) - other.get(name) for name in {**dict(self.items), **dict(other.items)}}
        )

    def larger_of_each(self, other: Amounts) -> Amounts:
        """Return the larger of both amounts for each class."""
        names = {**dict(self.items), **dict(other.items)}
        return Amounts.of({name: max(self.get(name), other.get(name)) for name in names})

    def times(self, count: int) -> Amounts:
        """Return ``count`` times these amounts."""
        return _multiply(self, count)

    def times_within(self, capacity: Amounts, used: Amounts) -> int:
        """Return how many times these amounts fit into ``capacity`` minus ``used``.

        Raise ValueError if these amounts are all zero: the answer would be infinite.
        """
        if not self.items:
            raise ValueError("amounts that are all zero fit infinitely often")
        return _count_within(self.items, capacity.items, used.items)


NOTHING = Amounts()


# Of thousands of hosts most are alike, and full in the same way: a search asks the same things of each.
@lru_cache(maxsize=1024)
def _multiply(amounts: Amounts, count: int) -> Amounts:
    return Amounts.of({name: amount * count for name, amount in amounts.items})


@lru_cache(maxsize=8192)
def _count_within(size: _Items, capacity: _Items, used: _Items) -> int:
    there, gone = dict(capacity), dict(used)
    return max(0, min((there.get(name, 0) - gone.get(name, 0)) // amount for name, amount in size))
