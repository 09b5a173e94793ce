# SPDX-License-Identifier: Apache-2.0
"""``/v1/series``: leases that recur."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial

from blazar.api.http.answers import IDEMPOTENCY_KEY, IF_MATCH, Answer, Tags, key_of, link, link_pages
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Choice, Flag, Text
from blazar.api.http.routes import Body, Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import LINKS, NUMBER, Json, a_list, an_object, ref
from blazar.api.leases.rules import DELETE as DELETE_LEASE
from blazar.api.leases.rules import GET as GET_LEASE
from blazar.api.leases.rules import POST as CREATE_LEASE
from blazar.api.leases.rules import PUT as UPDATE_LEASE
from blazar.api.leases.rules import view_of
from blazar.api.leases.services import LeaseServices
from blazar.api.series.render import COMPONENTS, FIELDS, details, render_series
from blazar.api.series.requests import new_series, series_change
from blazar.api.series.schemas import CHANGES, EXAMPLES, SERIES_CREATE, SERIES_UPDATE
from blazar.model.base.errors import Denied, PreconditionFailed, query_field
from blazar.model.series.details import SeriesDetails, SeriesOwner, SeriesQuestion, SeriesStatus, unknown_series

_TAGS = Tags("-s", parted=True)

GET = Rule("blazar:series:get", all_of(GET_LEASE), "List and show series of leases.")
POST = Rule("blazar:series:post", all_of(CREATE_LEASE), "Create a series of leases.")
PUT = Rule(
    "blazar:series:put",
    all_of(UPDATE_LEASE, CREATE_LEASE, DELETE_LEASE),
    "Change a series of leases: change its leases, create further ones, and delete those that it no longer has.",
)
DELETE = Rule("blazar:series:delete", all_of(DELETE_LEASE), "Delete a series of leases.")


def index(call: Call) -> Answer:
    """List series in pages: the project's, or for operators all."""
    asked = call.asked
    project_id = asked.one("project_id")
    if not call.is_operator:
        if project_id not in (None, call.caller.project_id):
            sentence = "series of other projects are for operators; leave project_id out, or give your own project"
            raise Denied(sentence, at=query_field("project_id"))
        project_id = call.caller.project_id
    statuses = asked.one("status")
    page = call.manager.series.page(
        SeriesQuestion(asked.page("created_at"), project_id, () if statuses is None else (SeriesStatus(statuses),))
    )
    series: Json = {"series": [asked.only(render_series(series)) for series in page.items]}
    return link_pages(series if page.count is None else {**series, "count": page.count}, page.following)


def create(call: Call) -> Answer:
    """Create a series; with ``dry_run`` show which of its occurrences fit, and why the others do not."""
    if not call.caller.project_id:
        raise Denied("The token has no project scope, and a series belongs to a project; use a project-scoped token.")
    dry_run, body = call.asked.one("dry_run", False), call.read()
    key = None if dry_run else key_of(body, call.caller, route="POST /v1/series")
    # A request that was granted is not judged again: what it asks for may no longer fit, or be past.
    found = None if key is None else call.manager.series.replay(key)
    if found is None:
        schemas_of = call.services.served.requests
        asked = call.checked(normalize(body))
        defaults = call.services.feature(LeaseServices).defaults
        wanted = new_series(asked, call.caller, view_of(call), schemas_of, dry_run=dry_run, defaults=defaults)
        found = call.manager.series.create(replace(wanted, key=key))
    if dry_run:
        return Answer(details(found, planned=True), status=200)
    replayed = {"Idempotency-Replayed": "true"} if found.replayed else {}
    headers = {"Location": link(f"/v1/series/{found.series.id}"), **replayed}
    status = 202 if found.series.status is SeriesStatus.CREATING else 201
    return _written(found, headers=headers, status=status)


def show(call: Call, series_id: str) -> Answer:
    """Show a series with its occurrences, also a deleted one."""
    return _written(call.manager.series.one(_visible(call, series_id).id))


