# SPDX-License-Identifier: Apache-2.0
"""Allocations, moves, refreshes and capabilities of hosts, in version 1 only."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify, request

from blazar.api import render, schemas, v1
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.api.policy import ADMIN
from blazar.model.errors import NotFound


def blueprint() -> Blueprint:
    """Return the routes."""
    routes = Blueprint("host-calendar", __name__, url_prefix="/v1/os-hosts")
    for suffix in ("", ".json"):
        routes.get(f"/allocations{suffix}")(allocations)
        routes.get(f"/<host_id>/allocation{suffix}")(allocation)
        routes.put(f"/<host_id>/allocation{suffix}")(move)
        routes.post(f"/<host_id>/refresh{suffix}")(refresh)
        routes.get(f"/properties{suffix}")(properties)
    routes.patch("/properties/<name>")(set_property)
    return routes


def allocations() -> Response:
    """List the allocations of all hosts."""
    services().policy.check("blazar:oshosts:get_allocations", caller())
    found = services().manager.host_allocations(**_narrowed())
    return jsonify({"allocations": [render.allocation(a) for a in found]})


def allocation(host_id: str) -> Response:
    """Show the allocations of one host."""
    services().policy.check("blazar:oshosts:get_allocations", caller())
    found = services().manager.host_allocations(host_id=v1.host_id(host_id), **_narrowed())
    return jsonify({"allocation": render.allocation(found[0])})


def move(host_id: str) -> Response:
    """Move a reservation from this host to another."""
    services().policy.check("blazar:oshosts:reallocate", caller())
    key = v1.host_id(host_id)
    services().manager.host(key)
    body = read_object(request)
    schemas.check(body, schemas.ALLOCATION_UPDATE)
    found = services().manager.move_reservation(key, identifier(body["reservation_id"]))
    return jsonify({"allocation": render.allocation(found)})


def refresh(host_id: str) -> Response:
    """Refresh a host's data from the cloud."""
    services().policy.check("blazar:oshosts:refresh", caller())
    return jsonify({"host": render.host(services().manager.refresh_host(v1.host_id(host_id)))})


def properties() -> Response:
    """List capabilities."""
    policy = services().policy
    policy.check("blazar:oshosts:get_resource_properties", caller())
    # Any non-empty value counts as true, as in the existing Blazar: clients send True and never False.
    everything = bool(request.args.get("all")) and policy.allows(ADMIN, caller())
    detail = bool(request.args.get("detail"))
    found = services().manager.host_properties(include_private=everything)
    return jsonify({"resource_properties": [render.property_values(value, detail=detail) for value in found]})


def set_property(name: str) -> Response:
    """Make a capability public or private."""
    services().policy.check("blazar:oshosts:update_resource_properties", caller())
    body = read_object(request)
    schemas.check(body, schemas.PROPERTY_UPDATE)
    if "\0" in name or len(name) > 255:
        raise NotFound("no host has ever had a property of this name")
    changed = services().manager.set_host_property(name, private=body["private"])
    return jsonify({"resource_property": render.resource_property(changed)})


def _narrowed() -> dict[str, Any]:
    return {key: identifier(request.args[key]) for key in ("lease_id", "reservation_id") if key in request.args}
