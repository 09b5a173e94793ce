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
from blazar.model.billing.prices import QuotedLease, choose_quote, sum_amounts
from blazar.model.billing.spending import ProjectSpending
from blazar.model.billing.uses import choose_skus
from blazar.model.leases.lease import Lease
from blazar.model.use.resource_hours import measure_amounts


def describe_lease(
    lease: Lease, window: Window, found: Iterable[AllocatedResource], lists: Sequence[PriceList], *, now: datetime
) -> QuotedLease:
    """Return what is priced of a lease that is booked now for a window, with these resources: as of its quote, or now.

    The cheaper one counts.
    """
    parts = tuple(found)
    today = _describe_at(lease, window, parts, lists, to_second(now))
    if lease.quoted_at is None:
        return today
    return choose_quote(_describe_at(lease, window, parts, lists, lease.quoted_at), today, lists)


def _describe_at(
    lease: Lease, window: Window, parts: Sequence[AllocatedResource], lists: Sequence[PriceList], booked_at: datetime
) -> QuotedLease:
    prices = find_list(lists, booked_at, window.start)
    if prices is None:
        return QuotedLease((), window, lease.project_id, booked_at)
    places = {reservation.id: number for number, reservation in enumerate(lease.asked_for)}
    numbers = {r.id: places[r.parent or r.id] for r in lease.reservations}
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
