# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases`` and ``/v2/leases``: the same handlers and rules, each with the format of its version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response

from blazar.api.http.answers import stream_json
from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import NounRows, Root, Route, in_path, only_at_1_0
from blazar.api.http.shapes import a_list, in_envelope, ref
from blazar.api.leases.limits import check_documents, check_text, check_text_after, refuse_newer_values
from blazar.api.leases.rules import DELETE, GET, POST, PUT
from blazar.api.leases.services import LeaseServices, RenderedLeases
from blazar.api.leases.v1_0 import formats
from blazar.api.leases.v1_0.formats import LeaseFormat, lease_change, new_lease
from blazar.context import note_owner
from blazar.model.base.errors import EXTERNAL, Denied, UsageDenied
from blazar.model.leases.details import LeaseOwner
from blazar.model.leases.lease import Lease, unknown_lease


class LeaseHandlers:
    """Handlers of leases in one format."""

    def __init__(self, form: LeaseFormat) -> None:
        self._form = form

    def index(self, call: Call) -> Response:
        """List the leases of the caller's project; operators see all leases."""
        project_id = None if call.is_operator else call.caller.project_id
        listed = call.services.feature(LeaseServices).rendered[self._form.cache].pieces(call.manager, project_id)
        key = self._form.many
        opening, closing = (b"[", b"]") if key is None else (f'{{"{key}":['.encode(), b"]}")
        return stream_json(opening, (b",".join(texts) for texts in listed), closing)

    def create(self, call: Call) -> Lease:
        """Create a lease."""
        body = call.body()
        check_text(body)
        check_documents(body.get("reservations", []), call.services.served.requests)
        refuse_newer_values(body)
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
        refuse_newer_values(body, lease)
        change = lease_change(body, self._form, call.caller, operator=call.is_operator)
        return call.manager.leases.update(lease.id, change)

    def delete(self, call: Call, lease_id: str) -> None:
        """Delete a lease."""
        lease = self._visible(call, lease_id)
        call.authorize(_target(lease))
        call.manager.leases.delete(lease.id)
        for rendered in call.services.feature(LeaseServices).rendered.values():
            rendered.drop(lease.id)

    def _visible(self, call: Call, lease_id: str) -> Lease:
        """Return a lease that the caller may see."""
        key = identifier(lease_id)
        if key == "-":
            raise unknown_lease(lease_id)
        lease = call.manager.leases.one(key)
        call.services.policy.check(GET.name, call.caller, _target(lease))
        note_owner(LeaseOwner(lease.id, lease.project_id, lease.user_id, deleted=False))
        return lease


def _target(lease: Lease) -> dict[str, str]:
    return {"project_id": lease.project_id, "user_id": lease.user_id}


def new_caches() -> Mapping[str, RenderedLeases]:
    """Return empty caches of rendered leases, one for each rendering."""
    return {form.cache: RenderedLeases(form.writer) for form in formats.ALL}


def _routes(root: Root, form: LeaseFormat) -> tuple[Route, ...]:
    """Return the routes of leases in one format."""
    handlers = LeaseHandlers(form)
    suffix = "_v2" if root is Root.V2 else ""
    one, many = in_envelope(form.one, ref(form.component)), in_envelope(form.many, a_list(ref(form.component)))

    def enclosed(lease: Lease) -> Any:
        return {form.one: form.shown(lease)}

    rows = NounRows(
        root=root,
        path="/leases",
        key=in_path("lease_id", "the lease's id"),
        listed=many,
        shown=one,
        render=form.shown if form.one is None else enclosed,
        on_target=True,
    )
    return (
        rows.list(handlers.index, GET, f"list_leases{suffix}", "List the project's leases; operators see all"),
        rows.create(handlers.create, POST, f"create_lease{suffix}", "Create a lease", form.created),
        rows.show(handlers.show, GET, f"show_lease{suffix}", "Show a lease"),
        rows.update(handlers.update, PUT, f"update_lease{suffix}", "Update a lease", form.changed),
        rows.delete(handlers.delete, DELETE, f"delete_lease{suffix}", "Delete a lease"),
    )


ROUTES_OF_V1 = only_at_1_0(_routes(Root.V1, formats.V1_0))
ROUTES_OF_V2 = _routes(Root.V2, formats.V2)
