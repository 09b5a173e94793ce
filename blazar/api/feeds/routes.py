# SPDX-License-Identifier: Apache-2.0
"""``/v1/feeds``, and ``/feeds/SECRET.ics``, which needs no token; their schemas, and how one is shown."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from functools import partial

from flask import Response

from blazar.api.http.access import FEEDS
from blazar.api.http.answers import PRIVATE, Answer, answer_unchanged, link, link_pages, weak_tag
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Text
from blazar.api.http.routes import ADMIN, READER, Body, Caching, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import (
    LINKS,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.api.leases.rules import GET as GET_LEASE
from blazar.model.base.clock import zulu
from blazar.model.base.errors import Denied, InvalidInput, query_field
from blazar.model.feeds import Feed, FeedKind, FeedOwner, FeedQuestion, FeedRequest, unknown_feed

_TIMES: Json = {"created_at": ZULU, "expires_at": ZULU, "last_used_at": ZULU_OR_NULL}
FIELDS = ("id", "kind", "name", "user_id", "project_id", "resource", "resource_type", "requirement", *_TIMES)

_EXAMPLE: Json = {
    "id": "c1d2e3f4-5a6b-4c7d-8e9f-0a1b2c3d4e5f",
    "kind": "user",
    "name": "my phone",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "resource": None,
    "resource_type": None,
    "requirement": None,
    "created_at": "2026-11-23T10:15:42Z",
    "expires_at": "2027-11-23T10:15:42Z",
    "last_used_at": None,
}
_URL = "https://cloud.example/reservation/feeds/Yk3v0q7nJ2xB5mT9sLwE4hRzC8dPfKuA6gVtQyHnM1o.ics"
_PROPERTIES: Json = {
    **dict.fromkeys(("id", "name", "user_id", "project_id"), TEXT),
    "kind": one_of(FeedKind),
    **dict.fromkeys(("resource", "resource_type", "requirement"), TEXT_OR_NULL),
    **_TIMES,
}

COMPONENTS: Json = {
    "Feed": an_object(_PROPERTIES, optional=FIELDS[1:], example=_EXAMPLE),
    "NewFeed": an_object({**_PROPERTIES, "url": TEXT}, example={**_EXAMPLE, "url": _URL}),
}

_REQUIREMENT = 'as in reservations: ["==", "$gpu", "A100"], or the same as a JSON text'
FEED_CREATE: Json = {
    "type": "object",
    "required": ["kind", "name"],
    "additionalProperties": False,
    "properties": {
        "kind": {
            "enum": [str(kind) for kind in FeedKind],
            "description": "one of user, project, resource and free_busy",
        },
        "name": {"type": "string", "minLength": 1, "maxLength": 80, "description": "a string of 1 to 80 characters"},
        "resource": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "description": "for kind resource: the label or the id of a resource",
        },
        "resource_type": {
            "type": "string",
            "minLength": 1,
            "maxLength": 66,
            "description": "for kind free_busy: a resource type, by default physical:host",
        },
        "requirement": {
            "type": ["array", "string"],
            "maxLength": 65536,
            "description": f"for kind free_busy: what resources must have, {_REQUIREMENT}",
        },
    },
}
EXAMPLES: tuple[Json, ...] = (
    {"kind": "user", "name": "my phone"},
    {"kind": "free_busy", "name": "GPUs", "resource_type": "physical:host", "requirement": []},
)


def render_feed(feed: Feed) -> Json:
    """Return a feed as it is shown, without its link."""
    used = feed.last_used_at
    return {
        "id": feed.id,
        "kind": str(feed.kind),
        "name": feed.name,
        "user_id": feed.user_id,
        "project_id": feed.project_id,
        "resource": feed.resource,
        "resource_type": feed.resource_type,
        "requirement": feed.requirement,
        "created_at": zulu(feed.created_at),
        "expires_at": zulu(feed.expires_at),
        "last_used_at": None if used is None else zulu(used),
    }


GET = Rule("blazar:feeds:get", READER, "List and show feeds: the own ones, operators those of all users.")
POST = Rule("blazar:feeds:post", READER, "Make a feed of the own leases, those of the project, or of free times.")
POST_RESOURCE = Rule("blazar:feeds:post_resource", ADMIN, "Make a feed of all leases on a resource.")
DELETE = Rule("blazar:feeds:delete", READER, "Revoke feeds: the own ones, operators those of all users.")

SECRET_BYTES = 32
_SECRET = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_FIELDS_OF = {"resource": {FeedKind.RESOURCE}, **dict.fromkeys(("resource_type", "requirement"), {FeedKind.FREE_BUSY})}


def _owner(call: Call) -> FeedOwner | None:
    """Return whose feeds the caller may see; None: those of all."""
    return None if call.is_operator else FeedOwner(call.caller.user_id, call.caller.project_id)


def index(call: Call) -> Answer:
    """List feeds."""
    asked, caller = call.asked, call.caller
    given = {name: asked.one(name) for name in ("user_id", "project_id")}
    owner = _owner(call)
    if owner is not None and not {given["user_id"]} <= {None, caller.user_id}:
        raise Denied("user_id is not the own one; only operators see feeds of others", at=query_field("user_id"))
    if owner is not None and not {given["project_id"]} <= {None, caller.project_id}:
        raise Denied("project_id is not the own one; only operators see feeds of others", at=query_field("project_id"))
    page = call.manager.feeds.page(FeedQuestion(asked.page("created_at"), owner, **given))
    feeds: Json = {"feeds": [asked.only(render_feed(feed)) for feed in page.items]}
    return link_pages(feeds if page.count is None else {**feeds, "count": page.count}, page.following)


def create(call: Call) -> Answer:
    """Make a feed. Its secret is in this answer only."""
    body = call.checked(normalize(call.read()))
    kind = FeedKind(body["kind"])
    for field, kinds in _FIELDS_OF.items():
        if field in body and kind not in kinds:
            raise InvalidInput(
                f"{field} does not belong to a feed of kind {kind}; leave it out", code="unknown_field", at=f"/{field}"
            )
    if kind in (FeedKind.USER, FeedKind.PROJECT):
        # Who may not list leases does not see them by a link either.
        call.services.policy.check(GET_LEASE.name, call.caller)
    if kind is FeedKind.RESOURCE:
        call.services.policy.check(POST_RESOURCE.name, call.caller)
        if "resource" not in body:
            raise InvalidInput("resource is missing; give a label or an id", code="missing_field", at="/resource")
    secret = secrets.token_urlsafe(SECRET_BYTES)
    requirement = body.get("requirement")
    feed = call.manager.feeds.create(
        FeedRequest(
            kind=kind,
            name=body["name"],
            owner=FeedOwner(call.caller.user_id, call.caller.project_id),
            resource=body.get("resource"),
            resource_type=body.get("resource_type"),
            requirement=_as_text(requirement),
        ),
        _hash(secret),
    )
    value = {"feed": {**render_feed(feed), "url": link(f"{FEEDS}{secret}.ics")}}
    return Answer(value, headers={"Location": link(f"/v1/feeds/{feed.id}")})


def show(call: Call, feed_id: str) -> Json:
    """Show a feed."""
    return render_feed(call.manager.feeds.one(identifier(feed_id), _owner(call)))


def delete(call: Call, feed_id: str) -> None:
    """Revoke a feed."""
    call.manager.feeds.delete(identifier(feed_id), _owner(call))


def read(call: Call, secret: str) -> Response:
    """Return what a feed shows to who knows its secret."""
    if not _SECRET.fullmatch(secret):
        raise unknown_feed()
    # Imported with the first feed that is read: the library is large.
    from blazar.api.feeds import icalendar

    content = icalendar.render(call.manager.feeds.content(_hash(secret)))
    tag = weak_tag(content)
    response = answer_unchanged(tag) or Response(content, headers={"ETag": tag})
    response.headers["Content-Type"] = icalendar.TYPE
    response.headers["Cache-Control"] = PRIVATE
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _as_text(requirement: object) -> str | None:
    if not requirement:
        return None
    return requirement if isinstance(requirement, str) else json.dumps(requirement)


_ID = in_path("feed_id", "the id of the feed", is_uuid=True)
_PERSON = Text(1, 255)
_on_list = partial(Route, root=Root.V1, path="/feeds", caching=Caching.NONE)
_on_feed = partial(Route, root=Root.V1, path="/feeds/{feed_id}", parameters=(_ID,), errors=(404,), caching=Caching.NONE)

PART = Part(
    "feeds",
    routes=(
        _on_list(
            method="GET",
            name="list_feeds",
            summary="List feeds",
            handler=index,
            rule=GET,
            answers={
                200: an_object({"feeds": a_list(ref("Feed")), "count": NUMBER, "links": LINKS}, optional=("count",))
            },
            parameters=(
                option("user_id", _PERSON, "feeds of this user; of others for operators only"),
                option("project_id", _PERSON, "feeds in this project; in others for operators only"),
                *paging(["created_at"], fields=FIELDS),
            ),
        ),
        _on_list(
            method="POST",
            name="create_feed",
            summary="Make a feed; its link is in this answer only",
            handler=create,
            rule=POST,
            body=Body("FeedCreate", FEED_CREATE, EXAMPLES),
            answers={201: an_object({"feed": ref("NewFeed")})},
        ),
        _on_feed(
            method="GET",
            name="show_feed",
            summary="Show a feed",
            handler=show,
            rule=GET,
            render=lambda feed: {"feed": feed},
            answers={200: an_object({"feed": ref("Feed")})},
        ),
        _on_feed(
            method="DELETE",
            name="delete_feed",
            summary="Revoke a feed; its link stops working at once",
            handler=delete,
            rule=DELETE,
            answers={204: None},
        ),
        Route(
            root=Root.SERVICE,
            method="GET",
            path=FEEDS + "{secret}.ics",
            name="read_feed",
            summary="Read a feed as iCalendar",
            handler=read,
            answers={200: None, 304: None},
            errors=(404,),
            parameters=(in_path("secret", "the secret of the feed"),),
            is_open=True,
        ),
    ),
    rules=(GET, POST, DELETE),
    views=(POST_RESOURCE,),
    components=COMPONENTS,
)
