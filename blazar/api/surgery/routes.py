# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases, from version 1.1 on: swap, split and merge.

Each is all or nothing, and done once for each ``Idempotency-Key``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from blazar.api.http.answers import IDEMPOTENCY_KEY, IF_MATCH, Answer, key_of, link
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import option
from blazar.api.http.readers import Flag
from blazar.api.http.routes import Body, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import LEASE_ID, RESERVATION_ID, Json, a_list, an_object, ref
from blazar.api.kinds.hosts.routes import MOVE
from blazar.api.leases.rules import DELETE, POST, PUT, View, view_of, visible
from blazar.api.leases.v1_1 import render
from blazar.model.base import dates
from blazar.model.base.errors import InvalidInput, NotFound, PreconditionFailed
from blazar.model.base.moments import NOW
from blazar.model.leases.details import LeaseOwner
from blazar.model.leases.requests import Actor
from blazar.model.surgery import MergeRequest, Operated, Partner, PartRequest, SplitRequest, SwapRequest, Terms

_NAMED: Json = {"type": "string", "minLength": 1, "maxLength": 255}
_ID: Json = {"type": "string", "minLength": 1, "maxLength": 64}

LEASES = an_object({"leases": a_list(ref("Lease1_1"))})
"""The leases that are left, the one that the request named first."""

SWAP = an_object(
    {
        "host": {**_NAMED, "description": "the host to give up, as the lease shows it"},
        "for": {
            **_NAMED,
            "type": ["string", "null"],
            "description": "the host to get for it; null or left out: any that fits",
        },
        "with": {
            **an_object({"lease_id": _ID, "reservation_id": _ID}),
            "description": "the reservation of another lease that gets the host and gives up the other one",
        },
    },
    optional=("for", "with"),
)
SWAPS: tuple[Json, ...] = ({"host": "node-1"}, {"host": "node-1", "for": "node-3"})

SPLIT = an_object(
    {
        "name": {
            "type": "string",
            "minLength": 1,
            "maxLength": 255,
            "description": "the second lease's; default: same",
        },
        "reservations": {
            **a_list(
                an_object(
                    {
                        "id": {**_ID, "description": "the reservation that goes to the second lease, or is cut"},
                        "resources": {
                            **a_list(_NAMED),
                            "minItems": 1,
                            "maxItems": 1000,
                            "description": "the resources of it that go, as the lease shows them",
                        },
                        "count": {"type": "integer", "minimum": 1, "description": "how many of its resources go"},
                    },
                    optional=("resources", "count"),
                )
            ),
            "minItems": 1,
            "maxItems": 100,
            "description": "the reservations that go, or are cut",
        },
        "at": {"type": "string", "maxLength": 64, "description": "the date at which the second lease begins"},
    },
    optional=("name", "reservations", "at"),
)
SPLITS: tuple[Json, ...] = (
    {"name": "second half", "reservations": [{"id": RESERVATION_ID, "count": 1}]},
    {"at": "2030-05-02T08:00:00Z"},
)

MERGE = an_object({"with": {**_ID, "description": "the lease whose reservations, or whose time, this one gets"}})
MERGES: tuple[Json, ...] = ({"with": LEASE_ID},)


SWAP_RULE = Rule("blazar:leases:swap", all_of(PUT), "Give up a host of a reservation for another one.")
SWAP_TO = Rule(
    "blazar:leases:swap_to", all_of(MOVE), "Name the host that a reservation gets for the one that it gives up."
)

SPLIT_RULE = Rule("blazar:leases:split", all_of(PUT, POST), "Make two leases of one.")

MERGE_RULE = Rule("blazar:leases:merge", all_of(PUT), "Make one lease of two; asked for both.")
MERGE_AWAY = Rule("blazar:leases:merge_away", all_of(DELETE), "End a lease by merging it into another one.")


def swap(call: Call, lease_id: str, reservation_id: str) -> Answer:
    """Give up a host of a reservation for another one; with ``dry_run`` show what would come of it."""
    owner = visible(call, lease_id)
    body = call.read()
    terms, view = _terms(call, body, f"POST /v1/leases/{owner.id}/reservations/{reservation_id}/swap")
    asked = call.checked(normalize(body))
    target, other = asked.get("for"), asked.get("with")
    partner = None
    if other is not None:
        if target is None:
            sentence = "for is missing; name the host of the other reservation that this one gets"
            raise InvalidInput(sentence, code="missing_field", at="/for")
        partner = Partner(_other(call, other["lease_id"], "/with/lease_id").id, identifier(other["reservation_id"]))
    elif target is not None:
        call.services.policy.check(SWAP_TO.name, call.caller, _target(owner))
    request = SwapRequest(identifier(reservation_id), asked["host"], target, partner)
    return _answer_operation(lambda: call.manager.surgery.swap(owner.id, request, terms), view, terms)


