# SPDX-License-Identifier: Apache-2.0
"""The simulated year can be stopped at any time and goes on as if it had not been."""

from __future__ import annotations

import pytest

from bench.year import __main__ as year
from bench.year.full import measure
from blazar.calendar.repack.values import RepackMode


class Stopped(Exception):
    """Somebody has stopped the year."""


def figures(**more) -> dict[str, object]:
    found = year.run(RepackMode.EQUAL, 0.03, 1, 66, **more)
    return {name: value for name, value in found.items() if not name.endswith("_ms")}


def test_a_year_that_was_stopped_has_the_same_figures(tmp_path, monkeypatch):
    kept, ask = tmp_path / "kept", year._prolong_some

    def stop(so_far: year.YearRun) -> None:
        if so_far.day == 63:
            raise Stopped
        ask(so_far)

    monkeypatch.setattr(year, "_prolong_some", stop)
    with pytest.raises(Stopped):
        figures(kept=kept)
    assert kept.exists()
    monkeypatch.setattr(year, "_prolong_some", ask)
    assert figures(kept=kept) == figures()


def test_answers_on_a_full_calendar_are_measured():
    found = measure(RepackMode.EQUAL, 500, 60, 1, 5)
    assert (found["hosts"], found["asked"]) == (500, 5)
    assert 0 <= found["granted"] <= 5
    assert found["seconds"]["p100"] >= found["seconds"]["p50"] >= 0
