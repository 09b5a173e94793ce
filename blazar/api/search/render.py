# SPDX-License-Identifier: Apache-2.0
"""Answers about free time: their schemas, and how one is rendered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from blazar.api.http.faults import PREFIX
from blazar.api.http.shapes import (
    FLAG,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.api.leases.v1_1.prices import PRICE, render_price
from blazar.api.leases.v1_1.reasons import WAKING, render_waking
from blazar.model.base.clock import zulu
from blazar.model.base.proof import ProofCode
from blazar.model.search.availability import (
    Availability,
    Change,
    EnforcementRefusal,
    Extension,
    FreeWindow,
    LimitedBy,
    StepCode,
    render_alternatives,
    render_reasons,
    render_window,
)


def availability(value: Availability) -> Json:
    """Render the answer to a question."""
    return {
        "availability": {
            "as_of": zulu(value.as_of),
            "earliest": zulu(value.range.start),
            "latest": zulu(value.range.end),
            "duration_seconds": int(value.duration.total_seconds()),
            "searched_until": zulu(value.searched_until),
            "complete": value.complete,
            "openings": [_opening(opening) for opening in value.openings],
            "not_checked": list(value.not_checked),
            "reasons": render_reasons(value.reasons),
            "alternatives": render_alternatives(value.alternatives),
            "extension": None if value.extension is None else _extension(value.extension),
            "proof": None if value.proof is None else value.proof.render(),
        }
    }


def _opening(value: FreeWindow) -> Json:
    return {
        **render_window(value.window),
        "last_start_date": zulu(value.last_start),
        "open_until": None if value.open_until is None else zulu(value.open_until),
        "reservations": [
            {"count": count, **({"region": region} if region else {})}
            for count, region in zip_longest(value.counts, value.regions, fillvalue="")
        ],
        "refusals": _refusals(value.refusals),
        "price": render_price(value.price),
        "waking": render_waking(value.waking),
        "moves_others": value.moves_others,
    }


def _extension(value: Extension) -> Json:
    return {
        "open_until": zulu(value.open_until),
        "limited_by": value.limited_by,
        "refusals": _refusals(value.refusals),
    }


def _refusals(values: Sequence[EnforcementRefusal]) -> list[Json]:
    return [{"code": f"{PREFIX}limit_exceeded", "message": r.message, "data": dict(r.data)} for r in values]


_COUNTS: Json = {"type": "object", "properties": {"id": TEXT}, "additionalProperties": NUMBER}
_STEP: Json = an_object(
    {
        "code": one_of(StepCode),
        "remaining": {**NUMBER, "description": "resources that are left; after affinity or others, what fits"},
        "removed": NUMBER,
        "until": {**ZULU, "description": "when enough of them are free again"},
        "pointer": {**TEXT, "description": "the part of the request that is the reason"},
    },
    optional=("removed", "until", "pointer"),
)
_WINDOW: Json = an_object({"start_date": ZULU, "end_date": ZULU})
_REFUSALS: Json = {**a_list(ref("Refusal")), "description": "why usage enforcement would not grant it"}
_OPENING: Json = an_object(
    {
        "start_date": ZULU,
        "end_date": ZULU,
        "last_start_date": {**ZULU, "description": "every start up to this one has room for the whole duration"},
        "open_until": {**ZULU_OR_NULL, "description": "the last end that fits; null: beyond latest"},
        "reservations": a_list(an_object({"count": NUMBER, "region": TEXT}, optional=("region",))),
        "refusals": _REFUSALS,
        "price": PRICE,
        "waking": WAKING,
        "moves_others": {**NUMBER, "description": "how many other leases would get other hosts for it"},
    }
)
_REASON: Json = an_object(
    {
        "pointer": {**TEXT_OR_NULL, "description": "the reservation in the request; null: a change does not name it"},
        "window": _WINDOW,
        "asked": NUMBER,
        "free": NUMBER,
        "steps": a_list(_STEP),
        "message": TEXT,
    }
)
_ALTERNATIVE: Json = an_object(
    {
        "change": one_of(Change),
        "start_date": ZULU,
        "end_date": ZULU,
        "reservations": {**a_list(_COUNTS), "description": "fewer of each reservation, with lease_id by id"},
        "drop": {**TEXT, "description": "the part of a requirement to leave out"},
        "price": {**TEXT, "description": "what the lease would cost then; left out if nothing has a price"},
        "currency": {**TEXT, "description": "that of the price"},
    },
    optional=("reservations", "drop", "price", "currency"),
)
_LIMITED_BY: Json = {
    **one_of(LimitedBy, None),
    "description": "null: none of these, as where a resource of the lease is out of use",
}
_FULL: Json = an_object(
    {
        "code": one_of(ProofCode),
        "at": {**ZULU, "description": "an instant at which the hosts are full however leases are moved"},
        "hosts": NUMBER,
        "promised": {**NUMBER, "description": "held then by leases that can have no other hosts"},
        "asked": {**NUMBER, "description": "needed of them besides"},
        "moves_others": {**NUMBER, "description": "leases that would get other hosts, where that is more than may"},
    },
    optional=("at", "hosts", "promised", "asked", "moves_others"),
)
_PROOF: Json = {
    "anyOf": [_FULL, {"type": "null"}],
    "description": "why the first window has no room even if other leases get other hosts; null: it has, or none was "
    "to get others",
}
_EXTENSION: Json = an_object({"open_until": ZULU, "limited_by": _LIMITED_BY, "refusals": _REFUSALS})

_AVAILABILITY: Json = {
    "as_of": ZULU,
    "earliest": ZULU,
    "latest": ZULU,
    "duration_seconds": NUMBER,
    "searched_until": {**ZULU, "description": "from here another search goes on"},
    "complete": {**FLAG, "description": "false: the search was given up before it had found all"},
    "openings": a_list(_OPENING),
    "not_checked": {**a_list(TEXT), "description": "filters of usage enforcement that were not asked"},
    "reasons": a_list(_REASON),
    "alternatives": a_list(_ALTERNATIVE),
    "extension": {"anyOf": [_EXTENSION, {"type": "null"}]},
    "proof": _PROOF,
}
_EXAMPLE: Json = {
    "as_of": "2026-11-23T10:15:42Z",
    "earliest": "2026-11-23T10:15:42Z",
    "latest": "2027-01-22T10:15:42Z",
    "duration_seconds": 259200,
    "searched_until": "2027-01-22T10:15:42Z",
    "complete": True,
    "openings": [
        {
            "start_date": "2026-12-03T14:00:00Z",
            "end_date": "2026-12-06T14:00:00Z",
            "last_start_date": "2026-12-04T08:00:00Z",
            "open_until": "2026-12-07T08:00:00Z",
            "reservations": [{"count": 5}],
            "refusals": [],
            "price": None,
            "waking": None,
            "moves_others": 0,
        }
    ],
    "not_checked": ["ExternalServiceFilter"],
    "reasons": [],
    "alternatives": [],
    "extension": None,
    "proof": None,
}

COMPONENTS: Json = {
    "Refusal": an_object(
        {"code": TEXT, "message": TEXT, "data": {"type": "object"}},
        example={"code": "reservation.limit_exceeded", "message": "the lease would last 9 days", "data": {}},
    ),
    "Availability": an_object(_AVAILABILITY, example=_EXAMPLE),
}
