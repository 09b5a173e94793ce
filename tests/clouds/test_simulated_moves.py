# SPDX-License-Identifier: Apache-2.0
"""What the simulated cloud can do to a move, so that tests of an evacuation see every way that one may end."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.evacuation import MovePhase, Occupant, Special, specials_of
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.server_state import MoveFault
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict
from tests.people import PeopledCloud
from tests.world import ManualClock


class Moving:
    """A cloud in which a move takes ten minutes."""

    def __init__(self, storage) -> None:
        self.clock = ManualClock()
        self.simulated = PeopledCloud(storage, clock=self.clock)
        self.simulated.durations.migration = timedelta(minutes=10)
        self.port = self.simulated.evacuation

    def boot(self, host="node-1", **more):
        return self.simulated.users.boot_server("work", project_id="p", user_id="u", host=host, **more).id

    def move(self, server, target="node-3"):
        self.port.begin_move(server, target, live=True)

    def phases(self, *servers):
        return [self.port.moves_of(server)[-1].phase for server in servers]

    def abort(self, server):
        self.port.begin_move_abort(server, self.port.moves_of(server)[-1].id)

    def there(self, host="node-3"):
        return {occupant.id: occupant.status for occupant in self.port.occupants(host)}


@pytest.fixture(params=["memory", "file"])
def moving(request, tmp_path):
    state = of_size(6)
    return Moving(MemoryStorage(state) if request.param == "memory" else FileStorage(tmp_path / "c.json", state))


def test_a_host_moves_one_server_at_a_time_and_queues_the_others(moving):
    one, two, three = (moving.boot() for _ in range(3))
    elsewhere = moving.boot("node-2")
    for server in (one, two, three, elsewhere):
        moving.move(server)
    assert moving.phases(one, two, three) == [MovePhase.RUNNING, MovePhase.WAITING, MovePhase.WAITING]
    assert moving.phases(elsewhere) == [MovePhase.RUNNING]
    moving.clock.by(minutes=10)
    assert moving.phases(one, two, three) == [MovePhase.COMPLETED, MovePhase.RUNNING, MovePhase.WAITING]
    moving.clock.by(minutes=10)
    assert moving.phases(one, two, three) == [MovePhase.COMPLETED, MovePhase.COMPLETED, MovePhase.RUNNING]
    assert moving.there() == {one: "ACTIVE", two: "ACTIVE", elsewhere: "ACTIVE"}


def test_a_move_that_fails_says_so_in_its_record_alone_and_the_next_begins(moving):
    one, two = moving.boot(), moving.boot()
    moving.simulated.operators.spoil_move(one, MoveFault.FAILS)
    moving.move(one)
    moving.move(two)
    assert moving.phases(one, two) == [MovePhase.RUNNING, MovePhase.WAITING]
    moving.clock.by(minutes=10)
    assert moving.phases(one, two) == [MovePhase.FAILED, MovePhase.RUNNING]
    assert moving.there("node-1") == {one: "ACTIVE", two: "MIGRATING"}
    # Another attempt has no fault.
    moving.move(one)
    moving.clock.by(minutes=20)
    assert moving.phases(one) == [MovePhase.COMPLETED]


def test_a_move_that_hangs_holds_up_those_behind_it_until_it_is_aborted(moving):
    one, two = moving.boot(), moving.boot()
    moving.simulated.operators.spoil_move(one, MoveFault.HANGS)
    moving.move(one)
    moving.move(two)
    moving.clock.by(days=30)
    assert moving.phases(one, two) == [MovePhase.RUNNING, MovePhase.WAITING]
    moving.abort(one)
    assert moving.phases(one, two) == [MovePhase.CANCELLED, MovePhase.RUNNING]
    moving.clock.by(minutes=10)
    assert (moving.there("node-1"), moving.there()) == ({one: "ACTIVE"}, {two: "ACTIVE"})
    with pytest.raises(Conflict):
        moving.abort(one)


def test_a_server_whose_move_was_aborted_stays_for_good(moving):
    server = moving.boot()
    moving.move(server)
    moving.clock.by(minutes=1)
    moving.abort(server)
    moving.clock.by(days=1)
    assert (moving.there("node-1"), moving.there()) == ({server: "ACTIVE"}, {})


def test_a_queued_move_is_aborted_without_a_change_for_the_one_that_runs(moving):
    one, two, three = (moving.boot() for _ in range(3))
    for server in (one, two, three):
        moving.move(server)
    moving.clock.by(minutes=4)
    moving.abort(two)
    moving.clock.by(minutes=6)
    assert moving.phases(one, two, three) == [MovePhase.COMPLETED, MovePhase.CANCELLED, MovePhase.RUNNING]


def test_a_move_beyond_the_point_of_return_cannot_be_aborted_only_awaited(moving):
    server = moving.boot()
    moving.simulated.operators.spoil_move(server, MoveFault.POST_COPY)
    moving.move(server)
    moving.clock.by(minutes=60)
    assert moving.phases(server) == [MovePhase.NO_RETURN]
    with pytest.raises(Conflict):
        moving.abort(server)
    moving.simulated.operators.finish_move(server)
    assert moving.phases(server) == [MovePhase.COMPLETED]
    assert moving.there() == {server: "ACTIVE"}
    with pytest.raises(Conflict):
        moving.port.begin_move_abort(server, "4711")


@pytest.mark.parametrize("refusal", ["no room", "disabled", "down", "freepool", "anti-affinity"])
def test_a_move_to_a_host_that_the_scheduler_refuses_fails_in_its_record(moving, refusal):
    group = moving.simulated.compute.create_server_group("g", "anti-affinity", "p")
    server = moving.boot(group=group)
    match refusal:
        case "no room":
            moving.boot("node-3", memory_mb=moving.port.rooms(["node-3"])["node-3"].free.get("MEMORY_MB"))
        case "disabled":
            moving.simulated.operators.host_disabled("node-3")
        case "down":
            moving.simulated.operators.host_down("node-3")
        case "freepool":
            pool = moving.simulated.compute.aggregate("freepool")
            moving.simulated.compute.add_host(pool.id, "node-3")
        case "anti-affinity":
            moving.boot("node-3", group=group)
    moving.move(server)
    assert moving.phases(server) == [MovePhase.FAILED]
    assert moving.there("node-1") == {server: "ACTIVE"}


def test_a_boot_under_way_is_a_consumer_before_it_is_a_server(moving):
    booting = moving.simulated.users.begin_boot("late", host="node-1")
    assert moving.port.occupants("node-1") == ()
    assert set(moving.port.rooms(["node-1"])["node-1"].consumers) == {booting}
    moving.simulated.users.finish_boot(booting)
    assert moving.there("node-1") == {booting: "ACTIVE"}
    assert set(moving.port.rooms(["node-1"])["node-1"].consumers) == {booting}


@pytest.mark.parametrize(
    ("key", "value", "special"),
    [
        ("pci_passthrough:alias", "gpu:1", Special.PCI),
        ("resources:VGPU", "1", Special.VGPU),
        ("resources1:VGPU", "1", Special.VGPU),
        ("hw:tpm_version", "2.0", Special.VTPM),
        ("hw:mem_encryption", "True", Special.SEV),
        ("accel:device_profile", "fpga", Special.ACCELERATOR),
        ("hw:pmem", "6GB", Special.PMEM),
        ("hw:cpu_policy", "dedicated", Special.NUMA),
        ("hw:mem_page_size", "large", Special.NUMA),
        ("hw:numa_nodes", "2", Special.NUMA),
    ],
)
def test_a_flavor_says_what_it_asks_of_the_hardware(key, value, special):
    assert specials_of({key: value, "quota:cpu_shares": "5"}) == {special}


@pytest.mark.parametrize(("key", "value"), [("hw:cpu_policy", "shared"), ("hw:mem_encryption", "false"), ("x", "y")])
def test_a_flavor_that_asks_for_nothing_special(key, value):
    assert specials_of({key: value}) == frozenset()


def test_an_occupant_names_what_a_move_would_copy():
    sizes = Amounts.of({"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20})
    occupant = Occupant("s", "work", "p", "u", "node-1", "ACTIVE", amounts=sizes)
    assert (occupant.memory_mb, occupant.disk_gb) == (4096, 20)
