# SPDX-License-Identifier: Apache-2.0
"""What hosts draw, and the carbon of it, is read by one manager at a time and kept by the hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction
from unittest.mock import Mock

import pytest
import sqlalchemy as sa

from blazar.clouds.curve_file import CurveFile
from blazar.manager.power.energy import EnergyWork
from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.paging import Page
from blazar.model.energy.book import EnergyTerms
from blazar.model.energy.carbon import HourlyCurve
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.problems.problems import ProblemKind, ProblemQuestion
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.manager.regions.world import TwoRegions
from tests.statements import counted
from tests.world import NOON, World

HOUR = 3600
AT = int(NOON.timestamp())
TERMS = EnergyTerms(records=True, tells_carbon=True, asks_adapters=True)


class Meters:
    """What each host drew: 100 W in each hour that it is asked for."""

    enabled = True
    is_silent = is_empty = is_by_region = False
    most = 10**9
    """How often it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []
        self.watts: dict[str, float] = {"": 100.0}

    def read_means(self, hosts, since, until, region=""):
        self.asked.append(((since - AT) // HOUR, until - AT))
        if self.is_silent or len(self.asked) > self.most:
            raise CloudUnavailable("Prometheus did not answer in time")
        if self.is_empty:
            return {}
        told = [] if region not in self.watts else hosts
        return {host: dict.fromkeys(range(since, until, HOUR), self.watts[region]) for host in told}


class Carbon:
    """A curve that is another one whenever it is asked for."""

    enabled, pue = True, Fraction(1)

    def __init__(self) -> None:
        self.times = 0

    def read_curve(self):
        return None

    def fetch_curve(self):
        self.times += 1
        return HourlyCurve({AT + number * HOUR: Fraction(100 * self.times) for number in range(-2, 4)})


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=2, energy=TERMS)


def make_work(world: World, **more) -> EnergyWork:
    return EnergyWork(replace(world.manager.energy_work._runtime, **more))


def give_addresses(world: World) -> None:
    for host in world.store.resources.catalog(HOST).resources:
        address = PowerAddress(PowerAdapter.SIMULATED, host.name)
        world.store.power_hosts.change(host.external_id, PowerChange(address), at=NOON)


def recorded(world: World, hours: int = 0) -> set[tuple[int, int]]:
    """Return the watts and readings of an hour, from noon on."""
    return {(one.milliwatts // 1000, one.readings) for one in world.store.energy.list_hours(AT + hours * HOUR)}


def pass_time(world: World, work: EnergyWork, minutes: int) -> None:
    world.clock.to(world.clock.now() + timedelta(minutes=minutes))
    work.run_once()


def test_who_begins_the_first_turn_of_all_at_the_same_time_as_another_one_looks_once_more(world):
    clashes = [sa.exc.IntegrityError("INSERT", {}, Exception("duplicate key"))]

    def clash(connection, cursor, statement, parameters, context, many):
        if statement.startswith("INSERT INTO turns") and clashes:
            raise clashes.pop()

    sa.event.listen(world.engine, "before_cursor_execute", clash)
    assert world.manager.energy_work.run_once() == 1
    assert not clashes


def test_adapters_are_asked_every_five_minutes_and_an_hour_has_the_mean(world):
    give_addresses(world)
    work = make_work(world)
    work.run_once()
    assert (recorded(world), work.run_once()) == ({(180, 1)}, 0)
    for _ in range(13):
        pass_time(world, work, 5)
    assert (recorded(world), recorded(world, 1)) == ({(180, 12)}, {(180, 2)})


def test_hosts_without_an_adapter_are_not_asked(world):
    make_work(world).run_once()
    assert recorded(world) == set()


def test_what_was_missed_is_asked_for_within_a_day(world):
    meters = Meters()
    work = make_work(world, meters=meters)
    work.run_once()
    pass_time(world, work, 5)
    assert meters.asked == [(-24, -18 * HOUR), (-18, -12 * HOUR), (-12, -6 * HOUR), (-6, 0), (-1, 300)]
    pass_time(world, work, 3 * 60)
    assert meters.asked[-1] == (-0, 3 * HOUR + 300)
    pass_time(world, work, 72 * 60)
    assert [hour for hour, _ in meters.asked[-5:]] == [51, 57, 63, 69, 75]
    assert recorded(world, 75) == {(100, 1)}


def test_a_service_that_is_silent_keeps_nothing_else_from_being_read(world, caplog):
    give_addresses(world)
    meters, carbon = Meters(), Carbon()
    meters.is_silent = True
    work = make_work(world, meters=meters, carbon=carbon)
    work.run_once()
    pass_time(world, work, 5)
    assert (recorded(world), carbon.times) == ({(180, 2)}, 1)
    assert caplog.text.count("Prometheus did not answer in time") == 1


def test_what_was_missed_is_asked_for_though_adapters_have_told_it(world):
    give_addresses(world)
    meters = Meters()
    work = make_work(world, meters=meters)
    work.run_once()
    meters.is_silent = True
    for _ in range(36):
        pass_time(world, work, 5)
    assert recorded(world, 1) == {(180, 12)}
    meters.is_silent = False
    pass_time(world, work, 5)
    assert meters.asked[-1] == (0, 3 * HOUR + 300)
    assert recorded(world, 1) == {(100, 1)}


def watts_by_region(world: World) -> set[tuple[str, str, int]]:
    """Return the region, the name and the watts of the hosts of which this hour is known."""
    hosts = {one.id: one for one in world.store.resources.catalog(HOST).resources}
    found = world.store.energy.list_hours(AT - HOUR)
    return {(hosts[one.resource_id].region, hosts[one.resource_id].name, one.milliwatts // 1000) for one in found}


def test_hosts_of_two_regions_with_one_name_are_measured_where_the_query_names_the_region(engine):
    world, meters = TwoRegions(engine, register=False, energy=replace(TERMS, asks_adapters=False)), Meters()
    for region, name in (("R1", "node-1"), ("R2", "node-1"), ("R2", "node-2")):
        world.register_in(region, name)
    work = make_work(world, meters=meters)
    work.run_once()
    # Nobody knows whose values those of the others are.
    assert watts_by_region(world) == {("R2", "node-2", 100)}
    meters.is_by_region, meters.watts = True, {"R1": 200.0, "R2": 300.0}
    pass_time(world, work, 5)
    assert watts_by_region(world) == {("R1", "node-1", 200), ("R2", "node-1", 300), ("R2", "node-2", 300)}


def test_a_region_of_which_nothing_is_told_is_silent_by_itself(sqlite):
    world, meters = TwoRegions(sqlite, energy=TERMS), Meters()
    meters.is_by_region, meters.watts = True, {"R1": 200.0}
    work = make_work(world, meters=meters)
    work.run_once()
    for _ in range(2):
        pass_time(world, work, 5)
    assert list_silent(world) == [
        "energy:prometheus: Prometheus has no value of any of 2 hosts that are on in R2.",
    ]


def list_silent(world: World) -> list[str]:
    found = world.manager.problems.page(ProblemQuestion(Page(9, "since"), (ProblemKind.ENERGY,))).items
    assert [world.manager.problems.one(problem.id) for problem in found] == list(found)
    return [f"{problem.id}: {problem.explanation[0]}" for problem in found]


def test_a_source_that_is_silent_for_ten_minutes_is_a_problem_until_it_speaks(world):
    give_addresses(world)
    meters, carbon = Meters(), Carbon()
    meters.is_silent = True
    work, other = (make_work(world, meters=meters, carbon=carbon) for _ in range(2))
    work.run_once()
    pass_time(world, work, 5)
    assert list_silent(world) == []
    pass_time(world, other, 5)
    assert list_silent(world) == ["energy:prometheus: Prometheus did not answer in time."]
    # Nobody looks at what is not asked any more.
    world.clock.to(world.clock.now() + timedelta(hours=2))
    assert list_silent(world) == []
    work.run_once()
    assert len(list_silent(world)) == 1
    meters.is_silent = False
    pass_time(world, other, 5)
    assert list_silent(world) == []


def test_a_source_that_answers_and_tells_nothing_is_silent(world, monkeypatch):
    give_addresses(world)
    monkeypatch.setattr(type(world.power), "power_watts", lambda self, refs: {})
    meters = Meters()
    meters.is_empty = True
    carbon = CurveFile()
    monkeypatch.setattr(CurveFile, "enabled", True)
    monkeypatch.setattr(CurveFile, "fetch_curve", lambda self: HourlyCurve({AT - 24 * HOUR: Fraction(1)}))
    work = make_work(world, meters=meters, carbon=carbon)
    work.run_once()
    for _ in range(2):
        pass_time(world, work, 5)
    assert list_silent(world) == [
        "energy:adapters: None of 2 hosts that are on and have an adapter tells its watts.",
        "energy:carbon: The last hour of the curve before now is 2030-03-31T12:00:00Z.",
        "energy:prometheus: Prometheus has no value of any of 2 hosts that are on.",
    ]
    # One that is not to be asked any more is not silent.
    pass_time(world, make_work(world, carbon=carbon), 5)
    assert [told.partition(": ")[0] for told in list_silent(world)] == ["energy:adapters", "energy:carbon"]


def test_what_is_told_in_another_unit_is_not_recorded_and_is_a_problem(world, monkeypatch):
    give_addresses(world)
    first = world.store.resources.catalog(HOST).resources[0]
    sheet = {"power_idle_w": "180", "power_max_w": "420"}
    world.manager.resources.change(HOST, first.external_id, ResourceChange(capabilities=sheet))
    meters = Meters()
    # Milliwatts: of the host without a data sheet nobody knows better.
    meters.watts[""] = 250_000.0
    monkeypatch.setattr(type(world.power), "power_watts", lambda self, refs: {ref.resource_id: 4300 for ref in refs})
    work = make_work(world, meters=meters)
    for _ in range(3):
        pass_time(world, work, 5)
    assert [one.resource_id for one in world.store.energy.list_hours(AT - HOUR)] == [2]
    assert {one.resource_id for one in world.store.energy.list_hours(AT)} == {2}
    said = "What is told of 1 host is more than can be drawn there; it must be in watts."
    assert list_silent(world) == [f"energy:adapters: {said}", f"energy:prometheus: {said}"]
    meters.watts[""] = 4200.0
    monkeypatch.setattr(type(world.power), "power_watts", lambda self, refs: {ref.resource_id: 4200 for ref in refs})
    pass_time(world, work, 5)
    assert (list_silent(world), len(world.store.energy.list_hours(AT))) == ([], 2)


def test_what_a_slow_service_has_told_is_not_asked_for_again(world):
    meters = Meters()
    meters.most = 2
    work = make_work(world, meters=meters)
    work.run_once()
    assert meters.asked == [(-24, -18 * HOUR), (-18, -12 * HOUR), (-12, -6 * HOUR)]
    assert recorded(world, -13) == {(100, 1)}
    meters.most = 10**9
    pass_time(world, work, 5)
    assert meters.asked[3:] == [(-12, -6 * HOUR), (-6, 0), (0, 300)]


def test_a_turn_whose_manager_dies_before_it_is_on_record_counts_once(world, monkeypatch):
    give_addresses(world)
    first, second = make_work(world), make_work(world)
    with monkeypatch.context() as dying:
        dying.setattr("blazar.store.problems.findings._record_look", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            first.run_once()
    assert recorded(world) == set()
    pass_time(world, second, 2)
    assert recorded(world) == {(180, 1)}


def test_an_hour_that_is_over_keeps_the_carbon_that_was_recorded(world):
    carbon = Carbon()
    work = make_work(world, carbon=carbon)
    work.run_once()
    pass_time(world, work, 60)
    curve = world.store.energy.read_curve(AT - 5 * HOUR, AT + 9 * HOUR)
    assert {(hour - AT) // HOUR: int(grams) for hour, grams in curve.items()} == {
        **dict.fromkeys((-2, -1, 0), 100),
        **dict.fromkeys((1, 2, 3), 200),
    }


def test_of_two_managers_one_reads(world):
    meters = Meters()
    assert [make_work(world, meters=meters).run_once() for _ in range(2)] == [1, 0]
    assert len(meters.asked) == 4


def test_where_nothing_is_recorded_no_statement_is_made(a_world):
    world = a_world(hosts=1)
    with counted(world.engine) as statements:
        assert world.manager.energy_work.run_once() == 0
        assert world.manager.energy_work._next_due() is None
    assert statements.count == 0


def test_what_is_older_than_400_days_is_dropped(world):
    work = make_work(world, meters=Meters())
    work.run_once()
    assert recorded(world, -1)
    world.store.energy.drop_old(now=NOON + timedelta(days=401))
    assert recorded(world, -1) == set()
