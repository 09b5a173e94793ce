# SPDX-License-Identifier: Apache-2.0
"""``/v1/charges``, from version 1.1 on: the lines of the ledger. They never change; operators answer wrong ones."""

from __future__ import annotations

import re
from datetime import date
from fractions import Fraction

from blazar.api.http.answers import IDEMPOTENCY_KEY, Answer, key_of, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Choice, Flag, Text
from blazar.api.http.routes import ADMIN, READER, Body, Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import (
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
from blazar.model.base.clock import zulu
from blazar.model.base.dates import in_body
from blazar.model.base.errors import Denied, InvalidInput, query_field
from blazar.model.billing.charges import (
    NANO,
    CarbonState,
    Charge,
    ChargeCategory,
    ChargeStatus,
    LineEnergy,
    format_factor,
    format_nano,
)
from blazar.model.billing.statements import ChargeQuestion, CorrectionRequest, parse_month, spell_month
from blazar.model.energy.consumption import EnergySource

GET = Rule("blazar:charges:get", READER, "List what the own project was charged, operators: all projects.")
CORRECT = Rule("blazar:charges:correct", ADMIN, "Answer a charge that was wrong by a correction.")

_AMOUNT = re.compile(r"-?\d{1,9}(\.\d{1,9})?", re.ASCII)
_WANTED = 'an amount as a string, such as "-12.50" for a credit, with at most 9 digits and 9 decimals'
_MONTH: Json = {"type": "string", "pattern": r"^\d{4}-\d{2}$"}
_EXAMPLE: Json = {
    "id": 81,
    "lease_id": LEASE_ID,
    "lease_name": "training",
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "user_id": "3c1f9a7d2b6e4f58a0c1d2e3f4a5b6c7",
    "reservation_id": "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d",
    "month": "2030-04",
    "category": "usage",
    "status": "used",
    "sku": "host-a100",
    "from": "2030-04-02T08:00:00Z",
    "to": "2030-04-03T08:00:00Z",
    "resource_seconds": 345600,
    "unit_price": "3.200000000",
    "factor": "1.25",
    "amount": "384.000000000",
    "currency": "EUR",
    "price_list": 3,
    "region": "",
    "corrects": None,
    "reason": None,
    "at": "2030-04-03T08:01:00Z",
    "energy_wh": None,
    "energy_source": None,
    "gco2": None,
    "carbon": None,
}
COUNT_OR_NULL: Json = {"type": ["integer", "null"], "minimum": 0}
_CORRECTION: Json = {
    "type": "object",
    "required": ["corrects", "amount", "reason"],
    "additionalProperties": False,
    "properties": {
        "corrects": {"type": "integer", "minimum": 1, "maximum": 2**62, "description": "the id of the charge"},
        "amount": {**TEXT, "description": _WANTED},
        "reason": {
            **{"type": "string", "minLength": 1, "maxLength": 1000, "pattern": r"\S"},
            "description": "a text that the project reads",
        },
    },
}
COMPONENTS: Json = {
    "Charge": an_object(
        {
            "id": NUMBER,
            "lease_id": TEXT,
            "lease_name": {**TEXT_OR_NULL, "description": "null: the lease is gone, or another project has it"},
            "project_id": TEXT,
            "user_id": TEXT,
            "reservation_id": {**TEXT_OR_NULL, "description": "null: it is of the lease as a whole, as the fee"},
            "month": {**_MONTH, "description": "of the statement that has it"},
            "category": one_of(ChargeCategory),
            "status": one_of(ChargeStatus),
            "sku": {**TEXT_OR_NULL, "description": "null: of the lease as a whole"},
            "from": ZULU,
            "to": ZULU,
            "resource_seconds": NUMBER,
            "unit_price": {**TEXT, "description": "of an hour, of a lease, or of a kilowatt-hour"},
            "factor": {**TEXT, "description": "exact, as a decimal number"},
            "amount": {
                **TEXT,
                "description": "unit_price × factor × resource_seconds / 3600, of energy × energy_wh / 1000, half to "
                "even",
            },
            "currency": TEXT,
            "price_list": {"type": ["integer", "null"], "description": "the version; null: there was none"},
            "region": TEXT,
            "corrects": {"type": ["integer", "null"], "description": "the id of the charge that it corrects"},
            "reason": {**TEXT_OR_NULL, "description": "of a correction"},
            "at": {**ZULU, "description": "when it was charged"},
            "energy_wh": {**COUNT_OR_NULL, "description": "watt-hours that hosts drew; null: not of category energy"},
            "energy_source": {"enum": [*map(str, EnergySource), None], "description": "how they are known"},
            "gco2": {**COUNT_OR_NULL, "description": "grams of CO2e; null: the site tells no carbon"},
            "carbon": {
                "enum": [*map(str, CarbonState), None],
                "description": "estimated: some hours have the mean of that hour in the days before; partial: some "
                "hours, or hosts, are not in it",
            },
        },
        example=_EXAMPLE,
    )
}
KEYS = tuple(_EXAMPLE)
"""The keys of a charge, in the order of the columns of its CSV."""


def index(call: Call) -> Answer:
    """List charges in the order of their ids."""
    asked = call.asked
    category = asked.one("category")
    question = ChargeQuestion(
        asked.page("id"),
        read_project(call),
        asked.one("lease_id"),
        None if (month := asked.one("month")) is None else read_month(month, "month"),
        None if category is None else ChargeCategory(category),
    )
    page = call.manager.charges.page(question)
    found: Json = {"charges": list(map(render_charge, page.items))}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def correct(call: Call) -> Answer:
    """Answer a charge that was wrong by another one."""
    body = call.read()
    key = key_of(body, call.caller, route="POST /v1/charges")
    # A request that was granted is not judged again.
    made = None if key is None else call.manager.charges.replay(key)
    if made is None:
        call.checked(body)
        request = CorrectionRequest(body["corrects"], _read_amount(body["amount"]), body["reason"])
        made = call.manager.charges.correct(request, key)
    headers = {"Idempotency-Replayed": "true"} if made.replayed else {}
    return Answer({"charge": render_charge(made.charge)}, status=201, headers=headers)


def read_project(call: Call, seen: str = "them") -> str | None:
    """Return the project that is asked for; None: all. Denied if what would be ``seen`` is not for the caller."""
    asked, own = call.asked, call.caller.project_id
    everybody = asked.one("all_projects", False)
    project_id = asked.one("project_id", own)
    for name, is_other in (("project_id", project_id != own), ("all_projects", everybody)):
        if is_other and not call.is_operator:
            raise Denied(
                f"{name} asks for others than the own project; only operators see {seen}; leave it out",
                at=query_field(name),
            )
    if everybody and asked.one("project_id") is not None:
        raise InvalidInput(
            "project_id and all_projects exclude each other; give one of them",
            code="invalid_query",
            at=query_field("project_id"),
        )
    return None if everybody else str(project_id)


def render_charge(charge: Charge) -> Json:
    """Return a charge as it is shown."""
    line = charge.line
    return {
        "id": charge.id,
        "lease_id": charge.lease_id,
        "lease_name": charge.lease_name,
        "project_id": charge.project_id,
        "user_id": charge.user_id,
        "reservation_id": line.reservation_id,
        "month": spell_month(charge.month),
        "category": str(line.category),
        "status": str(line.status),
        "sku": line.sku,
        "from": zulu(line.window.start),
        "to": zulu(line.window.end),
        "resource_seconds": line.resource_seconds,
        "unit_price": format_nano(line.unit_nano),
        "factor": format_factor(line.factor),
        "amount": format_nano(line.nano),
        "currency": charge.currency,
        "price_list": line.version,
        "region": charge.region,
        "corrects": charge.corrects,
        "reason": charge.reason,
        "at": zulu(charge.at),
        **_render_energy(line.energy),
    }


def _render_energy(energy: LineEnergy | None) -> Json:
    if energy is None:
        return dict.fromkeys(("energy_wh", "energy_source", "gco2", "carbon"))
    carbon = None if energy.carbon is None else str(energy.carbon)
    return {"energy_wh": energy.wh, "energy_source": str(energy.source), "gco2": energy.gco2, "carbon": carbon}


def read_month(text: str, name: str) -> date:
    """Return the first day of a month that a query names. InvalidInput."""
    month = parse_month(text)
    if month is None:
        raise InvalidInput(
            f"{name} is {text[:20]!r}; give a month such as 2030-04", code="invalid_query", at=query_field(name)
        )
    return month


def _read_amount(text: str) -> int:
    if not _AMOUNT.fullmatch(text):
        raise in_body("amount").invalid(text, _WANTED, "invalid_value")
    return int(Fraction(text) * NANO)


_SEEN = (
    option("project_id", Text(), "of this project (operators; others: the own one)"),
    option("all_projects", Flag(), "of all projects, for operators"),
)

PART = Part(
    "charges",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/charges",
            name="list_charges",
            summary="List what was charged",
            handler=index,
            rule=GET,
            caching=Caching.NONE,
            answers={
                200: an_object({"charges": a_list(ref("Charge")), "count": NUMBER, "links": LINKS}, optional=("count",))
            },
            parameters=(
                *paging(["id"]),
                *_SEEN,
                option("lease_id", Text(), "of this lease"),
                option("month", Text(), "in the statement of this month, such as 2030-04"),
                option("category", Choice(tuple(map(str, ChargeCategory))), "of this category"),
            ),
        ),
        Route(
            root=Root.V1,
            method="POST",
            path="/charges",
            name="correct_charge",
            summary="Answer a charge that was wrong by a correction",
            handler=correct,
            rule=CORRECT,
            body=Body(
                "ChargeCorrect",
                _CORRECTION,
                ({"corrects": 81, "amount": "-12.50", "reason": "the hosts were slow on 2 April"},),
            ),
            answers={201: an_object({"charge": ref("Charge")})},
            errors=(404, 409),
            parameters=(IDEMPOTENCY_KEY,),
        ),
    ),
    rules=(GET, CORRECT),
    components=COMPONENTS,
)
