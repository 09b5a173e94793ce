# SPDX-License-Identifier: Apache-2.0
"""The scratch copy of a calendar on which pieces move: no two at once on a host, and each step can be undone."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter

from blazar.calendar.fits import NEVER
from blazar.calendar.maintenance import PromisedPiece, Span
from blazar.calendar.repack.values import RepackMove, RepackProblem
from blazar.model.base.values import dataclass

NOWHERE = -1
"""The host of a unit that has none yet."""


@dataclass(frozen=True, slots=True)
class RepackUnit:
    """A host for a time: what is promised, what is needed, or what is fixed.

    ``choice`` is the number of the set of hosts that it may have, None where it stays. What is needed has no ``piece``.
    """

    number: int
    start: int
    end: int
    choice: int | None = None
    piece: PromisedPiece | None = None


_BY_START = attrgetter("start")


class RepackBoard:
    """What is on each host. Hosts that all choices treat alike are one class, but those ``apart``.

    Only hosts of choices are known.
    """

    def __init__(self, problem: RepackProblem, apart: frozenset[int] = frozenset()) -> None:
        self.window = problem.window
        self.units: list[RepackUnit] = []
        self.choices: list[frozenset[int]] = []
        self._on: dict[int, list[RepackUnit]] = defaultdict(list)
        self._at: list[int] = []
        self._log: list[tuple[RepackUnit, int]] = []
        self._numbers: dict[frozenset[int], int] = {}
        self._add_promised(problem)
        self.needed: tuple[tuple[RepackUnit, ...], ...] = tuple(
            tuple(
                self._add(problem.window, NOWHERE, choice)
                for choice in (
                    *(frozenset([host]) for host in sorted(need.pinned)),
                    *[need.hosts - need.pinned] * (need.count - len(need.pinned)),
                )
            )
            for need in problem.needs
        )
        self.class_of, self.classes = _find_classes(self.choices, apart)
        self.classes_of = [tuple(sorted({self.class_of[host] for host in choice})) for choice in self.choices]
        self._first = list(self._at)

    def _add_promised(self, problem: RepackProblem) -> None:
        """Put all that is promised; what overlaps on a host is one unit that stays."""
        on: dict[int, list[tuple[int, int, PromisedPiece | None]]] = defaultdict(list)
        for piece in problem.pieces:
            on[piece.resource_id].append((piece.start, piece.end, piece))
        for host, spans in problem.closed.items():
            on[host] += [(start, end, None) for start, end in spans]
        for host, uses in on.items():
            for start, end, one in _merge(uses):
                choice = None if one is None or not _is_free_to_go(one) else problem.choices.get(one.group)
                stays = choice is None or host not in choice
                self._add((start, end), host, None if stays else choice, None if stays else one)

    def _add(
        self, span: Span, host: int, choice: frozenset[int] | None, piece: PromisedPiece | None = None
    ) -> RepackUnit:
        number = None
        if choice is not None:
            number = self._numbers.setdefault(choice, len(self._numbers))
            if number == len(self.choices):
                self.choices.append(choice)
        unit = RepackUnit(len(self.units), *span, number, piece)
        self.units.append(unit)
        self._at.append(host)
        if host != NOWHERE:
            insort(self._on[host], unit, key=_BY_START)
        return unit

    def host_of(self, unit: RepackUnit) -> int:
        """Return where a unit is."""
        return self._at[unit.number]

    def move(self, unit: RepackUnit, host: int) -> None:
        """Put a unit on a host, or nowhere. It may meet others there until they are moved, too."""
        before = self._at[unit.number]
        self._log.append((unit, before))
        self._shift(unit, before, host)

    def _shift(self, unit: RepackUnit, before: int, host: int) -> None:
        if before != NOWHERE:
            self._on[before].remove(unit)
        if host != NOWHERE:
            insort(self._on[host], unit, key=_BY_START)
        self._at[unit.number] = host

    @property
    def mark(self) -> int:
        """Return the number of steps so far, to which ``undo`` goes back."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Undo all steps since a mark, the last one first."""
        while len(self._log) > mark:
            unit, before = self._log.pop()
            self._shift(unit, self._at[unit.number], before)

    def list_conflicts(self, host: int, start: int, end: int) -> list[RepackUnit]:
        """Return what is on a host in a span, latest first."""
        on = self._on.get(host)
        if not on:
            return []
        found = []
        for place in range(bisect_left(on, end, key=_BY_START) - 1, -1, -1):
            if on[place].end <= start:
                break
            found.append(on[place])
        return found

    def is_free(self, host: int, start: int, end: int) -> bool:
        """Return whether nothing is on a host in a span."""
        on = self._on.get(host)
        if not on:
            return True
        place = bisect_left(on, end, key=_BY_START)
        return not place or on[place - 1].end <= start

    def next_start(self, host: int, at: int) -> int:
        """Return when a host that is free at an instant is taken next."""
        on = self._on.get(host)
        place = bisect_left(on, at, key=_BY_START) if on else 0
        return on[place].start if on and place < len(on) else NEVER

    def measure_gap(self, host: int, start: int, end: int) -> int:
        """Return how long a host that is free in a span is free around it."""
        on = self._on.get(host)
        if not on:
            return NEVER
        place = bisect_left(on, end, key=_BY_START)
        before = on[place - 1].end if place else self.window[0]
        after = on[place].start if place < len(on) else NEVER
        return after - min(before, start)

    def list_between(self, host: int, start: int, end: int) -> Sequence[RepackUnit]:
        """Return what begins on a host in a span, earliest first."""
        on = self._on.get(host, [])
        return on[bisect_left(on, start, key=_BY_START) : bisect_left(on, end, key=_BY_START)]

    def find_full(self, class_: int, start: int, end: int) -> tuple[int, Sequence[RepackUnit]] | None:
        """Return the first instant of a span at which no host of a class is free, with what is there then."""
        hosts = self.classes[class_]
        found = [unit for host in hosts for unit in self.list_conflicts(host, start, end)]
        if len(found) < len(hosts):
            return None
        found.sort(key=_BY_START)
        there: list[RepackUnit] = []
        for unit in found:
            there = [other for other in there if other.end > unit.start]
            there.append(unit)
            if len(there) == len(hosts):
                return max(start, unit.start), there
        return None

    @property
    def is_sound(self) -> bool:
        """Whether each unit that may move is on a host that it may have, and no two are on one at once."""
        placed = [(host, unit) for host, unit in zip(self._at, self.units, strict=True) if unit.choice is not None]
        if not all(host in self.choices[unit.choice] for host, unit in placed if unit.choice is not None):
            return False
        return all(one.end <= two.start for on in self._on.values() for one, two in zip(on, on[1:], strict=False))

    @property
    def moves(self) -> Iterator[RepackMove]:
        """Yield the pieces that are not where they were."""
        for unit, first, now in zip(self.units, self._first, self._at, strict=True):
            if unit.piece is not None and first != now:
                yield RepackMove(unit.piece, now)


