# SPDX-License-Identifier: Apache-2.0
"""A report as CSV (RFC 4180), for spreadsheets and scripts: its head, a line for each row, hours beside seconds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

from flask import Response, request

from blazar.api.http.answers import JSON, prefers
from blazar.api.http.context import Call
from blazar.api.http.queries import option
from blazar.api.http.readers import Choice
from blazar.api.http.shapes import Json

TYPE = "text/csv"
_CONTENT_TYPE = f"{TYPE}; charset=utf-8; header=present"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a text begins with that a spreadsheet takes for a formula; the last two stand before one that it takes."""
_HOUR = 3600
_HUNDREDTH = Decimal("0.01")
FORMAT = option("format", Choice(("json", "csv")), f"by default as Accept asks for: {JSON} or {TYPE}")
"""The parameter of what may be CSV; rows that have it are ``as_csv``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: the key of the rows that it shows. A time is in whole seconds, and has one more column, in hours."""

    key: str
    is_time: bool = False

    @property
    def heads(self) -> tuple[str, ...]:
        """The names of its columns; those of a time have their units."""
        return (f"{self.key}_seconds", f"{self.key}_hours") if self.is_time else (self.key,)

    def cells(self, row: Mapping[str, object]) -> tuple[str, ...]:
        """Return what it shows of a row; what a row does not have is empty."""
        value = row.get(self.key)
        if not self.is_time:
            return (_cell(value),)
        return (_cell(value), _hours(value) if isinstance(value, int) else "")


def render_csv(columns: Sequence[Column], rows: Iterable[Mapping[str, object]]) -> str:
    """Return rows as CSV with a head: texts, numbers, dates as the rows have them, hours with two decimals.

    Names are texts of users: one that a spreadsheet would take for a formula gets an apostrophe in front.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([_harmless(head) for column in columns for head in column.heads])
    for row in rows:
        writer.writerow([cell for column in columns for cell in column.cells(row)])
    return text.getvalue()


def answer_csv(name: str, columns: Sequence[Column], rows: Iterable[Mapping[str, object]]) -> Response:
    """Return rows as a file of this name, which a browser saves."""
    headers = {"Content-Type": _CONTENT_TYPE, "Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(render_csv(columns, rows), headers=headers)


def answer_report(
    call: Call, name: str, report: Json, groups: Sequence[str], measures: Sequence[Column]
) -> Json | Response:
    """Return a report as JSON, or as CSV if the caller wants that.

    ``groups`` are the keys of its rows by which they are told apart; objects in rows become columns such as ``a.b``.
    """
    if not wants_csv(call.asked.one("format")):
        return {"report": report, "links": []}
    times = () if report["step"] == "all" else (Column("from"), Column("to"))
    rows = [flatten_row(row) for row in report["rows"]]
    columns = [*times, *map(Column, groups), *(column for measure in measures for column in _spread(measure, rows))]
    days = [_day(report[key], ZoneInfo(report["time_zone"])) for key in ("from", "to")]
    return answer_csv("-".join(("blazar", name, *days)), columns, rows)


def flatten_row(row: Json, before: str = "") -> Json:
    """Return a row with the values of the objects in it by names such as ``a.b``."""
    found: Json = {}
    for key, value in row.items():
        found |= flatten_row(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return found


def _spread(column: Column, rows: Iterable[Json]) -> Sequence[Column]:
    """Return a column; of what is an object in some row, one for each of its values."""
    inner = dict.fromkeys(key for row in rows for key in row if key.startswith(f"{column.key}."))
    return [Column(key, column.is_time) for key in sorted(inner)] or [column]


def _day(instant: str, zone: ZoneInfo) -> str:
    return datetime.fromisoformat(instant).astimezone(zone).date().isoformat()


def wants_csv(format_asked: str | None) -> bool:
    """Return whether the caller wants CSV: by the parameter ``format``, or else rather than JSON by ``Accept``."""
    if format_asked is not None:
        return format_asked == "csv"
    return prefers(request, TYPE)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case int() | float():
            # A number below zero is one, and no formula.
            return str(value)
        case _:
            return _harmless(str(value))


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULAS) else text


def _hours(seconds: int) -> str:
    return str((Decimal(seconds) / _HOUR).quantize(_HUNDREDTH, ROUND_HALF_UP))
