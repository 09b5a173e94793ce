# SPDX-License-Identifier: Apache-2.0
"""Render the calendar, capacity and properties as JSON. The manager has left out what the caller may not see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from blazar.api.microversion import Version
from blazar.api.shapes import Json
from blazar.model.amounts import Amounts
from blazar.model.calendar import (
    Block,
    BlockKind,
    BlockLease,
    CalendarPage,
    CalendarRow,
    Capacity,
    CapacityPoint,
    OutOfUse,
    PropertySummary,
)
from blazar.model.clock import zulu

# The same instants recur: leases begin and end at full hours, and one lease is on many hosts.
_instant = lru_cache(maxsize=8192)(zulu)


MAINTENANCE_SINCE: Version = (1, 3)
AT_START_SINCE: Version = (1, 3)


def row(value: CalendarRow, leases: Mapping[str, BlockLease], version: Version | None = None) -> Json:
    """Render a resource with its blocks; those who see names also see the label. ``leases`` are those that are shown.

    In versions that do not know maintenance windows a resource is disabled for their time.
    """
    knows = version is None or version >= MAINTENANCE_SINCE
    label = {} if value.label is None else {"label": value.label}
    return {
        "id": value.id,
        **label,
        "type": value.kind,
        "name": value.name,
        "reservable": value.reservable,
        "capacity": dict(value.capacity.items),
        "properties": dict(value.properties),
        "blocks": [block(each if knows else _earlier(each), leases) for each in value.blocks],
    }


def _earlier(value: Block) -> Block:
    unknown = (OutOfUse.MAINTENANCE, OutOfUse.EVACUABLE, OutOfUse.TO_BE_ENABLED)
    return replace(value, code=OutOfUse.DISABLED) if value.code in unknown else value


def block(value: Block, leases: Mapping[str, BlockLease]) -> Json:
    """Render a block: what its kind has."""
    end = None if value.end is None else _instant(value.end)
    shown: Json = {"kind": value.kind, "start": _instant(value.start), "end": end}
    match value.kind:
        case BlockKind.OUT_OF_USE:
            return {**shown, "code": value.code, "reason": value.reason}
        case BlockKind.CLEANING:
            # After a use of the whole resource it says nothing more than the time.
            return shown if value.used is None else {**shown, "used": _amounts(value.used)}
    shown["used"] = _amounts(value.used)
    if value.lease_id is None or value.lease_id not in leases:
        return shown
    lease = leases[value.lease_id]
    if value.kind is BlockKind.MINE:
        shown |= {"lease_id": lease.id, "reservation_id": value.reservation_id, "name": lease.name}
    else:
        shown |= {"lease_id": lease.id, "name": lease.name, "project_id": lease.project_id, "user_id": lease.user_id}
    shown["status"] = lease.status
    return shown


def _amounts(value: Amounts | None) -> Json | None:
    return None if value is None else dict(value.items)


def calendar(page: CalendarPage, resources: list[Json]) -> Json:
    """Render a page of the calendar, without the instant at which it was read and without links."""
    count = {} if page.count is None else {"count": page.count}
    return {
        "from": zulu(page.window.start),
        "to": zulu(page.window.end),
        "resources": resources,
        **count,
    }


def capacity(value: Capacity, measure: str, version: Version | None = None) -> Json:
    """Render capacity over time, without the instant at which it was read; the beginning itself from 1.3 on."""
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
                **({"at_start": _point(one.at_start)} if version is None or version >= AT_START_SINCE else {}),
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
        "values": [{"value": each.value, "count": each.count} for each in value.values],
        "truncated": value.truncated,
    }