def _is_free_to_go(piece: PromisedPiece) -> bool:
    return piece.movable and piece.per_instance is None


def _merge(uses: Iterable[tuple[int, int, PromisedPiece | None]]) -> list[tuple[int, int, PromisedPiece | None]]:
    """Return uses in order, those that overlap as one without a piece."""
    merged: list[tuple[int, int, PromisedPiece | None]] = []
    for start, end, piece in sorted(uses, key=lambda use: use[:2]):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1]), None
        else:
            merged.append((start, end, piece))
    return merged


def _find_classes(
    choices: Sequence[frozenset[int]], apart: frozenset[int]
) -> tuple[Mapping[int, int], Sequence[Sequence[int]]]:
    """Return the class of each host of these sets, and the hosts of each class; one ``apart`` is a class of its own."""
    signs: dict[int, int] = defaultdict(int)
    for number, choice in enumerate(choices):
        for host in choice:
            signs[host] |= 1 << number
    known: dict[tuple[int, int], int] = {}
    keys = {host: (sign, host if host in apart else NOWHERE) for host, sign in signs.items()}
    classes: list[list[int]] = []
    for host in sorted(signs):
        number = known.setdefault(keys[host], len(classes))
        if number == len(classes):
            classes.append([])
        classes[number].append(host)
    return {host: known[key] for host, key in keys.items()}, classes
