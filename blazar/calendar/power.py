# SPDX-License-Identifier: Apache-2.0
"""The plan of sleep: which hosts to switch off, and which to wake, so that each start finds its hosts awake.

The calendar says when a host is needed next, so that it is woken in time, and not when it is missed. Each call takes
one pass over the hosts and sorts some of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from blazar.model.base.values import dataclass, field
from blazar.model.power.settings import MINUTE, USUAL_WAKE, ClassPower, PowerSettings
from blazar.model.power.states import USUAL_SHUTDOWN, HostPower, PowerReason, PowerState

STEP = MINUTE
"""How often a plan is made; what is due before the next one is due now."""

ROOM = timedelta(hours=24)
"""For how long a host must be free to count as a spare: as long as most leases take that start at once. One that is
promised before that would be of no use to them. Where there are too few such hosts, others are better than none."""


@dataclass(frozen=True, slots=True)
class HostOutlook:
    """What is known of the use of a host: whether it is ``in_use``, since when it is not, and when it will be next.

    ``next_start`` is the start of the first promise that has not begun; None if there is none.
    """

    in_use: bool = False
    idle_since: datetime | None = None
    next_start: datetime | None = None


NO_OUTLOOK = HostOutlook()


@dataclass(frozen=True, slots=True)
class PowerLog:
    """What has changed of late: by host how often it was switched off within a day, and how many hosts in a minute."""

    cycles: Mapping[int, int] = field(default_factory=dict)
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Wake:
    """A host to be woken, and why."""

    resource_id: int
    reason: PowerReason


@dataclass(frozen=True, slots=True)
class PowerPlan:
    """What to do now: the hosts to switch off, by calendar id, and those to wake, each in the order of need."""

    off: tuple[int, ...] = ()
    wake: tuple[Wake, ...] = ()


@dataclass(slots=True)
class _Class:
    """The hosts of one class that something may be done about.

    ``roomy`` is how many are awake and free for as long as a spare should be, ``short`` how many only for less.
    """

    limits: ClassPower
    roomy: int = 0
    short: int = 0
    idle: list[HostPower] = field(default_factory=list)
    asleep: list[HostPower] = field(default_factory=list)


def plan(
    now: datetime, uses: Mapping[int, HostOutlook], hosts: Iterable[HostPower], log: PowerLog, settings: PowerSettings
) -> PowerPlan:
    """Return what to do now. ``uses`` by calendar id; a host that is not among them is used by nobody.

    A host is switched off only if it is free, and nothing is promised of it before the lead and ``min_off`` have
    passed. Wakes for starts come first; ``ramp`` is never exceeded: where many hosts are needed at a time, some are
    woken earlier.
    """
    classes: dict[str, _Class] = {}
    needed: list[tuple[datetime, int]] = []
    kept: list[int] = []
    for host in hosts:
        found = classes.get(host.group)
        if found is None:
            found = classes[host.group] = _Class(settings.find_class(host.group))
        use = uses.get(host.resource_id, NO_OUTLOOK)
        if host.state is PowerState.OFF:
            if use.next_start is not None or use.in_use:
                needed.append(((now if use.in_use else use.next_start or now) - found.limits.lead, host.resource_id))
            if not host.sleeps:
                kept.append(host.resource_id)
            elif host.usable and not _is_soon(use, now, found.limits.lead):
                found.asleep.append(host)
        elif host.state is not PowerState.GOING_OFF and not _is_soon(use, now, found.limits.lead):
            if _is_soon(use, now, ROOM):
                found.short += host.usable
            else:
                found.roomy += host.usable
            if _may_sleep(host, use, now, log, settings):
                found.idle.append(host)
    room = max(0, settings.ramp - log.changes)
    due = _select_due(needed, now, settings.ramp)
    # One to be woken for a start is none for a spare; both are in the order of need.
    wakes = [Wake(id_, PowerReason.START) for id_ in due]
    wakes += [Wake(id_, PowerReason.OPERATOR) for id_ in kept if id_ not in due]
    wakes += _select_spares(classes.values(), frozenset(due), uses, log, now, settings.min_off)
    off = _select_sleepers(classes.values(), uses, log, now)
    wakes = wakes[:room]
    return PowerPlan(tuple(off[: room - len(wakes)]), tuple(wakes))


def _is_soon(use: HostOutlook, now: datetime, ahead: timedelta) -> bool:
    """Tell whether a host is used, or will be within a time."""
    return use.in_use or (use.next_start is not None and use.next_start < now + ahead)


def _may_sleep(host: HostPower, use: HostOutlook, now: datetime, log: PowerLog, settings: PowerSettings) -> bool:
    """Tell whether a host may be switched off, whatever the spare is."""
    if host.state is not PowerState.ON or not host.sleeps or not host.usable:
        return False
    if _is_soon(use, now, settings.find_class(host.group).lead + settings.min_off):
        return False
    if host.since > now - settings.min_on or (host.kept_until is not None and host.kept_until > now):
        return False
    if use.idle_since is not None and use.idle_since > now - settings.idle_after:
        return False
    return log.cycles.get(host.resource_id, 0) < settings.cycles_per_day


def _select_due(needed: list[tuple[datetime, int]], now: datetime, ramp: int) -> list[int]:
    """Return the sleeping hosts to be woken for starts now, those needed first at the front.

    ``needed`` has until when each must be woken. From the last one back each has its turn as late as the ramp allows.
    """
    needed.sort(reverse=True)
    due: list[int] = []
    # The turns within the following STEP of those that are taken already, the earliest of them last.
    turns: list[datetime] = []
    for latest, id_ in needed:
        turn = latest if len(turns) < ramp else min(latest, turns[-ramp] - STEP)
        turns.append(turn)
        if turn < now + STEP:
            due.append(id_)
    return due[::-1]


def _select_spares(
    classes: Iterable[_Class],
    due: frozenset[int],
    uses: Mapping[int, HostOutlook],
    log: PowerLog,
    now: datetime,
    rest: timedelta,
) -> list[Wake]:
    """Return the sleeping hosts to be woken so that each class has its spare: those longest without a promise.

    Hosts that were switched off within ``rest`` come last.
    """
    found: list[Wake] = []
    for one in classes:
        if one.roomy >= one.limits.spare:
            continue
        asleep = [host for host in one.asleep if host.resource_id not in due]
        asleep.sort(key=lambda host: (host.since > now - rest, *_order_of_sleep(host, uses, log)))
        parts = _split_by_room(asleep, uses, now)
        woken = parts[0][: one.limits.spare - one.roomy]
        woken += parts[1][: max(0, one.limits.spare - one.roomy - one.short - len(woken))]
        found += [Wake(host.resource_id, PowerReason.SPARE) for host in woken]
    return found


def _select_sleepers(
    classes: Iterable[_Class], uses: Mapping[int, HostOutlook], log: PowerLog, now: datetime
) -> list[int]:
    """Return the hosts that no class needs as a spare: those longest without a promise first."""
    found: list[HostPower] = []
    for one in classes:
        one.idle.sort(key=lambda host: _order_of_sleep(host, uses, log))
        roomy, short = _split_by_room(one.idle, uses, now)
        found += roomy[: max(0, one.roomy - one.limits.spare)]
        # Those promised first are the least use as a spare.
        short.reverse()
        found += short[: max(0, one.short - max(0, one.limits.spare - one.roomy))]
    return [host.resource_id for host in found]


def _split_by_room(
    hosts: Iterable[HostPower], uses: Mapping[int, HostOutlook], now: datetime
) -> tuple[list[HostPower], list[HostPower]]:
    """Return the hosts that are free for as long as a spare should be, and the others."""
    roomy: list[HostPower] = []
    short: list[HostPower] = []
    for host in hosts:
        (short if _is_soon(uses.get(host.resource_id, NO_OUTLOOK), now, ROOM) else roomy).append(host)
    return roomy, short


def _order_of_sleep(host: HostPower, uses: Mapping[int, HostOutlook], log: PowerLog) -> tuple[float, int, int]:
    """Return the key by which a host sleeps longest: its next promise the latest, and then the fewest cycles."""
    start = uses.get(host.resource_id, NO_OUTLOOK).next_start
    far = float("-inf") if start is None else -start.timestamp()
    return far, log.cycles.get(host.resource_id, 0), host.resource_id


# A dry run: how hosts would go on that a plan would have switched, if each switch succeeded.


def rehearse_time(
    hosts: Iterable[HostPower], outlooks: Mapping[int, HostOutlook], now: datetime
) -> Mapping[int, HostPower]:
    """Return, by calendar id, the hosts that would be in another state by now, whatever is planned next."""
    found = {}
    for host in hosts:
        in_use = outlooks.get(host.resource_id, NO_OUTLOOK).in_use
        if host.state is PowerState.GOING_OFF and in_use:
            found[host.resource_id] = host.move(PowerState.WAKING, PowerReason.NEEDED, now)
        elif host.state is PowerState.GOING_OFF and host.since <= now - USUAL_SHUTDOWN:
            found[host.resource_id] = host.move(PowerState.OFF, PowerReason.DONE, now)
        elif host.state is PowerState.WAKING and host.since <= now - USUAL_WAKE:
            found[host.resource_id] = host.move(PowerState.ON, PowerReason.DONE, now)
        elif host.state is PowerState.WAKING and in_use and host.since < now:
            # Its lease would have had it late; in truth it is there, and the rehearsal goes on from that.
            found[host.resource_id] = host.move(PowerState.ON, PowerReason.MISSED, now)
    return found


def rehearse_plan(planned: PowerPlan, hosts: Mapping[int, HostPower], now: datetime) -> Mapping[int, HostPower]:
    """Return, by calendar id, the hosts that a plan would switch, in their next state."""
    found = {
        wake.resource_id: hosts[wake.resource_id].move(PowerState.WAKING, wake.reason, now) for wake in planned.wake
    }
    for id_ in planned.off:
        found[id_] = hosts[id_].move(PowerState.GOING_OFF, PowerReason.IDLE, now)
    return found
