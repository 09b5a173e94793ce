"""``/v1/leases``."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify, request

from blazar.api import render, schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.api.dates import date, moment
from blazar.api.policy import ADMIN
from blazar.model.errors import InvalidInput, NotFound
from blazar.model.lease import Lease
from blazar.model.requests import (
    EventRequest,
    LeaseChange,
    LeaseRequest,
    ReservationChange,
    ReservationRequest,
)

blueprint = Blueprint("leases", __name__)


@blueprint.get("/leases")
@blueprint.get("/leases.json")
def index() -> Response:
    """List leases: the caller's project's, or all for operators."""
    policy = services().policy
    policy.check("blazar:leases:get", caller())
    project_id = None if policy.allows(ADMIN, caller()) else caller().project_id
    texts = services().rendered.all(services().manager, project_id)
    return Response(f'{{"leases":[{",".join(texts)}]}}', mimetype="application/json")


@blueprint.post("/leases")
@blueprint.post("/leases.json")
def create() -> tuple[Response, int]:
    """Create a lease."""
    services().policy.check("blazar:leases:post", caller())
    body = read_object(request)
    schemas.check(body, schemas.LEASE_CREATE)
    lease = services().manager.create_lease(_request(body))
    return jsonify({"lease": render.lease(lease)}), 201


@blueprint.get("/leases/<lease_id>")
def show(lease_id: str) -> Response:
    """Show a lease."""
    return jsonify({"lease": render.lease(_visible(lease_id))})


@blueprint.put("/leases/<lease_id>")
def update(lease_id: str) -> Response:
    """Change a lease."""
    lease = _visible(lease_id)
    services().policy.check("blazar:leases:put", caller(), _target(lease))
    body = read_object(request)
    schemas.check(body, schemas.LEASE_UPDATE)
    changed = services().manager.update_lease(lease.id, _change(body))
    return jsonify({"lease": render.lease(changed)})


@blueprint.delete("/leases/<lease_id>")
def delete(lease_id: str) -> tuple[str, int]:
    """Delete a lease."""
    lease = _visible(lease_id)
    services().policy.check("blazar:leases:delete", caller(), _target(lease))
    services().manager.delete_lease(lease.id)
    return "", 204


def _visible(lease_id: str) -> Lease:
    """Return a lease that the caller may see; of others it is said that they are there, but no more."""
    key = identifier(lease_id)
    if key == "-":
        raise NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found")
    lease = services().manager.lease(key)
    services().policy.check("blazar:leases:get", caller(), _target(lease))
    return lease


def _target(lease: Lease) -> dict[str, str]:
    return {"project_id": lease.project_id, "user_id": lease.user_id}


def _request(body: dict[str, Any]) -> LeaseRequest:
    before_end = body.get("before_end_date")
    return LeaseRequest(
        name=body["name"],
        user_id=caller().user_id,
        project_id=caller().project_id,
        start=moment(body["start_date"], "start_date"),
        end=moment(body["end_date"], "end_date"),
        before_end=None if before_end is None else date(before_end, "before_end_date"),
        reservations=tuple(
            ReservationRequest(item["resource_type"], _parameters(item)) for item in body.get("reservations", [])
        ),
        events=tuple(_event(item) for item in body.get("events", [])),
    )


def _event(item: dict[str, Any]) -> EventRequest:
    text = item.get("event_date")
    return EventRequest(item["event_type"], None if text is None else date(text, "event_date"))


def _change(body: dict[str, Any]) -> LeaseChange:
    items = body.get("reservations", [])
    if any("id" not in item for item in items):
        raise InvalidInput("Missing parameter reservation ID: each item of reservations needs the id of a reservation")
    ids = [item["id"] for item in items]
    if len(set(ids)) != len(ids):
        raise InvalidInput("reservations: a reservation is there twice; put all its changes into one item")
    before_end = body.get("before_end_date")
    return LeaseChange(
        name=body.get("name"),
        start=moment(body["start_date"], "start_date") if "start_date" in body else None,
        end=moment(body["end_date"], "end_date") if "end_date" in body else None,
        before_end=None if before_end is None else date(before_end, "before_end_date"),
        reservations=tuple(
            ReservationChange(item["id"], _parameters(item), item.get("resource_type")) for item in items
        ),
    )


def _parameters(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("id", "resource_type")}
