# SPDX-License-Identifier: Apache-2.0
"""Transfer of leases, from version 1.1 on: the owner offers one, and somebody of the other project accepts it."""

from __future__ import annotations

from functools import partial

from blazar.api.http.answers import IDEMPOTENCY_KEY, IF_MATCH, Answer, Tags, key_of, link, link_pages
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Flag
from blazar.api.http.routes import Body, Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import (
    LEASE_ID,
    LINKS,
    NUMBER,
    RESERVATION_ID,
    TEXT,
    ZULU,
    ZULU_OR_NULL,
    Json,
    a_list,
    an_object,
    one_of,
    ref,
)
from blazar.api.leases.rules import DELETE as DELETE_LEASE
from blazar.api.leases.rules import POST as CREATE_LEASE
from blazar.api.leases.rules import PUT as UPDATE_LEASE
from blazar.api.leases.rules import View, view_of, visible
from blazar.api.leases.v1_1 import render
from blazar.api.leases.v1_1.components import EXTEND, OFFER_EXAMPLE, OFFER_KEYS
from blazar.model.base.errors import InvalidInput, PreconditionFailed
from blazar.model.leases.details import LeaseDetails
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseKind, LeaseStatus, ReservationStatus
from blazar.model.surgery import OfferRequest, Terms

_ID: Json = {"type": "string", "minLength": 1, "maxLength": 255}

OFFER = an_object(
    {
        "project_id": {**_ID, "description": "the project that is to get it; left out: the lease's own"},
        "user_id": {
            **_ID,
            "type": ["string", "null"],
            "description": "the only user who may accept it; null or left out: any member of the project",
        },
        "message": {"type": ["string", "null"], "maxLength": 255, "description": "a text for who gets it"},
    },
    optional=("project_id", "user_id", "message"),
)
OFFERS: tuple[Json, ...] = (
    {"project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55", "message": "for your course"},
    {"user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7"},
)

_RESERVATION = an_object(
    {
        "id": TEXT,
        "resource_type": TEXT,
        "region": TEXT,
        "status": one_of(ReservationStatus),
        "count": {**NUMBER, "description": "how many resources it has, or units of them"},
        "parameters": {"type": "object", "description": "as the request for it had them"},
    },
    optional=("region",),
)
_LEASE = an_object(
    {
        "id": TEXT,
        "name": TEXT,
        "kind": one_of(LeaseKind),
        "status": one_of(LeaseStatus),
        "revision": NUMBER,
        "start_date": ZULU,
        "end_date": ZULU,
        "before_end_date": ZULU_OR_NULL,
        "extend_if_free": EXTEND,
        "reservations": a_list(_RESERVATION),
    }
)
TRANSFER = an_object(
    {**OFFER_KEYS, "from_project_id": TEXT, "from_user_id": TEXT, "lease": _LEASE},
    example={
        **OFFER_EXAMPLE,
        "from_project_id": "9e0c7b1d4f6a4c3b8d2e5f7a1b3c5d7e",
        "from_user_id": "b7d1e5a3c9f24e6d8a0b2c4d6e8f0a1c",
        "lease": {
            "id": LEASE_ID,
            "name": "training",
            "kind": "scheduled",
            "status": "PENDING",
            "revision": 3,
            "start_date": "2030-05-01T08:00:00Z",
            "end_date": "2030-05-03T08:00:00Z",
            "before_end_date": "2030-05-03T07:00:00Z",
            "extend_if_free": None,
            "reservations": [
                {
                    "id": RESERVATION_ID,
                    "resource_type": "physical:host",
                    "status": "pending",
                    "count": 2,
                    "parameters": {"min": 2, "max": 2},
                }
            ],
        },
    },
)


OFFER_RULE = Rule(
    "blazar:leases:transfer",
    all_of(UPDATE_LEASE, DELETE_LEASE),
    "Offer a lease to another project or user, who has it afterwards instead of the giver, or withdraw that.",
)
GET = Rule(
    "blazar:transfers:get", "rule:project_reader_api", "List and show the leases that are offered to the project."
)
ACCEPT = Rule(
    "blazar:transfers:accept", f"rule:project_member_api and {all_of(CREATE_LEASE)}", "Accept a lease that is offered."
)
DECLINE = Rule("blazar:transfers:decline", "rule:project_member_api", "Decline a lease that is offered.")

# A member sees the offer, and nothing else of the lease.
_VIEW = View(operator=False, names=False)
_TAGS = Tags("-t")
_SHOWN = ("id", "name", "kind", "status", "revision", "start_date", "end_date", "before_end_date", "extend_if_free")


def offer(call: Call, lease_id: str) -> Answer:
    """Offer a lease; with ``dry_run`` only say whether it could go."""
    owner = visible(call, lease_id)
    asked = call.checked(call.read())
    if "project_id" not in asked and asked.get("user_id") is None:
        raise InvalidInput(
            "project_id is missing; name the project that is to get the lease, or a user_id of its own project",
            code="missing_field",
            at="/project_id",
        )
    view = view_of(call)
    terms = Terms(_actor(call), revisions=view.tags.wanted(), dry_run=call.asked.one("dry_run", False))
    request = OfferRequest(asked.get("project_id"), asked.get("user_id"), asked.get("message"))
    try:
        found = call.manager.transfers.offer(owner.id, request, terms)
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error
    shown = {"transfer": _render_offer(found)}
    if terms.dry_run:
        return Answer(shown, status=200)
    headers = {"Location": link(f"/v1/transfers/{found.lease.id}")}
    return Answer(shown, etag=view.tags.of(found.lease.revision), headers=headers)


