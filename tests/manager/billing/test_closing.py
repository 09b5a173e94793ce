# SPDX-License-Identifier: Apache-2.0
"""What leases are charged in the ends: what was booked, less what was given back, late, or lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.base.paging import Page
from blazar.model.journal.entries import ObjectType, Verb
from blazar.model.journal.views import JournalQuestion
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus
from blazar.model.surgery import MergeRequest, OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.sql.tables import accounts, allocations, charges, planned
from tests.manager.billing.ledger import CURIE, HOUR, act, charged, close, expected, failing, publish, rows, states
from tests.manager.health.steps import ON_NODE_1, look
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

OVER = NOON + 30 * HOUR
LATER = NOON + timedelta(seconds=1)
RULES = {"cancellation": [{"before_start": "PT2H", "share": "0"}, {"share": "0.50"}], "early_return": "0.25"}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def test_without_a_price_list_nothing_is_kept(world):
    world.lease(a_host(2), start=HOUR)
    close(world, OVER)
    assert rows(world, accounts) == rows(world, charges) == []
    assert {row["skus"] for row in rows(world, allocations)} == {None}


def test_what_was_booked_before_the_first_list_is_never_charged(world):
    lease = world.lease(a_host(2), start=HOUR)
    world.run_to(NOON + timedelta(minutes=10))
    publish(world, NOON + timedelta(minutes=5))
    act(world, world.change, lease, end=NOON + 5 * HOUR)
    close(world, OVER)
    assert charged(world) == {}


def test_what_a_lease_of_before_the_first_list_gets_more_in_use_costs_its_time_and_no_fee(world):
    lease = world.lease(a_host(1), start=HOUR, hours=40 * 24)
    world.run_to(NOON + 35 * 24 * HOUR)
    publish(world, fee="5.00")
    act(world, world.resize, lease, min=2, max=2)
    for days in (36, 60):
        close(world, NOON + days * 24 * HOUR)
    assert charged(world) == {"usage used": 5 * 24 + 1}
    # Nothing is charged in April, which was over.
    assert {str(row["month"]) for row in rows(world, charges)} == {"2030-05-01"}


def test_a_lease_that_nobody_touches_is_charged_what_was_expected(world):
    publish(world, fee="5.00")
    world.lease(a_host(2), start=HOUR, hours=10)
    assert (expected(world), charged(world)) == (25, {})
    close(world, NOON + 11 * HOUR)
    assert charged(world) == {}
    close(world, OVER)
    assert charged(world) == {"usage used": 20, "fee used": 5}
    assert (expected(world), states(world)) == (0, [("physics", "closed")])


def test_what_costs_more_than_databases_keep_is_refused_and_less_is_booked(world):
    publish(world, prices=[{"sku": "host", "measure": "host", "per_hour": "99999999"}])
    with pytest.raises(InvalidInput, match=r"more than 9223372036 EUR in a month.*ask for less"):
        world.lease(a_host(2), start=HOUR, hours=47)
    assert rows(world, accounts) == rows(world, planned) == rows(world, allocations) == []
    world.lease(a_host(2), start=HOUR, hours=46)
    close(world, NOON + 50 * HOUR)
    assert charged(world) == {"usage used": 99999999 * 92}


def test_what_costs_more_than_databases_keep_if_nobody_uses_it_is_refused_too(world):
    prices = [{"sku": "host", "measure": "host", "per_hour": "99999999"}]
    # One that was replaced does not count.
    publish(world, prices=prices, unused="999.00")
    publish(world, prices=prices, unused="2.00")
    with pytest.raises(InvalidInput, match=r"more than 9223372036 EUR in a month, if nobody uses it, which"):
        world.lease(a_host(2), start=HOUR, hours=24)
    world.lease(a_host(2), start=HOUR, hours=23)
    assert expected(world) == 99999999 * 46


def test_several_measures_of_one_reservation_add_up(world):
    publish(world)
    world.lease(instances(2, vcpus=4), start=HOUR, hours=10)
    close(world, OVER)
    assert charged(world) == {"usage used": pytest.approx(2 * 4 * 10 * 0.10 + 2 * 10 * 0.01)}


def test_a_lease_over_two_months_is_charged_at_the_end_of_each(world):
    publish(world)
    world.lease(a_host(), start=24 * HOUR, hours=40 * 24)
    close(world, NOON + 31 * 24 * HOUR)
    # From noon of the second of April to the end of the month.
    assert charged(world) == {"usage used": 28.5 * 24}
    assert expected(world) == (40 - 28.5) * 24
    close(world, NOON + 60 * 24 * HOUR)
    assert [row["nano"] / 10**9 for row in rows(world, charges)] == [28.5 * 24, 11.5 * 24]


def test_what_is_deleted_before_its_start_costs_the_share_of_its_time(world):
    publish(world, fee="6.00", **RULES)
    free = world.lease(a_host(), start=3 * HOUR, hours=10)
    late = world.lease(a_host(), start=2 * HOUR, hours=10)
    act(world, world.manager.leases.delete, free.id)
    assert charged(world) == {}
    act(world, world.manager.leases.delete, late.id)
    world.run()
    assert charged(world) == {"cancellation unused": 5 + 3}
    assert (expected(world), states(world)) == (0, [("physics", "closed")] * 2)
    close(world, OVER)
    assert charged(world) == {"cancellation unused": 8}


def test_what_is_deleted_in_use_is_charged_until_then_and_for_a_share_of_the_rest(world):
    publish(world, fee="6.00", **RULES)
    lease = world.lease(a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + 4 * HOUR)
    act(world, world.manager.leases.delete, lease.id)
    close(world, OVER)
    assert charged(world) == {"usage used": 6, "early_return unused": 0.25 * 14, "fee used": 6}


@pytest.mark.parametrize(
    ("rounding", "usage", "rest"),
    [
        ({"minimum": "PT1H"}, 1, 9),
        ({"minimum": "P1D"}, 24, 0),
        ({"round_up": "PT4H"}, 4, 6),
        ({}, 0.5, 9.5),
    ],
)
def test_who_returns_early_does_not_pay_twice_for_what_is_rounded_up(world, rounding, usage, rest):
    publish(world, early_return="0.25", **rounding)
    lease = world.lease(a_host(), start=HOUR, hours=10)
    world.run_to(NOON + 1.5 * HOUR)
    act(world, world.manager.leases.delete, lease.id)
    close(world, OVER)
    found = charged(world)
    assert found.pop("early_return unused", 0) == 0.25 * rest
    assert sum(found.values()) == usage


@pytest.mark.parametrize("hour", [0, 2])
def test_of_a_lease_without_an_end_at_most_twenty_years_are_given_back(world, hour):
    publish(world, cancellation=[{"share": "0.25"}], early_return="0.25")
    lease = world.lease(a_host(), start=HOUR, end=datetime(8999, 1, 1, tzinfo=UTC))
    world.run_to(NOON + hour * HOUR)
    act(world, world.manager.leases.delete, lease.id)
    close(world, OVER)
    found = charged(world)
    assert found.pop("usage used", 0) == max(0, hour - 1)
    assert list(found.values()) == [0.25 * 20 * 366 * 24]


def test_an_extension_costs_what_is_valid_then_and_what_was_booked_what_it_was(world):
    publish(world)
    lease = world.lease(a_host(), start=HOUR, hours=10)
    world.run_to(NOON + 2 * HOUR)
    publish(world, NOON + 2 * HOUR, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}])
    world.run_to(NOON + 3 * HOUR)
    act(world, world.change, lease, end=NOON + 13 * HOUR)
    assert expected(world) == 10 + 2 * 3
    close(world, OVER)
    assert charged(world) == {"usage used": 16}


def test_one_cannot_extend_and_shorten_for_nothing(world):
    publish(world, **RULES)
    lease = world.lease(a_host(), start=HOUR, hours=10)
    world.run_to(NOON + 2 * HOUR)
    act(world, world.change, lease, end=NOON + 15 * HOUR)
    act(world, world.change, lease, end=NOON + 5 * HOUR)
    assert charged(world) == {"early_return unused": 0.25 * 10}
    close(world, OVER)
    assert charged(world) == {"early_return unused": 2.5, "usage used": 4}


def test_hosts_that_are_added_cost_what_is_valid_then_and_what_is_given_back_is_what_was_added_last(world):
    publish(world, **RULES)
    lease = world.lease(a_host(1), start=HOUR, hours=10)
    publish(world, LATER, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}], **RULES)
    world.run_to(NOON + HOUR / 2)
    act(world, world.resize, lease, min=2, max=2)
    assert expected(world) == 10 + 10 * 3
    act(world, world.resize, lease, min=1, max=1)
    assert charged(world) == {"cancellation unused": 0.5 * 10 * 3}
    close(world, OVER)
    assert charged(world) == {"cancellation unused": 15, "usage used": 10}


def test_hosts_that_are_added_in_use_are_charged_from_then_on(world):
    publish(world)
    lease = world.lease(a_host(1), start=HOUR, hours=10)
    publish(world, LATER, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}])
    world.run_to(NOON + 6 * HOUR)
    act(world, world.resize, lease, min=2, max=2)
    assert expected(world) == 10 + 5 * 3
    close(world, OVER)
    assert charged(world) == {"usage used": 10 + 5 * 3}


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_what_is_given_back_after_another_host_has_taken_a_place_is_what_was_added_last(world, lost):
    publish(world, **RULES)
    lease = world.lease(a_host(1), start=HOUR, hours=10)
    dear = [{"sku": "host", "measure": "host", "per_hour": "3.00"}]
    publish(world, LATER, prices=dear, **RULES)
    world.run_to(NOON + HOUR / 2)
    act(world, world.resize, lease, min=3, max=3)
    world.simulated.operators.host_down(sorted(world.hosts_of(lease))[lost])
    look(world, 4)
    act(world, world.resize, world.now(lease), min=1, max=1)
    assert (charged(world), expected(world)) == ({"cancellation unused": 0.5 * 2 * 10 * 3}, 10)
    close(world, OVER)
    assert charged(world) == {"cancellation unused": 30, "usage used": 10}


@pytest.mark.parametrize("hour", [0, 6])
def test_instances_that_are_added_on_a_host_that_has_some_cost_what_is_valid_then(a_world, hour):
    world = a_world(hosts=1)
    publish(world, **RULES)
    lease = world.lease(instances(2, vcpus=1), start=HOUR, hours=10)
    whole = expected(world)
    dear = [
        {"sku": "vcpu", "measure": "vcpu", "per_hour": "0.30"},
        {"sku": "instance", "measure": "instance", "per_hour": "0.03"},
    ]
    publish(world, LATER, prices=dear, **RULES)
    world.run_to(NOON + max(hour, 0.5) * HOUR)
    act(world, world.resize, lease, amount=5)
    more = 3 * (11 - max(hour, 1)) * 0.33
    assert expected(world) == pytest.approx(whole + more)
    if hour == 0:
        act(world, world.resize, world.now(lease), amount=3)
        assert charged(world) == {"cancellation unused": pytest.approx(0.5 * more * 2 / 3)}
        more /= 3
    close(world, OVER)
    assert charged(world)["usage used"] == pytest.approx(whole + more)


def test_time_before_a_late_start_is_free(world):
    publish(world, fee="5.00")
    world.lease(a_host(), start=HOUR, hours=10)
    with failing(world):
        close(world, NOON + 3 * HOUR)
    assert (charged(world), expected(world)) == ({}, 15)
    world.run_to(NOON + 4 * HOUR)
    # Others may have what it does not cost at once.
    assert 5 + 7.5 < expected(world) <= 5 + 8
    close(world, OVER)
    (free, usage) = charged(world)["free late"], charged(world)["usage used"]
    assert 2 <= free < 2.5
    assert usage == pytest.approx(10 - free)


def test_time_in_which_a_host_is_missing_is_free_and_that_before_and_after_it_not(world):
    publish(world)
    lease = world.lease(a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + 3 * HOUR)
    lost = min(world.hosts_of(lease))
    world.simulated.operators.host_down(lost)
    look(world, 4)
    world.run_to(NOON + 5 * HOUR)
    world.simulated.operators.host_up(lost)
    look(world, 4)
    close(world, OVER)
    assert charged(world) == {"usage used": 18, "free lost": 2}


def test_another_host_in_the_place_of_one_costs_what_that_did(world):
    publish(world)
    lease = world.lease(a_host(1), start=HOUR, hours=10)
    publish(world, LATER, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}])
    (lost,) = world.hosts_of(lease)
    world.simulated.operators.host_down(lost)
    look(world, 4)
    assert world.hosts_of(lease) != {lost}
    close(world, OVER)
    assert charged(world) == {"usage used": 10}


def test_a_start_that_fails_for_good_costs_nothing_even_where_late_ones_do(world):
    publish(world, fee="5.00", late="charge")
    world.lease(a_host(needs=ON_NODE_1), start=HOUR, hours=10)
    lease = world.lease(a_host(1), a_host(1, needs='["==", "$hypervisor_hostname", "node-2"]'), start=HOUR, hours=10)
    for name in ("node-1", "node-2"):
        world.simulated.operators.host_vanishes(name)
    close(world, OVER)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert charged(world) == {"usage used": 10, "fee used": 5}
    assert states(world) == [("physics", "closed")] * 2


def test_a_creation_that_is_undone_leaves_no_account(world):
    publish(world, fee="5.00", **RULES)
    with failing(world), pytest.raises(BlazarError):
        act(world, world.lease, a_host(), start=HOUR)
    assert rows(world, accounts) == rows(world, planned) == rows(world, charges) == []


def test_a_lease_that_is_taken_over_is_charged_to_each_for_the_own_time_by_the_prices_of_then(world):
    publish(world, fee="5.00")
    lease = world.lease(a_host(), start=HOUR, hours=10)
    publish(world, LATER, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}], fee="7.00")
    world.run_to(NOON + 5 * HOUR)
    world.manager.transfers.offer(lease.id, OfferRequest("computing"), Terms(CURIE))
    world.manager.transfers.accept(lease.id, Terms(Actor("turing", "computing")))
    assert charged(world) == {"usage used": 4, "fee used": 5}
    assert (expected(world, "physics"), expected(world, "computing")) == (0, 18)
    close(world, OVER)
    assert charged(world, "physics") == {"usage used": 4, "fee used": 5}
    assert charged(world, "computing") == {"usage used": 18}
    assert states(world) == [("physics", "closed"), ("computing", "closed")]


def test_a_lease_that_is_taken_over_before_its_start_costs_its_giver_nothing(world):
    publish(world, fee="5.00", **RULES)
    lease = world.lease(a_host(), start=HOUR, hours=10)
    world.manager.transfers.offer(lease.id, OfferRequest("computing"), Terms(CURIE))
    world.manager.transfers.accept(lease.id, Terms(Actor("turing", "computing")))
    close(world, OVER)
    assert (charged(world, "physics"), charged(world, "computing")) == ({}, {"usage used": 10, "fee used": 5})


def test_a_lease_goes_to_another_project_and_back_within_a_second(world):
    publish(world, fee="5.00")
    lease = world.lease(a_host(), start=HOUR, hours=10)
    owners = [CURIE, Actor("turing", "computing"), CURIE, Actor("turing", "computing")]
    for giver, taker in pairwise(owners):
        world.clock.by(seconds=0.1)
        world.manager.transfers.offer(lease.id, OfferRequest(taker.project_id), Terms(giver))
        world.manager.transfers.accept(lease.id, Terms(taker))
    assert [one for one in states(world) if one[1] == "open"] == [("computing", "open")]
    close(world, OVER)
    assert (charged(world, "physics"), charged(world, "computing")) == ({}, {"usage used": 10, "fee used": 5})


def test_the_journal_tells_what_a_lease_is_charged_once_a_month_and_at_its_end(world):
    publish(world, fee="5.00", **RULES)
    lease = world.lease(a_host(), start=24 * HOUR, hours=40 * 24)
    lost = world.lease(a_host(), start=2 * HOUR, hours=10)
    act(world, world.manager.leases.delete, lost.id)
    world.run()
    for days in (31, 60):
        close(world, NOON + days * 24 * HOUR)
    world.manager.journal_numbering.run_once()
    question = JournalQuestion(Page(100, "position"), "physics", object_type=ObjectType.CHARGE)
    found = world.manager.journal.page(question).items
    told = [(one.about.id, *(change.after for change in one.past.changes)) for one in found]
    assert [one.past.verb for one in found] == [Verb.CREATED] * 3
    assert told == [
        (lost.id, "7.500000000", "EUR", "2030-04-01T12:00:00Z"),
        (lease.id, f"{28.5 * 24 + 5:.9f}", "EUR", "2030-05-01T00:00:00Z"),
        (lease.id, f"{11.5 * 24:.9f}", "EUR", "2030-05-12T12:00:00Z"),
    ]


@pytest.mark.parametrize("hour", [0, 3])
def test_both_parts_of_a_lease_cost_what_it_would_have_and_one_fee(world, hour):
    publish(world, fee="5.00", **RULES)
    lease = world.lease(a_host(1), a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + hour * HOUR)
    whole = expected(world)
    parts = (PartRequest(lease.reservations[1].id),)
    world.manager.surgery.split(lease.id, SplitRequest(parts, None, "second"), Terms(CURIE))
    assert expected(world) + sum(charged(world).values()) == whole == 35
    close(world, OVER)
    assert charged(world) == {"usage used": 30, "fee used": 5}
    assert states(world) == [("physics", "closed")] * 2


@pytest.mark.parametrize("hour", [0, 3])
def test_leases_that_become_one_cost_what_both_would_have_but_for_a_fee(world, hour):
    publish(world, **RULES)
    first = world.lease(a_host(1), start=HOUR, hours=10)
    publish(world, LATER, prices=[{"sku": "host", "measure": "host", "per_hour": "3.00"}])
    world.clock.by(seconds=2)
    second = world.lease(a_host(2), start=NOON + HOUR, hours=10)
    world.run_to(NOON + hour * HOUR + timedelta(minutes=1))
    whole = expected(world)
    world.manager.surgery.merge(first.id, MergeRequest(second.id), Terms(CURIE))
    world.run()
    assert expected(world) + sum(charged(world).values()) == pytest.approx(whole)
    close(world, OVER)
    assert charged(world) == {"usage used": pytest.approx(whole)}
    assert expected(world) == 0


@pytest.mark.parametrize("hour", [0, 3])
@pytest.mark.parametrize("into", [0, 1])
def test_leases_that_become_one_cost_one_fee_that_of_the_older(world, hour, into):
    publish(world, fee="5.00")
    leases = [world.lease(a_host(1), start=HOUR, hours=10)]
    publish(world, LATER, fee="7.00")
    world.clock.by(seconds=2)
    leases.append(world.lease(a_host(2), start=NOON + HOUR, hours=10))
    world.run_to(NOON + hour * HOUR + timedelta(minutes=1))
    world.manager.surgery.merge(leases[into].id, MergeRequest(leases[1 - into].id), Terms(CURIE))
    close(world, OVER)
    assert charged(world) == {"usage used": pytest.approx(30), "fee used": 5}


def extend_by_lists(world: World) -> list[Lease]:
    """Return two leases that end together: the younger one was extended first, and each by a list of its own."""
    publish(world)
    leases = [world.lease(a_host(1), start=HOUR, hours=10)]
    world.clock.by(seconds=2)
    leases.append(world.lease(a_host(2), start=NOON + HOUR, hours=8))
    for number, price in ((1, "3.00"), (0, "9.00")):
        world.clock.by(minutes=1)
        publish(world, world.clock.now(), prices=[{"sku": "host", "measure": "host", "per_hour": price}])
        world.clock.by(minutes=1)
        act(world, world.change, leases[number], end=NOON + 13 * HOUR)
    return leases


@pytest.mark.parametrize("hours", [0, 3])
@pytest.mark.parametrize("into", [0, 1])
def test_extensions_of_leases_that_become_one_cost_what_they_did(world, into, hours):
    leases = extend_by_lists(world)
    world.run_to(NOON + hours * HOUR + timedelta(minutes=5))
    whole = expected(world)
    assert whole == 10 + 2 * 9 + 2 * 8 + 2 * 4 * 3
    world.manager.surgery.merge(leases[into].id, MergeRequest(leases[1 - into].id), Terms(CURIE))
    world.run()
    assert expected(world) + sum(charged(world).values()) == pytest.approx(whole)
    close(world, OVER)
    assert charged(world) == {"usage used": pytest.approx(whole)}


@pytest.mark.parametrize("into", [0, 1])
def test_leases_that_become_one_cost_what_they_did_since_they_begin_earlier(world, into):
    leases = extend_by_lists(world)
    for number, price in ((0, "5.00"), (1, "7.00")):
        world.clock.by(minutes=1)
        publish(world, world.clock.now(), prices=[{"sku": "host", "measure": "host", "per_hour": price}])
        world.clock.by(minutes=1)
        act(world, world.change, leases[number], start=NOON + HOUR / 2)
    assert expected(world) == 68 + 2.5 + 7
    world.manager.surgery.merge(leases[into].id, MergeRequest(leases[1 - into].id), Terms(CURIE))
    assert expected(world) == 68 + 2.5 + 7
    # The later half has the extensions, each by its list.
    world.manager.surgery.split(leases[into].id, SplitRequest((), NOON + 10 * HOUR, "second"), Terms(CURIE))
    assert expected(world) == 68 + 2.5 + 7


@pytest.mark.parametrize("into", [0, 1])
def test_what_is_split_off_leases_that_became_one_keeps_its_extensions(world, into):
    leases = extend_by_lists(world)
    whole = expected(world)
    world.manager.surgery.merge(leases[into].id, MergeRequest(leases[1 - into].id), Terms(CURIE))
    (reservation,) = world.store.leases.one(leases[into].id).reservations
    world.manager.surgery.split(
        leases[into].id, SplitRequest((PartRequest(reservation.id, count=1),), None, "second"), Terms(CURIE)
    )
    assert expected(world) == whole == 68
    close(world, OVER)
    assert charged(world) == {"usage used": 68}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_of_three_leases_that_become_one_each_keeps_its_extensions(world, order):
    leases = extend_by_lists(world)
    leases.append(world.lease(a_host(), start=NOON + HOUR, hours=12))
    whole = expected(world)
    assert whole == 68 + 12 * 9
    first, second, third = (leases[number].id for number in order)
    for into, other in ((second, third), (first, second)):
        world.manager.surgery.merge(into, MergeRequest(other), Terms(CURIE))
        world.clock.by(seconds=5)
    assert expected(world) == whole
    close(world, OVER)
    assert charged(world) == {"usage used": whole}


def test_an_account_is_closed_once_however_many_managers_try(world):
    publish(world)
    world.lease(a_host(), start=HOUR, hours=10)
    world.run_to(OVER)
    other = world.another_manager().closing
    (due,) = other._due()
    claim = world.manager.claims.new()
    taken = other._claim(due, claim)
    assert world.manager.closing.run_once() == 0
    other.work(taken, claim)
    other.work(taken, claim)
    assert charged(world) == {"usage used": 10}


def test_a_creation_costs_two_statements_more_once_there_are_prices(world):
    world.lease(a_host(), start=HOUR)
    with counted(world.engine) as without:
        world.lease(a_host(), start=HOUR)
    publish(world)
    world.lease(a_host(), start=HOUR)
    with counted(world.engine) as priced:
        world.lease(a_host(), start=HOUR)
    assert priced.count - without.count == 2
