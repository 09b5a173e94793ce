# SPDX-License-Identifier: Apache-2.0
"""Schemas of price lists. What they mean, and all their bounds, is in ``blazar/model/billing/price_lists.py``."""

from __future__ import annotations

from blazar.api.http.shapes import NUMBER, TEXT, TEXT_OR_NULL, ZULU, Json, a_list, an_object, ref
from blazar.model.billing.price_lists import MOST_FACTORS, MOST_PRICES, MOST_PROJECTS

_AMOUNT: Json = {
    "type": "string",
    "description": 'an amount as a string, such as "3.20", with at most 9 digits and 6 decimals',
}
_FACTOR: Json = {"type": "string", "description": 'a factor as a string, such as "1.25", with at most 6 decimals'}
_SHARE: Json = {"type": "string", "description": 'a share from "0" to "1" as a string, such as "0.25"'}
_LENGTH: Json = {"type": "string", "description": 'a duration as a string, such as "PT24H", without years and months'}
_FREE: Json = {"enum": ["free", "charge"]}
_TIME: Json = {"type": "string", "description": "a time of day such as 09:00"}
_PROJECT: Json = {"type": "string", "description": "the id of a project"}
_DAYS: Json = {
    "type": "array",
    "maxItems": 7,
    "items": {"type": "string", "description": "a day of the week such as MO"},
    "description": "a list of days of the week such as MO",
}
_PRICE: Json = {
    "sku": {"type": "string", "description": "a name such as host-a100"},
    "measure": {"type": "string", "description": "a measure such as host"},
    "requirement": {"type": ["array", "string"], "description": 'a requirement such as ["==", "$gpu", "A100"]'},
    "per_hour": {**_AMOUNT, "description": f"{_AMOUNT['description']}, of all measures but kwh"},
    "per_kwh": {**_AMOUNT, "description": f"{_AMOUNT['description']}, of the measure kwh"},
}
_ABOVE: Json = {"type": "integer", "description": "a whole number such as 16, without quotes"}


def _entries(properties: Json, most: int, required: list[str]) -> Json:
    """Return the schema of a list of objects; refusals say what to give by the descriptions."""
    entry = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return {
        "type": "array",
        "maxItems": most,
        "items": {**entry, "description": f"an object with {', '.join(properties)}"},
    }


