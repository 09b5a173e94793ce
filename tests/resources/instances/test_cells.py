# SPDX-License-Identifier: Apache-2.0
"""Servers with NUMA cells of their own: which can be promised, and on which hosts."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

import blazar
from blazar.clouds.ports.compute import Flavor
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.base.moments import Duration
from blazar.model.calendar.cells import CELLS, GuestCells, count_cells
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.pools import UnitLimits
from blazar.model.resources.resource import HOST, Resource
from blazar.model.search.availability import AvailabilityQuestion, StepCode
from blazar.resources.hosts.flavors import check_reservable, per_instance_of
from blazar.resources.hosts.guest_cells import cells_of
from tests.builders import a_host
from tests.resources.instances.steps import promised
from tests.world import NOON, PROJECT, World, flavored, instances, of_hosts

HOUR = timedelta(hours=1)
DEDICATED = {"hw:cpu_policy": "dedicated"}


def a_flavor(vcpus: int = 8, memory_mb: int = 4096, **specs: str) -> Flavor:
    return Flavor("f", "f", vcpus, memory_mb, 0, extra_specs=specs, public=True)


def a_host_of(cells: int | None, **more: object) -> Resource:
    attributes = {} if cells is None else {"cpu_info": f'{{"topology": {{"cells": {cells}}}}}'}
    return replace(a_host(1), attributes=attributes, **more)


@pytest.mark.parametrize(
    ("specs", "cells"),
    [
        ({}, None),
        ({"hw:cpu_policy": "shared", "hw:cpu_sockets": "2"}, None),
        ({"resources:PCPU": "8", "resources:VCPU": "0"}, None),
        (DEDICATED, GuestCells(1)),
        ({"hw:numa_nodes": "2"}, GuestCells(2)),
        ({**DEDICATED, "hw:numa_nodes": "4"}, GuestCells(4)),
        ({**DEDICATED, "hw:emulator_threads_policy": "isolate"}, GuestCells(1)),
        ({"hw:mem_page_size": "small"}, GuestCells(1, paged=True)),
        ({"hw:mem_page_size": "any", "hw:numa_nodes": "2"}, GuestCells(2, paged=True)),
    ],
    ids=str,
)
def test_a_server_has_the_cells_that_nova_gives_it(specs, cells):
    flavor = a_flavor(**specs)
    check_reservable(flavor)
    assert cells_of(flavor) == cells


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ({"hw:mem_page_size": "large"}, "hw:mem_page_size asks for huge pages"),
        ({"hw:mem_page_size": "1GB"}, "hw:mem_page_size asks for huge pages"),
        ({"hw:numa_nodes": "3"}, "hw:numa_nodes is 3, among which its 8 VCPUs cannot be divided evenly"),
        ({"hw:numa_nodes": "0"}, "hw:numa_nodes is .0.; a number of NUMA cells is 1 or more"),
        ({"hw:numa_nodes": "two"}, "hw:numa_nodes is .two."),
        ({"hw:numa_nodes": "2", "hw:numa_cpus.0": "0-5"}, "hw:numa_cpus.0 sizes one NUMA cell"),
        ({"hw:numa_nodes": "2", "hw:numa_mem.1": "512"}, "hw:numa_mem.1 sizes one NUMA cell"),
        (
            {**DEDICATED, "hw:numa_nodes": "2", "hw:emulator_threads_policy": "isolate"},
            "hw:numa_nodes is more than 1 and its emulator threads",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_promised_is_refused_by_name_and_what_is_stored_fits_nowhere(specs, words):
    flavor = a_flavor(**specs)
    with pytest.raises(InvalidInput, match=words):
        check_reservable(flavor)
    asked = cells_of(flavor)
    assert asked is not None
    assert not any(asked.fit(a_host_of(cells)) for cells in (None, 1, 2, 3))


def test_memory_that_cannot_be_divided_is_named():
    with pytest.raises(InvalidInput, match="its 4097 MiB cannot be divided evenly"):
        check_reservable(a_flavor(memory_mb=4097, **{"hw:numa_nodes": "2"}))


@pytest.mark.parametrize(
    ("cpu_info", "declared", "cells"),
    [
        ('{"topology": {"cells": 2, "sockets": 2}}', None, 2),
        ('{"topology": {"cells": 2}}', "4", 4),
        ("", "2", 2),
        ('{"topology": {"cells": 2}}', "2" * 5000, None),
        # Its operator knows that they differ.
        ('{"topology": {"cells": 2}}', "0", None),
        ('{"topology": {"cells": 2}}', "unequal", None),
        ('{"topology": {"cells": 0}}', None, None),
        ('{"topology": {"cells": true}}', None, None),
        ('{"topology": {"sockets": 2}}', None, None),
        ('{"topology": []}', None, None),
        ("[]", None, None),
        ("not JSON", None, None),
        (None, None, None),
    ],
)
def test_the_cells_of_a_host_are_what_its_operator_or_else_nova_says(cpu_info, declared, cells):
    told = {} if declared is None else {CELLS: declared}
    assert count_cells(replace(a_host(1), attributes={"cpu_info": cpu_info}, capabilities=told)) == cells


def test_cpus_that_cannot_be_divided_among_the_cells_say_that_these_differ():
    capacity = Amounts.of({"PCPU": 9, "MEMORY_MB": 4096})
    assert not GuestCells(2).fit(a_host_of(2, capacity=capacity))
    assert GuestCells(1).fit(a_host_of(1, capacity=capacity))


def test_pages_are_never_more_than_there_are():
    host = a_host_of(1, capacity=Amounts.of({"VCPU": 8, "MEMORY_MB": 8192}), limits={"MEMORY_MB": UnitLimits(1, 4096)})
    assert GuestCells(1).fit(host)
    assert not GuestCells(1, paged=True).fit(host)
    assert GuestCells(1, paged=True).fit(replace(host, limits={"MEMORY_MB": UnitLimits(1, 8192)}))


servers = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from([1, 2, 3]), st.booleans()), min_size=1, max_size=12
)


@given(cells=st.sampled_from([1, 2, 3]), cpus=st.integers(1, 12), memory=st.integers(1, 12), asked=servers)
def test_what_fits_by_amounts_of_the_host_boots_in_its_cells(cells, cpus, memory, asked):
    """Nova by brute force: it takes any cells that have room, one for each cell of the server."""
    host = a_host_of(cells, capacity=Amounts.of({"PCPU": cpus * cells, "MEMORY_MB": memory * cells, "DISK_GB": 1}))
    free = [[cpus, memory] for _ in range(cells)]
    used = Amounts()
    for each_cpus, each_memory, count, dedicated in asked:
        specs = {"hw:numa_nodes": str(count), **(DEDICATED if dedicated else {})}
        flavor = Flavor("f", "f", each_cpus * count, each_memory * count, 0, extra_specs=specs)
        needs, guest = per_instance_of(flavor), cells_of(flavor)
        assert guest is not None
        if not dedicated or not guest.fit(host) or not host.count_beside(used, needs):
            continue
        used += needs
        rooms = [cell for cell in free if cell[0] >= each_cpus and cell[1] >= each_memory]
        assert len(rooms) >= count, f"{flavor} does not boot"
        for cell in rooms[:count]:
            cell[0] -= each_cpus
            cell[1] -= each_memory


# From the request on


@pytest.fixture
def world(a_world):
    return a_world(
        state=of_hosts(
            {"inventories": {"PCPU": {"total": 24}}, "cells": 2},
            {"inventories": {"PCPU": {"total": 8}}},
            {"inventories": {"PCPU": {"total": 24}}, "cells": 3},
        ),
        hosts=3,
    )


def offer(world: World, flavor: Flavor) -> None:
    world.simulated.operators.offer_flavor(flavor)


def test_dedicated_servers_go_where_their_cells_are_those_of_the_host(world):
    offer(world, replace(a_flavor(8, **DEDICATED), id="one"))
    offer(world, replace(a_flavor(8, **DEDICATED, **{"hw:numa_nodes": "2"}), id="two"))
    assert promised(world, world.lease(flavored(1, "one"))) == {"node-2": 1}
    with pytest.raises(NotEnoughResources, match="1 hosts match"):
        world.lease(flavored(1, "one"))
    assert promised(world, world.lease(flavored(3, "two"))) == {"node-1": 3}
    with pytest.raises(NotEnoughResources, match="1 hosts match"):
        world.lease(flavored(1, "two"))


def test_servers_of_a_size_too(world):
    plain = instances(1, vcpus=6, memory_mb=1024)
    dedicated = replace(plain, parameters={**plain.parameters, "extra_specs": DEDICATED})
    assert promised(world, world.lease(dedicated)) == {"node-2": 1}
    with pytest.raises(NotEnoughResources, match="1 hosts match"):
        world.lease(dedicated)


def test_servers_that_are_booted_for_a_project_too(world):
    offer(world, replace(a_flavor(8, **DEDICATED), id="one", disk_gb=20))
    ask = ReservationRequest("virtual:server", {"amount": 1, "image": "cirros", "flavor": "one"})
    assert promised(world, world.lease(ask)) == {"node-2": 1}
    with pytest.raises(NotEnoughResources, match="1 hosts match"):
        world.lease(ask)
    offer(world, replace(a_flavor(8, **{"hw:mem_page_size": "large"}), id="huge", disk_gb=20))
    with pytest.raises(InvalidInput, match="hw:mem_page_size asks for huge pages") as no:
        world.lease(replace(ask, parameters={**ask.parameters, "flavor": "huge"}))
    assert no.value.pointer == "/reservations/0/flavor"


def test_a_search_tells_how_many_hosts_are_left_out(world):
    offer(world, replace(a_flavor(8, **DEDICATED), id="one"))
    question = AvailabilityQuestion(
        Actor("curie", PROJECT), (flavored(2, "one"),), duration=Duration(seconds=3600), latest=Duration(days=2)
    )
    (reason,) = world.manager.availability.find(question).reasons
    assert [(step.code, step.remaining, step.removed) for step in reason.steps] == [
        (StepCode.REGISTERED, 3, None),
        (StepCode.CELLS, 1, 2),
    ]
    assert reason.message == "3 hosts; 2 whose NUMA cells do not suit the flavor; 1 instance fits"
    (opening,) = world.manager.availability.find(replace(question, reservations=(flavored(1, "one"),))).openings[:1]
    assert opening.window.start == NOON


def test_operators_say_how_many_cells_a_host_has(world):
    offer(world, replace(a_flavor(8, **DEDICATED), id="one"))
    world.manager.resources.change(HOST, "3", ResourceChange({CELLS: "1"}))
    assert promised(world, world.lease(flavored(4, "one"))) == {"node-2": 1, "node-3": 3}


def test_a_reservation_from_before_stays_and_can_last_longer_but_gets_no_more(world, monkeypatch):
    offer(world, replace(a_flavor(2, **{"hw:mem_page_size": "large"}), id="huge"))
    with pytest.raises(InvalidInput, match="hw:mem_page_size asks for huge pages"):
        world.lease(flavored(1, "huge"))
    with monkeypatch.context() as before:
        before.setattr("blazar.resources.hosts.flavors.check_reservable", lambda *_: None)
        before.setattr("blazar.resources.instances.flavor.cells_of", lambda _: None)
        lease = world.lease(flavored(2, "huge"))
        world.run()
    there = promised(world, lease)
    assert promised(world, world.change(lease, end=lease.window.end + HOUR)) == there
    with pytest.raises(NotEnoughResources):
        world.resize(lease, amount=30)
    assert promised(world, lease) == there


def test_every_search_asks_a_demand_whether_a_host_has_the_hardware():
    folder = Path(blazar.__file__).parent
    asking = {path.stem for path in folder.rglob("*.py") if "traits.met_by(" in path.read_text(encoding="utf-8")}
    assert asking == {"demand", "reasons"}
