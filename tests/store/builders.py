# SPDX-License-Identifier: Apache-2.0
"""Leases, hosts and allocations made by hand, for tests that speak to the store alone."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.pools import UnitLimits
from blazar.model.resources.resource import HOST, Resource, ResourceDetails, ResourceInventory
from blazar.store.booking.commit import Commit, LeaseWrite
from blazar.store.store import Store

HOST = HOST
NOON = datetime(2030, 4, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hours(start: float, end: float) -> Window:
    """A window in hours from noon."""
    return Window(NOON + start * HOUR, NOON + end * HOUR)


def details(vcpus: int, *, traits: Collection[str] = ()) -> ResourceDetails:
    inventory = ResourceInventory(Amounts.of({"VCPU": vcpus}), {"VCPU": UnitLimits(most=vcpus)}, frozenset(traits))
    return ResourceDetails({"vcpus": vcpus}, inventory)


def a_host(store: Store, number: int = 1, **capabilities: str) -> Resource:
    return store.resources.add(
        HOST,
        external_id=str(number),
        name=f"node-{number}",
        details=details(16),
        capabilities=capabilities,
        at=NOON,
    )


def a_lease(window: Window, *, project: str = "physics") -> Lease:
    return Lease(
        id=str(uuid.uuid4()),
        name="a lease",
        user_id="curie",
        project_id=project,
        window=window,
        status=LeaseStatus.PENDING,
        created_at=NOON,
        reservations=(
            Reservation(
                str(uuid.uuid4()),
                "physical:host",
                None,
                ReservationStatus.PENDING,
                NOON,
                parameters=Content({"min": 1}),
            ),
        ),
        events=(
            Event(str(uuid.uuid4()), EventType.START, window.start, EventStatus.UNDONE, NOON, due_at=window.start),
            Event(str(uuid.uuid4()), EventType.END, window.end, EventStatus.UNDONE, NOON, due_at=window.end),
        ),
    )


def promised(
    lease: Lease, hosts: Collection[Resource], *, per_instance: Amounts | None = None
) -> tuple[Allocation, ...]:
    return tuple(
        Allocation(HOST, h.id, lease.id, lease.reservations[0].id, lease.window, 1, per_instance) for h in hosts
    )


def generations(store: Store, hosts: Collection[Resource]) -> dict[int, int]:
    with store.calendar.view_window(HOST, hours(0, 1), without_amounts=True, now=NOON, besides=None) as view:
        return dict(view.generations([host.id for host in hosts]))


def booked(store: Store, window: Window, *hosts: Resource, per_instance: Amounts | None = None) -> Lease:
    """Book hosts for a new lease, whatever the calendar says."""
    lease = a_lease(window)
    plan = AllocationPlan(promised(lease, hosts, per_instance=per_instance), generations(store, hosts))
    return book(store, lease, plan)


def book(store: Store, lease: Lease, plan: AllocationPlan, **more: Any) -> Lease:
    """Book what is planned for a new lease."""
    write = LeaseWrite(None, lease, plan.allocations)
    return store.bookings.commit(Commit([write], at=lease.created_at, generations=plan.generations, **more))[0]


def rebook(store: Store, before: Lease, after: Lease, plan: AllocationPlan, *, at: datetime) -> Lease:
    """Change a lease to what is planned for it."""
    write = LeaseWrite(before, after, plan.allocations)
    return store.bookings.commit(Commit([write], at=at, generations=plan.generations))[0]


def taken(
    store: Store,
    window: Window,
    *,
    whole: bool = True,
    now: datetime = NOON,
    besides: str | None = None,
) -> frozenset[int]:
    """The hosts that are not wholly free in a window."""
    with store.calendar.view_window(HOST, window, without_amounts=whole, now=now, besides=besides) as view:
        occupancy = view.snapshot.occupancy
        return occupancy.taken | frozenset(occupancy.peaks)
