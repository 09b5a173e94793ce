# SPDX-License-Identifier: Apache-2.0
"""What the reports of a period have in common: their head, in the document of the API and in answers."""

from __future__ import annotations

from collections.abc import Sequence

from blazar.api.http.shapes import TEXT, ZULU, Json, a_list, an_object, one_of, ref
from blazar.model.base.clock import zulu
from blazar.model.reports.capacity import CapacityReport
from blazar.model.reports.demand import DemandReport
from blazar.model.reports.periods import ReportStep
from blazar.model.reports.usage import MOST_ROWS, UsageReport


def show_report(report: UsageReport | CapacityReport | DemandReport, rows: Sequence[Json], **more: object) -> Json:
    """Return a report with these rows as JSON; ``more`` stands before them."""
    return {
        "from": zulu(report.window.start),
        "to": zulu(report.window.end),
        "time_zone": report.time_zone,
        "step": str(report.step),
        "computed_through": zulu(report.computed_through),
        "unit": "seconds",
        **more,
        "rows": list(rows),
    }


def describe_report(row: str, example: Json, *, through: str = "until when it says what was", **more: Json) -> Json:
    """Return the schema of a report, whose rows are the component ``row``; ``more`` stands before them."""
    return an_object(
        {
            "from": ZULU,
            "to": ZULU,
            "time_zone": {**TEXT, "description": "of its days, weeks and months"},
            "step": one_of(ReportStep),
            "computed_through": {**ZULU, "description": through},
            "unit": {"const": "seconds"},
            **more,
            "rows": {**a_list(ref(row)), "description": f"by time and by group, at most {MOST_ROWS}"},
        },
        example=example,
    )


def show_example(row: Json, *, computed_through: str = "2030-05-01T00:00:00Z", **more: object) -> Json:
    """Return a report of April 2030 with one row, for the document of the API."""
    return {
        "from": "2030-04-01T00:00:00Z",
        "to": "2030-05-01T00:00:00Z",
        "time_zone": "UTC",
        "step": "all",
        "computed_through": computed_through,
        "unit": "seconds",
        **more,
        "rows": [row],
    }
