"""Bodies that fit their schema as what a manager is asked for."""

from __future__ import annotations

from typing import Any

from blazar.api.forms import Json, LeaseForm
from blazar.api.identity import Caller
from blazar.model.errors import InvalidInput
from blazar.model.requests import (
    Actor,
    EventRequest,
    LeaseChange,
    LeaseRequest,
    ReservationChange,
    ReservationRequest,
)


def new_lease(body: Json, form: LeaseForm, caller: Caller, *, operator: bool) -> LeaseRequest:
    """Read a lease that is to be, for the caller in the caller's project whatever the body says."""
    before_end = body.get("before_end_date")
    return LeaseRequest(
        name=body["name"],
        user_id=caller.user_id,
        project_id=caller.project_id,
        start=form.moment(body["start_date"], "start_date"),
        end=form.moment(body["end_date"], "end_date"),
        before_end=None if before_end is None else form.date(before_end, "before_end_date"),
        reservations=tuple(
            ReservationRequest(item["resource_type"], _parameters(item)) for item in body.get("reservations", [])
        ),
        events=tuple(_event(item, form) for item in body.get("events", [])),
        operator=operator,
    )


def lease_change(body: Json, form: LeaseForm, caller: Caller, *, operator: bool) -> LeaseChange:
    """Read what is to change in a lease, at the wish of the caller."""
    items = body.get("reservations", [])
    if any("id" not in item for item in items):
        raise InvalidInput("Missing parameter reservation ID: each item of reservations needs the id of a reservation")
    ids = [item["id"] for item in items]
    if len(set(ids)) != len(ids):
        raise InvalidInput("reservations: a reservation is there twice; put all its changes into one item")
    before_end = body.get("before_end_date")
    return LeaseChange(
        name=body.get("name"),
        start=form.moment(body["start_date"], "start_date") if "start_date" in body else None,
        end=form.moment(body["end_date"], "end_date") if "end_date" in body else None,
        before_end=None if before_end is None else form.date(before_end, "before_end_date"),
        reservations=tuple(
            ReservationChange(item["id"], _parameters(item), item.get("resource_type")) for item in items
        ),
        asked_by=Actor(caller.user_id, caller.project_id, operator),
    )


def _event(item: Json, form: LeaseForm) -> EventRequest:
    text = item.get("event_date")
    return EventRequest(item["event_type"], None if text is None else form.date(text, "event_date"))


def _parameters(item: Json) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("id", "resource_type")}
