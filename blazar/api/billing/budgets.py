# SPDX-License-Identifier: Apache-2.0
"""``/v1/budgets``, from version 1.1 on: what a project may have in a period, and what of it is left."""

from __future__ import annotations

from blazar.api.billing.charges import read_project
from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import DayOrDate, Flag, Text
from blazar.api.http.routes import READER, Caching, Part, Root, Route, Rule
from blazar.api.http.shapes import LINKS, TEXT, TEXT_OR_NULL, ZULU, Json, a_list, an_object, one_of, ref
from blazar.model.base.clock import zulu
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.billing.budgets import BudgetQuestion, BudgetSource, BudgetUnit, ProjectBudget

GET = Rule("blazar:budgets:get", READER, "See the budgets of the own project, operators: those of all.")

_PERIOD = an_object({"start": ZULU, "end": ZULU})
_EXAMPLE: Json = {
    "project_id": "71bb40c6a5b94e0f8f2f0a3d1c9e7b55",
    "measure": "host",
    "unit": "hours",
    "period": {"start": "2030-04-01T00:00:00Z", "end": "2030-05-01T00:00:00Z"},
    "limit": "1000",
    "used": "412.5",
    "held": "96",
    "left": "491.5",
    "source": "configuration",
    "limit_name": "max_resource_hours",
}
COMPONENTS: Json = {
    "Budget": an_object(
        {
            "project_id": TEXT,
            "measure": {
                **TEXT_OR_NULL,
                "description": "what is counted, such as host, or a currency; null: an external service counts",
            },
            "unit": {**one_of(BudgetUnit), "description": "of the numbers: hours of the measure, or money"},
            "period": {
                "anyOf": [_PERIOD, {"type": "null"}],
                "description": "if it is any span of some days, the fullest one",
            },
            "limit": {**TEXT_OR_NULL, "description": "a decimal number, as the next three; null: it is not known"},
            "used": {**TEXT_OR_NULL, "description": "what leases had by now"},
            "held": {**TEXT_OR_NULL, "description": "what is booked for the rest of the period"},
            "left": {**TEXT_OR_NULL, "description": "what can still be booked"},
            "source": {**one_of(BudgetSource), "description": "who sets the limit"},
            "limit_name": {**TEXT_OR_NULL, "description": "as refusals name it"},
        },
        example=_EXAMPLE,
    ),
}


def index(call: Call) -> Answer:
    """List the budgets of a project, or of all."""
    asked, project_id = call.asked, read_project(call, "their budgets")
    if asked.one("marker") is not None and project_id is not None:
        raise InvalidInput(
            "marker goes on with a list of all projects; give all_projects, too, or leave it out",
            code="invalid_query",
            at=query_field("marker"),
        )
    question = BudgetQuestion(asked.page("project_id"), project_id, asked.one("at"))
    page = call.manager.budgets.page(question)
    return link_pages({"budgets": list(map(render_budget, page.items))}, page.following)


def render_budget(budget: ProjectBudget) -> Json:
    """Return a budget as it is shown: what was taken is rounded up, and what is left down."""
    window = budget.window
    return {
        "project_id": budget.project_id,
        "measure": budget.measure,
        "unit": str(budget.unit),
        "period": None if window is None else {"start": zulu(window.start), "end": zulu(window.end)},
        "limit": budget.spell(budget.limit),
        "used": budget.spell(budget.used, up=True),
        "held": budget.spell(budget.held, up=True),
        "left": budget.spell(budget.left),
        "source": str(budget.source),
        "limit_name": budget.limit_name,
    }


_PAGING = tuple(one for one in paging(["project_id"]) if one.name in ("limit", "marker"))

PART = Part(
    "budgets",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/budgets",
            name="list_budgets",
            summary="List what a project may have in a period, and what of it is left",
            handler=index,
            rule=GET,
            caching=Caching.NONE,
            answers={200: an_object({"budgets": a_list(ref("Budget")), "links": LINKS})},
            errors=(503,),
            parameters=(
                option("project_id", Text(), "those of this project (operators; others: the own one)"),
                option("all_projects", Flag(), "those of all projects with leases in these periods, for operators"),
                option("at", DayOrDate(), "of the periods in which this lies, by default now"),
                *_PAGING,
            ),
        ),
    ),
    rules=(GET,),
    components=COMPONENTS,
)
