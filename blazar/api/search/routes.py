# SPDX-License-Identifier: Apache-2.0
"""``POST /v1/availability``, from microversion 1.1 on; one project must not slow down the others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from blazar.api.http.context import Call
from blazar.api.http.routes import MEMBER, Body, Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import Json, an_object, ref
from blazar.api.leases.limits import check_text
from blazar.api.leases.rules import View, view_of, visible
from blazar.api.leases.v1_1.requests import lease_change, reservations
from blazar.api.leases.v1_1.schemas import CHANGED_RESERVATIONS, RESERVATIONS
from blazar.api.search import render
from blazar.api.search.render import COMPONENTS
from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import Denied, InvalidInput, TooManyRequests
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.leases.lease import unknown_lease
from blazar.model.leases.requests import Actor
from blazar.model.search.availability import Availability, AvailabilityQuestion


class Turns:
    """Counts the searches in progress; ``most`` at a time for each project."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()

    @contextmanager
    def taken(self, project_id: str) -> Iterator[None]:
        """Hold a turn of a project; TooManyRequests if all are taken."""
        with self._lock:
            if self._busy[project_id] >= self._most:
                raise TooManyRequests(
                    f"the project has {self._most} searches in progress, and no more are allowed at once; wait for "
                    "one of them, and try again"
                )
            self._busy[project_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[project_id] -= 1
                if not self._busy[project_id]:
                    del self._busy[project_id]


GET = Rule("blazar:availability:get", MEMBER, "Ask when reservations fit, and how far a lease can be extended.")

_OF_RANGE = ("duration", "earliest")
_OF_WINDOW = ("start_date", "end_date")


def find(call: Call) -> Availability:
    """Answer when reservations fit, or how a lease can change."""
    # Who may not ask at all does not learn what is wrong with a body.
    call.authorize()
    if not call.caller.project_id:
        raise Denied("The token has no project scope, and a lease belongs to a project; use a project-scoped token.")
    body = call.body()
    view = view_of(call)
    asked = _for_lease(call, body, view) if "lease_id" in body else _new(call, body, view)
    with call.services.feature(Turns).taken(call.caller.project_id):
        return call.manager.availability.find(asked)


def _new(call: Call, body: Json, view: View) -> AvailabilityQuestion:
    check_text(body, "The question")
    if "duration" not in body and "end_date" not in body:
        raise InvalidInput(
            "duration is missing; give the duration to look for, or the start_date and end_date of one window",
            code="missing_field",
            at="/duration",
        )
    wanted = reservations(body["reservations"], view, call.services.served.requests)
    return replace(_question(call, body), reservations=wanted)


def _for_lease(call: Call, body: Json, view: View) -> AvailabilityQuestion:
    """Return the question about a lease that the caller may see and ask about; NotFound, Denied."""
    key = body["lease_id"]
    if visible(call, key).deleted:
        raise unknown_lease(key)
    if "earliest" in body and "duration" not in body:
        raise InvalidInput(
            "earliest is for a search; give the duration to look for with it, or leave it out", at="/earliest"
        )
    changes = {"reservations": body.get("reservations", [])}
    change = lease_change(changes, lambda: call.manager.leases.details(key), call.caller, view, dry_run=True)
    return replace(_question(call, body), lease_id=key, changes=change.reservations, names=change.names)


def _question(call: Call, body: Json) -> AvailabilityQuestion:
    """Return what is asked of the time, for nothing yet."""
    for one in _OF_RANGE:
        for other in _OF_WINDOW:
            if one in body and other in body:
                raise InvalidInput(
                    f"{one} and {other} exclude each other; give duration, earliest and latest for a search, or "
                    "start_date and end_date for one window",
                    at=f"/{other}",
                )
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))

    def moment(name: str) -> Moment | None:
        return dates.moment(body[name], in_body(name), zone=zone) if name in body else None

    def end(name: str) -> Moment | Duration | None:
        return dates.moment_or_duration(body[name], in_body(name), zone=zone) if name in body else None

    return AvailabilityQuestion(
        Actor(call.caller.user_id, call.caller.project_id, call.is_operator),
        duration=dates.duration(body["duration"], in_body("duration"), zone=zone) if "duration" in body else None,
        earliest=moment("earliest") or NOW,
        latest=end("latest"),
        start=moment("start_date"),
        end=end("end_date"),
        limit=call.services.bounds.openings.limit(body.get("limit")),
        explain=body.get("explain", True),
        alternatives=body.get("alternatives", True),
    )


MOST_RESERVATIONS = 20

_DATE: Json = {"type": "string", "maxLength": dates.MOST_CHARACTERS}
_BEGIN: Json = {**_DATE, "description": dates.DATE_FORMAT}
_END: Json = {**_DATE, "description": f"{dates.DATE_FORMAT}, or a duration from the start such as +P3D or +72h"}
_FLAG: Json = {"type": "boolean", "description": "true or false"}
_FEW: Json = {
    "maxItems": MOST_RESERVATIONS,
    "description": f"a list of 1 to {MOST_RESERVATIONS} reservations, as in a new lease; with lease_id, of changes of "
    "the lease's reservations",
}

_QUESTION: Json = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "reservations": {"type": "array", "minItems": 1, **_FEW},
        "duration": {**_DATE, "description": dates.DURATION_FORMAT},
        "earliest": _BEGIN,
        "latest": {**_END, "description": f"the last end: {_END['description']}"},
        "start_date": _BEGIN,
        "end_date": _END,
        "lease_id": {"type": "string", "minLength": 1, "maxLength": 255, "description": "the id of a lease"},
        "limit": {"type": "integer", "minimum": 1, "description": "a whole number from 1"},
        "explain": _FLAG,
        "alternatives": _FLAG,
        "time_zone": {**_DATE, "description": "the name of a time zone such as Europe/Paris"},
    },
    "if": {"required": ["lease_id"]},
    "then": {"type": "object", "properties": {"reservations": {**CHANGED_RESERVATIONS, **_FEW}}},
    "else": {"type": "object", "required": ["reservations"], "properties": {"reservations": {**RESERVATIONS, **_FEW}}},
}
_EXAMPLE: Json = {
    "reservations": [
        {"resource_type": "physical:host", "min": 4, "max": 6, "resource_properties": ["==", "$gpu", "A100"]}
    ],
    "duration": "P3D",
    "earliest": "now",
    "latest": "+P60D",
    "limit": 2,
    "time_zone": "Europe/Paris",
}
_OF_A_LEASE: Json = {"lease_id": "9f0d0a3e-6f0e-4f57-9d0a-0e1f2a3b4c5d"}

ROUTES = (
    Route(
        root=Root.V1,
        method="POST",
        path="/availability",
        name="find_availability",
        summary="Find when reservations fit, why not, and how far a lease can be extended",
        handler=find,
        rule=GET,
        on_target=True,
        body=Body("AvailabilityQuestion", _QUESTION, (_EXAMPLE, _OF_A_LEASE)),
        render=render.availability,
        answers={200: an_object({"availability": ref("Availability")})},
        errors=(404, 409, 429),
        caching=Caching.NONE,
    ),
)
PART = Part("availability", routes=ROUTES, rules=(GET,), components=COMPONENTS)
