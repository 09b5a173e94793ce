# SPDX-License-Identifier: Apache-2.0
"""Turn requests about series into requests to the manager."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, time, timedelta

from blazar.api.http.identity import Caller
from blazar.api.http.shapes import Json
from blazar.api.leases.limits import check_text
from blazar.api.leases.rules import View
from blazar.api.leases.v1_1.reminders import parse_reminders
from blazar.api.leases.v1_1.requests import Schemas, parse_quoted_at, reservations
from blazar.api.series.schemas import LOCAL
from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import Duration
from blazar.model.leases.requests import Actor, LeaseDefaults
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit
from blazar.model.series.details import SeriesRequest, Template
from blazar.model.series.recurrence import LocalEnd, Recurrence
from blazar.model.series.rule_text import parse_rule

_LOCAL = re.compile(dates.LOCAL_DATE, re.ASCII)
_UNTIL = re.compile(r"(([01]\d|2[0-3]):[0-5]\d(:[0-5]\d)?)(\+(\d{1,4})d)?", re.ASCII)


def new_series(
    body: Json, caller: Caller, view: View, schemas_of: Schemas, *, dry_run: bool, defaults: LeaseDefaults
) -> SeriesRequest:
    """Return the request for a new series. InvalidInput."""
    check_text(body)
    before_end = before_end_of(body.get("before_end_date"), zone_of(body))
    reminding = parse_reminders(body, of_series=True) or ()
    return SeriesRequest(
        name=body["name"],
        user_id=caller.user_id,
        project_id=caller.project_id,
        recurrence=recurrence(body),
        template=Template(
            reservations(body["reservations"], view, schemas_of),
            before_end,
            view.operator,
            reminding,
            body.get("max_price"),
            body.get("keep_hosts", defaults.keeps_hosts(names=view.names, operator=view.operator)),
            parse_quoted_at(body),
        ),
        fit=Fit(body.get("fit", Fit.ALL)),
        dry_run=dry_run,
    )


def series_change(
    body: Json,
    caller: Caller,
    view: View,
    schemas_of: Schemas,
    *,
    dry_run: bool,
    revisions: tuple[int, ...] | None,
) -> SeriesChange:
    """Return the change of a series that the caller asks for, if it has one of the ``revisions``. InvalidInput."""
    if not body.keys() - {"from", "changed"}:
        raise InvalidInput(
            "nothing is to change; give a name, dates, a rule or reservations", code="missing_field", at="/name"
        )
    check_text(body)
    items = body.get("reservations")
    return SeriesChange(
        since=local(body["from"], "from") if "from" in body else None,
        name=body.get("name"),
        rule=parse_rule(body["rule"]) if "rule" in body else None,
        start=local(body["start"], "start") if "start" in body else None,
        zone=zone_of(body) if "time_zone" in body else None,
        length=_length(body) if {"duration", "until_local"} & body.keys() else None,
        excluded=_locals(body, "exdates") if "exdates" in body else None,
        added=_locals(body, "rdates") if "rdates" in body else None,
        before_end=before_end_of(body.get("before_end_date"), zone_of(body)),
        sets_before_end="before_end_date" in body,
        reservations=None if items is None else reservations(items, view, schemas_of),
        reminders=parse_reminders(body, of_series=True),
        fit=Fit(body["fit"]) if "fit" in body else None,
        max_price=body.get("max_price"),
        sets_max_price="max_price" in body,
        keep_hosts=body.get("keep_hosts"),
        with_changed=body.get("changed", False),
        asked_by=Actor(caller.user_id, caller.project_id, view.operator),
        dry_run=dry_run,
        revisions=revisions,
    )


def zone_of(body: Json) -> str:
    """Return the time zone of a body. InvalidInput."""
    return dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))


def recurrence(body: Json) -> Recurrence:
    """Return when a series recurs. InvalidInput for what no schema can say; the rest is for the manager to check."""
    return Recurrence(
        local(body["start"], "start"),
        zone_of(body),
        parse_rule(body["rule"]),
        _length(body),
        _locals(body, "exdates"),
        _locals(body, "rdates"),
    )


def before_end_of(text: str | None, zone: str) -> Duration | None:
    """Return when each lease of a series warns before its end. InvalidInput."""
    if text is None:
        return None
    place = in_body("before_end_date")
    found = dates.moment_or_duration(text, place, zone=zone, backward=True) if text[:1] in ("+", "-") else None
    if not isinstance(found, Duration):
        raise place.invalid(text, "a duration with its sign, +P1D from each start or -PT2H before each end, or null")
    return found


def local(text: str, *path: str | int) -> datetime:
    """Return a local time. InvalidInput."""
    try:
        if len(text) > dates.MOST_CHARACTERS or not _LOCAL.fullmatch(text):
            raise ValueError
        return datetime.fromisoformat(dates.to_the_second(text))
    except ValueError:
        raise in_body(*path).invalid(text, f"{LOCAL}, without an offset") from None


def _locals(body: Json, key: str) -> frozenset[datetime]:
    texts: Sequence[str] = body.get(key, ())
    found: set[datetime] = set()
    for number, text in enumerate(texts):
        instant = local(text, key, number)
        if instant in found:
            raise in_body(key, number).invalid(text, "each date once")
        found.add(instant)
    return frozenset(found)


def _length(body: Json) -> timedelta | LocalEnd:
    if ("duration" in body) is ("until_local" in body):
        missing = "duration" not in body
        raise InvalidInput(
            "duration or until_local is missing; give one of them"
            if missing
            else "until_local and duration cannot both be given; leave one of them out",
            code="missing_field" if missing else "invalid_value",
            at="/duration" if missing else "/until_local",
        )
    if "duration" in body:
        place = in_body("duration")
        found = dates.duration(body["duration"], place)
        if found.years or found.months:
            raise place.invalid(body["duration"], "days, hours, minutes or seconds: months differ in length")
        return timedelta(days=found.days, seconds=found.seconds)
    match = _UNTIL.fullmatch(body["until_local"])
    if match is None:
        raise in_body("until_local").invalid(body["until_local"], "a time such as 17:00, or 06:00+1d on the next day")
    return LocalEnd(time.fromisoformat(match[1]), int(match[5] or 0))
