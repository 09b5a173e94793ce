# SPDX-License-Identifier: Apache-2.0
"""What a lease costs, in words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING

from blazarclient.commands.base import local

if TYPE_CHECKING:
    from blazarclient.library.values import Price


def describe_price(price: Price, zone: tzinfo) -> str:
    """Return what a lease costs, what of that was charged, and what it costs to cancel it."""
    costs = f"{price.amount} {price.currency}"
    if price.difference is not None:
        more = price.difference.lstrip("-")
        costs += f", {more} {'less' if price.difference.startswith('-') else 'more'} than now"
    parts = [f"{price.charged} were charged"] if price.charged is not None and price.charged.strip("0.") else []
    if price.estimated is not None:
        parts.append(f"{price.estimated} are for energy, by an estimate")
    if parts:
        costs += f", of which {' and '.join(parts)}"
    for cost in price.if_cancelled:
        free = not cost.amount.strip("0.")
        costs += f"; {'free' if free else cost.amount} to cancel until {local(cost.until, zone)}"
    return costs


def list_costs(price: Price, zone: tzinfo) -> Iterator[str]:
    """Yield what a lease would cost, and line by line how that comes about."""
    yield describe_price(price, zone)
    if price.fee.strip("0."):
        yield f"  fee: {price.fee}"
    for part in price.parts:
        factor = "" if part.factor == "1" else f" × {part.factor}"
        if part.kwh is not None:
            yield f"  {part.sku}: {part.kwh} kWh × {part.per_kwh}{factor} = {part.amount}, by an estimate"
            continue
        yield f"  {part.sku}: {part.count} × {part.hours} h × {part.per_hour}{factor} = {part.amount}"
    if price.quoted_at is not None and price.held_until is not None:
        told = price.quoted_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        yield f"  holds until {local(price.held_until, zone)} with --quoted-at {told}"
