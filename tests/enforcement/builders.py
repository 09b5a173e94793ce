# SPDX-License-Identifier: Apache-2.0
"""Questions that filters are asked."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from blazar.enforcement import AllocatedResource, Context, FilterNotification, LeaseView, Occasion, Question
from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.leases.lease import Event, Lease
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.model.resources.resource import HOST, Resource
from blazar.model.use.resource_hours import HostUse

NOON = datetime(2030, 4, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
CURIE = Context("curie", "physics", "https://keystone.example/v3", "RegionOne")


def hours(start: float, end: float) -> Window:
    return Window(NOON + start * HOUR, NOON + end * HOUR)


def a_host(number: int = 1) -> Resource:
    return Resource(
        number,
        HOST,
        str(number),
        f"node-{number}",
        {"vcpus": 16, "hypervisor_hostname": f"node-{number}"},
        {"gpu": "A100"},
        Amounts.of({"VCPU": 16}),
        True,
        NOON - DAY,
    )


def a_view(window: Window | None = None, *, hosts: int = 1, project: str = "physics", name: str = "lab") -> LeaseView:
    window = window or hours(1, 3)
    reservation = Reservation(
        "r-1",
        "physical:host",
        "x-1",
        ReservationStatus.PENDING,
        NOON,
        parameters=Content({"min": hosts, "max": hosts, "resource_properties": ""}),
    )
    lease = Lease(
        "l-1",
        name,
        "curie",
        project,
        window,
        LeaseStatus.CREATING,
        NOON,
        reservations=(reservation,),
        events=(
            Event("e-1", EventType.START, window.start, EventStatus.UNDONE, NOON),
            Event("e-2", EventType.END, window.end, EventStatus.UNDONE, NOON),
            Event("e-3", EventType.BEFORE_END, window.end - HOUR, EventStatus.UNDONE, NOON),
            Event("e-4", EventType.CREATE, NOON, EventStatus.IN_PROGRESS, NOON),
        ),
    )
    return LeaseView(lease, tuple(AllocatedResource("r-1", a_host(n)) for n in range(1, hosts + 1)))


def asking(
    view: LeaseView | None = None,
    *,
    before: LeaseView | None = None,
    now: datetime = NOON,
    others: Collection[HostUse] = (),
    context: Context = CURIE,
) -> Question:
    return Question(context, now, view or a_view(), before, tuple(others))


def used(window: Window, hosts: int = 1, lease: str = "other") -> HostUse:
    return HostUse(lease, window, hosts)


def notification(occasion: Occasion, view: LeaseView | None = None) -> FilterNotification:
    view = view or a_view()
    return FilterNotification(
        occasion, CURIE, NOON, replace(view, lease=replace(view.lease, status=LeaseStatus.PENDING))
    )
