# SPDX-License-Identifier: Apache-2.0
"""A month in steps of a minute: leases are booked, start and end, and the plan of the product switches hosts.

What must never happen is asserted at each step.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import perf_counter

from bench.power.hosts import DAY, MINUTE, WATTS, VirtualHosts
from bench.power.traces import ZERO, Booking, Month, draw_bookings
from blazar.calendar.occupancy import Snapshot
from blazar.calendar.placement import Strategy, place
from blazar.calendar.power import PowerPlan, plan
from blazar.model.base.errors import NotEnoughResources
from blazar.model.base.window import Window
from blazar.model.calendar.demand import Demand
from blazar.model.power.learning import NearRequest, learn_lead, learn_spare
from blazar.model.power.settings import ClassPower, PowerSettings
from blazar.model.power.states import PowerState
from blazar.model.resources.resource import HOST

NOT_COUNTED = 2 * DAY
"""The first days of a month, in which the cloud fills."""

GRACE = MINUTE
"""A start is late if not all of its hosts are up so long after it."""


@dataclass
class Tally:
    """What came of a month."""

    starts: int = 0
    planned: int = 0
    late: int = 0
    late_planned: int = 0
    refused: int = 0
    healed: int = 0
    idle_joules: float = 0
    spent_joules: float = 0
    slowest_plan: float = 0
    plan_seconds: float = 0
    spares: list[int] = field(default_factory=list)


class World:
    """One month. ``run`` returns its figures."""

    def __init__(self, month: Month) -> None:
        self.month = month
        self.hosts = VirtualHosts(month)
        self.settings = PowerSettings()
        self.tally = Tally()
        self.held: dict[int, set[int]] = {}
        self.bookings: dict[int, Booking] = {}
        self.events: list[tuple[datetime, int, int]] = []
        self.requests: list[NearRequest] = []
        self.changed: deque[datetime] = deque()
        # Until when what was booked nearer than the lead explains that a host sleeps.
        self.excused: dict[int, datetime] = {}

    def run(self) -> dict[str, object]:
        """Live through the month."""
        coming = deque(draw_bookings(self.month))
        now, end = ZERO, ZERO + self.month.days * DAY
        while now < end:
            for id_ in self.hosts.advance(now):
                self.heal(id_, now)
            self.pass_events(now)
            while coming and coming[0].at <= now:
                self.book(coming.popleft(), now)
            self.switch(now)
            self.check(now)
            if now >= ZERO + NOT_COUNTED:
                self.measure()
            now += MINUTE
        return self.figures()

    def book(self, booking: Booking, now: datetime) -> None:
        """Book a lease as the product does: hosts that are awake first if it starts before a wake is sure."""
        near = booking.start < now + self.lead
        if near:
            self.requests.append(NearRequest(now, booking.hosts))
        chosen = self.choose(Window(booking.start, booking.end), booking.hosts, near=near)
        if chosen is None:
            self.tally.refused += 1
            return
        self.held[booking.number], self.bookings[booking.number] = set(chosen), booking
        for id_ in chosen:
            self.give(id_, booking, now)
        for at in (booking.start, booking.start + GRACE, booking.end):
            heapq.heappush(self.events, (at, booking.number, (at - booking.start).seconds))

    def choose(self, window: Window, count: int, *, near: bool) -> frozenset[int] | None:
        """Return hosts for a window; None if not so many are free."""
        asleep = frozenset(p.resource_id for p in self.hosts.power if not p.is_awake) if near else frozenset()
        snapshot = Snapshot(self.hosts.resources, self.hosts.occupancy(window), asleep)
        try:
            return place([Demand(HOST, count, count)], snapshot, strategy=Strategy(self.month.strategy)).resource_ids
        except NotEnoughResources:
            return None

    def give(self, id_: int, booking: Booking, now: datetime) -> None:
        self.hosts.promise(id_, (booking.start, booking.end, booking.number), now)
        if booking.start < now + self.lead + 5 * MINUTE:
            self.excused[id_] = now + 5 * MINUTE

    def heal(self, failed: int, now: datetime) -> None:
        """Give other hosts to the leases that need one that did not wake, before it is back."""
        for promise in list(self.hosts.promises[failed]):
            start, end, number = promise
            if start > self.hosts.back[failed]:
                continue
            begin = max(start, now)
            found = self.choose(Window(begin, end), 1, near=begin < now + self.lead)
            if found is None:
                continue
            self.hosts.withdraw(failed, promise, now)
            (other,) = found
            self.give(other, replace(self.bookings[number], start=begin), now)
            self.held[number] ^= {failed, other}
            self.tally.healed += 1

    def pass_events(self, now: datetime) -> None:
        """Let leases begin and end."""
        while self.events and self.events[0][0] <= now:
            at, number, since = heapq.heappop(self.events)
            booking = self.bookings[number]
            for id_ in self.held[number]:
                self.hosts.look(id_, now)
            if since == GRACE.seconds and at == booking.start + GRACE and at >= ZERO + NOT_COUNTED:
                late = not self.hosts.are_up(self.held[number])
                self.tally.starts += 1
                self.tally.planned += not booking.at_once
                self.tally.late += late
                self.tally.late_planned += late and not booking.at_once

    def switch(self, now: datetime) -> None:
        """Do what the plan says."""
        if now.minute == 0:
            self.settings = replace(self.settings, classes={"": self.learn(now)})
        while self.changed and self.changed[0] <= now - MINUTE:
            self.changed.popleft()
        log = self.hosts.read_log(now, len(self.changed))
        before = perf_counter()
        found = plan(now, self.hosts.uses, self.hosts.power, log, self.settings)
        took = perf_counter() - before
        self.tally.plan_seconds += took
        self.tally.slowest_plan = max(self.tally.slowest_plan, took)
        self.check_plan(found, now)
        for wake in found.wake:
            self.hosts.wake(wake.resource_id, wake.reason, now)
        for id_ in found.off:
            self.hosts.switch_off(id_, now)
        self.changed.extend([now] * (len(found.wake) + len(found.off)))

    def learn(self, now: datetime) -> ClassPower:
        """Return the lead and the spare as the product would have them at an instant."""
        lead = learn_lead(self.hosts.wakes, self.settings.wake_timeout)
        if self.month.lead:
            lead = timedelta(minutes=self.month.lead)
        spare = self.month.spare
        if self.month.learned:
            spare = learn_spare(self.requests, self.month.hosts, now=now).hosts
        self.tally.spares.append(spare)
        return ClassPower(lead, spare)

    @property
    def lead(self) -> timedelta:
        """How long before a start a host is woken."""
        return self.settings.find_class("").lead

    def check_plan(self, found: PowerPlan, now: datetime) -> None:
        """Assert that no host is switched off that is used or promised before it could sleep, nor too often."""
        assert len(self.changed) + len(found.off) + len(found.wake) <= self.settings.ramp
        for id_ in found.off:
            at = [start for start, end, _ in self.hosts.promises[id_] if end > now]
            assert all(start >= now + self.lead + self.settings.min_off for start in at), f"host {id_} is needed"
            assert self.hosts.read_log(now, 0).cycles.get(id_, 0) < self.settings.cycles_per_day

    def check(self, now: datetime) -> None:
        """Assert that a host that sleeps is not needed within the lead, unless that was booked a moment ago."""
        for id_, power in enumerate(self.hosts.power):
            if power.state is PowerState.OFF and (start := self.hosts.uses[id_].next_start) is not None:
                near = start < now + self.lead - MINUTE
                assert not near or self.excused.get(id_, now) > now, f"host {id_} is not woken in time"

    def measure(self) -> None:
        """Add what hosts that nobody uses take in a minute, and what they would take if they were on."""
        for id_, power in enumerate(self.hosts.power):
            if not self.hosts.uses[id_].in_use:
                self.tally.idle_joules += 60 * WATTS[PowerState.ON]
                self.tally.spent_joules += 60 * WATTS[power.state]

    def figures(self) -> dict[str, object]:
        """Return what came of the month, in numbers."""
        tally, days = self.tally, self.month.days
        return {
            "saved": 1 - tally.spent_joules / tally.idle_joules,
            "starts": tally.starts,
            "planned": tally.planned,
            "late": tally.late,
            "late_planned": tally.late_planned,
            "refused": tally.refused,
            "failed_wakes": self.hosts.failures,
            "healed": tally.healed,
            "spare": sum(tally.spares) / len(tally.spares),
            "cycles": sum(self.hosts.cycles) / self.month.hosts / days,
            "most_cycles": max(self.hosts.cycles) / days,
            "plan_ms": 1000 * tally.plan_seconds / (days * 1440),
            "slowest_plan_ms": 1000 * tally.slowest_plan,
        }
