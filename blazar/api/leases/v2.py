# SPDX-License-Identifier: Apache-2.0
"""Leases in version 2: other keys, ISO 8601 dates, no envelope; the handlers are those of version 1."""

from __future__ import annotations

import copy

from blazar.api.dates import iso
from blazar.api.leases import earlier, render, schemas
from blazar.api.shapes import Json
from blazar.api.validation import Schema
from blazar.model.lease import EventType, Lease
from blazar.resources.actions import ALIAS, BEFORE_END

LEASE_KEYS = (
    "id",
    "name",
    "start_date",
    "end_date",
    "before_end_date",
    "user_id",
    "project_id",
    "trust_id",
    "reservations",
    "events",
    "status",
    "created_at",
    "updated_at",
)

_FORMATS = "%Y-%m-%d %H:%M (2030-04-01 08:00) or ISO 8601 (2030-04-01T08:00:00Z)"
_DATE: Schema = {
    "type": "string",
    "maxLength": 64,
    "description": f"a date, in UTC if it has no zone. Required format: {_FORMATS}",
}
_OPTIONAL_DATE: Schema = {
    "type": ["string", "null"],
    "maxLength": 64,
    "description": f"a date strictly inside the lease, or null for the default. Required format: {_FORMATS}",
}


def _of_leases(theirs: Schema) -> Schema:
    ours = copy.deepcopy(theirs)
    properties = ours["properties"]
    properties |= {"start_date": _DATE, "end_date": _DATE, "before_end_date": _OPTIONAL_DATE}
    if "events" in properties:
        description = f"a date, or null. Required format: {_FORMATS}"
        properties["events"]["items"]["properties"]["event_date"] = {**_OPTIONAL_DATE, "description": description}
    return ours


LEASE_CREATE = _of_leases(schemas.LEASE_CREATE)
LEASE_UPDATE = _of_leases(schemas.LEASE_UPDATE)


def lease(value: Lease) -> Json:
    """Render a lease, with the time of its before-end event."""
    known = render.lease(value)
    warning = earlier.as_estimated(value).event(EventType.BEFORE_END)
    known["before_end_date"] = iso(warning.time) if warning and warning.time else None
    known["reservations"] = [renamed(reservation) for reservation in known["reservations"]]
    return {key: known[key] for key in LEASE_KEYS}


def renamed(values: Json) -> Json:
    """Return values by key, with the before-end action under the name that version 2 uses.

    Under one name only: a client that edits a reservation and sends it back must not send two differing values.
    """
    return {ALIAS if key == BEFORE_END else key: value for key, value in values.items()}
