# SPDX-License-Identifier: Apache-2.0
"""Rows of leases, reservations, events and allocations: conversion to values and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy.engine import Row

from blazar.model.base.amounts import Amounts
from blazar.model.base.window import Window
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Event, ExtendIfFree, Lease, PartOfSeries, TransferOffer
from blazar.model.leases.reminders import reminders_json, reminders_of
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import EndReason, EventStatus, LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.leases.stored import (
    cause_json,
    cause_of,
    cloud_ids_json,
    cloud_ids_of,
    gone_of,
    saved_state_json,
    saved_state_of,
)
from blazar.model.queue import Wait, terms_json, with_terms
from blazar.model.use.policy import LeaseUse, Usage
from blazar.store.sql.tables import allocations, events, leases, reservations

LEASE_COLUMNS = (
    leases.c.id,
    leases.c.name,
    leases.c.user_id,
    leases.c.project_id,
    leases.c.starts_at,
    leases.c.ends_at,
    leases.c.status,
    leases.c.created_at,
    leases.c.updated_at,
    leases.c.trust_id,
    leases.c.degraded,
    leases.c.deleted_at,
    leases.c.revision,
    leases.c.kind,
    leases.c.end_reason,
    leases.c.usage,
    leases.c.used_at,
    leases.c.release_at,
    leases.c.would_release_at,
    leases.c.held,
    leases.c.queued_at,
    leases.c.wait_until,
    leases.c.wait_earliest,
    leases.c.wait_position,
    leases.c.wait_estimate,
    leases.c.wait_reason,
    leases.c.wait_terms,
    leases.c.extend_until,
    leases.c.extend_reason,
    leases.c.series_id,
    leases.c.recurrence_id,
    leases.c.series_changed,
    leases.c.offered_to,
    leases.c.offered_to_user,
    leases.c.offer_expires_at,
    leases.c.offer_terms,
    leases.c.reminders,
    leases.c.keep_hosts,
)
RESERVATION_COLUMNS = (
    reservations.c.lease_id,
    reservations.c.id,
    reservations.c.resource_type,
    reservations.c.resource_id,
    reservations.c.status,
    reservations.c.created_at,
    reservations.c.updated_at,
    reservations.c.missing_resources,
    reservations.c.resources_changed,
    reservations.c.parameters,
    reservations.c.cloud_ids,
    reservations.c.missing_since,
    reservations.c.changed_since,
    reservations.c.region,
    reservations.c.parent_id,
    reservations.c.handed_over_at,
)
EVENT_COLUMNS = (
    events.c.lease_id,
    events.c.id,
    events.c.event_type,
    events.c.time,
    events.c.status,
    events.c.created_at,
    events.c.updated_at,
    events.c.due_at,
    events.c.claimed_by,
    events.c.claimed_at,
    events.c.attempts,
    events.c.reason,
    events.c.saved_state,
    events.c.cause,
    events.c.trouble_since,
)
ALLOCATION_COLUMNS = (
    allocations.c.kind,
    allocations.c.resource_id,
    allocations.c.lease_id,
    allocations.c.reservation_id,
    allocations.c.starts_at,
    allocations.c.ends_at,
    allocations.c.count,
    allocations.c.per_instance,
)

_KIND_OF_LEASE = {str(kind): kind for kind in LeaseKind}
_END_REASON: Mapping[str | None, EndReason | None] = {str(reason): reason for reason in EndReason} | {None: None}
_STATUS_OF_LEASE = {str(status): status for status in LeaseStatus}
_STATUS_OF_RESERVATION = {str(status): status for status in ReservationStatus}
_STATUS_OF_EVENT: Mapping[str | None, EventStatus | None] = {str(s): s for s in EventStatus} | {None: None}

CHUNK = 5000
"""Maximum keys in one condition: databases have limits (65 535 parameters in PostgreSQL, 32 766 in SQLite)."""

T = TypeVar("T")
AnyRow = Row[*tuple[Any, ...]]
Rows = Sequence[AnyRow]


def chunks(items: Collection[T]) -> Iterator[list[T]]:
    """Yield items in parts that fit into one condition; one part for all but the largest requests."""
    every = list(items)
    return (every[start : start + CHUNK] for start in range(0, len(every), CHUNK))


def assemble_leases(lease_rows: Sequence[Sequence[Any]], reservation_rows: Rows, event_rows: Rows) -> tuple[Lease, ...]:
    """Return leases with their reservations and events, each in the order of its rows."""
    kept: dict[str, list[Reservation]] = defaultdict(list)
    for row in reservation_rows:
        kept[row[0]].append(reservation_of(row))
    due: dict[str, list[Event]] = defaultdict(list)
    for row in event_rows:
        due[row[0]].append(parse_event(row))
    return tuple(_lease(row, tuple(kept[row[0]]), tuple(due[row[0]])) for row in lease_rows)


def parse_event(row: AnyRow) -> Event:
    """Return an event, of the columns of ``EVENT_COLUMNS``."""
    _, id_, kind, time, status, created, updated, at, owner, since, tries, reason, saved_state, cause, trouble = row
    return Event(
        id_,
        kind,
        time,
        _STATUS_OF_EVENT[status],
        created,
        updated,
        at,
        owner,
        since,
        tries,
        reason,
        saved_state_of(saved_state),
        cause_of(cause, reason),
        trouble,
    )


def _lease(row: Sequence[Any], reservations: tuple[Reservation, ...], events: tuple[Event, ...]) -> Lease:
    id_, name, user_id, project_id, starts_at, ends_at, status, created, updated, trust_id, *more = row
    degraded, deleted, revision, kind, end_reason, usage, used_at, release_at, *more = more
    would_release_at, held, *more = more
    *wait, until, why, series_id, recurrence_id, series_changed, offered_to, to_user, expires, offer = more[:-2]
    reminders, keep_hosts = more[-2:]
    return Lease(
        id_,
        name,
        user_id,
        project_id,
        Window(starts_at, ends_at),
        _STATUS_OF_LEASE[status],
        created,
        updated,
        trust_id,
        degraded,
        deleted,
        revision,
        reservations,
        events,
        _KIND_OF_LEASE[kind],
        _END_REASON[end_reason],
        None if usage is None else LeaseUse(Usage(usage), used_at, release_at, would_release_at, bool(held)),
        None if wait[0] is None else with_terms(Wait(*wait[:-1]), wait[-1]),
        None if until is None else ExtendIfFree(until, why),
        None if series_id is None else PartOfSeries(series_id, local_of(recurrence_id), series_changed),
        None if offered_to is None else _offer(offered_to, to_user, expires, offer),
        () if reminders is None else reminders_of(reminders),
        keep_hosts,
    )


def reservation_of(row: AnyRow) -> Reservation:
    """Return a reservation."""
    _, id_, kind, resource_id, status, created, updated, missing, changed, values, made, *more = row
    missing_since, changed_since, region, parent, handed_over_at = more
    cloud_ids, unassigned, failed = cloud_ids_of(made)
    return Reservation(
        id_,
        kind,
        resource_id,
        _STATUS_OF_RESERVATION[status],
        created,
        updated,
        missing,
        changed,
        Content(values),
        cloud_ids,
        unassigned,
        failed,
        missing_since,
        changed_since,
        region,
        parent,
        gone_of(made),
        handed_over_at,
    )


def lease_row(lease: Lease) -> dict[str, Any]:
    """Return a lease's own columns."""
    return {
        "id": lease.id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": lease.trust_id,
        "starts_at": lease.window.start,
        "ends_at": lease.window.end,
        "kind": str(lease.kind),
        "status": str(lease.status),
        "end_reason": None if lease.end_reason is None else str(lease.end_reason),
        "usage": None if lease.use is None else str(lease.use.usage),
        "used_at": None if lease.use is None else lease.use.used_at,
        "release_at": None if lease.use is None else lease.use.release_at,
        "would_release_at": None if lease.use is None else lease.use.would_release_at,
        "held": None if lease.use is None else lease.use.held,
        "degraded": lease.degraded,
        "created_at": lease.created_at,
        "updated_at": lease.updated_at,
        "deleted_at": lease.deleted_at,
        "revision": lease.revision,
        **(_NO_WAIT if lease.wait is None else _wait_row(lease.wait)),
        "extend_until": None if lease.extend is None else lease.extend.until,
        "extend_reason": None if lease.extend is None else lease.extend.reason,
        "series_id": None if lease.series is None else lease.series.series_id,
        "recurrence_id": None if lease.series is None else local_text(lease.series.recurrence_id),
        "series_changed": lease.series is not None and lease.series.changed,
        "offered_to": None if lease.offer is None else lease.offer.project_id,
        "offered_to_user": None if lease.offer is None else lease.offer.user_id,
        "offer_expires_at": None if lease.offer is None else lease.offer.expires_at,
        "offer_terms": None if lease.offer is None else _offer_terms(lease.offer),
        "reminders": reminders_json(lease.reminders) if lease.reminders else None,
        "keep_hosts": lease.keep_hosts,
    }


