# SPDX-License-Identifier: Apache-2.0
"""``statement`` and ``charge``: what a project has to pay, line by line."""

from __future__ import annotations

import argparse
from datetime import timezone
from typing import Any

from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, now_in

COLUMNS = ("month", "project_id", "state", "amount", "currency", "energy_wh", "gco2")
LINES = ("id", "lease_id", "category", "status", "sku", "start", "end", "resource_seconds", "unit_price", "factor")
CHARGES = (*LINES, "amount", "currency", "energy_wh", "gco2", "month")
KEYS = (*CHARGES, "project_id", "corrects", "reason", "at", "energy_source", "carbon")


def _add_projects(parser: argparse.ArgumentParser, *, everybody: bool = True) -> None:
    parser.add_argument("--project", metavar="<project>", help="of a project, by id or name (for operators)")
    if everybody:
        parser.add_argument("--all-projects", action="store_true", help="of all projects (for operators)")


class ListStatements(Rows):
    """List what is to be paid for each month"""

    answers = COLUMNS
    need_sort_by_cliff = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_projects(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        project = self.of_keystone("project", parsed_args.project)
        found = self.library.statements.list(project_id=project, all_projects=parsed_args.all_projects)
        return self.rows(COLUMNS, found, timezone.utc, parsed_args)


class ShowStatement(Rows):
    """Show what is to be paid for a month, with all charges"""

    answers = CHARGES
    need_sort_by_cliff = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("month", metavar="<month>", help="such as 2030-04")
        _add_projects(parser, everybody=False)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        project = self.of_keystone("project", parsed_args.project)
        found = self.library.statements.get(parsed_args.month, project_id=project)
        self.tell(
            f"Statement {found.id} is {found.state}: {found.amount} {found.currency}, rounded by {found.rounding}."
        )
        if found.energy_wh is not None:
            emitted = "" if found.gco2 is None else f", which emitted {found.gco2 / 1000:.1f} kg of CO2e"
            self.tell(f"Hosts drew {found.energy_wh / 1000:.1f} kWh for it{emitted}.")
        return self.rows(CHARGES, found.charges, zone, parsed_args)


class ExportStatement(LibraryCommand):
    """Write the bill of a month in the columns of FOCUS 1.2, as CSV"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("month", metavar="<month>", help="such as 2030-04")
        _add_projects(parser, everybody=False)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Ask for it, and write it as it is."""
        project = self.of_keystone("project", parsed_args.project)
        bill = self.library.statements.export(parsed_args.month, project_id=project)
        # A terminal, and a file that it is led to, end lines by themselves.
        self.app.stdout.write(bill.replace("\r\n", "\n"))


class ListCharges(Rows):
    """List what was charged"""

    answers = CHARGES
    need_sort_by_cliff = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_projects(parser)
        parser.add_argument("--lease", metavar="<lease>", help="for this lease, by its id")
        parser.add_argument("--month", metavar="<month>", help="in the statement of this month, such as 2030-04")
        parser.add_argument("--category", metavar="<category>", help="such as usage, fee, free, correction, energy")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        found = self.library.charges.list(
            project_id=self.of_keystone("project", parsed_args.project),
            all_projects=parsed_args.all_projects,
            lease_id=parsed_args.lease,
            month=parsed_args.month,
            category=parsed_args.category,
        )
        return self.rows(CHARGES, found, now_in(parsed_args).tzinfo or timezone.utc, parsed_args)


class CorrectCharge(One):
    """Answer a charge that was wrong by a correction

    It is in the statement of the present month, with the reason; the charge itself stays as it is.
    """

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<charge>", type=int, help="id of the charge")
        parser.add_argument("amount", metavar="<amount>", help="what is added; a credit is below 0, as -12.50")
        parser.add_argument("--reason", metavar="<reason>", required=True, help="why; the project reads it")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Make it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        made = self.library.charges.correct(parsed_args.id, parsed_args.amount, parsed_args.reason)
        return [KEYS, tuple(self.cell(getattr(made, key), zone, parsed_args) for key in KEYS)]
