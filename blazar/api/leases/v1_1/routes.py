# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases`` from microversion 1.1 on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial

from flask import request

from blazar.api.http.answers import IDEMPOTENCY_KEY, IF_MATCH, Answer, encode, key_of, link, link_text, weak_tag
from blazar.api.http.bodies import InvalidBody, normalize
from blazar.api.http.context import Call
from blazar.api.http.queries import compare_by, filter_by, option, paging
from blazar.api.http.readers import Choice, Date, Flag, Name, Names, Text
from blazar.api.http.routes import Body, Caching, Root, Route, in_path
from blazar.api.http.shapes import LINKS, NUMBER, RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.leases.rules import BEST_EFFORT, CONFIRM, DELETE, GET, HOLD, KEEP, POST, PUT, View, view_of, visible
from blazar.api.leases.services import LeaseServices
from blazar.api.leases.v1_1 import render
from blazar.api.leases.v1_1.components import LEASE_KEYS
from blazar.api.leases.v1_1.immediate import decide
from blazar.api.leases.v1_1.requests import lease_change, lease_filter, new_lease, with_all_faults
from blazar.api.leases.v1_1.schemas import LEASE_CREATE, LEASE_UPDATE
from blazar.model.base.errors import Conflict, Denied, PreconditionFailed
from blazar.model.leases.details import LEASE_SORT_KEYS, LeaseDetails, LeaseState
from blazar.model.leases.states import LeaseKind, LeaseStatus


def index(call: Call) -> Answer:
    """List leases in pages: the project's, or for operators all. What the last answer had is not read again."""
    view, query = view_of(call), call.asked
    where = (request.query_string, link(request.path), view.mark, call.caller.project_id)
    pages = call.services.feature(LeaseServices).pages
    known = pages.find(where)
    wanted = lease_filter(query, call.caller, view)
    found = call.manager.leases.page(wanted, query.page("created_at"), tuple(known))
    base = link("")
    read = {one.lease.id: encode(query.only(render.lease(one, view, base=base))) for one in found.items}
    leases = [read[mark.id] if mark.id in read else known[mark] for mark in found.listed]
    # What a lease costs may change without a new mark.
    prices = {one.lease.id: one.price for one in found.items if one.price is not None}
    shown = zip(found.listed, leases, strict=True)
    pages.keep(where, {mark: text for mark, text in shown if mark.id not in prices})
    # Of what is shown: a mark tells also of changes of resources that a member does not see.
    tag = weak_tag(*where, found.count, found.following, *leases)
    count = "" if found.count is None else f',"count":{found.count}'
    return link_text(f'{{"leases":[{",".join(leases)}]{count}}}', found.following, etag=tag)


def show(call: Call, lease_id: str) -> Answer:
    """Show a lease, also a past one."""
    owner = visible(call, lease_id)
    view, query = view_of(call), call.asked
    found = call.manager.leases.details(owner.id)
    etag = view.tag_of(found) if query.fields is None else None
    return Answer(query.only(render.lease(found, view)), etag=etag)


def create(call: Call) -> Answer:
    """Create a lease; with ``dry_run`` show what it would be."""
    if not call.caller.project_id:
        raise Denied("The token has no project scope, and a lease belongs to a project; use a project-scoped token.")
    view, dry_run = view_of(call), call.asked.one("dry_run", False)
    body = call.read()
    key = None if dry_run else key_of(body, call.caller)
    # A request that was granted is not judged again: what it asks for may no longer fit, or be past.
    known = None if key is None else call.manager.leases.replay(key)
    if known is None:
        schemas_of = call.services.served.requests
        defaults = call.services.feature(LeaseServices).defaults
        asked = call.checked(normalize(body))
        wanted = new_lease(asked, call.caller, view, schemas_of, dry_run=dry_run, defaults=defaults)
        wanted = replace(wanted, key=key)
        if wanted.kind is LeaseKind.BEST_EFFORT:
            call.services.policy.check(BEST_EFFORT.name, call.caller)
        if wanted.kind is LeaseKind.IMMEDIATE and not dry_run:
            known = decide(call, wanted, view)
        else:
            known = call.manager.leases.book(wanted)
    if dry_run:
        return Answer(render.lease(known.details, view, planned=True), status=200)
    replayed = {"Idempotency-Replayed": "true"} if known.replayed else {}
    headers = {"Location": link(f"/v1/leases/{known.details.lease.id}"), **replayed}
    return _written(known.details, view, headers=headers)


def update(call: Call, lease_id: str) -> Answer:
    """Change a lease; with ``dry_run`` show what it would be."""
    owner = visible(call, lease_id)
    view, dry_run = view_of(call), call.asked.one("dry_run", False)
    # These change without a new revision: who sends back a lease as it was read does not ask for them.
    told = ("price", "waking")
    sent = {key: value for key, value in call.read().items() if key not in told or not isinstance(value, dict)}
    read = cache(lambda: call.manager.leases.details(owner.id))

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


