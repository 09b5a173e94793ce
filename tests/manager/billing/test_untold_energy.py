# SPDX-License-Identifier: Apache-2.0
"""What hosts drew in the hour in which a lease is passed on, split or merged is told once: when it is metered."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.window import Window
from blazar.model.billing.accounts import find_metered, find_metered_at
from blazar.model.billing.charges import NANO, ChargeStatus
from blazar.model.billing.power import EnergyPrice, PowerShare
from blazar.model.energy.book import NO_ENERGY, EnergyReading, HostHour
from blazar.model.leases.requests import Actor
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.model.surgery import MergeRequest, OfferRequest, PartRequest, SplitRequest, Terms
from blazar.store.billing.power_shares import parse_shares, spell_shares
from blazar.store.sql import migrate
from blazar.store.sql.tables import accounts, charges, planned
from tests.cases import cases
from tests.manager.billing.ledger import CURIE, HOUR, PRICES, act, close, publish, rows
from tests.manager.billing.test_energy_of_charges import OVER, TERMS
from tests.statements import counted
from tests.tables import new_sqlite
from tests.world import NOON, World, a_host, instances

MINUTE = timedelta(minutes=1)
IVAN = Actor("ivan", "biology")
POWER = {"sku": "power", "measure": "kwh", "per_kwh": "0.30"}
SO_FAR, WHOLE = 100, 310
"""What the mean of an hour is while it lasts, and once it is over."""


@pytest.fixture
def world(a_world) -> World:
    return a_site(a_world(hosts=4, energy=TERMS))


def a_site(world: World) -> World:
    for host in world.store.resources.catalog(HOST).resources:
        sheet = {"power_idle_w": "200", "power_max_w": "400"}
        world.manager.resources.change(HOST, host.external_id, ResourceChange(sheet))
    publish(world, prices=[*PRICES["prices"], POWER])
    return world


def draw(world: World, at: datetime, watts: int, hours: int = 1) -> None:
    """Record what each host drew in some hours."""
    world.store.energy.claim_turn("mine", now=NOON - HOUR, until=NOON)
    first = int(at.replace(minute=0, second=0).timestamp())
    hosts = [host.id for host in world.store.resources.catalog(HOST).resources]
    means = [HostHour(id_, first + 3600 * n, watts * 1000, 12) for id_ in hosts for n in range(hours)]
    world.store.energy.record("mine", EnergyReading(means))


def go(world: World, at: datetime) -> None:
    """Go to an instant; the hour that is then has another mean so far than it will have."""
    world.run_to(at)
    draw(world, at, SO_FAR)


def told(world: World) -> Counter[tuple[str, str]]:
    """Return the watt-hours that are told, by lease and project."""
    found: Counter[tuple[str, str]] = Counter()
    for row in rows(world, charges):
        if row["category"] == "energy":
            assert (row["energy_source"], row["nano"]) == ("measured", row["wh"] * 300_000)
            found[row["lease_id"], row["project_id"]] += row["wh"]
    return found


def give(world: World, lease_id: str, giver: Actor = CURIE, taker: Actor = IVAN) -> None:
    world.manager.transfers.offer(lease_id, OfferRequest(taker.project_id), Terms(giver))
    world.manager.transfers.accept(lease_id, Terms(taker))


def split(world: World, lease: Any) -> str:
    """Split the last reservation of a lease off; return the id of the new lease."""
    parts = (PartRequest(lease.reservations[-1].id),)
    return world.manager.surgery.split(lease.id, SplitRequest(parts, None, "second"), Terms(CURIE)).leases[1].lease.id


def finish(world: World) -> None:
    """Let all hours be metered, and everything be charged."""
    draw(world, NOON, WHOLE, hours=24)
    close(world, OVER)


def shared(wh: int, *minutes: int) -> list[int]:
    return [round(Fraction(wh * one, 60)) for one in minutes]


def test_who_gives_a_lease_away_pays_by_the_mean_of_the_whole_hour(world):
    lease = world.lease(a_host(2), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    assert told(world) == {}
    finish(world)
    first, second = shared(2 * WHOLE, 80, 160)
    assert told(world) == {(lease.id, "physics"): first, (lease.id, "biology"): second}


@pytest.mark.parametrize("trouble", ["database is locked", "disk I/O error"], ids=["tried again", "given up"])
@pytest.mark.parametrize("number", [0, 1])
def test_it_is_told_once_also_if_the_answer_to_a_commit_is_lost(world, monkeypatch, number, trouble):
    """The first commit claims what is due, the second one writes what is told."""
    lease = world.lease(a_host(2), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    draw(world, NOON, WHOLE, hours=24)
    world.run_to(OVER)
    commit, answers = world.engine.dialect.do_commit, iter([True] * number + [False])

    def lose(connection: Any) -> None:
        commit(connection)
        if not next(answers, True):
            raise sqlite3.OperationalError(trouble)

    monkeypatch.setattr(world.engine.dialect, "do_commit", lose)
    for _ in range(4):
        with suppress(StoreUnavailable):
            world.manager.closing.run_once()
        # By then a claim whose answer was lost has ended.
        world.clock.to(world.clock.now() + HOUR)
    assert next(answers, None) is None
    first, second = shared(2 * WHOLE, 80, 160)
    assert told(world) == {(lease.id, "physics"): first, (lease.id, "biology"): second}
    assert len([row for row in rows(world, charges) if row["category"] == "energy"]) == 2
    assert rows(world, planned) == []


def test_it_is_told_as_soon_as_the_hour_is_metered_and_not_before(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    (giver,) = [row for row in rows(world, accounts) if row["project_id"] == "physics"]
    assert (giver["state"], giver["due_at"]) == ("closed", NOON + 3 * HOUR + 10 * MINUTE)
    world.run_to(NOON + 3 * HOUR + 9 * MINUTE)
    draw(world, NOON + HOUR, WHOLE, hours=2)
    assert world.manager.closing.run_once() == 0
    close(world, NOON + 3 * HOUR + 10 * MINUTE)
    assert told(world) == {(lease.id, "physics"): round(WHOLE * 80 / 60)}
    (giver,) = [row for row in rows(world, accounts) if row["project_id"] == "physics"]
    assert (giver["due_at"], giver["terms"].get("untold")) == (None, None)


def test_who_has_a_lease_twice_in_one_hour_is_told_each_time_once(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    for minute, (giver, taker) in zip((10, 30, 40), ((CURIE, IVAN), (IVAN, CURIE), (CURIE, IVAN)), strict=True):
        go(world, NOON + 2 * HOUR + minute * MINUTE)
        give(world, lease.id, giver, taker)
    assert Counter(row["project_id"] for row in rows(world, planned)) == {"physics": 2, "biology": 2}
    close(world, NOON + 3 * HOUR)
    finish(world)
    (one, two), (three, four) = shared(WHOLE, 70, 10), shared(WHOLE, 20, 140)
    assert told(world) == {(lease.id, "physics"): one + two, (lease.id, "biology"): three + four}
    assert rows(world, planned) == []


def test_what_was_had_before_a_split_is_told_of_the_lease_that_had_it(world):
    lease = world.lease(a_host(1), a_host(2), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    second = split(world, lease)
    go(world, NOON + 2 * HOUR + 50 * MINUTE)
    give(world, second)
    finish(world)
    (alone,), (moved,) = shared(WHOLE, 240), shared(2 * WHOLE, 80)
    assert told(world) == {
        (lease.id, "physics"): alone + moved,
        (second, "physics"): round(Fraction(2 * WHOLE * 30, 60)),
        (second, "biology"): round(Fraction(2 * WHOLE * 130, 60)),
    }


@pytest.mark.parametrize("into", [0, 1])
def test_what_was_had_before_a_merge_is_told_of_the_lease_that_had_it(world, into):
    leases = [world.lease(a_host(count), start=HOUR, hours=4) for count in (1, 2)]
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    kept, gone = leases[into], leases[1 - into]
    world.manager.surgery.merge(kept.id, MergeRequest(gone.id), Terms(CURIE))
    finish(world)
    hosts = (1, 2)[1 - into]
    before, after = shared(hosts * WHOLE, 80, 160)
    assert told(world)[gone.id, "physics"] == before
    # Each reservation has its own line.
    assert abs(told(world)[kept.id, "physics"] - ((3 - hosts) * WHOLE * 4 + after)) <= 1


def test_servers_have_their_share_of_the_whole_hour(world):
    lease = world.lease(instances(2, vcpus=2), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    finish(world)
    vcpus = next(iter(world.store.resources.catalog(HOST).resources)).capacity.get("VCPU")
    first, second = (round(Fraction(WHOLE * minutes * 4, 60 * vcpus)) for minutes in (80, 160))
    assert told(world) == {(lease.id, "physics"): first, (lease.id, "biology"): second}


@pytest.mark.parametrize("end", ["shortened", "deleted", "over"])
def test_an_end_within_an_hour_is_told_by_the_mean_of_the_whole_hour(world, end):
    lease = world.lease(a_host(1), start=HOUR, hours=2.25 if end == "over" else 4)
    go(world, NOON + 3 * HOUR + 15 * MINUTE)
    if end == "shortened":
        act(world, world.change, world.now(lease), end=NOON + 3 * HOUR + 15 * MINUTE)
    elif end == "deleted":
        act(world, world.manager.leases.delete, lease.id)
    world.manager.closing.run_once()
    assert told(world) == {}
    finish(world)
    assert told(world) == {(lease.id, "physics"): round(Fraction(WHOLE * 135, 60))}


def test_a_statement_is_not_final_before_all_of_its_month_is_told(a_world):
    world = a_world(hosts=1, energy=TERMS)
    # Neither hosts nor energy cost anything: what was drawn is told all the same.
    publish(world, prices=[{"sku": "vcpu", "measure": "vcpu", "per_hour": "1"}], fee="1")
    end = datetime(2030, 5, 1, tzinfo=UTC)
    begin = end - 2 * HOUR
    lease = world.lease(a_host(1), start=begin, hours=4)
    world.run_to(end - 2 * MINUTE)
    give(world, lease.id)
    seen = {}
    for minute in (6, 8, 12):
        world.run_to(end + minute * MINUTE)
        draw(world, begin, WHOLE, hours=2)
        world.manager.closing.run_once()
        statement = world.manager.statements.one("physics", date(2030, 4, 1))
        seen[minute] = str(statement.state), statement.wh
    assert seen == {6: ("open", None), 8: ("open", None), 12: ("final", round(WHOLE * 118 / 60))}


def test_an_hour_in_which_a_month_ends_is_told_in_both(world):
    end = datetime(2030, 12, 31, 23, tzinfo=UTC) + HOUR
    lease = world.lease(a_host(1), start=end - 2 * HOUR, hours=4)
    go(world, end + 5 * MINUTE)
    give(world, lease.id)
    draw(world, end - 2 * HOUR, WHOLE, hours=9)
    close(world, end + 5 * HOUR)
    found = {(row["project_id"], row["month"], row["wh"]) for row in rows(world, charges) if row["wh"] is not None}
    later = round(Fraction(WHOLE * 115, 60))
    assert found == {
        ("physics", date(2030, 12, 1), 2 * WHOLE),
        ("physics", date(2031, 1, 1), round(Fraction(WHOLE * 5, 60))),
        ("biology", date(2031, 1, 1), later),
    }


def test_of_two_that_tell_it_one_does_and_one_that_died_is_followed_by_another(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    draw(world, NOON, WHOLE, hours=24)
    store, now = world.store.closings, NOON + 3 * HOUR + 30 * MINUTE
    world.run_to(now)
    due = store.due(now, 9)
    assert store.claim(due, "dead", now=now, until=now + MINUTE) is not None
    assert store.claim(due, "other", now=now, until=now + MINUTE) is None
    assert world.manager.closing.run_once() == 0
    close(world, now + MINUTE)
    close(world, now + 2 * MINUTE)
    assert told(world) == {(lease.id, "physics"): round(Fraction(WHOLE * 80, 60))}


def test_what_is_untold_is_planned_by_the_data_sheet(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    go(world, NOON + 3 * HOUR)
    give(world, lease.id)
    by_project = Counter[str]()
    for row in rows(world, planned):
        by_project[row["project_id"]] += row["nano"]
    # Half of the load: 300 W for two hours; of the other two, and an hour of the host besides.
    assert by_project == {"physics": 600 * 300_000, "biology": 600 * 300_000 + 2 * NANO}


def test_where_energy_is_not_recorded_any_more_it_is_not_told_and_the_account_is_done(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    world.store.closings._energy = NO_ENERGY
    finish(world)
    assert told(world) == {}
    assert all(row["due_at"] is None for row in rows(world, accounts))


def test_nothing_is_computed_once_more_before_all_is_told(world):
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    world.manager.recomputation.run_once()
    assert {row["checked_at"] for row in rows(world, accounts)} == {None}
    finish(world)
    world.run_to(OVER + 24 * HOUR)
    world.manager.recomputation.run_once()
    assert None not in {row["checked_at"] for row in rows(world, accounts)}


def test_who_passes_a_lease_on_reads_nothing_of_what_was_drawn(tmp_path):
    counts = []
    for energy in (NO_ENERGY, TERMS):
        engine = new_sqlite(tmp_path / f"{energy.records}.sqlite")
        world = World(engine, hosts=4, energy=energy)
        publish(world)
        lease = world.lease(a_host(2), start=HOUR, hours=4)
        world.run_to(NOON + 2 * HOUR + 20 * MINUTE)
        world.manager.transfers.offer(lease.id, OfferRequest("biology"), Terms(CURIE))
        with counted(world.engine) as statements:
            world.manager.transfers.accept(lease.id, Terms(IVAN))
        counts.append(statements.count)
    assert counts[0] == counts[1]


INSTANTS = st.integers(0, 10**6).map(lambda seconds: NOON + timedelta(seconds=seconds))
SHARES = st.builds(
    PowerShare,
    st.text(max_size=9),
    st.text(max_size=9),
    st.tuples(INSTANTS, st.integers(1, 10**6)).map(lambda two: Window(two[0], two[0] + timedelta(seconds=two[1]))),
    st.builds(
        EnergyPrice,
        st.none() | st.text(max_size=9),
        st.none() | st.integers(1, 99),
        st.integers(0, 10**18),
        st.integers(0, 10**9).map(lambda digits: Fraction(digits, 10**6)),
        st.sampled_from(ChargeStatus),
    ),
    st.lists(st.integers(1, 10**6), max_size=9).map(tuple),
    st.none() | st.integers(1, 999),
    st.integers(0, 10**12),
)


def test_a_month_in_which_nothing_costs_anything_is_final_once_it_is_told_too(a_world):
    world = a_site(a_world(hosts=2, energy=TERMS))
    publish(world, NOON - HOUR, prices=[{"sku": "vcpu", "measure": "vcpu", "per_hour": "1"}])
    end = datetime(2030, 5, 1, tzinfo=UTC)
    world.lease(a_host(1), start=end - 28 * HOUR, hours=60)
    world.lease(a_host(1), start=end - 28 * HOUR, hours=1)
    world.run_to(end - 25 * HOUR)
    world.manager.closing.run_once()
    assert {row["month"].month: row["nano"] for row in rows(world, planned)} == {4: 0, 5: 0}
    seen = []
    for minute in (6, 20):
        world.run_to(end + minute * MINUTE)
        world.manager.closing.run_once()
        statement = world.manager.statements.one("physics", date(2030, 4, 1))
        seen.append((str(statement.state), statement.wh))
    assert seen == [("open", 300), ("final", 29 * 300)]


@given(st.lists(SHARES, max_size=5).map(tuple))
@settings(max_examples=cases(100))
def test_shares_are_kept_as_they_are(shares):
    assert parse_shares(spell_shares(shares)) == shares


@given(INSTANTS)
@settings(max_examples=cases(100))
def test_what_was_until_an_instant_is_metered_from_then_on_and_not_a_second_earlier(end):
    at = find_metered_at(end)
    assert find_metered(at) >= end > find_metered(at - timedelta(seconds=1))


def test_what_is_planned_stays_over_a_migration_there_and_back(engine):
    world = a_site(World(engine, hosts=4, energy=TERMS))
    lease = world.lease(a_host(1), start=HOUR, hours=4)
    world.lease(a_host(1), start=HOUR, hours=24 * 60)
    before = rows(world, planned)
    go(world, NOON + 2 * HOUR + 20 * MINUTE)
    give(world, lease.id)
    after = rows(world, planned)
    assert len(after) == len(before) + 1
    migrate.downgrade(engine, "1017")
    migrate.upgrade(engine)
    kept = {row["id"] for row in rows(world, accounts) if row["state"] == "open"}
    # What of it is for energy is known again once more of it is charged.
    assert sorted(map(dict, rows(world, planned)), key=str) == sorted(
        ({**row, "estimated_nano": None} for row in after if row["account_id"] in kept), key=str
    )
