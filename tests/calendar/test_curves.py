# SPDX-License-Identifier: Apache-2.0
"""Curves that have followed changes are those that are built from nothing, and cost what has changed."""

from __future__ import annotations

import random

import pytest

from blazar.calendar.curves import Curve, PromisedCurves
from blazar.calendar.kept import DERIVED, DerivedValues, KeptResource
from tests.calendar.test_kept import LARGE, random_uses


@pytest.mark.parametrize("measure", [None, "VCPU"])
@pytest.mark.parametrize("seed", range(20))
def test_curves_that_follow_are_those_that_are_built_from_nothing(seed: int, measure: str | None):
    dice = random.Random(seed)
    counted = {id_: (("gpu" if id_ % 2 else None,), 4) for id_ in range(5)}
    resources: dict[int, KeptResource] = {}
    curves = PromisedCurves(measure)
    for _ in range(12):
        id_ = dice.randrange(6)
        match dice.randrange(3):
            case 0:
                # Resources are registered, removed, and change their groups.
                counted = {
                    **{other: found for other, found in counted.items() if other != id_},
                    **({id_: ((dice.choice(["gpu", "cpu"]),), dice.randrange(3))} if dice.randrange(2) else {}),
                }
            case _:
                held, left = random_uses(dice), [(9, 4, 1, None), (3, 5, 1, LARGE)][: dice.randrange(3)]
                resources = {**resources, id_: KeptResource.of_uses(1, held, left)}
        curves = curves.follow(counted, resources)
        fresh = PromisedCurves(measure).follow(counted, resources).curves
        assert {group: curve for group, curve in curves.curves.items() if curve.instants} == {
            group: curve for group, curve in fresh.items() if curve.instants
        }


def test_what_has_not_changed_is_not_looked_at(monkeypatch: pytest.MonkeyPatch):
    counted = dict.fromkeys(range(100), ((), 1))
    resources = {id_: KeptResource.of_uses(1, [(0, 9, 1, None)]) for id_ in range(100)}
    curves = PromisedCurves(None).follow(counted, resources)
    looked = []
    monkeypatch.setattr("blazar.calendar.curves.sum_promised", lambda uses, *_: looked.append(uses) or [])
    curves.follow(dict(counted), {**resources, 7: KeptResource.of_uses(2, [(1, 2, 1, None)])})
    assert looked == [((0, 9, 1, None),), ((1, 2, 1, None),)]


def test_a_curve_is_nothing_before_it_begins():
    curve = Curve.of_changes({5: 2, 7: 0, 9: -2})
    assert [curve.at(instant) for instant in (4, 5, 8, 9)] == [0, 2, 2, 0]
    assert curve.list_at([4, 5, 6, 9]) == [0, 2, 2, 0]
    assert curve.add({5: -2, 9: 2}) == Curve([], [])


def test_few_derived_values_are_kept_the_latest_of_them():
    values = DerivedValues()
    for number in range(DERIVED + 1):
        values.keep(number, number)
        values.keep(1, "one")
    assert (values.find(0), values.find(1), values.find(DERIVED)) == (None, "one", DERIVED)