def delete(call: Call, lease_id: str) -> None:
    """End a lease now and delete it; a deleted one stays deleted."""
    owner = visible(call, lease_id)
    view = view_of(call)
    if owner.deleted:
        return
    try:
        call.manager.leases.delete(owner.id, view.tags.wanted())
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error
    for rendered in call.services.feature(LeaseServices).rendered.values():
        rendered.drop(owner.id)


def confirm(call: Call, lease_id: str) -> Answer:
    """Confirm an unconfirmed lease: it is firm from then on."""
    owner = visible(call, lease_id)
    if owner.deleted:
        raise Conflict("the lease is deleted and cannot be confirmed; book another one", code="lease_ended")
    return _written(call.manager.leases.confirm(owner.id), view_of(call))


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


def _written(found: LeaseDetails, view: View, *, headers: dict[str, str] | None = None) -> Answer:
    return Answer(render.lease(found, view), etag=view.tag_of(found), headers=headers or {})


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
_UNCONFIRMED = {
    "name": "practical",
    "start_date": "2030-05-01T08:00:00Z",
    "end_date": "+PT4H",
    "confirm_within": "PT10M",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
_CHANGES = (
    {"end_date": "2030-05-05T08:00:00Z"},
    {"name": "nightly", "reservations": [{"id": RESERVATION_ID, "max": 2}]},
)
_LEASE_ID = in_path("lease_id", "the lease's id")
_FILTERS = (
    filter_by("status", Choice(tuple(LeaseStatus)), "the status"),
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
    filter_by("region", Text(most=64), "the region of one of its reservations"),
    filter_by("kind", Choice(tuple(LeaseKind)), "the kind"),
    filter_by("series_id", Text(), "the series that it belongs to"),
    compare_by("release_at", Date(), "when it is released as unused; leases that are not about to be have none"),
)
_ONE = an_object({"lease": ref("Lease1_1")})
_MANY = an_object({"leases": a_list(ref("Lease1_1")), "count": NUMBER, "links": LINKS}, optional=("count",))
_on_list = partial(Route, root=Root.V1, path="/leases")
_on_lease = partial(Route, root=Root.V1, path="/leases/{lease_id}", on_target=True)
_on_use = partial(
    Route,
    root=Root.V1,
    on_target=True,
    render=_in_envelope,
    answers={200: _ONE},
    errors=(404, 409),
    parameters=(_LEASE_ID,),
)

ROUTES = (
    _on_list(
        method="GET",
        name="list_leases",
        summary="List the project's leases; operators see all",
        handler=index,
        rule=GET,
        answers={200: _MANY},
        parameters=(*_FILTERS, *paging(LEASE_SORT_KEYS, fields=LEASE_KEYS)),
    ),
    _on_list(
        method="POST",
        name="create_lease",
        summary="Create a lease",
        handler=create,
        rule=POST,
        body=Body("LeaseCreate1_1", LEASE_CREATE, (_CREATED, _NOW, _UNCONFIRMED)),
        render=_in_envelope,
        answers={201: _ONE, 200: _ONE},
        errors=(409, 429),
        parameters=(_DRY_RUN, IDEMPOTENCY_KEY),
    ),
    _on_lease(
        method="GET",
        name="show_lease",
        summary="Show a lease, also a past one",
        handler=show,
        rule=GET,
        render=_in_envelope,
        answers={200: _ONE},
        errors=(404,),
        caching=Caching.STRONG,
        parameters=(_LEASE_ID, option("fields", Names(LEASE_KEYS), "only these keys, and id")),
    ),
    _on_lease(
        method="PUT",
        name="update_lease",
        summary="Change a lease",
        handler=update,
        rule=PUT,
        body=Body("LeaseUpdate1_1", LEASE_UPDATE, _CHANGES),
        render=_in_envelope,
        answers={200: _ONE},
        errors=(404, 409, 412),
        parameters=(_LEASE_ID, _DRY_RUN, IF_MATCH),
    ),
    _on_lease(
        method="DELETE",
        name="delete_lease",
        summary="End a lease now and delete it",
        handler=delete,
        rule=DELETE,
        answers={204: None},
        errors=(404, 409, 412),
        parameters=(_LEASE_ID, IF_MATCH),
    ),
    _on_use(
        method="POST",
        path="/leases/{lease_id}/confirm",
        name="confirm_lease",
        summary="Confirm an unconfirmed lease",
        handler=confirm,
        rule=CONFIRM,
    ),
    _on_use(
        method="POST",
        path="/leases/{lease_id}/keep",
        name="keep_lease",
        summary="Keep a lease that is not used from being released, once",
        handler=keep,
        rule=KEEP,
    ),
    _on_use(
        method="PUT",
        path="/leases/{lease_id}/hold",
        name="hold_lease",
        summary="Never release a lease because it is not used",
        handler=hold,
        rule=HOLD,
    ),
    _on_use(
        method="DELETE",
        path="/leases/{lease_id}/hold",
        name="let_go_of_lease",
        summary="Release a lease if it is not used, as others",
        handler=let_go,
        rule=HOLD,
    ),
)
