# SPDX-License-Identifier: Apache-2.0
"""What closed accounts were charged is computed once more: what differs is a problem until somebody corrects it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.manager.billing.recomputing import Recomputation
from blazar.manager.common.due_work import RARELY
from blazar.model.base.paging import Page
from blazar.model.billing.charges import NANO
from blazar.model.billing.statements import CorrectionRequest
from blazar.model.leases.requests import Actor
from blazar.model.problems.problems import Problem, ProblemKind, ProblemQuestion
from blazar.model.surgery import OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.sql.tables import accounts, charges, findings, leases, turns
from tests.manager.billing.ledger import CURIE, HOUR, act, close, publish, rows
from tests.statements import counted
from tests.world import NOON, World, a_host

OVER = NOON + 30 * HOUR


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=4)


def book(world: World, count: int = 1, hours: int = 10):
    return act(world, world.lease, a_host(count), start=HOUR, hours=hours)


def look(world: World) -> list[Problem]:
    """Let a night pass, and return the problems that charges are."""
    world.run_to(world.clock.now() + 24 * HOUR)
    world.manager.recomputation.run_once()
    return problems(world)


def problems(world: World) -> list[Problem]:
    found = world.manager.problems.page(ProblemQuestion(Page(100, "since"), (ProblemKind.CHARGE,)))
    return list(found.items)


def falsify(world: World, *, more: float = 0, which: str = "usage") -> None:
    """Charge so much more for each hour than was due."""
    with world.engine.begin() as connection:
        c = charges.c
        connection.execute(charges.update().where(c.category == which).values(nano=c.nano + round(more * NANO)))


def correct(world: World, charge: int, amount: float) -> None:
    request = CorrectionRequest(charge, round(amount * NANO), "a line was lost")
    world.manager.charges.correct(request)


def test_without_a_price_list_nobody_has_a_turn(world):
    book(world)
    with counted(world.engine) as statements:
        assert world.manager.recomputation._round() == RARELY
    assert statements.count == 1
    assert rows(world, turns) == []


def test_where_there_are_prices_a_manager_looks_when_its_turn_may_be(world):
    publish(world)
    assert world.manager.recomputation._round() == world.settings.longest_sleep.total_seconds()


def test_what_was_charged_as_it_should_be_is_no_problem(world):
    publish(world, fee="5.00", minimum="PT1H", round_up="PT45M", early_return="0.50", late="free")
    lease = book(world, 2)
    book(world)
    world.run_to(NOON + 4 * HOUR)
    act(world, world.change, lease, end=NOON + 7.2 * HOUR)
    close(world, OVER)
    assert {row["category"] for row in rows(world, charges)} == {"usage", "fee", "rounding_up", "early_return"}
    assert look(world) == []
    assert {row["checked_at"] for row in rows(world, accounts)} == {world.clock.now()}


def test_a_charge_that_is_wrong_is_a_problem_with_its_month_both_amounts_and_what_mends_it(world):
    publish(world, fee="5.00")
    lease = book(world, 2)
    close(world, OVER)
    falsify(world, more=-7.5)
    (found,) = look(world)
    (account,) = rows(world, accounts)
    assert (found.id, found.lease_id) == (f"charge:{account['id']}.2030-04", lease.id)
    assert found.actions == ()
    assert found.summary == f"What is charged for lease {lease.id} is not what is on record of it"
    assert found.explanation[:2] == (
        f"In 2030-04 project physics was charged 17.50 EUR for lease {lease.id}; "
        "by what is on record of the lease it is 25.00 EUR.",
        'This mends it: blazar charge correct 1 7.50 --reason "computed once more for 2030-04".',
    )
    assert world.manager.problems.one(found.id) == found


def test_a_problem_is_gone_once_it_is_corrected_and_back_if_that_was_too_little(world):
    publish(world)
    book(world)
    close(world, OVER)
    falsify(world, more=3)
    (found,) = look(world)
    correct(world, 1, -1)
    assert problems(world) == []
    # At once, not only in the next night.
    world.manager.recomputation.run_once()
    (again,) = problems(world)
    assert again.id == found.id
    correct(world, 1, -2)
    world.manager.recomputation.run_once()
    assert problems(world) == look(world) == []


def test_each_database_keeps_what_differs(engine):
    world = World(engine, hosts=4)
    publish(world)
    for _ in range(2):
        book(world)
    close(world, OVER)
    correct(world, 1, 1)
    falsify(world, more=3)
    first, second = look(world)
    correct(world, 1, -3)
    world.manager.recomputation.run_once()
    assert problems(world) == [second] != [first]
    seen = [row["checked_at"] for row in rows(world, accounts)]
    assert sorted(at is None for at in seen) == [False, True]


def test_a_favour_is_no_problem_and_makes_up_for_none(world):
    publish(world)
    book(world)
    close(world, OVER)
    correct(world, 1, -1)
    assert look(world) == []
    falsify(world, more=3)
    assert len(look(world)) == 1
    correct(world, 1, -3)
    assert look(world) == []


@pytest.mark.parametrize("left", [0, 1], ids=["no charge is left", "another one is left"])
def test_charges_that_are_lost_are_a_problem(world, left):
    publish(world, fee="5.00")
    book(world)
    close(world, OVER)
    with world.engine.begin() as connection:
        connection.execute(charges.delete().where(sa.true() if not left else charges.c.category == "usage"))
    (found,) = look(world)
    if left:
        (fee,) = rows(world, charges)
        assert f"blazar charge correct {fee['id']} 10.00" in found.explanation[1]
        correct(world, fee["id"], 10)
        assert look(world) == []
    else:
        assert "nothing is charged" in found.explanation[1].lower()


def delete_line(world: World, charge_id: int) -> None:
    with world.engine.begin() as connection:
        connection.execute(charges.delete().where(charges.c.id == charge_id))


def live_a_hard_life(world: World) -> None:
    """Let leases be cancelled, given back early, split in use, passed on, and go over the end of a month."""
    for begin in (NOON + 2 * HOUR, NOON + 29 * 24 * HOUR):
        end = begin + 40 * HOUR
        first, last = (act(world, world.lease, a_host(1), a_host(1), start=begin, end=end) for _ in range(2))
        cancelled = act(world, world.lease, a_host(1), start=begin, end=end)
        world.run_to(begin - HOUR)
        act(world, world.manager.leases.delete, cancelled.id)
        world.run_to(begin + 3 * HOUR)
        part = PartRequest(first.reservations[0].id)
        world.manager.surgery.split(first.id, SplitRequest((part,)), Terms(CURIE))
        world.manager.transfers.offer(last.id, OfferRequest("computing"), Terms(CURIE))
        world.manager.transfers.accept(last.id, Terms(Actor("turing", "computing")))
        world.run_to(begin + 7 * HOUR)
        act(world, world.change, last, end=begin + 20.3 * HOUR)
        close(world, begin + 50 * HOUR)
        close(world)


def test_each_line_that_is_lost_is_a_problem_whatever_it_was_charged_for(a_world):
    world = a_world(hosts=6)
    publish(world, fee="5.00", minimum="PT1H", round_up="PT45M", early_return="0.50", cancellation=[{"share": "0.30"}])
    live_a_hard_life(world)
    assert look(world) == []
    lines = rows(world, charges)
    charged = [row for row in lines if row["nano"]]
    assert {row["category"] for row in charged} == {"usage", "fee", "rounding_up", "early_return", "cancellation"}
    for line in charged:
        delete_line(world, line["id"])
        (found,) = look(world)
        assert found.lease_id == line["lease_id"]
        assert f"In {line['month']:%Y-%m} project {line['project_id']} " in found.explanation[0]
        with world.engine.begin() as connection:
            connection.execute(charges.insert(), [dict(line)])
        assert look(world) == []


def test_of_accounts_from_before_it_was_kept_what_they_were_charged_is_not_asked(world):
    publish(world, fee="5.00")
    book(world)
    close(world, OVER)
    with world.engine.begin() as connection:
        (row,) = connection.execute(sa.select(accounts)).mappings()
        terms = {key: value for key, value in row["terms"].items() if key != "charged"}
        connection.execute(accounts.update().values(terms=terms))
    (fee,) = (row for row in rows(world, charges) if row["category"] == "fee")
    delete_line(world, fee["id"])
    assert look(world) == []


def test_each_project_that_had_a_lease_is_looked_at_by_itself(world):
    publish(world, fee="5.00")
    lease = book(world)
    world.run_to(NOON + 4 * HOUR)
    world.manager.transfers.offer(lease.id, OfferRequest("computing"), Terms(CURIE))
    world.manager.transfers.accept(lease.id, Terms(Actor("turing", "computing")))
    # The other one has still more to pay.
    assert look(world) == []
    close(world, OVER + 24 * HOUR)
    falsify(world, more=1)
    assert {found.explanation[0].split()[3] for found in look(world)} == {"physics", "computing"}


@pytest.mark.parametrize(("hours", "which"), [(-1, "cancellation"), (4, "early_return")])
def test_what_was_given_back_costs_what_its_time_and_its_share_say(world, hours, which):
    publish(world, fee="5.00", early_return="0.50", cancellation=[{"share": "0.30"}])
    world.run_to(NOON)
    lease = act(world, world.lease, a_host(2), start=2 * HOUR, hours=10)
    world.run_to(NOON + (hours + 2) * HOUR)
    act(world, world.manager.leases.delete, lease.id)
    world.run()
    close(world, OVER)
    assert which in {row["category"] for row in rows(world, charges)}
    assert look(world) == []
    falsify(world, more=3, which=which)
    (found,) = look(world)
    line = next(row for row in rows(world, charges) if row["category"] == which)
    wrong = sum(row["category"] == which for row in rows(world, charges))
    correct(world, line["id"], -3 * wrong)
    assert look(world) == []
    assert found.lease_id == lease.id


def test_charges_of_leases_that_were_split_in_use_are_what_each_says_itself(world):
    publish(world)
    lease = act(world, world.lease, a_host(1), a_host(2), start=HOUR, hours=10)
    world.run_to(NOON + 4 * HOUR)
    part = PartRequest(lease.reservations[0].id)
    world.manager.surgery.split(lease.id, SplitRequest((part,)), Terms(CURIE))
    close(world, OVER)
    assert look(world) == []
    falsify(world, more=1)
    assert len(look(world)) == 2


def test_of_a_lease_that_was_purged_nothing_is_known_and_it_is_not_looked_at_again(world):
    publish(world)
    book(world)
    close(world, OVER)
    falsify(world, more=1)
    assert len(look(world)) == 1
    world.store.leases.purge(world.clock.now() + 24 * HOUR, 10)
    assert rows(world, leases) == []
    assert look(world) == []
    (account,) = rows(world, accounts)
    assert account["checked_at"].year == 9999
    world.manager.recomputation.most = 0
    assert world.store.recomputations.list_next(world.clock.now(), 10).ids == ()


def test_some_are_looked_at_in_a_night_first_the_new_ones_and_then_the_oldest(world):
    publish(world)
    for _ in range(3):
        book(world)
    close(world, OVER)
    world.manager.recomputation.most = 2
    seen = []
    for _ in range(3):
        look(world)
        now = world.clock.now()
        seen.append({row["id"] for row in rows(world, accounts) if row["checked_at"] == now})
    assert [len(ids) for ids in seen] == [2, 2, 2]
    assert seen[0] | seen[1] == seen[1] | seen[2] == {row["id"] for row in rows(world, accounts)}


def test_what_differs_is_looked_at_each_night(world):
    publish(world)
    for _ in range(3):
        book(world)
    close(world, OVER)
    falsify(world, more=1)
    world.manager.recomputation.most = 3
    first = {found.id: found.since for found in look(world)}
    assert len(first) == 3
    falsify(world, more=-1)
    assert look(world) == []


def test_a_turn_costs_the_same_statements_for_one_and_for_many(world):
    publish(world)
    numbers = []
    for count in (1, 3):
        for _ in range(count):
            book(world)
        close(world, world.clock.now() + 30 * HOUR)
        world.run_to(world.clock.now() + 24 * HOUR)
        with counted(world.engine) as found:
            world.manager.recomputation.run_once()
        numbers.append(len(found.texts))
    assert numbers[1] <= numbers[0] <= 25


def test_one_manager_has_the_turn_and_the_others_come_again_in_the_night(world):
    publish(world)
    book(world)
    close(world, OVER)
    other: Recomputation = world.another_manager().recomputation
    assert (world.manager.recomputation.run_once(), other.run_once()) == (1, 0)
    (turn,) = rows(world, turns)
    assert turn["due_at"] == datetime(2030, 4, 3, 3, tzinfo=UTC)
    assert turn["claimed_by"] is None


def test_a_manager_that_has_lost_its_turn_writes_nothing_more(world):
    publish(world)
    book(world)
    close(world, OVER)
    falsify(world, more=1)
    mine, other = world.manager.recomputation, world.another_manager().recomputation
    now = world.clock.now()
    claim = world.manager.claims.new()
    assert mine._claim(now, claim) == now
    world.clock.by(hours=1)
    assert other.run_once() == 1
    with world.engine.begin() as connection:
        connection.execute(findings.delete())
    mine.work(now, claim)
    assert rows(world, findings) == []
    (turn,) = rows(world, turns)
    assert turn["due_at"] > now + timedelta(hours=2)
