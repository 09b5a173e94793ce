# SPDX-License-Identifier: Apache-2.0
"""The contract of types and kinds: each member is in one place, is checked, and acts in the region of the work."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from inspect import isfunction
from typing import Any

import pytest

from blazar.cmd.plugins import TYPES
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.base.plugins import entry_points_of
from blazar.model.resources.regions import Regions
from blazar.model.use.resource_hours import KIND_NAMESPACE
from blazar.resources.contract.checked import CheckedKind, CheckedType
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.plugin import check_members, first_parameter, members_of
from blazar.resources.contract.regional import RegionalKind, RegionalType
from blazar.resources.contract.schemas import check_schemas
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done, Progress, Task
from blazar.resources.hosts.type import PhysicalHost
from tests.resources.test_minimal_type import Bench, benches
from tests.world import World

REGIONS = Regions(("here", "elsewhere"))


class Noting(Bench):
    """Notes which of its methods are called with a task."""

    def __init__(self, region: str) -> None:
        super().__init__()
        self.region = region
        self.called: list[str] = []

    def start(self, task: Task) -> Progress:
        self.called.append("start")
        return Done()

    def end(self, task: Task) -> Progress:
        self.called.append("end")
        return Done()

    def in_use(self, task: Task) -> dict[int, int]:
        self.called.append("in_use")
        return {}


@pytest.fixture
def task(sqlite) -> Task:
    lease = World(sqlite, types=[Bench]).lease(benches(1))
    return Task(lease, replace(lease.reservations[0], region="elsewhere"), ())


def methods_of(contract: Any) -> dict[str, Any]:
    return {name: member for name, member in members_of(contract).items() if isfunction(member)}


def undelegated(front: Any, contract: Any) -> set[str]:
    """Return the methods that are asked of the type or kind of one region, and refused by that of all."""
    return {name for name in methods_of(contract) if vars(front)[name].__name__ == "of_none"}


def test_a_method_that_is_not_delegated_to_a_region_is_seen_here():
    assert undelegated(RegionalType, ResourceType) == {"gone", "plan_room", "reservations_in_projects"}
    assert undelegated(RegionalKind, Kind) == set()


def test_a_method_that_is_not_delegated_is_refused_and_never_asked_of_the_default_region():
    both = RegionalType({"here": Noting("here"), "elsewhere": Noting("elsewhere")}, REGIONS)
    with pytest.raises(TypeError, match="gone is another in each region: ask the type of one"):
        both.gone({})
    assert both.within("elsewhere").gone({}) == frozenset()


def test_what_acts_on_a_reservation_acts_in_its_region(task):
    here, elsewhere = Noting("here"), Noting("elsewhere")
    both = RegionalType({"here": here, "elsewhere": elsewhere}, REGIONS)
    for call in (both.start, both.end, both.in_use):
        call(task)
    assert (here.called, elsewhere.called) == ([], ["start", "end", "in_use"])
    with pytest.raises(CloudUnavailable, match="the region mars is not configured any more"):
        both.end(replace(task, reservation=replace(task.reservation, region="mars")))


def test_all_that_gets_a_task_goes_to_its_region_without_a_line_for_it():
    generated = {name for name, each in methods_of(ResourceType).items() if first_parameter(each) == "Task"}
    assert {"start", "end", "prepare", "restore", "probe", "load", "make_room", "moved"} <= generated
    names = {name: vars(RegionalType)[name].__name__ for name in generated - {"demand_again"}}
    assert set(names.values()) == {"of_task"}


@pytest.mark.parametrize(("front", "contract"), [(CheckedType, ResourceType), (CheckedKind, Kind)])
def test_every_member_is_asked_of_the_plain_type(front, contract):
    assert members_of(contract).keys() <= vars(front).keys()


def test_a_type_says_itself_what_it_can():
    assert {name for name in methods_of(ResourceType) if Bench().has(name)} == {"parameters", "demand", "start", "end"}
    assert PhysicalHost.has_named_hosts
    assert not Bench().has_named_hosts


def test_a_class_that_lacks_something_is_told_what():
    with pytest.raises(InvalidInput, match="it has no find, details"):
        check_members(type("Empty", (Kind,), {"kind": "empty"}))


def list_ours() -> list[object]:
    """Return our types and kinds as classes, all that are installed."""
    points = [*entry_points_of(TYPES).values(), *entry_points_of(KIND_NAMESPACE).values()]
    return [point.load() for point in points if point.module.startswith("blazar.")]


def test_schemas_of_ours_are_schemas_and_need_no_check_at_each_start():
    ours = list_ours()
    assert len(ours) > 10
    for each in ours:
        shape = getattr(each, "shape", None)
        schemas = [each.schema] if shape is None else [shape.registration, *shape.attributes.values()]
        check_schemas(each.__name__, [schema for schema in schemas if schema is not None])


@pytest.mark.parametrize(
    ("module", "is_checked"), [("acme.telescopes", True), ("blazar_acme", True), ("blazar.resources", False)]
)
def test_schemas_of_others_are_checked_at_each_start(module, is_checked):
    wrong = type("Wrong", (Bench,), {"schema": {"type": "telescope"}, "__module__": module})()
    with pytest.raises(TypeError, match="has a schema that cannot be used") if is_checked else nullcontext():
        CheckedType(wrong)
