# SPDX-License-Identifier: Apache-2.0
"""Rows of series and of their occurrences: conversion to values and back, and how many a project may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime, time, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.base.clock import zulu
from blazar.model.base.moments import Duration
from blazar.model.base.window import Window
from blazar.model.leases.limits import Exceeded
from blazar.model.leases.reminders import reminders_json, reminders_of
from blazar.model.leases.requests import ReservationRequest
from blazar.model.leases.states import EndReason, LeaseStatus
from blazar.model.series.checks import Fit
from blazar.model.series.details import OccurrenceState, Series, SeriesOccurrence, SeriesStatus, Template, derive_state
from blazar.model.series.recurrence import LocalEnd, Recurrence
from blazar.model.series.rule_text import parse_rule, rule_text
from blazar.store.sql.rows import local_of, local_text
from blazar.store.sql.tables import leases, occurrences, series

SERIES_COLUMNS = tuple(column for column in series.c if column.name not in ("due_at", "claimed_by"))
OCCURRENCE_COLUMNS = (
    *occurrences.c,
    leases.c.status,
    leases.c.end_reason,
    leases.c.deleted_at,
    leases.c.starts_at.label("begins"),
    leases.c.ends_at.label("finishes"),
    leases.c.series_changed,
)
WITH_LEASES = occurrences.outerjoin(leases, leases.c.id == occurrences.c.lease_id)


def series_row(value: Series) -> dict[str, Any]:
    """Return the columns of a series, without those of a claim."""
    when = value.recurrence
    until = when.length if isinstance(when.length, LocalEnd) else None
    return {
        "id": value.id,
        "name": value.name,
        "user_id": value.user_id,
        "project_id": value.project_id,
        "rule": rule_text(when.rule),
        "starts_local": local_text(when.start),
        "zone": when.zone,
        "duration": int(when.length.total_seconds()) if isinstance(when.length, timedelta) else None,
        "until_local": None if until is None else until.at.isoformat(timespec="seconds"),
        "until_days": None if until is None else until.days,
        "exdates": [local_text(local) for local in sorted(when.excluded)],
        "rdates": [local_text(local) for local in sorted(when.added)],
        "template": template_json(value.template),
        "fit": str(value.fit),
        "status": str(value.status),
        "reason": value.reason,
        "previous_id": value.previous_id,
        "booked_until": value.booked_until,
        "ends_running": value.ends_running,
        "revision": value.revision,
        "created_at": value.created_at,
        "updated_at": value.updated_at,
        "deleted_at": value.deleted_at,
        "attempts": value.attempts,
    }


def series_of(row: sa.Row[Any]) -> Series:
    """Return a series."""
    return Series(
        id=row.id,
        name=row.name,
        user_id=row.user_id,
        project_id=row.project_id,
        recurrence=Recurrence(
            local_of(row.starts_local),
            row.zone,
            parse_rule(row.rule),
            LocalEnd(time.fromisoformat(row.until_local), row.until_days)
            if row.duration is None
            else timedelta(seconds=row.duration),
            frozenset(map(local_of, row.exdates)),
            frozenset(map(local_of, row.rdates)),
        ),
        template=_template_of(row.template),
        fit=Fit(row.fit),
        status=SeriesStatus(row.status),
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted_at=row.deleted_at,
        revision=row.revision,
        booked_until=row.booked_until,
        reason=row.reason,
        previous_id=row.previous_id,
        ends_running=row.ends_running,
        attempts=row.attempts,
    )


def template_json(template: Template) -> dict[str, Any]:
    """Return the stored form of what each lease of a series is made of."""
    return {
        "reservations": [
            {
                "resource_type": reservation.resource_type,
                "parameters": dict(reservation.parameters),
                **({"secret": dict(reservation.secret)} if reservation.secret else {}),
            }
            for reservation in template.reservations
        ],
        "before_end": None if template.before_end is None else asdict(template.before_end),
        "operator": template.operator,
        **({"reminders": reminders_json(template.reminders)} if template.reminders else {}),
        **({} if template.max_price is None else {"max_price": template.max_price}),
        **({"keep_hosts": True} if template.keep_hosts else {}),
        **({} if template.quoted_at is None else {"quoted_at": zulu(template.quoted_at)}),
    }


def _template_of(stored: Mapping[str, Any]) -> Template:
    before_end = stored["before_end"]
    return Template(
        tuple(
            ReservationRequest(reservation["resource_type"], reservation["parameters"], reservation.get("secret", {}))
            for reservation in stored["reservations"]
        ),
        None if before_end is None else Duration(**before_end),
        stored["operator"],
        reminders_of(stored.get("reminders", ())),
        stored.get("max_price"),
        stored.get("keep_hosts", False),
        None if (quoted_at := stored.get("quoted_at")) is None else datetime.fromisoformat(quoted_at),
    )


def occurrence_row(series_id: str, value: SeriesOccurrence) -> dict[str, Any]:
    """Return the columns of an occurrence."""
    opening = value.opening
    return {
        "series_id": series_id,
        "recurrence_id": local_text(value.recurrence_id),
        "starts_at": value.start,
        "ends_at": value.end,
        "state": str(value.state),
        "lease_id": value.lease_id,
        "reason": value.reason,
        "opening_starts_at": None if opening is None else opening.start,
        "opening_ends_at": None if opening is None else opening.end,
    }


def occurrence_of(row: sa.Row[Any], now: datetime) -> SeriesOccurrence:
    """Return an occurrence as its lease says what has become of it."""
    status = None if row.status is None else LeaseStatus(row.status)
    end_reason = None if row.end_reason is None else EndReason(row.end_reason)
    recorded = OccurrenceState(row.state)
    state = derive_state(recorded, status, end_reason, deleted=row.deleted_at is not None, to_come=row.starts_at > now)
    of_lease = recorded is OccurrenceState.BOOKED and row.begins is not None
    opening = row.opening_starts_at
    return SeriesOccurrence(
        recurrence_id=local_of(row.recurrence_id),
        start=row.begins if of_lease else row.starts_at,
        end=row.finishes if of_lease else row.ends_at,
        state=state,
        lease_id=row.lease_id,
        reason=row.reason,
        opening=None if opening is None else Window(opening, row.opening_ends_at),
        lease_status=LeaseStatus.TERMINATED if row.deleted_at is not None else status,
        changed=bool(row.series_changed),
    )


_LIVE = [str(status) for status in (SeriesStatus.CREATING, SeriesStatus.ACTIVE, SeriesStatus.DELETING)]


def check_series_count(connection: Connection, project_id: str, most: int) -> None:
    """Check that a project may have another series; one statement. UsageDenied if it has ``most`` already."""
    live = (series.c.project_id == project_id, series.c.deleted_at.is_(None), series.c.status.in_(_LIVE))
    count = connection.execute(sa.select(sa.func.count()).select_from(series).where(*live)).scalar_one()
    if count >= most:
        raise Exceeded("series_per_project", "series", most, 1, count).make_denial(
            f"the project has {count} series that have not ended; the limit is {most} (series_per_project); delete "
            "one, or wait until one ends"
        )
