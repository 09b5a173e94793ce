# SPDX-License-Identifier: Apache-2.0
"""Subscriptions by mail: text for people, one mail for all that has happened meanwhile, no address but one's own."""

from __future__ import annotations

from datetime import timedelta

import pytest
from icalendar import Calendar

from blazar.clouds.ports.people import NoMail
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.model.base.errors import Denied, InvalidInput, WrongState
from blazar.model.base.moments import Duration
from blazar.model.leases.reminders import Anchor, Reminder
from blazar.model.leases.requests import LeaseChange
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.resources.resource import HOST
from blazar.model.subscriptions.details import (
    Channel,
    SubscriptionChange,
    SubscriptionRequest,
    SubscriptionState,
)
from tests.manager.subscriptions.test_delivery import PROJECT, shown, tell, tell_for
from tests.world import a_host

CURIE = "curie@physics.example"


@pytest.fixture
def world(world):
    world.people.addresses["curie"] = CURIE
    return world


def subscribe(world, user: str = "curie", *, url: str | None = None, events=("lease.*",)):
    request = SubscriptionRequest(PROJECT, user, url, events, channel=Channel.MAIL)
    return world.manager.subscriptions.create(request).subscription


def test_a_lease_is_told_of_in_plain_text_with_its_calendar_entry(world):
    made = subscribe(world)
    assert (made.state, made.secret, made.url) == (SubscriptionState.ACTIVE, None, None)
    lease = world.lease(start=timedelta(hours=1), hours=2, project=PROJECT, name="gan-training")
    tell(world)
    ((address, mail),) = world.mail.sent
    assert address == mail["To"] == CURIE
    assert mail["Subject"] == "[Blazar] Lease gan-training was created"
    assert (mail["Auto-Submitted"], mail["From"]) == ("auto-generated", "blazar@cloud.example")
    text = mail.get_body(("plain",)).get_content()
    assert "from 2030-04-01 13:00 UTC to 2030-04-01 15:00 UTC" in text
    assert f"blazar lease show {lease.id}" in text
    assert f"blazar subscription delete {made.id}" in text
    (attached,) = mail.iter_attachments()
    assert attached.get_content_type() == "text/calendar"
    (event,) = Calendar.from_ical(attached.get_content()).walk("VEVENT")
    # As in feeds, so that calendar programs change the same event.
    assert (str(event["uid"]), event["sequence"]) == (lease.id, 0)
    assert world.webhooks.sent == []


def test_what_happens_within_minutes_is_told_in_one_mail(world):
    subscribe(world)
    lease = world.lease(start=timedelta(days=9), hours=2, project=PROJECT, name="first")
    tell(world)
    for number in range(30):
        world.manager.leases.change(lease.id, LeaseChange(name=f"name {number}"))
        tell(world)
    assert len(world.mail.sent) == 1
    tell_for(world, timedelta(minutes=10))
    assert len(world.mail.sent) == 2
    mail = world.mail.sent[1][1]
    assert mail["Subject"] == "[Blazar] 30 events"
    assert "name: name 28 -> name 29" in mail.get_body(("plain",)).get_content()
    for number in range(200):
        world.manager.leases.change(lease.id, LeaseChange(name=f"other {number}"))
        tell_for(world, timedelta(seconds=18), timedelta(seconds=18))
    # An hour has passed.
    assert len(world.mail.sent) <= 2 + 20


def test_an_address_that_the_server_does_not_know_ends_it_and_trouble_is_tried_again(world):
    made = subscribe(world)
    world.mail.answers[CURIE] = WebhookReceipt(Reception.FAILED, "the mail server did not answer in time")
    world.lease(start=timedelta(hours=1), hours=2, project=PROJECT)
    tell(world)
    assert shown(world, made).reason == "the mail server did not answer in time"
    world.mail.answers.clear()
    tell_for(world, timedelta(minutes=2))
    assert len(world.mail.sent) == 1
    world.mail.answers[CURIE] = WebhookReceipt(Reception.GONE, "it does not take this recipient (550)")
    world.lease(start=timedelta(hours=4), hours=2, project=PROJECT)
    tell_for(world, timedelta(minutes=5))
    assert shown(world, made).state is SubscriptionState.DISABLED


def test_who_has_lost_the_address_gets_nothing_and_the_reason_is_shown(world):
    made = subscribe(world)
    world.people.addresses.clear()
    world.lease(start=timedelta(hours=1), hours=2, project=PROJECT)
    tell(world)
    assert world.mail.sent == []
    assert "no e-mail address" in (shown(world, made).reason or "")


@pytest.mark.parametrize("name", ["x\r\nBcc: frida@art.example", "x" * 500, "<script>", "ü ☃"])
def test_a_name_is_a_name_whatever_is_in_it(world, name):
    subscribe(world)
    lease = world.lease(start=timedelta(hours=1), hours=2, project=PROJECT)
    tell(world)
    try:
        world.manager.leases.change(lease.id, LeaseChange(name=name[:80]))
    except InvalidInput:
        return
    tell_for(world, timedelta(minutes=5))
    (_, mail) = world.mail.sent[-1]
    assert mail["Bcc"] is None
    assert mail["To"] == CURIE


