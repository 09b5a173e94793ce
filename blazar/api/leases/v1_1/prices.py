# SPDX-License-Identifier: Apache-2.0
"""What a lease costs, as answers show it."""

from __future__ import annotations

from blazar.api.http.shapes import NUMBER, TEXT, ZULU, Json, a_list, an_object
from blazar.model.base.clock import zulu
from blazar.model.billing.prices import CancellationCost, LeasePrice, PricePart

_EXAMPLE: Json = {
    "amount": "673.80",
    "currency": "EUR",
    "price_list": 3,
    "fee": "5.00",
    "parts": [
        {
            "reservation": 0,
            "sku": "host-a100",
            "measure": "host",
            "count": 4,
            "hours": "31",
            "per_hour": "3.20",
            "factor": "1",
            "amount": "396.80",
        }
    ],
    "if_cancelled": [{"until": "2030-04-25T08:00:00Z", "amount": "0.00"}],
    "quoted_at": "2030-04-01T08:00:00Z",
    "held_until": "2030-04-01T08:10:00Z",
}
_PART = an_object(
    {
        "reservation": {**NUMBER, "description": "its place in the list of reservations"},
        "sku": {**TEXT, "description": "the name of the price"},
        "measure": TEXT,
        "count": {**NUMBER, "description": "how many of the measure"},
        "hours": {**TEXT, "description": "for how many hours each"},
        "per_hour": TEXT,
        "factor": TEXT,
        "amount": {**TEXT, "description": "not rounded"},
        "kwh": {**TEXT, "description": "of energy instead of count, hours and per_hour: how much, by an estimate"},
        "per_kwh": TEXT,
    },
    optional=("count", "hours", "per_hour", "kwh", "per_kwh"),
)
_HELD = ("quoted_at", "held_until")
PRICE: Json = {
    **an_object(
        {
            "amount": {**TEXT, "description": "if nothing is given back, lost or late from now on"},
            "currency": TEXT,
            "price_list": {**NUMBER, "description": "the version by which its start is charged"},
            "fee": TEXT,
            "parts": a_list(_PART),
            "if_cancelled": {
                **a_list(an_object({"until": ZULU, "amount": TEXT})),
                "description": "what it costs to cancel it until when, up to its start; lists are without",
            },
            "charged": {**TEXT, "description": "what its project was charged for it so far; only of what is booked"},
            "difference": {**TEXT, "description": "how much more than before; only of a change that is not made"},
            "quoted_at": {**ZULU, "description": "of a quote: who books with it pays no more until held_until"},
            "held_until": ZULU,
            "estimated": {
                **TEXT,
                "description": "what of the amount is for energy, by an estimate: of what is booked as long as that is "
                "not charged; only if energy has a price",
            },
        },
        optional=("price_list", "fee", "parts", "if_cancelled", "charged", "difference", "estimated", *_HELD),
    ),
    "type": ["object", "null"],
    "description": "what it costs; null: nothing has a price, or it lasts too long for one",
    "examples": [_EXAMPLE],
}


def render_price(price: LeasePrice | None) -> Json | None:
    """Return a price as JSON."""
    if price is None:
        return None
    costs = {"amount": price.amount, "currency": price.currency}
    estimated = {} if price.estimated is None else {"estimated": price.estimated}
    if price.charged is not None:
        cancelled = {"if_cancelled": list(map(_render_cost, price.if_cancelled))} if price.if_cancelled else {}
        more = {} if price.difference is None else {"difference": price.difference}
        return {**costs, "charged": price.charged, **cancelled, **more, **estimated}
    return {
        **costs,
        "price_list": price.price_list,
        "fee": price.fee,
        "parts": list(map(_render_part, price.parts)),
        "if_cancelled": list(map(_render_cost, price.if_cancelled)),
        **estimated,
        **{name: zulu(at) for name in _HELD if (at := getattr(price, name)) is not None},
    }


def _render_part(part: PricePart) -> Json:
    size: Json = {"count": part.count, "hours": part.hours, "per_hour": part.per_hour}
    if part.kwh is not None:
        size = {"kwh": part.kwh, "per_kwh": part.per_kwh}
    return {
        "reservation": part.reservation,
        "sku": part.sku,
        "measure": part.measure,
        **size,
        "factor": part.factor,
        "amount": part.amount,
    }


def _render_cost(cost: CancellationCost) -> Json:
    return {"until": zulu(cost.until), "amount": cost.amount}
