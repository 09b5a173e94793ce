# SPDX-License-Identifier: Apache-2.0
"""A lease lends hosts that it does not use to preemptible servers, and its holder never waits for them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bench.lending import read_options, replay
from blazar.manager.common.settings import Settings
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput
from blazar.model.base.window import Window
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.reports.usage import UsageQuestion
from blazar.model.use.lending import LendingRules, LentHost, plan_lending
from tests.configured import configured_world
from tests.manager.use.test_notice import closed, journal, look, metadata, servers, told
from tests.statements import counted
from tests.world import NOON, World, a_host

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
NOTICE, AFTER = 5 * MINUTE, 30 * MINUTE


@pytest.fixture
def world(sqlite) -> World:
    return lending_world(sqlite)


def lending_world(engine, hosts: int = 4, **more) -> World:
    settings = Settings(claim_ttl=timedelta(seconds=30), promises=0, preemption_notice=NOTICE, lend_after=AFTER, **more)
    return World(engine, hosts=hosts, settings=settings)


def lending(count: int, *, keep: int) -> ReservationRequest:
    asked = a_host(count)
    return ReservationRequest(asked.resource_type, {**asked.parameters, "lend_beyond": keep})


def pass_time(world: World, time: timedelta, step: timedelta = MINUTE) -> None:
    """Let time pass, with a look at each step and the work on events."""
    end = world.clock.now() + time
    while world.clock.now() < end:
        world.run_to(min(world.clock.now() + step, end))
        look(world)


def lent(world: World) -> set[str]:
    keys = (key for a in world.aggregates() for key in a.metadata)
    return {key.removeprefix("blazar:lent:") for key in keys if key.startswith("blazar:lent:")}


def started(world: World, *asked: ReservationRequest, hours: float = 8):
    lease = world.lease(*asked, hours=hours)
    world.run()
    look(world)
    return lease


def own_server(world: World, lease, host: str, name: str = "own"):
    return world.simulated.users.boot_server(name, project_id="physics", user_id="curie", host=host)


def test_hosts_that_are_not_used_for_long_enough_are_lent_but_for_those_that_are_kept(world):
    lease = started(world, lending(4, keep=1))
    pass_time(world, AFTER - 2 * MINUTE)
    assert lent(world) == set()
    pass_time(world, 3 * MINUTE)
    assert len(lent(world)) == 3
    host = min(lent(world))
    world.simulated.users.boot_preemptible("spot", host=host, project_id="art")
    (kept,) = world.hosts_of(lease) - lent(world)
    with pytest.raises(Conflict):
        world.simulated.users.boot_preemptible("spot", host=kept, project_id="art")


def test_nothing_is_lent_by_who_does_not_want_it(world):
    started(world, a_host(4))
    pass_time(world, 2 * HOUR, step=10 * MINUTE)
    assert lent(world) == set()


def test_a_host_in_use_is_not_lent(world):
    lease = started(world, lending(4, keep=0))
    used = min(world.hosts_of(lease))
    own_server(world, lease, used)
    pass_time(world, AFTER + 2 * MINUTE)
    assert lent(world) == world.hosts_of(lease) - {used}


def test_its_holder_boots_on_a_lent_host_at_once_and_guests_go_with_notice(engine):
    world = lending_world(engine)
    lease = started(world, lending(4, keep=0))
    pass_time(world, AFTER + 2 * MINUTE, step=4 * MINUTE)
    host = min(lent(world))
    world.simulated.users.boot_preemptible("spot", host=host, project_id="art")
    own_server(world, lease, host)
    pass_time(world, MINUTE, step=15 * SECOND)
    assert host not in lent(world)
    with pytest.raises(Conflict):
        world.simulated.users.boot_preemptible("late", host=host, project_id="art")
    (announced,) = told(world)
    assert announced[:2] == ("art", "spot")
    ends_at = metadata(world, "spot")["blazar:ends_at"]
    assert [entry[0] for entry in journal(world)] == ["before_end"]
    pass_time(world, NOTICE - MINUTE, step=15 * SECOND)
    assert {server.name for server in servers(world)} == {"spot", "own"}
    pass_time(world, 2 * MINUTE, step=15 * SECOND)
    assert {server.name for server in servers(world)} == {"own"}
    assert ends_at > "2030-04-01T12:36:00Z"


def test_when_kept_hosts_come_into_use_others_are_taken_back(world):
    lease = started(world, lending(4, keep=2))
    pass_time(world, AFTER + 2 * MINUTE)
    kept = sorted(world.hosts_of(lease) - lent(world))
    assert len(kept) == 2
    own_server(world, lease, kept[0])
    pass_time(world, 2 * MINUTE)
    assert len(lent(world)) == 1


def test_all_are_back_with_notice_before_the_lease_ends(world):
    lease = started(world, lending(2, keep=0), hours=2)
    pass_time(world, AFTER + 2 * MINUTE)
    host = min(lent(world))
    world.simulated.users.boot_preemptible("spot", host=host, project_id="art")
    pass_time(world, lease.window.end - world.clock.now() - NOTICE)
    assert metadata(world, "spot")["blazar:ends_at"] <= "2030-04-01T14:00:00Z"
    ((_, told_at),) = [(p.server.name, p.ends_at) for _, some in world.notifier.preempted for p in some]
    assert told_at - NOTICE <= world.clock.now()
    world.run_to(lease.window.end)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert (servers(world), lent(world), closed(world)) == ([], set(), set())
    look(world)
    assert world.store.lending.read() == ()


def test_who_lends_no_more_gets_all_back_with_notice(world):
    lease = started(world, lending(2, keep=0))
    pass_time(world, AFTER + 2 * MINUTE)
    host = min(lent(world))
    world.simulated.users.boot_preemptible("spot", host=host, project_id="art")
    world.resize(lease, lend_beyond=None)
    pass_time(world, MINUTE, step=15 * SECOND)
    assert lent(world) == set()
    assert len(told(world)) == 1
    pass_time(world, NOTICE + MINUTE, step=15 * SECOND)
    assert servers(world) == []
    assert world.store.lending.read() == ()


def test_a_deleted_lease_leaves_nothing(world):
    lease = started(world, lending(2, keep=0))
    pass_time(world, AFTER + 2 * MINUTE)
    world.simulated.users.boot_preemptible("spot", host=min(lent(world)), project_id="art")
    world.manager.leases.delete(lease.id)
    world.run()
    world.clock.by(seconds=15)
    look(world)
    assert (servers(world), lent(world), world.store.lending.read()) == ([], set(), ())


def test_guests_are_not_use_of_the_lease(world):
    lease = started(world, lending(2, keep=0))
    pass_time(world, AFTER + 2 * MINUTE)
    world.simulated.users.boot_preemptible("spot", host=min(lent(world)), project_id="art")
    runtime = world.manager.preemption_work._runtime
    (task,) = runtime.tasks(world.now(lease), world.store.calendar.of_lease(lease.id))
    type_ = runtime.types["physical:host"]
    assert (type_.in_use(task), list(type_.servers_in_use(task)), type_.probe(task)) == ({}, [], {})


def test_a_cloud_that_does_not_answer_delays_and_loses_nothing(world):
    started(world, lending(2, keep=0))
    pass_time(world, AFTER - MINUTE)
    world.faults.fail_before("set_aggregate_metadata", CloudUnavailable("away"), times=1)
    pass_time(world, 2 * MINUTE)
    pass_time(world, 2 * MINUTE)
    assert len(lent(world)) == 2


def test_another_manager_goes_on(world):
    lease = started(world, lending(2, keep=0))
    pass_time(world, AFTER + 2 * MINUTE)
    world.simulated.users.boot_preemptible("spot", host=min(lent(world)), project_id="art")
    world.manager = world.another_manager()
    world.resize(lease, lend_beyond=None)
    pass_time(world, NOTICE + 2 * MINUTE, step=15 * SECOND)
    assert (servers(world), len(told(world))) == ([], 1)


@pytest.mark.parametrize("lend", [True, -1, "1", {}, 1.5, 2**31])
def test_what_cannot_be_lent_so_is_refused_by_name(sqlite, lend):
    world = lending_world(sqlite)
    asked = a_host(1)
    with pytest.raises(InvalidInput, match="lend_beyond is .*; give a whole number from 0") as refused:
        world.lease(ReservationRequest(asked.resource_type, {**asked.parameters, "lend_beyond": lend}))
    assert "lend" in str(refused.value.at)


def test_lending_does_not_go_with_a_migration_before_the_end(sqlite):
    world = lending_world(sqlite)
    asked = a_host(1, before_end="migration")
    with pytest.raises(InvalidInput, match="does not go with before_end 'migration'"):
        world.lease(ReservationRequest(asked.resource_type, {**asked.parameters, "lend_beyond": 0}))


def test_hosts_are_lent_after_as_long_as_the_file_says(sqlite, tmp_path):
    world = configured_world(sqlite, tmp_path, "[manager]", "preemption_notice = 5", "lend_after = 7")
    started(world, lending(1, keep=0))
    pass_time(world, 6 * MINUTE)
    assert lent(world) == set()
    pass_time(world, 2 * MINUTE)
    assert len(lent(world)) == 1


def test_the_statements_of_a_look_do_not_grow_with_lenders(sqlite):
    world = lending_world(sqlite, hosts=6)
    started(world, lending(1, keep=0))
    pass_time(world, 5 * MINUTE)
    world.clock.by(seconds=15)
    with counted(sqlite) as one:
        look(world)
    for project in ("bio", "art"):
        world.lease(lending(2, keep=0), project=project, hours=8)
    world.run()
    pass_time(world, 5 * MINUTE)
    world.clock.by(seconds=15)
    with counted(sqlite) as several:
        look(world)
    assert several.count <= one.count


# The plan

RULES = LendingRules(keep=1, idle_after=AFTER, notice=NOTICE)
LATE = NOON + 100 * HOUR


def lent_host(id_: int, *, since=NOON, ends_at=None) -> LentHost:
    return LentHost("r", id_, since, ends_at)


def plan(idle, given=(), rules=RULES, now=NOON + HOUR, until=LATE, hosts=range(1, 9)):
    return plan_lending(
        frozenset(hosts),
        dict.fromkeys(idle, NOON),
        {host.resource_id: host for host in given},
        rules,
        now=now,
        until=until,
    )


def test_the_plan_keeps_so_many_idle_hosts():
    assert plan([]).lent == plan([1]).lent == ()
    assert plan([1, 2, 3]).lent == (1, 2)


def test_what_is_taken_back_counts_as_kept_once_it_is():
    coming = lent_host(1, ends_at=NOON + HOUR + MINUTE)
    assert plan([1, 2], [coming]).lent == (2,)
    assert plan([1, 3], [coming, lent_host(3)]).recalled == {}


def test_the_last_that_were_lent_are_taken_back_first():
    given = [lent_host(1), lent_host(2, since=NOON + MINUTE)]
    assert plan([1, 2], given).recalled == {2: NOON + HOUR + NOTICE}


def test_nothing_is_lent_that_would_be_taken_back_at_once():
    assert plan([1, 2], until=NOON + HOUR + NOTICE).lent == ()
    assert plan([1], [lent_host(1)], until=NOON + HOUR + MINUTE).recalled == {1: NOON + HOUR + MINUTE}


def test_reports_say_for_how_long_hosts_were_lent(engine):
    world = lending_world(engine)
    started(world, lending(2, keep=0))
    pass_time(world, AFTER + 4 * MINUTE, step=4 * MINUTE)
    (since,) = {host.since for host in world.store.lending.read()}
    now, all_day = world.clock.now(), Window(NOON - 12 * HOUR, NOON + 12 * HOUR)
    seconds = 2 * int((now - since).total_seconds())
    sums = world.store.lending.sum_seconds
    assert sums(all_day, now=now) == sums(all_day, now=now, project_id="physics") == seconds > 0
    assert sums(all_day, now=now, project_id="bio") == 0
    assert sums(Window(since - HOUR, since), now=now) == 0
    assert sums(Window(since, since + MINUTE), now=now) == 120
    report = world.manager.reports.usage(UsageQuestion("physics", all_day.start, all_day.end))
    assert report.lent_seconds == seconds


def test_a_trace_of_a_fifth_in_use_has_half_the_idle_hours_and_guests_told_in_time():
    """With as many hosts kept as a job takes, its holder hardly ever meets guests."""
    options = read_options(["--leases", "4", "--days", "6"])
    nothing, lending = (replay(LendingRules(keep, AFTER, NOTICE), options) for keep in (None, 4))
    assert 0.15 < nothing.used / nothing.held < 0.25
    assert lending.used == nothing.used
    assert lending.held - lending.used - lending.lent < (nothing.held - nothing.used) / 2
    assert lending.waits / lending.jobs < 0.05
    assert lending.told_in_time >= 0.999 * lending.guests > 0
