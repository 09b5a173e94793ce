# SPDX-License-Identifier: Apache-2.0
"""Rows as CSV (RFC 4180), for spreadsheets and scripts: a head, a line for each row, hours beside seconds."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice
from operator import itemgetter
from zoneinfo import ZoneInfo

from flask import Response, request

from blazar.api.http.answers import JSON, prefers
from blazar.api.http.context import Call
from blazar.api.http.queries import option
from blazar.api.http.readers import Choice
from blazar.api.http.shapes import Json
from blazar.model.base.values import dataclass

TYPE = "text/csv"
_CONTENT_TYPE = f"{TYPE}; charset=utf-8; header=present"
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a text begins with that a spreadsheet takes for a formula; the last two stand before one that it takes."""
_QUOTE = '"'
_HOUR = 3600
_PIECE = 500
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
    writer.writerows([cell for column in columns for cell in column.cells(row)] for row in rows)
    return text.getvalue()


def stream_csv(name: str, keys: Sequence[str], rows: Iterable[Mapping[str, str]]) -> Response:
    """Return rows as a file of this name that is sent while they are read; ``spell_cell`` has spelled their cells.

    Long bills have millions of cells, most of which many rows share: these need not be spelled for each row. A row has
    all keys, of which there are two at least.
    """
    return Response(_spell_lines(keys, rows), headers=_name_file(name))


def _spell_lines(keys: Sequence[str], rows: Iterable[Mapping[str, str]]) -> Iterator[str]:
    yield f"{','.join(map(spell_cell, keys))}\r\n"
    left, take = iter(rows), itemgetter(*keys)
    while piece := list(islice(left, _PIECE)):
        yield "".join([f"{','.join(take(row))}\r\n" for row in piece])


def _name_file(name: str) -> dict[str, str]:
    return {"Content-Type": _CONTENT_TYPE, "Content-Disposition": f'attachment; filename="{name}.csv"'}


def answer_csv(name: str, columns: Sequence[Column], rows: Iterable[Mapping[str, object]]) -> Response:
    """Return rows as a file of this name, which a browser saves."""
    return Response(render_csv(columns, rows), headers=_name_file(name))


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


def spell_cell(value: object) -> str:
    """Return a cell as ``render_csv`` writes it, in quotes where it needs them."""
    text = _cell(value)
    if type(value) is Decimal:
        return text
    # Four looks for one sign each are faster than one by a pattern.
    if "," in text or '"' in text or "\n" in text or "\r" in text:
        return f'"{text.replace(_QUOTE, _QUOTE * 2)}"'
    return text


def _cell(value: object) -> str:
    # What most cells are.
    if value is None:
        return ""
    if type(value) is str:
        return f"'{value}" if value.startswith(_FORMULAS) else value
    if type(value) is Decimal:
        return f"{value:f}"
    match value:
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
