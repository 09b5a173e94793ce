# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases`` from microversion 1.1 on; what differs between later ones is a ``Shape``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from flask import request

from blazar.api.answers import Answer, paged, weak_tag
from blazar.api.bodies import normalized
from blazar.api.context import Call
from blazar.api.leases import earlier
from blazar.api.leases.full import render, unused
from blazar.api.leases.full.components import KEYS_WITH_KIND, LEASE_KEYS
from blazar.api.leases.full.immediate import decided
from blazar.api.leases.full.keys import IDEMPOTENCY_KEY, key_of
from blazar.api.leases.full.requests import lease_change, lease_filter, new_lease, with_all_faults
from blazar.api.leases.full.schemas import lease_create, lease_update
from blazar.api.leases.full.view import OF_1_1, OF_1_2, OF_1_3, Shape, View, view_of
from blazar.api.leases.full.visible import visible
from blazar.api.leases.rules import BEST_EFFORT, DELETE, GET, POST, PUT
from blazar.api.microversion import Version
from blazar.api.preconditions import IF_MATCH
from blazar.api.queries import compare_by, filter_by, option, paging
from blazar.api.readers import Choice, Date, Flag, Name, Names, Text
from blazar.api.routes import Body, Caching, Root, Route, in_path
from blazar.api.shapes import LINKS, NUMBER, RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.urls import link
from blazar.api.validation import InvalidBody
from blazar.model.errors import Conflict, Denied, PreconditionFailed
from blazar.model.lease import LeaseKind, LeaseStatus
from blazar.model.lease_details import LeaseDetails, LeaseState

SORT_KEYS = ("created_at", "updated_at", "start_date", "end_date", "name", "status")
SORT_KEYS_WITH_RELEASE = (*SORT_KEYS, "release_at")


def index(shape: Shape, call: Call) -> Answer:
    """List leases in pages: the project's, or for operators all."""
    view, query = view_of(call, shape), call.asked
    found = call.manager.leases.page(lease_filter(query, call.caller, view), query.page("created_at"))
    leases = [query.only(render.lease(each, view)) for each in found.items]
    revisions = [(each.lease.id, each.lease.revision) for each in found.items]
    where = (request.query_string, link(request.path), view.mark, call.caller.project_id)
    tag = weak_tag(*where, found.count, found.following, *revisions)
    count = {} if found.count is None else {"count": found.count}
    return paged({"leases": leases, **count}, found.following, etag=tag)


def show(shape: Shape, call: Call, lease_id: str) -> Answer:
    """Show a lease, also a past one."""
    owner = visible(call, lease_id)
    view, query = view_of(call, shape), call.asked
    found = call.manager.leases.details(owner.id)
    etag = view.tags.of(found.lease.revision) if query.fields is None else None
    return Answer(query.only(render.lease(found, view)), etag=etag)


def create(shape: Shape, call: Call) -> Answer:
    """Create a lease; with ``dry_run`` show what it would be."""
    if not call.caller.project_id:
        raise Denied("The token has no project scope, and a lease belongs to a project; use a project-scoped token.")
    view, dry_run = view_of(call, shape), call.asked.one("dry_run", False)
    body = call.read()
    key = None if dry_run else key_of(body, call.caller)
    # A request that was granted is not judged again: what it asks for may no longer fit, or be past.
    known = None if key is None else call.manager.leases.replay(key)
    if known is None:
        schemas_of = call.services.served.requests
        default = call.services.default_kind
        asked = call.checked(normalized(body))
        wanted = new_lease(asked, call.caller, view, schemas_of, dry_run=dry_run, default=default)
        wanted = replace(wanted, key=key)
        if wanted.kind is LeaseKind.BEST_EFFORT:
            call.services.policy.check(BEST_EFFORT.name, call.caller)
        if wanted.kind is LeaseKind.IMMEDIATE and not dry_run:
            known = decided(call, wanted, view)
        else:
            known = call.manager.leases.book(wanted)
    if dry_run:
        return Answer(render.lease(known.details, view, planned=True), status=200)
    replayed = {"Idempotency-Replayed": "true"} if known.replayed else {}
    headers = {"Location": link(f"/v1/leases/{known.details.lease.id}"), **replayed}
    return _written(known.details, view, headers=headers)


def update(shape: Shape, call: Call, lease_id: str) -> Answer:
    """Change a lease; with ``dry_run`` show what it would be."""
    owner = visible(call, lease_id)
    view, dry_run = view_of(call, shape), call.asked.one("dry_run", False)
    sent, read = call.read(), cache(lambda: call.manager.leases.details(owner.id))

    def current() -> None:
        view.tags.check(read().lease.revision)

    try:
        body = call.changes(lambda: render.lease(read(), view), sent, current=current)
    except InvalidBody as error:
        raise with_all_faults(error, sent, read, view) from error
    if owner.deleted:
        status = str(LeaseStatus.TERMINATED)
        raise Conflict("the lease is deleted and cannot be changed", code="lease_ended", data={"status": status})
    change = lease_change(body, read, call.caller, view, dry_run=dry_run)
    try:
        found = call.manager.leases.change(owner.id, change)
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error
    return Answer(render.lease(found, view)) if dry_run else _written(found, view)


def delete(shape: Shape, call: Call, lease_id: str) -> None:
    """End a lease now and delete it; a deleted one stays deleted."""
    owner = visible(call, lease_id)
    view = view_of(call, shape)
    if owner.deleted:
        return
    try:
        call.manager.leases.delete(owner.id, view.tags.wanted())
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error
    for rendered in call.services.rendered.values():
        rendered.drop(owner.id)


