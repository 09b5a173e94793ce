# SPDX-License-Identifier: Apache-2.0
"""Hosts that sleep when they are needed soon: they are taken last, and woken for what has them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil

from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import later
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.reasons import Cause, ReasonCode, spell_count
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.classes import POWERED
from blazar.model.power.settings import MINUTE
from blazar.model.power.states import ALL_AWAKE, AsleepHosts, PowerReason, WakingHosts, time_of_ramp
from blazar.model.resources.resource import HOST, VOLUME, noun
from blazar.observe import metrics
from blazar.resources.contract.values import NotYet, Task

RECHECK = timedelta(seconds=5)
"""How long a start waits before it looks again whether its hosts are awake."""


def read_asleep(runtime: Runtime, start: datetime, now: datetime) -> AsleepHosts:
    """Return the hosts that sleep, if a start is so near that their wake is not sure before it.

    At most one statement, and four once an hour; none while hosts are not switched, or for a start before which all
    hosts can be woken.
    """
    power = runtime.settings.power
    if not power.switches:
        return ALL_AWAKE
    learned = runtime.learned_power(now)
    sure_from = later(now, learned.lead)
    if start >= later(sure_from, time_of_ramp(len(learned.groups), power.ramp)):
        return ALL_AWAKE
    return replace(runtime.store.power.read_asleep(now, learned.wakes), sure_from=sure_from, ramp=power.ramp)


def find_waking(runtime: Runtime, lease: Lease, hosts: Collection[int]) -> WakingHosts | None:
    """Return what the start of a lease with these hosts waits for; None if nothing, or if it has begun."""
    now = runtime.clock.now()
    if not hosts or lease.status is not LeaseStatus.PENDING:
        return None
    asleep = read_asleep(runtime, lease.window.start, now)
    return asleep.find_waking(hosts, max(lease.window.start, now))


def wake_hosts(runtime: Runtime, tasks: Collection[Task], now: datetime) -> AsleepHosts:
    """Have the hosts of reservations woken that sleep; return those that are not awake yet. No statement for others.

    No more are switched on in a minute than the ramp allows.
    """
    held = {r.id for task in tasks for r in task.resources if r.kind in POWERED}
    asleep = read_asleep(runtime, now, now) if held else ALL_AWAKE
    if sleeping := held & asleep.ids:
        ramp = runtime.settings.power.ramp
        for host in runtime.store.power.wake_sleepers(sleeping, PowerReason.START, at=now, ramp=ramp):
            metrics.POWER_MOVES.add(host.state, host.reason)
    return asleep


def await_hosts(task: Task, asleep: AsleepHosts) -> NotYet | None:
    """Return how long a reservation waits for its hosts to be awake; None if they are."""
    sleeping = {r.id: r.name for r in task.resources if r.id in asleep.ready_at}
    if not sleeping:
        return None
    cause = Cause(ReasonCode.HOST_WAKING, resources=frozenset(sleeping), until=asleep.find_ready(sleeping))
    text = f"{spell_count(len(sleeping), _noun(sleeping, asleep))} being woken: {', '.join(sorted(sleeping.values()))}"
    return NotYet(RECHECK, text, cause)


def refuse_sleepers(sleeping: frozenset[int], asleep: AsleepHosts, now: datetime) -> NotEnoughResources:
    """Return the refusal of what must be handed over at once, and would need hosts that sleep."""
    ready = asleep.find_ready(sleeping) or now
    minutes = spell_count(ceil((ready - now) / MINUTE), "minute")
    they = "1 of them sleeps, and is" if len(sleeping) == 1 else f"{len(sleeping)} of them sleep, and are"
    what = _noun(sleeping, asleep)
    return NotEnoughResources(
        f"enough {what}s are free, but {they} awake in {minutes}; ask for a lease that starts then, or for fewer "
        f"{what}s"
    )


def _noun(ids: Collection[int], asleep: AsleepHosts) -> str:
    """Return what sleeps: all of it is of one kind."""
    return noun(VOLUME) if asleep.pools.intersection(ids) else noun(HOST)
