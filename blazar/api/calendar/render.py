# SPDX-License-Identifier: Apache-2.0
"""The calendar, capacity and properties: their schemas, and how the last two are rendered.

The manager has left out what the caller may not see.
"""

from __future__ import annotations

from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    NUMBER,
    RESERVATION_ID,
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
from blazar.model.base.clock import zulu
from blazar.model.calendar.views import (
    BlockKind,
    Capacity,
    CapacityPoint,
    OutOfUse,
    PropertySummary,
)
from blazar.model.leases.states import LeaseStatus


def capacity(value: Capacity, measure: str) -> Json:
    """Render capacity over time, without the instant at which it was read."""
    return {
        "from": zulu(value.window.start),
        "to": zulu(value.window.end),
        "step_seconds": int(value.step.total_seconds()),
        "measure": measure,
        "series": [
            {
                "group": dict(one.group),
                "total": one.total,
                "free": one.free,
                "promised": one.promised,
                "out_of_use": one.out_of_use,
                "at_start": _point(one.at_start),
            }
            for one in value.series
        ],
    }


def _point(value: CapacityPoint) -> Json:
    return {
        "total": value.total,
        "free": value.free,
        "promised": value.promised,
        "out_of_use": value.out_of_use,
    }


def summary(value: PropertySummary) -> Json:
    """Render a property with its values."""
    limits = {"minimum": value.minimum, "maximum": value.maximum} if value.is_number else {}
    return {
        "name": value.name,
        "type": "number" if value.is_number else "text",
        "private": value.private,
        **limits,
        "values": [{"value": count.value, "count": count.count} for count in value.values],
        "truncated": value.truncated,
    }


_AMOUNTS: Json = {"type": "object", "additionalProperties": NUMBER}
_VALUE: Json = {"type": ["string", "number", "boolean", "null"]}
_USED: Json = {
    "type": ["object", "null"],
    "additionalProperties": NUMBER,
    "description": "what is promised of the resource, by resource class; null: all of it",
}
_OPTIONAL = ("used", "lease_id", "reservation_id", "name", "project_id", "user_id", "status", "code", "reason")
_COUNTS: Json = {**a_list(NUMBER), "description": "a number for each step"}

COMPONENTS: Json = {
    "Block": an_object(
        {
            "kind": {**one_of(BlockKind), "description": "free is what no block covers"},
            "start": ZULU,
            "end": {**ZULU_OR_NULL, "description": "null: not known"},
            "used": _USED,
            "lease_id": TEXT,
            "reservation_id": TEXT,
            "name": {**TEXT, "description": "of the lease"},
            "project_id": TEXT,
            "user_id": TEXT,
            "status": {**one_of(LeaseStatus), "description": "of the lease"},
            "code": {
                **one_of(OutOfUse),
                "description": (
                    "why the resource is out of use; to_be_enabled is the time after the date until "
                    "which it is disabled: new leases of that time are taken once it is enabled"
                ),
            },
            "reason": {**TEXT_OR_NULL, "description": "for operators, as it was given or found"},
        },
        optional=_OPTIONAL,
        example={
            "kind": "mine",
            "start": "2026-11-23T00:00:00Z",
            "end": "2026-11-29T15:00:00Z",
            "used": None,
            "lease_id": LEASE_ID,
            "reservation_id": RESERVATION_ID,
            "name": "gan-training",
            "status": "ACTIVE",
        },
    ),
    "CalendarRow": an_object(
        {
            "id": {**TEXT, "description": "the label; for those who may see names, the id in the cloud"},
            "label": TEXT,
            "type": {**TEXT, "description": "the kind of resource, as host"},
            "name": TEXT_OR_NULL,
            "reservable": FLAG,
            "capacity": _AMOUNTS,
            "properties": {"type": "object", "additionalProperties": _VALUE},
            "blocks": a_list(ref("Block")),
        },
        optional=("label", "type", "name", "reservable", "capacity", "properties", "blocks"),
        example={
            "id": "h-4kq2mz",
            "type": "host",
            "name": None,
            "reservable": True,
            "capacity": {"DISK_GB": 890, "MEMORY_MB": 515000, "VCPU": 64},
            "properties": {"gpu": "A100", "availability_zone": "az-1"},
            "blocks": [
                {"kind": "other", "start": "2026-12-01T00:00:00Z", "end": "2026-12-03T14:00:00Z", "used": None},
            ],
        },
    ),
    "Calendar": an_object(
        {
            "as_of": ZULU,
            "from": ZULU,
            "to": ZULU,
            "resources": a_list(ref("CalendarRow")),
            "count": {**NUMBER, "description": "of all pages, with with_count"},
        },
        optional=("count",),
        example={
            "as_of": "2026-11-23T10:15:42Z",
            "from": "2026-11-23T00:00:00Z",
            "to": "2026-12-07T00:00:00Z",
            "resources": [],
        },
    ),
    "Capacity": an_object(
        {
            "as_of": ZULU,
            "from": ZULU,
            "to": ZULU,
            "step_seconds": NUMBER,
            "measure": TEXT,
            "series": a_list(
                an_object(
                    {
                        "group": {"type": "object", "additionalProperties": _VALUE},
                        "total": _COUNTS,
                        "free": _COUNTS,
                        "promised": _COUNTS,
                        "out_of_use": _COUNTS,
                        "at_start": {
                            **an_object(dict.fromkeys(("total", "free", "promised", "out_of_use"), NUMBER)),
                            "description": "at `from` itself, whatever the rest of the first step is",
                        },
                    },
                    optional=("at_start",),
                )
            ),
        },
        example={
            "as_of": "2026-11-23T10:15:42Z",
            "from": "2026-11-23T00:00:00Z",
            "to": "2026-11-23T02:00:00Z",
            "step_seconds": 3600,
            "measure": "resource",
            "series": [
                {
                    "group": {"gpu": "A100"},
                    "total": [8, 8],
                    "free": [1, 1],
                    "promised": [4, 4],
                    "out_of_use": [3, 3],
                }
            ],
        },
    ),
    "PropertySummary": an_object(
        {
            "name": TEXT,
            "type": {"enum": ["text", "number"]},
            "private": FLAG,
            "minimum": {"type": "number"},
            "maximum": {"type": "number"},
            "values": a_list(an_object({"value": _VALUE, "count": NUMBER})),
            "truncated": {**FLAG, "description": "there are more values; these are the most frequent"},
        },
        optional=("minimum", "maximum"),
        example={
            "name": "gpu",
            "type": "text",
            "private": False,
            "values": [{"value": "A100", "count": 8}, {"value": "H100", "count": 4}],
            "truncated": False,
        },
    ),
}
