# SPDX-License-Identifier: Apache-2.0
"""A manager that has lost its claim changes nothing: somebody else goes on with the work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from blazar.context import scope
from blazar.model.base.errors import ClaimLost
from blazarconformance.catalogue import PREPARES, check, require
from blazarconformance.ensures import same
from blazarconformance.trial import Trial


@dataclass(frozen=True, slots=True)
class _Over:
    """The fence of a manager that no longer has its claim."""

    longest_call: float = 10.0

    def remaining(self) -> float:
        return 0.0


@check()
def a_manager_without_its_claim_starts_nothing(trial: Trial) -> None:
    """A start of a manager that has lost its claim changes nothing in the cloud: each change calls check_change."""
    task = trial.prepared(trial.task())
    _fenced(trial, lambda: trial.type.start(task), "start")


@check()
def a_manager_without_its_claim_ends_nothing(trial: Trial) -> None:
    """An end of a manager that has lost its claim changes nothing in the cloud: each change calls check_change."""
    task = trial.in_use()
    _fenced(trial, lambda: trial.type.end(task), "end")


@check(PREPARES)
def a_manager_without_its_claim_prepares_nothing(trial: Trial) -> None:
    """A manager that has lost its claim prepares nothing in the cloud: each change calls check_change."""
    task = trial.task()
    other = trial.another()
    unchanged = other.task()
    before = other.site.snapshot()
    other.type.prepare(unchanged)
    if other.site.snapshot() == before:
        # It only looks, for what would be in the way.
        return
    _fenced(trial, lambda: trial.type.prepare(task), "prepare")


def _fenced(trial: Trial, act: Callable[[], object], name: str) -> None:
    before = trial.site.snapshot()
    try:
        with scope(fence=_Over()):
            act()
    except ClaimLost:
        same(trial, before, f"after a {name} without a claim")
        return
    require(False, f"{name} did not call check_change.")
