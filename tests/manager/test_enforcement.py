# SPDX-License-Identifier: Apache-2.0
"""When filters are asked, and what a denial leaves behind; who is told what, and that it is once."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import ClassVar

import pytest
import sqlalchemy as sa

from blazar.enforcement import FilterNotification, NotDelivered, Occasion, Question, Refused
from blazar.enforcement.budget import ResourceHoursFilter
from blazar.enforcement.limits import MaxConcurrentLeasesFilter, MaxLeaseDurationFilter, MaxUnitsFilter
from blazar.enforcement.payload import of_question
from blazar.enforcement.periods import parse
from blazar.manager.common.settings import Settings
from blazar.model.errors import (
    CloudRefused,
    CloudUnavailable,
    EnforcementUnavailable,
    NotEnoughResources,
    UsageDenied,
    WrongState,
)
from blazar.model.lease import LeaseStatus
from blazar.model.requests import NOW, Actor, ReservationChange
from blazar.model.resource import FLOATING_IP
from blazar.store.tables import leases, outbox
from tests.statements import counted
from tests.world import NOON, World, a_host, addresses, instances

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
DOWN = CloudUnavailable("the cloud does not answer")


@dataclass
class RecordingFilter:
    """A filter that remembers what it was asked and told, and objects as the test says."""

    needs_use: ClassVar[bool] = False
    occasions: frozenset[Occasion] = frozenset(Occasion)
    says: Callable[[Question], None] = lambda question: None
    deaf: int = 0
    asked: list[Question] = field(default_factory=list)
    told: list[FilterNotification] = field(default_factory=list)
    tries: int = 0

    def check(self, question: Question) -> None:
        self.asked.append(question)
        self.says(question)

    def notify(self, notification: FilterNotification) -> None:
        self.tries += 1
        if self.deaf:
            self.deaf -= 1
            raise EnforcementUnavailable("nobody listens")
        self.told.append(notification)

    @property
    def heard(self) -> list[str]:
        return [str(notification.occasion) for notification in self.told]


class Killed(BaseException):
    """What a kill -9 is to the code: nothing after it happens."""


def killing_at(step: int) -> Callable[[str, str], None]:
    """Die in the so-manieth call to the cloud."""
    left = [step]

    def kill(name: str, phase: str) -> None:
        left[0] -= 1
        if not left[0]:
            raise Killed

    return kill


def no(question: Question) -> None:
    raise UsageDenied("not today")


@pytest.fixture
def books() -> RecordingFilter:
    return RecordingFilter()


@pytest.fixture
def world(sqlite, books) -> World:
    return World(sqlite, filters=[books])


def rows(world: World, table: sa.Table) -> int:
    with world.engine.connect() as connection:
        return connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()


# Asked before


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


# Changes


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


# Limits on what a project has


def test_limits_count_what_the_project_has_and_nothing_of_others(sqlite):
    world = World(sqlite, hosts=9, filters=[MaxUnitsFilter(3)])
    world.lease(a_host(2), start=HOUR)
    world.lease(a_host(3), start=HOUR, project="art")
    with pytest.raises(UsageDenied, match=r"1 is left"):
        world.lease(a_host(2), start=2 * HOUR)
    lease = world.lease(a_host(1), start=2 * HOUR)
    with pytest.raises(UsageDenied):
        world.resize(lease, min=2, max=2)
    world.manager.leases.delete(lease.id)
    world.lease(a_host(3), start=3 * HOUR)


def test_a_limit_on_servers_at_one_time_holds_over_leases_and_changes(engine):
    world = World(engine, hosts=2, filters=[MaxUnitsFilter(None, of={"instance": 5})])
    lease = world.lease(instances(3, vcpus=1), start=HOUR, hours=9)
    with pytest.raises(UsageDenied, match="2 are left"):
        world.lease(instances(3, vcpus=1), start=2 * HOUR)
    world.lease(instances(2, vcpus=1), start=2 * HOUR)
    world.lease(a_host(1), start=2 * HOUR)
    world.run_to(NOON + 5 * HOUR)
    world.resize(lease, amount=1)
    world.run_to(NOON + 6 * HOUR)
    world.resize(lease, amount=5)
    with pytest.raises(UsageDenied, match="0 are left"):
        world.lease(instances(1, vcpus=1), start=HOUR)
    world.manager.leases.delete(lease.id)
    world.lease(instances(5, vcpus=1), start=HOUR)


def test_addresses_are_no_hosts_for_a_limit_on_hosts(sqlite):
    world = World(sqlite, hosts=3, filters=[MaxUnitsFilter(1), MaxConcurrentLeasesFilter(9)])
    world.register_addresses(*range(10, 20))
    world.lease(addresses(3), start=HOUR)
    lease = world.lease(a_host(1), addresses(3), start=HOUR)
    world.run_to(NOON + HOUR)
    change = ReservationChange(lease.reservations[1].id, {"amount": 5})
    assert world.change(lease, reservations=(change,)).status is LeaseStatus.ACTIVE
    with pytest.raises(UsageDenied, match="the lease would have 1 host,"):
        world.lease(a_host(1), addresses(1))


def test_addresses_have_limits_and_budgets_of_their_own(sqlite):
    filters = [MaxUnitsFilter(None, of={"floatingip": 3}), ResourceHoursFilter({"floatingip": 6}, parse("month"))]
    world = World(sqlite, hosts=1, filters=filters)
    world.register_addresses(*range(10, 20))
    with pytest.raises(UsageDenied, match="max_units_of floatingip"):
        world.lease(addresses(4), start=HOUR, hours=1)
    world.lease(addresses(2), start=HOUR, hours=2)
    with pytest.raises(UsageDenied, match="max_resource_hours"):
        world.lease(addresses(3), start=9 * HOUR, hours=1)
    world.lease(addresses(2), start=9 * HOUR, hours=1)


def test_filters_see_the_addresses_that_a_reservation_is_to_have(world, books):
    world.register_addresses(10, 11)
    lease = world.lease(a_host(), addresses(2), start=HOUR)
    (question,) = books.asked
    body = of_question(question)["lease"]["reservations"]
    assert [len(reservation["allocations"]) for reservation in body] == [1, 2]
    shown = sorted(body[1]["allocations"], key=lambda a: a["floating_ip_address"])
    first, _ = world.manager.resources.all(FLOATING_IP)
    assert shown[0] == {
        "id": first.external_id,
        "floating_network_id": "public",
        "subnet_id": "public-subnet",
        "floating_ip_address": "203.0.113.10",
        "reservable": True,
        "created_at": "2030-04-01 12:00:00",
        "updated_at": None,
    }
    assert (body[1]["network_id"], body[1]["amount"], body[1]["required_floatingips"]) == ("public", 2, [])
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]
    assert world.now(lease).status is LeaseStatus.TERMINATED


def test_addresses_are_limited_at_a_time_and_by_the_hour_and_are_no_hosts(engine):
    units = MaxUnitsFilter(0, of={"floatingip": 3})
    world = World(engine, hosts=0, filters=[units, ResourceHoursFilter({"host": 0, "floatingip": 20}, parse("month"))])
    world.register_addresses(*range(10, 20))
    lease = world.lease(addresses(2), start=HOUR, hours=5)
    with pytest.raises(UsageDenied, match=r"\(max_units_of floatingip\) 1 is left"):
        world.lease(addresses(2), start=2 * HOUR)
    with pytest.raises(UsageDenied, match=r"take 12 floatingip-hours .* 10 are left"):
        world.lease(addresses(3), start=9 * HOUR, hours=4)
    world.manager.leases.delete(lease.id)
    world.lease(addresses(3), start=9 * HOUR, hours=4)


def test_a_limit_holds_for_changes_of_dates(sqlite):
    world = World(sqlite, filters=[MaxConcurrentLeasesFilter(1)])
    world.lease(start=5 * HOUR)
    lease = world.lease(start=2 * HOUR)
    with pytest.raises(UsageDenied):
        world.change(lease, end=NOON + 6 * HOUR)
    assert world.change(lease, end=NOON + 5 * HOUR).window.end == NOON + 5 * HOUR


def test_of_two_requests_at_once_for_the_rest_of_a_limit_one_is_denied(engine):
    """The two meet after both have been let through, on two managers, on each database."""
    here = World(engine, hosts=6, filters=[MaxUnitsFilter(3)])
    here.lease(a_host(1))
    there = World(engine, hosts=6, filters=[MaxUnitsFilter(3)], register=False, cloud=here.simulated, clock=here.clock)
    both = threading.Barrier(2, timeout=20)
    for world in (here, there):
        check, waited = world.enforcement.check, []

        def together(question, passed, check=check, waited=waited):
            check(question, passed)
            if not waited:
                waited.append(True)
                both.wait()

        world.enforcement.check = together

    def ask(world):
        try:
            return len(world.hosts_of(world.lease(a_host(2))))
        except UsageDenied:
            return 0

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(ask, (here, there))) == [0, 2]
    assert len(here.manager.leases.all("physics")) == 2


def test_the_first_two_bookings_of_a_project_can_meet_as_well(engine):
    here = World(engine, hosts=6, filters=[MaxConcurrentLeasesFilter(1)])
    there = World(
        engine, filters=[MaxConcurrentLeasesFilter(1)], register=False, cloud=here.simulated, clock=here.clock
    )
    first = []

    def meet(question, passed, check=here.enforcement.check):
        check(question, passed)
        if not first:
            first.append(there.lease())

    here.enforcement.check = meet
    with pytest.raises(UsageDenied):
        here.lease()
    assert [lease.id for lease in here.manager.leases.all("physics")] == [first[0].id]


def test_a_lease_that_is_getting_more_for_longer_counts_with_all_of_it_meanwhile(engine):
    world = World(engine, hosts=6, filters=[MaxUnitsFilter(3)])
    lease = world.lease(a_host(1))
    world.run()
    denied = []

    def meanwhile(name, phase):
        if name == "add_host":
            world.faults.on_call = None
            with pytest.raises(UsageDenied) as error:
                world.lease(a_host(2), start=3 * HOUR)
            denied.append(error.value.message)

    world.faults.on_call = meanwhile
    more = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 2})
    world.change(lease, end=NOON + 9 * HOUR, reservations=(more,))
    assert "1 is left" in denied[0]
    assert world.lease(a_host(1), start=3 * HOUR).status is LeaseStatus.PENDING


def test_statements_with_filters_do_not_grow_with_hosts_or_leases(sqlite):
    world = World(
        sqlite,
        hosts=30,
        filters=[MaxLeaseDurationFilter(24 * HOUR), MaxConcurrentLeasesFilter(99), MaxUnitsFilter(999)],
    )
    world.lease()

    def cost(hosts):
        with counted(world.engine) as statements:
            world.lease(a_host(hosts), start=HOUR)
        return statements.count

    few = cost(1)
    for number in range(20):
        world.lease(start=(number + 10) * HOUR)
    assert cost(10) == few


# Told afterwards


def test_what_was_booked_changed_and_ended_is_told_in_this_order_once(world, books):
    lease = world.lease(a_host(1))
    world.run()
    world.change(lease, end=NOON + 3 * HOUR, asked_by=Actor("root", "operators"))
    world.resize(lease, min=2, max=2)
    world.run_to(NOON + 3 * HOUR)
    world.run_to(NOON + 5 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 6 * HOUR)
    assert books.heard == ["commit-create", "commit-update", "commit-update", "on-end"]
    created, moved, grown, ended = books.told
    assert {notification.view.lease.id for notification in books.told} == {lease.id}
    assert created.view.lease.status is LeaseStatus.PENDING
    assert (moved.context.user_id, moved.view.window.end) == ("curie", NOON + 3 * HOUR)
    assert [notification.context.requested_by.user_id for notification in (created, moved, grown)] == [
        "curie",
        "root",
        "curie",
    ]
    assert [notification.before and notification.before.window.end for notification in books.told] == [
        None, NOON + 2 * HOUR, NOON + 3 * HOUR, None
    ]  # fmt: skip
    assert [notification.view.hosts for notification in books.told] == [1, 1, 2, 2]
    assert (ended.at, ended.context.user_id) == (NOON + 3 * HOUR, "curie")


def test_a_lease_deleted_before_its_start_has_ended(world, books):
    lease = world.lease(start=HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert books.heard == ["commit-create", "on-end"]
    assert books.told[-1].view.hosts == 1


def test_a_lease_that_never_started_has_ended_at_its_end(world, books):
    world.faults.fail_before("add_host", CloudRefused("broken"), times=99)
    lease = world.lease()
    world.run()
    world.faults.clear()
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_in_error_that_is_deleted_has_ended_once(world, books):
    world.faults.fail_before("add_host", CloudRefused("broken"), times=99)
    lease = world.lease()
    world.run()
    assert world.now(lease).status is LeaseStatus.ERROR
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_whose_teardown_fails_again_and_again_ends_once_and_at_once(world, books):
    lease = world.lease()
    world.run()
    world.faults.fail_before("remove_host", DOWN, times=5)
    world.run_to(NOON + 2 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATING
    assert books.heard == ["commit-create", "on-end"]
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + 4 * HOUR)
    assert world.pool() == {"node-1", "node-2", "node-3"}
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_that_ended_while_no_manager_ran_is_told_of_when_one_runs_again(world, books):
    world.lease()
    world.run()
    world.clock.by(days=3)
    survivor = world.another_manager()
    survivor.engine.run_due()
    survivor.outbox.run_due()
    assert books.heard == ["commit-create", "on-end"]


def test_a_lease_ended_early_is_told_of_at_that_time(world, books):
    lease = world.lease(hours=9)
    world.run_to(NOON + HOUR)
    world.change(lease, end=NOON + HOUR)
    world.run_to(NOON + HOUR)
    assert books.heard == ["commit-create", "commit-update", "on-end"]
    assert books.told[-1].at == NOON + HOUR


def test_what_never_came_to_be_is_told_of_neither_way(world, books):
    world.faults.fail_before("create_aggregate", CloudRefused("no"))
    with pytest.raises(CloudRefused):
        world.lease()
    world.run_to(NOON + 9 * HOUR)
    assert (len(books.asked), books.told) == (1, [])


def test_a_growth_that_the_cloud_refuses_is_not_told_of(world, books):
    lease = world.lease()
    world.run()
    world.faults.fail_before("add_host", CloudRefused("no"))
    with pytest.raises(CloudRefused):
        world.resize(lease, min=2, max=2)
    world.run()
    assert books.heard == ["commit-create"]


def test_a_lease_deleted_while_it_was_created_is_told_of_neither_way(world, books):
    def delete(name, phase):
        if name == "create_aggregate" and phase == "after":
            world.faults.on_call = None
            (lease,) = world.manager.leases.all(None)
            world.manager.leases.delete(lease.id)

    world.faults.on_call = delete
    with pytest.raises(WrongState):
        world.lease()
    world.run_to(NOON + 9 * HOUR)
    assert books.told == []


def test_nobody_to_hear_means_nothing_is_kept(sqlite):
    world = World(sqlite, filters=[RecordingFilter(occasions=frozenset())])
    world.lease()
    world.run_to(NOON + 3 * HOUR)
    assert rows(world, outbox) == 0


# Services that do not answer, managers that die


def test_who_does_not_listen_delays_no_lease_and_is_told_again(world, books):
    books.deaf = 4
    lease = world.lease()
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert books.tries == 1
    for wait in (1, 2, 4, 8):
        world.clock.by(seconds=wait)
        world.manager.outbox.run_due()
    assert (books.tries, books.heard) == (5, ["commit-create"])


def test_news_of_one_lease_keep_their_order_and_those_of_others_do_not_wait(world, books):
    books.deaf = 1
    first = world.lease()
    world.manager.leases.delete(first.id)
    second = world.lease()
    world.manager.leases.delete(second.id)
    world.run()
    assert [(n.view.lease.id, str(n.occasion)) for n in books.told] == [
        (second.id, "commit-create"),
        (second.id, "on-end"),
    ]
    world.clock.by(seconds=1)
    world.run()
    assert [str(n.occasion) for n in books.told if n.view.lease.id == first.id] == ["commit-create", "on-end"]


def test_it_is_given_up_after_so_many_tries_and_the_reason_is_kept(sqlite, books, caplog):
    world = World(sqlite, filters=[books], settings=Settings(outbox_attempts=3))
    books.deaf = 99
    lease = world.lease()
    for _ in range(9):
        world.manager.outbox.run_due()
        world.clock.by(minutes=1)
    assert books.tries == 3
    assert f"commit-create of lease {lease.id} is given up: RecordingFilter: nobody listens" in caplog.text
    with world.engine.connect() as connection:
        kept = connection.execute(sa.select(outbox)).one()
    assert (kept.due_at, kept.reason) == (None, "RecordingFilter: nobody listens")
    assert lease.id in kept.content


def test_a_message_keeps_the_names_that_the_database_has_for_what_was_granted(world, books):
    books.deaf = 1
    world.lease(instances(2))
    with world.engine.connect() as connection:
        kept = json.loads(connection.execute(sa.select(outbox.c.content)).scalars().one())
    assert [(h["units"], h["unit"]["items"][0][0]) for h in kept["view"]["holdings"]] == [(2, "DISK_GB")]
    world.clock.by(seconds=1)
    world.manager.outbox.run_due()
    (told,) = books.told
    assert [(h.count, h.whole) for h in told.view.allocated_resources] == [(2, False)]


def test_what_is_refused_for_good_is_told_once_and_the_next_follows(world, books):
    def notify(notification, notify=books.notify):
        notify(notification)
        raise Refused("I know that already")

    books.deaf = 1
    lease = world.lease(start=HOUR)
    books.notify = notify
    world.manager.leases.delete(lease.id)
    world.run_to(NOON + DAY)
    assert books.heard == ["commit-create", "on-end"]


@pytest.mark.parametrize("heard", [True, False])
def test_an_end_does_not_wait_long_behind_what_fails_where_the_service_can_be_reached(world, books, heard):
    """A service that cannot be reached at all hears of both, in their order, when it is back."""
    commits = []

    def notify(notification, notify=books.notify):
        if notification.occasion is Occasion.CREATED:
            commits.append(world.clock.now())
            raise NotDelivered("it answered 500", maybe_accepted=heard)
        notify(notification)

    books.notify = notify
    lease = world.lease(start=HOUR)
    world.run()
    world.clock.by(minutes=2)
    world.manager.leases.delete(lease.id)
    for _ in range(30):
        world.run()
        world.clock.by(minutes=1)
    assert books.heard == (["on-end"] if heard else [])
    if heard:
        assert commits[-1] < NOON + timedelta(minutes=25)


def test_a_change_is_asked_about_when_all_before_it_is_told(world, books):
    books.deaf = 1
    lease = world.lease(start=HOUR)
    world.clock.by(seconds=1)
    order = []
    books.says = lambda question: order.append("check")
    notify = books.notify
    books.notify = lambda notification: (order.append(str(notification.occasion)), notify(notification))
    world.change(lease, end=NOON + 9 * HOUR)
    world.change(lease, end=NOON + 5 * HOUR)
    world.run()
    assert order == ["commit-create", "check", "commit-update", "check", "commit-update"]


def test_a_change_does_not_wait_for_what_cannot_be_told(world, books):
    books.deaf = 99
    lease = world.lease(start=HOUR)
    world.change(lease, end=NOON + 9 * HOUR)
    assert len(books.asked) == 2
    assert books.tries == 2
    books.mandatory = True
    with pytest.raises(EnforcementUnavailable, match="does not know the current state of lease .* yet"):
        world.change(lease, end=NOON + 5 * HOUR)
    assert len(books.asked) == 2


def test_a_change_waits_while_another_manager_tells(world, books):
    books.deaf = 1
    lease = world.lease(start=HOUR)
    world.clock.by(seconds=1)
    telling, may_go = threading.Event(), threading.Event()
    notify = books.notify

    def slowly(notification):
        telling.set()
        assert may_go.wait(10)
        notify(notification)

    books.notify = slowly
    other = threading.Thread(target=world.another_manager().outbox.run_due)
    other.start()
    assert telling.wait(10)
    books.says = lambda question: order.append(books.heard)
    order: list[list[str]] = []
    threading.Timer(0.2, may_go.set).start()
    world.change(lease, end=NOON + 9 * HOUR)
    other.join()
    assert order == [["commit-create"]]


def test_a_bug_in_a_filter_is_like_not_listening(world, books):
    def bug(notification):
        books.tries += 1
        raise KeyError("oops")

    books.notify = bug
    lease = world.lease()
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.tries > 1


def test_each_filter_is_told_once_though_another_does_not_listen(sqlite):
    class Other(RecordingFilter):
        pass

    deaf, hears = RecordingFilter(deaf=2), Other()
    world = World(sqlite, filters=[deaf, hears])
    world.lease()
    for _ in range(4):
        world.manager.outbox.run_due()
        world.clock.by(seconds=10)
    assert (deaf.tries, deaf.heard) == (3, ["commit-create"])
    assert (hears.tries, hears.heard) == (1, ["commit-create"])


def test_what_a_dead_manager_had_in_hand_is_told_by_another_and_not_before_its_time(world, books):
    notify = books.notify

    def die(notification):
        raise Killed

    books.deaf = 1
    world.lease()
    world.clock.by(seconds=1)
    books.notify = die
    with pytest.raises(Killed):
        world.manager.outbox.run_due()
    books.notify = notify
    survivor = world.another_manager()
    survivor.outbox.run_due()
    assert books.told == []
    world.clock.by(seconds=61)
    survivor.outbox.run_due()
    assert books.heard == ["commit-create"]


def test_a_manager_that_dies_as_it_begins_an_end_leaves_one_message_or_none_yet(world, books):
    """Killed at every step of an end in turn: the message is there once, whichever manager finishes the work."""
    lease = world.lease()
    world.run()
    world.clock.to(NOON + 2 * HOUR)
    steps = 0
    while True:
        steps += 1
        world.faults.on_call = killing_at(steps)
        try:
            world.manager.engine.run_due()
        except Killed:
            world.clock.by(seconds=31)
            world.faults.on_call = None
            world.manager = world.another_manager()
            continue
        break
    world.faults.on_call = None
    world.run()
    assert steps > 3
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert books.heard == ["commit-create", "on-end"]


def test_of_two_managers_one_tells(sqlite, books):
    world = World(sqlite, filters=[books])
    other = world.another_manager()
    notify = books.notify

    def both(notification):
        books.notify = notify
        other.outbox.run_due()
        notify(notification)

    books.notify = both
    world.lease()
    world.run()
    assert (books.tries, books.heard) == (1, ["commit-create"])


def test_news_are_the_same_on_every_database(engine, books):
    world = World(engine, filters=[books])
    lease = world.lease(a_host(2))
    world.run_to(NOON + 3 * HOUR)
    assert books.heard == ["commit-create", "on-end"]
    assert replace(books.told[0].view.lease, revision=lease.revision) == lease
    assert [h.resource.attributes for h in books.told[0].view.allocated_resources] == [
        h.resource.attributes for h in books.asked[0].wanted.allocated_resources
    ]


def test_a_running_manager_tells_without_being_asked_to(sqlite):
    heard = threading.Event()

    class Listener(RecordingFilter):
        def notify(self, notification):
            heard.set()

    world = World(sqlite, filters=[Listener()])
    world.manager.start()
    try:
        world.lease(start=HOUR)
        assert heard.wait(5)
    finally:
        world.manager.stop()


# Budgets of resource-hours


def hosts_for(hours: int, period: str = "month") -> ResourceHoursFilter:
    return ResourceHoursFilter({"host": hours}, parse(period))


def left(denied: pytest.ExceptionInfo[UsageDenied]) -> str:
    found = re.search(r"(\S+) are left for it", denied.value.message)
    assert found
    return found[1]


def hours_left(world: World, project: str = "physics") -> float:
    """Ask for more than there can be, at a quiet time of the month."""
    with pytest.raises(UsageDenied) as denied:
        world.lease(a_host(1), start=NOON + 12 * DAY, hours=17 * 24, project=project)
    return float(left(denied))


def test_what_was_given_back_early_counts_only_until_then(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), hours=50)
    world.run()
    assert hours_left(world) == 100
    world.run_to(NOON + 10 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert world.now(lease).deleted_at is not None
    assert hours_left(world) == 180
    ended = world.lease(a_host(1), hours=5)
    world.run()
    world.clock.by(hours=2)
    world.change(ended, end=NOW)
    world.run()
    assert hours_left(world) == 178
    assert hours_left(world, project="art") == 200


def test_what_was_deleted_before_it_began_never_counted(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), start=24 * HOUR, hours=50)
    assert hours_left(world) == 100
    world.resize(lease, min=1, max=1)
    assert hours_left(world) == 150
    world.manager.leases.delete(lease.id)
    assert hours_left(world) == 200


def test_hosts_that_came_later_count_from_then_and_stay_counted(engine):
    world = World(engine, filters=[hosts_for(200)])
    lease = world.lease(a_host(1), hours=50)
    world.run_to(NOON + 40 * HOUR)
    world.resize(lease, min=2, max=2)
    assert hours_left(world) == 200 - 50 - 10
    world.change(lease, end=NOON + 60 * HOUR)
    assert hours_left(world) == 200 - 60 - 20
    world.run_to(NOON + 61 * HOUR)
    assert hours_left(world) == 200 - 60 - 20


def test_servers_that_a_lease_has_more_or_fewer_of_count_for_as_long_as_it_has_them(engine):
    world = World(engine, hosts=1, filters=[ResourceHoursFilter({"instance": 300}, parse("month"))])

    def rest():
        with pytest.raises(UsageDenied) as denied:
            world.lease(instances(1, vcpus=1), start=NOON + 12 * DAY, hours=17 * 24)
        return left(denied)

    lease = world.lease(instances(2, vcpus=1), hours=50)
    world.run_to(NOON + 10 * HOUR)
    world.resize(lease, amount=4)
    assert rest() == str(300 - 20 - 160)
    world.run_to(NOON + 20 * HOUR)
    world.resize(lease, amount=1)
    assert rest() == str(300 - 20 - 40 - 30)
    world.run_to(NOON + 51 * HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    assert rest() == str(300 - 20 - 40 - 30)


def test_a_lease_that_is_being_deleted_counts_until_now(sqlite):
    world = World(sqlite, filters=[hosts_for(200)])
    lease = world.lease(a_host(2), hours=50)
    world.run_to(NOON + 10 * HOUR)
    world.faults.fail_before("remove_host", DOWN, times=99)
    world.manager.leases.delete(lease.id)
    assert world.now(lease).status is LeaseStatus.DELETING
    assert hours_left(world) == 180


def test_of_two_requests_at_once_for_the_rest_of_a_budget_one_is_denied(engine):
    here = World(engine, hosts=6, filters=[hosts_for(10)])
    there = World(engine, filters=[hosts_for(10)], register=False, cloud=here.simulated, clock=here.clock)
    first = []

    def meet(question, passed, check=here.enforcement.check):
        check(question, passed)
        if not first:
            # At another time of the month: only the budget has them in common.
            first.append(there.lease(start=20 * HOUR, hours=6))

    here.enforcement.check = meet
    with pytest.raises(UsageDenied, match="4 are left for it"):
        here.lease(hours=6)
    assert len(here.manager.leases.all("physics")) == 1


def test_a_lease_that_is_getting_more_for_longer_counts_at_that_time_meanwhile(engine):
    world = World(engine, hosts=6, filters=[hosts_for(50, "1")])
    lease = world.lease(a_host(1), hours=20)
    world.run()
    denied = []

    def meanwhile(name, phase):
        if name == "add_host":
            world.faults.on_call = None
            with pytest.raises(UsageDenied) as error:
                world.lease(a_host(1), start=NOON + 50 * HOUR, hours=20)
            denied.append(left(error))

    world.run_to(NOON + 16 * HOUR)
    world.faults.on_call = meanwhile
    more = ReservationChange(lease.reservations[0].id, {"min": 2, "max": 2})
    world.change(lease, end=NOON + 60 * HOUR, reservations=(more,))
    assert denied == ["2"]


def test_the_cost_of_a_budget_does_not_grow_with_leases_past_and_to_come(sqlite):
    world = World(sqlite, hosts=30, filters=[hosts_for(100_000)])
    world.lease()

    def cost():
        with counted(world.engine) as statements:
            world.lease(start=HOUR)
        return statements.count

    few = cost()
    for number in range(20):
        lease = world.lease(start=(number + 10) * HOUR)
        if number % 2:
            world.manager.leases.delete(lease.id)
    assert cost() == few
