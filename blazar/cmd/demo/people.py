# SPDX-License-Identifier: Apache-2.0
"""Who uses the cloud of the demo: projects, and the kinds of work that they reserve for."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from blazar.cmd.demo.cloud import NETWORK
from blazar.model.base.values import dataclass
from blazar.model.leases.requests import ReservationRequest

Make = Callable[[random.Random], ReservationRequest]


@dataclass(frozen=True, slots=True)
class Work:
    """A kind of work: what it is called, what it reserves, for how many hours, and how many days ahead.

    ``weight`` says how often it is asked for, compared with the others of its project.
    """

    names: tuple[str, ...]
    make: Make
    hours: tuple[int, ...]
    days_ahead: tuple[int, int]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Project:
    """A project, its users and its kinds of work; ``weight`` says how busy it is."""

    id: str
    users: tuple[str, ...]
    works: tuple[Work, ...]
    weight: int = 1


def whole_hosts(least: int, most: int, *, properties: object = "", hypervisors: object = "") -> Make:
    """Return a maker of reservations of whole hosts, between ``least`` and ``most`` of them."""

    def make(chance: random.Random) -> ReservationRequest:
        count = chance.randint(least, most)
        values = {"min": max(least, count - 1), "max": count, "before_end": "default"}
        values |= {"hypervisor_properties": _text(hypervisors), "resource_properties": _text(properties)}
        return ReservationRequest("physical:host", values)

    return make


def servers(amount: int, *, vcpus: int, memory_gb: int, affinity: bool | None = None) -> Make:
    """Return a maker of reservations of servers on shared hosts."""
    size = {"vcpus": vcpus, "memory_mb": memory_gb * 1024, "disk_gb": 40}
    # Hosts with GPUs are booked as a whole.
    values = {"amount": amount, **size, "affinity": affinity, "resource_properties": _text(["==", "$network", "25G"])}
    return lambda chance: ReservationRequest("virtual:instance", {**values, "amount": chance.randint(1, amount)})


def addresses(amount: int) -> Make:
    """Return a maker of reservations of floating IPs."""
    values = {"network_id": NETWORK, "required_floatingips": []}
    return lambda chance: ReservationRequest("virtual:floatingip", {**values, "amount": chance.randint(1, amount)})


def volumes(size: int, amount: int, *, volume_type: str) -> Make:
    """Return a maker of reservations of volumes of ``size`` GiB."""
    values = {"size": size, "volume_type": volume_type, "name": "data"}
    return lambda chance: ReservationRequest("virtual:volume", {**values, "amount": chance.randint(1, amount)})


def segment(name: str, *, kind: str) -> Make:
    """Return a maker of reservations of a network of its own."""
    values = {
        "network_name": name,
        "network_properties": _text(["==", "$network_type", kind]),
        "resource_properties": "",
    }
    return lambda chance: ReservationRequest("network", dict(values))


def instruments(kind: str, most: int) -> Make:
    """Return a maker of reservations of whole generic resources of a class."""

    def make(chance: random.Random) -> ReservationRequest:
        count = chance.randint(1, most)
        return ReservationRequest("generic", {"class": kind, "min": count, "max": count})

    return make


def seats(kind: str, most: int) -> Make:
    """Return a maker of reservations of units of a generic resource that others share."""
    return lambda chance: ReservationRequest("generic", {"class": kind, "amount": chance.randint(1, most)})


def boards(machine: str, most: int) -> Make:
    """Return a maker of reservations of devices."""

    def make(chance: random.Random) -> ReservationRequest:
        values = {
            "min": 1,
            "max": chance.randint(1, most),
            "resource_properties": _text(["==", "$machine_name", machine]),
        }
        return ReservationRequest("device", values)

    return make


def _text(requirement: object) -> str:
    return json.dumps(requirement) if requirement else ""


A100, H100 = ["==", "$gpu", "A100"], ["==", "$gpu", "H100"]
BIG_MEMORY = [">=", "$memory_mb", "1500000"]
COMPUTE = ["==", "$node_type", "compute"]
STORAGE = ["==", "$node_type", "storage"]
DAY = 24

PROJECTS = (
    Project(
        "physics",
        ("alice", "carol"),
        (
            Work(
                ("gan-training", "event-tagging", "lattice"),
                whole_hosts(1, 4, properties=A100),
                (48, 72, 120),
                (0, 14),
                3,
            ),
            Work(("detector-sim", "calibration"), whole_hosts(2, 6, properties=COMPUTE), (DAY, 48), (1, 21), 2),
            Work(("notebook",), servers(4, vcpus=4, memory_gb=16), (8, 10), (0, 2), 2),
            Work(("training-data",), volumes(200, 3, volume_type="fast"), (72, 168), (0, 7)),
        ),
        4,
    ),
    Project(
        "biology",
        ("erin", "mallory"),
        (
            Work(("genome-assembly", "phylogeny"), whole_hosts(1, 2, hypervisors=BIG_MEMORY), (96, 168), (2, 20), 2),
            Work(("protein-folding",), whole_hosts(1, 3, properties=A100), (DAY, 72), (0, 10), 2),
            Work(("portal-test",), addresses(3), (DAY, 72), (0, 4), 1),
            Work(("cell-imaging",), instruments("microscope", 2), (4, 8), (0, 9), 2),
        ),
        3,
    ),
    Project(
        "chemistry",
        ("bob",),
        (
            Work(("spectra", "docking"), whole_hosts(1, 3, properties=COMPUTE), (DAY, 48, 72), (0, 9), 2),
            Work(("quantum-chemistry",), whole_hosts(1, 1, hypervisors=BIG_MEMORY), (72, 120), (1, 12), 1),
            Work(("structure-solver",), seats("solver-licence", 6), (DAY, 48), (0, 8), 1),
        ),
        2,
    ),
    Project(
        "language-models",
        ("grace", "heidi"),
        (
            Work(("pretraining", "fine-tuning"), whole_hosts(2, 4, properties=H100), (72, 120, 168), (3, 25), 3),
            Work(("evaluation",), whole_hosts(1, 1, properties=H100), (12, DAY), (0, 7), 2),
        ),
        3,
    ),
    Project(
        "climate",
        ("ivan",),
        (
            Work(("ensemble-run", "reanalysis"), whole_hosts(4, 8, properties=COMPUTE), (48, 96), (5, 30), 2),
            Work(("archive-scan",), whole_hosts(1, 3, properties=STORAGE), (DAY, 48), (1, 14), 2),
            Work(("satellite-images",), volumes(500, 2, volume_type="large"), (96, 168), (0, 10)),
        ),
        2,
    ),
    Project(
        "robotics",
        ("judy", "niaj"),
        (
            Work(("field-test", "vision"), servers(8, vcpus=8, memory_gb=32), (6, 12, DAY), (0, 5), 2),
            Work(("edge-build",), whole_hosts(1, 2, hypervisors=["==", "$vcpus", "80"]), (12, 36), (0, 8), 2),
            Work(("swarm",), boards("jetson-orin", 3), (12, DAY), (0, 6), 2),
            Work(("testbed-net",), segment("testbed", kind="vlan"), (DAY, 72), (0, 7)),
        ),
        2,
    ),
    Project(
        "demo",
        ("admin",),
        (
            Work(("burn-in", "benchmark"), whole_hosts(1, 2), (6, 12), (0, 6), 2),
            Work(("training-day",), servers(6, vcpus=2, memory_gb=8), (8,), (1, 12), 1),
        ),
        1,
    ),
)

COURSE = Project("hpc-course", ("peggy",), ())
COURSE_WORK = whole_hosts(8, 8, properties=["==", "$network", "25G"])
"""A teacher needs eight hosts each Monday afternoon."""
