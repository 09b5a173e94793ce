# SPDX-License-Identifier: Apache-2.0
"""Accounts and charges, as each of the databases keeps them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from blazar.model.billing.charges import format_factor
from blazar.model.billing.ledger import close_account
from blazar.model.billing.statements import CorrectionRequest
from blazar.store.billing.closings import ClosedAccount
from blazar.store.billing.spending import read_spending
from blazar.store.sql.tables import accounts, charges, planned
from tests.manager.billing.ledger import HOUR, act, charged, expected, publish, rows
from tests.statements import counted
from tests.world import NOON, World, a_host, instances

LARGE = 999_999_999


def test_amounts_are_exact_whatever_their_size(engine):
    world = World(engine)
    publish(world, fee=f"{LARGE}.999999", prices=[{"sku": "host", "measure": "host", "per_hour": "0.000001"}])
    world.lease(a_host(), start=HOUR, hours=1)
    (row,) = rows(world, planned)
    assert row["nano"] == (LARGE + 1) * 10**9
    world.run_to(NOON + 3 * HOUR)
    world.manager.closing.run_once()
    assert sorted(row["nano"] for row in rows(world, charges)) == [1000, (LARGE + 1) * 10**9 - 1000]


def test_sums_of_amounts_are_exact_beyond_what_one_amount_can_be(engine):
    world = World(engine, hosts=4)
    publish(world, prices=[{"sku": "host", "measure": "host", "per_hour": "99999999.000001"}])
    each = 99_999_999_000_001_000 * 46
    leases = [world.lease(a_host(), start=HOUR, hours=46) for _ in range(3)]
    assert sum_months(world) == (0, 3 * each)
    world.run_to(NOON + 50 * HOUR)
    world.manager.closing.run_once()
    assert sum_months(world) == (3 * each, 0)
    month = NOON.date().replace(day=1)
    assert world.manager.statements.one("physics", month).exact_nano == 3 * each
    last = max(row["id"] for row in rows(world, charges))
    for amount in (LARGE * 10**9, -(10**6) - 1):
        for _ in range(9):
            world.manager.charges.correct(CorrectionRequest(last, amount, "a slip"))
    total = 3 * each + 9 * (LARGE * 10**9 - 10**6 - 1)
    assert sum_months(world) == (total, 0)
    found = world.store.charges.sum_leases([lease.id for lease in leases])
    assert sum(one.charged for one in found.values()) == total


def sum_months(world) -> tuple[int, int]:
    """Return what the project was charged for all months, and what is planned for it."""
    with world.engine.connect() as connection:
        months = read_spending(connection, ["physics"], NOON.date().replace(day=1)).get("physics", {}).values()
    return sum(one.charged for one in months), sum(one.planned for one in months)


def test_a_lease_that_is_changed_and_deleted_is_charged_alike(engine):
    world = World(engine)
    publish(world, early_return="0.25", lead=[{"below": "PT3H", "factor": "1.333333"}])
    lease = world.lease(a_host(), instances(2, vcpus=4), start=HOUR, hours=10)
    world.run_to(NOON + 2 * HOUR)
    act(world, world.change, lease, end=NOON + 12 * HOUR)
    act(world, world.manager.leases.delete, lease.id)
    world.run_to(NOON + 4 * HOUR)
    assert world.manager.closing.run_once() == 1
    an_hour = 1 + 8 * 0.10 + 2 * 0.01
    early, late = an_hour * 1.333333, an_hour
    assert charged(world) == {
        "usage used": pytest.approx(early),
        "early_return unused": pytest.approx(0.25 * (9 * early + late)),
    }
    assert expected(world) == 0
    assert {row["factor"] for row in rows(world, charges)} == {"1.333333", "0.33333325", "0.25"}


def test_of_two_that_close_an_account_one_writes_and_a_change_of_the_lease_ends_the_claim(engine):
    world = World(engine)
    publish(world)
    lease, other = (world.lease(start=HOUR, hours=24 * 40) for _ in range(2))
    world.run_to(NOON + 31 * 24 * HOUR)
    store, now = world.store.closings, world.clock.now()
    due = store.due(now, 9)
    claimed = store.claim(due, "one", now=now, until=now + HOUR)
    assert store.claim(due, "other", now=now, until=now + HOUR) is None
    closed = [close(account, claimed, now) for account in claimed.accounts]
    act(world, world.change, lease, end=NOON + 42 * 24 * HOUR)
    store.close(claimed, "one", closed, at=now)
    ((_, charged_lease),) = {(row["category"], row["lease_id"]) for row in rows(world, charges)}
    assert charged_lease == other.id
    world.manager.closing.run_once()
    found = {(row["claimed_by"], row["closed_until"].month) for row in rows(world, accounts)}
    assert (found, len(rows(world, charges))) == ({(None, 5)}, 2)


def close(account, claimed, now) -> ClosedAccount:
    closing = close_account(account, account.find_cut(now), claimed.facts[account.lease_id], claimed.lists)
    return ClosedAccount(account, closing, {})


def test_accounts_are_closed_in_as_many_statements_however_many_there_are(engine):
    world, counts = World(engine, hosts=8), []
    publish(world)
    for number in (2, 6):
        start = world.clock.now() + HOUR
        for _ in range(number):
            world.lease(start=start, hours=2)
        world.run_to(start + 5 * HOUR)
        with counted(engine) as statements:
            assert world.manager.closing.run_once() == 1
        counts.append(statements.count)
    assert counts[0] == counts[1] <= 16
    assert charged(world) == {"usage used": 16}


@pytest.mark.parametrize(
    ("factor", "text"), [("1", "1"), ("1.25", "1.25"), ("0.000001", "0.000001"), ("12.5", "12.5"), ("0", "0")]
)
def test_factors_are_kept_exactly(factor, text):
    assert format_factor(Fraction(factor)) == text
    product = Fraction(factor) * Fraction("1.333333") * Fraction("0.800001")
    assert Fraction(format_factor(product)) == product
