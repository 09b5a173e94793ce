# SPDX-License-Identifier: Apache-2.0
"""``/v1/history``, from version 1.1 on: the journal, what was done to any object, in the order in which it is read.

A program that asks for what comes after the last position it has seen misses nothing, and gets nothing twice.
"""

from __future__ import annotations

from blazar.api.history.entries import EXAMPLE, FIELDS, render_entry
from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Choice, DayOrDate, Number, Text
from blazar.api.http.routes import READER, Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import (
    LINKS,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.model.base.errors import Denied, query_field
from blazar.model.journal.entries import NumberedEntry, ObjectType, Verb
from blazar.model.journal.views import JournalPage, JournalQuestion, show_entry

GET = Rule("blazar:history:get", READER, "Show what was done in the own project, operators: to all objects.")

_OBJECT = an_object(
    {
        "type": one_of(ObjectType),
        "id": {**TEXT, "description": "of a resource and of a property with its kind, as host/7"},
        "name": {**TEXT_OR_NULL, "description": "as it was then"},
        "revision": {"type": ["integer", "null"], "description": "null of what has no revisions"},
    }
)
ENTRY = an_object(
    {
        **FIELDS,
        "verb": one_of(Verb),
        "position": {**NUMBER, "description": "its place in the order of all entries, for after"},
        "object": _OBJECT,
        "project_id": {**TEXT_OR_NULL, "description": "whose it was; null: the operators'"},
        "request_id": {
            **TEXT_OR_NULL,
            "description": "of the request, or of the work, that did it; null of those of other projects",
        },
        "global_request_id": {**TEXT_OR_NULL, "description": "what the caller has sent as such; null as well"},
    },
    example={
        **EXAMPLE,
        "id": "81234",
        "position": 81234,
        "object": {"type": "lease", "id": "5f0c8f5e-3a52-4d1f-9a55-6f0f3c1f7b1d", "name": "training", "revision": 4},
        "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
        "request_id": "req-2f8e0f63-5f5b-4d3c-8f61-0b8f2d0a5a11",
        "global_request_id": None,
    },
)


def index(call: Call) -> Answer:
    """List what was done, in the order of positions."""
    asked, own = call.asked, None if call.is_operator else call.caller.project_id
    project_id = asked.one("project_id", own)
    if own is not None and project_id != own:
        raise Denied(
            "project_id is not the own one; only operators see what is done in others; leave it out", at=_PROJECT
        )
    question = JournalQuestion(
        asked.page("position"),
        project_id,
        asked.one("after"),
        None if (type_ := asked.one("object_type")) is None else ObjectType(type_),
        asked.one("object_id"),
        None if (verb := asked.one("verb")) is None else Verb(verb),
        asked.one("by"),
        asked.one("from"),
        asked.one("to"),
        # By asking for somebody else, members would learn what the answers do not tell: who of the operators did it.
        by_project_id=own if asked.one("by") else None,
        reader_id=None if own is None else call.caller.user_id,
    )
    page = call.manager.journal.page(question)
    found: Json = {"history": [_render(entry, page, own) for entry in page.items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


_PROJECT = query_field("project_id")


def _render(entry: NumberedEntry, page: JournalPage, own: str | None) -> Json:
    entry = entry if own is None else show_entry(entry, own, page.projects)
    about = entry.about
    return {
        **render_entry(entry.past, own),
        "id": str(entry.position),
        "position": entry.position,
        "object": {"type": str(about.object_type), "id": about.id, "name": about.name, "revision": about.revision},
        "project_id": about.project_id,
        "request_id": entry.request_id,
        "global_request_id": entry.global_request_id,
    }


PART = Part(
    "journal",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/history",
            name="list_history",
            summary="List what was done to objects of the service, and by whom",
            handler=index,
            rule=GET,
            caching=Caching.NONE,
            answers={
                200: an_object(
                    {"history": a_list(ref("HistoryEntry")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(
                *paging(["position"]),
                option("after", Number(0, 2**62), "entries after this position"),
                option("object_type", Choice(tuple(map(str, ObjectType))), "what it was done to"),
                option("object_id", Text(), "the id of what it was done to"),
                option("verb", Choice(tuple(map(str, Verb))), "what was done"),
                option("by", Text(), "the id of the user who did it (others than operators: in the own project)"),
                option("project_id", Text(), "of this project (operators; others: the own one)"),
                option("from", DayOrDate(), "what was done then or later"),
                option("to", DayOrDate(), "what was done before it"),
            ),
        ),
    ),
    rules=(GET,),
    components={"HistoryEntry": ENTRY},
)