def test_what_is_refused(world):
    with pytest.raises(InvalidInput, match="url does not belong"):
        subscribe(world, url="https://ci.example/")
    with pytest.raises(InvalidInput, match="no e-mail address of this user"):
        subscribe(world, "pierre")
    made = subscribe(world)
    with pytest.raises(WrongState, match="needs no test"):
        world.manager.subscriptions.test(made.id)
    for change in (SubscriptionChange(url="https://ci.example/"), SubscriptionChange(new_secret=True)):
        with pytest.raises(InvalidInput, match="neither a url nor a secret"):
            world.manager.subscriptions.change(made.id, change)
    with pytest.raises(InvalidInput, match="url is missing"):
        world.manager.subscriptions.create(SubscriptionRequest(PROJECT, "curie", None, ("lease.*",)))
    world.mail = NoMail()
    with pytest.raises(Denied, match=r"\[mail\] smtp_url is not set"):
        world.another_manager().subscriptions.create(
            SubscriptionRequest(PROJECT, "curie", None, ("lease.*",), channel=Channel.MAIL)
        )


def test_who_is_warned_of_the_end_reads_when_it_is_and_how_to_extend(world):
    subscribe(world, events=("lease.before_end",))
    lease = world.lease(hours=3, project=PROJECT, name="gan-training")
    world.run()
    (host,) = world.hosts_of(lease)
    world.lease(a_host(needs=f'["==", "$hypervisor_hostname", "{host}"]'), start=timedelta(hours=9))
    world.run_to(world.clock.now() + timedelta(hours=2))
    tell(world)
    ((address, mail),) = world.mail.sent
    assert address == CURIE
    assert mail["Subject"] == "[Blazar] Lease gan-training ends at 2030-04-01 15:00 UTC"
    text = mail.get_body(("plain",)).get_content()
    assert "What it has is returned then: save your work before, or extend it." in text
    assert f"blazar lease extend {lease.id} --until 2030-04-01T21:00:00Z" in text
    assert "from 2030-04-01 12:00 UTC to 2030-04-01 15:00 UTC, ACTIVE" in text


def test_who_has_what_others_wait_for_does_not_read_how_to_extend(world):
    subscribe(world, events=("lease.before_end",))
    lease = world.lease(hours=3, project=PROJECT)
    world.run()
    for host in world.hosts_of(lease):
        pinned = a_host(needs=f'["==", "$hypervisor_hostname", "{host}"]')
        world.lease(pinned, start=timedelta(hours=3), project="computing")
    world.run_to(world.clock.now() + timedelta(hours=2))
    tell(world)
    text = world.mail.sent[0][1].get_body(("plain",)).get_content()
    assert "As things are, it cannot be extended." in text
    assert "lease extend" not in text


@pytest.mark.parametrize(
    ("start", "says"),
    [(0, "It is in use, and keeps its hosts. Save your work before."), (3, "No other hosts are free in its time.")],
)
def test_whose_hosts_are_to_be_repaired_reads_when_and_what_to_do(world, start, says):
    subscribe(world, events=("lease.maintenance",))
    lease = world.lease(a_host(), start=timedelta(hours=start), hours=9, project=PROJECT, name="gan-training")
    world.run()
    hosts = tuple(host.external_id for host in world.manager.resources.all(HOST))
    request = MaintenanceRequest(
        "firmware", world.clock.now() + timedelta(hours=4), Duration(seconds=7200), hosts, reason="a secret of ours"
    )
    world.manager.maintenances.create(request)
    world.manager.maintenance_work.run_once()
    tell(world)
    ((_, mail),) = world.mail.sent
    assert mail["Subject"] == "[Blazar] Lease gan-training keeps hosts that will be in maintenance"
    text = mail.get_body(("plain",)).get_content()
    assert "Maintenance is planned from 2030-04-01 16:00 UTC to 2030-04-01 18:00 UTC." in text
    assert says in text
    assert f"blazar lease show {lease.id}" in text
    assert "secret" not in text


def test_a_reminder_is_told_with_its_text_and_the_calendar_entry(world):
    subscribe(world, events=("lease.reminded",))
    text = "copy the results to the share, " * 8
    asked = (Reminder(timedelta(hours=-1), text, Anchor.END),)
    lease = world.lease(hours=4, project=PROJECT, name="gan-training", reminders=asked)
    world.run_to(lease.window.end - timedelta(hours=1))
    tell(world)
    ((_, mail),) = world.mail.sent
    assert mail["Subject"] == "[Blazar] Lease gan-training reminds you"
    assert f"    {text.strip()}" in mail.get_body(("plain",)).get_content()
    (attached,) = mail.iter_attachments()
    assert attached.get_content_type() == "text/calendar"
