# SPDX-License-Identifier: Apache-2.0
"""The virtual hosts: what is promised of them, their power, and how long it takes them to change it."""

from __future__ import annotations

import random
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from bench.power.traces import ZERO, Month
from blazar.calendar.occupancy import Occupancy, Room
from blazar.calendar.power import HostOutlook, PowerLog
from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.power.states import HostPower, PowerReason, PowerState
from blazar.model.resources.resource import HOST, Resource

WATTS = {PowerState.ON: 180, PowerState.GOING_OFF: 180, PowerState.OFF: 8, PowerState.WAKING: 250}
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
SHUTDOWN = timedelta(minutes=3)
TIMEOUT = timedelta(minutes=15)
OUT = timedelta(hours=12)
"""How long a host that did not wake is out of use."""

Promise = tuple[datetime, datetime, int]
"""Start, end and lease of what is promised of a host."""


class VirtualHosts:
    """Hosts in virtual time. What is read by each plan is kept up to date where it changes."""

    def __init__(self, month: Month) -> None:
        self.draw = random.Random(f"hosts-{month.seed}")
        self.failing = month.failing
        self.resources = [make_host(id_, reservable=True) for id_ in range(month.hosts)]
        self.power = [HostPower(id_, PowerState.ON, ZERO - DAY) for id_ in range(month.hosts)]
        self.uses = {id_: HostOutlook() for id_ in range(month.hosts)}
        self.promises: list[list[Promise]] = [[] for _ in range(month.hosts)]
        self.ready: dict[int, tuple[datetime, bool]] = {}
        self.back: dict[int, datetime] = {}
        self.cycles = [0] * month.hosts
        self.wakes: list[timedelta] = []
        self.failures = 0
        self._within_a_day: deque[tuple[datetime, int]] = deque()
        self._recent: dict[int, int] = {}

    def occupancy(self, window: Window) -> Occupancy:
        """Return what is promised in a window, as the store reads it for a placement."""
        taken, ends, starts = [], {}, {}
        for id_, promises in enumerate(self.promises):
            at = bisect_left(promises, (window.end,))
            if at < len(promises):
                starts[id_] = promises[at][0]
            if at and promises[at - 1][1] > window.start:
                taken.append(id_)
            elif at:
                ends[id_] = promises[at - 1][1]
        return Occupancy.of_uses(taken, {}, Room(window.start, window.end, ends, starts))

    def promise(self, id_: int, promise: Promise, now: datetime) -> None:
        """Promise a host."""
        insort(self.promises[id_], promise)
        self.look(id_, now)

    def withdraw(self, id_: int, promise: Promise, now: datetime) -> None:
        """Take a promise back."""
        self.promises[id_].remove(promise)
        self.look(id_, now)

    def look(self, id_: int, now: datetime) -> None:
        """Note again whether a host is in use, since when it is not, and when it is needed next; drop what is over."""
        promises = self.promises[id_]
        idle_since = self.uses[id_].idle_since
        while promises and promises[0][1] <= now:
            idle_since = promises.pop(0)[1]
        in_use = bool(promises) and promises[0][0] <= now
        following = promises[in_use:]
        self.uses[id_] = HostOutlook(in_use, idle_since, following[0][0] if following else None)

    def read_log(self, now: datetime, changes: int) -> PowerLog:
        """Return what has changed within a day."""
        while self._within_a_day and self._within_a_day[0][0] <= now - DAY:
            _, id_ = self._within_a_day.popleft()
            self._recent[id_] -= 1
        return PowerLog(self._recent, changes)

    def switch_off(self, id_: int, now: datetime) -> None:
        """Begin to switch a host off."""
        self.power[id_] = self.power[id_].move(PowerState.GOING_OFF, PowerReason.IDLE, now)
        self.ready[id_] = now + SHUTDOWN, True
        self.cycles[id_] += 1
        self._within_a_day.append((now, id_))
        self._recent[id_] = self._recent.get(id_, 0) + 1

    def wake(self, id_: int, reason: PowerReason, now: datetime) -> None:
        """Begin to wake a host: it may fail."""
        self.power[id_] = self.power[id_].move(PowerState.WAKING, reason, now)
        fails = self.draw.random() < self.failing
        took = TIMEOUT if fails else timedelta(seconds=self.draw.randrange(300, 601))
        self.ready[id_] = now + took, not fails
        if not fails:
            self.wakes.append(took)

    def advance(self, now: datetime) -> list[int]:
        """Let time pass; return the hosts whose wakes have failed."""
        failed = []
        for id_, (at, works) in list(self.ready.items()):
            if at > now:
                continue
            del self.ready[id_]
            power = self.power[id_]
            if power.state is PowerState.GOING_OFF:
                # What was booked meanwhile has it woken by the next plan.
                self.power[id_] = power.move(PowerState.OFF, PowerReason.DONE, at)
                continue
            reason = PowerReason.DONE if works else PowerReason.TIMED_OUT
            self.power[id_] = power.move(PowerState.ON, reason, at)
            if not works:
                self.set_usable(id_, usable=False)
                self.back[id_] = now + OUT
                self.failures += 1
                failed.append(id_)
        for id_ in [id_ for id_, at in self.back.items() if at <= now]:
            del self.back[id_]
            self.set_usable(id_, usable=True)
        return failed

    def set_usable(self, id_: int, *, usable: bool) -> None:
        """Note that a host has failed, or is repaired."""
        self.power[id_] = replace(self.power[id_], usable=usable)
        self.resources[id_] = make_host(id_, reservable=usable)

    def are_up(self, ids: Iterable[int]) -> bool:
        """Tell whether hosts are on, and work."""
        return all(self.power[id_].is_awake and self.power[id_].usable for id_ in ids)


def make_host(id_: int, *, reservable: bool) -> Resource:
    """Return a host as the calendar has it."""
    return Resource(id_, HOST, str(id_), f"host-{id_:04}", {}, {}, Amounts(), reservable, ZERO)
