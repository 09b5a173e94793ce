# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases`` and ``/v2/leases``: the same handlers and rules, each with the format of its version."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Response

from blazar.api.context import Call, identifier
from blazar.api.leases import formats, held, schemas
from blazar.api.leases.formats import LeaseFormat
from blazar.api.leases.full import routes as full_routes
from blazar.api.leases.full.components import COMPONENTS
from blazar.api.leases.rendered import RenderedLeases
from blazar.api.leases.requests import check_documents, check_text, check_text_after, lease_change, new_lease
from blazar.api.leases.rules import BEST_EFFORT, DELETE, GET, HOLD, KEEP, POST, PUT
from blazar.api.routes import Part, Root, Route, in_path, within
from blazar.api.shapes import a_list, enclosed, in_envelope, ref
from blazar.api.since import check_known
from blazar.context import allowed
from blazar.model.errors import EXTERNAL, Denied, UsageDenied
from blazar.model.lease import Lease, unknown_lease
from blazar.model.lease_details import LeaseOwner


class Leases:
    """Handlers of leases in one format."""

    def __init__(self, form: LeaseFormat) -> None:
        self._form = form

    def index(self, call: Call) -> Response:
        """List the leases of the caller's project; operators see all leases."""
        project_id = None if call.is_operator else call.caller.project_id
        texts = call.services.rendered[self._form.cache].all(call.manager, project_id)
        key = self._form.many
        opening, closing = (b"[", b"]") if key is None else (f'{{"{key}":['.encode(), b"]}")
        if not texts:
            return Response(opening + closing, mimetype="application/json")
        # Joined once: a long list is tens of megabytes, and each copy costs milliseconds.
        texts[0] = opening + texts[0]
        texts[-1] += closing
        return Response(b",".join(texts), mimetype="application/json")

    def create(self, call: Call) -> Lease:
        """Create a lease."""
        body = call.body()
        check_text(body)
        check_documents(body.get("reservations", []), call.services.served.requests)
        check_known(body)
        if not call.caller.project_id:
            raise Denied(
                "The token has no project scope, and a lease belongs to a project; use a project-scoped token."
            )
        wanted = new_lease(body, self._form, call.caller, operator=call.is_operator)
        try:
            return call.manager.leases.create(wanted)
        except UsageDenied as error:
            # As in the existing Blazar: a limit that refuses a new lease gives 403, a refused update gives 400; what
            # an external service refuses is a 400 in both.
            if error.data == EXTERNAL:
                raise
            raise Denied(error.message, code=error.code, data=error.data, public=error.public) from error

    def show(self, call: Call, lease_id: str) -> Lease:
        """Show a lease."""
        return self._visible(call, lease_id)

    def update(self, call: Call, lease_id: str) -> Lease:
        """Update a lease."""
        lease = self._visible(call, lease_id)
        call.authorize(_target(lease))
        body = call.body()
        check_text_after(body, lease)
        check_known(body, lease)
        change = lease_change(body, self._form, call.caller, operator=call.is_operator)
        return call.manager.leases.update(lease.id, change)

    def delete(self, call: Call, lease_id: str) -> None:
        """Delete a lease."""
        lease = self._visible(call, lease_id)
        call.authorize(_target(lease))
        call.manager.leases.delete(lease.id)
        for rendered in call.services.rendered.values():
            rendered.drop(lease.id)

    def _visible(self, call: Call, lease_id: str) -> Lease:
        """Return a lease that the caller may see."""
        key = identifier(lease_id)
        if key == "-":
            raise unknown_lease(lease_id)
        lease = call.manager.leases.one(key)
        call.services.policy.check(GET.name, call.caller, _target(lease))
        allowed(LeaseOwner(lease.id, lease.project_id, lease.user_id, deleted=False))
        return lease


def _target(lease: Lease) -> dict[str, str]:
    return {"project_id": lease.project_id, "user_id": lease.user_id}


def new_caches() -> Mapping[str, RenderedLeases]:
    """Return empty caches of rendered leases, one for each rendering."""
    return {form.cache: RenderedLeases(form.shown) for form in formats.ALL}


def _routes(root: Root, form: LeaseFormat) -> tuple[Route, ...]:
    """Return the routes of leases in one format."""
    handlers = Leases(form)
    suffix = "_v2" if root is Root.V2 else ""
    one, many = in_envelope(form.one, ref(form.component)), in_envelope(form.many, a_list(ref(form.component)))

    def shown(lease: Lease) -> Any:
        return enclosed(form.one, form.shown(lease))

    lease_id = in_path("lease_id", "the lease's id")
    on_list = partial(Route, root=root, path="/leases", json_twin=True)
    on_lease = partial(Route, root=root, path="/leases/{lease_id}", parameters=(lease_id,), on_target=True)
    return (
        on_list(
            method="GET",
            name=f"list_leases{suffix}",
            summary="List the project's leases; operators see all",
            handler=handlers.index,
            rule=GET,
            answers={200: many},
        ),
        on_list(
            method="POST",
            name=f"create_lease{suffix}",
            summary="Create a lease",
            handler=handlers.create,
            rule=POST,
            body=form.created,
            render=shown,
            answers={201: one},
            errors=(404, 409),
        ),
        on_lease(
            method="GET",
            name=f"show_lease{suffix}",
            summary="Show a lease",
            handler=handlers.show,
            rule=GET,
            render=shown,
            answers={200: one},
            errors=(404,),
        ),
        on_lease(
            method="PUT",
            name=f"update_lease{suffix}",
            summary="Update a lease",
            handler=handlers.update,
            rule=PUT,
            body=form.changed,
            render=shown,
            answers={200: one},
            errors=(404, 409),
        ),
        on_lease(
            method="DELETE",
            name=f"delete_lease{suffix}",
            summary="Delete a lease",
            handler=handlers.delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409),
        ),
    )


PART = Part(
    "leases",
    routes=(
        *within(_routes(Root.V1, formats.V1_0), until=(1, 0)),
        *held.ROUTES,
        *full_routes.ROUTES,
        *_routes(Root.V2, formats.V2),
    ),
    rules=(GET, POST, PUT, DELETE, KEEP, HOLD),
    views=(BEST_EFFORT,),
    components={**COMPONENTS, **held.COMPONENTS},
    fields=schemas.FIELDS,
    controller="leases",
)
