# SPDX-License-Identifier: Apache-2.0
"""What is kept of the calendar is what its tables say after all that a manager and its database can suffer."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError

from blazar.model.base.clock import END_OF_TIME, monotonic
from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.leases.lease import Lease
from blazar.model.resources.resource import (
    FLOATING_IP,
    HOST,
    VOLUME,
    Resource,
    ResourceDetails,
    ResourceInventory,
    ResourceKind,
)
from blazar.store.calendar import changes, kept
from blazar.store.calendar.generations import read_generations
from blazar.store.sql import versions
from blazar.store.sql.tables import allocations, calendar_changes, inventory_versions, resources
from blazar.store.store import Store, StoreLimits
from tests.copies import check_copies
from tests.store.builders import NOON, a_host, a_lease, book, booked, hours, promised, taken
from tests.store.test_kept import give_up, hosts, late_commit, seen

HOUR = timedelta(hours=1)


@pytest.fixture
def store(engine: Engine) -> Store:
    """A manager that keeps the calendar, and has answered from it."""
    store = Store(engine)
    a_host(store, 1), a_host(store, 2)
    seen(store)
    return store


@pytest.fixture
def other(engine: Engine) -> Store:
    """Another manager on the same database."""
    return Store(engine)


def names(store: Store) -> set[str]:
    return {host.name for host in hosts(store)}


def test_a_version_that_a_restored_database_has_had_before_says_something_else(
    store: Store, other: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """The last host is gone with the restored state, and another one comes in its place."""
    third = a_host(other, 3)
    assert names(store) == {"node-1", "node-2", "node-3"}
    assert seen(store) == frozenset()
    restored_at = versions.read_seconds() + 60
    with late_commit(engine) as connection:
        connection.execute(resources.delete().where(resources.c.id == third.id))
        v = inventory_versions.c
        connection.execute(inventory_versions.update().where(v.kind == str(HOST)).values(version=v.version - 1))
    monkeypatch.setattr(versions, "read_seconds", lambda: restored_at)
    fourth = a_host(other, 4)
    assert names(store) == {"node-1", "node-2", "node-4"}
    booked(other, hours(24, 26), fourth)
    assert seen(store) == {fourth.id}
    check_copies(store, now=NOON)


def find_numbers(store: Store) -> list[int]:
    with store.transactions.reading() as connection:
        return list(connection.execute(sa.select(calendar_changes.c.seq).order_by(calendar_changes.c.seq)).scalars())


def test_notes_are_forgotten_in_their_order_whatever_the_clocks_were(store: Store, other: Store, engine: Engine):
    """A manager that has seen the last note of a fast clock is paused, while a slow one notes a release."""
    one, two = hosts(store)
    first, second = booked(store, hours(24, 26), one), booked(store, hours(24, 26), two)
    other.leases.save(first, first, release=[first.reservations[0].id], at=NOON + 2 * HOUR)
    assert seen(store) == {two.id}
    give_up(other, second)
    third = booked(other, hours(24, 26), one)
    give_up(other, third)
    other.kept_calendars.forget_changes(NOON + HOUR, 10)
    assert seen(store) == frozenset()
    numbers = find_numbers(store)
    assert other.kept_calendars.forget_changes(NOON + 3 * HOUR, 1) == 1
    assert find_numbers(store) == numbers[1:]


READS = ("read_news", "read_versions", "read_positions", "read_all", "read_resources", "read_closed")


@pytest.mark.parametrize("read", READS)
def test_a_database_that_is_cut_off_amid_an_answer_leaves_no_wrong_copy(
    store: Store, other: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch, read: str
):
    one, two = hosts(store)
    lease, done, whole = booked(other, hours(24, 26), one), [], getattr(kept, read)

    def cut(*arguments: object, **more: object) -> None:
        """Have the answer, and lose the connection."""
        done.append(whole(*arguments, **more))
        raise OperationalError("SELECT", {}, ConnectionError("cut off"))

    for number, host in enumerate((two, one, two)):
        seen(store)
        give_up(other, lease)
        lease = booked(other, hours(24, 26), host)
        a_host(other, 3 + number)
        if number:
            store.kept_calendars._copies[HOST].drop()
        with monkeypatch.context() as patch, suppress(OperationalError, StoreUnavailable):
            patch.setattr(kept, read, cut)
            taken(store, hours(24, 48))
        assert seen(store) == {host.id}
        check_copies(store, now=NOON)
    assert done


@pytest.mark.parametrize("number", [10, changes.MOST_GAPS + 10, changes.MOST_ROWS + 10])
def test_so_many_changes_at_once_are_followed_or_read_as_a_whole(
    store: Store, other: Store, engine: Engine, number: int
):
    one, two = hosts(store)
    lease = booked(store, hours(24, 26), one)
    assert seen(store) == {one.id}
    note = {"kind": str(HOST), "resource_id": two.id, "token": "t", "at": NOON}
    with late_commit(engine) as connection:
        connection.execute(calendar_changes.insert(), [note] * (number // 2))
    give_up(other, lease)
    with late_commit(engine) as connection:
        connection.execute(calendar_changes.insert(), [note] * (number // 2))
    assert seen(store) == frozenset()
    booked(other, hours(24, 26), two)
    assert seen(store) == {two.id}


def test_a_lease_without_an_end_and_one_far_away_are_seen(store: Store, other: Store):
    one, two = hosts(store)
    booked(other, Window(NOON + 30 * HOUR, END_OF_TIME), one)
    booked(other, Window(NOON + timedelta(days=9000), NOON + timedelta(days=9001)), two)
    assert seen(store) == {one.id}
    for start, expected in ((timedelta(days=2_000_000), {one.id}), (timedelta(days=9000), {one.id, two.id})):
        assert taken(store, Window(NOON + start, NOON + start + HOUR)) == expected
    check_copies(store, now=NOON)


def test_the_database_of_a_copy_that_lags_behind_is_believed_and_then_the_other_one(store: Store, engine: Engine):
    """After a fail-over the last booking is missing, and after another one it is there, with the same number."""
    one, _ = hosts(store)
    booked(store, hours(24, 26), one)
    assert seen(store) == {one.id}
    with late_commit(engine) as connection:
        rows = [dict(row) for row in connection.execute(sa.select(allocations)).mappings()]
        connection.execute(allocations.delete())
    assert seen(store) == frozenset()
    with late_commit(engine) as connection:
        connection.execute(allocations.insert(), rows)
    assert seen(store) == {one.id}


def test_the_number_of_a_row_that_was_purged_goes_to_another_one(store: Store, other: Store, engine: Engine):
    one, two = hosts(store)
    booked(store, hours(24, 26), one)
    assert seen(store) == {one.id}
    with late_commit(engine) as connection:
        number = connection.execute(sa.select(sa.func.max(allocations.c.id))).scalar_one()
        connection.execute(allocations.delete())
    lease = booked(other, hours(30, 31), two)
    with late_commit(engine) as connection:
        connection.execute(allocations.update().where(allocations.c.lease_id == lease.id).values(id=number))
    assert seen(store) == {two.id}


KEPT = (HOST, FLOATING_IP, VOLUME)


def a_resource(store: Store, kind: ResourceKind, number: int) -> Resource:
    name, details = f"{kind}-{number}", ResourceDetails({}, ResourceInventory())
    region = "north" if number else ""
    return store.resources.add(
        kind, external_id=name, name=name, details=details, capabilities={}, at=NOON, region=region
    )


def book_one(store: Store, kind: ResourceKind, window: Window, resource: Resource) -> Lease:
    lease = a_lease(window)
    (allocation,) = promised(lease, [resource])
    with store.transactions.reading() as connection:
        generations = read_generations(connection, [resource.id])
    return book(store, lease, AllocationPlan((replace(allocation, kind=kind),), generations))


def list_taken(store: Store, kind: ResourceKind, window: Window) -> frozenset[int]:
    with store.calendar.view_window(kind, window, without_amounts=True, now=NOON, besides=None) as view:
        return view.snapshot.occupancy.taken


def test_many_kinds_with_too_little_memory_are_kept_in_turn_and_answered_alike(engine: Engine):
    most, dice, dropped = 12, random.Random(33), 0
    store, other = Store(engine, limits=StoreLimits(kept_uses=most)), Store(engine)
    reader = Store(engine, limits=StoreLimits(kept_uses=0))
    known = {kind: [a_resource(store, kind, number) for number in range(2)] for kind in KEPT}
    there: list[Lease] = []
    for step in range(60):
        if there and dice.random() < 0.3:
            give_up(other, there.pop(dice.randrange(len(there))))
        else:
            kind, start = dice.choice(KEPT), 24 + 3 * step
            there.append(book_one(other, kind, hours(start, start + 2), dice.choice(known[kind])))
        asked = dice.choice(KEPT)
        for window in (hours(24, 3 * step + 30), hours(24, 240)):
            assert list_taken(store, asked, window) == list_taken(reader, asked, window)
        sizes = [copy.calendar.size for copy in store.kept_calendars._copies.values() if copy.calendar is not None]
        assert sum(sizes) <= most
        dropped += len(sizes) < len(store.kept_calendars._copies)
    assert dropped > 5


def test_a_manager_that_is_paused_again_and_again_answers_as_the_tables_do(
    store: Store, other: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    """Meanwhile others book and release, write what has a lower number later, and forget what they have noted."""
    dice, now, slept = random.Random(34), NOON, 0.0
    monkeypatch.setattr(kept, "monotonic", lambda: monotonic() + slept)
    known, there = [*hosts(store), *(a_host(other, number) for number in range(3, 7))], []
    for step in range(40):
        for _ in range(dice.randint(0, 6)):
            if there and dice.random() < 0.45:
                lease = there.pop(dice.randrange(len(there)))
                other.leases.save(lease, lease, release=[lease.reservations[0].id], at=now)
            else:
                start = dice.randint(1, 60)
                there.append(booked(other, hours(start, start + dice.randint(1, 20)), dice.choice(known)))
        if dice.random() < 0.2:
            known.append(a_host(other, 10 + step))
        if dice.random() < 0.3:
            pause = dice.choice([30.0, 400.0, 3600.0, 7 * 3600.0])
            slept += pause
            now += timedelta(seconds=pause / 60)
            other.kept_calendars.forget_changes(now - HOUR / 10, dice.randint(1, 50))
        if dice.random() < 0.2:
            store.kept_calendars.renew(now)
        for window in (hours(24, 48), hours(40, 41)):
            assert taken(store, window, now=now) == taken(
                Store(engine, limits=StoreLimits(kept_uses=0)), window, now=now
            )
    check_copies(store, now=now)