def update(call: Call, series_id: str) -> Answer:
    """Change a series from one of its occurrences on; with ``dry_run`` show what it would be."""
    owner = _visible(call, series_id)
    dry_run = call.asked.one("dry_run", False)
    read = cache(lambda: call.manager.series.one(owner.id))
    sent = call.read()

    def current() -> None:
        _TAGS.check(read().series.revision)

    body = call.changes(lambda: details(read()), sent, current=current)
    is_same = sent != {} and not body and not dry_run and read().series.status is SeriesStatus.ACTIVE
    if is_same:
        current()
        return _written(read())
    view, schemas_of = view_of(call), call.services.served.requests
    change = series_change(body, call.caller, view, schemas_of, dry_run=dry_run, revisions=_TAGS.wanted())
    try:
        found = call.manager.series.change(owner.id, change)
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error
    if dry_run:
        return Answer(details(found, planned=True))
    return _written(found, headers={"Location": link(f"/v1/series/{found.series.id}")})


def delete(call: Call, series_id: str) -> None:
    """Delete a series with its leases that have not begun."""
    owner = _visible(call, series_id)
    running = call.asked.one("running", False)
    if running or not owner.deleted:
        call.manager.series.delete(owner.id, ends_running=running)


def _written(found: SeriesDetails, *, headers: Mapping[str, str] | None = None, status: int | None = None) -> Answer:
    """Return a series with its tag; leases of its occurrences change without a new revision."""
    value = details(found)
    occurrences = json.dumps(value["occurrences"], sort_keys=True)
    return Answer(value, etag=_TAGS.of(found.series.revision, occurrences), headers=headers or {}, status=status)


def _visible(call: Call, series_id: str) -> SeriesOwner:
    """Return whose a series is; NotFound if the caller may not see it, Denied if not do this."""
    key = identifier(series_id)
    if key == "-" or key != series_id:
        raise unknown_series(series_id)
    owner = call.manager.series.owner(key)
    target = {"project_id": owner.project_id, "user_id": owner.user_id}
    if not call.allows(GET.name, target):
        raise unknown_series(key)
    call.authorize(target)
    if call.route.rule is not GET:
        # Its leases change or go with it, those that other users of the project have taken over, too.
        for user_id in owner.other_users:
            call.authorize({**target, "user_id": user_id})
    return owner


def _in_envelope(series: Json) -> Json:
    return {"series": series}


_ID = in_path("series_id", "the series' id")
_ONE = an_object({"series": ref("SeriesWithOccurrences")})
_on_list = partial(Route, root=Root.V1, path="/series")
_on_series = partial(Route, root=Root.V1, path="/series/{series_id}", on_target=True, errors=(404,))

PART = Part(
    "series",
    routes=(
        _on_list(
            method="GET",
            name="list_series",
            summary="List the project's series; operators see all",
            handler=index,
            rule=GET,
            answers={
                200: an_object({"series": a_list(ref("Series")), "count": NUMBER, "links": LINKS}, optional=("count",))
            },
            parameters=(
                option("status", Choice(tuple(SeriesStatus)), "the status"),
                option("project_id", Text(), "the project, for operators"),
                *paging(["created_at"], fields=FIELDS),
            ),
        ),
        _on_list(
            method="POST",
            name="create_series",
            summary="Create a series of leases",
            handler=create,
            rule=POST,
            body=Body("SeriesCreate", SERIES_CREATE, EXAMPLES),
            render=_in_envelope,
            answers={201: _ONE, 202: _ONE, 200: _ONE},
            errors=(409,),
            parameters=(option("dry_run", Flag(), "only say what fits; nothing is booked"), IDEMPOTENCY_KEY),
        ),
        _on_series(
            method="GET",
            name="show_series",
            caching=Caching.STRONG,
            summary="Show a series with its occurrences",
            handler=show,
            rule=GET,
            render=_in_envelope,
            answers={200: _ONE},
            parameters=(_ID,),
        ),
        _on_series(
            method="PUT",
            name="update_series",
            summary="Change a series from one of its occurrences on",
            handler=update,
            rule=PUT,
            body=Body("SeriesUpdate", SERIES_UPDATE, CHANGES),
            render=_in_envelope,
            answers={200: _ONE},
            errors=(404, 409, 412),
            parameters=(_ID, option("dry_run", Flag(), "only say what would come of it; nothing is changed"), IF_MATCH),
        ),
        _on_series(
            method="DELETE",
            name="delete_series",
            summary="Delete a series with its leases that have not begun",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            parameters=(_ID, option("running", Flag(), "whether leases that have begun are ended, too")),
        ),
    ),
    rules=(GET, POST, PUT, DELETE),
    components=COMPONENTS,
)
