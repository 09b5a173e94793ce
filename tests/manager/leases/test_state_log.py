# SPDX-License-Identifier: Apache-2.0
"""The log has one line for each change of the state of a lease, and no other: the database itself counts along."""

from __future__ import annotations

import logging
import re
from datetime import timedelta

import pytest

from blazar.context import scope
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable
from blazar.model.leases.requests import Actor
from blazar.model.surgery import MergeRequest, PartRequest, SplitRequest, SwapRequest, Terms
from tests.manager.surgery.steps import OPERATOR
from tests.world import PROJECT, World, a_host, a_series, addresses, instances

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
CURIE = Terms(Actor("curie", PROJECT))

_LINE = re.compile(r"Lease (\S+) of project (\S+): (\S+) -> (\S+) \((.+)\), request (\S+)")
_STATE = "CASE WHEN {0}.deleted_at IS NULL THEN {0}.status ELSE 'DELETED' END"


class Watched(World):
    """A world whose database counts the changes of the states of leases."""

    def __init__(self, *arguments, caplog: pytest.LogCaptureFixture, **more) -> None:
        super().__init__(*arguments, **more)
        self.caplog = caplog
        caplog.set_level(logging.INFO, "blazar.leases")
        with self.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE seen (n INTEGER PRIMARY KEY, lease, project, was, became)")
            connection.exec_driver_sql(
                "CREATE TRIGGER come AFTER INSERT ON leases BEGIN INSERT INTO seen (lease, project, was, became) "
                f"VALUES (NEW.id, NEW.project_id, 'none', {_STATE.format('NEW')}); END"
            )
            connection.exec_driver_sql(
                "CREATE TRIGGER go AFTER UPDATE ON leases WHEN "
                f"{_STATE.format('OLD')} <> {_STATE.format('NEW')} BEGIN INSERT INTO seen (lease, project, was, became)"
                f" VALUES (NEW.id, NEW.project_id, {_STATE.format('OLD')}, {_STATE.format('NEW')}); END"
            )

    @property
    def seen(self) -> list[tuple[str, ...]]:
        with self.engine.begin() as connection:
            query = "SELECT lease, project, was, became FROM seen ORDER BY n"
            return [tuple(row) for row in connection.exec_driver_sql(query)]

    @property
    def said(self) -> list[tuple[str, ...]]:
        lines = [record.getMessage() for record in self.caplog.records if record.name == "blazar.leases"]
        matches = [_LINE.fullmatch(line) for line in lines]
        assert all(matches), lines
        return [match.groups() for match in matches if match is not None]

    def check(self) -> None:
        assert sorted(each[:4] for each in self.said) == sorted(self.seen)


@pytest.fixture
def world(sqlite, caplog) -> Watched:
    world = Watched(sqlite, hosts=6, caplog=caplog)
    world.waits = True
    return world


def test_a_life_is_told_line_by_line_with_why(world):
    lease = world.lease(start=HOUR)
    world.run_to(lease.window.end)
    world.manager.leases.delete(lease.id)
    world.run()
    world.check()
    assert [each[2:5] for each in world.said] == [
        ("none", "CREATING", "created"),
        ("CREATING", "PENDING", "create_lease"),
        ("PENDING", "STARTING", "start_lease"),
        ("STARTING", "ACTIVE", "start_lease"),
        ("ACTIVE", "TERMINATING", "end_lease"),
        ("TERMINATING", "TERMINATED", "ended"),
        ("TERMINATED", "DELETING", "delete_lease"),
        ("DELETING", "DELETED", "delete_lease"),
    ]


def test_a_line_has_the_request_and_a_failure_its_reason(world):
    with scope(request_id="req-1"):
        lease = world.lease(start=HOUR)
    world.faults.fail_before("add_host", CloudRefused("no more aggregates"), times=99)
    world.run_to(lease.window.end)
    world.check()
    assert {each[5] for each in world.said[:2]} == {"req-1"}
    assert any("no more aggregates" in each[4] for each in world.said), world.said


@pytest.mark.slow
def test_every_kind_of_life_is_told(world):
    world.register_addresses(10, 11)
    held = world.lease(a_host(2), start=HOUR, hours=6)
    several = world.lease(a_host(), instances(), addresses(), hours=30)
    world.run()
    world.resize(held, min=3, max=3)
    world.change(several, name="renamed")
    made = world.manager.series.create(a_series())
    world.run()
    (part,) = world.manager.surgery.split(
        held.id, SplitRequest((PartRequest(held.reservations[0].id, count=1),), None, "part"), CURIE
    ).leases[1:]
    world.run_to(world.clock.now() + 2 * HOUR)
    world.manager.surgery.merge(held.id, MergeRequest(part.lease.id), OPERATOR)
    waiting = world.lease(a_host(6), wait=2 * DAY)
    in_vain = world.lease(a_host(6), wait=HOUR)
    world.run_to(world.clock.now() + 3 * HOUR)
    reservation = several.reservations[0]
    with pytest.raises(BlazarError):
        world.manager.surgery.swap(several.id, SwapRequest(reservation.id, "node-99"), OPERATOR)
    world.faults.fail_before("add_host", CloudUnavailable("Nova is away"), times=3)
    world.manager.leases.delete(waiting.id)
    world.change(several, end=world.clock.now() + 40 * HOUR)
    world.run_to(world.clock.now() + 2 * DAY)
    world.manager.series.delete(made.series.id, ends_running=True)
    world.run_to(world.clock.now() + 2 * DAY)
    world.check()
    told = {each[3] for each in world.said}
    assert {"CREATING", "PENDING", "STARTING", "ACTIVE", "TERMINATED", "WAITING", "TIMED_OUT", "DELETED"} <= told
    assert world.now(in_vain).status == "TIMED_OUT"


def test_what_is_rolled_back_is_not_told(world):
    with pytest.raises(BlazarError):
        world.lease(a_host(7))
    world.check()
    assert not [each for each in world.said if each[3] == "PENDING"]


def test_no_name_of_a_project_writes_a_line_of_its_own(world):
    world.lease(project="a\nLease forged\x1b[2J\u202e")
    lines = [record.getMessage() for record in world.caplog.records if record.name == "blazar.leases"]
    assert lines
    assert all(line.isprintable() for line in lines)
    assert "a\\x0aLease forged\\x1b[2J\\u202e" in lines[0]
