# SPDX-License-Identifier: Apache-2.0
"""A refusal counts what was asked for: instances on hosts, volumes on pools, units of anything else, or by its type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import place
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.resources.resource import GENERIC, HOST, VOLUME
from tests.calendar.test_shared import WINDOW


@pytest.mark.parametrize(("kind", "word"), [(HOST, "instances"), (VOLUME, "volumes"), (GENERIC, "units")])
def test_a_refusal_has_the_word_for_what_was_asked_for(kind, word):
    snapshot = Snapshot((), Occupancy.of_allocations(WINDOW, ()))
    demand = Demand(kind, 2, 2, per_instance=Amounts.of({"X": 1}))
    with pytest.raises(NotEnoughResources, match=f": 2 {word} requested, .* 0 {word} fit"):
        place([demand], snapshot)
    with pytest.raises(NotEnoughResources, match=": 2 seats requested, .* 0 seats fit"):
        place([replace(demand, word="seat")], snapshot)


def test_the_word_for_it_is_no_part_of_what_is_asked_for():
    demand = Demand(HOST, 2, 2, per_instance=Amounts.of({"X": 1}))
    assert replace(demand, word="server") == demand
