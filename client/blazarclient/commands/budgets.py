# SPDX-License-Identifier: Apache-2.0
"""``budget``: what a project may have in a period, and what of it is left."""

from __future__ import annotations

import argparse
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import Rows, add_zone, now_in

if TYPE_CHECKING:
    from blazarclient.library.budgets import Budget

COLUMNS = ("measure", "limit", "used", "held", "left", "unit", "start", "end", "source", "limit_name")
OF_ALL = ("project_id", *COLUMNS)


class ListBudgets(Rows):
    """List what a project may have in a period, what of it is used and held, and what is left

    Used is what leases had by now, held what is booked for the rest of the period. What only an external service
    knows is empty.
    """

    answers = OF_ALL
    need_sort_by_cliff = False
    nothing = "Nothing is limited here: no filter of the service keeps a budget.\n"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", metavar="<project>", help="those of a project, by id or name (for operators)")
        parser.add_argument("--all-projects", action="store_true", help="those of all projects (for operators)")
        parser.add_argument("--at", metavar="<day>", help="of the periods in which this day lies (default: today)")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        found = self.library.budgets.list(
            project_id=self.of_keystone("project", parsed_args.project),
            all_projects=parsed_args.all_projects,
            at=parsed_args.at,
        )

        def value(budget: Budget, key: str) -> Any:
            of = budget.period if key in ("start", "end") else budget
            return None if of is None else self.cell(getattr(of, key), zone, parsed_args)

        columns = OF_ALL if parsed_args.all_projects else COLUMNS
        return columns, (tuple(value(budget, key) for key in columns) for budget in found)
