# SPDX-License-Identifier: Apache-2.0
"""What became of the capacity: what is reported is what was looked at, second by second, while it happened."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

import pytest
import sqlalchemy as sa

from blazar.clouds.simulated import of_size
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.reports.capacity import CapacityGroup, CapacityReportQuestion
from blazar.model.reports.periods import ReportStep
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.store.sql.tables import allocations, maintenance_resources, resource_capabilities, resources
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host, instances

HOUR = timedelta(hours=1)
CLEANING = timedelta(minutes=10)
STEP = timedelta(minutes=5)


def ask(world: World, start: datetime, end: datetime, **more):
    values = {"group_by": (CapacityGroup.KIND,), "operator": True, **more}
    return world.manager.reports.capacity(CapacityReportQuestion(PROJECT, start, end, **values))


def seconds(world: World, start: datetime, end: datetime, **more) -> dict[str, int]:
    (row,) = ask(world, start, end, **more).rows
    return {str(state): number for state, number in row.sums.seconds.items() if number}


class Observer:
    """Looks at the tables as they are now, and adds up for how long each resource is in which state.

    It knows nothing of the journal: each look counts until the next one, so that all happens at looks.
    """

    def __init__(self, world: World, day_of: Callable[[datetime], date] = datetime.date) -> None:
        self._world = world
        self._day_of = day_of
        self.seconds: Counter[tuple[object, ...]] = Counter()

    def look(self, until: datetime) -> None:
        now = self._world.clock.now()
        with self._world.engine.connect() as connection:
            used = list(self._states(connection, now))
        for resource_id, state, gpu in used:
            self.seconds[self._day_of(now), state, gpu] += int((until - now).total_seconds())
            assert resource_id

    def _states(self, connection, now) -> Iterator[tuple[int, str, str | None]]:
        a, m, c = allocations.c, maintenance_resources.c, resource_capabilities.c
        gpus = dict(connection.execute(sa.select(c.resource_id, c.value)).all())

        def ids(column, *where) -> set[int]:
            return set(connection.execute(sa.select(column).where(*where)).scalars())

        held = ids(a.resource_id, a.released_at.is_(None), a.starts_at <= now)
        cleaned = ids(a.resource_id, a.starts_at <= now, a.blocks_until > now)
        closed = ids(m.resource_id, m.starts_at <= now, m.blocks_until > now)
        for row in connection.execute(sa.select(resources).where(resources.c.live == 1)):
            state = "disabled" if row.disabled else "free"
            if row.id in cleaned:
                state = "cleaning"
            if row.id in held:
                state = "promised"
            if row.id in closed:
                state = "maintenance"
            if row.failed_since is not None:
                state = "failed"
            yield row.id, state, gpus.get(row.id)


class Life:
    """Operators and users do something at random, at whole steps of the clock."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._random = random.Random(seed)
        self._windows: list[str] = []

    def go_on(self) -> None:
        """Do a few things, or none."""
        for _ in range(self._random.randrange(0, 3)):
            self.do_something()

    def do_something(self) -> None:
        world, chance = self._world, self._random
        often = (self._book, self._book, self._book, self._give_back)
        act = chance.choice((*often, self._disable, self._fail, self._tag, self._register, self._repair))
        try:
            act(world, chance)
        except BlazarError:
            # There is no room, or it is in use: nothing has happened.
            return

    def _book(self, world, chance) -> None:
        wanted = a_host(chance.choice((1, 1, 2))) if chance.random() < 0.6 else instances(1, vcpus=2)
        world.lease(wanted, start=chance.randrange(0, 48) * STEP, hours=chance.randrange(1, 40) / 12)

    def _give_back(self, world, chance) -> None:
        live = [lease for lease in world.store.leases.of_project(None) if lease.deleted_at is None]
        if live:
            world.manager.leases.delete(chance.choice(live).id)

    def _pick(self, world, chance):
        return chance.choice(world.store.resources.catalog(HOST).resources)

    def _disable(self, world, chance) -> None:
        host = self._pick(world, chance)
        world.manager.resources.change(HOST, host.external_id, ResourceChange({}, disabled=not host.disabled))

    def _fail(self, world, chance) -> None:
        host, now = self._pick(world, chance), world.clock.now()
        if host.failure is None:
            world.store.resource_health.set_failed(HOST, {host.id: "it is down"}, at=now)
        else:
            world.store.resource_health.set_recovered(HOST, [host.id], at=now)

    def _tag(self, world, chance) -> None:
        host = self._pick(world, chance)
        value = chance.choice(("a100", "v100", None))
        world.manager.resources.change(HOST, host.external_id, ResourceChange({"gpu": value}))

    def _repair(self, world, chance) -> None:
        windows, now = world.manager.maintenances, world.clock.now()
        if self._windows and chance.random() < 0.5:
            windows.end(self._windows.pop())
        else:
            host, start = self._pick(world, chance), now + chance.randrange(0, 6) * STEP
            request = MaintenanceRequest(
                "firmware", start, start + chance.randrange(3, 30) * STEP, hosts=(host.external_id,)
            )
            self._windows.append(windows.create(request).maintenance.id)

    def _register(self, world, chance) -> None:
        host = self._pick(world, chance)
        if len(world.store.resources.catalog(HOST).resources) > 2:
            world.manager.resources.unregister(HOST, host.external_id)
            world.register(host.name)


