# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` and ``/v2/os-hosts``: the same handlers and rules, each with the formats of its version."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from blazar.api import schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, services
from blazar.api.forms import HostForm, enclosed
from blazar.model.resource import Resource


class Hosts:
    """Handlers of one API version."""

    def __init__(self, form: HostForm) -> None:
        self._form = form

    def blueprint(self) -> Blueprint:
        """Return the routes of this version."""
        routes = Blueprint(f"hosts-{self._form.version}", __name__, url_prefix=f"/{self._form.version}")
        for path in ("/os-hosts", "/os-hosts.json"):
            routes.get(path)(self.index)
            routes.post(path)(self.create)
        routes.get("/os-hosts/<host_id>")(self.show)
        routes.put("/os-hosts/<host_id>")(self.update)
        routes.delete("/os-hosts/<host_id>")(self.delete)
        return routes

    def index(self) -> Response:
        """List hosts."""
        services().policy.check("blazar:oshosts:get", caller())
        return jsonify(enclosed(self._form.many, [self._form.shown(host) for host in services().manager.hosts()]))

    def create(self) -> tuple[Response, int]:
        """Register a host."""
        services().policy.check("blazar:oshosts:post", caller())
        body = read_object(request)
        schemas.check(body, self._form.created)
        return self._shown(services().manager.create_host(self._form.request(body))), 201

    def show(self, host_id: str) -> Response:
        """Show a host."""
        services().policy.check("blazar:oshosts:get", caller())
        return self._shown(services().manager.host(self._form.host_id(host_id)))

    def update(self, host_id: str) -> Response:
        """Set and remove capabilities."""
        services().policy.check("blazar:oshosts:put", caller())
        key = self._form.host_id(host_id)
        services().manager.host(key)
        body = read_object(request)
        schemas.check(body, self._form.changed)
        return self._shown(services().manager.update_host(key, self._form.change(body)))

    def delete(self, host_id: str) -> tuple[str, int]:
        """Unregister a host."""
        services().policy.check("blazar:oshosts:delete", caller())
        services().manager.delete_host(self._form.host_id(host_id))
        return "", 204

    def _shown(self, host: Resource) -> Response:
        return jsonify(enclosed(self._form.one, self._form.shown(host)))
