# SPDX-License-Identifier: Apache-2.0
"""``capacity``: how many resources are free over time, by a property."""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import Rows, plain
from blazarclient.commands.calendar import NOW, add_range, encoding_of, glyphs_for, in_range, width
from blazarclient.requirement_text import add_requirement, read_requirements

if TYPE_CHECKING:
    from blazarclient.library.supply import Series

POINTS = 28
"""Steps into which the range is cut: two a day in two weeks; twice as many where a terminal is wide."""
WIDE = 110
AN_INSTANT = timedelta(minutes=1)
"""The least that the service counts."""


class ShowCapacity(Rows):
    """Show how many resources are free over time

    In a table a row has a mark for each step of the range: the higher, the more are free at its busiest instant.
    """

    resource = "capacity"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_range(parser)
        parser.add_argument(
            "--resource-type", metavar="<type>", help="resources that serve this type (default: physical:host)"
        )
        add_requirement(parser, "resources")
        parser.add_argument(
            "--group-by",
            metavar="<property>",
            action="append",
            default=[],
            help="a row for each value of it (may be given twice)",
        )
        parser.add_argument(
            "--measure", metavar="<class>", help="what is counted, such as VCPU (default: whole resources)"
        )
        parser.add_argument("--step", metavar="<duration>", help="length of a step, such as 6h (default: by width)")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[Any]]:
        """Ask for it."""
        _, start, end = in_range(parsed_args)
        filters = {
            "resource_type": parsed_args.resource_type,
            "requirement": read_requirements(parsed_args.requirement),
            "measure": parsed_args.measure,
        }
        # Whole minutes, of which there are not more than points.
        points = 2 * POINTS if width() >= WIDE else POINTS
        minutes = math.ceil((times.utc(end) - times.utc(start)).total_seconds() / 60 / points)
        given = {key: value for key, value in filters.items() if value is not None}
        told = self.library.capacity(
            start=start, end=end, step=parsed_args.step or f"{minutes}m", group_by=parsed_args.group_by, **given
        )
        if self.structured(parsed_args):
            keys = ("group", "total", "free", "promised", "out_of_use")
            return keys, [tuple(plain(getattr(each, key)) for key in keys) for each in told.series]
        groups = tuple(parsed_args.group_by)
        # A step of the series has the least of many hours, which is not what is free at its beginning.
        first = self.library.capacity(
            start=start, end=start + AN_INSTANT, step="1m", group_by=parsed_args.group_by, **given
        )
        free = {_key(each.group): each.free[0] for each in first.series if each.free}
        levels = levels_for(encoding_of(self.app.stdout, os.environ))
        return (
            (*groups, "total", "free now" if parsed_args.start == NOW else "free then", "least", "most", "over time"),
            [
                (*_values(each.group, groups), *_counts(each, free.get(_key(each.group))), marks(each, levels))
                for each in told.series
            ],
        )


def levels_for(encoding: str | None) -> str:
    """Return the marks for nothing and for eighths of the total, of those that an encoding has."""
    shared = glyphs_for(encoding).shared
    return "_" + shared + ("8" if shared.isascii() else "█")


def marks(series: Series, levels: str) -> str:
    """Return a mark for each point of a series: how much of the total is free."""
    found = []
    for free, total in zip(series.free, series.total, strict=True):
        # What is free at all is not shown as nothing, and what is not all is not shown as all.
        eighths = 0 if not total or not free else max(1, 8 * free // total)
        found.append(levels[min(eighths, 8)])
    return "".join(found)


def _values(group: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple("-" if group.get(name) is None else group[name] for name in names)


def _key(group: Mapping[str, Any]) -> str:
    return json.dumps(plain(group), sort_keys=True)


def _counts(series: Series, first: int | None) -> tuple[Any, ...]:
    if not series.free:
        return "", "", "", ""
    return max(series.total), "" if first is None else first, min(series.free), max(series.free)
