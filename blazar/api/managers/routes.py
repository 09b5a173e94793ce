# SPDX-License-Identifier: Apache-2.0
"""``/v1/managers``, from microversion 1.1 on: which managers run, how they get on, and what each works on."""

from __future__ import annotations

from datetime import timedelta

from blazar.api.http.context import Call
from blazar.api.http.routes import ADMIN, Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
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
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.managers.presence import MOST_WORK, KnownManager, ManagerState, ManagerWork, ThreadFacts

GET = Rule("blazar:managers:get", ADMIN, "List the running managers, with what they work on.")

_MILLISECOND = timedelta(milliseconds=1)
_WORK: Json = {
    "event_id": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
    "lease_id": LEASE_ID,
    "event_type": "start_lease",
    "since": "2026-11-26T13:20:01Z",
}
_THREAD: Json = {"name": "engine", "last_round_at": "2026-11-26T13:20:03Z", "failing_since": None, "error": None}
_MANAGER: Json = {
    "id": "ctl1:4711:9f2c01aa",
    "host": "ctl1",
    "version": "19.0.0",
    "rpc_version": "2.0",
    "state": "running",
    "up": True,
    "started_at": "2026-11-26T08:00:00Z",
    "seen_at": "2026-11-26T13:20:04Z",
    "clock_offset_ms": 12,
    "work": [_WORK],
    "regions": [""],
    "options_agree": True,
    "threads": [_THREAD],
}

COMPONENTS: Json = {
    "ManagerWork": an_object(
        {"event_id": TEXT, "lease_id": TEXT, "event_type": TEXT, "since": ZULU_OR_NULL}, example=_WORK
    ),
    "ManagerThread": an_object(
        {
            "name": TEXT,
            "last_round_at": {**ZULU_OR_NULL, "description": "when it has ended a round last, successfully or not"},
            "failing_since": {**ZULU_OR_NULL, "description": "since when its rounds fail; null: they do not"},
            "error": TEXT_OR_NULL,
        },
        example=_THREAD,
    ),
    "Manager": an_object(
        {
            "id": {**TEXT, "description": "host, process, and a number; its claims begin with it"},
            "host": TEXT,
            "version": TEXT,
            "rpc_version": {**TEXT, "description": "the number of the calls that it answers"},
            "state": {**one_of(ManagerState), "description": "draining: it begins nothing new; stopping: it ends"},
            "up": {**FLAG, "description": "it was seen within the time that a claim lives"},
            "started_at": ZULU,
            "seen_at": ZULU,
            "clock_offset_ms": {**NUMBER, "description": "how far its clock is ahead of that of the database"},
            "work": {
                **a_list(ref("ManagerWork")),
                "description": f"the events that it has claimed, the first {MOST_WORK}; if it is not up, until "
                "another manager takes them over",
            },
            "regions": {**a_list(TEXT), "description": "those that it serves; an empty name if none are configured"},
            "options_agree": {**FLAG, "description": "its options are those of all managers that are up"},
            "threads": a_list(ref("ManagerThread")),
        },
        example=_MANAGER,
    ),
}


def index(call: Call) -> Json:
    """List managers, the longest running first."""
    return {"managers": [render_manager(manager) for manager in call.manager.service.managers()], "links": []}


def render_manager(manager: KnownManager) -> Json:
    """Return a manager as it is shown."""
    facts = manager.facts
    return {
        "id": facts.id,
        "host": facts.host,
        "version": facts.version,
        "rpc_version": facts.rpc_version,
        "state": str(facts.state),
        "up": manager.up,
        "started_at": zulu(facts.started_at),
        "seen_at": zulu(manager.seen_at),
        "clock_offset_ms": facts.clock_offset // _MILLISECOND,
        "work": [_render_work(work) for work in manager.work],
        "regions": list(facts.regions),
        "options_agree": manager.options_agree,
        "threads": [_render_thread(thread) for thread in facts.threads],
    }


def _render_work(work: ManagerWork) -> Json:
    return {
        "event_id": work.event_id,
        "lease_id": work.lease_id,
        "event_type": work.event_type,
        "since": zulu_or_none(work.since),
    }


def _render_thread(thread: ThreadFacts) -> Json:
    return {
        "name": thread.name,
        "last_round_at": zulu_or_none(thread.last_round_at),
        "failing_since": zulu_or_none(thread.failing_since),
        "error": thread.error,
    }


PART = Part(
    "managers",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/managers",
            name="list_managers",
            summary="List the running managers",
            handler=index,
            rule=GET,
            answers={200: an_object({"managers": a_list(ref("Manager")), "links": LINKS})},
            caching=Caching.NONE,
        ),
    ),
    rules=(GET,),
    components=COMPONENTS,
)
