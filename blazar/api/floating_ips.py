# SPDX-License-Identifier: Apache-2.0
"""``/v1/floatingips``: the addresses that can be reserved. Version 2 does not serve them."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from blazar.api import render, schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.model.requests import FloatingIpRequest
from blazar.model.resource import Resource, ResourceKind, unknown


def blueprint() -> Blueprint:
    """Return the routes."""
    routes = Blueprint("floating-ips", __name__, url_prefix="/v1")
    for path in ("/floatingips", "/floatingips.json"):
        routes.get(path)(index)
        routes.post(path)(create)
    routes.get("/floatingips/<floating_ip_id>")(show)
    routes.delete("/floatingips/<floating_ip_id>")(delete)
    return routes


def index() -> Response:
    """List addresses."""
    services().policy.check("blazar:floatingips:get", caller())
    return jsonify({"floatingips": [render.floating_ip(found) for found in services().manager.floating_ips()]})


def create() -> tuple[Response, int]:
    """Register an address."""
    services().policy.check("blazar:floatingips:post", caller())
    body = read_object(request)
    schemas.check(body, schemas.FLOATING_IP_CREATE)
    wanted = FloatingIpRequest(body["floating_network_id"], body["floating_ip_address"])
    return _shown(services().manager.create_floating_ip(wanted)), 201


def show(floating_ip_id: str) -> Response:
    """Show an address."""
    services().policy.check("blazar:floatingips:get", caller())
    return _shown(services().manager.floating_ip(_id(floating_ip_id)))


def delete(floating_ip_id: str) -> tuple[str, int]:
    """Unregister an address."""
    services().policy.check("blazar:floatingips:delete", caller())
    services().manager.delete_floating_ip(_id(floating_ip_id))
    return "", 204


def _id(text: str) -> str:
    key = identifier(text)
    if key == "-":
        raise unknown(ResourceKind.FLOATING_IP, text)
    return key


def _shown(found: Resource) -> Response:
    return jsonify({"floatingip": render.floating_ip(found)})
