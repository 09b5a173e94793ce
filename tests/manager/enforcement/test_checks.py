# SPDX-License-Identifier: Apache-2.0
"""When filters are asked about leases and changes, and what a denial leaves behind."""

from __future__ import annotations

import pytest

from blazar.enforcement import Question
from blazar.model.base.errors import NotEnoughResources, UsageDenied
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.store.sql.tables import leases, outbox
from tests.manager.enforcement.recording import HOUR, RecordingFilter, rows
from tests.world import NOON, World, a_host


def no(question: Question) -> None:
    raise UsageDenied("not today")


def test_a_new_lease_is_asked_about_with_what_it_would_get(world, books):
    lease = world.lease(a_host(2), start=HOUR)
    (question,) = books.asked
    assert question.current is None
    assert (question.context.user_id, question.context.project_id) == ("curie", "physics")
    assert question.wanted.lease.id == lease.id
    assert question.wanted.lease.status is LeaseStatus.CREATING
    assert {h.resource.name for h in question.wanted.allocated_resources} == world.hosts_of(lease)
    assert question.wanted.hosts == 2


def test_reservations_of_one_type_are_all_asked_about_each_with_its_own(world, books):
    lease = world.lease(a_host(1), a_host(2), start=HOUR)
    (question,) = books.asked
    seen = {
        r.id: [h for h in question.wanted.allocated_resources if h.reservation_id == r.id] for r in lease.reservations
    }
    assert [len(held) for held in seen.values()] == [1, 2]
    assert {h.resource.name for h in question.wanted.allocated_resources} == {"node-1", "node-2", "node-3"}
    assert question.wanted.hosts == 3


def test_a_denied_lease_leaves_nothing_behind_and_the_cloud_is_not_called(world, books):
    books.says = no
    calls = sum(world.faults.calls.values())
    with pytest.raises(UsageDenied, match="not today"):
        world.lease(a_host(3))
    assert rows(world, leases) == rows(world, outbox) == 0
    assert sum(world.faults.calls.values()) == calls
    books.says = lambda question: None
    assert len(world.hosts_of(world.lease(a_host(3)))) == 3


def test_what_cannot_be_booked_is_not_asked_about(world, books):
    with pytest.raises(NotEnoughResources):
        world.lease(a_host(4))
    assert books.asked == []


def test_no_transaction_and_no_turn_is_held_while_a_filter_thinks(world, books):
    inside = []

    def think(question):
        books.says = lambda question: None
        inside.append(world.lease(a_host(1), name="meanwhile"))
        inside.append(world.engine.pool.checkedout())

    books.says = think
    lease = world.lease(a_host(1))
    assert inside[0].status is LeaseStatus.PENDING
    assert inside[1] == 0
    assert world.hosts_of(lease).isdisjoint(world.hosts_of(inside[0]))


def test_a_lease_that_gets_other_hosts_than_were_asked_about_is_asked_about_again(world, books):
    def snatch(question):
        books.says = lambda question: None
        world.lease(a_host(1), name="snatched")

    books.says = snatch
    lease = world.lease(a_host(1), name="mine")
    mine = [q for q in books.asked if q.wanted.lease.name == "mine"]
    assert len(mine) == 2
    assert {h.resource.name for h in mine[-1].wanted.allocated_resources} == world.hosts_of(lease)


def test_a_lost_race_that_changes_nothing_for_the_lease_is_not_asked_about_again(world, books):
    def elsewhen(question):
        books.says = lambda question: None
        world.lease(a_host(3), name="another day", start=48 * HOUR)

    books.says = elsewhen
    lease = world.lease(a_host(1), name="mine")
    (mine,) = [q for q in books.asked if q.wanted.lease.name == "mine"]
    assert {h.resource.name for h in mine.wanted.allocated_resources} == world.hosts_of(lease)


def test_a_denial_after_a_lost_race_counts(world, books):
    def snatch(question):
        books.says = lambda question: None
        world.lease(a_host(1), name="snatched")
        books.says = no

    books.says = snatch
    with pytest.raises(UsageDenied):
        world.lease(a_host(1), name="mine")
    assert [lease.name for lease in world.manager.leases.all(None)] == ["snatched"]


def test_filters_are_asked_in_their_order_and_the_first_that_objects_decides(sqlite):
    first, second = RecordingFilter(), RecordingFilter(says=no)
    third = RecordingFilter()
    world = World(sqlite, filters=[first, second, third])
    with pytest.raises(UsageDenied):
        world.lease()
    assert [len(each.asked) for each in (first, second, third)] == [1, 1, 0]


def test_exempt_projects_are_not_asked_about_and_all_the_same_told_of(sqlite, books):
    books.says = no
    world = World(sqlite, filters=[books], exempt=["physics"])
    world.lease()
    world.run()
    assert (books.asked, books.heard) == ([], ["commit-create"])
    with pytest.raises(UsageDenied):
        world.lease(project="art")


def test_a_change_is_asked_about_with_the_lease_before_and_after_and_who_asks(world, books):
    lease = world.lease(a_host(1, 1), start=HOUR)
    admin = Actor("root", "operators")
    world.change(lease, end=NOON + 9 * HOUR, asked_by=admin)
    question = books.asked[-1]
    assert question.current.window.end == NOON + 3 * HOUR
    assert question.wanted.window.end == NOON + 9 * HOUR
    assert (question.context.user_id, question.context.project_id) == ("curie", "physics")
    assert question.context.requested_by == admin
    assert question.current.hosts == question.wanted.hosts == 1
    world.resize(lease, min=2, max=2)
    assert [books.asked[-1].current.hosts, books.asked[-1].wanted.hosts] == [1, 2]


def test_a_denied_change_leaves_the_lease_as_it_was(world, books):
    lease = world.lease(a_host(1))
    world.run()
    lease, held = world.now(lease), world.hosts_of(lease)
    books.says = no
    for change in (
        lambda: world.change(lease, end=NOON + 9 * HOUR),
        lambda: world.resize(lease, min=2, max=2),
        lambda: world.change(lease, name="x", before_end=NOON + HOUR),
    ):
        with pytest.raises(UsageDenied):
            change()
        assert (world.now(lease), world.hosts_of(lease)) == (lease, held)


def test_a_new_name_is_nobodys_business(world, books):
    lease = world.lease()
    books.says = no
    assert world.change(lease, name="new", asked_by=Actor("curie", "physics")).name == "new"
    assert world.change(lease, asked_by=Actor("curie", "physics")).name == "new"
    world.run()
    assert (len(books.asked), books.heard) == (1, ["commit-create"])


def test_a_lease_that_starts_while_a_filter_thinks_is_decided_on_again(world, books):
    lease = world.lease(a_host(1), start=HOUR)

    def meanwhile(question):
        books.says = lambda question: None
        world.run_to(NOON + HOUR)

    books.says = meanwhile
    changed = world.resize(lease, min=2, max=2)
    assert changed.status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == world.hosts_of(lease)
    assert len(world.hosts_of(lease)) == 2
