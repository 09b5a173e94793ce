# SPDX-License-Identifier: Apache-2.0
"""The search for hosts: free ones, or such as others leave for equal ones, directly, by swaps, or in a chain.

In a class of equal hosts of which one is free at each instant of a window, swaps never fail if nothing stays that
begins in the window: first fit colours an interval graph with as many colours as meet at an instant (Golumbic, 1980).
Between classes the problem is NP-hard (list colouring of interval graphs), so a chain is only tried to some depth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from blazar.calendar.repack.board import NOWHERE, RepackBoard, RepackUnit
from blazar.calendar.repack.exact import Goal, find_arrangements
from blazar.calendar.repack.proof import find_proof
from blazar.calendar.repack.values import NoArrangement, NotRepacked, Repack, RepackLimits, RepackProblem
from blazar.model.base.values import dataclass, field, replace

MOST_STARTS = 4
"""How many hosts of a class a swap is begun on."""

MOST_RELIEVED = 50
"""How many units leave a class in one step of a chain, and how many are tried at an instant."""


class _Spent(Exception):
    """The search has taken long enough."""


def repack(problem: RepackProblem, limits: RepackLimits | None = None) -> Repack | NotRepacked:
    """Return hosts for all needs, with the pieces that leave theirs; or that none were found, perhaps with a proof.

    Pieces move only to hosts of their choice, for the time that they have. As many are moved as ``limits`` allow, and
    none without need.
    """
    limits = limits or RepackLimits()
    problem = problem.drop_far()
    # What does not meet the window proves nothing, and is most of it.
    proof = find_proof(RepackBoard(problem.drop_others()))
    if proof is not None:
        return NotRepacked(proof)
    board = RepackBoard(problem)
    try:
        found = _RepackSearch(board, limits).place_needed()
    except _Spent:
        found = False
    return _conclude(problem, board, limits) if found else _decide(problem, limits)


def _decide(problem: RepackProblem, limits: RepackLimits) -> Repack | NotRepacked:
    """Return what the exact stage says where the search has given up."""
    calm = replace(limits, is_spent=lambda: False)
    for found in find_arrangements(problem, limits.exact):
        if isinstance(found, NoArrangement):
            return NotRepacked(found)
        board, goals = found
        if _RepackSearch(board, calm).reach(goals):
            return _conclude(problem, board, limits)
    return NotRepacked()


def _conclude(problem: RepackProblem, board: RepackBoard, limits: RepackLimits) -> Repack | NotRepacked:
    """Return what is found once all is placed on a board, if no more leases move than may."""
    if not board.is_sound:
        raise RuntimeError("two leases would be on one host at once")
    moves = tuple(board.moves)
    leases = len({move.piece.lease_id for move in moves})
    if leases > limits.leases:
        return NotRepacked(leases=leases)
    hosts = [frozenset(map(board.host_of, units)) for units in board.needed]
    return Repack(tuple(_add_free(problem, board, hosts)), moves)


def _add_free(problem: RepackProblem, board: RepackBoard, hosts: Sequence[frozenset[int]]) -> Iterator[frozenset[int]]:
    """Yield the hosts of each need, with what is free up to its maximum."""
    taken = frozenset().union(*hosts)
    for need, found in zip(problem.needs, hosts, strict=True):
        more = max(0, need.most - len(found))
        free = [host for host in sorted(need.hosts - taken) if board.is_free(host, *problem.window)][:more]
        taken |= frozenset(free)
        yield found.union(free)


@dataclass(slots=True)
class _RepackSearch:
    """Finds places on a board; what fails is undone."""

    board: RepackBoard
    limits: RepackLimits
    _relieving: list[int] = field(default_factory=list)

    def place_needed(self) -> bool:
        """Place all that is needed, first where no other place is possible, then what is free."""
        needed = [unit for units in self.board.needed for unit in units]
        needed.sort(key=lambda unit: len(self._choice(unit)))
        # Those with one host only leave the rest for the others.
        only = [unit for unit in needed if len(self._choice(unit)) == 1]
        left = [unit for unit in needed if len(self._choice(unit)) != 1]
        if not all(self._place(unit, self.limits.depth) for unit in only):
            return False
        left = [unit for unit in left if not self._place_free(unit, self._choice(unit))]
        return all(self._place(unit, self.limits.depth) for unit in left)

    def reach(self, goals: Iterable[Goal]) -> bool:
        """Put units on hosts of other classes: all leave first, and the longest is placed first."""
        ordered = sorted(goals, key=lambda goal: (goal[0].start - goal[0].end, goal[0].number))
        for unit, _ in ordered:
            self.board.move(unit, NOWHERE)
        return all(
            self._place_free(unit, self.board.classes[class_]) or self._place_in(unit, (class_,), 0)
            for unit, class_ in ordered
        )

    def _choice(self, unit: RepackUnit) -> frozenset[int]:
        return frozenset() if unit.choice is None else self.board.choices[unit.choice]

    def _classes(self, unit: RepackUnit) -> Sequence[int]:
        return () if unit.choice is None else self.board.classes_of[unit.choice]

    def _count_step(self) -> None:
        if self.limits.is_spent():
            raise _Spent

    def _place(self, unit: RepackUnit, depth: int) -> bool:
        """Place a unit that is nowhere; ``depth`` is how far what makes room for it may need room itself."""
        if self._place_free(unit, self._choice(unit)):
            return True
        for far in range(depth + 1):
            if self._place_directly(unit, far) or self._place_in(unit, self._classes(unit), far):
                return True
        return False

    def _place_free(self, unit: RepackUnit, hosts: Iterable[int]) -> bool:
        """Put a unit on a free host: the one with the shortest gap, of those one that few others may have."""
        board, start, end = self.board, unit.start, unit.end
        free = [host for host in hosts if board.is_free(host, start, end)]
        if not free:
            return False
        best = min(free, key=lambda host: (board.measure_gap(host, start, end), self._count_users(host), host))
        board.move(unit, best)
        return True

    def _count_users(self, host: int) -> int:
        """Return how many choices have a host: of a scarce one there are many."""
        return len([1 for choice in self.board.choices if host in choice])

    def _place_directly(self, unit: RepackUnit, depth: int) -> bool:
        """Put a unit on a host whose pieces in that time all find another one."""
        board, most = self.board, self.limits.conflicts
        options: list[tuple[int, int]] = []
        for host in self._choice(unit):
            met = board.list_conflicts(host, unit.start, unit.end)
            if len(met) <= most and all(other.choice is not None for other in met):
                options.append((len(met), host))
        in_vain: set[tuple[int | None, int, int]] = set()
        for _, host in sorted(options):
            self._count_step()
            if self._take_over(unit, host, depth, in_vain):
                return True
        return False

    def _take_over(self, unit: RepackUnit, host: int, depth: int, in_vain: set[tuple[int | None, int, int]]) -> bool:
        """Put a unit on a host, and what is there on others; ``in_vain`` is what has found none before."""
        board = self.board
        met = sorted(board.list_conflicts(host, unit.start, unit.end), key=lambda other: other.start - other.end)
        if any((other.choice, other.start, other.end) in in_vain for other in met):
            return False
        mark = board.mark
        for other in met:
            board.move(other, NOWHERE)
        board.move(unit, host)
        for place, other in enumerate(met):
            found = self._place(other, depth - 1) if depth else self._place_free(other, self._choice(other))
            if not found:
                if not place:
                    in_vain.add((other.choice, other.start, other.end))
                board.undo(mark)
                return False
        return True

    def _place_in(self, unit: RepackUnit, classes: Collection[int], depth: int) -> bool:
        """Put a unit on a host of some classes: by a swap where one is free at each instant, or once it is relieved."""
        board, full = self.board, []
        for class_ in classes:
            if board.find_full(class_, unit.start, unit.end) is None:
                if self._swap_in(unit, class_):
                    return True
            else:
                full.append(class_)
        if not depth:
            return False
        for class_ in full:
            mark = board.mark
            if self._relieve(class_, unit, depth - 1) and self._place_in(unit, (class_,), 0):
                return True
            board.undo(mark)
        return False

    def _swap_in(self, unit: RepackUnit, class_: int) -> bool:
        """Put a unit on a host of a class, of which one is free at each instant, by exchanges if it must be."""
        board = self.board
        free = [host for host in board.classes[class_] if board.is_free(host, unit.start, unit.start + 1)]
        free.sort(key=lambda host: (-board.next_start(host, unit.start), host))
        for host in free[:MOST_STARTS]:
            mark = board.mark
            if self._clear_by_swaps(host, unit):
                board.move(unit, host)
                return True
            board.undo(mark)
        return False

    def _clear_by_swaps(self, host: int, unit: RepackUnit) -> bool:
        """Exchange what is on a host in the time of a unit for what others of its class have, step by step."""
        board = self.board
        at = board.next_start(host, unit.start)
        while at < unit.end:
            self._count_step()
            best: tuple[int, int, int, Sequence[RepackUnit], Sequence[RepackUnit]] | None = None
            for other in board.classes[board.class_of[host]]:
                if other == host or not board.is_free(other, at, at + 1):
                    continue
                mine, theirs = self._find_tails(host, other, at)
                if all(one.choice is not None for one in (*mine, *theirs)):
                    option = (-board.next_start(other, at), len(mine) + len(theirs), other, mine, theirs)
                    if best is None or option[:3] < best[:3]:
                        best = option
            if best is None:
                return False
            _, _, other, mine, theirs = best
            for one in (*mine, *theirs):
                board.move(one, NOWHERE)
            for one in mine:
                board.move(one, other)
            for one in theirs:
                board.move(one, host)
            at = board.next_start(host, at)
        return True

    def _find_tails(self, host: int, other: int, at: int) -> tuple[Sequence[RepackUnit], Sequence[RepackUnit]]:
        """Return what two hosts have from an instant on, up to the first one at which nothing of either goes on."""
        board = self.board
        until = board.list_between(host, at, at + 1)[0].end
        while True:
            mine, theirs = board.list_between(host, at, until), board.list_between(other, at, until)
            last = max(unit.end for unit in (*mine, *theirs))
            if last <= until:
                return mine, theirs
            until = last

    def _relieve(self, class_: int, unit: RepackUnit, depth: int) -> bool:
        """Let units leave a class for others, until one host of it is free at each instant of the time of a unit."""
        board = self.board
        self._relieving.append(class_)
        try:
            for _ in range(MOST_RELIEVED):
                full = board.find_full(class_, unit.start, unit.end)
                if full is None:
                    return True
                there = sorted(full[1], key=lambda one: (one.start - one.end, one.number))
                if not any(self._send_away(one, depth) for one in there[:MOST_RELIEVED]):
                    return False
            return False
        finally:
            self._relieving.pop()

    def _send_away(self, unit: RepackUnit, depth: int) -> bool:
        """Let a unit leave its class for one that is not being relieved."""
        classes = [class_ for class_ in self._classes(unit) if class_ not in self._relieving]
        if not classes:
            return False
        self._count_step()
        board, mark = self.board, self.board.mark
        board.move(unit, NOWHERE)
        hosts = [host for class_ in classes for host in board.classes[class_]]
        if self._place_free(unit, hosts) or self._place_in(unit, classes, depth):
            return True
        board.undo(mark)
        return False
