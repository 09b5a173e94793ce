# SPDX-License-Identifier: Apache-2.0
"""``/v1/price-lists``, from version 1.1 on: what leases cost. Operators publish; a version never changes."""

from __future__ import annotations

from functools import partial

from blazar.api.billing.components import COMPONENTS, DOCUMENT, EXAMPLE
from blazar.api.http.answers import Answer, link
from blazar.api.http.context import Call
from blazar.api.http.queries import option
from blazar.api.http.readers import Flag
from blazar.api.http.routes import ADMIN, READER, Body, Caching, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import LINKS, NUMBER, TEXT, Json, a_list, an_object, ref
from blazar.model.base.clock import zulu
from blazar.model.base.errors import NotFound
from blazar.model.billing.comparison import MonthComparison, ProjectComparison
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import show_amount
from blazar.model.billing.published import PriceChange, PublishedList, show_to_project
from blazar.model.billing.statements import spell_month
from blazar.model.leases.requests import Actor

GET = Rule("blazar:price_lists:get", READER, "List and show price lists; of projects members see their own entry.")
POST = Rule("blazar:price_lists:post", ADMIN, "Publish a price list, or see what it would change.")
_LONGEST = 9
"""Digits of a version."""


def index(call: Call) -> Json:
    """List price lists, oldest first, without their prices."""
    return {"price_lists": [_head(call, one) for one in call.manager.price_lists.all()], "links": []}


def show(call: Call, version: str) -> Answer:
    """Show a price list."""
    number = version.removesuffix(".json")
    if not (number.isascii() and number.isdigit() and len(number) <= _LONGEST):
        raise NotFound("price list not found; give the number of a version", code="price_list_not_found")
    return Answer({"price_list": _render(call, call.manager.price_lists.one(int(number)))})


def publish(call: Call) -> Answer:
    """Publish a price list; with ``dry_run`` show what it would change."""
    dry_run = call.asked.one("dry_run", False)
    by = Actor(call.caller.user_id, call.caller.project_id)
    done = call.manager.price_lists.publish(call.body(), by, dry_run=dry_run)
    found: Json = {"price_list": _render(call, done.new), "changes": list(map(_render_change, done.changes))}
    found["left_out"], found["replaced"] = list(done.left_out), list(done.replaced)
    found["unmatched"] = list(done.unmatched)
    found["last_month"] = None if done.last_month is None else _render_month(done.last_month, done.new.parse())
    if dry_run:
        return Answer(found, status=200)
    return Answer(found, status=201, headers={"Location": link(f"/v1/price-lists/{done.new.version}")})


def _head(call: Call, one: PublishedList) -> Json:
    return {
        "version": one.version,
        "published_at": zulu(one.published_at),
        "valid_from": zulu(one.valid_from),
        "currency": one.document["currency"],
        "published_by": one.published_by if call.is_operator else None,
        # A member could try out the factors of other projects by it.
        "digest": one.digest if call.is_operator else None,
    }


def _render(call: Call, one: PublishedList) -> Json:
    whole = one.document
    document = whole if call.is_operator else show_to_project(whole, call.caller.project_id)
    return {**_head(call, one), "content": dict(document)}


def _render_change(change: PriceChange) -> Json:
    return {"field": change.field, "before": change.before, "after": change.after}


def _render_month(found: MonthComparison, prices: PriceList) -> Json:
    def render(one: MonthComparison | ProjectComparison) -> Json:
        decimals = prices.decimals
        return {"amount": show_amount(one.nano, decimals), "new_amount": show_amount(one.new_nano, decimals)}

    return {
        "month": spell_month(found.month),
        "currency": prices.currency,
        **render(found),
        "leases": found.leases,
        "is_whole": found.is_whole,
        "projects": [{"project_id": one.project_id, **render(one)} for one in found.projects],
    }


_DRY_RUN = option("dry_run", Flag(), "only say what it would change; nothing is published")
_LEFT_OUT: Json = {
    **a_list(TEXT),
    "description": "skus of the prices until then that a list published ahead leaves out: what is booked meanwhile by "
    "these is free from its begin on",
}
_REPLACED: Json = {
    **a_list(NUMBER),
    "description": "versions that were published ahead, and never hold for what is booked from now on, as this list "
    "begins before them; publish them again after it if they are to hold",
}
_UNMATCHED: Json = {
    **a_list(TEXT),
    "description": "skus of prices that no resource has now: their requirement fits none, or a price before them fits "
    "all that they do",
}
_PUBLISHED = an_object(
    {
        "price_list": ref("PriceList"),
        "changes": a_list(ref("PriceChange")),
        "left_out": _LEFT_OUT,
        "replaced": _REPLACED,
        "unmatched": _UNMATCHED,
        "last_month": {"anyOf": [ref("PriceComparison"), {"type": "null"}]},
    }
)
_route = partial(Route, root=Root.V1, caching=Caching.NONE)

PART = Part(
    "price_lists",
    routes=(
        _route(
            method="GET",
            path="/price-lists",
            name="list_price_lists",
            summary="List price lists",
            handler=index,
            rule=GET,
            answers={200: an_object({"price_lists": a_list(ref("PriceListInList")), "links": LINKS})},
        ),
        _route(
            method="POST",
            path="/price-lists",
            name="publish_price_list",
            summary="Publish a price list",
            handler=publish,
            rule=POST,
            body=Body("PriceListPublish", DOCUMENT, (EXAMPLE,)),
            answers={201: _PUBLISHED, 200: _PUBLISHED},
            errors=(409,),
            parameters=(_DRY_RUN,),
        ),
        _route(
            method="GET",
            path="/price-lists/{version}",
            name="show_price_list",
            summary="Show a price list",
            handler=show,
            rule=GET,
            answers={200: an_object({"price_list": ref("PriceList")})},
            errors=(404,),
            parameters=(in_path("version", "the version of the price list"),),
        ),
    ),
    rules=(GET, POST),
    components=COMPONENTS,
)