def withdraw(call: Call, lease_id: str) -> None:
    """Take back an offer."""
    owner = visible(call, lease_id)
    view = view_of(call)
    try:
        call.manager.transfers.withdraw(owner.id, Terms(_actor(call), revisions=view.tags.wanted()))
    except PreconditionFailed as error:
        raise view.tags.refused(error) from error


def index(call: Call) -> Answer:
    """List the leases that are offered to the caller's project."""
    call.authorize()
    page = call.manager.transfers.page(_actor(call), call.asked.page("expires_at"))
    found: Json = {"transfers": [_render_offer(lease_details) for lease_details in page.items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def show(call: Call, lease_id: str) -> Answer:
    """Show a lease that is offered to the caller's project."""
    call.authorize()
    found = call.manager.transfers.one(identifier(lease_id), _actor(call))
    return Answer({"transfer": _render_offer(found)}, etag=_TAGS.of(found.lease.revision))


def accept(call: Call, lease_id: str) -> Answer:
    """Take over a lease; with ``dry_run`` show what it would be."""
    call.authorize()
    key, dry_run, view = identifier(lease_id), call.asked.one("dry_run", False), view_of(call)
    route = f"POST /v1/transfers/{key}/accept"
    terms = Terms(
        _actor(call),
        revisions=_TAGS.wanted(),
        dry_run=dry_run,
        key=None if dry_run else key_of(call.body(), call.caller, route=route),
    )
    try:
        found = call.manager.transfers.accept(key, terms)
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error
    (details,) = found.leases
    shown = {"lease": render.lease(details, view)}
    if dry_run:
        return Answer(shown)
    headers = {"Idempotency-Replayed": "true"} if found.replayed else {}
    return Answer(shown, etag=view.tag_of(details), headers=headers)


def decline(call: Call, lease_id: str) -> None:
    """Turn down an offer."""
    call.authorize()
    try:
        call.manager.transfers.decline(identifier(lease_id), Terms(_actor(call), revisions=_TAGS.wanted()))
    except PreconditionFailed as error:
        raise _TAGS.refused(error) from error


def _actor(call: Call) -> Actor:
    return Actor(call.caller.user_id, call.caller.project_id, call.is_operator)


def _render_offer(details: LeaseDetails) -> Json:
    """Return an offer with what its taker may know of the lease."""
    lease = details.lease
    assert lease.offer is not None
    whole = render.lease(details, _VIEW)
    parts = [
        {
            "id": reservation.id,
            "resource_type": reservation.resource_type,
            **({"region": reservation.region} if reservation.region else {}),
            "status": reservation.status.value,
            "count": sum(h.count for h in details.held if h.reservation_id == reservation.id and not h.released),
            "parameters": render.parameters(reservation),
        }
        for reservation in lease.asked_for
    ]
    return {
        **render.offer(lease.offer),
        "from_project_id": lease.project_id,
        "from_user_id": lease.offer.offered_by,
        "lease": {**{key: whole[key] for key in _SHOWN}, "reservations": parts},
    }


_DRY_RUN = option("dry_run", Flag(), "only say what would come of it; nothing is changed")
_LEASE_ID = in_path("lease_id", "the lease's id")
_ONE = an_object({"transfer": ref("LeaseTransfer")})
_route = partial(Route, root=Root.V1, on_target=True)

PART = Part(
    "transfers",
    routes=(
        _route(
            method="POST",
            path="/leases/{lease_id}/transfer",
            name="offer_lease",
            summary="Offer a lease to another project, or to another user",
            handler=offer,
            rule=OFFER_RULE,
            body=Body("LeaseOffer", OFFER, OFFERS),
            answers={201: _ONE, 200: _ONE},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, _DRY_RUN, IF_MATCH),
        ),
        _route(
            method="DELETE",
            path="/leases/{lease_id}/transfer",
            name="withdraw_lease_offer",
            summary="Withdraw the offer of a lease",
            handler=withdraw,
            rule=OFFER_RULE,
            answers={204: None},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, IF_MATCH),
        ),
        _route(
            method="GET",
            path="/transfers",
            name="list_transfers",
            summary="List the leases that are offered to the project",
            handler=index,
            rule=GET,
            caching=Caching.NONE,
            answers={
                200: an_object(
                    {"transfers": a_list(ref("LeaseTransfer")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=paging(["expires_at"]),
        ),
        _route(
            method="GET",
            path="/transfers/{lease_id}",
            name="show_transfer",
            summary="Show a lease that is offered to the project",
            handler=show,
            rule=GET,
            caching=Caching.STRONG,
            answers={200: _ONE},
            errors=(404,),
            parameters=(_LEASE_ID,),
        ),
        _route(
            method="POST",
            path="/transfers/{lease_id}/accept",
            name="accept_transfer",
            summary="Accept a lease that is offered to the project",
            handler=accept,
            rule=ACCEPT,
            answers={200: an_object({"lease": ref("Lease1_1")})},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, _DRY_RUN, IDEMPOTENCY_KEY, IF_MATCH),
        ),
        _route(
            method="POST",
            path="/transfers/{lease_id}/decline",
            name="decline_transfer",
            summary="Decline a lease that is offered to the project",
            handler=decline,
            rule=DECLINE,
            answers={204: None},
            errors=(404, 409, 412),
            parameters=(_LEASE_ID, IF_MATCH),
        ),
    ),
    rules=(OFFER_RULE, GET, ACCEPT, DECLINE),
    components={"LeaseTransfer": TRANSFER},
)
