# SPDX-License-Identifier: Apache-2.0
"""Trouble that lasts is logged when it begins, once a minute, and when it is over."""

from __future__ import annotations

import logging

import pytest

from blazar.model.base.log_lines import MINUTE, MOST, Trouble

LOG = logging.getLogger("blazar.test")


class Watched(Trouble):
    """Trouble on a clock that the test moves."""

    def __init__(self, caplog) -> None:
        self.now = 1000.0
        super().__init__(LOG, "It works", clock=lambda: self.now)
        self._caplog = caplog

    @property
    def lines(self) -> list[str]:
        return [record.getMessage() for record in self._caplog.records]


@pytest.fixture
def trouble(caplog) -> Watched:
    caplog.set_level(logging.INFO, "blazar.test")
    return Watched(caplog)


def test_three_minutes_of_failures_are_four_lines(trouble):
    for _ in range(1432):
        trouble.log_failure("It is away")
        trouble.now += 0.125
    trouble.now += 5
    trouble.log_recovery()
    assert trouble.lines == [
        "It is away",
        "It is away (480 times in 60 s)",
        "It is away (480 times in 60 s)",
        "It works again, after 179 s and 1432 failures",
    ]


def test_what_fails_and_works_in_turns_is_not_over(trouble):
    for _ in range(470):
        trouble.log_failure("It cannot be written")
        trouble.now += 0.125
        trouble.log_recovery()
    assert trouble.lines == ["It cannot be written"]


def test_what_begins_again_soon_is_not_told_each_time(trouble):
    for _ in range(10):
        trouble.log_failure("It is away")
        trouble.now += 3
        trouble.log_recovery()
        trouble.now += 2
    assert trouble.lines == ["It is away", "It works again, after 0 s and 1 failures"]


def test_another_reason_is_told_at_once_but_not_any_number_of_them(trouble):
    for number in range(100):
        trouble.log_failure(f"Reason {number}")
    assert len(trouble.lines) == MOST
    trouble.now += MINUTE
    trouble.log_failure("Reason 7")
    assert len(trouble.lines) == MOST + 1


def test_without_trouble_nothing_is_over(trouble):
    trouble.log_recovery()
    assert trouble.lines == []


def test_a_bug_is_told_with_its_traceback(trouble, caplog):
    error = ValueError("broken")
    trouble.log_failure("A round failed", error)
    assert caplog.records[0].exc_info[1] is error
