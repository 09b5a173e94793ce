# SPDX-License-Identifier: Apache-2.0
"""What only a simulation does: keep its state, take its time, go wrong on demand."""

from __future__ import annotations

import inspect
import multiprocessing
import os
import re
import signal
import time
from datetime import timedelta
from pathlib import Path
from typing import get_type_hints

import pytest

from blazar.clouds.ports import CHANGES, Cloud, OtherPorts
from blazar.clouds.simulated import (
    Durations,
    Faults,
    FileStorage,
    MemoryStorage,
    SimulatedCloud,
    default_inventory,
    of_size,
    open_cloud,
)
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import CloudUnavailable
from tests.people import PeopledCloud
from tests.world import ManualClock

LOST = CloudUnavailable("lost")


def test_the_default_cloud_has_hosts_of_several_sizes_in_two_zones():
    state = default_inventory()
    assert {"node-1", "node-10"} <= {host.name for host in state.hosts.values()}
    assert len({host.vcpus for host in state.hosts.values()}) >= 4
    assert {a.name for a in state.aggregates.values()} == {"freepool", "az-1", "az-2"}


def test_deletions_and_snapshots_take_their_time():
    clock = ManualClock()
    minutes = timedelta(minutes=2)
    durations = Durations(deletion=minutes, snapshot=minutes)
    cloud = PeopledCloud(MemoryStorage(of_size(1)), clock=clock, durations=durations)
    server = cloud.users.boot_server("x", project_id="p", user_id="u", host="node-1")
    cloud.compute.begin_snapshot(server.id, "image", {"blazar:reservation": "r"})
    cloud.compute.begin_server_deletion(server.id)
    assert [s.status for s in cloud.compute.servers_on("node-1")] == ["DELETING"]
    assert [i.status for i in cloud.compute.images_of_reservation("r")] == ["saving"]
    clock.by(minutes=2)
    assert cloud.compute.servers_on("node-1") == ()
    assert [i.status for i in cloud.compute.images_of_reservation("r")] == ["active"]


def test_a_call_can_fail_before_or_after_its_effect():
    cloud = PeopledCloud(MemoryStorage(of_size(1)), clock=ManualClock())
    cloud.faults.fail_before("create_aggregate", LOST)
    with pytest.raises(CloudUnavailable):
        cloud.compute.create_aggregate("a", None, {})
    assert cloud.compute.aggregate("a") is None
    cloud.faults.fail_after("create_aggregate", LOST)
    with pytest.raises(CloudUnavailable):
        cloud.compute.create_aggregate("a", None, {})
    assert cloud.compute.aggregate("a") is not None
    assert cloud.faults.calls["create_aggregate"] == 2


def test_latency_holds_up_the_caller_and_nobody_else():
    slept = []
    faults = Faults(latency=timedelta(milliseconds=50), sleep=slept.append)
    PeopledCloud(MemoryStorage(of_size(1)), clock=ManualClock(), faults=faults).compute.aggregates()
    assert slept == [0.05]


def test_the_state_can_be_inspected_and_changed_past_the_faults(tmp_path):
    for storage in (MemoryStorage(of_size(1)), FileStorage(tmp_path / "cloud.json", of_size(1))):
        cloud = PeopledCloud(storage, clock=ManualClock())
        cloud.faults.on_call = lambda name, phase: pytest.fail(name)
        with cloud.inspect() as state:
            state.hosts["1"].up = False
        with cloud.inspect() as state:
            assert state.hosts["1"].up
        with cloud.change_state() as state:
            state.hosts["1"].up = False
        with cloud.inspect() as state:
            assert not state.hosts["1"].up


def test_a_cloud_in_a_file_is_there_again(tmp_path):
    first = open_cloud(tmp_path / "cloud.json", clock=SystemClock())
    first.compute.create_aggregate("kept", "zone", {"a": "b"})
    again = open_cloud(tmp_path / "cloud.json", clock=SystemClock())
    assert again.compute.aggregate("kept") == first.compute.aggregate("kept")


def test_two_that_share_a_file_see_what_the_other_one_changes(tmp_path):
    one, other = (FileStorage(tmp_path / "cloud.json", of_size(1)) for _ in range(2))
    for up in (False, True, False):
        with one.open(to_change=True) as state:
            state.hosts["1"].up = up
        with other.open(to_change=False) as state:
            assert state.hosts["1"].up is up


def test_a_change_that_fails_half_way_leaves_the_file_as_it_was(tmp_path):
    storage = FileStorage(tmp_path / "cloud.json", of_size(1))

    def fail() -> None:
        with storage.open(to_change=True) as state:
            state.hosts["1"].up = False
            raise LOST

    with pytest.raises(CloudUnavailable):
        fail()
    with storage.open(to_change=False) as state:
        assert state.hosts["1"].up


def add_aggregates(path, count):
    cloud = PeopledCloud(FileStorage(path, of_size(1)), clock=SystemClock())
    for number in range(count):
        cloud.compute.create_aggregate(f"{os.getpid()}-{number}", None, {})


@pytest.mark.slow
def test_processes_that_share_a_file_lose_nothing_of_each_other(tmp_path):
    path = tmp_path / "cloud.json"
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=add_aggregates, args=(path, 20)) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    cloud = PeopledCloud(FileStorage(path, of_size(1)), clock=SystemClock())
    names = [a.name for a in cloud.compute.aggregates()]
    assert len(names) == len(set(names)) == 3 + 80


@pytest.mark.slow
def test_a_process_killed_in_the_middle_leaves_a_whole_file(tmp_path):
    path = tmp_path / "cloud.json"
    context = multiprocessing.get_context("fork")
    for pause in (0.01, 0.03, 0.05, 0.08, 0.13):
        process = context.Process(target=add_aggregates, args=(path, 10**6))
        process.start()
        time.sleep(pause)  # a real process, killed at a real moment
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        cloud = PeopledCloud(FileStorage(path, of_size(1)), clock=SystemClock())
        numbers = [a.id for a in cloud.compute.aggregates()]
        assert numbers == sorted(set(numbers))


def test_all_calls_that_change_something_pass_the_check_of_the_claim():
    # A call of a port opens the state by its name; what users and operators do has none.
    folder = Path(inspect.getfile(SimulatedCloud)).parent
    opened = [
        (name, how)
        for file in sorted(folder.glob("*.py"))
        for how, name in re.findall(r'self\._calls\.(changing|reading)\("(\w+)"\)', file.read_text("utf-8"))
    ]
    assert {name for name, how in opened if how == "changing"} == CHANGES
    assert not {name for name, how in opened if how == "reading"} & CHANGES
    ours = [port for port in get_type_hints(Cloud).values() if port is not OtherPorts]
    ports = {name for port in ours for name in dir(port) if not name.startswith("_")}
    assert {name for name, _ in opened} == ports