def _written(found: LeaseDetails, view: View, *, headers: dict[str, str] | None = None) -> Answer:
    return Answer(render.lease(found, view), etag=view.tags.of(found.lease.revision), headers=headers or {})


def _in_envelope(lease: Json) -> Json:
    return {"lease": lease}


_DRY_RUN = option("dry_run", Flag(), "only say what would come of it; nothing is booked")
_CREATED = {
    "name": "gan-training",
    "start_date": "2030-05-01T08:00",
    "end_date": "+P3D",
    "before_end_date": "-PT2H",
    "time_zone": "Europe/Paris",
    "reservations": [
        {
            "resource_type": "physical:host",
            "min": 1,
            "resource_properties": [">=", "$vcpus", 16],
            "before_end": "snapshot",
        }
    ],
}
_NOW = {
    "name": "ci-2041",
    "kind": "immediate",
    "end_date": "+PT2H",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
_CHANGES = (
    {"end_date": "2030-05-05T08:00:00Z"},
    {"name": "nightly", "reservations": [{"id": RESERVATION_ID, "max": 2}]},
)
_LEASE_ID = in_path("lease_id", "the lease's id")
_FILTERS = (
    option("state", Choice(tuple(LeaseState)), "current (default), past, or all"),
    filter_by("name", Name(80), "the name"),
    filter_by("id", Text(), "the id"),
    filter_by("degraded", Flag(), "whether something of it is not as it was promised"),
    filter_by("resource_type", Text(most=66), "the type of one of its reservations"),
    filter_by("project_id", Text(), "the project, for operators"),
    filter_by("user_id", Text(), "the user"),
    filter_by("resource", Text(), "the label of a resource that it has or had; for operators also the id"),
    option("text", Name(80, least=2), "a part of the name"),
    option("from", Date(), "leases that end after it"),
    option("to", Date(), "leases that start before it"),
    compare_by("start_date", Date(), "the start"),
    compare_by("end_date", Date(), "the end"),
    compare_by("updated_at", Date(), "the last change"),
)
_OF_STATUS = filter_by("status", Choice(tuple(LeaseStatus)), "the status")
_OF_EARLIER_STATUS = filter_by("status", Choice(earlier.KNOWN), "the status")
_OF_KINDS = (
    filter_by("kind", Choice(tuple(LeaseKind)), "the kind"),
    filter_by("series_id", Text(), "the series that it belongs to"),
    compare_by("release_at", Date(), "when it is released as unused; leases that are not about to be have none"),
)
_OF_REGIONS = (filter_by("region", Text(most=64), "the region of one of its reservations"),)


def _routes(shape: Shape, *, until: Version | None = None) -> tuple[Route, ...]:
    """Return the routes of leases in one shape."""
    one = an_object({"lease": ref(shape.component("Lease"))})
    many = {"leases": a_list(ref(shape.component("Lease"))), "count": NUMBER, "links": LINKS}
    on_every = partial(Route, root=Root.V1, since=(1, shape.minor), until=until)
    on_list = partial(on_every, path="/leases")
    on_lease = partial(on_every, path="/leases/{lease_id}", on_target=True)
    status = _OF_STATUS if shape.kinds else _OF_EARLIER_STATUS
    filters = (status, *_FILTERS, *(_OF_REGIONS if shape.regions else ()), *(_OF_KINDS if shape.kinds else ()))
    keys = KEYS_WITH_KIND if shape.kinds else LEASE_KEYS
    sort_keys = SORT_KEYS_WITH_RELEASE if shape.kinds else SORT_KEYS
    examples = (_CREATED, _NOW) if shape.kinds else (_CREATED,)
    return (
        on_list(
            method="GET",
            name="list_leases",
            summary="List the project's leases; operators see all",
            handler=partial(index, shape),
            rule=GET,
            render=lambda page: page,
            answers={200: an_object(many, optional=("count",))},
            parameters=(*filters, *paging(sort_keys, fields=keys)),
        ),
        on_list(
            method="POST",
            name="create_lease",
            summary="Create a lease",
            handler=partial(create, shape),
            rule=POST,
            body=Body(shape.component("LeaseCreate"), lease_create(shape), examples),
            render=_in_envelope,
            answers={201: one, 200: one},
            errors=(409, 429) if shape.kinds else (409,),
            parameters=(_DRY_RUN, IDEMPOTENCY_KEY),
        ),
        on_lease(
            method="GET",
            name="show_lease",
            summary="Show a lease, also a past one",
            handler=partial(show, shape),
            rule=GET,
            render=_in_envelope,
            answers={200: one},
            errors=(404,),
            caching=Caching.STRONG,
            parameters=(_LEASE_ID, option("fields", Names(keys), "only these keys, and id")),
        ),
        on_lease(
            method="PUT",
            name="update_lease",
            summary="Change a lease",
            handler=partial(update, shape),
            rule=PUT,
            body=Body("LeaseUpdate1_3" if shape.kinds else "LeaseUpdate1_1", lease_update(shape), _CHANGES),
            render=_in_envelope,
            answers={200: one},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, _DRY_RUN, IF_MATCH),
        ),
        on_lease(
            method="DELETE",
            name="delete_lease",
            summary="End a lease now and delete it",
            handler=partial(delete, shape),
            rule=DELETE,
            answers={204: None},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, IF_MATCH),
        ),
    )


ROUTES = (*_routes(OF_1_1, until=(1, 1)), *_routes(OF_1_2, until=(1, 2)), *_routes(OF_1_3), *unused.ROUTES)
