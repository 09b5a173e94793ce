# SPDX-License-Identifier: Apache-2.0
"""``/v1/reports``, from version 1.1 on: sums of a period. All have the period, and the length of its parts."""

from __future__ import annotations

from functools import partial

from blazar.api.http.csv_text import FORMAT
from blazar.api.http.queries import option
from blazar.api.http.readers import Choice, DayOrDate, Flag, Names, Number, Text
from blazar.api.http.routes import Parameter, Part, Root, Route
from blazar.api.http.shapes import LINKS, an_object, ref
from blazar.api.reports import capacity, demand, energy, forecast, usage
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import MOST_GROUPS, UsageGroup

PERIOD: tuple[Parameter, ...] = (
    option("from", DayOrDate(), "the begin, by default that of the month in which the end lies"),
    option("to", DayOrDate(), "the end, by default now"),
)
STEP = option(
    "step", Choice(tuple(map(str, ReportStep))), "the length of the parts of the period, by default all of it"
)

_USAGE = (
    *PERIOD,
    option("group_by", Names(tuple(map(str, UsageGroup))), f"what rows are told apart by, {MOST_GROUPS} at most"),
    STEP,
    option("property", Text(), "the property of resources that the group property stands for"),
    option("project_id", Text(), "only what this project had; by default the own one, for operators all"),
    option("unbooked", Flag(), "for operators, of 31 days at most: also what hosts drew that no lease had"),
    FORMAT,
)
_CAPACITY = (
    option("group_by", Names(capacity.GROUPS), "what rows are told apart by, by default the kind of resource"),
    option("property", Text(), "the property of resources that the group property stands for"),
)
_DEMAND = (
    *PERIOD,
    STEP,
    option("group_by", Names(demand.GROUPS), "what rows are told apart by, by default the type of resource"),
    option("project_id", Text(), "only what this project asked for; by default the own one, for operators all"),
    FORMAT,
)
_DAYS = option(
    "days",
    Number(least=1, most=forecast.MOST_DAYS),
    f"how many days from today on, by default {forecast.USUAL_DAYS}",
)

_get = partial(Route, root=Root.V1, method="GET")

PART = Part(
    "reports",
    routes=(
        _get(
            path="/reports/usage",
            name="show_usage",
            summary="Report for whom resources were reserved, and what became of that",
            handler=usage.usage,
            rule=usage.GET,
            answers={200: an_object({"report": ref("UsageReport"), "links": LINKS})},
            parameters=_USAGE,
            as_csv=True,
        ),
        _get(
            path="/reports/capacity",
            name="show_used_capacity",
            summary="Report in which states the resources were",
            handler=capacity.capacity,
            rule=usage.GET,
            answers={200: an_object({"report": ref("CapacityReport"), "links": LINKS})},
            parameters=(*PERIOD, STEP, *_CAPACITY, FORMAT),
            as_csv=True,
        ),
        _get(
            path="/reports/demand",
            name="show_demand",
            summary="Report what was asked for and not granted",
            handler=demand.demand,
            rule=usage.GET,
            answers={200: an_object({"report": ref("DemandReport"), "links": LINKS})},
            parameters=_DEMAND,
            as_csv=True,
        ),
        _get(
            path="/reports/forecast",
            name="show_forecast",
            summary="Show what is promised and expected of the days to come",
            handler=forecast.forecast,
            rule=usage.GET,
            answers={200: an_object({"forecast": ref("Forecast"), "links": LINKS})},
            parameters=(_DAYS, *_CAPACITY, FORMAT),
            as_csv=True,
        ),
        energy.ROUTE,
    ),
    rules=(usage.GET, energy.GET),
    views=(usage.USERS,),
    components={
        **usage.COMPONENTS,
        **capacity.COMPONENTS,
        **demand.COMPONENTS,
        **forecast.COMPONENTS,
        **energy.COMPONENTS,
    },
)
