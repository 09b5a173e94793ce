# SPDX-License-Identifier: Apache-2.0
"""The last hours of the demo's life: something of all that the service can do, so that every page has it to show."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from blazar.cmd.demo import looks, people, problems
from blazar.cmd.demo.stage import Stage
from blazar.model.base.moments import NOW, Duration
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.leases.states import LeaseKind
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.series.checks import Fit
from blazar.model.series.details import SeriesRequest, Template
from blazar.model.series.recurrence import Recurrence
from blazar.model.series.rule_text import parse_rule
from blazar.model.surgery import OfferRequest, Terms

BEGINS = timedelta(hours=5)
"""How long before the present it begins."""

COURSE_WEEKS = 12
MOST_BATCHES = 12
ZONE = "Europe/Berlin"

_ALICE, _ERIN, _BOB = ("physics", "alice"), ("biology", "erin"), ("chemistry", "bob")
_PLAIN = ["or", people.COMPUTE, people.STORAGE]
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


def plan_course(stage: Stage, chance: random.Random) -> None:
    """Let a teacher book eight hosts each Monday afternoon, as a series; what does not fit is left out."""
    project = people.COURSE
    today = stage.clock.now().replace(tzinfo=None)
    monday = (today + timedelta(days=7 - today.weekday())).replace(hour=14, minute=0, second=0, microsecond=0)
    rule = parse_rule(f"FREQ=WEEKLY;COUNT={COURSE_WEEKS}")
    template = Template((people.COURSE_WORK(chance),))
    recurrence = Recurrence(monday, ZONE, rule, 4 * _HOUR)
    owner = project.users[0]
    stage.manager.series.create(SeriesRequest("hpc-course", owner, project.id, recurrence, template, fit=Fit.AS_MANY))
    while stage.manager.series_work.run_once():
        stage.manager.engine.run_due()


def play(stage: Stage, chance: random.Random, now: datetime) -> None:
    """Live the last hours until ``now``."""
    _cancel_a_lesson(stage)
    _instruments(stage, chance)
    prolonged = _book_what_is_prolonged(stage, now)
    stage.run_to(now - 2 * _HOUR)
    _trouble(stage, now)
    _wait(stage, chance)
    _maintain(stage, now)
    _best_effort(stage)
    if prolonged is not None:
        stage.run_to(prolonged.window.end - timedelta(minutes=70))
        stage.settle()
    _offer(stage, chance)
    _use_up(stage, chance)
    problems.plan(stage, now)
    _run_and_settle(stage, now)
    problems.differ(stage)


def _run_and_settle(stage: Stage, now: datetime) -> None:
    stage.settle()
    stage.let_sleep(now)
    stage.settle()
    looks.look(stage)


def _cancel_a_lesson(stage: Stage) -> None:
    """Let the teacher cancel the lesson after the next one."""
    lessons = [one for one in stage.manager.leases.all(people.COURSE.id) if one.window.start > stage.clock.now()]
    if len(lessons) > 1:
        stage.manager.leases.delete(sorted(lessons, key=lambda one: one.window.start)[1].id)


def _instruments(stage: Stage, chance: random.Random) -> None:
    """Have a lease of each kind of resource in use, and one ahead."""
    works = (
        (_ALICE, "detector-data", people.volumes(300, 2, volume_type="fast")),
        (_ALICE, "lab-net", people.segment("lab", kind="vxlan")),
        (_ERIN, "live-cells", people.instruments("microscope", 1)),
        (_ALICE, "lattice-licences", people.seats("solver-licence", 4)),
        (("robotics", "judy"), "swarm-demo", people.boards("jetson-orin", 2)),
        (_ALICE, "trigger-boards", people.boards("raspberry-pi-5", 2)),
        (_ALICE, "portal", people.addresses(2)),
    )
    for owner, name, make in works:
        stage.book(owner, name, stage.clock.now(), 60, make(chance))
        stage.book(owner, f"{name}-2", stage.clock.now() + 5 * _DAY, 48, make(chance))


def _book_what_is_prolonged(stage: Stage, now: datetime) -> Lease | None:
    """Book leases that go on by themselves; return the one whose end is near, and that nobody else wants."""
    make = people.volumes(200, 1, volume_type="large")
    start = stage.not_before(stage.clock.now())
    hours = (now + timedelta(minutes=30) - start) / _HOUR
    until = start + BEGINS + 2 * _DAY
    owner = ("climate", "ivan")
    host = people.whole_hosts(1, 1, properties=_PLAIN)(random.Random(0))
    stage.book(_ALICE, "lattice-tail", stage.clock.now(), 36, host, extend_until=now + 4 * _DAY)
    return stage.book(owner, "reanalysis-tail", stage.clock.now(), hours, make(random.Random(0)), extend_until=until)


def _trouble(stage: Stage, now: datetime) -> None:
    """Disable hosts with a reason, restrict one, and let two fail, one of them while it is in use."""
    _disable(stage, "cpu-07", Disabling("fan replaced", now + 3 * _DAY))
    _disable(stage, "io-02", Disabling("waits for spare disks"))
    _disable(stage, "h100-06", Disabling("firmware upgrade", now + 20 * _HOUR))
    stage.change_host("arm-05", ResourceChange({}, open_to=("robotics",), sets_projects=True))
    for name in (_book_host_that_fails(stage, now), "mem-04"):
        stage.cloud.operators.host_down(name)
    # One poll is not enough to call a host failed.
    for _ in range(3):
        stage.clock.instant += timedelta(minutes=1)
        stage.manager.monitor.run_once()


def _book_host_that_fails(stage: Stage, now: datetime) -> str:
    """Return the host that is to fail: a lease that takes no other has it, or all of its like are in use.

    A lease that takes any host would be healed while others are idle, as they are by night.
    """
    busy = stage.hosts_in_use(now + 12 * _HOUR)
    for name in sorted(host.name for host in stage.manager.resources.all(HOST) if host.name.startswith("cpu-")):
        only = people.whole_hosts(1, 1, hypervisors=["==", "$hypervisor_hostname", name])(random.Random(0))
        if name not in busy and stage.book(_BOB, "solvent-scan", stage.clock.now(), 36, only) is not None:
            return name
    return next((name for name in busy if name.startswith("cpu-")), "cpu-11")


def _disable(stage: Stage, name: str, disabling: Disabling) -> None:
    stage.change_host(name, ResourceChange({}, disabled=True, disabling=disabling))


def _wait(stage: Stage, chance: random.Random) -> None:
    """Let several wait: some are promised a start, some have a place, one waits in vain."""
    fortnight = Duration(days=14)
    wanted: tuple[tuple[tuple[str, str], str, int, list[str], int], ...] = (
        (("language-models", "grace"), "pretraining-7b", 5, people.H100, 48),
        (_ALICE, "gan-training-large", 12, people.A100, 36),
        (_ALICE, "event-tagging-all", 12, people.A100, 24),
        (_ALICE, "lattice-rerun", 12, people.A100, 24),
        (_ALICE, "calibration-all", 12, people.A100, 12),
        (_ERIN, "protein-atlas", 12, people.A100, 24),
        (("language-models", "heidi"), "evaluation-all", 7, people.H100, 24),
    )
    for owner, name, count, needs, hours in wanted:
        make = people.whole_hosts(count, count, properties=needs)
        stage.book(owner, name, stage.clock.now(), hours, make(chance), wait_until=fortnight, exact=True)
        # Who waits since the same moment has no order of its own.
        stage.run_to(stage.clock.now() + timedelta(minutes=1))
        stage.settle()


def _maintain(stage: Stage, now: datetime) -> None:
    """Open a maintenance window now, and plan one for a rack next week."""
    hosts = tuple(stage.host(name).external_id for name in ("io-04", "arm-02"))
    stage.manager.maintenances.create(
        MaintenanceRequest("switch replaced", NOW, now + 6 * _HOUR, hosts, reason="new switch in the rack")
    )
    start = (now + 6 * _DAY).replace(hour=8, minute=0, second=0, microsecond=0)
    rack = '["==", "$rack", "r2"]'
    stage.manager.maintenances.create(
        MaintenanceRequest("cooling of rack r2", start, start + 8 * _HOUR, requirement=rack, reason="pump inspected")
    )
    stage.settle()


def _best_effort(stage: Stage) -> None:
    """Let an operator have hosts at once, for which room would be made."""
    make = people.whole_hosts(1, 1, properties=people.COMPUTE)
    owner = ("demo", "admin")
    stage.book(
        owner, "incident-4711", NOW, 24, make(random.Random(0)), kind=LeaseKind.BEST_EFFORT, operator=True, exact=True
    )


def _offer(stage: Stage, chance: random.Random) -> None:
    """Offer a lease of physics to biology, and one of chemistry to physics."""
    make = people.whole_hosts(1, 1, properties=_PLAIN)
    for owner, name, taker, message in (
        (_ALICE, "beamtime-reserve", "biology", "We finish earlier; it is yours if you like."),
        (_BOB, "docking-spare", "physics", "For your calibration next week."),
    ):
        # Not at once, as hosts are few next week.
        days = (stage.book(owner, name, stage.minute + day * _DAY, 48, make(chance)) for day in range(4, 20))
        if (lease := next(filter(None, days), None)) is not None:
            terms = Terms(Actor(lease.user_id, lease.project_id))
            stage.manager.transfers.offer(lease.id, OfferRequest(taker, message=message), terms)


def _use_up(stage: Stage, chance: random.Random) -> None:
    """Let physics use nearly all of its budget of devices for this month, or for the next if this is nearly over."""
    start, end = _rest_of_month(stage.minute)
    begun = 0
    for hours in (96, 48, 24, 12):
        for most in (4, 1):
            length = min(hours * _HOUR, end - start) / _HOUR
            while begun < MOST_BATCHES:
                request = people.boards("raspberry-pi-5", most)(chance)
                request = ReservationRequest(request.resource_type, {**request.parameters, "min": most, "max": most})
                if stage.book(_ALICE, f"trigger-test-{begun + 1}", start, length, request) is None:
                    break
                begun += 1


def _rest_of_month(now: datetime) -> tuple[datetime, datetime]:
    """Return tomorrow and the end of the month, or all of the next month if this is over in four days.

    The boards of a shorter rest are booked before the budget is used up.
    """
    first = now.replace(hour=0, minute=0)
    following = (first.replace(day=1) + 32 * _DAY).replace(day=1)
    if following - now < 4 * _DAY:
        return following, (following + 32 * _DAY).replace(day=1)
    return first + _DAY, following
