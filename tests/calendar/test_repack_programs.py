# SPDX-License-Identifier: Apache-2.0
"""The integer programs of the exact stage take no longer than they may, however many leases there are."""

from __future__ import annotations

from blazar.calendar.maintenance import PromisedPiece
from blazar.calendar.repack import exact
from blazar.calendar.repack.board import RepackBoard
from blazar.calendar.repack.values import RepackProblem, WholeNeed


class Numbers(list):
    """Tells how many of its numbers were looked at."""

    seen = 0

    def __iter__(self):
        for number in super().__iter__():
            self.seen += 1
            yield number


def of_leases(count):
    """Return a problem with leases of one host, one after the other, that may go to another one."""
    pieces = [PromisedPiece(f"l{n}", f"r{n}", 1, 10 * n, 10 * n + 10, movable=True, group="all") for n in range(count)]
    return RepackProblem((0, 10), [WholeNeed(1, frozenset([1]))], pieces, {"all": frozenset([1, 2])})


def test_each_number_of_a_solution_is_looked_at_once():
    """Of ten thousand leases it took minutes to look at all numbers for each."""
    program = exact._Program(RepackBoard(of_leases(20)))
    other = program.board.class_of[2]
    numbers = Numbers([1.0 if class_ == other or program.groups[n].needed else 0.0 for n, class_ in program.columns])
    goals = program.count_goals(numbers)
    assert {unit.piece.lease_id for unit, class_ in goals if class_ == other} == {f"l{n}" for n in range(20)}
    assert numbers.seen <= len(program.columns)


def test_a_program_that_is_too_large_is_not_built(monkeypatch):
    monkeypatch.setattr(exact, "MOST_VARIABLES", 1)
    program = exact._Program(RepackBoard(of_leases(1)))
    assert program.size > 1
    assert not program.columns
    assert list(exact.find_arrangements(of_leases(1), 1)) == []
