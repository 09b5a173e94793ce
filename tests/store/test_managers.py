# SPDX-License-Identifier: Apache-2.0
"""The rows of running managers: what each tells, who is up, and what each has claimed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.model.leases.states import EventType
from blazar.model.managers.presence import (
    KEPT,
    MOST_WORK,
    ManagerFacts,
    ManagerState,
    ManagerWork,
    ThreadFacts,
    make_token,
    read_holder,
)
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import HOUR, NOON, a_host, booked, hours
from tests.store.test_events import claimed

TTL = timedelta(seconds=20)
SECOND = timedelta(seconds=1)


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


def some_facts(number: int = 1, **more) -> ManagerFacts:
    return ManagerFacts(f"ctl{number}:4711:9f2c01a{number}", f"ctl{number}", 4711, "19.0.0", NOON, **more)


def all_at(store, now):
    return store.managers.all(now=now, claim_ttl=TTL)


def test_what_a_manager_tells_is_read_as_it_was_told(store):
    told = some_facts(
        rpc_version="2.3",
        state=ManagerState.DRAINING,
        clock_offset=timedelta(days=-400, milliseconds=7),
        regions=("north", "süd"),
        options_hash="0123456789abcdef",
        threads=(
            ThreadFacts("engine", NOON + timedelta(microseconds=5)),
            ThreadFacts("outbox", None, NOON, "the database is not available; please try again"),
        ),
    )
    store.managers.beat(told, at=NOON + SECOND)
    (known,) = all_at(store, NOON + 2 * SECOND)
    assert (known.facts, known.seen_at, known.up, known.work) == (told, NOON + SECOND, True, ())
    assert known.id == told.id


def test_a_beat_is_one_statement_and_two_the_first_time(store, engine):
    with counted(engine) as first:
        store.managers.beat(some_facts(), at=NOON)
    with counted(engine) as later:
        store.managers.beat(some_facts(state=ManagerState.RUNNING), at=NOON + 5 * SECOND)
    assert (first.count, later.count) == (2, 1)
    (known,) = all_at(store, NOON + 6 * SECOND)
    assert (known.facts.state, known.seen_at) == (ManagerState.RUNNING, NOON + 5 * SECOND)


def test_a_beat_of_the_same_content_adds_no_second_row(store):
    for _ in range(2):
        store.managers.beat(some_facts(), at=NOON)
    assert len(all_at(store, NOON)) == 1


def test_a_manager_is_up_while_its_last_beat_is_younger_than_a_claim_lives(store):
    store.managers.beat(some_facts(), at=NOON)
    assert [known.up for at in (NOON, NOON + TTL - SECOND) for known in all_at(store, at)] == [True, True]
    assert [known.up for at in (NOON + TTL, NOON + HOUR) for known in all_at(store, at)] == [False, False]


def test_rows_are_dropped_that_were_not_seen_since_and_a_manager_that_stood_still_adds_its_own_again(store):
    store.managers.beat(some_facts(1), at=NOON)
    store.managers.beat(some_facts(2), at=NOON + HOUR)
    store.managers.drop_unseen(since=NOON + SECOND)
    assert [known.facts.host for known in all_at(store, NOON + HOUR)] == ["ctl2"]
    store.managers.beat(some_facts(1), at=NOON + KEPT)
    store.managers.remove(some_facts(2).id)
    assert [known.facts.host for known in all_at(store, NOON + KEPT)] == ["ctl1"]


def test_managers_come_the_longest_running_first(store):
    for number, started in ((1, 3), (2, 1), (3, 2), (4, 1)):
        store.managers.beat(replace(some_facts(number), started_at=NOON + started * HOUR), at=NOON)
    assert [known.facts.host for known in all_at(store, NOON)] == ["ctl2", "ctl4", "ctl3", "ctl1"]


def test_options_agree_if_they_are_those_of_all_that_are_up(store):
    store.managers.beat(some_facts(1, options_hash="a"), at=NOON)
    store.managers.beat(some_facts(2, options_hash="b"), at=NOON + HOUR)
    assert [known.options_agree for known in all_at(store, NOON + HOUR)] == [False, True]
    store.managers.beat(some_facts(3, options_hash="a"), at=NOON + HOUR)
    assert [known.options_agree for known in all_at(store, NOON + HOUR)] == [False, False, False]
    assert [known.options_agree for known in all_at(store, NOON + 2 * HOUR)] == [True, True, True]


def test_work_is_of_who_claimed_it_up_or_not_and_its_tokens_lead_back_to_it(store, engine):
    first, second = some_facts(1), some_facts(2)
    store.managers.beat(first, at=NOON)
    store.managers.beat(second, at=NOON + HOUR)
    host, token = a_host(store), make_token(first.id)
    lease = booked(store, hours(1, 2), host)
    claimed(store, lease, token)
    claimed(store, booked(store, hours(3, 4), host), "an-id-of-a-test")
    booked(store, hours(5, 6), host)
    with counted(engine) as statements:
        known, other = all_at(store, NOON + HOUR)
    assert statements.count == 2
    assert (known.up, other.up, other.work) == (False, True, ())
    assert known.work == (ManagerWork(lease.event(EventType.START).id, lease.id, "start_lease", NOON),)
    assert read_holder(token) == first.id
    with counted(engine) as statements:
        holder = store.managers.find_holder(token, now=NOON + HOUR, claim_ttl=TTL)
    assert (holder, statements.count) == (replace(known, work=()), 1)
    assert store.managers.find_holder(make_token("gone:1:2"), now=NOON, claim_ttl=TTL) is None


def test_of_each_manager_no_more_work_is_listed_than_a_page_can_show(store):
    host = a_host(store)
    for number in (1, 2):
        store.managers.beat(some_facts(number), at=NOON)
    for start in range(MOST_WORK + 2):
        claimed(store, booked(store, hours(start, start + 1), host), make_token(some_facts(1).id))
    late = booked(store, hours(100, 101), host)
    claimed(store, late, make_token(some_facts(2).id))
    busy, idle = all_at(store, NOON)
    assert (len(busy.work), [work.lease_id for work in idle.work]) == (MOST_WORK, [late.id])
