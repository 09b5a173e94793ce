# SPDX-License-Identifier: Apache-2.0
"""The exact stage: how many of alike units are in each class of hosts, as an integer program; HiGHS solves it.

In a class on which nothing stays that begins later than what may move, the numbers decide: at no instant more than its
hosts (interval graphs are perfect). A host on which something does is a class of its own, where no two may meet. So
the program has a solution if and only if there is an arrangement. If it has none even with parts of units, its dual
values are prices, a proof that anybody can count again. Without the extra ``exact`` nothing is decided here.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from blazar.calendar.repack.board import RepackBoard, RepackUnit
from blazar.calendar.repack.values import HostPrice, NoArrangement, RepackProblem
from blazar.model.base.values import dataclass, field

MOST_VARIABLES = 100_000
"""How large a program is tried."""

_SCALE = 1 << 20
"""Prices are whole numbers, in this part of what one unit that is needed is worth."""

Goal = tuple[RepackUnit, int]
"""A unit, and the class that it goes to."""


def find_arrangements(
    problem: RepackProblem, seconds: float
) -> Iterator[tuple[RepackBoard, list[Goal]] | NoArrangement]:
    """Yield boards, each with the units that go to other classes, or the proof that there is no arrangement.

    The first ones are quicker to find, and may not be possible on single hosts. Nothing is left after ``seconds``.
    """
    solver = _Solver.load(seconds)
    if solver is None:
        return
    board = RepackBoard(problem)
    late = _find_late(board)
    for apart, near in ((frozenset[int](), True), (frozenset[int](), False), (late, False)):
        if apart:
            board = RepackBoard(problem, apart)
        program = _Program(board, near=near)
        if program.size > MOST_VARIABLES:
            return
        found = solver.solve(program)
        if isinstance(found, NoArrangement):
            if near:
                continue
            yield found
            return
        if found is None:
            return
        yield board, found
        if not near and not late:
            return
        board = RepackBoard(problem)


def _find_late(board: RepackBoard) -> frozenset[int]:
    """Return the hosts on which something stays that begins later than what may come to their class."""
    first: dict[int, int] = {}
    for unit in board.units:
        if unit.choice is not None:
            for class_ in board.classes_of[unit.choice]:
                first[class_] = min(unit.start, first.get(class_, unit.start))
    hosts = {board.host_of(u): u.start for u in sorted(board.units, key=lambda u: u.start) if u.choice is None}
    return frozenset(h for h, start in hosts.items() if h in board.class_of and start > first[board.class_of[h]])


@dataclass(slots=True)
class _AlikeUnits:
    """Units of one time and choice, which are alike; those that are needed have no class yet."""

    start: int
    end: int
    classes: Sequence[int]
    units: dict[int, list[RepackUnit]] = field(default_factory=lambda: defaultdict(list))
    needed: list[RepackUnit] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.units.values())) + len(self.needed)


@dataclass(slots=True)
class _Program:
    """The groups that may be in several classes, and how many of these each class has room for over time.

    ``near``: only what meets the window changes its class. ``columns`` are the pairs of a group and a class, ``steps``
    by class the instants at which its number changes, with the room from then on and when that is least.
    """

    board: RepackBoard
    near: bool = False
    groups: list[_AlikeUnits] = field(default_factory=list)
    columns: list[tuple[int, int]] = field(default_factory=list)
    steps: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        board = self.board
        known: dict[tuple[int, int, int | None], _AlikeUnits] = {}
        stays: dict[int, list[tuple[int, int]]] = defaultdict(list)
        needed = {unit.number for units in board.needed for unit in units}
        for unit in board.units:
            host, is_needed = board.host_of(unit), unit.number in needed
            classes = () if unit.choice is None else board.classes_of[unit.choice]
            meets = unit.start < board.window[1] and board.window[0] < unit.end
            if is_needed or (len(classes) > 1 and (meets or not self.near)):
                group = known.setdefault(
                    (unit.start, unit.end, unit.choice), _AlikeUnits(unit.start, unit.end, classes)
                )
                (group.needed if is_needed else group.units[board.class_of[host]]).append(unit)
            elif host in board.class_of:
                stays[board.class_of[host]] += [(unit.start, 1), (unit.end, -1)]
        self.groups = list(known.values())
        if self.size > MOST_VARIABLES:
            return
        self.columns = [(n, class_) for n, group in enumerate(self.groups) for class_ in group.classes]
        instants: dict[int, set[int]] = defaultdict(set)
        for number, class_ in self.columns:
            instants[class_] |= {self.groups[number].start, self.groups[number].end}
        for class_, some in instants.items():
            self.steps[class_] = list(_list_room(len(board.classes[class_]), sorted(some), sorted(stays[class_])))

    @property
    def size(self) -> int:
        """Return how many columns it has; one that is too large is left without."""
        return sum([len(group.classes) for group in self.groups])

    def count_goals(self, values: Sequence[float]) -> list[Goal]:
        """Return the units that go to other classes, by how many of each group are in each."""
        goals: list[Goal] = []
        # They are in the order of the columns: each group has its own after another.
        numbers = iter(values)
        for group in self.groups:
            wanted = {class_: round(next(numbers)) for class_ in group.classes}
            leaving = list(group.needed)
            for class_, units in group.units.items():
                leaving += units[wanted[class_] :]
            for class_, count in wanted.items():
                more = max(0, count - len(group.units.get(class_, ())))
                goals += [(unit, class_) for unit in leaving[:more]]
                leaving = leaving[more:]
        return goals

    def make_proof(self, prices: Mapping[tuple[int, int], float]) -> NoArrangement | None:
        """Return prices by class and step as a proof, rounded; None if they prove nothing then."""
        whole = {key: round(price * _SCALE) for key, price in prices.items()}
        paid, priced = 0, [(c, *self.steps[c][n], price) for (c, n), price in whole.items() if price > 0]
        by_class: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for class_, at, room, _, price in priced:
            by_class[class_].append((at, price))
            paid -= room * price
        for group in self.groups:
            cheapest = min(sum(p for at, p in by_class[c] if group.start <= at < group.end) for c in group.classes)
            paid += group.count * cheapest
        if paid <= 0:
            return None
        hosts = self.board.classes
        return NoArrangement(tuple(HostPrice(frozenset(hosts[c]), least, price) for c, _, _, least, price in priced))


def _list_room(
    hosts: int, instants: Sequence[int], changes: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """Yield each instant with the least room up to the next one, and when that is."""
    place = taken = 0
    for at, until in zip(instants, instants[1:], strict=False):
        while place < len(changes) and changes[place][0] <= at:
            taken += changes[place][1]
            place += 1
        most, when = taken, at
        while place < len(changes) and changes[place][0] < until:
            taken += changes[place][1]
            if taken > most:
                most, when = taken, changes[place][0]
            place += 1
        yield at, hosts - most, when


@dataclass(slots=True)
class _Solver:
    """HiGHS, and until when it goes on, by a monotonic clock. The same program has the same answer."""

    highspy: Any
    numpy: Any
    until: float

    @classmethod
    def load(cls, seconds: float) -> _Solver | None:
        """Return it; None without time, or if the extra is not installed."""
        if seconds <= 0:
            return None
        until = time.monotonic() + seconds
        try:
            # It takes a tenth of a second, which most processes never need.
            return cls(import_module("highspy"), import_module("numpy"), until)
        except ImportError:
            return None

    def solve(self, program: _Program) -> list[Goal] | NoArrangement | None:
        """Return which units go to which classes; or that no numbers fit; None if the time is over."""
        model = _make_model(self.highspy, self.numpy, program)
        status, values, duals = self._run(model)
        if status != self.highspy.HighsModelStatus.kOptimal:
            return None
        columns, groups = len(program.columns), len(program.groups)
        if any(value > 1e-6 for value in values[columns : columns + groups]):
            # A room that is used up costs what one more of it would save.
            places = [(class_, number) for class_, steps in program.steps.items() for number in range(len(steps))]
            proof = program.make_proof(dict(zip(places, [-dual for dual in duals[columns + groups :]], strict=True)))
            if proof is not None:
                return proof
        kinds = self.highspy.HighsVarType
        upper = list(model.col_upper_)
        others = len(upper) - columns
        model.col_upper_ = self.numpy.array([*upper[:columns], *[0.0] * groups, *upper[columns + groups :]])
        model.col_cost_ = self.numpy.array([*_list_costs(program), *[0.0] * others])
        model.integrality_ = [kinds.kInteger] * columns + [kinds.kContinuous] * others
        status, values, _ = self._run(model)
        if status == self.highspy.HighsModelStatus.kInfeasible:
            return NoArrangement()
        return program.count_goals(values) if status == self.highspy.HighsModelStatus.kOptimal else None

    def _run(self, model: Any) -> tuple[Any, Sequence[float], Sequence[float]]:
        # To build a large program takes as long as to solve it.
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            return self.highspy.HighsModelStatus.kTimeLimit, (), ()
        # The class for users begins with two lines on our standard output, before it can be told not to.
        highs = self.highspy.Highs.__base__()
        options = {
            "output_flag": False,
            "threads": 1,
            "random_seed": 0,
            "time_limit": seconds,
            "mip_rel_gap": 0.05,
        }
        for name, value in options.items():
            highs.setOptionValue(name, value)
        highs.passModel(model)
        highs.run()
        solution = highs.getSolution()
        return highs.getModelStatus(), solution.col_value, solution.col_dual


def _list_costs(program: _Program) -> list[float]:
    """Return what a unit costs in each class: less where it is."""
    return [-1.0 if program.groups[n].units.get(class_) else 0.0 for n, class_ in program.columns]


def _make_model(highspy: Any, numpy: Any, program: _Program) -> Any:
    """Return the program for HiGHS: a number for each column, for what is left of each group, and for each step.

    Rows: a group is somewhere, or left; and the number of a class changes by what begins and ends at a step.
    """
    rows = len(program.groups)
    row_of: dict[tuple[int, int], int] = {}
    for class_, steps in program.steps.items():
        for at, *_ in steps:
            row_of[class_, at] = rows
            rows += 1
    entries: list[list[tuple[int, float]]] = []
    for number, class_ in program.columns:
        group = program.groups[number]
        column = [(number, 1.0), (row_of[class_, group.start], -1.0)]
        # At its last instant a class has nothing left of these: there is no step.
        if (class_, group.end) in row_of:
            column.append((row_of[class_, group.end], 1.0))
        entries.append(column)
    entries += [[(number, 1.0)] for number in range(len(program.groups))]
    upper = [float(program.groups[n].count) for n, _ in program.columns]
    upper += [float(len(group.needed)) for group in program.groups]
    for class_, steps in program.steps.items():
        for place, (at, room, _) in enumerate(steps):
            later = [(row_of[class_, steps[place + 1][0]], -1.0)] if place + 1 < len(steps) else []
            entries.append([(row_of[class_, at], 1.0), *later])
            upper.append(float(room))
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(entries), rows
    left = range(len(program.columns), len(program.columns) + len(program.groups))
    model.col_cost_ = numpy.array([float(column in left) for column in range(len(entries))])
    model.col_lower_, model.col_upper_ = numpy.zeros(len(entries)), numpy.array(upper)
    bounds = [float(group.count) for group in program.groups] + [0.0] * (rows - len(program.groups))
    model.row_lower_, model.row_upper_ = numpy.array(bounds), numpy.array(bounds)
    matrix = model.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_ = numpy.cumsum([0, *map(len, entries)])
    matrix.index_ = numpy.array([row for column in entries for row, _ in column])
    matrix.value_ = numpy.array([value for column in entries for _, value in column])
    return model
