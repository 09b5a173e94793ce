# SPDX-License-Identifier: Apache-2.0
"""``/v1/problems``, from version 1.1 on: what operators may have to act on, and what they do about it."""

from __future__ import annotations

import re
from datetime import datetime
from functools import partial

from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call
from blazar.api.http.queries import filter_by, option, paging
from blazar.api.http.readers import Choice, Date, Text
from blazar.api.http.routes import ADMIN, Body, Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import (
    FLAG,
    LEASE_ID,
    LINKS,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    ZULU,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.api.kinds.hosts.requests import PUT as UPDATE_HOST
from blazar.api.leases.rules import DELETE as DELETE_LEASE
from blazar.api.leases.rules import visible
from blazar.api.subscriptions.routes import visible_subscription
from blazar.model.base.clock import zulu
from blazar.model.base.errors import NotFound
from blazar.model.problems.problems import (
    LONGEST_REASON,
    Problem,
    ProblemAction,
    ProblemKind,
    ProblemQuestion,
    Repair,
    RepairRequest,
)

GET = Rule("blazar:problems:get", ADMIN, "List and show problems.")
# What is done about a problem may delete leases, and take hosts out of use.
ACT = Rule(
    "blazar:problems:act",
    f"{ADMIN} and {all_of(DELETE_LEASE, UPDATE_HOST)}",
    "Act on problems: retry, release, give up, end, mend, recheck, drop.",
)

_EVENT = "event:4d1f0c2b-8a7e-4f3d-9c6b-5a4e3d2c1b0a"
_PROBLEM: Json = {
    "id": _EVENT,
    "kind": "event",
    "since": "2030-05-01T08:00:00Z",
    "summary": "start_lease of lease gan-training has failed 5 times",
    "explanation": [
        "The last reason is: host cn12 runs 1 server that belongs to no reservation.",
        "It is tried again at 2030-05-01 08:03:20.",
    ],
    "actions": ["retry", "give_up"],
    "lease_id": LEASE_ID,
    "region": "",
    "resource_id": None,
}
_REPAIR: Json = {
    "problem_id": _EVENT,
    "action": "retry",
    "dry_run": True,
    "said": ["start_lease of lease gan-training would be tried again at once."],
}
KEYS = tuple(_PROBLEM)
_PROPERTIES: Json = {
    "id": {**TEXT, "description": "the kind and what it is about; the same while the problem lasts"},
    "kind": one_of(ProblemKind),
    "since": ZULU,
    "summary": TEXT,
    "explanation": {**a_list(TEXT), "description": "sentences: why, who works on it, what comes next"},
    "actions": {**a_list(one_of(ProblemAction)), "description": "what makes sense; the dry run says if it is possible"},
    "lease_id": TEXT_OR_NULL,
    "region": {**TEXT, "description": "empty where no regions are configured, or several are concerned"},
    "resource_id": {**TEXT_OR_NULL, "description": "kind and id of a resource that has failed, such as host/1"},
}
COMPONENTS: Json = {
    "Problem": an_object(_PROPERTIES, example=_PROBLEM),
    "ProblemInList": an_object(_PROPERTIES, optional=KEYS[1:], example=_PROBLEM),
    "ProblemRepair": an_object(
        {
            "problem_id": TEXT,
            "action": one_of(ProblemAction),
            "dry_run": FLAG,
            "said": {**a_list(TEXT), "description": "sentences: what was done, or would be"},
        },
        example=_REPAIR,
    ),
}
_ACT: Json = {
    "type": "object",
    "required": ["reason"],
    "additionalProperties": False,
    "properties": {
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": LONGEST_REASON,
            "pattern": r"\S",
            "description": f"why, as a string of 1 to {LONGEST_REASON} characters, not all of them spaces",
        },
        "dry_run": {"type": "boolean", "description": "true, the default: only say what would be done"},
        "confirm": {
            "type": "string",
            "maxLength": 64,
            "description": "the id of a reservation that is not on record, once more, to end it",
        },
    },
}
_EXAMPLES: tuple[Json, ...] = (
    {"reason": "ticket 4711"},
    {"reason": "the switch is repaired", "dry_run": False},
    {"reason": "of the old backup", "dry_run": False, "confirm": LEASE_ID},
)
_PLAUSIBLE = re.compile(r"[A-Za-z0-9_. :-]{1,160}")