EXAMPLE: Json = {
    "currency": "EUR",
    "decimals": 2,
    "valid_from": "2030-04-01T00:00:00Z",
    "time_zone": "Europe/Berlin",
    "prices": [
        {"sku": "host-a100", "measure": "host", "requirement": ["==", "$gpu", "A100"], "per_hour": "3.20"},
        {"sku": "host", "measure": "host", "per_hour": "0.80"},
    ],
    "fee": "5.00",
    "hours": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "09:00", "to": "18:00", "factor": "1.25"}],
    "cancellation": [{"before_start": "P7D", "share": "0"}, {"share": "0.25"}],
}
DOCUMENT: Json = {
    "type": "object",
    "required": ["currency", "decimals", "valid_from", "time_zone", "prices"],
    "additionalProperties": False,
    "properties": {
        "currency": {"type": "string", "description": "an ISO 4217 code, or a word of the site such as SU"},
        "decimals": {
            "type": "integer",
            "minimum": 0,
            "maximum": 9,
            "description": "a whole number from 0 to 9 without quotes, the decimals of totals",
        },
        "valid_from": {"type": "string", "description": 'a date as a string, such as "2030-04-01T00:00:00Z"'},
        "time_zone": {"type": "string", "description": "the time zone of the hours, as Europe/Berlin"},
        "prices": {
            **_entries(_PRICE, MOST_PRICES, ["sku", "measure"]),
            "description": "a list of prices; of those for a measure the first one that fits a resource is its price",
        },
        "fee": {**_AMOUNT, "description": f"{_AMOUNT['description']}, for each lease when it starts"},
        "hours": {
            **_entries({"days": _DAYS, "from": _TIME, "to": _TIME, "factor": _FACTOR}, MOST_FACTORS, ["factor"]),
            "description": "a list of factors by the local time of day and week; several that hold multiply",
        },
        "lead": {
            **_entries({"below": _LENGTH, "factor": _FACTOR}, MOST_FACTORS, ["below", "factor"]),
            "description": "a list of factors by the time from booking to start",
        },
        "amount": {
            **_entries({"above": _ABOVE, "factor": _FACTOR}, MOST_FACTORS, ["above", "factor"]),
            "description": "a list of factors by how many of the measure a reservation has",
        },
        "unused": {**_FACTOR, "description": f"{_FACTOR['description']}, of hours in which nobody uses the lease"},
        "projects": {
            **_entries({"project_id": _PROJECT, "factor": _FACTOR}, MOST_PROJECTS, ["project_id", "factor"]),
            "description": "a list of factors of projects; members see only that of their own",
        },
        "minimum": {**_LENGTH, "description": f"{_LENGTH['description']}: the least that is charged of a reservation"},
        "round_up": {**_LENGTH, "description": f"{_LENGTH['description']}: time is rounded up to multiples of it"},
        "cancellation": {
            **_entries({"before_start": _LENGTH, "share": _SHARE}, MOST_FACTORS, ["share"]),
            "description": "a list of shares of the price of what is given back so long before the start, or else",
        },
        "early_return": {
            **_SHARE,
            "description": f"{_SHARE['description']}, of the price of what is given back after the start",
        },
        "late": {**_FREE, "description": "free or charge, for the time from the start to the hand-over"},
        "lost": {**_FREE, "description": "free or charge, for the time in which a resource is missing"},
        "pue": {**_FACTOR, "description": f"{_FACTOR['description']}, at least 1, of the energy that hosts draw"},
        "load": {**_SHARE, "description": f"{_SHARE['description']}: the load by which quotes estimate energy"},
    },
}
LIST: Json = {
    "version": 3,
    "published_at": "2030-03-20T09:12:01Z",
    "valid_from": "2030-04-01T00:00:00Z",
    "currency": "EUR",
    "published_by": None,
    "digest": None,
}
CHANGE: Json = {"field": "prices[host].per_hour", "before": '"0.75"', "after": '"0.80"'}
COMPARISON: Json = {
    "month": "2030-03",
    "currency": "EUR",
    "amount": "1280.00",
    "new_amount": "1344.50",
    "leases": 2,
    "is_whole": True,
    "projects": [{"project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55", "amount": "1280.00", "new_amount": "1344.50"}],
}
_AMOUNTS: Json = {
    "amount": {**TEXT, "description": "what was charged, without what was given back or corrected"},
    "new_amount": {**TEXT, "description": "what the same leases would have cost by the new list"},
}
_PROPERTIES: Json = {
    "version": NUMBER,
    "published_at": {**ZULU, "description": "what was booked before it has the prices of before"},
    "valid_from": ZULU,
    "currency": {**TEXT, "description": "that of all lists"},
    "published_by": {**TEXT_OR_NULL, "description": "the id of the user; for operators"},
    "digest": {**TEXT_OR_NULL, "description": "a SHA-256 hash of the whole document; for operators"},
}
COMPONENTS: Json = {
    "PriceDocument": {**DOCUMENT, "examples": [EXAMPLE]},
    "PriceList": an_object(_PROPERTIES | {"content": ref("PriceDocument")}, example=LIST | {"content": EXAMPLE}),
    "PriceListInList": an_object(_PROPERTIES, example=LIST),
    "PriceChange": an_object(
        {
            "field": {**TEXT, "description": "an entry of prices is named by its sku, one of projects by the project"},
            "before": {**TEXT_OR_NULL, "description": "as JSON; null: there was none"},
            "after": TEXT_OR_NULL,
        },
        example=CHANGE,
    ),
    "PriceComparison": an_object(
        {
            "month": {**TEXT, "description": "the last month that is over, in UTC"},
            "currency": TEXT,
            **_AMOUNTS,
            "leases": {**NUMBER, "description": "how many leases were looked at"},
            "is_whole": {"type": "boolean", "description": "whether these are all that were charged for the month"},
            "projects": a_list(an_object({"project_id": TEXT, **_AMOUNTS})),
        },
        example=COMPARISON,
    ),
}
