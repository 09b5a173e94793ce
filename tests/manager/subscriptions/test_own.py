# SPDX-License-Identifier: Apache-2.0
"""Everybody with an address is told by mail of their own leases: what they choose, when, in their zone, and no more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.mail import DEFAULTS
from blazar.clouds.ports.people import NO_ADDRESS, NoMail
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.manager.common.settings import Settings
from blazar.manager.subscriptions.mails import MOST_SINGLE
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import Denied, InvalidInput, NotFound, PreconditionFailed
from blazar.model.journal.entries import JournalEntry, ObjectType, Subject, Verb
from blazar.model.leases.requests import LeaseChange
from blazar.model.subscriptions.details import Digest, SubscriptionChange, SubscriptionState, own_id
from blazar.model.subscriptions.events import list_event_names
from blazar.model.subscriptions.rounds import next_digest
from blazar.store.journal.rows import write_entries
from tests.manager.subscriptions.test_delivery import answer, shown, subscribe, tell, tell_for
from tests.world import World

CURIE = "curie@physics.example"
EVENTS = ("lease.created", "lease.changed", "subscription.disabled")
HOUR = timedelta(hours=1)


@pytest.fixture
def world(engine) -> World:
    made = World(engine, hosts=3, settings=Settings(own_events=EVENTS, promises=0))
    made.people.addresses["curie"] = CURIE
    return made


def mine(world, user: str = "curie"):
    return world.manager.subscriptions.mine(user)


def change(world, **wanted):
    return world.manager.subscriptions.change_mine("curie", SubscriptionChange(**wanted))


def text_of(mail) -> str:
    return mail.get_body(("plain",)).get_content()


def book(world, start: timedelta = HOUR, **more):
    return world.lease(start=start, hours=1, **more)


def test_who_has_a_lease_is_told_of_it_without_having_asked(world):
    book(world, name="gan-training", project="physics")
    tell(world)
    ((address, mail),) = world.mail.sent
    assert (address, mail["Subject"]) == (CURIE, "[Blazar] Lease gan-training was created")
    assert "blazar subscription mine" in text_of(mail)
    assert shown(world, mine(world)) == mine(world)
    assert mine(world).behind == 0


def test_leases_in_whatever_project_are_told_and_those_of_others_are_not(world):
    change(world, events=("lease.*",))
    book(world, project="physics", name="one")
    book(world, project="art", name="two")
    about = Subject(ObjectType.LEASE, "lease-of-frida", "three", "physics", "frida", 1)
    entry = JournalEntry(about, SystemClock().now(), Verb.CREATED)
    world.store.transactions.write(lambda connection: write_entries(connection, [entry]))
    tell_for(world, timedelta(minutes=10))
    text = "\n".join(text_of(mail) for _, mail in world.mail.sent)
    assert "Lease one was created" in text
    assert "Lease two was created" in text
    assert "three" not in text
    assert {address for address, _ in world.mail.sent} == {CURIE}


def test_who_wants_nothing_is_told_nothing(world):
    before = mine(world)
    assert (before.events, before.revision) == (EVENTS, 0)
    after = change(world, events=())
    assert (after.events, after.revision) == ((), 1)
    book(world)
    tell_for(world, timedelta(minutes=10))
    assert world.mail.sent == []
    assert mine(world).behind == 0


def test_the_first_lease_does_not_undo_what_was_chosen(world):
    change(world, events=("lease.deleted",))
    book(world)
    tell(world)
    assert mine(world).events == ("lease.deleted",)
    assert world.mail.sent == []


def test_times_are_those_of_the_zone_of_the_reader_with_its_name(world):
    change(world, time_zone="Asia/Kathmandu")
    book(world)
    tell(world)
    text = text_of(world.mail.sent[0][1])
    assert "from 2030-04-01 18:45 +0545 to 2030-04-01 19:45 +0545" in text
    assert "Times are those of Asia/Kathmandu." in text


def test_a_digest_comes_in_the_morning_and_has_all_of_the_day(world):
    # It is noon in UTC.
    change(world, digest=Digest.DAILY, time_zone="Europe/Paris")
    lease = book(world, name="first")
    tell_for(world, timedelta(hours=5), timedelta(minutes=30))
    for number in range(3):
        world.manager.leases.change(lease.id, LeaseChange(name=f"name {number}"))
    tell_for(world, timedelta(hours=12, minutes=30), timedelta(minutes=30))
    assert world.mail.sent == []
    assert mine(world).behind > 0
    tell_for(world, HOUR, timedelta(minutes=30))
    ((_, mail),) = world.mail.sent
    assert mail["Subject"] == "[Blazar] 4 events"
    assert world.clock.now() < datetime(2030, 4, 2, 6, 31, tzinfo=UTC)
    tell_for(world, timedelta(days=2), timedelta(minutes=30))
    assert len(world.mail.sent) == 1


@pytest.mark.slow
def test_ten_thousand_events_in_an_hour_are_twenty_mails_each_with_all_of_its_time(world):
    change(world, events=("lease.changed",))
    revision, begun = 0, world.clock.now()
    while world.clock.now() < begun + HOUR:
        entries = []
        for _ in range(167):
            revision += 1
            about = Subject(ObjectType.LEASE, f"lease-{revision % 40}", "busy", "physics", "curie", revision // 40 + 1)
            entries.append(JournalEntry(about, world.clock.now(), Verb.CHANGED))
        world.store.transactions.write(lambda connection, rows=tuple(entries): write_entries(connection, rows))
        tell_for(world, timedelta(minutes=1))
    tell_for(world, timedelta(minutes=6))
    assert revision >= 10_000
    assert len(world.mail.sent) <= 22
    told = sum(int(mail["Subject"].split()[1]) for _, mail in world.mail.sent)
    assert told == revision
    assert mine(world).behind == 0
    assert max(len(text_of(mail)) for _, mail in world.mail.sent) < MOST_SINGLE * 200
    last = text_of(world.mail.sent[-2][1])
    assert "451 times something was changed" in last
    assert "blazar journal list" in last


def test_the_link_in_a_mail_ends_them_without_a_login(world):
    book(world)
    tell(world)
    mail = world.mail.sent[0][1]
    link = mail["List-Unsubscribe"].strip("<>")
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert link in text_of(mail)
    _, id_, secret = link.rsplit("/", 2)
    subscriptions = world.manager.subscriptions
    for other in ("x", "s" * 42, ""):
        with pytest.raises(NotFound):
            subscriptions.unsubscribe(id_, other)
    subscriptions.check_link(id_, secret)
    assert mine(world).events == EVENTS
    subscriptions.unsubscribe(id_, secret)
    subscriptions.unsubscribe(id_, secret)
    assert mine(world).events == ()
    with pytest.raises(NotFound):
        subscriptions.unsubscribe(own_id("frida"), secret)


def test_its_link_is_sent_in_one_piece_so_that_mail_programs_find_it(world, monkeypatch):
    sent: list[bytes] = []

    def keep(address: str, message: bytes) -> WebhookReceipt:
        sent.append(message)
        return WebhookReceipt(Reception.ACCEPTED)

    monkeypatch.setattr(world.mail, "send", keep)
    book(world, name="Prüfung des Netzes für 日本 " * 3)
    tell(world)
    assert sent[0].isascii(), "a server may take no more"
    header = sent[0].partition(b"\r\n\r\n")[0]
    link = world.mail.reveal_link(own_id("curie"))
    assert len(link) > 78, "a short one would be in one piece anyway"
    assert f"\r\nList-Unsubscribe: <{link}>\r\n".encode() in header
    others = [line for line in header.split(b"\r\n") if not line.startswith((b"List-Unsubscribe:", b"Message-ID:"))]
    assert max(map(len, others)) <= 78


def test_who_has_no_address_is_told_nothing_and_sees_why(world):
    world.people.addresses.clear()
    book(world)
    tell(world)
    assert world.mail.sent == []
    assert mine(world).reason == NO_ADDRESS


def test_the_owner_of_a_web_hook_that_is_given_up_is_told_by_mail(world):
    made = subscribe(world, url="https://ci.example/x")
    tell(world)
    world.webhooks.answers["https://ci.example/x"] = answer(Reception.GONE, "it answered 410")
    book(world, project="physics")
    tell(world)
    tell_for(world, timedelta(minutes=10))
    assert shown(world, made).state is SubscriptionState.DISABLED
    text = text_of(world.mail.sent[-1][1])
    assert "Subscription https://ci.example/… was disabled" in text
    assert "reason: it answered 410" in text


def test_an_address_that_does_not_exist_ends_the_mail_until_its_user_wants_it_again(world):
    world.mail.answers[CURIE] = WebhookReceipt(Reception.GONE, "it does not take this recipient (550)")
    book(world)
    tell(world)
    assert mine(world).state is SubscriptionState.DISABLED
    world.mail.answers.clear()
    assert change(world, state=SubscriptionState.ACTIVE).state is SubscriptionState.ACTIVE
    tell(world)
    assert len(world.mail.sent) == 1


def test_what_is_refused(world):
    with pytest.raises(InvalidInput, match="is for operators"):
        change(world, events=("resource.failed",))
    with pytest.raises(PreconditionFailed):
        change(world, events=(), revisions=(7,))
    world.mail = NoMail()
    manager = world.another_manager()
    for call in (
        lambda: manager.subscriptions.mine("curie"),
        lambda: manager.subscriptions.change_mine("curie", SubscriptionChange(events=())),
    ):
        with pytest.raises(Denied, match=r"\[mail\] smtp_url is not set"):
            call()


def test_where_no_mail_is_sent_nobody_subscribes_by_having_a_lease(world):
    world.mail = NoMail()
    book(world)
    world.another_manager().journal_numbering.run_once()
    with pytest.raises(NotFound):
        world.store.subscriptions.one(own_id("curie"))


def test_the_defaults_are_events():
    assert set(DEFAULTS) <= set(list_event_names(operator=False))


@given(
    st.datetimes(datetime(2029, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(["UTC", "Europe/Paris", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"]),
)
def test_the_next_morning_is_within_a_day_and_at_eight_by_the_clocks_of_the_zone(at, zone):
    found = next_digest(at, zone)
    assert at < found <= at + timedelta(hours=25)
    assert found.astimezone(ZoneInfo(zone)).hour == 8