def _offer(project_id: str, user_id: str | None, expires_at: datetime, terms: Mapping[str, Any]) -> TransferOffer:
    offered_at = datetime.fromisoformat(terms["offered_at"])
    return TransferOffer(project_id, user_id, terms["message"], terms["offered_by"], offered_at, expires_at)


def _offer_terms(offer: TransferOffer) -> dict[str, Any]:
    return {"message": offer.message, "offered_by": offer.offered_by, "offered_at": offer.offered_at.isoformat()}


def local_text(local: datetime) -> str:
    """Return a local time as it is stored: its zone is that of its series."""
    return local.isoformat(timespec="seconds")


def local_of(text: str) -> datetime:
    """Return a stored local time."""
    return datetime.fromisoformat(text)


def _wait_row(wait: Wait) -> Mapping[str, Any]:
    return {
        "queued_at": wait.queued_at,
        "wait_until": wait.until,
        "wait_earliest": wait.earliest,
        "wait_position": wait.position,
        "wait_estimate": wait.estimate,
        "wait_reason": wait.reason,
        "wait_terms": terms_json(wait),
    }


_WAIT = ("queued_at", "wait_until", "wait_earliest", "wait_position", "wait_estimate", "wait_reason", "wait_terms")
_NO_WAIT: Mapping[str, Any] = dict.fromkeys(_WAIT)


