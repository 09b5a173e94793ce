# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases`` and ``/v2/leases``: the same handlers and rules, each with the formats of its version."""

from __future__ import annotations

from flask import Blueprint, Response, g, jsonify, request

from blazar.api import microversion, schemas
from blazar.api.bodies import read_object
from blazar.api.context import caller, identifier, services
from blazar.api.forms import LeaseForm, enclosed
from blazar.api.lease_requests import check_text, check_text_after, lease_change, new_lease
from blazar.api.policy import ADMIN
from blazar.model.errors import Denied, NotFound, UsageDenied
from blazar.model.lease import Lease


class Leases:
    """Handlers of one API version."""

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
        """List the leases of the caller's project; operators see all leases."""
        services().policy.check("blazar:leases:get", caller())
        project_id = None if _is_operator() else caller().project_id
        texts = services().rendered[self._form.version].all(services().manager, project_id)
        key = self._form.many
        opening, closing = (b"[", b"]") if key is None else (f'{{"{key}":['.encode(), b"]}")
        if not texts:
            return Response(opening + closing, mimetype="application/json")
        # Joined once: a long list is tens of megabytes, and each copy costs milliseconds.
        texts[0] = opening + texts[0]
        texts[-1] += closing
        return Response(b",".join(texts), mimetype="application/json")

    def create(self) -> tuple[Response, int]:
        """Create a lease."""
        services().policy.check("blazar:leases:post", caller())
        body = read_object(request)
        schemas.check(body, self._form.created)
        check_text(body)
        if not caller().project_id:
            raise Denied(
                "The token has no project scope, and a lease belongs to a project; use a project-scoped token."
            )
        wanted = new_lease(body, self._form, caller(), operator=_is_operator())
        try:
            return self._shown(services().manager.create_lease(wanted)), 201
        except UsageDenied as error:
            # As in the existing Blazar: a filter that refuses a new lease gives 403, a refused update gives 400.
            raise Denied(error.message) from error

    def show(self, lease_id: str) -> Response:
        """Show a lease."""
        return self._shown(_visible(lease_id))

    def update(self, lease_id: str) -> Response:
        """Update a lease."""
        lease = _visible(lease_id)
        services().policy.check("blazar:leases:put", caller(), _target(lease))
        body = read_object(request)
        schemas.check(body, self._form.changed)
        check_text_after(body, lease)
        change = lease_change(body, self._form, caller(), operator=_is_operator())
        return self._shown(services().manager.update_lease(lease.id, change))

    def delete(self, lease_id: str) -> tuple[str, int]:
        """Delete a lease."""
        lease = _visible(lease_id)
        services().policy.check("blazar:leases:delete", caller(), _target(lease))
        services().manager.delete_lease(lease.id)
        for rendered in services().rendered.values():
            rendered.drop(lease.id)
        return "", 204

    def _shown(self, lease: Lease) -> Response:
        return jsonify(enclosed(self._form.one, self._form.shown(lease)))


def _visible(lease_id: str) -> Lease:
    """Return a lease that the caller may see.

    Otherwise version 1.0 answers 403, which reveals that the lease exists; later versions answer 404.
    """
    key = identifier(lease_id)
    if key == "-":
        raise _unknown(lease_id)
    lease = services().manager.lease(key)
    try:
        services().policy.check("blazar:leases:get", caller(), _target(lease))
    except Denied:
        if g.version is not None and g.version >= microversion.HIDES_LEASES:
            raise _unknown(key) from None
        raise
    return lease


def _unknown(lease_id: str) -> NotFound:
    """Return the NotFound error of a lease id; clients rely on its wording."""
    return NotFound(f"Lease with {{'lease_id': '{lease_id[:80]}'}} not found")


def _is_operator() -> bool:
    return services().policy.allows(ADMIN, caller())


def _target(lease: Lease) -> dict[str, str]:
    return {"project_id": lease.project_id, "user_id": lease.user_id}
