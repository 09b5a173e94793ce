# SPDX-License-Identifier: Apache-2.0
"""Why a demand does not fit into a window: what is left of the resources after each reason, without naming any."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from datetime import datetime
from functools import partial

from blazar.calendar.counting import derive_conditions
from blazar.calendar.occupancy import Occupancy
from blazar.calendar.openings import KindSearch
from blazar.calendar.timeline import from_epoch
from blazar.calendar.topology import count_units
from blazar.model.base.amounts import NOTHING
from blazar.model.base.clock import spell
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.calendar.topology import describe_topology
from blazar.model.resources.requirements import All, AnyOf, Anything, Comparison, Membership, Not, Requirement, matches
from blazar.model.resources.resource import Resource, noun
from blazar.model.search.availability import Step, StepCode

LONGEST_WORDS = 120


@dataclass(frozen=True, slots=True)
class RequirementPart:
    """A part of the outermost ``and`` of a requirement, with the JSON pointer of it in the request, if it is known.

    What is ``needed`` cannot be left out of the request.
    """

    requirement: Requirement
    pointer: str | None = None
    needed: bool = False


@dataclass(frozen=True, slots=True)
class Explanation:
    """The steps, the sentence that tells them, and how many the demand could get."""

    steps: tuple[Step, ...]
    message: str
    free: int


def split_requirement(requirement: Requirement) -> tuple[RequirementPart, ...]:
    """Return the parts of a requirement of which no place in the request is known."""
    match requirement:
        case Anything():
            return ()
        case All(terms):
            return tuple(RequirementPart(term) for term in terms)
    return (RequirementPart(requirement),)


def explain_misfits(
    search: KindSearch, parts: Sequence[Sequence[RequirementPart]], start: int, end: int, latest: int
) -> list[Explanation | None]:
    """Return, for each demand of a search, why it does not fit into a window; None if it does.

    ``parts`` are those of their requirements. When enough are free again is looked for up to ``latest``. Only if each
    demand alone would fit are they in each other's way, and a placement is made.
    """
    counts = []
    occupancy = search.timeline.occupancy(start, end)
    for demand, demand_parts in zip(search.demands, parts, strict=True):
        search.budget.check()
        counts.append(_count_by_step(search, demand, occupancy, demand_parts))
    short = [count.is_short for count in counts]
    crowded = not any(short) and len(counts) > 1 and search.find_placement(start, end) is None
    found: list[Explanation | None] = []
    for index, count in enumerate(counts):
        free = count.free
        if crowded:
            free = _count_beside(search, index, start, end)
            count.add_step(StepCode.OTHER_RESERVATIONS, free, f"{free} beside the other reservations of the lease")
        elif short[index] and count.booked:
            count.note_free_again(_find_free_again(search, count.demand, start, end, latest))
        explained = crowded or short[index]
        found.append(count.explanation(free) if explained else None)
    return found


def _count_by_step(
    search: KindSearch, demand: Demand, occupancy: Occupancy, parts: Sequence[RequirementPart]
) -> _Count:
    in_use = demand.pinned.union(demand.kept)
    held = tuple(resource for resource in search.resources if resource.id in in_use) if in_use else ()
    count = _Count(search, demand, occupancy, in_use, held)
    count.take_away_unsuited(parts)
    count.take_away_lost()
    return count


@dataclass(slots=True)
class _Count:
    """Counts what is left after each reason. Each resource is taken away by one reason only.

    What the reservation has in use (``held``, with the ids ``in_use``) stays, whatever it is like by now: only ``keep``
    takes it away.
    """

    search: KindSearch
    demand: Demand
    occupancy: Occupancy
    in_use: Set[int] = frozenset()
    held: Sequence[Resource] = ()
    steps: list[Step] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    left: Sequence[Resource] = ()
    free: int = 0
    booked: int = 0
    lost: int = 0

    @property
    def is_short(self) -> bool:
        """Return whether the demand does not fit, even if it were the only one."""
        return self.free < self.demand.min_count or self.lost > 0

    def take_away_unsuited(self, parts: Sequence[RequirementPart]) -> None:
        """Take away what does not match, cannot be used, is too small, and is promised."""
        demand = self.demand
        self.left = [*self.held, *(r for r in self.search.matching(Anything()) if r.id not in self.in_use)]
        self.add_step(StepCode.REGISTERED, len(self.left), f"{len(self.left)} {_plural(demand, len(self.left))}")
        for part in parts:
            self.left = [r for r in self.left if r.id in self.in_use or matches(part.requirement, r.properties)]
            words = f"{len(self.left)} with {describe_requirement(part.requirement)}"
            self.add_step(StepCode.REQUIREMENT, len(self.left), words, pointer=part.pointer)
        self._remove(StepCode.TRAITS, lambda r: not demand.traits.met_by(r.traits), "without the traits of the flavor")
        if (cells := demand.cells) is not None:
            self._remove(StepCode.CELLS, lambda r: not cells.fit(r), "whose NUMA cells do not suit the flavor")
        for cards in demand.cards:
            words = f"whose {cards.resource_class} is missing, or does not suit all that the flavor may get of it"
            self._remove(StepCode.CARDS, partial(_lacks, cards), words)
        of_them = "of them " if len(self.steps) > 1 else ""
        self._remove(StepCode.DISABLED, lambda r: r.disabled, f"{of_them}disabled")
        self._remove(StepCode.FAILED, lambda r: not r.reservable, "failed")
        if (size := demand.per_instance) is not None:
            self._remove(StepCode.TOO_SMALL, lambda r: not r.count_beside(NOTHING, size), "too small")
        self._take_promised()
        self.free = self._count_free()

    def take_away_lost(self) -> None:
        """Take away what must be chosen and cannot be, and what could be chosen in its place only."""
        demand = self.demand
        gone = [resource for resource in self.held if not self._can_keep(resource)]
        if gone:
            why = "and promised to others" if demand.whole else "with too little room"
            words = f"{len(gone)} in use by the reservation {why}"
            self.add_step(StepCode.IN_USE, len(self.left) - len(gone), words, removed=len(gone))
        unnamed = len(demand.required - {resource.name for resource in self.left})
        self.lost = unnamed + sum(demand.kept.get(resource.id, 1) - self._count_room(resource) for resource in gone)
        if not self.lost:
            return
        free = max(0, min(self.free, demand.min_count - self.lost))
        # Of what is shared, resources are counted until here.
        if demand.whole and (others := self.free - free):
            words = f"{others} that cannot replace what is {'required by name' if unnamed else 'in use'}"
            self.add_step(StepCode.NO_SUBSTITUTE, free, words, removed=others)
        self.free = free

    def add_step(
        self, code: StepCode, remaining: int, words: str, *, removed: int | None = None, pointer: str | None = None
    ) -> None:
        """Add a step, with its words."""
        self.steps.append(Step(code, remaining, removed, pointer=pointer))
        self.words.append(words)

    def note_free_again(self, until: datetime | None) -> None:
        """Note when enough of those that are promised are free again."""
        if until is None:
            return
        place = next(i for i, step in enumerate(self.steps) if step.code is StepCode.PROMISED)
        self.steps[place] = replace(self.steps[place], until=until)
        self.words[place] += f" until {spell(until)} UTC"

    def explanation(self, free: int) -> Explanation:
        """Return the steps, and the sentence that ends with what the demand could get."""
        part = self.demand.share
        ending = f"{free} free" if self.demand.whole else f"{free} {part} fits" if free == 1 else f"{free} {part}s fit"
        return Explanation(tuple(self.steps), "; ".join([*self.words, ending]), free)

    def _remove(self, code: StepCode, gone: Callable[[Resource], bool], words: str) -> int:
        """Take resources away and return how many; a reason that takes none is no step."""
        left = [resource for resource in self.left if resource.id in self.in_use or not gone(resource)]
        removed = len(self.left) - len(left)
        self.left = left
        if removed:
            self.add_step(code, len(left), f"{removed} {words}", removed=removed)
        return removed

    def _take_promised(self) -> None:
        """Take away what is promised; where instances share resources, also tell how many are promised in part."""
        self.booked = self._remove(StepCode.PROMISED, lambda r: not self._count_room(r), "booked")
        if self.demand.whole or not (in_part := sum(1 for r in self.left if not self.occupancy.is_free(r.id))):
            return
        if self.booked:
            self.words[-1] += f", {in_part} more in part"
        else:
            self.add_step(StepCode.PROMISED, len(self.left), f"{in_part} booked in part", removed=0)
        self.booked += in_part

    def _count_room(self, resource: Resource) -> int:
        size = self.demand.per_instance
        if size is None:
            return int(self.occupancy.is_free(resource.id))
        return self.occupancy.count_free(resource, size)

    def _can_keep(self, resource: Resource) -> bool:
        if self.demand.whole:
            return self.occupancy.is_free(resource.id)
        return self.demand.entitled or self._count_room(resource) >= self.demand.kept[resource.id]

    def _count_free(self) -> int:
        """Return how many the demand could get if it were the only one."""
        kept = self.demand.kept
        # What it keeps on a host that takes nothing more, it has all the same.
        rooms = {resource.id: max(kept.get(resource.id, 0), self._count_room(resource)) for resource in self.left}
        total, word = sum(rooms.values()), noun(self.demand.kind)
        match self.demand.affinity:
            case Affinity.TOGETHER if kept:
                free, words = max(rooms[resource_id] for resource_id in kept), f"on the {word} in use"
            case Affinity.TOGETHER if not self.demand.whole:
                free, words = max(rooms.values(), default=0), f"on one {word}"
            case Affinity.APART:
                free, words = sum(1 for room in rooms.values() if room), f"on different {word}s"
            case _ if self.demand.topology:
                return self._count_lying(total)
            case _:
                return total
        if free < self.demand.min_count <= total:
            self.add_step(StepCode.AFFINITY, free, f"{free} of {total} {words}", removed=total - free)
        return free

    def _count_lying(self, total: int) -> int:
        """Return how many of so many free ones lie to each other as the demand asks.

        Where something in use is lost, that is the reason, whatever lies where.
        """
        if any(not self._can_keep(resource) for resource in self.held):
            return total
        left = [resource for resource in self.left if self._count_room(resource)]
        left.sort(key=lambda resource: resource.id not in self.in_use)
        free = min(total, count_units(self.demand, left))
        if free < min(total, self.demand.min_count):
            words = f"{free} of {total} {describe_topology(self.demand.topology)}"
            self.add_step(StepCode.TOPOLOGY, free, words, removed=total - free)
        return free


def _find_free_again(search: KindSearch, demand: Demand, start: int, end: int, latest: int) -> datetime | None:
    """Return the first start from which on a demand alone fits for as long, None if there is none in the range."""
    length = end - start
    if start + length > latest:
        return None
    if demand.topology:
        # When so many are free that lie so is not counted, only placed: openings tell it.
        return None
    alone = replace(demand, pinned=frozenset(), kept={}, required=frozenset())
    if alone == demand and len(search.demands) == 1:
        runs = search.possible_runs(length, start, latest - length)
    else:
        (condition,), _ = derive_conditions([alone], [search.candidates(alone)], search.timeline)
        runs = condition.find_runs(search.timeline, length, start, latest - length)
    return from_epoch(runs[0][0]) if runs else None


def _lacks(cards: Cards, resource: Resource) -> bool:
    return not resource.capacity.get(cards.resource_class) or not cards.fit(resource)


def _count_beside(search: KindSearch, index: int, start: int, end: int) -> int:
    """Return how many one demand gets if the others get what they need."""
    search.budget.spend()
    demands = [replace(d, min_count=max(1, d.fixed_count)) if i == index else d for i, d in enumerate(search.demands)]
    try:
        found = search.place(start, end, demands)
    except NotEnoughResources:
        return 0
    return min(search.demands[index].min_count - 1, sum(a.count for a in found.assignments[index]))


def describe_requirement(requirement: Requirement) -> str:
    """Return a requirement in words, shortened."""
    text = _words(requirement)
    return text if len(text) <= LONGEST_WORDS else text[: LONGEST_WORDS - 1] + "…"


def _words(requirement: Requirement) -> str:
    match requirement:
        case Comparison(op, key, value):
            return f"{key} {op} {value}"
        case Membership(key, (value,)):
            return f"{key} == {value}"
        case Membership(key, values):
            return f"{key} in {', '.join(values)}"
        case All(terms):
            return " and ".join(f"({_words(term)})" if isinstance(term, AnyOf) else _words(term) for term in terms)
        case AnyOf(terms):
            return " or ".join(f"({_words(term)})" if isinstance(term, All) else _words(term) for term in terms)
        case Not(term):
            return f"not ({_words(term)})"
    return "anything"


def _plural(demand: Demand, count: int) -> str:
    return noun(demand.kind) + ("" if count == 1 else "s")