def index(call: Call) -> Answer:
    """List problems, the oldest first."""
    asked = call.asked
    wanted = [set(condition.values) for condition in asked.conditions if condition.key == "kind"]
    kinds = tuple(kind for kind in ProblemKind if all(str(kind) in values for values in wanted))
    if wanted and not kinds:
        return link_pages({"problems": [], **({"count": 0} if asked.one("with_count", False) else {})}, None)
    older = asked.one("older_than")
    question = ProblemQuestion(
        asked.page("since"),
        kinds if wanted else (),
        asked.one("lease_id"),
        asked.one("region"),
        older if isinstance(older, datetime) else None,
    )
    page = call.manager.problems.page(question)
    found: Json = {"problems": [asked.only(_render(problem)) for problem in page.items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def show(call: Call, problem_id: str) -> Json:
    """Show a problem."""
    return {"problem": _render(call.manager.problems.one(_read_id(problem_id)))}


def act(call: Call, problem_id: str, action: str) -> Json:
    """Do something about a problem, or say what would be done."""
    body = call.checked(normalize(call.read()))
    if action not in set(map(str, ProblemAction)):
        known = ", ".join(map(str, ProblemAction))
        raise NotFound(f"there is no action {action[:40]!r} on problems; give one of {known}", code="uri_not_found")
    request = RepairRequest(body["reason"], body.get("dry_run", True), body.get("confirm"))
    found = call.manager.problems.one(_read_id(problem_id))
    if found.lease_id is not None:
        visible(call, found.lease_id)
    elif found.kind is ProblemKind.DELIVERY:
        visible_subscription(call, found.id.split(":")[1])
    done = call.manager.problems.act(found.id, ProblemAction(action), request)
    return {"repair": _render_repair(done)}


def _read_id(text: str) -> str:
    """Return the id of a problem from a path; what cannot be one becomes ``-``, which no problem has."""
    text = text.removesuffix(".json")
    return text if _PLAUSIBLE.fullmatch(text) else "-"


def _render(problem: Problem) -> Json:
    return {
        "id": problem.id,
        "kind": str(problem.kind),
        "since": zulu(problem.since),
        "summary": problem.summary,
        "explanation": list(problem.explanation),
        "actions": [str(action) for action in problem.actions],
        "lease_id": problem.lease_id,
        "region": problem.region,
        "resource_id": problem.resource_id,
    }


def _render_repair(repair: Repair) -> Json:
    return {
        "problem_id": repair.problem_id,
        "action": str(repair.action),
        "dry_run": repair.dry_run,
        "said": list(repair.said),
    }


_ID = in_path("problem_id", "the id of the problem")
_route = partial(Route, root=Root.V1, caching=Caching.NONE)

PART = Part(
    "problems",
    routes=(
        _route(
            method="GET",
            path="/problems",
            name="list_problems",
            summary="List what operators may have to act on",
            handler=index,
            rule=GET,
            answers={
                200: an_object(
                    {"problems": a_list(ref("ProblemInList")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(
                filter_by("kind", Choice(tuple(map(str, ProblemKind))), "the kind"),
                option("lease_id", Text(1, 64), "only those of this lease"),
                option("region", Text(1, 64), "only those of this region"),
                option("older_than", Date(), "only those that began before this date"),
                *paging(["since"], fields=KEYS),
            ),
        ),
        _route(
            method="GET",
            path="/problems/{problem_id}",
            name="show_problem",
            summary="Show what an operator may have to act on",
            handler=show,
            rule=GET,
            answers={200: an_object({"problem": ref("Problem")})},
            errors=(404,),
            parameters=(_ID,),
        ),
        _route(
            method="POST",
            path="/problems/{problem_id}/{action}",
            name="act_on_problem",
            summary="Act on a problem; by default a dry run",
            handler=act,
            rule=ACT,
            body=Body("ProblemAct", _ACT, _EXAMPLES),
            answers={200: an_object({"repair": ref("ProblemRepair")})},
            errors=(404, 409),
            parameters=(_ID, in_path("action", "retry, release, give_up, end, mend, recheck or drop")),
        ),
    ),
    rules=(GET, ACT),
    components=COMPONENTS,
)