def split(call: Call, lease_id: str) -> Answer:
    """Make two leases of one; with ``dry_run`` show what they would be."""
    owner = visible(call, lease_id)
    body = call.read()
    terms, view = _terms(call, body, f"POST /v1/leases/{owner.id}/split")
    asked = call.checked(normalize(body))
    if ("reservations" in asked) == ("at" in asked):
        both = "reservations" in asked
        raise InvalidInput(
            "both reservations and at are given; split by units first, and each part by time then"
            if both
            else "reservations is missing; say what goes to the second lease, or with at when that begins",
            code="invalid_value" if both else "missing_field",
            at="/at" if both else "/reservations",
        )
    parts = [_part(part, number) for number, part in enumerate(asked.get("reservations", ()))]
    at = dates.moment(asked["at"], dates.in_body("at")) if "at" in asked else None
    if at is NOW:
        raise dates.in_body("at").invalid("now", "a date between the start and the end of the lease")
    request = SplitRequest(tuple(parts), at, asked.get("name"))
    return _answer_operation(lambda: call.manager.surgery.split(owner.id, request, terms), view, terms, made=True)


def merge(call: Call, lease_id: str) -> Answer:
    """Make one lease of two; with ``dry_run`` show what it would be."""
    owner = visible(call, lease_id)
    body = call.read()
    terms, view = _terms(call, body, f"POST /v1/leases/{owner.id}/merge")
    asked = call.checked(normalize(body))
    other = _other(call, asked["with"], "/with")
    call.services.policy.check(MERGE_AWAY.name, call.caller, _target(other))
    request = MergeRequest(other.id)
    return _answer_operation(lambda: call.manager.surgery.merge(owner.id, request, terms), view, terms)


def _part(body: Json, number: int) -> PartRequest:
    if "resources" in body and "count" in body:
        sentence = "both resources and count are given; leave one of them out"
        raise InvalidInput(sentence, at=f"/reservations/{number}/count")
    return PartRequest(body["id"], tuple(body.get("resources", ())), body.get("count"))


def _target(owner: LeaseOwner) -> dict[str, str]:
    return {"project_id": owner.project_id, "user_id": owner.user_id}


def _other(call: Call, lease_id: str, pointer: str) -> LeaseOwner:
    """Return whose another lease is that the body names. InvalidInput if the caller may not see it, Denied."""
    try:
        return visible(call, lease_id)
    except NotFound as error:
        raise InvalidInput(error.message, code="unknown_reference", at=pointer) from error


def _terms(call: Call, body: Json, route: str) -> tuple[Terms, View]:
    view, dry_run = view_of(call), call.asked.one("dry_run", False)
    caller = call.caller
    return Terms(
        Actor(caller.user_id, caller.project_id, call.is_operator),
        names=view.names,
        revisions=view.tags.wanted(),
        dry_run=dry_run,
        key=None if dry_run else key_of(body, caller, route=route),
    ), view


def _answer_operation(operate: Callable[[], Operated], view: View, terms: Terms, *, made: bool = False) -> Answer:
    """Return the answer of an operation; ``made``: a lease is made, the last one."""
    try:
        found = operate()
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error
    leases = {"leases": [render.lease(lease, view) for lease in found.leases]}
    if terms.dry_run:
        return Answer(leases, status=200)
    headers = {"Idempotency-Replayed": "true"} if found.replayed else {}
    if made:
        headers["Location"] = link(f"/v1/leases/{found.leases[-1].lease.id}")
    return Answer(leases, etag=view.tag_of(found.leases[0]), headers=headers)


_DRY_RUN = option("dry_run", Flag(), "only say what would come of it; nothing is changed")
_LEASE_ID = in_path("lease_id", "the lease's id")
_verb = partial(
    Route,
    root=Root.V1,
    method="POST",
    on_target=True,
    errors=(404, 409, 412),
)

PART = Part(
    "surgery",
    routes=(
        _verb(
            path="/leases/{lease_id}/reservations/{reservation_id}/swap",
            name="swap_host",
            summary="Give up a host of a reservation for another one",
            handler=swap,
            rule=SWAP_RULE,
            body=Body("HostSwap", SWAP, SWAPS),
            answers={200: LEASES},
            parameters=(
                _LEASE_ID,
                in_path("reservation_id", "the reservation's id"),
                _DRY_RUN,
                IDEMPOTENCY_KEY,
                IF_MATCH,
            ),
        ),
        _verb(
            path="/leases/{lease_id}/split",
            name="split_lease",
            summary="Make two leases of one, by units or by time",
            handler=split,
            rule=SPLIT_RULE,
            body=Body("LeaseSplit", SPLIT, SPLITS),
            answers={201: LEASES, 200: LEASES},
            parameters=(_LEASE_ID, _DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH),
        ),
        _verb(
            path="/leases/{lease_id}/merge",
            name="merge_leases",
            summary="Make one lease of two that have the same window, or follow each other on the same resources",
            handler=merge,
            rule=MERGE_RULE,
            body=Body("LeaseMerge", MERGE, MERGES),
            answers={200: LEASES},
            parameters=(_LEASE_ID, _DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH),
        ),
    ),
    rules=(SWAP_RULE, SPLIT_RULE, MERGE_RULE),
    views=(SWAP_TO, MERGE_AWAY),
)
