# SPDX-License-Identifier: Apache-2.0
"""Price tags: by which prices each part of what a reservation has is charged, also once it gets more or less. Pure.

What was booked last is given back first, and what takes the place of something else has the tag of that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

from blazar.model.base.values import dataclass
from blazar.model.billing.uses import Skus


@dataclass(frozen=True, slots=True)
class PriceTag:
    """By which prices something is charged, each with how many of its measure the reservation was booked with.

    ``prices`` is None if there were none. ``booked_at`` is when that was; None: with its lease.
    """

    prices: tuple[tuple[str, int], ...] | None = None
    booked_at: datetime | None = None

    @classmethod
    def of(cls, skus: Skus | None, booked_at: datetime | None = None) -> PriceTag:
        """Return the tag of these prices."""
        return cls(None if skus is None else tuple(sorted(skus.items())), booked_at)

    @property
    def skus(self) -> Skus | None:
        """Return the prices by their names."""
        return None if self.prices is None else dict(self.prices)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the prices, in their order."""
        return tuple(name for name, _ in self.prices or ())

    @property
    def age(self) -> tuple[bool, float]:
        """Return what tags are ordered by: those of what was booked earlier come first."""
        return self.booked_at is not None, 0.0 if self.booked_at is None else self.booked_at.timestamp()


NO_TAG = PriceTag()
Layers = Mapping[PriceTag, Mapping[str, int]]
"""How much of a resource, by measure, is charged by each tag."""


@dataclass(frozen=True, slots=True)
class TaggedShare:
    """What a reservation has of a resource from now on, by measure, and the layers of what it had of it before.

    ``new`` is the tag of what it has more.
    """

    amounts: Mapping[str, int]
    new: PriceTag
    before: Layers


def share_tags(shares: Sequence[TaggedShare], gone: Iterable[Layers]) -> list[Layers]:
    """Return the layers of each share of a reservation; ``gone`` are those of what it has no more.

    Each share keeps what it had, and then what is gone is passed on. Of what has the same prices nothing goes that was
    booked before something that stays.
    """
    lost = list(gone)
    found: list[dict[PriceTag, dict[str, int]]] = [{} for _ in shares]
    for measure in sorted({measure for share in shares for measure in share.amounts}):
        left = Counter({tag: 0 for layers in lost for tag in layers})
        for layers in lost:
            left.update({tag: amounts.get(measure, 0) for tag, amounts in layers.items()})
        for layers_of, tags in zip(found, _share_measure(shares, measure, left), strict=True):
            for tag in sorted(tags, key=attrgetter("age")):
                if tags[tag]:
                    layers_of.setdefault(tag, {})[measure] = tags[tag]
    return list(found)


def _share_measure(shares: Sequence[TaggedShare], measure: str, left: Counter[PriceTag]) -> list[Counter[PriceTag]]:
    """Return how much of a measure each share has by each tag; ``left`` is what is gone, of which it takes."""
    found: list[Counter[PriceTag]] = []
    for share in shares:
        had = Counter({tag: amounts.get(measure, 0) for tag, amounts in share.before.items()})
        found.append(_take(had, share.amounts.get(measure, 0)))
        left.update(had)
    for share, tags in zip(shares, found, strict=True):
        tags.update(_take(left, share.amounts.get(measure, 0) - tags.total()))
    _exchange(found, left)
    for share, tags in zip(shares, found, strict=True):
        tags[share.new] += share.amounts.get(measure, 0) - tags.total()
    return found


def _take(tags: Counter[PriceTag], amount: int) -> Counter[PriceTag]:
    """Take at most so much out of tags, of what was booked first, and return it."""
    taken: Counter[PriceTag] = Counter()
    for tag in sorted(tags, key=attrgetter("age")):
        taken[tag] = min(tags[tag], amount)
        tags[tag] -= taken[tag]
        amount -= taken[tag]
    return taken


def _exchange(found: Sequence[Counter[PriceTag]], left: Counter[PriceTag]) -> None:
    """Give what is booked last for what is left and was booked earlier, by the same prices."""
    for earlier in sorted(left, key=attrgetter("age")):
        later = {tag for tags in found for tag in tags if tag.names == earlier.names and tag.age > earlier.age}
        for tag in sorted(later, key=attrgetter("age"), reverse=True):
            for tags in found:
                number = min(left[earlier], tags[tag])
                tags[tag] -= number
                tags[earlier] += number
                left[tag] += number
                left[earlier] -= number
