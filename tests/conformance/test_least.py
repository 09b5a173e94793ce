# SPDX-License-Identifier: Apache-2.0
"""The suite asks for nothing that a type may leave out, and needs nothing that only we have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from blazar.context import check_change
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import NotFound
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.resources.resource import ResourceDetails, ResourceInventory, ResourceKind
from blazar.resources.contract.kind import CloudResource, Kind
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Done
from blazarconformance import CATALOGUE, Check, Harness, Surroundings, checks, not_applicable

ROOT = Path(__file__).parents[2]
LOT = ResourceKind("lot")


class Barrier:
    """The port: a barrier that knows which reservation may park where."""

    def __init__(self) -> None:
        self.open_for: dict[str, str] = {}

    def open(self, reservation: str, lot: str) -> None:
        check_change()
        self.open_for[reservation] = lot

    def close(self, reservation: str) -> None:
        check_change()
        self.open_for.pop(reservation, None)


class Lots(Kind):
    """Two parking lots of two spaces; nothing that a kind may leave out."""

    kind = LOT

    def find(self, request: Any) -> CloudResource:
        name = request.given.get("name")
        if name not in ("north", "south"):
            raise NotFound("there is no such lot; name is north or south")
        return CloudResource(name, name)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        return ResourceDetails({}, ResourceInventory(Amounts.of({"SPACE": 2})))


class Parking(ResourceType):
    """One space; nothing that a type may leave out."""

    resource_type = "town:parking"
    kind = LOT

    def __init__(self, barrier: Any) -> None:
        self._barrier = barrier

    def parameters(self, given: Any) -> Content:
        return Content({})

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        return Demand(LOT, 1, 1, per_instance=Amounts.of({"SPACE": 1}))

    def start(self, task: Any) -> Done:
        self._barrier.open(task.reservation.id, task.resources[0].name)
        return Done()

    def end(self, task: Any) -> Done:
        self._barrier.close(task.reservation.id)
        return Done()


class Town:
    """A site with no more than a site must have."""

    def __init__(self, around: Surroundings) -> None:
        self._barrier = Barrier()
        self._port = around.watched(self._barrier)
        self.type, self.kind = self.another_type(), Lots()

    def another_type(self) -> Parking:
        return Parking(self._port)

    def snapshot(self) -> dict[str, object]:
        return {"open": dict(self._barrier.open_for)}

    def usable(self, reservation_id: str) -> list[str]:
        return [lot for key, lot in self._barrier.open_for.items() if key == reservation_id]


LEAST = Harness(name="least", build=Town, registrations=({"name": "north"}, {"name": "south"}), request={}, fits=4)


@pytest.mark.sample(36)
@pytest.mark.parametrize("check", checks(LEAST, slow=False), ids=str)
def test_the_least_type_passes(check: Check):
    check(LEAST)


@pytest.mark.slow
@pytest.mark.parametrize("check", checks(LEAST, slow=True), ids=str)
def test_the_least_type_passes_at_every_step(check: Check):
    check(LEAST)


def test_what_the_least_type_leaves_out_is_not_tried():
    left_out = not_applicable(LEAST)
    assert len(CATALOGUE) - len(left_out) >= 60
    assert left_out["prepare_twice_is_as_once"] == "prepare"
    assert left_out["a_poll_changes_nothing"] == "poll of its kind"
    assert left_out["leftovers_are_swept"] == "reservations_in_cloud"


@pytest.mark.slow
def test_another_package_needs_neither_our_tests_nor_a_test_framework(tmp_path):
    script = (
        "import sys\n"
        "from harness import HARNESS\n"
        "from blazarconformance import checks\n"
        "found = checks(HARNESS, slow=False)\n"
        "for check in found[::10]: check(HARNESS)\n"
        "assert not {'tests', 'pytest', 'hypothesis'} & sys.modules.keys()\n"
        "print(len(found))\n"
    )
    path = os.pathsep.join(map(str, (ROOT, ROOT / "conformance", ROOT / "examples" / "instruments")))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) >= 60
