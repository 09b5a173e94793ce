# SPDX-License-Identifier: Apache-2.0
"""``report``: sums of a period, of what was reserved and used, of what there was, of what was asked for and not had."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from blazarclient import times
from blazarclient.commands.base import OfLease, One, Rows, add_zone, let_before_now, local, now_in, plain, utc
from blazarclient.exception import CommandError
from blazarclient.library.transport import is_uuid

if TYPE_CHECKING:
    from blazarclient.library.reports import Day, Forecast, Report, Row

STEPS = ("day", "week", "month", "all")
MEASURES = ("reserved", "used", "idle", "unseen", "lost", "overrun", "returned")
STATES = ("registered", "promised", "cleaning", "free", "disabled", "maintenance", "failed")
OF_CLASSES = ("amounts", "refused_amounts")
"""Of each resource class, such as VCPU: programs get them, a table has no room for them."""
TIMES = frozenset(
    {*MEASURES, *STATES, *OF_CLASSES, "refused_seconds", "waited", "expected", "resource_seconds", "unknown_seconds"}
)
"""Keys of rows whose values are seconds, or have them by name."""
ENERGY = (
    *("computed_through", "resource_seconds", "energy_wh", "source", "unknown_seconds"),
    *("gco2", "embodied_gco2", "sci_mg", "estimated", "complete", "embodied_complete"),
)
IDS = {"project_id": "project", "user_id": "user"}
"""Columns with ids of Keystone, which may know a name for them."""

_MONTH = re.compile(r"(\d{4})-(\d{1,2})")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_HOUR = 3600
_FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a text begins with that a spreadsheet takes for a formula; the last two stand before one that it takes."""


