# SPDX-License-Identifier: Apache-2.0
"""The formats of leases at 1.0 and in version 2, as values, and requests in them; the handlers are shared by both."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from blazar.api.http.identity import Caller
from blazar.api.http.routes import Body
from blazar.api.http.shapes import RESERVATION_ID, Json
from blazar.api.leases.v1_0 import render, schemas
from blazar.api.leases.v1_0.texts import LeaseWriter
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import NOW, Moment
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import (
    Actor,
    EventRequest,
    LeaseChange,
    LeaseRequest,
    ReservationChange,
    ReservationRequest,
)
from blazar.resources.contract.actions import ALIAS

FORMAT = "%Y-%m-%d %H:%M"
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.0{1,6})?)?(Z|[+-]\d\d:\d\d)?", re.ASCII)
"""The supported subset of ISO 8601: dates to the second, without week dates and fractions of a second."""


def parse_minute(text: str, field: str) -> datetime:
    """Parse a date to the minute; raise InvalidInput with the wording that clients match."""
    try:
        return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
    except ValueError:
        raise InvalidInput(f"{field}: {text} is an invalid date. Required format: {FORMAT}") from None


def parse_minute_or_now(text: str, field: str) -> Moment:
    """Parse a start or end date of version 1: a date, or ``now``."""
    return NOW if text == "now" else parse_minute(text, field)


def parse_instant(text: str, field: str) -> datetime:
    """Parse a date of version 2: to the minute, or ISO 8601 to the second; UTC if it has no zone."""
    try:
        if not ISO.fullmatch(text):
            return datetime.strptime(text, FORMAT).replace(tzinfo=UTC)
        named = datetime.fromisoformat(text)
        return named.replace(tzinfo=UTC) if named.tzinfo is None else named.astimezone(UTC)
    except (OverflowError, ValueError):
        # Conversion to UTC can overflow for dates in the first and the last day that datetime supports.
        raise InvalidInput(
            f"{field}: {text} is an invalid date. Required format: {FORMAT}, or ISO 8601 to the second, for example "
            f"2030-04-01T08:00:00Z"
        ) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseFormat:
    """The format of leases in a range of versions.

    ``moment`` parses a start or an end, ``date`` any other date; both take the string and the name of its field.
    ``one`` and ``many`` are the envelope keys of a lease and of a list of leases; None: no envelope.
    """

    cache: str
    """The name of the cache of leases that ``shown`` has rendered; formats with the same rendering share one."""
    component: str
    """The name of the component that describes a rendered lease."""
    created: Body
    changed: Body
    moment: Callable[[str, str], Moment]
    date: Callable[[str, str], datetime]
    shown: Callable[[Lease], Json]
    writer: LeaseWriter
    one: str | None = None
    many: str | None = None


_NEW_LEASE: Json = {
    "name": "nightly-ci",
    "start_date": "2030-04-01 08:00",
    "end_date": "2030-04-01 20:00",
    "before_end_date": None,
    "events": [],
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "max": 2,
            "hypervisor_properties": '[">=", "$vcpus", "16"]',
            "resource_properties": "",
        }
    ],
}
_NEW_LEASE_OF_V2: Json = {
    **_NEW_LEASE,
    "before_end_date": "2030-04-01 19:30",
    "reservations": [{**item, ALIAS: "snapshot"} for item in _NEW_LEASE["reservations"]],
}

V1_0 = LeaseFormat(
    cache="v1",
    component="Lease",
    created=Body("LeaseCreate", schemas.LEASE_CREATE, (_NEW_LEASE,)),
    changed=Body(
        "LeaseUpdate",
        schemas.LEASE_UPDATE,
        (
            {"end_date": "2030-04-01 22:00"},
            {"name": "nightly", "reservations": [{"id": RESERVATION_ID, "max": 3}]},
        ),
    ),
    moment=parse_minute_or_now,
    date=parse_minute,
    shown=render.lease,
    writer=LeaseWriter(render.lease),
    one="lease",
    many="leases",
)
V2 = LeaseFormat(
    cache="v2",
    component="LeaseV2",
    created=Body("LeaseCreateV2", schemas.LEASE_CREATE_V2, (_NEW_LEASE_OF_V2,)),
    changed=Body(
        "LeaseUpdateV2",
        schemas.LEASE_UPDATE_V2,
        (
            {"end_date": "2030-04-01T22:00:00Z"},
            {"name": "nightly", "reservations": [{"id": RESERVATION_ID, ALIAS: "migration"}]},
        ),
    ),
    moment=parse_instant,
    date=parse_instant,
    shown=render.lease_of_v2,
    writer=LeaseWriter(render.lease_of_v2, of_v2=True),
)
ALL = (V1_0, V2)


def new_lease(body: Json, form: LeaseFormat, caller: Caller, *, operator: bool) -> LeaseRequest:
    """Return the request for a new lease; its user and project are always those of the caller."""
    before_end = body.get("before_end_date")
    return LeaseRequest(
        name=body["name"],
        user_id=caller.user_id,
        project_id=caller.project_id,
        start=form.moment(body["start_date"], "start_date"),
        end=form.moment(body["end_date"], "end_date"),
        before_end=form.date(before_end, "before_end_date") if before_end else None,
        reservations=tuple(
            ReservationRequest(item["resource_type"], _parameters(item)) for item in body.get("reservations", [])
        ),
        events=tuple(_event(item, form) for item in body.get("events", [])),
        operator=operator,
    )


def lease_change(body: Json, form: LeaseFormat, caller: Caller, *, operator: bool) -> LeaseChange:
    """Return the change of a lease that the caller asks for."""
    items = body.get("reservations", [])
    if any("id" not in item for item in items):
        raise InvalidInput("Missing parameter reservation ID: each item of reservations needs the id of a reservation")
    ids = [item["id"] for item in items]
    if len(set(ids)) != len(ids):
        raise InvalidInput("reservations: two items have the same id; put all changes of a reservation into one item")
    before_end = body.get("before_end_date")
    return LeaseChange(
        name=body.get("name"),
        start=form.moment(body["start_date"], "start_date") if "start_date" in body else None,
        end=form.moment(body["end_date"], "end_date") if "end_date" in body else None,
        before_end=form.date(before_end, "before_end_date") if before_end else None,
        reservations=tuple(
            ReservationChange(item["id"], _parameters(item), item.get("resource_type")) for item in items
        ),
        asked_by=Actor(caller.user_id, caller.project_id, operator),
    )


def _event(item: Json, form: LeaseFormat) -> EventRequest:
    texts = {text for key in ("event_date", "time") if (text := item.get(key)) is not None}
    if len(texts) > 1:
        raise InvalidInput("events: event_date and time are aliases and differ; give one of them")
    return EventRequest(item["event_type"], form.date(texts.pop(), "event_date") if texts else None)


def _parameters(item: Json) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("id", "resource_type")}
