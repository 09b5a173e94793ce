# SPDX-License-Identifier: Apache-2.0
"""Limits of a unit, traits, and resources that have shrunk below what is promised of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from blazar.calendar.occupancy import Occupancy, Snapshot
from blazar.calendar.placement import place
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotEnoughResources
from blazar.model.calendar.demand import Demand, TraitRequirements
from blazar.model.resources.pools import UnitLimits
from blazar.model.resources.resource import HOST, Resource
from tests.builders import a_host, hours, promised

WINDOW = hours(0, 4)


def ask(count: int, vcpus: int | None = 2, **more) -> Demand:
    per_instance = None if vcpus is None else Amounts.of({"VCPU": vcpus})
    return Demand(HOST, count, count, per_instance=per_instance, **more)


def given(demand: Demand, *hosts: Resource, allocations=()) -> dict[int, int]:
    (assignments,) = place([demand], Snapshot(hosts, Occupancy.of_allocations(WINDOW, allocations))).assignments
    return {share.resource_id: share.count for share in assignments}


def limited(id: int, vcpus: int = 8, **limits: int) -> Resource:
    return replace(a_host(id, vcpus=vcpus), limits={"VCPU": UnitLimits(**limits)})


@pytest.mark.parametrize(
    ("limits", "fits"),
    [({"most": 1}, 0), ({"most": 2}, 4), ({"least": 3}, 0), ({"step": 2}, 4), ({"step": 3}, 0), ({}, 4)],
)
def test_a_unit_that_breaks_a_limit_fits_nowhere_on_the_resource(limits, fits):
    assert Occupancy().count_free(limited(1, **limits), Amounts.of({"VCPU": 2})) == fits
    if fits:
        assert given(ask(fits), limited(1, **limits)) == {1: fits}
    else:
        with pytest.raises(NotEnoughResources, match="0 instances fit"):
            given(ask(1), limited(1, **limits))


def test_limits_are_those_of_a_unit_and_not_of_all_together():
    assert given(ask(4), limited(1, most=2)) == {1: 4}


def test_limits_of_classes_that_a_unit_does_not_take_are_nothing_to_it():
    host = replace(a_host(1), limits={"PCPU": UnitLimits(least=4)})
    assert given(ask(1), host) == {1: 1}


def test_whole_resources_have_no_limits():
    assert given(ask(1, None), limited(1, most=1)) == {1: 1}


def test_a_demand_goes_where_the_traits_are():
    fast = replace(a_host(1), traits=frozenset({"FAST", "HOT"}))
    cool = replace(a_host(2), traits=frozenset({"FAST"}))
    plain = a_host(3)
    needs = TraitRequirements(frozenset({"FAST"}), frozenset({"HOT"}))
    for vcpus in (2, None):
        assert set(given(ask(1, vcpus, traits=needs), fast, cool, plain)) == {2}
        with pytest.raises(NotEnoughResources, match=r"\b1 (match|hosts match)"):
            given(ask(9, vcpus, traits=needs), fast, cool, plain)
    assert set(given(ask(1, traits=TraitRequirements(forbidden=frozenset({"FAST"}))), fast, cool, plain)) == {3}


def test_a_resource_that_shrank_has_no_room_and_breaks_nothing():
    shrunk, other = a_host(1, vcpus=2), a_host(2, vcpus=4)
    allocations = [promised(1, WINDOW, vcpus=2, count=4)]
    assert Occupancy.of_allocations(WINDOW, allocations).count_free(shrunk, Amounts.of({"VCPU": 1})) == 0
    assert given(ask(2), shrunk, other, allocations=allocations) == {2: 2}


def test_what_was_promised_for_the_window_before_is_kept_on_a_resource_that_shrank():
    shrunk = a_host(1, vcpus=2)
    assert given(ask(2, kept={1: 2}, entitled=True), shrunk) == {1: 2}
    assert given(ask(3, kept={1: 2}, entitled=True), shrunk, a_host(2)) == {1: 2, 2: 1}
    with pytest.raises(NotEnoughResources, match="node-1 is in use"):
        given(ask(2, kept={1: 2}), shrunk)
    with pytest.raises(NotEnoughResources):
        given(ask(3, kept={1: 2}, entitled=True), shrunk)
