# SPDX-License-Identifier: Apache-2.0
"""``maintenance``: periods in which an operator books hosts out, over existing leases."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, check_columns, now_in, utc
from blazarclient.exception import CommandError
from blazarclient.requirement_text import add_requirement, read_requirements

if TYPE_CHECKING:
    from blazarclient.library.values import AffectedLease, Maintenance, MaintenanceImpact

COLUMNS = ("id", "name", "status", "start_date", "end_date", "hosts")
KEYS = (
    *("id", "name", "reason", "status", "start_date", "end_date", "hosts", "requirement", "pending"),
    *("active", "disable_service"),
    *("trouble", "created_at", "updated_at", "leases"),
)
OF_CHANGE = ("impact_id", "start_date", "end_date", "summary", "leases")
IMPACT = ("lease_id", "name", "project_id", "status", "start_date", "outcome", "moves", "openings", "note")


def _add_window(parser: argparse.ArgumentParser) -> None:
    """Add what says which hosts are booked out, and when."""
    parser.add_argument("name", metavar="<name>", help="name of the window")
    parser.add_argument("--start", metavar="<time>", default="now", help="when it begins (default: now)")
    parser.add_argument("--end", metavar="<time>", required=True, help="when it ends: a time, or +12h after the start")
    parser.add_argument(
        "--host",
        metavar="<host>",
        dest="hosts",
        action="append",
        default=[],
        help="name or id; may be repeated",
    )
    add_requirement(parser, "hosts")
    parser.add_argument(
        "--pending",
        choices=("move", "leave"),
        help="move (default): leases that have not started get other hosts; leave: they do not",
    )
    parser.add_argument(
        "--active",
        choices=("list", "migrate"),
        help="list (default): leases that have started are listed, and stay; migrate: their servers are moved live to "
        "other hosts, where that is possible",
    )
    add_zone(parser)


def _start(text: str, now: datetime) -> tuple[str, datetime]:
    """Return a start as the service takes it, and as a time. BadTime."""
    with times.named("--start"):
        start = times.read_time(text, now=now)
    return ("now" if text.strip().lower() == "now" else str(utc(start))), start


def _end(text: str, now: datetime, start: datetime) -> str:
    """Return an end as the service takes it. BadTime."""
    with times.named("--end"):
        if text.strip().startswith("+"):
            return f"+{times.read_duration(text.strip()[1:]).iso()}"
        return str(utc(times.read_time(text, now=now, start=start)))


def _moves(lease: AffectedLease, names: dict[str, str]) -> str:
    """Return where a lease goes, by the names of hosts as far as they are known."""
    ways = ((each.from_host, each.to_host) for each in lease.moves)
    return ", ".join(f"{names.get(one, one)} to {names.get(other, other)}" for one, other in ways)


class _Window(LibraryCommand):
    """A command about a window that is to be."""

    def given(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return what options say of the window."""
        if parsed_args.hosts and parsed_args.requirement:
            raise CommandError("--host and --requirement are both given; give one of them", code=400)
        if not parsed_args.hosts and not parsed_args.requirement:
            raise CommandError("Say which hosts: with --host, or with --requirement", code=400)
        now = now_in(parsed_args)
        start, begin = _start(parsed_args.start, now)
        return {
            "start_date": start,
            "end_date": _end(parsed_args.end, now, begin),
            "hosts": [str(self.library.hosts.find(text).id) for text in parsed_args.hosts],
            "requirement": read_requirements(parsed_args.requirement),
            "pending": parsed_args.pending,
            "active": parsed_args.active,
        }


def _lines(
    command: LibraryCommand,
    leases: Sequence[AffectedLease],
    window: Maintenance,
    zone: tzinfo,
    parsed_args: argparse.Namespace,
) -> str:
    """Return a line about each lease: where it goes, and whether it has."""
    names = {each.id: each.name for each in window.hosts}
    lines = []
    for lease in leases:
        start = command.cell(lease.start_date, zone, parsed_args)
        left = "" if lease.done else "(not yet)"
        note = f"({lease.note})" if lease.note else ""
        parts = (lease.lease_id, lease.name, start, lease.outcome, _moves(lease, names), left, note)
        lines.append(" ".join(part for part in parts if part))
    return "\n".join(lines)


