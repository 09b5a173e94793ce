# SPDX-License-Identifier: Apache-2.0
"""What managers lack of what is not their own is a problem for all who ask, with what mends it, until it is mended."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from blazar.enforcement.external import ExternalServiceFilter, Patience
from blazar.model.base.errors import CloudUnavailable, EnforcementUnavailable, NotFound
from blazar.model.base.log_lines import Trouble
from blazar.model.base.paging import Page
from blazar.model.managers.presence import ConditionKind
from blazar.model.problems.problems import Problem, ProblemAction, ProblemKind, ProblemQuestion, RepairRequest
from tests.enforcement.conftest import Service
from tests.statements import counted
from tests.world import NOON, World, a_host

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)


class Spell:
    """A trouble of a process, and the seconds that its clock says; it passes with that of a world."""

    def __init__(self, world: World, trouble: Trouble) -> None:
        self.trouble = trouble
        trouble._clock = lambda: (world.clock.now() - NOON).total_seconds()


@pytest.fixture
def bank():
    service = Service()
    yield service
    service.stop()


@pytest.fixture
def asking(bank) -> ExternalServiceFilter:
    return ExternalServiceFilter({"check-create": bank.url + "check-create"}, patience=Patience(2.0, 1))


def ask(world: World) -> None:
    world.lease(a_host(), start=timedelta(hours=1), hours=1)


def problems(world: World, **wanted) -> tuple[Problem, ...]:
    """Return what another manager says, which reads it in the database only."""
    return world.another_manager().problems.page(ProblemQuestion(Page(100, "since"), **wanted)).items


@pytest.fixture
def world(engine, asking):
    made = World(engine, filters=[asking], hosts=2)
    Spell(made, asking.trouble)
    made.manager.presence.beat()
    return made


def test_a_service_that_does_not_answer_is_a_problem_of_all_managers_until_it_answers(world, bank):
    bank.answers(500)
    with pytest.raises(EnforcementUnavailable):
        ask(world)
    world.clock.by(seconds=5)
    assert problems(world) == ()
    world.manager.presence.beat()
    (problem,) = problems(world)
    assert (problem.id, problem.kind) == ("enforcement:ExternalServiceFilter", ProblemKind.ENFORCEMENT)
    assert problem.since == NOON
    assert problem.summary == "The service that ExternalServiceFilter asks does not answer"
    assert problem.explanation[0] == "Since 2030-04-01 12:00: check-create: it answered 500."
    assert any("systemctl restart blazar-manager" in sentence for sentence in problem.explanation)
    assert world.manager.problems.one(problem.id) == problem
    assert problems(world, kinds=(ProblemKind.MANAGER,)) == ()
    bank.answers(204)
    ask(world)
    world.manager.presence.beat()
    assert problems(world) == ()
    with pytest.raises(NotFound):
        world.manager.problems.one(problem.id)


def test_a_lease_that_is_granted_without_an_answer_is_told_of_too(engine, bank):
    lenient = ExternalServiceFilter(
        {"check-create": bank.url + "check-create"}, patience=Patience(2.0, 1, allow_on_error=True)
    )
    world = World(engine, filters=[lenient], hosts=1)
    Spell(world, lenient.trouble)
    bank.answers(503)
    ask(world)
    (condition,) = world.manager.presence.facts().conditions
    assert (condition.kind, condition.subject) == (ConditionKind.ENFORCEMENT, "ExternalServiceFilter")


def test_a_service_that_refuses_a_lease_has_answered(world, bank):
    bank.answers(403, b'{"message": "no credits"}')
    with pytest.raises(Exception, match="no credits"):
        ask(world)
    assert world.manager.presence.facts().conditions == ()


def test_a_service_that_nobody_needs_any_more_is_forgotten_after_a_quarter_of_an_hour(world, bank):
    bank.answers(500)
    with pytest.raises(EnforcementUnavailable):
        ask(world)
    world.clock.by(seconds=14 * 60)
    assert len(world.manager.presence.facts().conditions) == 1
    world.clock.by(seconds=61)
    assert world.manager.presence.facts().conditions == ()


def test_what_a_manager_lacked_that_is_gone_is_no_problem_besides_that_it_is_gone(world, bank):
    bank.answers(500)
    with pytest.raises(EnforcementUnavailable):
        ask(world)
    world.manager.presence.beat()
    world.clock.by(seconds=120)
    assert [problem.kind for problem in problems(world)] == [ProblemKind.MANAGER]


def test_a_log_that_cannot_be_written_is_a_problem_until_it_can(world, caplog):
    trouble = Spell(world, Trouble(logging.getLogger("blazar.unwritten"), "The log can be written")).trouble
    world.manager.presence._log_troubles = (trouble,)
    trouble.log_failure("The log cannot be written: [Errno 28] No space left on device")
    world.clock.by(seconds=5)
    world.manager.presence.beat()
    # The next line shows whether there is room again, and a manager may have nothing else to say.
    assert [record.getMessage() for record in caplog.records if record.name == "blazar.manager.common.presence"] == [
        "The log could not be written: lines before this one may be missing"
    ]
    world.clock.by(seconds=5)
    world.manager.presence.beat()
    assert len([record for record in caplog.records if record.name == "blazar.manager.common.presence"]) == 1
    manager = world.manager.presence.facts()
    (problem,) = problems(world)
    assert (problem.id, problem.kind, problem.since) == (f"log:{manager.id}", ProblemKind.LOG, NOON)
    assert problem.summary == f"The manager on {manager.host} cannot write its log"
    assert "No space left on device" in problem.explanation[0]
    assert any("df -h" in sentence for sentence in problem.explanation)
    assert world.manager.problems.one(problem.id) == problem
    with pytest.raises(Exception, match="is no action on a problem of this kind"):
        world.manager.problems.act(problem.id, ProblemAction.RETRY, RepairRequest("why"))
    trouble.log_recovery()
    world.manager.presence.beat()
    assert problems(world) == ()


def test_resources_whose_state_cannot_be_read_for_long_are_a_problem_until_it_can(a_world):
    world = a_world(hosts=2)
    world.faults.fail_before("hypervisors", CloudUnavailable("Nova is away"), times=2)
    world.manager.monitor.run_once()
    world.clock.by(seconds=300)
    world.manager.monitor.run_once()
    world.manager.presence.beat()
    assert problems(world) == ()
    world.clock.by(seconds=300)
    world.manager.presence.beat()
    (problem,) = problems(world)
    assert (problem.id, problem.kind, problem.since) == ("poll::host", ProblemKind.POLL, NOON)
    assert problem.summary == "The state of hosts cannot be read"
    assert problem.explanation[0] == "Since 2030-04-01 12:00: Nova is away."
    assert any("blazar-status upgrade check" in sentence for sentence in problem.explanation)
    assert world.manager.problems.one(problem.id) == problem
    world.manager.monitor.run_once()
    world.manager.presence.beat()
    assert problems(world) == ()


def test_they_cost_no_statement_more(world, bank):
    question = ProblemQuestion(Page(100, "since"))
    with counted(world.engine) as without:
        world.manager.problems.page(question)
    bank.answers(500)
    with pytest.raises(EnforcementUnavailable):
        ask(world)
    world.manager.presence.beat()
    with counted(world.engine) as statements:
        assert world.manager.problems.page(question).items
    assert statements.count == without.count
