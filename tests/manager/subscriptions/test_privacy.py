# SPDX-License-Identifier: Apache-2.0
"""Messages of members, by web hook and by mail, say what the history says to their project: nothing of others."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest

from blazar.clouds.ports.webhooks import Reception
from blazar.context import scope
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import ClaimLost
from blazar.model.base.paging import Page
from blazar.model.journal.entries import ObjectType
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.problems.problems import ProblemAction, RepairRequest
from blazar.model.subscriptions.details import (
    Channel,
    Rewind,
    SubscriptionChange,
    SubscriptionRequest,
    SubscriptionState,
)
from blazar.model.surgery import OfferRequest, Terms
from blazar.store.sql.tables import journal
from tests.manager.subscriptions.test_delivery import PROJECT, accepted, answer, live, shown, subscribe, tell, tell_for
from tests.world import NOON, World, a_host

OTHER = "computing"
CURIE, TURING = Actor("curie", PROJECT), Actor("turing", OTHER)
ROOT = Actor("root", "operators", operator=True)
SECRET = "ticket 4711: the neighbour is under suspicion"
OPS = "https://ops.example/x"
HOUR = timedelta(hours=1)


@pytest.fixture
def world(a_world) -> World:
    world = a_world(hosts=3)
    for user in ("curie", "turing", "root"):
        world.people.addresses[user] = f"{user}@mail.example"
    return world


def mail_to(world: World, project: str | None, user: str) -> None:
    request = SubscriptionRequest(project, user, None, ("lease.*",), channel=Channel.MAIL)
    world.manager.subscriptions.create(request)


def mails_of(world: World, user: str) -> str:
    """Return the texts of the mails to a user."""
    own = [mail for address, mail in world.mail.sent if address == f"{user}@mail.example"]
    assert own
    return "".join(str(mail.get_body(("plain",)).get_content()) for mail in own)


def hooks_of(world: World, url: str) -> str:
    """Return the events that were sent to a URL, as text."""
    found = accepted(world, url)
    assert found
    return str(found)


def test_to_whom_a_lease_is_offered_is_told_and_how_to_take_it_and_that_it_is_withdrawn(a_world):
    world = a_world(hosts=3, settings=Settings(own_events=("lease.offered", "lease.withdrawn")))
    world.people.addresses |= {"turing": "turing@mail.example", "hopper": "hopper@mail.example"}
    lease = world.lease(a_host(), start=HOUR, project=PROJECT, name="gan-training")
    subscribe(world, project=OTHER, user="turing", url="https://taker.example/x")
    tell(world)
    with scope(actor=CURIE, request_id="req-of-curie"):
        world.manager.transfers.offer(lease.id, OfferRequest(OTHER, "turing"), Terms(CURIE))
    tell_for(world, timedelta(minutes=5))
    ((address, mail),) = world.mail.sent
    text = mail.get_body(("plain",)).get_content()
    assert (address, mail["Subject"]) == ("turing@mail.example", "[Blazar] Lease gan-training is offered to you")
    assert f"blazar transfer accept {lease.id}" in text
    assert "lease show" not in text, "it is not theirs yet"
    with scope(actor=CURIE):
        world.manager.transfers.withdraw(lease.id, Terms(CURIE))
    tell_for(world, timedelta(minutes=5))
    assert world.mail.sent[-1][1]["Subject"] == "[Blazar] Lease gan-training is no longer offered to you"
    (offered, withdrawn) = accepted(world, "https://taker.example/x")
    assert [event["type"] for event in (offered, withdrawn)] == ["blazar.lease.offered", "blazar.lease.withdrawn"]
    assert (offered["data"]["lease"]["project_id"], offered["data"]["lease"]["user_id"]) == (OTHER, "turing")
    told = hooks_of(world, "https://taker.example/x") + text
    assert not [name for name in (PROJECT, "curie", "req-of-curie") if name in told]
    # The history of the lease has each once.
    verbs = [str(entry.verb) for entry in world.manager.leases.history(lease.id, Page(10, "at")).items]
    assert verbs == ["created", "offered", "withdrawn"]


def test_of_an_offer_to_one_user_nobody_else_of_the_project_is_told(world):
    for project, user in ((OTHER, "turing"), (OTHER, "hopper"), (None, "root")):
        world.people.addresses[user] = f"{user}@mail.example"
        mail_to(world, project, user)
    lease = world.lease(a_host(), start=HOUR, project=PROJECT, name="gan-training")
    tell(world)
    world.mail.sent.clear()
    with scope(actor=CURIE):
        world.manager.transfers.offer(lease.id, OfferRequest(OTHER, "turing"), Terms(CURIE))
    tell_for(world, timedelta(minutes=10))
    asked = [f"transfer accept {lease.id}" in mails_of(world, user) for user in ("turing", "root")]
    assert asked == [True, False]
    assert "Lease gan-training was offered" in mails_of(world, "root")
    assert "hopper@mail.example" not in [address for address, _ in world.mail.sent]
    with scope(actor=CURIE):
        world.manager.transfers.withdraw(lease.id, Terms(CURIE))
        world.manager.transfers.offer(lease.id, OfferRequest(OTHER), Terms(CURIE))
    tell_for(world, timedelta(minutes=10))
    assert mails_of(world, "hopper").count("gan-training") >= 1
    seen = {}
    for user in ("turing", "hopper"):
        question = JournalQuestion(Page(100, "position"), OTHER, reader_id=user)
        seen[user] = [
            str(entry.past.verb)
            for entry in world.manager.journal.page(question).items
            if entry.about.object_type is ObjectType.LEASE
        ]
    assert seen == {"turing": ["offered", "withdrawn", "offered"], "hopper": ["offered"]}


def test_whose_offer_is_replaced_by_one_to_somebody_else_is_told_that_it_is_withdrawn(a_world):
    world = a_world(hosts=3)
    lease = world.lease(a_host(), start=240 * HOUR, project=PROJECT, name="gan-training")
    first, second = "https://taker.example/x", "https://other.example/x"
    subscribe(world, project=OTHER, url=first)
    subscribe(world, project="chemistry", url=second)
    tell(world)
    offers = (OfferRequest(OTHER), OfferRequest(OTHER), OfferRequest("chemistry"), OfferRequest(None, "hopper"))
    for offer in offers:
        with scope(actor=CURIE):
            world.manager.transfers.offer(lease.id, offer, Terms(CURIE))
        tell_for(world, timedelta(minutes=1))
    told = [[event["type"].rpartition(".")[2] for event in accepted(world, url)] for url in (first, second)]
    assert told == [["offered", "offered", "withdrawn"], ["offered", "withdrawn"]]
    assert not [name for name in ("chemistry", PROJECT, "hopper", "curie") if name in hooks_of(world, first)]
    world.clock.by(days=2)
    with scope(actor=CURIE):
        world.manager.transfers.offer(lease.id, OfferRequest("chemistry"), Terms(CURIE))
        world.clock.by(days=2)
        world.manager.transfers.offer(lease.id, OfferRequest(OTHER), Terms(CURIE))
    tell_for(world, timedelta(minutes=1))
    last = [accepted(world, url)[-1]["type"] for url in (first, second)]
    assert last == ["blazar.lease.offered"] * 2, "an offer that has expired is none to be withdrawn"


def test_neither_project_is_told_anything_of_the_other_when_a_lease_goes_to_it(world):
    lease = world.lease(a_host(), start=HOUR, project=PROJECT)
    world.manager.transfers.offer(lease.id, OfferRequest(OTHER), Terms(CURIE))
    world.manager.journal_numbering.run_once()
    urls = {PROJECT: "https://giver.example/x", OTHER: "https://taker.example/x", None: OPS}
    for project, user in ((PROJECT, "curie"), (OTHER, "turing"), (None, "root")):
        subscribe(world, project=project, url=urls[project])
        mail_to(world, project, user)
    tell(world)
    with scope(actor=TURING, request_id="req-of-turing"):
        world.manager.transfers.accept(lease.id, Terms(TURING))
    tell(world)
    giver, taker = hooks_of(world, urls[PROJECT]), hooks_of(world, urls[OTHER])
    for told in (giver, mails_of(world, "curie")):
        assert "transferred" in told
        assert not [name for name in (OTHER, "turing", "req-of-turing") if name in told]
    for told in (taker, mails_of(world, "turing")):
        assert "transferred" in told
        assert not [name for name in (PROJECT, "curie") if name in told]
    (change,) = [one for one in accepted(world, urls[OTHER])[0]["data"]["changes"] if one["field"] == "user_id"]
    assert (change["before"], change["after"]) == (None, "turing")
    for told in (hooks_of(world, OPS), mails_of(world, "root")):
        assert all(name in told for name in (PROJECT, OTHER))


def test_what_operators_say_for_giving_up_is_told_to_operators_alone(world):
    subscribe(world)
    subscribe(world, project=None, url=OPS)
    mail_to(world, PROJECT, "curie")
    tell(world)
    world.simulated.users.boot_server("old", project_id="chemistry", user_id="u", host="node-1")
    lease = world.lease(a_host(needs='["==", "$hypervisor_hostname", "node-1"]'), project=PROJECT)
    world.run_to(NOON + timedelta(minutes=3))
    with scope(actor=ROOT, request_id="req-of-root"):
        problem = f"event:{world.now(lease).event(EventType.START).id}"
        world.manager.problems.act(problem, ProblemAction.GIVE_UP, RepairRequest(SECRET, False, None))
    assert world.now(lease).status is LeaseStatus.ERROR
    tell_for(world, timedelta(minutes=5))
    for told in (hooks_of(world, "https://ci.example/x"), mails_of(world, "curie")):
        assert "failed" in told
        assert not [name for name in (SECRET, "root", "why") if name in told]
    everything = hooks_of(world, OPS)
    assert SECRET in everything
    assert "req-of-root" in everything


@pytest.mark.parametrize("works", [True, False], ids=["accepted", "failed"])
@pytest.mark.parametrize("state", [SubscriptionState.PAUSED, SubscriptionState.DISABLED])
def test_a_test_of_who_is_not_told_anything_now_sends_the_test_alone(engine, state, works):
    world = World(engine)
    made = subscribe(world)
    tell(world)
    if state is SubscriptionState.PAUSED:
        world.manager.subscriptions.change(made.id, SubscriptionChange(state=state))
    live(world)
    if state is SubscriptionState.DISABLED:
        world.webhooks.answers[made.url] = answer(Reception.GONE)
        tell(world)
    world.webhooks.answers.clear()
    if not works:
        world.webhooks.answers[made.url] = answer(Reception.FAILED)
    tell(world)
    sent = len(world.webhooks.sent)
    world.manager.subscriptions.test(made.id)
    tell_for(world, timedelta(minutes=10))
    assert len(world.webhooks.sent) == sent + 1
    assert accepted(world) == []
    assert shown(world, made).state is state
    assert shown(world, made).behind > 0
    world.webhooks.answers.clear()
    world.manager.subscriptions.change(made.id, SubscriptionChange(state=SubscriptionState.ACTIVE))
    tell(world)
    assert accepted(world)


def test_a_message_that_cannot_be_made_is_a_failed_round_and_disturbs_nobody(world, caplog):
    world.people.addresses["curie"] = "a..b@mail.example"
    made = world.manager.subscriptions.create(
        SubscriptionRequest(PROJECT, "curie", None, ("lease.*",), channel=Channel.MAIL)
    ).subscription
    subscribe(world)
    tell(world)
    world.lease(a_host(), start=HOUR, project=PROJECT)
    with caplog.at_level(logging.ERROR):
        tell(world)
    assert f"Messages of subscription {made.id} cannot be made" in caplog.text
    assert len(accepted(world)) == 1
    found = shown(world, made)
    assert "cannot make or send a message" in (found.reason or "")
    assert found.failing_since is not None
    assert found.behind > 0
    world.people.addresses["curie"] = "curie@mail.example"
    tell_for(world, timedelta(minutes=1))
    assert "was created" in mails_of(world, "curie")
    assert shown(world, made).behind == 0


def test_a_claim_that_is_lost_while_something_is_sent_is_no_failure_of_the_receiver(world):
    made = subscribe(world)
    tell(world)
    live(world, 1)
    world.manager.journal_numbering.run_once()

    def lose_it(_: object) -> None:
        raise ClaimLost("another manager works on it")

    world.webhooks.answers[made.url] = lose_it
    world.manager.delivery.run_due()
    assert shown(world, made).failing_since is None
    assert shown(world, made).reason is None


def test_what_is_told_again_since_an_instant_leaves_nothing_out(engine):
    world = World(engine)
    made = subscribe(world)
    tell(world)
    lease = world.lease(a_host(), start=timedelta(days=5), project=PROJECT)
    tell(world)
    for number in range(3):
        world.manager.leases.change(lease.id, LeaseChange(name=f"n{number}"))
        tell(world)
    with world.engine.begin() as connection:
        # The first one of these was done last, by a clock that goes ahead.
        places = [event["sequence"] for event in accepted(world)]
        early, late = NOON - HOUR, NOON + HOUR
        connection.execute(journal.update().values(at=early))
        for place, at in zip(places, (early, late, early, late), strict=True):
            connection.execute(journal.update().where(journal.c.position == int(place)).values(at=at))
    world.webhooks.accepted.clear()
    world.manager.subscriptions.rewind(made.id, Rewind(since=NOON))
    tell(world)
    assert [event["sequence"] for event in accepted(world)] == places[1:]
    world.webhooks.accepted.clear()
    world.manager.subscriptions.rewind(made.id, Rewind(since=NOON + 2 * HOUR))
    tell(world)
    assert accepted(world) == []
    assert shown(world, made).position == world.store.journal.last_position()
