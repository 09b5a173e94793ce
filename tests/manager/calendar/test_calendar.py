# SPDX-License-Identifier: Apache-2.0
"""The calendar as members and operators see it, on leases that live."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, Duration
from blazar.model.base.paging import Page, Position
from blazar.model.base.service_info import ReadBounds
from blazar.model.calendar.views import (
    BlockKind,
    CalendarQuestion,
    CapacityQuestion,
    OutOfUse,
    PropertyValueCount,
    Range,
    Viewer,
)
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

HOUR = timedelta(hours=1)
DAY = 24 * HOUR
CLEANING = timedelta(minutes=30)
MEMBER = Viewer("physics")
STRANGER = Viewer("chemistry")
OPERATOR = Viewer("admin", names=True, owners=True, private=True)
NAME = Page(200, "name")


@pytest.fixture
def world(sqlite):
    return World(sqlite, cleaning_time=CLEANING)


def page(world, viewer=MEMBER, until=24, start=None, paging=NAME, **more):
    asked = Range(start, NOON + until * HOUR)
    return world.manager.calendar.page(CalendarQuestion(viewer, paging, asked, **more))


def blocks(found):
    """Blocks as (kind, hour, hour), of all rows."""
    return sorted(
        (str(block.kind), (block.start - NOON) / HOUR, block.end and (block.end - NOON) / HOUR)
        for row in found.rows
        for block in row.blocks
    )


def test_a_member_sees_own_leases_with_cleaning_and_of_others_only_when(world):
    mine = world.lease(start=HOUR, hours=2, name="mine")
    theirs = world.lease(start=5 * HOUR, hours=2, name="secret", project="chemistry")
    found = page(world)
    assert blocks(found) == [("cleaning", 3, 3.5), ("mine", 1, 3), ("other", 5, 7.5)]
    assert set(found.leases) == {mine.id}
    assert found.leases[mine.id].name == "mine"
    shown = repr(found)
    assert not [
        word for word in (theirs.id, theirs.reservations[0].id, "secret", "chemistry", "node-") if word in shown
    ]
    assert all(row.id.startswith("h-") and row.name is row.label is None for row in found.rows)
    assert all(row.properties.keys() == {"availability_zone", "hypervisor_type"} for row in found.rows)


def test_an_operator_sees_every_lease_with_its_owner_and_names(world):
    one = world.lease(start=HOUR, hours=2, name="one")
    other = world.lease(start=5 * HOUR, hours=2, project="chemistry")
    found = page(world, OPERATOR)
    assert [kind for kind, *_ in blocks(found)] == ["cleaning", "cleaning", "lease", "lease"]
    assert {id_: lease.project_id for id_, lease in found.leases.items()} == {one.id: "physics", other.id: "chemistry"}
    assert {(row.id, row.name) for row in found.rows} >= {("1", "node-1"), ("2", "node-2")}
    assert {row.label for row in found.rows} == {row.id for row in page(world).rows}


def test_touching_leases_of_others_are_one_block_and_shared_hosts_show_the_sum(sqlite):
    world = World(sqlite, hosts=1, cleaning_time=CLEANING)
    for start in (1, 3):
        world.lease(start=start * HOUR, hours=1.5, project="chemistry")
    assert blocks(page(world)) == [("other", 1, 5)]
    for start, project in ((6, "chemistry"), (7, "biology")):
        world.lease(instances(2, vcpus=2), start=start * HOUR, hours=2, project=project)
    found = [block for row in page(world).rows for block in row.blocks if block.start >= NOON + 6 * HOUR]
    small = Amounts.of({"VCPU": 4, "MEMORY_MB": 4096, "DISK_GB": 20})
    assert [(block.used, (block.end - block.start) / HOUR) for block in found] == [
        (small, 1),
        (small + small, 1.5),
        (small, 1),
    ]


def test_a_lease_that_ends_early_or_late_is_shown_until_it_was_over(world):
    lease = world.lease(hours=2)
    world.run_to(NOON + HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    world.clock.to(NOON + 3 * HOUR)
    assert blocks(page(world, start=NOON - HOUR)) == [("cleaning", 1, 1.5), ("mine", 0, 1)]
    assert blocks(page(world)) == []
    late = world.lease(hours=1)
    world.clock.to(NOON + 6 * HOUR)
    assert blocks(page(world, start=NOON + 2 * HOUR)) == [("mine", 3, 6)]
    assert world.now(late).deleted_at is None


def test_hosts_out_of_use_say_until_when_and_only_operators_why(world):
    world.manager.resources.change(
        HOST, "1", ResourceChange({}, disabled=True, disabling=Disabling("fan", NOON + 3 * HOUR))
    )
    block, later = (block for row in page(world, OPERATOR).rows for block in row.blocks)
    assert (block.kind, block.code, block.start, block.end) == (
        BlockKind.OUT_OF_USE,
        OutOfUse.DISABLED,
        NOON,
        NOON + 3 * HOUR,
    )
    assert (later.code, later.start, later.end) == (OutOfUse.TO_BE_ENABLED, NOON + 3 * HOUR, None)
    assert block.reason == later.reason == "fan"
    assert page(world).rows != ()
    assert [block.reason for row in page(world).rows for block in row.blocks] == [None, None]


def test_hosts_for_other_projects_and_private_properties_are_not_there_for_members(world):
    change = world.manager.resources.change
    change(HOST, "1", ResourceChange({"gpu": "A100", "price": "9"}, open_to=("physics",), sets_projects=True))
    world.manager.resources.set_property(HOST, "price", private=True)
    assert [len(page(world, viewer).rows) for viewer in (MEMBER, STRANGER, OPERATOR)] == [3, 2, 3]
    gpu = json.dumps(["==", "$gpu", "A100"])
    (row,) = page(world, requirement=gpu).rows
    with pytest.raises(InvalidInput, match="gpu"):
        page(world, STRANGER, requirement=gpu)
    assert "price" not in row.properties
    assert page(world, OPERATOR, requirement=gpu).rows[0].properties["price"] == "9"
    refused = []
    for viewer, key in (
        (MEMBER, "price"),
        (MEMBER, "nonsense"),
        (MEMBER, "hypervisor_hostname"),
        (OPERATOR, "nonsense"),
    ):
        for more in ({"requirement": json.dumps(["==", f"${key}", "9"])}, {"paging": Page(9, key)}):
            with pytest.raises(InvalidInput) as error:
                page(world, viewer, **more)
            assert error.value.code == "unknown_property"
            refused.append(error.value.message.replace(key, "X"))
    assert len(set(refused)) == 2
    with pytest.raises(InvalidInput, match="requirement is malformed") as malformed:
        page(world, requirement='["~"]')
    assert malformed.value.code == "malformed_requirement"


@pytest.mark.slow
def test_pages_show_every_host_once_in_order_also_if_hosts_come_and_go(sqlite):
    world = World(sqlite, hosts=9, register=False)
    for number in range(1, 10):
        world.register(f"node-{number}", gpus=str(number % 4), **({"gpu": "A100"} if number > 6 else {}))
    for viewer in (MEMBER, OPERATOR):
        for key in ("name", "gpus", "gpu"):
            for descending in (False, True):
                whole = [row.id for row in page(world, viewer, paging=Page(200, key, descending)).rows]
                seen, after = [], None
                while True:
                    found = page(world, viewer, paging=Page(2, key, descending, after))
                    seen += [row.id for row in found.rows]
                    if found.following is None:
                        break
                    # By the id alone the same page follows.
                    by_id = page(world, viewer, paging=Page(2, key, descending, found.following.id))
                    after = found.following
                    assert by_id.rows == page(world, viewer, paging=Page(2, key, descending, after)).rows
                assert seen == whole
                assert len(seen) == 9
    after = page(world, OPERATOR, paging=Page(3, "name")).following
    world.manager.resources.unregister(HOST, after.id)
    assert [row.name for row in page(world, OPERATOR, paging=Page(2, "name", after=after)).rows] == ["node-4", "node-5"]
    for marker in ("h-000000", Position("{", "x"), Position("[1]", "x"), "1"):
        with pytest.raises(InvalidInput) as error:
            page(world, paging=Page(2, "name", after=marker))
        assert error.value.code == "invalid_marker"
    assert page(world, paging=replace(NAME, with_count=True, limit=2)).count == 8


def test_rows_are_found_by_label_and_for_operators_by_id(world):
    labels = {row.name: row.label for row in page(world, OPERATOR).rows}
    assert [row.id for row in page(world, resources=(labels["node-2"],)).rows] == [labels["node-2"]]
    assert page(world, resources=("2",)).rows == ()
    assert [row.id for row in page(world, OPERATOR, resources=("2", labels["node-3"])).rows] == ["2", "3"]


def test_rows_that_the_project_uses_are_found(world):
    lease = world.lease(start=HOUR, hours=2)
    world.lease(a_host(2), start=HOUR, hours=2, project="chemistry")
    found = page(world, occupied=True)
    assert [block.lease_id for row in found.rows for block in row.blocks if block.lease_id] == [lease.id]
    assert len(found.rows) == 1
    assert len(page(world, STRANGER, occupied=True).rows) == 2
    assert page(world, occupied=True, start=NOON + 4 * HOUR).rows == ()


def test_addresses_are_shown_by_name_to_everybody(world):
    world.register_addresses(7)
    (row,) = page(world, resource_type="virtual:floatingip").rows
    assert row.name == "203.0.113.7 on network public"
    assert row.properties["floating_ip_address"] == "203.0.113.7"
    with pytest.raises(InvalidInput, match="physical:host"):
        page(world, resource_type="virtual:nothing")


@pytest.mark.parametrize(
    ("viewer", "asked", "code", "parameter"),
    [
        (MEMBER, Range(NOON - 32 * 24 * HOUR, None), "out_of_bounds", "from"),
        (OPERATOR, Range(NOON - 367 * 24 * HOUR, None), "out_of_bounds", "from"),
        (MEMBER, Range(None, NOON + 367 * 24 * HOUR), "out_of_bounds", "to"),
        (MEMBER, Range(NOON + 2000 * 24 * HOUR, None), "out_of_bounds", "from"),
        (MEMBER, Range(NOON + 1800 * 24 * HOUR, NOON + 2000 * 24 * HOUR), "out_of_bounds", "to"),
        (MEMBER, Range(NOON, NOON), "invalid_window", "to"),
        (MEMBER, Range(Duration(days=1), NOW), "invalid_window", "to"),
    ],
)
def test_ranges_have_bounds(world, viewer, asked, code, parameter):
    for question in (CalendarQuestion(viewer, NAME, asked), CapacityQuestion(viewer, asked)):
        call = (
            world.manager.calendar.page if isinstance(question, CalendarQuestion) else world.manager.calendar.capacity
        )
        with pytest.raises(InvalidInput) as error:
            call(question)
        assert (error.value.code, error.value.parameter) == (code, parameter)


def test_a_range_that_is_not_named_is_the_next_two_weeks(world):
    window = world.manager.calendar.page(CalendarQuestion(MEMBER, NAME)).window
    assert (window.start, window.end) == (NOON, NOON + 14 * 24 * HOUR)
    asked = Range(Duration(days=1, backward=True), Duration(days=2))
    window = world.manager.calendar.page(CalendarQuestion(MEMBER, NAME, asked)).window
    assert (window.start, window.end) == (NOON - 24 * HOUR, NOON + 24 * HOUR)


def test_a_range_whose_end_is_not_named_ends_where_the_bounds_are(sqlite):
    reads = ReadBounds(longest_range=3 * DAY, ahead=5 * DAY)
    world = World(sqlite, settings=Settings(reads=reads))
    for start, end in ((NOON, NOON + 3 * DAY), (NOON + 4 * DAY, NOON + 5 * DAY)):
        window = world.manager.calendar.page(CalendarQuestion(MEMBER, NAME, Range(start, None))).window
        assert (window.start, window.end) == (start, end)
    with pytest.raises(InvalidInput) as error:
        world.manager.calendar.capacity(CapacityQuestion(MEMBER, Range(NOON + 5 * DAY, None)))
    assert (error.value.parameter, error.value.data) == ("from", {"maximum": 5 * 24 * 3600})


def capacity(world, viewer=MEMBER, hours=3, **more):
    asked = Range(NOON, NOON + hours * HOUR)
    return world.manager.calendar.capacity(CapacityQuestion(viewer, asked, Duration(seconds=3600), **more)).series


def test_capacity_counts_what_is_free_promised_and_out_of_use_by_group(world):
    world.manager.resources.change(HOST, "3", ResourceChange({"gpu": "A100"}, disabled=True))
    world.lease(start=HOUR, hours=0.5, project="chemistry")
    (one,) = capacity(world)
    assert (one.group, one.total) == ({}, (3, 3, 3))
    assert (one.free, one.promised, one.out_of_use) == ((2, 1, 2), (0, 1, 0), (1, 1, 1))
    with_gpu, without = capacity(world, group_by=("gpu",))
    assert (with_gpu.group, with_gpu.out_of_use) == ({"gpu": "A100"}, (1, 1, 1))
    assert (without.group, without.free) == ({"gpu": None}, (2, 1, 2))
    (cpus,) = capacity(world, measure="VCPU")
    sizes = {host.name: host.capacity.get("VCPU") for host in world.manager.resources.all(HOST)}
    assert cpus.total == (sum(sizes.values()),) * 3
    assert cpus.out_of_use == (sizes["node-3"],) * 3
    assert cpus.free == tuple(cpus.total[0] - sizes["node-3"] - promised for promised in cpus.promised)
    assert set(cpus.promised) == {0, cpus.promised[1]}
    assert cpus.promised[1] in sizes.values()
    (some,) = capacity(world, requirement=json.dumps(["==", "$gpu", "A100"]))
    assert some.total == (1, 1, 1)


@pytest.mark.parametrize("properties", [{"rack": "r1"}, {"project_id": "any"}])
def test_only_operators_see_to_which_projects_it_is_promised(world, properties):
    world.manager.resources.change(HOST, "1", ResourceChange(properties))
    world.lease(hours=2)
    world.lease(hours=1, project="chemistry")
    with pytest.raises(InvalidInput) as error:
        capacity(world, group_by=("project_id",))
    assert error.value.code == "unknown_property"
    found = {one.group["project_id"]: one.promised for one in capacity(world, OPERATOR, group_by=("project_id",))}
    assert found == {"chemistry": (1, 1, 0), "physics": (1, 1, 1), None: (0, 0, 0)}


def test_capacity_has_bounds(world):
    for more, parameter in (
        ({"step": Duration(seconds=59)}, "step"),
        ({"step": Duration(seconds=60), "range": Range(NOON, NOON + 300 * 24 * HOUR)}, "step"),
        ({"measure": "VGPU"}, "measure"),
        ({"group_by": ("hypervisor_hostname",)}, "group_by"),
    ):
        with pytest.raises(InvalidInput) as error:
            world.manager.calendar.capacity(CapacityQuestion(MEMBER, **more))
        assert error.value.parameter == parameter
    usual = world.manager.calendar.capacity(CapacityQuestion(MEMBER))
    assert usual.step == 2 * HOUR
    assert len(usual.series[0].free) == 168


def test_properties_are_listed_with_counts_of_the_hosts_open_to_the_project(world):
    change = world.manager.resources.change
    change(HOST, "1", ResourceChange({"gpu": "A100", "gpus": "4", "price": "9"}))
    change(HOST, "2", ResourceChange({"gpu": "A100", "gpus": "8"}))
    change(HOST, "3", ResourceChange({"gpu": "H100"}, open_to=("physics",), sets_projects=True))
    world.manager.resources.set_property(HOST, "price", private=True)

    def listed(viewer):
        return {each.name: each for each in world.manager.calendar.properties(viewer, "physical:host").properties}

    member = listed(MEMBER)
    assert list(member) == ["availability_zone", "gpu", "gpus", "hypervisor_type", "local_gb", "memory_mb", "vcpus"]
    assert member["gpu"].values == (PropertyValueCount("A100", 2), PropertyValueCount("H100", 1))
    assert (member["gpus"].is_number, member["gpus"].minimum, member["gpus"].maximum) == (True, 4, 8)
    assert listed(STRANGER)["gpu"].values == (PropertyValueCount("A100", 2),)
    operator = listed(Viewer("physics", names=True, private=True))
    assert operator["price"].private
    assert "hypervisor_hostname" in operator


def test_who_sees_names_of_resources_learns_nothing_of_their_hooks(world):
    world.register_thing()
    viewer, asked = Viewer("physics", names=True), '["==", "$hook_url", "https://lab.example/microscope-1"]'
    with pytest.raises(InvalidInput, match="requirement names 'hook_url', which no generic resource has"):
        page(world, viewer, resource_type="generic", requirement=asked)
    found = world.manager.calendar.properties(viewer, "generic").properties
    assert "hook_url" not in {each.name for each in found}


@pytest.mark.parametrize("hosts", [2, 20])
def test_each_question_costs_a_constant_number_of_statements(sqlite, hosts):
    world = World(sqlite, hosts=hosts)
    for start in range(hosts):
        world.lease(a_host(2), start=3 * start * HOUR)
    for viewer in (MEMBER, OPERATOR):
        page(world, viewer), capacity(world, viewer)
        for ask, expected in (
            (lambda viewer=viewer: page(world, viewer, until=99), 3),
            (lambda viewer=viewer: page(world, viewer, until=99, paging=Page(1, "name"), occupied=True), 4),
            (lambda viewer=viewer: capacity(world, viewer), 1),
            (lambda viewer=viewer: world.manager.calendar.properties(viewer, "physical:host"), 1),
        ):
            with counted(sqlite) as statements:
                ask()
            assert statements.count == expected