class _ReportCommand(Rows):
    """A command whose answer is a report: in tables hours, for programs seconds, in CSV both."""

    groups: ClassVar[Sequence[str]] = ()
    by: ClassVar[str] = ""
    """What rows are told apart by, if nothing else is asked for."""
    measures: ClassVar[Sequence[str]] = ()
    need_sort_by_cliff = False
    nothing = "There is nothing to report of this period.\n"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        self._add_period(parser)
        parser.add_argument("--step", choices=STEPS, default="all", help="a row for each of these (default: all)")
        self._add_groups(parser)
        add_zone(parser)
        return parser

    def _add_period(self, parser: argparse.ArgumentParser) -> None:
        let_before_now(parser)
        parser.add_argument(
            "--month", metavar="<month>", help="this month, such as 2026-11 (default: the month so far)"
        )
        parser.add_argument(
            "--from", dest="start", metavar="<day>", help="where the period begins: a day of the site, or a time"
        )
        parser.add_argument("--to", dest="end", metavar="<day>", help="where it ends: before that day (default: now)")

    def _add_groups(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--by",
            metavar="<group>",
            action="append",
            choices=self.groups,
            help=f"a row for each of these, of {', '.join(self.groups)}; may be repeated (default: {self.by})",
        )
        if "property" in self.groups:
            parser.add_argument("--property", metavar="<name>", help="a row for each value of this property")

    def grouping(self, parsed_args: argparse.Namespace) -> tuple[list[str], str | None]:
        """Return what rows are told apart by, and the property of which each value has a row. CommandError."""
        prop = getattr(parsed_args, "property", None)
        by = list(parsed_args.by or ([] if prop else [self.by]))
        if prop and "property" not in by:
            by.append("property")
        if "property" in by and not prop:
            raise CommandError("--by property needs --property <name>", code=400)
        return by, prop

    def period(self, parsed_args: argparse.Namespace) -> tuple[Day | None, Day | None]:
        """Return where the period begins and ends, None where the service decides. CommandError; BadTime."""
        if parsed_args.month is None:
            return self._instant("--from", parsed_args.start, parsed_args), self._instant(
                "--to", parsed_args.end, parsed_args
            )
        if parsed_args.start or parsed_args.end:
            raise CommandError("Give --month, or --from and --to", code=400)
        found = _MONTH.fullmatch(parsed_args.month)
        year, month = (int(found[1]), int(found[2])) if found else (0, 0)
        if not (1 <= month <= 12 and 1970 < year < 9000):
            raise CommandError(f"--month is {parsed_args.month!r}; write a month such as 2026-11", code=400)
        following = (year + month // 12, month % 12 + 1)
        return f"{year:04}-{month:02}-01", f"{following[0]:04}-{following[1]:02}-01"

    def _instant(self, option: str, text: str | None, parsed_args: argparse.Namespace) -> Day | None:
        # A day is the site's, whose zone only the service knows.
        if text is None or _DAY.fullmatch(text):
            return text
        now = now_in(parsed_args)
        with times.named(option):
            return times.read_time(text, now=now, end=now)

    def told(self, report: Report, by: Sequence[str], parsed_args: argparse.Namespace) -> Any:
        """Return a report as columns and rows, and say to people which period it is of."""
        zone = times.zone(report.time_zone)
        if parsed_args.formatter == "table":
            until = report.computed_through
            if until is None or until >= report.end:
                so_far = ""
            elif until <= report.start:
                so_far = ", all of it still to come"
            else:
                so_far = f", as it was at {local(until, now_in(parsed_args).tzinfo or zone)}"
            self.tell(f"Hours from {_day_of(report.start, zone)} to {_day_of(report.end, zone)}{so_far}.")
        expected = (("from", "to") if report.step != "all" else (), [_key(group) for group in by], self.measures)
        return self.lay_out(report.rows, [key for keys in expected for key in keys], zone, parsed_args)

    def lay_out(
        self, rows: Sequence[Row], expected: Sequence[str], zone: Any, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterator[tuple[Any, ...]]]:
        """Return the columns and rows of a report; ``expected`` are the columns, also if there are no rows."""
        if self.structured(parsed_args):
            keys = _keys_of(rows, expected)
            return keys, (tuple(plain(row.get(key)) for key in keys) for row in rows)
        flat = [dict(_flatten(row)) for row in rows]
        keys = _keys_of(flat, expected)
        if parsed_args.formatter != "table":
            safe = _no_formula if parsed_args.formatter == "csv" else _as_it_is
            heads = [safe(head) for key in keys for head in _heads(key)]
            return heads, (tuple(safe(c) for key in keys for c in _for_program(key, row.get(key))) for row in flat)
        keys = [key for key in keys if key.partition(".")[0] not in OF_CLASSES and key != "to"]
        names = {key: self._names(IDS[key], flat, key) for key in keys if key in IDS}
        heads = [key.replace("_seconds", "_hours") for key in keys]
        return heads, (tuple(_for_people(key, row.get(key), names.get(key, {}), zone) for key in keys) for row in flat)

    def _names(self, noun: str, rows: Sequence[Row], key: str) -> Mapping[str, str]:
        """Return what Keystone calls the projects or users of rows, as far as it tells."""
        if not any(row.get(key) for row in rows):
            return {}
        # It needs keystoneauth, which the list of commands does not.
        from blazarclient.commands import identity

        session = self.get_client().session
        return identity.names_of(getattr(session, "session", session), noun)


class ReportUsage(_ReportCommand):
    """Report for whom resources were reserved, and what became of that

    Members see their project, operators all. In a table times are hours; JSON has seconds, and CSV both.
    """

    groups = ("project", "user", "resource_type", "kind", "region", "lease_kind", "property")
    by = "resource_type"
    measures = (*MEASURES, "leases", "energy_wh", "gco2")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", metavar="<project>", help="only what this project had, by id or name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        by, prop = self.grouping(parsed_args)
        project = self.of_keystone("project", parsed_args.project)
        report = self.library.reports.usage(
            *self.period(parsed_args), group_by=by, step=parsed_args.step, prop=prop, project_id=project
        )
        if report.lent_seconds and parsed_args.formatter == "table":
            self.tell(f"Leases lent hosts to preemptible servers for {report.lent_seconds / _HOUR:.1f} hours.")
        return self.told(report, by, parsed_args)


class ReportCapacity(_ReportCommand):
    """Report for how long resources were promised, free and out of use

    In a table times are hours; JSON has seconds, and CSV both.
    """

    groups = ("kind", "region", "property")
    by = "kind"
    measures = ("resources", *STATES, "utilization")

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        by, prop = self.grouping(parsed_args)
        report = self.library.reports.capacity(*self.period(parsed_args), group_by=by, step=parsed_args.step, prop=prop)
        return self.told(report, by, parsed_args)


class ReportDemand(_ReportCommand):
    """Report what was asked for and not had, and what was waited for

    In a table times are hours; JSON has seconds, and CSV both. Days are whole ones of the site.
    """

    groups = ("project", "resource_type", "requirement", "code")
    by = "resource_type"
    measures = ("refused", "refused_distinct", "refused_seconds", "waited", "granted", "timed_out")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", metavar="<project>", help="only what this project asked for, by id or name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        by, _ = self.grouping(parsed_args)
        project = self.of_keystone("project", parsed_args.project)
        report = self.library.reports.demand(
            *self.period(parsed_args), group_by=by, step=parsed_args.step, project_id=project
        )
        return self.told(report, by, parsed_args)


class ReportUnbooked(_ReportCommand):
    """Report what hosts drew that no lease had: idle ones, and those that sleep

    For operators, of 31 days at most. In a table times are hours; JSON has seconds, and CSV both.
    """

    measures = ("state", "resource_seconds", "energy_wh", "gco2", "source", "unknown_seconds")
    nothing = "Nothing is known of this period: it is still to come, or leases of it were purged.\n"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super(_ReportCommand, self).get_parser(prog_name)
        self._add_period(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        report = self.library.reports.usage(*self.period(parsed_args), unbooked=True)
        found = report.unbooked
        parts = {} if found is None else {"idle": found.idle, "asleep": found.asleep}
        rows = tuple({"state": state, **vars(part)} for state, part in parts.items())
        return self.told(replace(report, rows=rows), (), parsed_args)


class ReportForecast(_ReportCommand):
    """Report what is promised for the days to come, and what is expected

    What is expected is made of what was still booked late in the last weeks. In a table times are hours.
    """

    groups = ("kind", "region", "property")
    by = "kind"
    measures = ("registered", "promised", "expected.lower", "expected.median", "expected.upper", "because")

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super(_ReportCommand, self).get_parser(prog_name)
        parser.add_argument("--days", metavar="<n>", type=int, help="so many days from today on (default: 28)")
        self._add_groups(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        by, prop = self.grouping(parsed_args)
        forecast = self.library.reports.forecast(days=parsed_args.days, group_by=by, prop=prop)
        if parsed_args.formatter == "table":
            self.tell(_as_sentences(forecast))
        expected = ("day", *map(_key, by), *self.measures)
        if self.structured(parsed_args):
            expected = ("day", *map(_key, by), "registered", "promised", "expected", "because")
        return self.lay_out(forecast.rows, expected, times.zone(forecast.time_zone), parsed_args)


class LeaseEnergy(OfLease, One):
    """Show what a lease drew and emitted

    Of its hosts, or its share of them, as far as these are measured or it is said what they draw. A lease that is
    deleted is named by its id.
    """

    answers = ENERGY

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        lease = parsed_args.id if is_uuid(parsed_args.id) else self.library.leases.find(parsed_args.id)
        energy = self.library.reports.energy(lease)
        carbon = {} if energy.carbon is None else vars(energy.carbon)
        told = {**vars(energy), **carbon}
        return [ENERGY, tuple(self.cell(told.get(key), zone, parsed_args) for key in ENERGY)]


def _as_sentences(forecast: Forecast) -> str:
    """Say how a forecast is made, and how far it was off."""
    error = forecast.accuracy.get("mean_error")
    days = forecast.accuracy.get("days")
    off = "" if error is None else f" In the last {days} days it was off by {100 * error:.0f} % of all on average."
    return f"Hours. {forecast.method}{off}"


def _key(group: str) -> str:
    """Return where a row has what it is grouped by."""
    return f"{group}_id" if f"{group}_id" in IDS else group


def _keys_of(rows: Sequence[Row], expected: Sequence[str]) -> list[str]:
    """Return the keys of rows: the expected ones first, of those that a row has, if there are rows, then others."""
    found = dict.fromkeys(key for row in rows for key in row)
    return list(dict.fromkeys((*(key for key in expected if not rows or key in found), *found)))


def _flatten(row: Row) -> Iterator[tuple[str, Any]]:
    """Yield the values of a row, those of objects in it by names such as ``expected.median``."""
    for key, value in row.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{name}", inner) for name, inner in _flatten(value))
        elif not (value is None and key in TIMES):
            yield key, value


def _is_time(key: str) -> bool:
    return key.partition(".")[0] in TIMES


def _heads(key: str) -> tuple[str, ...]:
    """Return the columns of a key for programs, named as the service has them in CSV."""
    if not _is_time(key):
        return (key,)
    stem = key.removesuffix("_seconds")
    return (f"{stem}_seconds", f"{stem}_hours")


def _for_program(key: str, value: Any) -> tuple[Any, ...]:
    if not _is_time(key):
        return (utc(value) if isinstance(value, datetime) else "" if value is None else value,)
    return ("", "") if value is None else (value, f"{value / _HOUR:.2f}")


def _no_formula(cell: Any) -> Any:
    """Return a cell of CSV that no spreadsheet takes for a formula, as the service writes it."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def _as_it_is(cell: Any) -> Any:
    return cell


def _for_people(key: str, value: Any, names: Mapping[str, str], zone: Any) -> Any:
    """Return a value of a table: hours, days of the site, percents, names."""
    if value is None:
        return ""
    if _is_time(key):
        return round(value / _HOUR, 2)
    if key == "utilization":
        return f"{100 * value:.0f} %"
    if key == "from":
        return _day_of(datetime.fromisoformat(str(value).replace("Z", "+00:00")), zone)
    return names.get(str(value), value)


def _day_of(instant: datetime, zone: Any) -> str:
    """Return a day of the site, with a time if it is not its begin."""
    text = local(instant, zone)
    return text.partition(" ")[0] if text[10:16] == " 00:00" else text