class _OneWindow(One):
    """A command whose answer is a window."""

    answers = KEYS

    def told(self, window: Maintenance, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return the keys and values of a window."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return [KEYS, tuple(self._value(window, key, zone, parsed_args) for key in KEYS)]

    def _value(self, window: Maintenance, key: str, zone: tzinfo, parsed_args: argparse.Namespace) -> Any:
        if self.structured(parsed_args) or key not in ("hosts", "leases"):
            return self.cell(getattr(window, key), zone, parsed_args)
        if key == "hosts":
            return ", ".join(each.name or each.id for each in window.hosts)
        return _lines(self, window.leases, window, zone, parsed_args)


class ImpactOfMaintenance(Rows, _Window):
    """Show what a maintenance window would do to leases

    Nothing is booked. Of a window that does not start now it says with which start and id to open just that one.
    """

    answers = IMPACT

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_window(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        impact = self.library.maintenances.impact(parsed_args.name, **self.given(parsed_args))
        words = [f"{count} {name.replace('_', ' ')}" for name, count in impact.summary.items() if count]
        count = len(impact.leases)
        found = f"{count} {'lease' if count == 1 else 'leases'} ({', '.join(words) or 'none'})"
        # What starts now is another window in the next second, with another impact.
        again = f"; open it with --start {utc(impact.start_date)} --impact-id {impact.id}"
        self.tell(found if parsed_args.start.strip().lower() == "now" else found + again)

        def row(lease: AffectedLease) -> tuple[Any, ...]:
            if self.structured(parsed_args):
                return tuple(self.cell(getattr(lease, key), zone, parsed_args) for key in IMPACT)
            openings = ", ".join(str(self.cell(each, zone, parsed_args)) for each in lease.openings)
            told = {"moves": _moves(lease, {}), "openings": openings}
            return tuple(told.get(key, self.cell(getattr(lease, key), zone, parsed_args)) for key in IMPACT)

        return IMPACT, [row(lease) for lease in impact.leases]


class CreateMaintenance(_OneWindow, _Window):
    """Book hosts out for a period, over existing leases

    Leases that have not started get other hosts at the same time, if there are any; see maintenance impact.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_window(parser)
        parser.add_argument("--reason", metavar="<text>", help="why; operators see it in the calendar")
        parser.add_argument(
            "--disable-service", action="store_true", help="let Nova place nothing on the hosts during the window"
        )
        parser.add_argument("--impact-id", metavar="<id>", help="open it only if this is still what it does")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Open it."""
        check_columns(parsed_args, KEYS)
        window = self.library.maintenances.create(
            parsed_args.name,
            **self.given(parsed_args),
            disable_service=parsed_args.disable_service,
            reason=parsed_args.reason,
            impact_id=parsed_args.impact_id,
        )
        return self.told(window, parsed_args)


class ListMaintenances(Rows):
    """List maintenance windows"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--status", metavar="<status>", help="only those in this state, such as ACTIVE")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        status = parsed_args.status.upper() if parsed_args.status else None

        def value(window: Maintenance, key: str) -> Any:
            if key == "hosts" and not self.structured(parsed_args):
                return ", ".join(each.name or each.id for each in window.hosts)
            return self.cell(getattr(window, key), zone, parsed_args)

        found = self.library.maintenances.list(status=status)
        return COLUMNS, (tuple(value(window, key) for key in COLUMNS) for window in found)


def _add_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="<window>", help="id or name of the window")


class ShowMaintenance(_OneWindow):
    """Show a maintenance window with the leases that it affects"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_id(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.told(self.library.maintenances.find(parsed_args.id), parsed_args)


class ChangeMaintenance(_OneWindow):
    """Change when a maintenance window is, or its name

    Once it has begun only the end can be changed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_id(parser)
        parser.add_argument("--name", metavar="<name>", help="new name")
        parser.add_argument("--start", metavar="<time>", help="new start")
        parser.add_argument("--end", metavar="<time>", help="new end: a time, or +12h after the start")
        parser.add_argument("--dry-run", action="store_true", help="only show what that would do to leases")
        parser.add_argument("--impact-id", metavar="<id>", help="change it only if this is still what that does")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change it."""
        check_columns(parsed_args, OF_CHANGE if parsed_args.dry_run else KEYS)
        now, changes = now_in(parsed_args), {"name": parsed_args.name} if parsed_args.name else {}
        maintenances = self.library.maintenances
        found = maintenances.find(parsed_args.id)
        begin = found.start_date
        if parsed_args.start:
            changes["start_date"], begin = _start(parsed_args.start, now)
        if parsed_args.end:
            changes["end_date"] = _end(parsed_args.end, now, begin)
        if not changes:
            raise CommandError("Nothing is to change; give --name, --start or --end", code=400)
        if parsed_args.dry_run:
            return self._would(found, maintenances.impact_of_change(found.id, **changes), parsed_args)
        if parsed_args.impact_id:
            changes["impact_id"] = parsed_args.impact_id
        return self.told(maintenances.change(found.id, **changes), parsed_args)

    def _would(self, window: Maintenance, impact: MaintenanceImpact, parsed_args: argparse.Namespace) -> Any:
        """Return the keys and values of what a change would do."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        values = {"impact_id": impact.id, "summary": impact.summary, "leases": impact.leases}
        if not self.structured(parsed_args):
            counts = (f"{count} {name.replace('_', ' ')}" for name, count in impact.summary.items() if count)
            values["summary"] = ", ".join(counts) or "none"
            values["leases"] = _lines(self, impact.leases, window, zone, parsed_args)
        dates = {"start_date": impact.start_date, "end_date": impact.end_date}
        found = {**dates, **values}
        return [OF_CHANGE, tuple(self.cell(found[key], zone, parsed_args) for key in OF_CHANGE)]


class EndMaintenance(_OneWindow):
    """End a maintenance window that has begun

    Its hosts return at once.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_id(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """End it."""
        check_columns(parsed_args, KEYS)
        maintenances = self.library.maintenances
        return self.told(maintenances.end(maintenances.find(parsed_args.id).id), parsed_args)


class DeleteMaintenances(LibraryCommand):
    """Cancel maintenance windows that have not begun

    Leases that were moved stay where they are.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<window>", nargs="+", help="id or name of a window")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Cancel each."""
        texts: Sequence[str] = parsed_args.id
        maintenances = self.library.maintenances
        return self.each(texts, "maintenance window", lambda text: maintenances.delete(maintenances.find(text).id))
