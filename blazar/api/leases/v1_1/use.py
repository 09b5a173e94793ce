# SPDX-License-Identifier: Apache-2.0
"""Leases that nobody uses, from 1.1 on: what they show, and how they are kept from being released."""

from __future__ import annotations

from functools import partial

from blazar.api.http.answers import Answer
from blazar.api.http.context import Call
from blazar.api.http.routes import Root, Route, in_path
from blazar.api.http.shapes import Json, an_object, ref
from blazar.api.leases.rules import HOLD, KEEP, View, view_of, visible
from blazar.api.leases.v1_1 import render
from blazar.model.leases.details import LeaseDetails


def keep(call: Call, lease_id: str) -> Answer:
    """Keep a lease from being released; operators may do so as often as they like."""
    owner = visible(call, lease_id)
    return _written(call.manager.leases.keep(owner.id, again=call.is_operator), view_of(call))


def hold(call: Call, lease_id: str) -> Answer:
    """Let a lease never be released because it is not used."""
    owner = visible(call, lease_id)
    return _written(call.manager.leases.hold(owner.id, held=True), view_of(call))


def let_go(call: Call, lease_id: str) -> Answer:
    """Hold a lease no longer."""
    owner = visible(call, lease_id)
    return _written(call.manager.leases.hold(owner.id, held=False), view_of(call))


def _written(found: LeaseDetails, view: View) -> Answer:
    return Answer(render.lease(found, view), etag=view.tags.of(found.lease.revision))


def _in_envelope(lease: Json) -> Json:
    return {"lease": lease}


_on_lease = partial(
    Route,
    root=Root.V1,
    on_target=True,
    render=_in_envelope,
    answers={200: an_object({"lease": ref("Lease1_1")})},
    errors=(404, 409),
    parameters=(in_path("lease_id", "the lease's id"),),
)

ROUTES = (
    _on_lease(
        method="POST",
        path="/leases/{lease_id}/keep",
        name="keep_lease",
        summary="Keep a lease that is not used from being released, once",
        handler=keep,
        rule=KEEP,
    ),
    _on_lease(
        method="PUT",
        path="/leases/{lease_id}/hold",
        name="hold_lease",
        summary="Never release a lease because it is not used",
        handler=hold,
        rule=HOLD,
    ),
    _on_lease(
        method="DELETE",
        path="/leases/{lease_id}/hold",
        name="let_go_of_lease",
        summary="Release a lease if it is not used, as others",
        handler=let_go,
        rule=HOLD,
    ),
)
