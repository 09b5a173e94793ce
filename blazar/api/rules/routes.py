# SPDX-License-Identifier: Apache-2.0
"""``/v1/rules``, from version 1.1 on: when projects may have leases. Operators write them, and all read what holds."""

from __future__ import annotations

from functools import partial

from blazar.api.http.answers import IF_MATCH, Answer, Tags, link
from blazar.api.http.context import Call
from blazar.api.http.routes import ADMIN, READER, Body, Caching, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import LINKS, Json, a_list, an_object, ref
from blazar.api.rules.components import COMPONENTS, DOCUMENT, NO_STACKING, OPENING_HOURS
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.base.errors import PreconditionFailed
from blazar.model.rules.documents import show_document
from blazar.model.rules.values import BookingRule, unknown_rule

GET = Rule("blazar:rules:get", READER, "List and show rules; members see those that hold for their project.")
PUT = Rule("blazar:rules:put", ADMIN, "Write a rule on when projects may have leases.")
DELETE = Rule("blazar:rules:delete", ADMIN, "Delete a rule.")
TAGS = Tags("-r")


def index(call: Call) -> Json:
    """List rules by name: all for operators, for members those that hold for their project."""
    return {"rules": [_render(call, one) for one in call.manager.rules.all() if _is_seen(call, one)], "links": []}


def show(call: Call, name: str) -> Answer:
    """Show a rule."""
    found = call.manager.rules.one(name)
    if not _is_seen(call, found):
        raise unknown_rule(name)
    return Answer({"rule": _render(call, found)}, etag=TAGS.of(found.revision))


def write(call: Call, name: str) -> Answer:
    """Write a rule, a new one or another one of this name."""
    try:
        done = call.manager.rules.write(name, call.body(), TAGS.wanted())
    except PreconditionFailed as error:
        raise TAGS.refused(error) from error
    headers = {"Location": link(f"/v1/rules/{name}")} if done.is_new else {}
    found = {"rule": _render(call, done.rule)}
    return Answer(found, etag=TAGS.of(done.rule.revision), status=201 if done.is_new else 200, headers=headers)


def delete(call: Call, name: str) -> None:
    """Delete a rule."""
    try:
        call.manager.rules.delete(name, TAGS.wanted())
    except PreconditionFailed as error:
        raise TAGS.refused(error) from error


def _is_seen(call: Call, rule: BookingRule) -> bool:
    return call.is_operator or (rule.active and rule.applies_to.holds_for(call.caller.project_id))


def _render(call: Call, rule: BookingRule) -> Json:
    document = show_document(rule, None if call.is_operator else call.caller.project_id)
    return {
        "name": rule.name,
        "kind": str(rule.kind),
        "content": document["content"],
        "applies_to": document.get("applies_to", {}),
        "active": rule.active,
        "revision": rule.revision,
        "created_at": zulu(rule.created_at),
        "updated_at": zulu_or_none(rule.updated_at),
    }


_ONE = an_object({"rule": ref("Rule")})
_NAME = in_path("name", "the name of the rule")
_on_one = partial(Route, root=Root.V1, path="/rules/{name}", caching=Caching.NONE)

PART = Part(
    "rules",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/rules",
            name="list_rules",
            summary="List rules on when projects may have leases; members see those that hold for their project",
            handler=index,
            rule=GET,
            answers={200: an_object({"rules": a_list(ref("Rule")), "links": LINKS})},
            caching=Caching.NONE,
        ),
        _on_one(
            method="GET",
            name="show_rule",
            summary="Show a rule",
            handler=show,
            rule=GET,
            answers={200: _ONE},
            errors=(404,),
            parameters=(_NAME,),
        ),
        _on_one(
            method="PUT",
            name="write_rule",
            summary="Write a rule, a new one or another one of this name; it holds for what is booked from then on",
            handler=write,
            rule=PUT,
            body=Body("RuleWrite", DOCUMENT, (OPENING_HOURS, NO_STACKING)),
            answers={201: _ONE, 200: _ONE},
            errors=(409, 412),
            parameters=(_NAME, IF_MATCH),
        ),
        _on_one(
            method="DELETE",
            name="delete_rule",
            summary="Delete a rule",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409, 412),
            parameters=(_NAME, IF_MATCH),
        ),
    ),
    rules=(GET, PUT, DELETE),
    components=COMPONENTS,
)