def check_life(world: World, seed: int, steps: int) -> None:
    begin = world.clock.now()
    observer, life = Observer(world), Life(world, seed)
    for _ in range(steps):
        life.go_on()
        world.run()
        world.manager.maintenance_work.run_once()
        observer.look(world.clock.now() + STEP)
        world.clock.to(world.clock.now() + STEP)
    end = world.clock.now()
    # A property that no resource has by now is not known.
    world.register("node-9", gpu="a100")
    more = {"group_by": (CapacityGroup.PROPERTY,), "prop": "gpu", "step": ReportStep.DAY}
    found: Counter[tuple[object, ...]] = Counter()
    for row in ask(world, begin, end, **more).rows:
        for state, number in row.sums.seconds.items():
            found[row.window.start.date(), str(state), row.groups[0]] += number
    assert +found == +observer.seconds
    assert len({state for _, state, _ in observer.seconds}) >= 4


@pytest.mark.parametrize("seed", range(2))
def test_a_report_is_what_was_looked_at_while_it_happened(engine, seed):
    check_life(World(engine, hosts=4, state=of_size(9), cleaning_time=CLEANING), seed, 150)


@pytest.mark.slow
@pytest.mark.share(5)
@pytest.mark.parametrize("seed", range(10, 30))
def test_a_report_is_what_was_looked_at_in_many_lives(sqlite, seed):
    check_life(World(sqlite, hosts=4, state=of_size(9), cleaning_time=CLEANING), seed, 300)


def test_a_report_says_what_became_of_hosts_and_is_of_one_snapshot(world):
    world.lease(a_host(), hours=1)
    failed, disabled, _ = world.store.resources.catalog(HOST).resources
    world.run_to(NOON + HOUR)
    with counted(world.engine) as statements:
        found = seconds(world, NOON, NOON + 2 * HOUR)
    assert found == {"promised": 3600, "free": 2 * 3600}
    assert statements.count == 6
    world.store.resource_health.set_failed(HOST, {failed.id: "it is down"}, at=NOON + HOUR)
    world.manager.resources.change(HOST, disabled.external_id, ResourceChange({}, disabled=True))
    world.run_to(NOON + 3 * HOUR)
    assert seconds(world, NOON + HOUR, NOON + 2 * HOUR) == {"failed": 3600, "disabled": 3600, "free": 3600}


def test_the_number_of_statements_does_not_depend_on_hosts_and_leases(a_world):
    world = a_world(state=of_size(9))

    def count() -> int:
        # The catalog of resources is known.
        ask(world, NOON - HOUR, NOON + 20 * HOUR)
        with counted(world.engine) as statements:
            ask(world, NOON - HOUR, NOON + 20 * HOUR, step=ReportStep.DAY)
        return statements.count

    world.run_to(NOON + HOUR)
    before = count()
    for number in range(4, 8):
        world.register(f"node-{number}")
        world.lease(a_host(), start=number * HOUR)
    world.run_to(NOON + 10 * HOUR)
    assert count() == before


def test_members_see_what_the_calendar_shows_them_today(world):
    mine, gone, *_ = world.store.resources.catalog(HOST).resources
    world.manager.resources.change(HOST, mine.external_id, ResourceChange({}, open_to=("biology",), sets_projects=True))
    world.run_to(NOON + HOUR)
    assert seconds(world, NOON, NOON + HOUR) == {"free": 3 * 3600}
    assert seconds(world, NOON, NOON + HOUR, operator=False) == {"free": 2 * 3600}
    world.manager.resources.unregister(HOST, gone.external_id)
    assert seconds(world, NOON, NOON + HOUR, operator=False) == {"free": 3600}
    with pytest.raises(InvalidInput, match="members see the calendar only since"):
        seconds(world, NOON - 400 * 24 * HOUR, NOON - 390 * 24 * HOUR, operator=False)


def test_a_private_property_is_unknown_to_members(world):
    host = world.store.resources.catalog(HOST).resources[0]
    world.manager.resources.change(HOST, host.external_id, ResourceChange({"rack": "r1"}))
    world.manager.resources.set_property(HOST, "rack", private=True)
    world.run_to(NOON + HOUR)
    grouped = {"group_by": (CapacityGroup.PROPERTY,), "prop": "rack"}
    assert {row.groups for row in ask(world, NOON, NOON + HOUR, **grouped).rows} == {("r1",), (None,)}
    with pytest.raises(InvalidInput, match="no resource has"):
        ask(world, NOON, NOON + HOUR, operator=False, **grouped)
