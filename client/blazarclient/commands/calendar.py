# SPDX-License-Identifier: Apache-2.0
"""``calendar``: what is free, promised and out of use, drawn in the terminal or as data."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from itertools import islice
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import Rows, add_zone, let_before_now, local, now_in, plain, utc
from blazarclient.exception import CommandError
from blazarclient.pager import page
from blazarclient.requirement_text import add_requirement, read_requirements

if TYPE_CHECKING:
    from blazarclient.calendar_text import Glyphs
    from blazarclient.library import CalendarRow

USUAL_LIMIT = 100
PIPED_WIDTH = 100
"""Columns where no terminal says how many it has."""

NOW = "now"
_BACKWARDS = "The range ends before it begins: --from is {}, --to is {}"
_REGION = "region"
_COLUMNS = ("resource", "kind", "start", "end", "name", "status", "lease_id", "project_id", "code")


class ShowCalendar(Rows):
    """Show what is free, promised and out of use, by resource and over time

    As a table it is a chart with a line for each resource. CSV and value have a line for each period in which a
    resource is not free; JSON and YAML have all resources with these periods.
    """

    resource = "calendar"
    need_sort_by_cliff = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_range(parser)
        parser.add_argument(
            "--resource-type", metavar="<type>", help="resources that serve this type (default: physical:host)"
        )
        add_requirement(parser, "resources")
        parser.add_argument(
            "--resource", metavar="<name>", action="append", default=[], help="this resource only (may be repeated)"
        )
        parser.add_argument("--mine", action="store_true", help="only resources of which your project has a part")
        parser.add_argument(
            "--property",
            metavar="<name>",
            action="append",
            default=[],
            help="property to show beside the resource (may be repeated)",
        )
        parser.add_argument(
            "--limit", metavar="<n>", type=int, default=USUAL_LIMIT, help=f"most resources (default: {USUAL_LIMIT})"
        )
        parser.add_argument(
            "--width", metavar="<columns>", type=int, help="columns of the chart (default: the terminal's)"
        )
        parser.add_argument("--no-color", action="store_true", help="draw without colors (Env: NO_COLOR)")
        parser.add_argument(
            "--no-pager",
            action="store_false",
            dest="pager",
            help="print a chart longer than the terminal at once, not by PAGER (default: less)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for the rows."""
        if parsed_args.limit < 1:
            raise CommandError("--limit is at least 1", code=400)
        self.now, self.start, self.end = in_range(parsed_args)
        rows = self._rows(parsed_args)
        if parsed_args.formatter == "table":
            return (), rows
        if self.structured(parsed_args):
            columns = ("id", "name", "type", "properties", "blocks")
            return columns, [tuple(plain(getattr(row, column)) for column in columns) for row in rows]
        return _COLUMNS, list(_periods(rows, self.now.tzinfo or timezone.utc, parsed_args.formatter == "csv"))

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Sequence[str], data: Any) -> int:
        """Draw the chart, or write the data in the format that was asked for."""
        if parsed_args.formatter != "table":
            return int(super().produce_output(parsed_args, column_names, data) or 0)
        # Not needed for the list of commands.
        from blazarclient.calendar_text import chart

        out = self.app.stdout
        if not data:
            self.tell("There are no such resources.")
            return 0
        lines = chart(
            data,
            start=self.start,
            end=self.end,
            now=self.now,
            width=parsed_args.width or width(),
            properties=told_apart(data, parsed_args.property),
            color=colors(out, parsed_args, os.environ),
            glyphs=glyphs_for(encoding_of(out, os.environ)),
        )
        page(list(lines), out, os.environ, wanted=parsed_args.pager)
        return 0

    def _rows(self, parsed_args: argparse.Namespace) -> list[CalendarRow]:
        filters = {
            "resource_type": parsed_args.resource_type,
            "requirement": read_requirements(parsed_args.requirement),
            "resource": f"in:{','.join(parsed_args.resource)}" if parsed_args.resource else None,
            "occupied_by": "me" if parsed_args.mine else None,
            # One more tells whether there are more.
            "limit": min(parsed_args.limit + 1, 1000),
        }
        asked = {key: value for key, value in filters.items() if value is not None}
        found = self.library.calendar(start=self.start, end=self.end, **asked)
        rows = list(islice(found, parsed_args.limit + 1))
        if len(rows) > parsed_args.limit:
            self.tell(f"There are more than {parsed_args.limit}; --limit shows more, --requirement fewer.")
        return rows[: parsed_args.limit]


def add_range(parser: argparse.ArgumentParser) -> None:
    """Add the options of a range of time."""
    let_before_now(parser)
    parser.add_argument(
        "--from", dest="start", metavar="<time>", default=NOW, help="first instant, -2d: the past (default: now)"
    )
    parser.add_argument(
        "--to", dest="end", metavar="<time>", help="last instant; +7d counts from the first (default: +14d)"
    )
    add_zone(parser)


def in_range(parsed_args: argparse.Namespace) -> tuple[datetime, datetime, datetime]:
    """Return now, and the first and the last instant of a range, in the user's zone. BadTime; CommandError."""
    now = now_in(parsed_args)
    with times.named("--from"):
        start = times.read_time(parsed_args.start, now=now, end=now).astimezone(now.tzinfo)
    text = "+14d" if parsed_args.end is None else parsed_args.end
    with times.named("--to"):
        end = times.read_time(text, now=now, start=start, end=now).astimezone(now.tzinfo)
    if times.utc(end) <= times.utc(start):
        raise CommandError(
            _BACKWARDS.format(*(local(each, times.zone(parsed_args.timezone)) for each in (start, end))), code=400
        )
    return now, start, end


def colors(out: Any, parsed_args: argparse.Namespace, environment: Mapping[str, str]) -> bool:
    """Return whether to write colors: to a terminal that knows them, unless somebody says no."""
    if parsed_args.no_color or environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return bool(getattr(out, "isatty", lambda: False)())


def glyphs_for(encoding: str | None) -> Glyphs:
    """Return characters that an encoding has."""
    from blazarclient.calendar_text import PLAIN, Glyphs

    try:
        "█▓▒░×·▁▇…".encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return Glyphs()


def encoding_of(out: Any, environment: Mapping[str, str]) -> str | None:
    """Return in which encoding a reader has the output.

    Python writes UTF-8 also where the locale is C, of which a terminal may show question marks.
    """
    for name in ("PYTHONUTF8", "PYTHONIOENCODING"):
        if environment.get(name):
            return getattr(out, "encoding", None)
    locale = next((found for name in ("LC_ALL", "LC_CTYPE", "LANG") if (found := environment.get(name))), "")
    return "ascii" if locale in ("C", "POSIX") else getattr(out, "encoding", None)


def width() -> int:
    """Return the columns of the terminal."""
    return shutil.get_terminal_size((PIPED_WIDTH, 24)).columns


def told_apart(rows: Iterable[CalendarRow], properties: Sequence[str]) -> Sequence[str]:
    """Return the properties to show, the region among them if there are several: hosts of two may have one name."""
    regions = {row.properties.get(_REGION) for row in rows}
    return properties if len(regions) < 2 or _REGION in properties else (*properties, _REGION)


def _periods(rows: Iterable[CalendarRow], zone: tzinfo, for_program: bool) -> Iterator[tuple[Any, ...]]:
    def told(value: datetime | None) -> str:
        if value is None:
            return ""
        return (utc(value) or "") if for_program else local(value, zone)

    for row in rows:
        for block in row.blocks:
            rest = (getattr(block, column) or "" for column in _COLUMNS[4:])
            yield (row.name or row.id, block.kind, told(block.start), told(block.end), *rest)
