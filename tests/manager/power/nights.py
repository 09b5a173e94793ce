# SPDX-License-Identifier: Apache-2.0
"""Hosts that sleep: a service that switches its simulated hosts, and what must hold at each instant."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from blazar.clouds.simulated.machines import PowerFault
from blazar.clouds.simulated.state import HostState, State
from blazar.manager.service import ManagerService
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.power.states import MARK, HostPower, PowerState
from blazar.model.resources.resource import HOST, Resource
from blazar.store.sql.tables import power_log
from tests.world import World

ON = ("[power]", "mode = on")
NO_SPARE = (*ON, "spare = 0")
HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def hosts_of(world: World) -> list[Resource]:
    return sorted(world.store.resources.catalog(HOST).resources, key=lambda host: host.id)


def give_switches(world: World) -> None:
    """Give each host a switch."""
    for host in hosts_of(world):
        address = PowerAddress(PowerAdapter.SIMULATED, host.name)
        world.store.power_hosts.change(host.external_id, PowerChange(address), at=world.clock.now())


def wake(world: World, number: int = 1, *, kept: timedelta = timedelta(0)) -> None:
    """Have a host on for as long, as an operator asks for it."""
    now = world.clock.now()
    world.store.power_hosts.wake(hosts_of(world)[number - 1].external_id, at=now, kept_until=now + kept)


def power(world: World, number: int = 1) -> HostPower:
    """Return the power of the host ``node-<number>``, as stored."""
    host = hosts_of(world)[number - 1]
    return world.store.power.read_hosts_power(world.clock.now())[host.id]


def states(world: World) -> list[PowerState]:
    found = world.store.power.read_hosts_power(world.clock.now())
    return [found[host.id].state for host in hosts_of(world)]


def has_power(world: World, number: int = 1) -> bool:
    with world.simulated.inspect() as state:
        machine = state.machines.get(f"node-{number}")
        return machine is None or machine.is_on(world.clock.now())


def is_up(world: World, number: int = 1) -> bool:
    """Tell whether the nova-compute of a host is up."""
    with world.simulated.inspect() as state:
        return state.is_up(_host(state, number), world.clock.now())


def mark(world: World, number: int = 1) -> str | None:
    """Return why a host is disabled in Nova; None if it is not."""
    with world.simulated.inspect() as state:
        host = _host(state, number)
        return None if host.enabled else host.disabled_reason


def _host(state: State, number: int) -> HostState:
    return next(host for host in state.hosts.values() if host.name == f"node-{number}")


def spoil(world: World, fault: PowerFault | None, number: int = 1) -> None:
    world.simulated.operators.spoil_power(f"node-{number}", fault)


def repair_wake(world: World) -> None:
    """Let a host that sleeps miss its first wake for a lease, and be well again; the start of the lease comes."""
    lease = world.lease(start=3 * HOUR)
    spoil(world, PowerFault.SLEEPS_ON)
    pass_time(world, 2 * HOUR + 32 * MINUTE, step=10 * MINUTE)
    assert states(world) == [PowerState.WAKING]
    spoil(world, None)
    pass_time(world, lease.window.start - world.clock.now())


def work(*managers: ManagerService) -> None:
    """Have managers do what is due now."""
    for manager in managers:
        for part in manager.power_work[:2]:
            part.run_once()


def pass_time(world: World, span: timedelta, *managers: ManagerService, step: timedelta = MINUTE) -> list[PowerState]:
    """Let time pass while managers, by default one, plan and switch; return the states in which node-1 was.

    Each work is done as soon as it is due, and ``step`` after the last one.
    """
    clock, until = world.clock, world.clock.now() + span
    first = hosts_of(world)[0].id
    found = [power(world).state]
    while clock.now() < until:
        work(*(managers or (world.manager,)))
        hosts = check_safe(world)
        if found[-1] is not hosts[first].state:
            found.append(hosts[first].state)
        clock.to(max(clock.now(), min(until, clock.now() + step, world.store.switches.next_due() or until)))
    return found


def check_safe(world: World) -> Mapping[int, HostPower]:
    """Check what must hold at any instant, and return the power of all hosts.

    What sleeps is closed, runs no server and has no power, unless somebody else has just switched it on; and what is on
    is open, or closed by somebody else.
    """
    hosts = world.store.power.read_hosts_power(world.clock.now())
    names = {host.id: host.name for host in hosts_of(world)}
    with world.simulated.inspect() as state:
        closed = {host.name: host.disabled_reason for host in state.hosts.values() if not host.enabled}
        occupied = {server.location(world.clock.now()) for server in state.servers.values()}
    for id_, host in hosts.items():
        if host.state is PowerState.OFF:
            assert names[id_] in closed, f"{names[id_]} sleeps and is open"
            assert names[id_] not in occupied, f"{names[id_]} sleeps with a server"
        if host.state is PowerState.ON:
            assert closed.get(names[id_]) != MARK, f"{names[id_]} is on and closed"
    return hosts


def log(world: World, number: int = 1) -> list[tuple[str, str]]:
    """Return the moves of a host: to which state, and why."""
    host = hosts_of(world)[number - 1]
    with world.engine.connect() as connection:
        query = power_log.select().where(power_log.c.resource_id == host.id).order_by(power_log.c.id)
        return [(row.after, row.reason) for row in connection.execute(query)]
