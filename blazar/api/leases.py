"""``/v1/leases`` and ``/v2/leases``: the same requests and rules, in the form of either version."""

from __future__ import annotations

from flask import Blueprint, Response, jsonify, request

from blazar.api import schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.api.forms import LeaseForm, enclosed
from blazar.api.lease_requests import lease_change, new_lease
from blazar.api.policy import ADMIN
from blazar.model.errors import NotFound
from blazar.model.lease import Lease


class Leases:
    """The handlers of one version."""

    def __init__(self, form: LeaseForm) -> None:
        self._form = form

    def blueprint(self) -> Blueprint:
        """Return the routes of this version."""
        routes = Blueprint(f"leases-{self._form.version}", __name__, url_prefix=f"/{self._form.version}")
        for path in ("/leases", "/leases.json"):
            routes.get(path)(self.index)
            routes.post(path)(self.create)
        routes.get("/leases/<lease_id>")(self.show)
        routes.put("/leases/<lease_id>")(self.update)
        routes.delete("/leases/<lease_id>")(self.delete)
        return routes

    def index(self) -> Response:
        """List leases: the caller's project's, or all for operators."""
        services().policy.check("blazar:leases:get", caller())
        project_id = None if _is_operator() else caller().project_id
        texts = services().rendered[self._form.version].all(services().manager, project_id)
        array = f"[{','.join(texts)}]"
        key = self._form.many
        return Response(array if key is None else f'{{"{key}":{array}}}', mimetype="application/json")

    def create(self) -> tuple[Response, int]:
        """Create a lease."""
        services().policy.check("blazar:leases:post", caller())
        body = read_object(request)
        schemas.check(body, self._form.created)
        wanted = new_lease(body, self._form, caller(), operator=_is_operator())
        return self._shown(services().manager.create_lease(wanted)), 201

    def show(self, lease_id: str) -> Response:
        """Show a lease."""
        return self._shown(_visible(lease_id))

    def update(self, lease_id: str) -> Response:
        """Change a lease."""
        lease = _visible(lease_id)
        services().policy.check("blazar:leases:put", caller(), _target(lease))
        body = read_object(request)
        schemas.check(body, self._form.changed)
        change = lease_change(body, self._form, caller(), operator=_is_operator())
        return self._shown(services().manager.update_lease(lease.id, change))

    def delete(self, lease_id: str) -> tuple[str, int]:
        """Delete a lease."""
        lease = _visible(lease_id)
        services().policy.check("blazar:leases:delete", caller(), _target(lease))
        services().manager.delete_lease(lease.id)
        return "", 204

    def _shown(self, lease: Lease) -> Response:
        return jsonify(enclosed(self._form.one, self._form.shown(lease)))


def _visible(lease_id: str) -> Lease:
    """Return a lease that the caller may see; of others it is said that they are there, but no more."""
    key = identifier(lease_id)
    if key == "-":
        raise NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found")
    lease = services().manager.lease(key)
    services().policy.check("blazar:leases:get", caller(), _target(lease))
    return lease


def _is_operator() -> bool:
    return services().policy.allows(ADMIN, caller())


def _target(lease: Lease) -> dict[str, str]:
    return {"project_id": lease.project_id, "user_id": lease.user_id}
