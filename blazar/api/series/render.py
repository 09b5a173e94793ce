# SPDX-License-Identifier: Apache-2.0
"""Schemas of series, and how one is shown."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from blazar.api.http.answers import link
from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    LINKS,
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
from blazar.api.leases.v1_1.reminders import EXAMPLE, SHOWN_OF_SERIES, render_reminder
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.base.moments import Duration
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.series.checks import Fit
from blazar.model.series.details import OccurrenceState, Series, SeriesDetails, SeriesOccurrence, SeriesStatus
from blazar.model.series.recurrence import LocalEnd
from blazar.model.series.rule_text import rule_text

_LOCAL: Json = {
    "type": "string",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$",
    "description": "a local time of the time zone",
}
_REQUIREMENTS = ("hypervisor_properties", "network_properties", "resource_properties")
_SERIES: Json = {
    "id": TEXT_OR_NULL,
    "name": TEXT,
    "project_id": TEXT,
    "user_id": TEXT,
    "status": one_of(SeriesStatus),
    "reason": {**TEXT_OR_NULL, "description": "why it has failed"},
    "rule": TEXT,
    "start": _LOCAL,
    "time_zone": TEXT,
    "duration": {**TEXT_OR_NULL, "description": "how long each lasts; null if its end is given by the wall clock"},
    "until_local": TEXT_OR_NULL,
    "exdates": a_list(_LOCAL),
    "rdates": a_list(_LOCAL),
    "before_end_date": TEXT_OR_NULL,
    "fit": one_of(Fit),
    "max_price": {**TEXT_OR_NULL, "description": "the most that each lease may cost; null: whatever it costs"},
    "keep_hosts": {**FLAG, "description": "whether each lease keeps its hosts until it starts"},
    "reminders": SHOWN_OF_SERIES,
    "reservations": a_list({"type": "object", "description": "as they were asked for"}),
    "booked_until": {**ZULU_OR_NULL, "description": "up to which start a series without an end is booked so far"},
    "previous_id": {**TEXT_OR_NULL, "description": "the series that it continues"},
    "revision": NUMBER,
    "created_at": ZULU,
    "updated_at": ZULU_OR_NULL,
    "deleted_at": ZULU_OR_NULL,
    "links": LINKS,
}
FIELDS = tuple(_SERIES)
_OCCURRENCE: Json = {
    "recurrence_id": {**_LOCAL, "description": "its local start by the rule, which names it"},
    "start_date": ZULU,
    "end_date": ZULU,
    "state": one_of(OccurrenceState),
    "lease_id": TEXT_OR_NULL,
    "lease_status": one_of(LeaseStatus, None),
    "changed": {**FLAG, "description": "whether its lease was changed by itself"},
    "reason": {**TEXT_OR_NULL, "description": "why it is unfit"},
    "opening": {
        "type": ["object", "null"],
        "required": ["start_date", "end_date"],
        "additionalProperties": False,
        "properties": {"start_date": ZULU, "end_date": ZULU},
        "description": "the window nearest to it in which it would have fitted; null if none was found",
    },
    "price": PRICE,
}
_ID = "5d3f0a52-3c1e-4a1b-9c07-5f2c6f0c7a11"
_EXAMPLE: Json = {
    "id": _ID,
    "name": "practical physics",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "status": "ACTIVE",
    "reason": None,
    "rule": "FREQ=WEEKLY;COUNT=24;BYDAY=MO,WE",
    "start": "2030-04-01T09:00:00",
    "time_zone": "Europe/Paris",
    "duration": None,
    "until_local": "12:30:00",
    "exdates": ["2030-04-22T09:00:00"],
    "rdates": [],
    "before_end_date": None,
    "fit": "all",
    "max_price": None,
    "keep_hosts": False,
    "reminders": [EXAMPLE],
    "reservations": [{"resource_type": "physical:host", "min": 2, "max": 2}],
    "booked_until": None,
    "previous_id": None,
    "revision": 3,
    "created_at": "2030-03-30T11:22:33Z",
    "updated_at": "2030-03-30T11:22:34Z",
    "deleted_at": None,
    "links": [{"rel": "self", "href": f"https://cloud.example/reservation/v1/series/{_ID}"}],
}
_OCCURRENCE_EXAMPLE: Json = {
    "recurrence_id": "2030-04-01T09:00:00",
    "start_date": "2030-04-01T07:00:00Z",
    "end_date": "2030-04-01T10:30:00Z",
    "state": "booked",
    "lease_id": LEASE_ID,
    "lease_status": "PENDING",
    "changed": False,
    "reason": None,
    "opening": None,
    "price": {"amount": "9.60", "currency": "EUR", "charged": "0.00"},
}

COMPONENTS: Json = {
    "Occurrence": an_object(_OCCURRENCE, example=_OCCURRENCE_EXAMPLE),
    "Series": an_object(_SERIES, optional=FIELDS, example=_EXAMPLE),
    "SeriesWithOccurrences": an_object(
        {**_SERIES, "occurrences": a_list(ref("Occurrence"))},
        example={**_EXAMPLE, "occurrences": [_OCCURRENCE_EXAMPLE]},
    ),
}


def render_series(value: Series) -> Json:
    """Return a series as it is shown, without its occurrences."""
    when, length = value.recurrence, value.recurrence.length
    return {
        "id": value.id,
        "name": value.name,
        "project_id": value.project_id,
        "user_id": value.user_id,
        "status": value.status.value,
        "reason": value.reason,
        "rule": rule_text(when.rule),
        "start": _local(when.start),
        "time_zone": when.zone,
        "duration": _duration(length) if isinstance(length, timedelta) else None,
        "until_local": _until(length) if isinstance(length, LocalEnd) else None,
        "exdates": [_local(local) for local in sorted(when.excluded)],
        "rdates": [_local(local) for local in sorted(when.added)],
        "before_end_date": _before_end(value.template.before_end),
        "fit": value.fit.value,
        "max_price": value.template.max_price,
        "keep_hosts": value.template.keep_hosts,
        "reminders": [render_reminder(reminder) for reminder in value.template.reminders],
        "reservations": [_reservation(reservation) for reservation in value.template.reservations],
        "booked_until": zulu_or_none(value.booked_until),
        "previous_id": value.previous_id,
        "revision": value.revision,
        "created_at": zulu(value.created_at),
        "updated_at": zulu_or_none(value.updated_at),
        "deleted_at": zulu_or_none(value.deleted_at),
        "links": [{"rel": "self", "href": link(f"/v1/series/{value.id}")}],
    }


def details(found: SeriesDetails, *, planned: bool = False) -> Json:
    """Return a series with its occurrences; a ``planned`` one does not exist, and has no id."""
    value = {**render_series(found.series), "occurrences": [_occurrence(o) for o in found.occurrences]}
    return {**value, "id": None, "links": []} if planned else value


def _occurrence(value: SeriesOccurrence) -> Json:
    opening = value.opening
    return {
        "recurrence_id": _local(value.recurrence_id),
        "start_date": zulu(value.start),
        "end_date": zulu(value.end),
        "state": value.state.value,
        "lease_id": value.lease_id,
        "lease_status": None if value.lease_status is None else value.lease_status.value,
        "changed": value.changed,
        "reason": value.reason,
        "opening": None if opening is None else {"start_date": zulu(opening.start), "end_date": zulu(opening.end)},
        "price": render_price(value.price),
    }


def _reservation(asked: ReservationRequest) -> Json:
    """Return a reservation as it was asked for, requirements as lists; what is secret is kept apart."""
    given: dict[str, Any] = dict(asked.parameters)
    for key in _REQUIREMENTS:
        if isinstance(text := given.get(key), str):
            given[key] = json.loads(text) if text.strip() else []
    return {**given, "resource_type": asked.resource_type}


def _local(value: datetime) -> str:
    return value.isoformat(timespec="seconds")


def _until(end: LocalEnd) -> str:
    return end.at.isoformat(timespec="seconds") + (f"+{end.days}d" if end.days else "")


def _duration(length: timedelta) -> str:
    """Return a length of time as ISO 8601 has it."""
    return _iso(0, 0, length.days, length.seconds)


def _before_end(value: Duration | None) -> str | None:
    if value is None:
        return None
    return ("-" if value.backward else "+") + _iso(value.years, value.months, value.days, value.seconds)


def _iso(years: int, months: int, days: int, seconds: int) -> str:
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    date, clock = (
        "".join(f"{number}{unit}" for number, unit in parts if number)
        for parts in (((years, "Y"), (months, "M"), (days, "D")), ((hours, "H"), (minutes, "M"), (seconds, "S")))
    )
    return f"P{date}" + (f"T{clock}" if clock else "")
