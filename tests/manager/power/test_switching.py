# SPDX-License-Identifier: Apache-2.0
"""Hosts that nobody needs are switched off, and are up before their leases; whatever happens on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from blazar.clouds.ports.evacuation import MovePhase
from blazar.clouds.simulated import Durations
from blazar.clouds.simulated.evacuation import start_move
from blazar.clouds.simulated.machines import PowerFault
from blazar.model.base.errors import CloudUnavailable, NotFound
from blazar.model.base.paging import Page
from blazar.model.power.hosts import PowerChange
from blazar.model.power.settings import PowerPolicy
from blazar.model.power.states import MARK, PowerState
from blazar.model.problems.problems import ProblemKind, ProblemQuestion
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.store.sql.tables import journal
from tests.configured import configured_world
from tests.counted import growing
from tests.manager.maintenance.test_maintenance import opened
from tests.manager.power.nights import (
    HOUR,
    MINUTE,
    NO_SPARE,
    ON,
    SECOND,
    give_switches,
    has_power,
    hosts_of,
    is_up,
    log,
    mark,
    pass_time,
    power,
    repair_wake,
    spoil,
    states,
    wake,
    work,
)
from tests.world import World

State = PowerState
A_NIGHT = [State.GOING_OFF, State.OFF]


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., World]:
    """Start a service with a file of these lines; its hosts have switches, and have been on for an hour."""

    def run(*lines: str, hosts: int = 1, **more: object) -> World:
        world = configured_world(sqlite, tmp_path, *(lines or NO_SPARE), hosts=hosts, **more)
        give_switches(world)
        world.clock.by(hours=1)
        return world

    return run


@pytest.fixture
def asleep(start) -> World:
    """Return a service whose host sleeps."""
    world = start()
    pass_time(world, 5 * MINUTE)
    assert (states(world), has_power(world)) == ([State.OFF], False)
    return world


def boot(world: World, number: int = 1) -> None:
    world.simulated.users.boot_server("work", project_id="physics", user_id="u", host=f"node-{number}", status="ACTIVE")


def test_a_host_that_nobody_needs_is_closed_shut_down_and_off(start):
    world = start()
    moves = metrics.POWER_MOVES
    with growing(moves, state="going_off", reason="idle"), growing(moves, state="off", reason="done"):
        assert pass_time(world, 5 * MINUTE) == [State.ON, *A_NIGHT]
    assert (has_power(world), mark(world)) == (False, MARK)
    assert log(world) == [("going_off", "idle"), ("off", "done")]


@pytest.mark.slow
def test_a_host_is_awake_and_open_before_its_lease_begins(asleep):
    world = asleep
    lease = world.lease(start=4 * HOUR)
    found = pass_time(world, 3 * HOUR + 45 * MINUTE, step=5 * MINUTE)
    assert found == [State.OFF, State.WAKING, State.ON]
    assert (is_up(world), mark(world)) == (True, None)
    assert log(world)[2:] == [("waking", "start"), ("on", "done")]
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"


def test_a_host_without_a_switch_never_sleeps(start):
    world = start(hosts=2)
    change = PowerChange(removes_address=True)
    world.store.power_hosts.change(hosts_of(world)[0].external_id, change, at=world.clock.now())
    pass_time(world, 5 * MINUTE)
    assert states(world) == [State.ON, State.OFF]


def test_a_host_for_leases_with_best_effort_never_sleeps(start):
    world = start(register=False)
    world.manager.resources.register(HOST, Registration({"name": "node-1", "evacuable": True}, {}))
    give_switches(world)
    pass_time(world, 5 * MINUTE)
    assert states(world) == [State.ON]


def test_a_server_found_after_the_host_was_closed_keeps_it_on_for_an_hour(start):
    world = start()

    def boot_in_between(name: str, now: str) -> None:
        if (name, now) == ("disable_service", "before"):
            world.faults.on_call = None
            boot(world)

    world.faults.on_call = boot_in_between
    assert pass_time(world, 5 * MINUTE)[-1] is State.ON
    assert (has_power(world), mark(world)) == (True, None)
    assert log(world) == [("going_off", "idle"), ("on", "needed")]
    assert pass_time(world, 50 * MINUTE, step=10 * MINUTE) == [State.ON]


def test_a_server_that_is_on_its_way_to_the_host_keeps_it_on(start):
    """Nova lists it nowhere yet, as it is booted; or where it comes from, as it is moved."""
    world = start(hosts=3)
    people, port = world.simulated.users, world.simulated.evacuation
    people.begin_boot("soon here", host="node-1")
    found = people.boot_server("moved", project_id="p", user_id="u", host="node-3", status="ACTIVE")
    with world.simulated.change_state() as state:
        start_move(state, state.servers[found.id], "node-2", world.clock.now(), Durations(migration=HOUR), live=True)
    assert [move.phase for move in port.moves_of(found.id)] == [MovePhase.RUNNING]
    pass_time(world, 5 * MINUTE)
    assert [log(world, number) for number in (1, 2)] == [[("going_off", "idle"), ("on", "needed")]] * 2
    assert "begin_switch" not in world.faults.calls


def test_a_server_seen_by_the_second_look_alone_keeps_the_host_on(start):
    world = start()
    while power(world).attempts < 1:
        work(world.manager)
    boot(world)
    assert pass_time(world, MINUTE)[-1] is State.ON
    assert log(world)[-1] == ("on", "needed")
    assert has_power(world)


def test_a_booking_between_plan_and_disable_keeps_the_host_on(start):
    world = start()
    world.manager.power_work[0].run_once()
    assert states(world) == [State.GOING_OFF]
    world.lease(start=HOUR)
    pass_time(world, MINUTE)
    assert (states(world), mark(world)) == ([State.ON], None)
    assert "begin_switch" not in world.faults.calls


def test_a_booking_while_the_plan_is_made_comes_first(start):
    world = start()
    view = world.store.power.read_view

    def read_and_book(*args, **kwargs):
        found = view(*args, **kwargs)
        world.store.power.read_view = view
        world.lease(start=HOUR)
        return found

    world.store.power.read_view = read_and_book
    work(world.manager)
    assert states(world) == [State.ON]
    assert log(world) == []


def test_a_host_that_is_booked_while_it_shuts_down_is_woken_as_soon_as_it_is_off(start):
    world = start()
    while power(world).attempts < 2:
        pass_time(world, 5 * SECOND)
    lease = world.lease(start=10 * MINUTE)
    found = pass_time(world, 8 * MINUTE)
    assert found == [State.GOING_OFF, State.WAKING, State.ON]
    assert log(world)[1:] == [("off", "done"), ("waking", "needed"), ("on", "done")]
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"


def test_a_host_that_an_operator_disables_meanwhile_is_left_to_them(start):
    world = start()
    world.manager.power_work[0].run_once()
    world.simulated.cloud.compute.disable_service("node-1", "my hands are in it")
    pass_time(world, MINUTE)
    assert (states(world), mark(world), has_power(world)) == ([State.ON], "my hands are in it", True)


@pytest.mark.parametrize(("line", "minutes"), [("shutdown_timeout = 60", 1), ("shutdown_timeout = 300", 5)])
def test_a_host_that_does_not_shut_down_has_its_power_cut_as_the_file_says(start, line, minutes):
    world = start(*NO_SPARE, line)
    spoil(world, PowerFault.HANGS)
    assert pass_time(world, minutes * MINUTE) == [State.ON, State.GOING_OFF]
    assert pass_time(world, 2 * MINUTE) == A_NIGHT
    assert not has_power(world)


@pytest.mark.slow
def test_the_power_of_a_host_that_is_needed_meanwhile_is_not_cut(start):
    world = start()
    spoil(world, PowerFault.HANGS)
    pass_time(world, 2 * MINUTE)
    lease = world.lease(start=30 * MINUTE)
    assert pass_time(world, 6 * MINUTE) == [State.GOING_OFF, State.ON]
    assert (has_power(world), mark(world)) == (True, None)
    assert log(world)[-1] == ("on", "needed")
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"


def test_a_host_that_goes_off_after_it_was_opened_is_woken_and_never_failed(start):
    """What it was told cannot be taken back: it shuts down in seven minutes, and is needed after five."""
    world = start(*NO_SPARE, "shutdown_timeout = 60")
    world.simulated.durations.shutdown = 4 * MINUTE
    pass_time(world, MINUTE)
    assert states(world) == [State.GOING_OFF]
    lease = world.lease(start=30 * MINUTE)
    assert pass_time(world, 2 * MINUTE) == [State.GOING_OFF, State.ON]
    assert (is_up(world), mark(world)) == (True, None)
    found, failures = [], set()
    for _ in range(20):
        found += pass_time(world, MINUTE)[1:]
        world.manager.monitor.run_once()
        failures |= {host.failure for host in world.manager.resources.all(HOST)}
    assert (found, failures) == ([State.WAKING, State.ON], {None})
    assert log(world)[1:] == [("on", "needed"), ("waking", "needed"), ("on", "done")]
    world.run_to(lease.window.start)
    assert world.now(lease).status == "ACTIVE"


def test_a_host_that_was_opened_while_it_shut_down_is_watched_for_four_hours_and_no_longer(start):
    world = start(*NO_SPARE, "shutdown_timeout = 60")
    spoil(world, PowerFault.HANGS)
    pass_time(world, MINUTE)
    world.lease(start=10 * MINUTE, hours=12)
    pass_time(world, 2 * MINUTE)
    assert states(world) == [State.ON]
    assert world.store.switches.next_due() is not None
    world.clock.by(hours=4)
    work(world.manager)
    assert (states(world), world.store.switches.next_due()) == ([State.ON], None)


@pytest.mark.slow
def test_a_host_whose_bmc_refuses_stays_on_for_hours(start):
    world = start()
    spoil(world, PowerFault.REFUSES)
    pass_time(world, 2 * MINUTE)
    assert (states(world), mark(world)) == ([State.ON], None)
    assert log(world)[-1] == ("on", "refused")
    assert pass_time(world, 3 * HOUR, step=10 * MINUTE) == [State.ON]


def test_a_host_whose_bmc_is_silent_is_not_switched(start):
    world = start(hosts=2)
    spoil(world, PowerFault.SILENT)
    pass_time(world, 5 * MINUTE)
    assert states(world) == [State.ON, State.OFF]
    assert log(world)[-1] == ("on", "refused")


@pytest.mark.slow
def test_a_bmc_that_falls_silent_in_the_middle_is_never_taken_for_off(start):
    world = start()
    while power(world).attempts < 2:
        pass_time(world, 5 * SECOND)
    spoil(world, PowerFault.SILENT)
    assert State.OFF not in pass_time(world, 14 * MINUTE)
    assert states(world) == [State.WAKING]
    spoil(world, None)
    pass_time(world, 20 * MINUTE)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)


@pytest.mark.slow
def test_a_bmc_that_says_off_and_leaves_the_host_on_is_found_out(start):
    world = start()
    spoil(world, PowerFault.IGNORES)
    assert State.OFF not in pass_time(world, 12 * MINUTE)
    assert (states(world), mark(world), has_power(world)) == ([State.ON], None, True)
    assert log(world)[-1] == ("on", "refused")


@pytest.mark.slow
def test_a_host_that_somebody_switches_on_is_awake_and_left_alone_for_four_hours(asleep):
    world = asleep
    world.simulated.operators.press_power("node-1", on=True)
    assert pass_time(world, 2 * MINUTE)[-1] is State.ON
    assert mark(world) is None
    assert log(world)[2:] == [("waking", "external"), ("on", "external")]
    assert pass_time(world, 3 * HOUR + 50 * MINUTE, step=10 * MINUTE) == [State.ON]
    assert State.OFF in pass_time(world, 20 * MINUTE)


@pytest.mark.slow
def test_a_wake_that_fails_once_is_repaired_before_the_lease_begins(asleep):
    world = asleep
    repair_wake(world)
    assert (states(world), is_up(world), mark(world)) == ([State.ON], True, None)
    assert log(world)[2:] == [("waking", "start"), ("on", "done")]


@pytest.mark.slow
def test_a_host_that_does_not_wake_has_failed_and_is_open_if_it_comes_up_after_all(asleep, caplog):
    world = asleep
    spoil(world, PowerFault.SLEEPS_ON)
    wake(world)
    with caplog.at_level(logging.WARNING):
        assert pass_time(world, 32 * MINUTE)[-1] is State.ON
    assert log(world)[-1] == ("on", "timed_out")
    assert "node-1 was switched on and did not come up in time" in caplog.text
    assert (is_up(world), mark(world)) == (False, None)


@pytest.mark.slow
def test_a_lease_that_begins_soon_does_not_wait_for_a_second_attempt(asleep):
    world = asleep
    spoil(world, PowerFault.SLEEPS_ON)
    world.lease(start=20 * MINUTE)
    pass_time(world, 17 * MINUTE)
    assert log(world)[-1] == ("on", "timed_out")


@pytest.mark.slow
def test_a_host_that_fails_to_wake_twice_is_kept_on(start, caplog):
    world = start("[power]", "mode = on", "spare = 0", "wake_timeout = 60")
    for _ in range(2):
        spoil(world, None)
        world.simulated.operators.press_power("node-1", on=True)
        pass_time(world, 20 * MINUTE)
        assert states(world) == [State.OFF]
        spoil(world, PowerFault.SLEEPS_ON)
        wake(world)
        pass_time(world, 5 * MINUTE)
        assert log(world)[-1] == ("on", "timed_out")
    assert power(world).policy is PowerPolicy.KEEP
    assert "did not wake 2 times in 30 days" in caplog.text
    told = list_changes(world, "policy")
    assert told == [(None, "auto", "keep")]
    (problem,) = world.manager.problems.page(ProblemQuestion(Page(9, "since"), (ProblemKind.POWER,))).items
    assert (problem.summary, problem.resource_id) == ("Host node-1 did not wake, and is kept on", "host/1")
    assert "blazar power set node-1 --policy auto" in str(problem.explanation)
    assert world.manager.problems.one(problem.id) == problem
    world.manager.power.change("1", PowerChange(policy=PowerPolicy.AUTO))
    with pytest.raises(NotFound):
        world.manager.problems.one(problem.id)


def list_changes(world: World, field: str) -> list[tuple[str | None, str | None, str | None]]:
    """Return who has changed a field of power, None for the service, and from what to what."""
    with world.engine.connect() as connection:
        rows = connection.execute(journal.select().order_by(journal.c.seq)).all()
    mine = [(row.by_user_id, change) for row in rows for change in row.changes or () if change[0] == f"power.{field}"]
    return [(by, before, after) for by, (_, before, after, _) in mine]


def test_a_switch_that_is_lost_is_sent_again(asleep):
    world = asleep
    world.faults.fail_before("begin_switch", CloudUnavailable("no answer"), times=1)
    wake(world)
    pass_time(world, 10 * MINUTE)
    assert states(world) == [State.ON]


def test_while_nova_does_not_answer_nothing_is_switched(start):
    world = start()
    world.manager.power_work[0].run_once()
    world.faults.fail_before("hypervisor", CloudUnavailable("no answer"), times=30)
    pass_time(world, 2 * MINUTE)
    assert (states(world), has_power(world)) == ([State.GOING_OFF], True)


@pytest.mark.slow
def test_hosts_are_woken_when_nothing_is_to_sleep_any_more(asleep, tmp_path):
    world = asleep
    for mode in ("off", "dry_run"):
        again = configured_world(
            world.engine,
            tmp_path,
            "[power]",
            f"mode = {mode}",
            "spare = 0",
            register=False,
            cloud=world.simulated,
            clock=world.clock,
        )
        if mode == "off":
            with growing(metrics.POWER_MOVES, state="waking", reason="operator"):
                assert pass_time(again, 8 * MINUTE)[-1] is State.ON
        assert pass_time(again, 8 * MINUTE) == [State.ON]
    assert (is_up(world), mark(world)) == (True, None)


def test_a_host_in_maintenance_wakes_closed_and_what_others_closed_stays_closed(asleep):
    world = asleep
    made = opened(world, "node-1", start=3 * HOUR, disable_service=True)
    world.clock.to(made.window.start)
    world.manager.maintenance_work.run_once()
    assert mark(world) == MARK
    wake(world)
    pass_time(world, 10 * MINUTE)
    assert states(world) == [State.ON]
    assert mark(world) == f"blazar maintenance {made.id}"


def test_two_managers_switch_each_host_once(start):
    world = start(hosts=3)
    other = world.another_manager()
    pass_time(world, 5 * MINUTE, world.manager, other)
    assert states(world) == [State.OFF] * 3
    with world.simulated.inspect() as state:
        assert [machine.switched for machine in state.machines.values()] == [1, 1, 1]


def test_no_more_hosts_go_off_in_a_minute_than_the_ramp_allows(start):
    world = start(*NO_SPARE, "ramp = 1", hosts=3)
    work(world.manager)
    assert states(world).count(State.GOING_OFF) == 1
    assert State.OFF in pass_time(world, 5 * MINUTE)


def test_what_was_done_is_on_record_for_a_year_and_not_for_ever(start):
    world = start()
    pass_time(world, 5 * MINUTE)
    world.clock.by(days=399, minutes=60 - world.clock.now().minute)
    work(world.manager)
    assert log(world) == [("going_off", "idle"), ("off", "done")]
    world.clock.by(days=2)
    work(world.manager)
    assert log(world) == []
    assert states(world) == [State.OFF]


def test_an_awake_spare_is_kept(start):
    world = start(*ON, "spare = 2", hosts=3)
    pass_time(world, 10 * MINUTE)
    assert states(world).count(State.OFF) == 1
