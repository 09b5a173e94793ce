# SPDX-License-Identifier: Apache-2.0
"""Owners of preemptible servers are told before a start deletes these, and no start is later for it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable, Conflict
from blazar.model.leases.states import LeaseStatus
from blazar.model.subscriptions.details import Channel, SubscriptionRequest
from tests.configured import configured_world
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
NOTICE = 5 * MINUTE


@pytest.fixture
def world(sqlite) -> World:
    return World(sqlite, settings=noticing())


def noticing() -> Settings:
    return Settings(claim_ttl=timedelta(seconds=30), promises=0, preemption_notice=NOTICE)


def metadata(world: World, name: str) -> dict[str, str]:
    return next(dict(s.metadata) for s in servers(world) if s.name == name)


def servers(world: World):
    with world.simulated.inspect() as state:
        return list(state.servers.values())


def told(world: World) -> list[tuple[str, str, str, bool]]:
    """Return of which servers the bus has told: project, id, instant after noon, image."""
    return [
        (project, p.server.name, str(p.ends_at - NOON), p.server.saved)
        for project, some in world.notifier.preempted
        for p in some
    ]


def journal(world: World) -> list[tuple[str, str, str | None]]:
    world.manager.journal_numbering.run_once()
    page = world.store.journal.entries_after(0, None, 1000)
    return [
        (entry.past.verb.value, str(entry.about.name), next((c.after for c in entry.past.changes), None))
        for entry in page.items
        if entry.about.object_type == "server"
    ]


def look(world: World) -> None:
    world.manager.preemption_work.run_once()


def closed(world: World) -> set[str]:
    (freepool,) = [a for a in world.aggregates() if a.name == "freepool"]
    return {key.removeprefix("blazar:closed:") for key in freepool.metadata if key.startswith("blazar:closed:")}


def test_a_preemptible_server_is_told_once_in_all_ways_before_a_start_deletes_it(engine):
    world = World(engine, settings=noticing())
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host, project_id="art")
    world.clock.to(NOON + HOUR - NOTICE - MINUTE)
    look(world)
    assert (metadata(world, "spot"), told(world), journal(world)) == ({}, [], [])
    world.clock.to(NOON + HOUR - NOTICE)
    for _ in range(3):
        look(world)
        world.clock.by(seconds=15)
    assert metadata(world, "spot") == {"blazar:ends_at": "2030-04-01T13:00:00Z"}
    assert told(world) == [("art", "spot", "1:00:00", False)]
    assert journal(world) == [("before_end", "spot", "2030-04-01T13:00:00Z")]
    # Nobody comes in its place any more, and the start is on the second.
    with pytest.raises(Conflict):
        world.simulated.users.boot_preemptible("late", host=host)
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert servers(world) == []
    look(world)
    assert world.store.preemption.read() == {}
    assert journal(world) == [("before_end", "spot", "2030-04-01T13:00:00Z")]


def test_who_runs_when_the_notice_begins_has_all_of_it(world):
    """The look before is at most a step earlier."""
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    world.clock.to(NOON + HOUR - NOTICE - 14 * SECOND)
    look(world)
    assert metadata(world, "spot")


def test_an_image_is_made_of_a_server_whose_owner_wants_one(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    for name in ("kept", "not"):
        world.simulated.users.boot_preemptible(name, host=host, project_id="art")
    with world.simulated.change_state() as state:
        for server in state.servers.values():
            server.metadata = {"blazar:before_end": "snapshot"} if server.name == "kept" else {}
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    world.clock.by(seconds=15)
    look(world)
    with world.simulated.inspect() as state:
        assert [(i.name, i.project_id) for i in state.images.values()] == [("reserved_kept", "art")]
    assert sorted(told(world)) == [("art", "kept", "1:00:00", True), ("art", "not", "1:00:00", False)]
    assert metadata(world, "kept")["blazar:before_end"] == "snapshot"


def test_an_image_that_cannot_be_made_keeps_nobody_waiting(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    with world.simulated.change_state() as state:
        (server,) = state.servers.values()
        server.metadata = {"blazar:before_end": "snapshot"}
    world.faults.fail_before("begin_snapshot", Conflict("busy"), times=1000)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    assert told(world) == [("p", "spot", "1:00:00", True)]
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE


def test_a_notice_is_taken_back_when_the_lease_is_deleted(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    assert closed(world) == {host}
    world.manager.leases.delete(lease.id)
    world.run()
    world.clock.by(seconds=15)
    look(world)
    assert (metadata(world, "spot"), closed(world), world.store.preemption.read()) == ({}, set(), {})
    assert [verb for verb, *_ in journal(world)] == ["before_end", "kept"]


def test_a_lease_that_begins_later_opens_its_hosts_again_and_tells_again(world):
    lease = world.lease(a_host(2), start=HOUR)
    host, empty = sorted(world.hosts_of(lease))
    world.simulated.users.boot_preemptible("spot", host=host)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    assert closed(world) == {host, empty}
    world.change(lease, start=NOON + HOUR + 30 * MINUTE)
    world.clock.by(seconds=15)
    look(world)
    assert (metadata(world, "spot"), closed(world)) == ({}, set())
    world.clock.to(NOON + HOUR + 25 * MINUTE)
    look(world)
    assert metadata(world, "spot") == {"blazar:ends_at": "2030-04-01T13:30:00Z"}
    assert [text for *_, text in journal(world)] == ["2030-04-01T13:00:00Z", None, "2030-04-01T13:30:00Z"]


def test_on_shared_hosts_those_are_told_for_whom_no_room_is_left(engine):
    world = World(engine, hosts=1, settings=noticing())
    for name, vcpus, age in (("old", 8, 3), ("big", 16, 2), ("young", 8, 1)):
        created = (NOON - timedelta(hours=age)).isoformat()
        world.simulated.users.boot_preemptible(name, host="node-1", vcpus=vcpus, created_at=created)
    lease = world.lease(instances(2, vcpus=8), start=HOUR)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    assert [name for _, name, *_ in told(world)] == ["big"]
    assert metadata(world, "old") == metadata(world, "young") == {}
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert {server.name for server in servers(world)} == {"old", "young"}


def test_no_other_server_is_told_or_marked(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_server("stray", project_id="art", user_id="frida", host=host)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    assert (metadata(world, "stray"), told(world), journal(world)) == ({}, [], [])


def test_a_lease_that_starts_at_once_has_no_time_for_a_notice(world):
    for host in world.pool():
        world.simulated.users.boot_preemptible("spot", host=host)
    look(world)
    lease = world.lease(a_host(1))
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert told(world) == []


def test_a_cloud_that_does_not_answer_is_asked_again(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    world.clock.to(NOON + HOUR - NOTICE)
    world.faults.fail_before("servers_on", CloudUnavailable("away"), times=1)
    look(world)
    assert told(world) == []
    world.clock.by(seconds=15)
    look(world)
    assert len(told(world)) == 1


def test_of_two_managers_one_tells(world):
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    world.clock.to(NOON + HOUR - NOTICE)
    other = world.another_manager()
    assert [world.manager.preemption_work.run_once(), other.preemption_work.run_once()] == [1, 0]
    world.clock.by(seconds=15)
    other.preemption_work.run_once()
    assert len(told(world)) == 1
    assert len(journal(world)) == 1


def test_without_a_notice_nothing_is_read_or_told(sqlite):
    world = World(sqlite)
    assert world.manager.preemption_work.run_once() == 0


def test_the_statements_of_a_look_do_not_grow_with_leases_and_hosts(sqlite):
    world = World(sqlite, hosts=3, settings=noticing())
    world.lease(a_host(1), start=HOUR)
    world.clock.to(NOON + HOUR - NOTICE)
    with counted(sqlite) as one:
        look(world)
    world.lease(a_host(2), start=NOTICE - MINUTE, project="bio")
    world.clock.by(seconds=15)
    with counted(sqlite) as several:
        look(world)
    assert several.count <= one.count


def test_owners_are_told_as_long_before_as_the_file_says(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, "[manager]", "preemption_notice = 7")
    lease = world.lease(a_host(1), start=HOUR)
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host)
    for minutes, names in ((8, []), (7, ["spot"])):
        world.clock.to(NOON + HOUR - minutes * MINUTE)
        look(world)
        assert [name for _, name, *_ in told(world)] == names


def test_its_owner_gets_a_signed_message_and_mail(world):
    world.people.addresses["u"] = "u@example.org"
    for channel, url in ((Channel.WEBHOOK, "https://hooks.example/in"), (Channel.MAIL, None)):
        request = SubscriptionRequest(PROJECT, "u", url, ("server.before_end",), channel=channel)
        world.manager.subscriptions.create(request)
    world.manager.delivery.run_due()
    lease = world.lease(a_host(1), start=HOUR, project="bio")
    (host,) = world.hosts_of(lease)
    world.simulated.users.boot_preemptible("spot", host=host, project_id=PROJECT)
    world.clock.to(NOON + HOUR - NOTICE)
    look(world)
    world.manager.journal_numbering.run_once()
    world.manager.delivery.run_due()
    message = json.loads(world.webhooks.accepted[-1].body)
    assert message["type"].endswith("server.before_end")
    change = message["data"]["changes"][0]
    assert (change["field"], change["after"]) == ("ends_at", "2030-04-01T13:00:00Z")
    assert "bio" not in world.webhooks.accepted[-1].body.decode()
    text = world.mail.sent[-1][1].get_content()
    assert "Server spot is deleted at 2030-04-01 13:00 UTC" in text
    assert "save your work before" in text