def reservation_row(lease_id: str, position: int, reservation: Reservation) -> dict[str, Any]:
    """Return a reservation's columns."""
    return {
        "lease_id": lease_id,
        "position": position,
        "id": reservation.id,
        "resource_type": reservation.resource_type,
        "resource_id": reservation.resource_id,
        "status": str(reservation.status),
        "created_at": reservation.created_at,
        "updated_at": reservation.updated_at,
        "missing_resources": reservation.missing_resources,
        "resources_changed": reservation.resources_changed,
        "parameters": dict(reservation.parameters.values),
        "cloud_ids": cloud_ids_json(reservation),
        "missing_since": reservation.missing_since,
        "changed_since": reservation.changed_since,
        "region": reservation.region,
        "parent_id": reservation.parent,
        "handed_over_at": reservation.handed_over_at,
    }


def event_row(lease_id: str, position: int, event: Event) -> dict[str, Any]:
    """Return an event's columns."""
    return {
        "lease_id": lease_id,
        "position": position,
        "id": event.id,
        "event_type": str(event.event_type),
        "time": event.time,
        "status": None if event.status is None else str(event.status),
        "created_at": event.created_at,
        "updated_at": event.updated_at,
        "due_at": event.due_at,
        "claimed_by": event.claimed_by,
        "claimed_at": event.claimed_at,
        "attempts": event.attempts,
        "reason": event.reason,
        "saved_state": None if event.saved_state is None else saved_state_json(event.saved_state),
        "cause": None if event.cause is None else cause_json(event.cause, event.reason),
        "trouble_since": event.trouble_since,
    }


_window_of = lru_cache(maxsize=8192)(Window)
"""Returns the window of two instants. The same recur: one lease is on many resources, and leases have usual times."""


def allocation_of(row: Sequence[Any]) -> Allocation:
    """Return an allocation."""
    kind, resource_id, lease_id, reservation_id, starts_at, ends_at, count, per_instance = row
    return Allocation(
        kind,
        resource_id,
        lease_id,
        reservation_id,
        _window_of(starts_at, ends_at),
        count,
        None if per_instance is None else Amounts.of(per_instance),
    )
