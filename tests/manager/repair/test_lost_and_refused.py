# SPDX-License-Identifier: Apache-2.0
"""Managers that are not seen any more, messages that were refused, and resources that have failed are problems."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.ports.webhooks import Reception, WebhookMessage, WebhookReceipt
from blazar.context import scope
from blazar.manager.repair.explanations import list_lost_managers
from blazar.model.base.errors import CloudUnavailable, NotFound
from blazar.model.base.paging import Page
from blazar.model.journal.entries import WHY, FieldChange, Verb
from blazar.model.journal.views import JournalQuestion, show_entry
from blazar.model.leases.requests import Actor
from blazar.model.managers.presence import KnownManager, ManagerFacts, ManagerState, ManagerWork
from blazar.model.problems.problems import ProblemAction, ProblemKind, ProblemQuestion, RepairRequest
from blazar.model.resources.resource import HOST
from blazar.model.subscriptions.details import Rewind, SubscriptionChange, SubscriptionRequest, SubscriptionState
from tests.world import NOON, World, a_host

MINUTE = timedelta(minutes=1)
URL = "https://ci.example/x"
OPERATOR = Actor("root", "operators", operator=True)
REQUEST = RepairRequest("ticket 4711", dry_run=False)


def problems(world: World, kind: ProblemKind):
    return world.manager.problems.page(ProblemQuestion(Page(100, "since"), (kind,))).items


def test_a_manager_that_is_not_seen_is_a_problem_until_one_is_started_on_its_machine(world):
    world.manager.presence.beat()
    assert problems(world, ProblemKind.MANAGER) == ()
    world.clock.by(seconds=61)
    (problem,) = problems(world, ProblemKind.MANAGER)
    assert (problem.id, problem.since) == (f"manager:{world.manager.claims.owner}", NOON)
    assert problem.actions == ()
    assert "start it again" in problem.explanation[0]
    assert world.manager.problems.one(problem.id) == problem
    assert world.manager.problems.page(ProblemQuestion(Page(9, "since"), lease_id="x")).items == ()
    world.another_manager().presence.beat()
    assert problems(world, ProblemKind.MANAGER) == ()
    with pytest.raises(NotFound):
        world.manager.problems.one(problem.id)


@pytest.mark.parametrize("state", ManagerState)
def test_a_manager_that_was_told_to_end_is_a_problem_only_while_others_do_not_have_its_work(state):
    work = ManagerWork("e", "l", "start_lease", NOON)
    gone = KnownManager(ManagerFacts("a:1", "a", 1, "1", NOON, state=state), NOON, False)
    told = state in (ManagerState.DRAINING, ManagerState.STOPPING)
    assert (list_lost_managers([gone]) == ()) is told
    (lost,) = list_lost_managers([replace(gone, work=(work,))])
    assert lost.claims == 1
    # One that is started beside it stands for another one that has crashed.
    crashed = KnownManager(ManagerFacts("a:2", "a", 2, "1", NOON), NOON + MINUTE, False)
    started = KnownManager(ManagerFacts("a:3", "a", 3, "1", NOON + 2 * MINUTE), NOON + 2 * MINUTE, True)
    assert len(list_lost_managers([gone, crashed, started])) == (0 if told else 1)


managers = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 9), st.integers(0, 9), st.booleans()).map(
        lambda drawn: (drawn[0], NOON + min(drawn[1:3]) * MINUTE, NOON + max(drawn[1:3]) * MINUTE, drawn[3])
    ),
    max_size=6,
)


@given(managers)
def test_each_machine_lacks_as_many_managers_as_have_no_later_one_in_their_place(drawn):
    known = [
        KnownManager(ManagerFacts(f"{host}:{number}", host, number, "1", started_at), seen_at, up)
        for number, (host, started_at, seen_at, up) in enumerate(drawn)
    ]
    for host in "ab":
        gone = sorted(one.seen_at for one in known if not one.up and one.facts.host == host)
        come = sorted(one.facts.started_at for one in known if one.up and one.facts.host == host)
        assert len([one for one in list_lost_managers(known) if one.host == host]) == len(gone) - most_pairs(gone, come)


def most_pairs(gone, come) -> int:
    """Return the greatest number of pairs in which a manager has come after another has gone, by trying all."""
    if not gone:
        return 0
    taken = [1 + most_pairs(gone[1:], [*come[:n], *come[n + 1 :]]) for n, at in enumerate(come) if at >= gone[0]]
    return max([most_pairs(gone[1:], come), *taken])


@pytest.fixture
def refused(world: World):
    """A subscription whose receiver has refused what it was told of two leases for good."""
    made = world.manager.subscriptions.create(SubscriptionRequest("physics", "curie", URL, ("lease.*",))).subscription
    tell(world)
    world.webhooks.answers[URL] = lambda message: WebhookReceipt(Reception.REFUSED, "it does not like it")
    for number in (1, 2):
        world.lease(a_host(), start=timedelta(days=number))
    for _ in range(9):
        world.clock.by(seconds=60)
        tell(world)
    del world.webhooks.answers[URL]
    return made


def tell(world: World) -> None:
    world.manager.journal_numbering.run_once()
    world.manager.delivery.run_due()


def subjects(messages: list[WebhookMessage]) -> list[str]:
    every = [json.loads(message.body) for message in messages]
    return [event["id"] for event in every if event["type"] != "blazar.subscription.test"]


def test_what_a_receiver_has_refused_is_one_problem_and_is_told_again(world, refused):
    (problem,) = problems(world, ProblemKind.DELIVERY)
    assert problem.id.startswith(f"delivery:{refused.id}:")
    assert problem.summary.endswith("has refused 2 messages")
    assert problem.explanation[0] == "The subscription belongs to project physics."
    assert problem.explanation[1].startswith("The first one is blazar.lease.created of leases/")
    assert problem.explanation[2] == "The receiver says: it does not like it."
    assert problem.actions == (ProblemAction.RETRY, ProblemAction.DROP)
    before = list(world.webhooks.accepted)
    dry = world.manager.problems.act(problem.id, ProblemAction.RETRY, RepairRequest("x"))
    assert dry.said[0].startswith("The receiver would be told again what has happened from position ")
    tell(world)
    assert world.webhooks.accepted == before
    world.manager.problems.act(problem.id, ProblemAction.RETRY, REQUEST)
    tell(world)
    assert len(subjects(world.webhooks.accepted)) == len(set(subjects(world.webhooks.accepted))) == 2
    assert problems(world, ProblemKind.DELIVERY) == ()
    assert world.manager.subscriptions.one(refused.id).behind == 0
    with pytest.raises(NotFound):
        world.manager.problems.act(problem.id, ProblemAction.RETRY, REQUEST)


def test_what_is_forgotten_is_never_told_and_what_is_refused_meanwhile_stays(world, refused):
    (problem,) = problems(world, ProblemKind.DELIVERY)
    (letters,) = world.store.dead_letters.read(world.clock.now())
    world.webhooks.answers[URL] = lambda message: WebhookReceipt(Reception.REFUSED, "still not")
    world.lease(a_host(), start=timedelta(days=3))
    for _ in range(9):
        world.clock.by(seconds=60)
        tell(world)
    assert world.store.dead_letters.drop(letters, now=world.clock.now())
    assert not world.store.dead_letters.drop(letters, now=world.clock.now())
    (left,) = problems(world, ProblemKind.DELIVERY)
    assert left.summary.endswith("has refused 1 message")
    assert left.explanation[2] == "The receiver says: still not."
    with pytest.raises(NotFound):
        world.manager.problems.one(problem.id)
    dry = world.manager.problems.act(left.id, ProblemAction.DROP, RepairRequest("x"))
    assert dry.said[0] == "Messages that would be forgotten: 1."
    done = world.manager.problems.act(left.id, ProblemAction.DROP, REQUEST)
    assert done.said[0] == "The message is forgotten."
    del world.webhooks.answers[URL]
    tell(world)
    assert subjects(world.webhooks.accepted) == []
    assert problems(world, ProblemKind.DELIVERY) == ()


def test_what_a_paused_subscription_has_had_refused_is_told_when_it_goes_on(world, refused):
    paused = SubscriptionChange(state=SubscriptionState.PAUSED)
    world.manager.subscriptions.change(refused.id, paused)
    (problem,) = problems(world, ProblemKind.DELIVERY)
    assert problem.explanation[-1] == "The subscription is paused: nothing is sent now."
    done = world.manager.problems.act(problem.id, ProblemAction.RETRY, REQUEST)
    assert done.said[0].endswith(", once the subscription is active.")
    tell(world)
    assert subjects(world.webhooks.accepted) == []
    world.manager.subscriptions.change(refused.id, SubscriptionChange(state=SubscriptionState.ACTIVE))
    tell(world)
    assert len(subjects(world.webhooks.accepted)) == 2


def test_a_receiver_that_is_told_again_already_from_earlier_on_misses_nothing(world, refused):
    world.manager.subscriptions.rewind(refused.id, Rewind(after=0))
    (problem,) = problems(world, ProblemKind.DELIVERY)
    world.manager.problems.act(problem.id, ProblemAction.RETRY, REQUEST)
    assert world.manager.subscriptions.one(refused.id).position == 0


@pytest.mark.parametrize(
    ("action", "verb", "changed"),
    [
        (ProblemAction.RETRY, Verb.RETRIED, ["why", "dead", "position"]),
        (ProblemAction.DROP, Verb.GIVEN_UP, ["why", "dead"]),
    ],
)
def test_who_had_messages_sent_again_or_forgotten_and_why_is_in_the_journal_for_operators(
    world, refused, action, verb, changed
):
    (problem,) = problems(world, ProblemKind.DELIVERY)
    world.manager.problems.act(problem.id, action, RepairRequest("a dry run tells nothing"))
    with scope(actor=OPERATOR):
        world.manager.problems.act(problem.id, action, REQUEST)
    world.manager.journal_numbering.run_once()
    page = Page(9, "position", descending=True)
    latest = world.manager.journal.page(JournalQuestion(page, object_id=refused.id)).items[0]
    assert (latest.past.verb, latest.past.by, latest.about.project_id) == (verb, OPERATOR, "physics")
    assert [change.field for change in latest.past.changes] == changed
    assert latest.past.changes[:2] == (FieldChange(WHY, None, "ticket 4711"), FieldChange("dead", "2", "0"))
    assert [change.field for change in show_entry(latest, "physics", {}).past.changes] == changed[1:]


@pytest.fixture
def failed(world: World):
    """A host that has failed eleven minutes ago, by the books."""
    host = world.store.resources.find_by_name(HOST, "node-1")
    world.store.resource_health.set_failed(HOST, {host.id: "its service is down"}, at=NOON)
    world.clock.by(seconds=660)
    return host


def test_a_failed_resource_is_asked_for_and_is_well_at_once(world, failed):
    (problem,) = problems(world, ProblemKind.RESOURCE)
    assert (problem.id, problem.actions) == (f"resource:{failed.label}", (ProblemAction.RECHECK,))
    assert problem.resource_id == f"host/{failed.external_id}"
    dry = world.manager.problems.act(problem.id, ProblemAction.RECHECK, RepairRequest("x"))
    assert dry.said[0].startswith("The cloud would be asked how host node-1 is")
    assert problems(world, ProblemKind.RESOURCE) == (problem,)
    done = world.manager.problems.act(problem.id, ProblemAction.RECHECK, REQUEST)
    assert done.said == ("host node-1 is well again, and leases can have it.",)
    assert problems(world, ProblemKind.RESOURCE) == ()


def test_a_resource_that_is_still_ill_stays_failed_since_then(world, failed):
    world.simulated.operators.host_down("node-1")
    (problem,) = problems(world, ProblemKind.RESOURCE)
    done = world.manager.problems.act(problem.id, ProblemAction.RECHECK, REQUEST)
    assert done.said[0].startswith("The cloud says of host node-1: ")
    assert done.said[0].endswith("It stays failed.")
    (after,) = problems(world, ProblemKind.RESOURCE)
    assert after.since == NOON


def test_a_cloud_that_does_not_answer_changes_nothing_of_a_failed_resource(world, failed):
    (problem,) = problems(world, ProblemKind.RESOURCE)
    world.faults.fail_before("hypervisor", CloudUnavailable("Nova is down"), times=9)
    with pytest.raises(CloudUnavailable):
        world.manager.problems.act(problem.id, ProblemAction.RECHECK, REQUEST)
    assert problems(world, ProblemKind.RESOURCE) == (problem,)
