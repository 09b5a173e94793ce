# SPDX-License-Identifier: Apache-2.0
"""Bursts: many starts at one instant, and starts beside ends that take minutes."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from bench.ground import Ground, database
from bench.kinds import Kind
from blazar.clouds.simulated import Faults
from blazar.model.base.clock import SystemClock
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseRequest, ReservationRequest
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.store.sql.tables import leases

LATENCY = timedelta(milliseconds=50)


class ShiftedClock(SystemClock):
    """The clock of the machine, some way ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta(0)

    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def burst(base: str, kind: Kind, count: int = 500) -> dict[str, object]:
    """Start ``count`` leases that are due at once in a cloud that takes 50 ms for every call."""
    with database(base) as engine:
        clock, faults = ShiftedClock(), Faults()
        ground = Ground(engine, count, kind=kind, faults=faults, clock=clock)
        start = clock.now().replace(second=0, microsecond=0) + timedelta(hours=2)
        for _ in range(count):
            create(ground, start)
        faults.latency = LATENCY
        # Three seconds before the hour, so that the engine sleeps when it comes.
        clock.ahead = start - datetime.now(UTC) - timedelta(seconds=3)
        calls = faults.calls.total()
        cpu = time.process_time()
        ground.manager.start()
        wait(ground, LeaseStatus.ACTIVE, count)
        cpu = time.process_time() - cpu
        ground.manager.stop()
        late = lateness(found(ground, LeaseStatus.ACTIVE), EventType.START, start)
    return {
        "database": base,
        "type": kind.resource_type,
        "starts": count,
        "latency_ms": 50,
        "calls_each": round((faults.calls.total() - calls) / count, 1),
        "cpu_ms_each": round(1000 * cpu / count, 2),
        "first_late_s": round(late[0], 2),
        "last_late_s": round(late[-1], 2),
        "per_second": round(count / late[-1], 1),
    }


def crowd(base: str, count: int = 3000) -> dict[str, object]:
    """Start a lease of one project beside very many without reservations, and 100 with a host, of another one."""
    hosts = 101
    with database(base) as engine:
        clock, faults = ShiftedClock(), Faults()
        ground = Ground(engine, hosts, faults=faults, clock=clock)
        start = clock.now().replace(second=0, microsecond=0) + timedelta(hours=2)
        for _ in range(count):
            until = start + timedelta(hours=5)
            ground.manager.leases.create(LeaseRequest("x", "u", "many", start, until))
        for _ in range(hosts - 1):
            create(ground, start)
        other = create(ground, start, project="other")
        faults.latency = LATENCY
        clock.ahead = start - datetime.now(UTC) - timedelta(seconds=3)
        cpu = time.process_time()
        ground.manager.start()
        wait(ground, LeaseStatus.ACTIVE, count + hosts)
        cpu = time.process_time() - cpu
        ground.manager.stop()
        late = {each.id: each for each in found(ground, LeaseStatus.ACTIVE)}
        event = late[other.id].event(EventType.START)
    return {
        "database": base,
        "starts": count + hosts,
        "cpu_ms_each": round(1000 * cpu / (count + hosts), 2),
        "other_late_s": round((event.updated_at - start).total_seconds(), 2),
        "last_late_s": round(lateness(list(late.values()), EventType.START, start)[-1], 2),
    }


def beside_slow_ends(kind: str, starts: int = 10, ends: int = 3) -> dict[str, object]:
    """Start leases while others end whose servers take minutes to go."""
    with database(kind) as engine:
        clock, faults = ShiftedClock(), Faults()
        ground = Ground(engine, starts + ends, faults=faults, clock=clock, deletion_takes=timedelta(minutes=5))
        begin = clock.now().replace(second=0, microsecond=0)
        turn = begin + timedelta(hours=2)
        # On different hosts: who needs the very host that is being left waits for it, and should.
        left = json.dumps(["in", "$hypervisor_hostname", [f"node-{number}" for number in range(1, ends + 1)]])
        ending = [create(ground, begin, turn, needs=left) for _ in range(ends)]
        ground.manager.engine.run_due()
        for aggregate in ground.simulated.compute.aggregates():
            for host in aggregate.hosts if (aggregate.availability_zone or "").startswith("blazar_") else ():
                ground.simulated.users.boot_server("busy", project_id="p", user_id="u", host=host)
        for _ in range(starts):
            create(ground, turn, needs=f'["not", {left}]')
        faults.latency = LATENCY
        clock.ahead = turn - datetime.now(UTC) - timedelta(seconds=2)
        ground.manager.start()
        wait(ground, LeaseStatus.ACTIVE, starts)
        late = lateness(found(ground, LeaseStatus.ACTIVE), EventType.START, turn)
        still = [ground.store.leases.one(lease.id).status for lease in ending]
        ground.manager.stop()
    return {
        "database": kind,
        "starts": starts,
        "slow_ends": ends,
        "ends_still_going": sum(status is LeaseStatus.TERMINATING for status in still),
        "last_start_late_s": round(late[-1], 2),
    }


def create(
    ground: Ground, start: datetime, end: datetime | None = None, *, needs: str = "", project: str = "p"
) -> Lease:
    room = {**ground.kind.starts, **({"resource_properties": needs} if needs else {})}
    reservation = ReservationRequest(ground.kind.resource_type, room)
    until = end or start + timedelta(hours=5)
    return ground.manager.leases.create(LeaseRequest("x", "u", project, start, until, reservations=(reservation,)))


def wait(ground: Ground, status: LeaseStatus, count: int) -> None:
    """Return as soon as so many leases are in a state; counted only, so that the wait is no work beside the rest."""
    limit = time.monotonic() + 180
    number = sa.select(sa.func.count()).where(leases.c.status == str(status))
    while time.monotonic() < limit:
        with ground.engine.connect() as connection:
            there = connection.execute(number).scalar_one()
        if there >= count:
            return
        time.sleep(0.2)
    raise RuntimeError(f"{there} of {count} leases are {status} after three minutes")


def found(ground: Ground, status: LeaseStatus) -> list[Lease]:
    """Return the leases in a state."""
    return [lease for lease in ground.store.leases.of_project(None) if lease.status is status]


def lateness(started: list[Lease], kind: EventType, due: datetime) -> list[float]:
    events = [lease.event(kind) for lease in started]
    return sorted((event.updated_at - due).total_seconds() for event in events)
