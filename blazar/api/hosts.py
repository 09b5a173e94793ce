"""``/v1/os-hosts`` with allocations and properties."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, jsonify, request

from blazar.api import render, schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.api.policy import ADMIN
from blazar.model.errors import InvalidInput, NotFound
from blazar.model.requests import HostChange, HostRequest

blueprint = Blueprint("hosts", __name__)


@blueprint.get("/os-hosts")
@blueprint.get("/os-hosts.json")
def index() -> Response:
    """List hosts."""
    services().policy.check("blazar:oshosts:get", caller())
    return jsonify({"hosts": [render.host(host) for host in services().manager.hosts()]})


@blueprint.post("/os-hosts")
@blueprint.post("/os-hosts.json")
def create() -> tuple[Response, int]:
    """Register a host."""
    services().policy.check("blazar:oshosts:post", caller())
    body = read_object(request)
    schemas.check(body, schemas.HOST_CREATE)
    capabilities = {k: _text(v) for k, v in body.items() if k not in schemas.HOST_CREATE["properties"]}
    host_id = str(int(body["id"])) if "id" in body else None
    wanted = HostRequest(body.get("name"), host_id, capabilities)
    return jsonify({"host": render.host(services().manager.create_host(wanted))}), 201


@blueprint.get("/os-hosts/<host_id>")
def show(host_id: str) -> Response:
    """Show a host."""
    services().policy.check("blazar:oshosts:get", caller())
    return jsonify({"host": render.host(services().manager.host(_host_id(host_id)))})


@blueprint.put("/os-hosts/<host_id>")
def update(host_id: str) -> Response:
    """Set and take away capabilities."""
    services().policy.check("blazar:oshosts:put", caller())
    key = _host_id(host_id)
    services().manager.host(key)
    body = read_object(request)
    schemas.check(body, schemas.HOST_UPDATE)
    shadows = sorted(body.keys() & {"name", "trust_id"})
    if shadows:
        raise InvalidInput(f"{shadows[0]} is not a capability and can not be changed; choose another key")
    change = HostChange({k: None if v is None else _text(v) for k, v in body.items()})
    return jsonify({"host": render.host(services().manager.update_host(key, change))})


@blueprint.delete("/os-hosts/<host_id>")
def delete(host_id: str) -> tuple[str, int]:
    """Give a host back."""
    services().policy.check("blazar:oshosts:delete", caller())
    services().manager.delete_host(_host_id(host_id))
    return "", 204


@blueprint.get("/os-hosts/allocations")
@blueprint.get("/os-hosts/allocations.json")
def allocations() -> Response:
    """List what is promised of every host."""
    services().policy.check("blazar:oshosts:get_allocations", caller())
    found = services().manager.host_allocations(**_narrowed())
    return jsonify({"allocations": [render.allocation(a) for a in found]})


@blueprint.get("/os-hosts/<host_id>/allocation")
@blueprint.get("/os-hosts/<host_id>/allocation.json")
def allocation(host_id: str) -> Response:
    """Show what is promised of one host."""
    services().policy.check("blazar:oshosts:get_allocations", caller())
    found = services().manager.host_allocations(host_id=_host_id(host_id), **_narrowed())
    return jsonify({"allocation": render.allocation(found[0])})


@blueprint.get("/os-hosts/properties")
@blueprint.get("/os-hosts/properties.json")
def properties() -> Response:
    """List capabilities."""
    policy = services().policy
    policy.check("blazar:oshosts:get_resource_properties", caller())
    # Any value counts as yes, as it always did: clients write True, and nobody writes False.
    everything = bool(request.args.get("all")) and policy.allows(ADMIN, caller())
    detail = bool(request.args.get("detail"))
    found = services().manager.host_properties(include_private=everything)
    return jsonify({"resource_properties": [render.property_values(value, detail=detail) for value in found]})


@blueprint.patch("/os-hosts/properties/<name>")
def set_property(name: str) -> Response:
    """Show a capability to everybody, or not."""
    services().policy.check("blazar:oshosts:update_resource_properties", caller())
    body = read_object(request)
    schemas.check(body, schemas.PROPERTY_UPDATE)
    if "\0" in name or len(name) > 255:
        raise NotFound("no host has ever had a property of that name")
    changed = services().manager.set_host_property(name, private=body["private"])
    return jsonify({"resource_property": render.resource_property(changed)})


def _host_id(text: str) -> str:
    key = identifier(text)
    if key == "-":
        raise NotFound(f"Host with {{'host_id': '{text[:80]}'}} not found")
    return key


def _narrowed() -> dict[str, Any]:
    return {key: identifier(request.args[key]) for key in ("lease_id", "reservation_id") if key in request.args}


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)
