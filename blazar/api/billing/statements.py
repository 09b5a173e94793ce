# SPDX-License-Identifier: Apache-2.0
"""``/v1/statements``, from version 1.1 on: what a project has to pay for a month, as JSON, as CSV, and as FOCUS.

A statement is sent while it is read, a thousand charges at a time: no process has a long one in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from flask import Response

from blazar.api.billing.charges import COUNT_OR_NULL, KEYS, read_month, read_project, render_charge
from blazar.api.http.answers import JSON, Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.csv_text import spell_cell, stream_csv, wants_csv
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Choice, Flag, Text
from blazar.api.http.routes import READER, Caching, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import LINKS, NUMBER, TEXT, TEXT_OR_NULL, ZULU, Json, a_list, an_object, one_of, ref
from blazar.model.base.clock import zulu
from blazar.model.base.errors import Denied, query_field
from blazar.model.base.paging import Page
from blazar.model.billing.charges import Charge, ChargeCategory, ChargeStatus, format_nano, window_of_month
from blazar.model.billing.focus import COLUMNS, Issuer, list_rows
from blazar.model.billing.statements import (
    ChargeQuestion,
    Statement,
    StatementQuestion,
    StatementState,
    StatementTotal,
    spell_month,
)

GET = Rule("blazar:statements:get", READER, "See the statements of the own project, operators: those of all.")

_PIECE = 1000
"""Charges that are read at a time."""
_TOTAL: Json = {
    "category": "usage",
    "status": "used",
    "sku": "host-a100",
    "count": 3,
    "resource_seconds": 446400,
    "amount": "396.800000000",
    "energy_wh": None,
    "gco2": None,
}
_HEAD: Json = {
    "id": "2030-04/71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "month": "2030-04",
    "period": {"start": "2030-04-01T00:00:00Z", "end": "2030-05-01T00:00:00Z"},
    "state": "final",
    "provider": "OpenStack",
    "currency": "EUR",
    "amount": "396.80",
    "rounding": "0.000000000",
    "energy_wh": 37200,
    "gco2": 11904,
    "totals": [_TOTAL],
}
_PROPERTIES: Json = {
    "id": {**TEXT, "description": "the number of the invoice"},
    "project_id": TEXT,
    "month": TEXT,
    "period": an_object({"start": ZULU, "end": ZULU}),
    "state": {**one_of(StatementState), "description": "open: more may be charged in this month"},
    "provider": {**TEXT, "description": "who is to be paid"},
    "currency": TEXT,
    "amount": {**TEXT, "description": "what is to be paid: the sum of all amounts, and the rounding"},
    "rounding": {**TEXT, "description": "the difference of the sum to the decimals of the currency"},
    "energy_wh": {**COUNT_OR_NULL, "description": "watt-hours that hosts drew for it; null: none are recorded"},
    "gco2": {**COUNT_OR_NULL, "description": "grams of CO2e of that; null: none are recorded"},
    "totals": a_list(ref("StatementTotal")),
}
COMPONENTS: Json = {
    "StatementTotal": an_object(
        {
            "category": one_of(ChargeCategory),
            "status": one_of(ChargeStatus),
            "sku": TEXT_OR_NULL,
            "count": {**NUMBER, "description": "of charges"},
            "resource_seconds": NUMBER,
            "amount": TEXT,
            "energy_wh": {**COUNT_OR_NULL, "description": "watt-hours; null: not of category energy"},
            "gco2": {**COUNT_OR_NULL, "description": "grams of CO2e"},
        },
        example=_TOTAL,
    ),
    "StatementInList": an_object(_PROPERTIES, example=_HEAD),
    "Statement": an_object({**_PROPERTIES, "charges": a_list(ref("Charge"))}, example={**_HEAD, "charges": []}),
}


def index(call: Call) -> Answer:
    """List statements, latest first unless asked otherwise."""
    asked = call.asked
    page = asked.page("month")
    if asked.one("sort_dir") is None:
        page = replace(page, descending=True)
    found = call.manager.statements.page(StatementQuestion(page, read_project(call)))
    shown: Json = {"statements": list(map(render_statement, found.items))}
    return link_pages(shown if found.count is None else {**shown, "count": found.count}, found.following)


def show(call: Call, month: str) -> Response:
    """Show a statement with its charges, in the form that is asked for."""
    own, asked = call.caller.project_id, call.asked
    project_id = asked.one("project_id", own)
    if project_id != own and not call.is_operator:
        raise Denied(
            "project_id is not the own one; only operators see statements of others; leave it out",
            at=query_field("project_id"),
        )
    statement = call.manager.statements.one(project_id, read_month(month, "month"))
    charges = _read_charges(call, statement)
    name = f"blazar-statement-{spell_month(statement.month)}"
    form = asked.one("format")
    if form == "focus":
        lists = [one.parse() for one in call.manager.price_lists.all()]
        called = call.caller.project_name if project_id == own else None
        issuer = Issuer(statement.provider, project_id, called or project_id)
        return stream_csv(f"{name}-focus", COLUMNS, list_rows(statement, charges, lists, issuer, spell_cell))
    if wants_csv(form):
        return stream_csv(name, KEYS, map(_spell_row, charges))
    return Response(_spell_json(statement, charges), mimetype=JSON)


def _read_charges(call: Call, statement: Statement) -> Iterator[Charge]:
    """Yield the charges of a statement as it was read: none that was added since."""
    manager, after = call.manager, None
    while True:
        page = Page(_PIECE, "id", after=after)
        question = ChargeQuestion(page, statement.project_id, month=statement.month, last_id=statement.last_id)
        found = manager.charges.page(question)
        yield from found.items
        after = found.following
        if after is None:
            return


def _spell_row(charge: Charge) -> dict[str, str]:
    """Return a charge as a line of CSV: a credit is a number there, not taken for a formula."""
    row = render_charge(charge)
    return {key: spell_cell(value) for key, value in {**row, "amount": Decimal(row["amount"])}.items()}


def _spell_json(statement: Statement, charges: Iterator[Charge]) -> Iterator[str]:
    head = json.dumps(render_statement(statement))
    yield f'{{"statement": {head[:-1]}, "charges": ['
    for number, charge in enumerate(charges):
        yield f"{',' if number else ''}{json.dumps(render_charge(charge))}"
    yield "]}}\n"


def render_statement(statement: Statement) -> Json:
    """Return a statement as lists show it."""
    window, rounding = window_of_month(statement.month), statement.rounding
    return {
        "id": statement.id,
        "project_id": statement.project_id,
        "month": spell_month(statement.month),
        "period": {"start": zulu(window.start), "end": zulu(window.end)},
        "state": str(statement.state),
        "provider": statement.provider,
        "currency": statement.currency,
        "amount": format_nano(statement.nano, statement.decimals),
        "rounding": format_nano(0 if rounding is None else rounding.nano),
        "energy_wh": statement.wh,
        "gco2": statement.gco2,
        "totals": list(map(_render_total, statement.totals)),
    }


def _render_total(total: StatementTotal) -> Json:
    return {
        "category": str(total.category),
        "status": str(total.status),
        "sku": total.sku,
        "count": total.count,
        "resource_seconds": total.resource_seconds,
        "amount": format_nano(total.nano),
        "energy_wh": total.wh,
        "gco2": total.gco2,
    }


_PAGING = tuple(
    replace(one, description="by default desc: the latest month first") if one.name == "sort_dir" else one
    for one in paging(["month"])
)

PART = Part(
    "statements",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/statements",
            name="list_statements",
            summary="List what is to be paid for each month",
            handler=index,
            rule=GET,
            caching=Caching.NONE,
            answers={
                200: an_object(
                    {"statements": a_list(ref("StatementInList")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(
                *_PAGING,
                option("project_id", Text(), "of this project (operators; others: the own one)"),
                option("all_projects", Flag(), "of all projects, for operators"),
            ),
        ),
        Route(
            root=Root.V1,
            method="GET",
            path="/statements/{month}",
            name="show_statement",
            summary="Show what is to be paid for a month, with all charges",
            handler=show,
            rule=GET,
            caching=Caching.NONE,
            answers={200: an_object({"statement": ref("Statement")})},
            as_csv=True,
            errors=(404,),
            parameters=(
                in_path("month", "the month, such as 2030-04"),
                option("project_id", Text(), "of this project (operators; others: the own one)"),
                option(
                    "format",
                    Choice(("json", "csv", "focus")),
                    f"by default as Accept asks for: {JSON} or text/csv; focus: CSV in the columns of FOCUS 1.2",
                ),
            ),
        ),
    ),
    rules=(GET,),
    components=COMPONENTS,
)
