# SPDX-License-Identifier: Apache-2.0
"""What the calendar shows of a window, and what stays of it when leases change, on each database."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.calendar.changing import union
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import StaleCalendar, StaleLease
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import AllocationPlan
from blazar.store.sql.tables import allocations
from blazar.store.store import Store
from tests.statements import counted
from tests.store.builders import (
    HOST,
    HOUR,
    NOON,
    a_host,
    a_lease,
    book,
    booked,
    generations,
    hours,
    promised,
    rebook,
    taken,
)

MINUTE = timedelta(minutes=1)
HALF = Amounts.of({"VCPU": 8})


@pytest.fixture
def store(engine) -> Store:
    return Store(engine)


@pytest.fixture
def host(store):
    return a_host(store)


def in_the_way(store, lease, *, now=None):
    """The leases in the way of a start, in the order of the answer."""
    start = lease.window.start
    users = store.calendar.earlier_users(lease.id, before=start, now=now or start)
    return tuple(user.lease_id for user in users)


def history(store, lease):
    """Start, end and release of the allocations of a lease, in hours from noon, released ones too."""
    with store.transactions.reading() as connection:
        rows = connection.execute(
            allocations.select().where(allocations.c.lease_id == lease.id).order_by(allocations.c.id)
        ).all()
    return [
        tuple(None if t is None else (t - NOON) / HOUR for t in (row.starts_at, row.ends_at, row.released_at))
        for row in rows
    ]


@pytest.mark.parametrize("whole", [True, False])
def test_windows_that_touch_do_not_stand_in_each_others_way(store, host, whole):
    booked(store, hours(2, 4), host)
    assert taken(store, hours(0, 2), whole=whole) == frozenset()
    assert taken(store, hours(4, 6), whole=whole) == frozenset()
    assert taken(store, hours(0, 2.01), whole=whole) == {host.id}
    assert taken(store, hours(3.99, 6), whole=whole) == {host.id}


@pytest.mark.parametrize("whole", [True, False])
def test_the_cleaning_time_is_kept_after_the_user_before_and_before_the_user_after(host, whole, engine):
    store = Store(engine, cleaning_time=HOUR)
    booked(store, hours(2, 4), host)
    for window, expected in (
        (hours(0, 1), frozenset()),
        (hours(0, 1.01), {host.id}),
        (hours(4.99, 6), {host.id}),
        (hours(5, 6), frozenset()),
    ):
        assert taken(store, window, whole=whole) == expected, window


@pytest.mark.parametrize("whole", [True, False])
def test_a_user_who_should_have_left_is_in_the_way_of_those_who_come_now_only(store, host, whole):
    booked(store, hours(0, 1), host)
    late = NOON + 1.5 * HOUR
    assert taken(store, hours(1.5, 3), whole=whole, now=late) == {host.id}
    assert taken(store, hours(1.6, 3), whole=whole, now=late) == frozenset()


def test_a_late_user_counts_with_what_it_has_and_until_the_window_ends(store, host):
    booked(store, hours(0, 1), host, per_instance=HALF)
    with store.calendar.view_window(
        HOST, hours(2, 3), without_amounts=False, now=NOON + 2 * HOUR, besides=None
    ) as view:
        assert view.snapshot.occupancy.count_free(host, HALF) == 1


def test_a_window_that_has_begun_counts_from_now_on(store, host):
    lease = booked(store, hours(0, 2), host)
    store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON + HOUR)
    assert taken(store, hours(0, 2), now=NOON + HOUR) == frozenset()


@pytest.mark.parametrize("whole", [True, False])
def test_a_window_that_is_over_counts_as_what_it_would_take_now(store, host, whole):
    booked(store, hours(1, 2), host)
    assert taken(store, hours(0, 1), whole=whole, now=NOON + 1.5 * HOUR) == {host.id}
    assert taken(store, hours(0, 1), whole=whole, now=NOON + 0.5 * HOUR) == frozenset()


@pytest.mark.parametrize("whole", [True, False])
def test_the_allocations_of_a_lease_do_not_stand_in_its_own_way(store, host, whole):
    lease = booked(store, hours(0, 2), host)
    assert taken(store, hours(1, 3), whole=whole, besides=lease.id) == frozenset()


@pytest.mark.parametrize("whole", [True, False])
def test_the_room_beside_a_window_is_known_with_the_cleaning_time(whole, engine):
    store = Store(engine, cleaning_time=HOUR)
    hosts = [a_host(store, number) for number in range(1, 7)]
    before, after, both, past, gone, shared = hosts
    for host, window in ((before, hours(1, 2)), (after, hours(9, 10)), (both, hours(0, 3)), (both, hours(8.5, 9))):
        booked(store, window, host)
    booked(store, hours(-3, -2), past)
    given_up = booked(store, hours(1, 2), gone)
    store.leases.save(given_up, given_up, release=[given_up.reservations[0].id], at=NOON)
    booked(store, hours(1, 2), shared, per_instance=HALF)
    with store.calendar.view_window(HOST, hours(5, 7), without_amounts=whole, now=NOON, besides=None) as view:
        occupancy = view.snapshot.occupancy
    expected = {before.id: 2 * HOUR, after.id: HOUR, both.id: HOUR / 2, shared.id: 2 * HOUR}
    if not whole:
        del expected[shared.id]
    assert occupancy.room == expected
    assert all(occupancy.is_free(host.id) for host in hosts)


def test_the_reading_costs_one_statement_and_one_after_a_change_however_much_there_is(store, engine):
    hosts = [a_host(store, number) for number in range(1, 7)]
    for number in range(12):
        booked(store, hours(number, number + 1), hosts[number % 5])
    store.resources.catalog(HOST)
    for whole, expected in ((True, 1), (False, 1)):
        with (
            counted(engine) as statements,
            store.calendar.view_window(HOST, hours(0, 9), without_amounts=whole, now=NOON, besides=None) as view,
        ):
            assert view.generations([host.id for host in hosts])[hosts[5].id] == 0
        assert statements.count == expected


def test_generations_belong_to_what_the_view_showed(store, host):
    with store.calendar.view_window(HOST, hours(0, 1), without_amounts=True, now=NOON, besides=None) as view:
        booked(store, hours(0, 1), host)
        seen = view.generations([host.id])
    lease = a_lease(hours(0, 1))
    with pytest.raises(StaleCalendar):
        book(store, lease, AllocationPlan(promised(lease, [host]), seen))


def test_a_booking_of_many_hosts_costs_six_statements_and_one_of_one_too(store, engine):
    hosts = [a_host(store, number) for number in range(1, 9)]
    for chosen in (hosts[:1], hosts[1:]):
        lease, seen = a_lease(hours(0, 1)), generations(store, chosen)
        with counted(engine) as statements:
            book(store, lease, AllocationPlan(promised(lease, chosen), seen))
        assert statements.count == 6


def test_a_host_that_takes_no_more_bookings_loses_those_under_way(store, host):
    lease, seen = a_lease(hours(0, 1)), generations(store, [host])
    store.resources.set_reservable(host.id, False, at=NOON)
    with pytest.raises(StaleCalendar):
        book(store, lease, AllocationPlan(promised(lease, [host]), seen))
    assert store.leases.of_project(None) == ()


def test_a_longer_lease_keeps_its_hosts_in_a_few_statements(engine):
    store = Store(engine, cleaning_time=HOUR)
    hosts = [a_host(store, number) for number in range(1, 6)]
    lease = booked(store, hours(0, 2), *hosts)
    longer = replace(lease, window=hours(0, 3))
    seen = generations(store, hosts)
    with counted(engine) as statements:
        rebook(store, lease, longer, AllocationPlan(promised(longer, hosts), seen), at=NOON + MINUTE)
    assert statements.count == 6
    assert history(store, lease) == [(0, 3, None)] * 5
    assert taken(store, hours(3.99, 5)) == {host.id for host in hosts}
    assert taken(store, hours(4, 5)) == frozenset()


def test_what_a_changed_lease_gives_up_stays_on_record(store):
    first, second = a_host(store, 1), a_host(store, 2)
    lease = booked(store, hours(0, 4), first)
    plan = AllocationPlan(promised(lease, [second]), generations(store, [second]))
    after = rebook(store, lease, lease, plan, at=NOON + HOUR)
    assert history(store, lease) == [(0, 1, 1), (0, 4, None)]
    assert [a.resource_id for a in store.calendar.of_lease(lease.id)] == [second.id]
    assert after.revision == lease.revision + 1
    assert taken(store, hours(1, 4), now=NOON + HOUR) == {second.id}


def test_a_change_that_loses_a_race_writes_nothing(store):
    first, second = a_host(store, 1), a_host(store, 2)
    lease = booked(store, hours(0, 2), first)
    seen = generations(store, [second])
    rival = booked(store, hours(0, 2), second)
    longer = replace(lease, window=hours(0, 3))
    wanted = promised(longer, [first, second])
    with pytest.raises(StaleCalendar):
        rebook(store, lease, longer, AllocationPlan(wanted, seen), at=NOON)
    renamed = store.leases.save(lease, replace(lease, name="renamed"), at=NOON)
    with pytest.raises(StaleLease):
        rebook(store, lease, longer, AllocationPlan(wanted, generations(store, [second])), at=NOON)
    assert store.leases.one(lease.id) == renamed
    assert history(store, lease) == [(0, 2, None)]
    assert [a.lease_id for a in store.calendar.load_live(HOST, resource_id=second.id)] == [rival.id]


def test_an_end_before_its_time_is_recorded_and_cleaned_up_after(host, engine):
    store = Store(engine, cleaning_time=HOUR)
    lease = booked(store, hours(0, 4), host)
    store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON + 2 * HOUR)
    assert history(store, lease) == [(0, 2, 2)]
    assert taken(store, hours(2.99, 4), now=NOON + 2 * HOUR) == {host.id}
    assert taken(store, hours(3, 4), now=NOON + 2 * HOUR) == frozenset()


def test_a_use_that_was_given_up_before_it_began_blocks_nothing(host, engine):
    store = Store(engine, cleaning_time=HOUR)
    lease = booked(store, hours(1, 4), host)
    store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON)
    assert taken(store, hours(0, 9)) == frozenset()
    assert history(store, lease) == [(1, 4, 0)]


@pytest.mark.parametrize("per_instance", [None, HALF])
def test_a_use_that_was_given_up_in_the_second_it_began_blocks_for_the_cleaning(host, per_instance, engine):
    store = Store(engine, cleaning_time=HOUR)
    lease = booked(store, hours(0, 4), host, per_instance=per_instance)
    store.leases.save(lease, lease, release=[lease.reservations[0].id], at=NOON)
    for whole in (True, False):
        assert taken(store, hours(0.5, 4), whole=whole) == {host.id}
        assert taken(store, hours(1, 4), whole=whole) == frozenset()


def test_the_users_who_have_not_left_a_host_are_known_to_the_next(store):
    first, second = a_host(store, 1), a_host(store, 2)
    late = booked(store, hours(0, 1), first)
    left = booked(store, hours(0, 1), second)
    store.leases.save(left, left, release=[left.reservations[0].id], at=NOON + HOUR)
    later = booked(store, hours(5, 6), first)
    following = booked(store, hours(1, 2), first, second)
    assert in_the_way(store, following) == (late.id,)
    assert later.id not in in_the_way(store, following)


def test_a_host_that_was_left_late_is_in_the_way_until_it_is_clean(engine):
    store = Store(engine, cleaning_time=10 * MINUTE)
    cleaning, late, free = 10 * MINUTE, a_host(store, 1), a_host(store, 2)
    earlier = booked(store, hours(0, 1), late)
    left = booked(store, hours(0, 1), free)
    following = booked(store, Window(NOON + HOUR + cleaning, NOON + 3 * HOUR), late, free)
    at = following.window.start - MINUTE
    store.leases.save(left, left, release=[left.reservations[0].id], at=NOON + HOUR)
    assert in_the_way(store, following, now=at) == (earlier.id, left.id)
    store.leases.save(earlier, earlier, release=[earlier.reservations[0].id], at=at)
    for now, expected in ((at, {earlier.id, left.id}), (at + MINUTE, {earlier.id}), (at + cleaning, set())):
        assert set(in_the_way(store, following, now=now)) == expected
    (user,) = store.calendar.earlier_users(following.id, before=following.window.start, now=at + MINUTE)
    assert user.clean_at == at + cleaning


def test_a_part_that_is_being_cleaned_is_in_the_way_only_where_there_is_no_room_beside_it(host, engine):
    store = Store(engine, cleaning_time=10 * MINUTE)
    cleaning = 10 * MINUTE
    earlier = booked(store, hours(0, 1), host, per_instance=HALF)
    start = Window(NOON + HOUR + cleaning, NOON + 3 * HOUR)
    beside = booked(store, start, host, per_instance=HALF)
    store.leases.save(earlier, earlier, release=[earlier.reservations[0].id], at=start.start)
    assert in_the_way(store, beside) == ()
    more = booked(store, start, host, per_instance=Amounts.of({"VCPU": 1}))
    assert in_the_way(store, more) == (earlier.id,)
    assert in_the_way(store, more, now=start.start + cleaning) == ()


def test_live_allocations_can_be_asked_for_by_host_lease_reservation_and_time(store):
    first, second = a_host(store, 1), a_host(store, 2)
    early, late = booked(store, hours(0, 1), first), booked(store, hours(2, 3), first, second)
    assert [a.lease_id for a in store.calendar.load_live(HOST)] == [early.id, late.id, late.id]
    assert [a.lease_id for a in store.calendar.load_live(HOST, resource_id=second.id)] == [late.id]
    assert [a.lease_id for a in store.calendar.load_live(HOST, lease_id=early.id)] == [early.id]
    (one,) = store.calendar.load_live(HOST, reservation_id=early.reservations[0].id)
    assert one.window == early.window
    assert {a.lease_id for a in store.calendar.load_live(HOST, ending_after=NOON + 2 * HOUR)} == {late.id}


def test_units_come_back_as_they_were_promised(store, host):
    lease = booked(store, hours(0, 1), host, per_instance=HALF)
    assert store.calendar.of_lease(lease.id) == promised(lease, [host], per_instance=HALF)


def test_more_or_less_of_a_host_is_a_change_and_no_departure(host, engine):
    store = Store(engine, cleaning_time=10 * MINUTE)
    lease = booked(store, hours(0, 2), host, per_instance=HALF)
    (was,) = store.calendar.of_lease(lease.id)
    more = replace(was, count=2)
    saved = rebook(store, lease, lease, AllocationPlan((more,)), at=NOON + HOUR)
    assert store.calendar.of_lease(lease.id) == (more,)
    other = replace(was, count=1, per_instance=Amounts.of({"VCPU": 1}))
    rebook(store, saved, saved, AllocationPlan((other,)), at=NOON + HOUR)
    assert store.calendar.of_lease(lease.id) == (other,)
    # What it had before stays on record, and in nobody's way.
    assert history(store, lease) == [(0, 2, None), (0, 1, 1)]
    assert [a.lease_id for a in store.calendar.load_live(HOST, resource_id=host.id)] == [lease.id]


def test_late_users_of_a_part_are_in_the_way_only_where_there_is_no_room_beside_them(store):
    late_on, free = a_host(store, 1), a_host(store, 2)
    late = booked(store, hours(0, 1), late_on, per_instance=Amounts.of({"VCPU": 10}))
    beside = booked(store, hours(1, 2), late_on, per_instance=Amounts.of({"VCPU": 6}))
    assert in_the_way(store, beside) == ()
    more = booked(store, hours(1, 2), late_on, free, per_instance=Amounts.of({"VCPU": 1}))
    assert in_the_way(store, more) == (late.id,)
    whole = booked(store, hours(3, 4), late_on)
    assert set(in_the_way(store, whole)) == {late.id, beside.id, more.id}
    after = booked(store, hours(4, 5), late_on, per_instance=Amounts.of({"VCPU": 1}))
    assert whole.id in in_the_way(store, after)


def test_large_requests_are_asked_in_parts(store, monkeypatch):
    hosts = [a_host(store, number) for number in range(1, 6)]
    monkeypatch.setattr("blazar.store.sql.rows.CHUNK", 2)
    seen = generations(store, hosts)
    assert seen == dict.fromkeys([host.id for host in hosts], 0)
    lease = booked(store, hours(0, 1), *hosts)
    assert set(generations(store, hosts).values()) == {1}
    assert set(store.resources.by_ids(seen)) == set(seen)
    longer = replace(lease, window=hours(0, 2))
    rebook(store, lease, longer, AllocationPlan(promised(longer, hosts[:2]), generations(store, hosts[:2])), at=NOON)
    assert sorted(history(store, lease), key=str) == [(0, 0, 0)] * 3 + [(0, 2, None)] * 2
    others = [booked(store, hours(2, 3), host) for host in hosts]
    found = store.leases.by_ids([other.id for other in others])
    assert {one.id for one in found} == {other.id for other in others}
    with pytest.raises(StaleCalendar):
        book(store, a_lease(hours(5, 6)), AllocationPlan((), {**generations(store, hosts), hosts[4].id: 0}))


def test_a_lease_may_have_less_of_a_host_for_longer_while_it_is_changed(host, engine):
    store = Store(engine, cleaning_time=10 * MINUTE)
    lease = booked(store, hours(0, 2), host, per_instance=HALF.times(2))
    (held,) = store.calendar.of_lease(lease.id)
    longer = replace(lease, window=hours(0, 4))
    (planned,) = promised(longer, [host], per_instance=HALF)
    both, at = union([held], [planned]), NOON + HOUR
    half, rest = replace(planned, window=hours(0, 4)), replace(planned, window=hours(0, 2))
    assert set(both) == {replace(held, count=1, per_instance=HALF, window=w.window) for w in (half, rest)}
    updating = rebook(store, lease, lease, AllocationPlan(both), at=at)
    assert set(store.calendar.of_lease(lease.id)) == set(both)
    assert taken(store, hours(1, 4)) == {host.id}
    with store.calendar.view_window(HOST, hours(2.5, 4), without_amounts=False, now=at, besides=None) as view:
        assert view.snapshot.occupancy.count_free(host, HALF) == 1
    rebook(store, updating, longer, AllocationPlan((planned,)), at=at)
    assert store.calendar.of_lease(lease.id) == (planned,)
    assert sorted(history(store, lease), key=str) == [(0, 1, 1), (0, 1, 1), (0, 4, None)]


def test_the_rows_of_what_only_gets_other_dates_are_kept_when_a_change_is_undone(store, engine):
    hosts = [a_host(store, number) for number in range(1, 4)]
    lease = booked(store, hours(0, 2), *hosts)
    held = store.calendar.of_lease(lease.id)
    longer = replace(lease, window=hours(0, 4))
    both = union(held, promised(longer, hosts))
    updating = rebook(store, lease, lease, AllocationPlan(both), at=NOON + HOUR)
    with counted(engine) as statements:
        rebook(store, updating, lease, AllocationPlan(held), at=NOON + HOUR)
    assert statements.count == 4
    assert history(store, lease) == [(0, 2, None)] * 3
