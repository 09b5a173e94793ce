# SPDX-License-Identifier: Apache-2.0
"""Render answers about free time as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from blazar.api.error_codes import PREFIX
from blazar.api.shapes import Json
from blazar.model.availability import Availability, Extension, FreeWindow, Refusal
from blazar.model.availability_json import alternatives, reasons, window
from blazar.model.clock import zulu


def availability(value: Availability, *, regions: bool) -> Json:
    """Render the answer to a question; ``regions``: openings say where reservations would lie."""
    return {
        "availability": {
            "as_of": zulu(value.as_of),
            "earliest": zulu(value.range.start),
            "latest": zulu(value.range.end),
            "duration_seconds": int(value.duration.total_seconds()),
            "searched_until": zulu(value.searched_until),
            "complete": value.complete,
            "openings": [_opening(each, regions=regions) for each in value.openings],
            "not_checked": list(value.not_checked),
            "reasons": reasons(value.reasons),
            "alternatives": alternatives(value.alternatives),
            "extension": None if value.extension is None else _extension(value.extension),
        }
    }


def _opening(value: FreeWindow, *, regions: bool) -> Json:
    return {
        **window(value.window),
        "last_start_date": zulu(value.last_start),
        "open_until": None if value.open_until is None else zulu(value.open_until),
        "reservations": [
            {"count": count, **({"region": region} if region else {})}
            for count, region in zip_longest(value.counts, value.regions if regions else (), fillvalue="")
        ],
        "refusals": _refusals(value.refusals),
    }


def _extension(value: Extension) -> Json:
    return {
        "open_until": zulu(value.open_until),
        "limited_by": value.limited_by,
        "refusals": _refusals(value.refusals),
    }


def _refusals(values: Sequence[Refusal]) -> list[Json]:
    return [{"code": f"{PREFIX}limit_exceeded", "message": each.message, "data": dict(each.data)} for each in values]
