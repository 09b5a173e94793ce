# SPDX-License-Identifier: Apache-2.0
"""What else of the service knows that hosts sleep: health, placement and starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.api.leases.v1_1.reasons import render_waking
from blazar.model.base.errors import CloudUnavailable, NotEnoughResources
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.requests import Actor, LeaseRequest
from blazar.model.leases.states import EventType, LeaseKind, LeaseStatus
from blazar.model.power.states import MARK, PowerReason, PowerState, WakingHosts
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion, FreeWindow
from blazar.observe import metrics
from blazar.store.sql.tables import host_power, power_log
from tests.configured import configured_world
from tests.counted import growing
from tests.manager.maintenance.test_maintenance import opened
from tests.manager.power import nights
from tests.manager.power.nights import give_switches, mark, pass_time
from tests.statements import counted
from tests.world import NOON, PROJECT, World, a_host

ON = ("[power]", "mode = on")
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def start(sqlite, tmp_path) -> Callable[..., World]:
    """Start a service with a file of these lines."""

    def run(*lines: str, **more: object) -> World:
        return configured_world(sqlite, tmp_path, *(lines or ON), **more)

    return run


def sleep(world: World, *names: str, state: PowerState = PowerState.OFF) -> None:
    """Let hosts sleep, as the worker leaves them: off, their compute service disabled."""
    for name in names:
        world.simulated.operators.host_down(name)
        world.simulated.operators.host_disabled(name, "blazar power")
        note(world, name, state)


def wake(world: World, name: str, reason: PowerReason = PowerReason.DONE) -> None:
    """Let a host be awake, as the worker leaves it; or let its wake time out."""
    if reason is PowerReason.DONE:
        world.simulated.operators.host_up(name)
        world.simulated.operators.host_enabled(name)
    note(world, name, PowerState.ON, reason)


def note(world: World, name: str, state: PowerState, reason: PowerReason = PowerReason.DONE) -> None:
    id_ = next(host.id for host in world.manager.resources.all(HOST) if host.name == name)
    values = {"state": str(state), "reason": str(reason), "since": world.clock.now()}
    with world.engine.begin() as connection:
        if not connection.execute(host_power.update().where(host_power.c.resource_id == id_).values(values)).rowcount:
            connection.execute(host_power.insert().values(resource_id=id_, **values))


def states(world: World) -> dict[str, PowerState]:
    names = {host.id: host.name for host in world.manager.resources.all(HOST)}
    found = world.store.power.read_hosts_power(world.clock.now())
    return {names[id_]: power.state for id_, power in found.items()}


def look(world: World) -> None:
    for _ in range(3):
        world.manager.monitor.run_once()


def failed(world: World) -> set[str]:
    return {host.name for host in world.manager.resources.all(HOST) if host.failure}


def test_a_host_that_sleeps_has_not_failed(start):
    world = start()
    sleep(world, "node-1")
    sleep(world, "node-2", state=PowerState.WAKING)
    world.simulated.operators.host_down("node-3")
    look(world)
    assert failed(world) == {"node-3"}


def test_a_host_whose_wake_has_timed_out_fails_and_its_leases_are_healed(start):
    world = start()
    lease = world.lease(start=HOUR)
    (host,) = world.hosts_of(lease)
    sleep(world, host)
    look(world)
    assert not failed(world)
    wake(world, host, PowerReason.TIMED_OUT)
    look(world)
    assert failed(world) == {host}
    assert world.hosts_of(lease) != {host}


def test_the_polls_that_saw_a_host_asleep_do_not_count_when_it_is_awake(start):
    """Its service may take a moment to be seen as up: that is one poll, not the second."""
    world = start()
    sleep(world, "node-1")
    look(world)
    note(world, "node-1", PowerState.ON)
    world.manager.monitor.run_once()
    assert not failed(world)


def test_a_near_start_takes_hosts_that_are_awake(start):
    world = start()
    for name in ("node-1", "node-2"):
        sleep(world, name)
    assert world.hosts_of(world.lease(start=29 * MINUTE)) == {"node-3"}


def test_a_near_start_takes_hosts_that_are_awake_while_others_wait(start):
    world = start()
    (taken,) = world.hosts_of(world.lease(hours=8))
    waiting = world.lease(a_host(3), wait=DAY)
    assert waiting.status is LeaseStatus.WAITING
    first, second = sorted({"node-1", "node-2", "node-3"} - {taken})
    sleep(world, first)
    assert world.hosts_of(world.lease(hours=1)) == {second}


def test_a_start_after_the_lead_takes_any(start):
    world = start()
    sleep(world, "node-1", "node-2", "node-3")
    world.lease(start=31 * MINUTE)
    with counted(world.engine) as far:
        world.lease(start=31 * MINUTE)
    with counted(world.engine) as near:
        world.lease(start=29 * MINUTE)
    assert near.count == far.count + 1


def test_while_hosts_are_not_switched_no_statement_is_spent_on_it(start):
    world = start("[power]", "mode = dry_run")
    with counted(world.engine) as statements:
        world.lease(start=MINUTE)
    assert not [text for text in statements.texts if "host_power" in text]


def test_a_start_wakes_its_host_and_waits_for_it(start):
    world = start()
    sleep(world, "node-1", "node-2", "node-3")
    lease = world.lease()
    (host,) = world.hosts_of(lease)
    with growing(metrics.POWER_MOVES, state="waking", reason="start"):
        world.run()
    assert world.now(lease).status is not LeaseStatus.ERROR
    assert states(world)[host] is PowerState.WAKING
    event = world.now(lease).event(EventType.START)
    assert event.cause.code is ReasonCode.HOST_WAKING
    assert event.cause.until == world.clock.now() + 11 * MINUTE
    for _ in range(30):
        world.clock.by(seconds=30)
        world.run()
    assert world.now(lease).event(EventType.START).cause.code is ReasonCode.HOST_WAKING
    assert not failed(world)
    with world.engine.begin() as connection:
        (entry,) = connection.execute(power_log.select()).all()
    assert (entry.before, entry.after, entry.reason) == ("off", "waking", "start")
    wake(world, host)
    world.clock.by(seconds=10)
    world.run()
    lease = world.now(lease)
    assert lease.status is LeaseStatus.ACTIVE
    assert world.pool(lease.reservations[0].id) == {host}


def test_what_does_not_wake_is_replaced_by_the_start(start):
    world = start()
    sleep(world, "node-1", "node-2", "node-3")
    lease = world.lease()
    (host,) = world.hosts_of(lease)
    world.run()
    wake(world, host, PowerReason.TIMED_OUT)
    other = min({"node-1", "node-2", "node-3"} - {host})
    wake(world, other)
    look(world)
    world.clock.by(minutes=1)
    world.run()
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert world.pool(world.now(lease).reservations[0].id) == {other}


def test_the_statements_of_a_start_do_not_grow_with_the_hosts_that_sleep(start):
    world = start(hosts=6)
    sleep(world, *(f"node-{number}" for number in range(1, 7)))
    costs = []
    for hosts in (1, 4):
        world.lease(a_host(hosts))
        with counted(world.engine) as statements:
            world.run()
        costs.append(statements.count)
    assert len(set(costs)) == 1


def test_an_immediate_lease_takes_awake_hosts_only(start):
    world = start()
    sleep(world, "node-1", "node-2")
    with pytest.raises(NotEnoughResources, match="1 of them sleeps, and is awake in 11 minutes; ask for a lease that"):
        world.lease(a_host(2), kind=LeaseKind.IMMEDIATE)
    lease = world.lease(a_host(1, 3), kind=LeaseKind.IMMEDIATE)
    assert world.hosts_of(lease) == {"node-3"}
    with pytest.raises(NotEnoughResources, match="3 of them free|requested"):
        world.lease(a_host(5), kind=LeaseKind.IMMEDIATE)


@pytest.mark.parametrize(
    ("lines", "compact"),
    [
        ((), False),
        (("[power]", "mode = dry_run"), False),
        (ON, True),
        (("[physical:host]", "placement = compact"), True),
        ((*ON, "[physical:host]", "placement = roomy"), False),
    ],
    ids=["default", "dry run", "on", "compact", "roomy"],
)
def test_hosts_are_chosen_as_the_file_says(start, lines, compact):
    """Of hosts that suit, the one with the shortest gap beside the lease, or the one with the longest."""
    world = start(*(lines or ("[manager]",)))
    first = world.hosts_of(world.lease(start=HOUR, hours=1))
    second = world.hosts_of(world.lease(start=3 * HOUR, hours=1))
    assert (first == second) is compact


def availability(world: World, *, in_: timedelta, hosts: int = 1) -> FreeWindow:
    """Return the opening that begins then."""
    start = world.clock.now() + in_
    asked = AvailabilityQuestion(
        Actor("curie", PROJECT), reservations=(a_host(hosts),), start=start, end=start + 2 * HOUR, limit=1
    )
    return world.manager.availability.find(asked).openings[0]


def test_before_one_books_it_is_said_that_hosts_sleep(start):
    """In an opening, in a dry run, and in the answer to who books."""
    world = start()
    sleep(world, "node-2", "node-3")
    ready = world.clock.now() + 11 * MINUTE
    assert availability(world, in_=MINUTE).waking is None
    assert availability(world, in_=MINUTE, hosts=2).waking == WakingHosts(1, ready)
    assert availability(world, in_=12 * MINUTE, hosts=2).waking is None
    start_at = world.clock.now() + MINUTE
    request = LeaseRequest("a", "curie", PROJECT, start_at, start_at + HOUR, reservations=(a_host(3),), dry_run=True)
    assert world.manager.leases.book(request).details.waking == WakingHosts(2, ready)
    assert world.manager.leases.book(replace(request, dry_run=False)).details.waking == WakingHosts(2, ready)


@pytest.mark.parametrize(("mode", "more"), [("on", 1), ("off", 0)])
def test_an_opening_costs_one_statement_more_only_if_it_is_near(start, mode, more):
    world = start("[power]", f"mode = {mode}")
    costs = []
    for ahead in (HOUR, HOUR, MINUTE):
        with counted(world.engine) as statements:
            availability(world, in_=ahead)
        costs.append(statements.count)
    assert costs[2] == costs[1] + more


def remember_wakes(world: World, took: timedelta, *, times: int = 50) -> None:
    """Let hosts have been woken so often, each time within as long."""
    at, host = world.clock.now() - HOUR, world.manager.resources.all(HOST)[0]
    row = {"resource_id": host.id, "at": at, "seconds": int(took.total_seconds()), "rehearsed": False}
    row |= {"before": str(PowerState.WAKING), "after": str(PowerState.ON), "reason": str(PowerReason.DONE)}
    with world.engine.begin() as connection:
        connection.execute(power_log.insert(), [row] * times)


def test_what_is_said_of_a_wake_is_what_was_learned_of_wakes(start):
    world = start()
    remember_wakes(world, 4 * MINUTE)
    sleep(world, "node-1", "node-2", "node-3")
    ready = world.clock.now() + 5 * MINUTE
    assert availability(world, in_=MINUTE).waking == WakingHosts(1, ready)
    with pytest.raises(NotEnoughResources, match="awake in 5 minutes"):
        world.lease(kind=LeaseKind.IMMEDIATE)
    # 15 minutes of an attempt that fails, 4 of the next, and 5 of margin: what begins then takes any host.
    assert world.hosts_of(world.lease(start=25 * MINUTE)) <= {"node-1", "node-2", "node-3"}
    lease = world.lease()
    world.run()
    assert world.now(lease).event(EventType.START).cause.until == ready


def test_a_slow_class_is_known_to_be_asleep_for_longer(start):
    world = start()
    remember_wakes(world, 20 * MINUTE)
    sleep(world, "node-1", "node-2")
    assert world.hosts_of(world.lease(start=39 * MINUTE)) == {"node-3"}


def test_the_sentence_counts_hosts(start):
    ready = NOON + MINUTE
    assert render_waking(None) is None
    assert render_waking(WakingHosts(1, ready)) == {
        "hosts": 1,
        "pools": 0,
        "ready_at": "2030-04-01T12:01:00Z",
        "message": "1 of its hosts sleeps, and is woken for it; it begins at about 2030-04-01T12:01:00Z",
    }
    assert "2 of its hosts sleep, and are woken" in render_waking(WakingHosts(2, ready))["message"]
    assert render_waking(WakingHosts(0, ready, 1))["message"].startswith("1 of its volume pools sleeps, and is")
    both = render_waking(WakingHosts(1, ready, 1))["message"]
    assert both.startswith("1 of its hosts and 1 of its volume pools sleep, and are woken")


def test_a_start_at_once_waits_until_the_worker_has_woken_its_host(start):
    """With the work that switches hosts: the wait is known before, and the time until then is not handed over."""
    world = start(*ON, "spare = 0", hosts=1)
    give_switches(world)
    world.clock.by(hours=1)
    pass_time(world, 5 * MINUTE)
    assert states(world) == {"node-1": PowerState.OFF}
    with pytest.raises(NotEnoughResources, match="is awake in 11 minutes"):
        world.lease(kind=LeaseKind.IMMEDIATE)
    lease = world.lease()
    begun = world.clock.now()
    while world.now(lease).status is not LeaseStatus.ACTIVE:
        world.run()
        pass_time(world, 10 * timedelta(seconds=1), step=10 * timedelta(seconds=1))
        world.manager.monitor.run_once()
        assert not failed(world)
        assert world.clock.now() < begun + 15 * MINUTE
    assert world.now(lease).reservations[0].handed_over_at > begun
    assert world.pool(lease.reservations[0].id) == {"node-1"}


def test_the_end_of_a_window_opens_no_host_that_sleeps(start):
    world = start(*ON, "spare = 0", hosts=1)
    give_switches(world)
    world.clock.by(hours=1)
    pass_time(world, 5 * MINUTE)
    made = opened(world, "node-1", start=2 * HOUR, disable_service=True)
    world.clock.to(made.window.start)
    world.manager.maintenance_work.run_once()
    world.manager.maintenances.end(made.id)
    world.manager.maintenance_work.run_once()
    assert states(world) == {"node-1": PowerState.OFF}
    assert mark(world) == MARK
    nights.wake(world)
    pass_time(world, 10 * MINUTE)
    assert mark(world) is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"adapter": None}, "is off, and it has no adapter by which it could be woken"),
        ({"state": "waking"}, "is waking, and nobody works on that: wake it once more"),
        ({"state": "waking", "due_at": NOON, "since": NOON - 2 * HOUR}, "it has been so for more than an hour"),
    ],
    ids=["no adapter", "nobody", "long"],
)
def test_a_host_whose_sleep_nothing_explains_is_named(start, values, said):
    world = start()
    sleep(world, "node-1")
    note(world, "node-2", PowerState.ON)
    known = {"adapter": "simulated", "target": "node-1", **values}
    with world.engine.begin() as connection:
        connection.execute(host_power.update().where(host_power.c.state == "off").values(known))
    (found,) = world.manager.problems.check_books()
    assert found.startswith("the power of host node-1 ")
    assert said in found


def test_a_host_that_sleeps_for_a_lease_that_has_begun_is_named(start):
    world = start()
    lease = world.lease(a_host(3), hours=5)
    sleep(world, "node-1")
    with world.engine.begin() as connection:
        connection.execute(host_power.update().values(adapter="simulated", target="node-1"))
    assert world.manager.problems.check_books() == ()
    world.run()
    world.clock.by(hours=1.5)
    assert world.now(lease).status is not LeaseStatus.ERROR
    assert "node-1 is waking" in str(world.manager.problems.check_books())


def test_a_lease_in_use_grows_by_a_host_that_sleeps_once_that_is_awake(start):
    world = start(hosts=2)
    lease = world.lease(hours=5)
    world.run()
    (held,) = world.hosts_of(lease)
    (other,) = {"node-1", "node-2"} - {held}
    sleep(world, other)
    with pytest.raises(CloudUnavailable, match="1 host being woken: node-"):
        world.resize(lease, min=2, max=2)
    world.run()
    assert (world.hosts_of(lease), states(world)[other]) == ({held}, PowerState.WAKING)
    assert not failed(world)
    wake(world, other)
    world.resize(world.now(lease), min=2, max=2)
    assert world.pool(lease.reservations[0].id) == {held, other}
