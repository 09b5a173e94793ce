# SPDX-License-Identifier: Apache-2.0
"""Hall's condition: whether what is there and what is needed can be on different hosts, at each instant and for a time.

At one instant that is a flow between choices and classes of hosts. What is there is a flow already; each unit that is
needed is added along an augmenting path. If there is none, all that the search has met is full, of units that can be
nowhere else: that is the proof (Hall, 1935; Ford and Fulkerson, 1956). What is needed stays on its host for the whole
window, so that of each class no more than what is free at its fullest instant is of use, whenever that is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from blazar.calendar.repack.board import NOWHERE, RepackBoard, RepackUnit
from blazar.calendar.repack.values import FullAt, HostPrice, NoArrangement
from blazar.model.base.values import dataclass, field


def find_proof(board: RepackBoard) -> FullAt | NoArrangement | None:
    """Return why there is no room, whatever is moved: the first full instant, or one for each class; None if neither.

    What is needed is nowhere on the board.
    """
    start, end = board.window
    placed = [unit for unit in board.units if board.host_of(unit) in board.class_of]
    placed = sorted((u for u in placed if u.start < end and start < u.end), key=lambda unit: unit.start)
    wanted = Counter(unit.choice for units in board.needed for unit in units if unit.choice is not None)
    return _find_full(board, placed, wanted) or _find_fullest(board, placed, wanted)


def _find_full(board: RepackBoard, placed: Sequence[RepackUnit], wanted: Mapping[int, int]) -> FullAt | None:
    """Return the first instant at which hosts are full; ``placed`` is what meets the window, by start."""
    start = board.window[0]
    instants = sorted({start, *(unit.start for unit in placed if unit.start > start)})
    by_end = sorted(placed, key=lambda unit: unit.end)
    begun = over = 0
    moment = _Moment(board)
    for at in instants:
        while begun < len(placed) and placed[begun].start <= at:
            moment.add(board.class_of[board.host_of(placed[begun])], placed[begun].choice, 1)
            begun += 1
        while over < len(by_end) and by_end[over].end <= at:
            moment.add(board.class_of[board.host_of(by_end[over])], by_end[over].choice, -1)
            over += 1
        full = moment.find_full(wanted)
        if full is not None:
            classes, asked = full
            hosts = frozenset(host for class_ in classes for host in board.classes[class_])
            return FullAt(at, hosts, moment.count_bound(classes), asked)
    return None


def _find_fullest(board: RepackBoard, placed: Sequence[RepackUnit], wanted: Mapping[int, int]) -> NoArrangement | None:
    """Return the proof that classes are too full, each at an instant of its own, for what is needed all the time.

    Only what cannot leave its class counts.
    """
    moment, fullest = _Moment(board), [board.window[0]] * len(board.classes)
    there: list[list[RepackUnit]] = [[] for _ in board.classes]
    for unit in placed:
        class_ = board.class_of[board.host_of(unit)]
        if unit.choice is None or board.classes_of[unit.choice] == (class_,):
            there[class_] = [other for other in there[class_] if other.end > unit.start]
            there[class_].append(unit)
            free = len(board.classes[class_]) - len(there[class_])
            if free < moment.free[class_]:
                moment.free[class_], fullest[class_] = free, max(board.window[0], unit.start)
    full = moment.find_full(wanted)
    if full is None:
        return None
    return NoArrangement(tuple(HostPrice(frozenset(board.classes[c]), fullest[c], 1) for c in sorted(full[0])))


@dataclass(slots=True)
class _Moment:
    """How many units of each choice are in each class at an instant; those that stay have no choice."""

    board: RepackBoard
    free: list[int] = field(default_factory=list)
    there: Mapping[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def __post_init__(self) -> None:
        self.free = [len(hosts) for hosts in self.board.classes]

    def add(self, class_: int, choice: int | None, number: int) -> None:
        """Add units to a class, or take them away."""
        self.free[class_] -= number
        if choice is not None:
            self.there[class_][choice] += number

    def count_bound(self, classes: frozenset[int]) -> int:
        """Return how many units in some classes can be nowhere else."""
        own = {number for number, of in enumerate(self.board.classes_of) if classes.issuperset(of)}
        total = 0
        for class_ in classes:
            elsewhere = sum(n for choice, n in self.there[class_].items() if choice not in own)
            total += len(self.board.classes[class_]) - self.free[class_] - elsewhere
        # And those that are elsewhere now, and can only be here: there are none, for a choice has its own host.
        return total

    def find_full(self, wanted: Mapping[int, int]) -> tuple[frozenset[int], int] | None:
        """Return the classes that are full by what is wanted besides, and how many are wanted of them; None if none."""
        free = list(self.free)
        there: dict[int, Counter[int]] = {}
        for choice, number in wanted.items():
            for _ in range(number):
                met = self._augment(choice, free, there)
                if met is not None:
                    return met, sum(n for one, n in wanted.items() if met.issuperset(self.board.classes_of[one]))
        return None

    def _augment(self, choice: int, free: list[int], changed: dict[int, Counter[int]]) -> frozenset[int] | None:
        """Add one unit of a choice; return the classes that were met if there is no way."""
        came: dict[int, tuple[int, int]] = {}
        queue: list[int] = []
        for class_ in self.board.classes_of[choice]:
            came[class_] = NOWHERE, choice
            queue.append(class_)
        asked = {choice}
        for class_ in queue:
            if free[class_] > 0:
                free[class_] -= 1
                self._shift(class_, came, changed)
                return None
            for other, number in changed.get(class_, self.there[class_]).items():
                if number > 0 and other not in asked:
                    asked.add(other)
                    for to in self.board.classes_of[other]:
                        if to not in came:
                            came[to] = class_, other
                            queue.append(to)
        return frozenset(came)

    def _shift(self, class_: int, came: Mapping[int, tuple[int, int]], changed: dict[int, Counter[int]]) -> None:
        """Let one unit of each choice on a path go on to the next class."""
        while class_ != NOWHERE:
            before, choice = came[class_]
            changed.setdefault(class_, Counter(self.there[class_]))[choice] += 1
            if before != NOWHERE:
                changed.setdefault(before, Counter(self.there[before]))[choice] -= 1
            class_ = before
