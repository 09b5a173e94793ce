# SPDX-License-Identifier: Apache-2.0
"""Each fault of an operator's day raises its alert in time, is told of in the log, and is over when it is mended."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kombu
import pytest

from tests.conftest import RABBITMQ, fresh_database, missing
from tests.slow.alerts.stage import Stage, reached
from tests.slow.alerts.watching import Prometheus, patience
from tests.soak.run import bus_swept

pytestmark = [pytest.mark.slow, pytest.mark.timeout(500)]


@dataclass(frozen=True)
class Fault:
    """What goes wrong, which alert tells of it, and which process says what in its log."""

    alert: str
    begin: Callable[[Stage], None]
    mend: Callable[[Stage], None]
    process: str
    sentence: str
    seconds: float = 0
    """How long it takes until it is late enough for its rule."""
    problem: str = ""
    """What the page Problems says of it meanwhile, with what mends it."""


FAULTS = {
    "the database is gone": Fault(
        "BlazarDatabaseGone",
        lambda stage: stage.database.cut(),
        lambda stage: stage.database.mend(),
        "blazar-manager",
        "The database cannot be ",
    ),
    "the message bus is gone": Fault(
        "BlazarBusGone",
        lambda stage: stage.bus.cut(),
        lambda stage: stage.bus.mend(),
        "blazar-api",
        "Message bus cannot be ",
    ),
    "the password of the service is another one": Fault(
        "BlazarTokensUnchecked",
        lambda stage: setattr(stage.keystone, "has_other_password", True),
        lambda stage: setattr(stage.keystone, "has_other_password", False),
        "blazar-api",
        "Keystone cannot validate tokens: ",
    ),
    "the manager hangs": Fault(
        "BlazarNoManager", Stage.hold, Stage.release, "blazar-api", "No blazar-manager answered in time"
    ),
    "an aggregate was emptied by hand": Fault(
        "BlazarResourcesFailed",
        Stage.empty_freepool,
        Stage.refill_freepool,
        "blazar-manager",
        "host node-4 has failed: ",
        problem="openstack aggregate add host freepool node-4",
    ),
    "a host is dead": Fault(
        "BlazarResourcesFailed",
        lambda stage: stage.cloud.operators.host_down("node-3"),
        lambda stage: stage.cloud.operators.host_up("node-3"),
        "blazar-manager",
        "host node-3 has failed: ",
        problem="its nova-compute is down",
    ),
    "the disk of the log is full": Fault(
        "BlazarLogUnwritten", Stage.fill_disk, Stage.clear_disk, "blazar-api", "The log cannot be written: "
    ),
    "a clock is off": Fault(
        "BlazarClockOff",
        lambda stage: stage.set_clock(-60),
        lambda stage: stage.set_clock(0),
        "blazar-manager",
        "Clock of this machine differs from that of the database by ",
    ),
    "the service that charges is gone": Fault(
        "BlazarEnforcementFails",
        lambda stage: setattr(stage.credit, "is_away", True),
        lambda stage: setattr(stage.credit, "is_away", False),
        "blazar-manager",
        "is refused without an answer of the external service",
    ),
    "a snapshot gets nowhere": Fault(
        "BlazarEventOverdue", Stage.begin_snapshot, Stage.finish_snapshot, "blazar-manager", " min late: ", seconds=200
    ),
}

PAGES = ("/v1/problems", "/v1/managers")
"""What operators look at while something is wrong."""


BY_NIGHT = frozenset({"a snapshot gets nowhere", "an aggregate was emptied by hand"})
"""The first takes as long as all others together, and the second has the rule of a host that is dead."""

UNHURRIED = frozenset({"BlazarThreadStuck"})
"""Some threads pause for minutes here, too, which is long in the time of the rules."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder: Path = tmp_path_factory.mktemp("alerts")
    bus = kombu.Connection(RABBITMQ.replace("rabbit://", "amqp://"))
    place = (bus.hostname, int(bus.port or 5672))
    if (error := reached(*place)) is not None:
        missing("RabbitMQ", error)
    topic = f"alerts-{uuid.uuid4().hex[:12]}"
    databases = fresh_database("postgresql", folder)
    with bus_swept(topic):
        made = Stage(folder, next(databases), place, topic)
        try:
            made.begin()
            yield made
        finally:
            made.end()
            next(databases, None)


@pytest.fixture(scope="module")
def prometheus(stage: Stage) -> Iterator[Prometheus]:
    program = shutil.which("prometheus")
    if program is None:
        missing("Prometheus", "it is not installed (Debian's package prometheus)")
    assert program is not None
    server = Prometheus(program, stage.folder, stage.ports)
    try:
        yield server
    finally:
        server.end()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly) if name in BY_NIGHT else name for name in FAULTS]
)
def test_a_fault_raises_its_alert_in_time_and_is_told_of_and_over_when_it_is_mended(
    stage, prometheus, name, record_property
):
    fault = FAULTS[name]
    rule = prometheus.rules[fault.alert]
    prometheus.await_silence(90, but=UNHURRIED)
    heard = len(stage.said(fault.process))
    fault.begin(stage)
    try:
        took = prometheus.await_alert(fault.alert, patience(rule) + fault.seconds)
        answers = [stage.ask("GET", path) for path in PAGES]
        shown = [explain_answer(*answer) for answer in answers]
        assert fault.problem in str(answers[0]), answers
        said = [line for line in stage.said(fault.process)[heard:].splitlines() if fault.sentence in line]
        assert said, stage.tail()
    finally:
        fault.mend(stage)
    over = prometheus.await_silence(90, but=UNHURRIED)
    found = f"{name}: {fault.alert} after {took:.1f} s, over after {over:.1f} s: {said[0]}; pages: {shown}"
    record_property("found", found)
    print(f"\n{found}")


def explain_answer(status: int, answer: Any) -> str:
    """Return what a page shows of an answer: how many there are, or one sentence about why it cannot be known."""
    if status == 200:
        return ", ".join(f"{len(value)} {name}" for name, value in answer.items() if name != "links")
    (error,) = json.loads(answer)["errors"]
    assert error["detail"].strip()
    assert not {"Traceback", "Error(", "File "} & set(error["detail"].split())
    return f"{status} {error['detail']}"
