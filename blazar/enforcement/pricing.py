# SPDX-License-Identifier: Apache-2.0
"""What is priced of a lease with the resources that are found for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from blazar.enforcement.values import AllocatedResource, LeaseView
from blazar.model.base.clock import to_second
from blazar.model.base.window import Window
from blazar.model.billing.ledger import plan_quoted
from blazar.model.billing.price_lists import PriceList, find_list
from blazar.model.billing.prices import QuotedLease, sum_amounts
from blazar.model.billing.spending import ProjectSpending
from blazar.model.billing.uses import choose_skus
from blazar.model.leases.lease import Lease
from blazar.model.use.resource_hours import measure_amounts


def describe_lease(
    lease: Lease, window: Window, found: Iterable[AllocatedResource], lists: Sequence[PriceList], *, now: datetime
) -> QuotedLease:
    """Return what is priced of a lease that is booked now for a window, with these resources."""
    booked_at = to_second(now)
    prices = find_list(lists, booked_at, window.start)
    if prices is None:
        return QuotedLease((), window, lease.project_id, booked_at)
    places = {reservation.id: number for number, reservation in enumerate(lease.asked_for)}
    numbers = {r.id: places[r.parent or r.id] for r in lease.reservations}
    parts = list(found)
    booked = [(p.reservation_id, measure_amounts(p.resource.kind, p.count, p.per_instance)) for p in parts]
    chosen = choose_skus(booked, [p.resource for p in parts], prices)
    amounts = sum_amounts(booked, chosen, prices, numbers)
    return QuotedLease(amounts, window, lease.project_id, booked_at, lease.confirm_by)


def add_lease(spending: ProjectSpending | None, view: LeaseView, now: datetime) -> ProjectSpending | None:
    """Return what a project has to pay once a new lease is booked, too; None: nobody asks."""
    if spending is None:
        return None
    quoted = describe_lease(view.lease, view.window, view.allocated_resources, spending.lists, now=now)
    return spending.add(plan_quoted(quoted, spending.lists))
