# SPDX-License-Identifier: Apache-2.0
"""``problem``: what an operator may have to act on, and what is done about it."""

from __future__ import annotations

import argparse
from datetime import timezone
from typing import TYPE_CHECKING, Any, ClassVar

from blazarclient.command import exit_code
from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, check_columns, now_in
from blazarclient.exception import BlazarClientException, CommandError

if TYPE_CHECKING:
    from blazarclient.library.problems import Problem

COLUMNS = ("id", "since", "summary", "actions")
KEYS = ("id", "kind", "since", "summary", "explanation", "actions", "lease_id", "region")
KINDS = (
    "event",
    "lease",
    "resource",
    "leftover",
    "unknown",
    "drift",
    "manager",
    "delivery",
    "enforcement",
    "log",
    "poll",
    "power",
    "charge",
    "energy",
)
MOST = 50


class ListProblems(Rows):
    """List what an operator may have to act on, the oldest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--kind", choices=KINDS, help="only those of this kind")
        parser.add_argument("--lease", metavar="<lease>", help="only those of this lease, by its id")
        parser.add_argument("--region", metavar="<region>", help="only those of this region")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        found = self.library.problems.list(kind=parsed_args.kind, lease_id=parsed_args.lease, region=parsed_args.region)
        return self.rows(COLUMNS, found, zone, parsed_args)


class ShowProblem(One):
    """Show a problem: why, since when, who works on it, and what can be done about it"""

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<problem>", help="id of the problem, as event:<id>")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        check_columns(parsed_args, KEYS)
        problem = self.library.problems.get(parsed_args.id)
        zone = now_in(parsed_args).tzinfo or timezone.utc

        def value(key: str, of: Problem) -> Any:
            if key == "explanation" and not self.structured(parsed_args):
                return "\n".join(of.explanation)
            return self.cell(getattr(of, key), zone, parsed_args)

        return [KEYS, tuple(value(key, problem) for key in KEYS)]


class _Act(LibraryCommand):
    """A command that does something about problems, or says what would be done."""

    action: ClassVar[str]

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<problem>", nargs="+", help="id of a problem, as event:<id>")
        parser.add_argument("--reason", metavar="<text>", required=True, help="why; it goes into the history")
        parser.add_argument("--yes", action="store_true", help="do it; without this, only say what would be done")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Act on each; return the exit code for the first that was refused."""
        if len(parsed_args.id) > MOST:
            raise CommandError(f"{len(parsed_args.id)} problems are given, and {MOST} at most at once", code=400)
        code, possible = 0, False
        for problem_id in parsed_args.id:
            try:
                repair = self.library.problems.act(
                    problem_id,
                    self.action,
                    reason=parsed_args.reason,
                    dry_run=not parsed_args.yes,
                    confirm=getattr(parsed_args, "confirm", None),
                )
            except BlazarClientException as error:
                self.tell(f"{problem_id}: {error}")
                code = code or exit_code(error)
                continue
            possible = True
            print(f"{problem_id}: {' '.join(repair.said)}", file=self.app.stdout)
        if possible and not parsed_args.yes:
            self.tell("Nothing was done; repeat it with --yes")
        return code


class RetryProblems(_Act):
    """Try events again at once, or tell receivers of subscriptions once more what they have refused"""

    action = "retry"


class ReleaseProblems(_Act):
    """Let claims on events end that last too long, as a clock was wrong"""

    action = "release"


class GiveUpProblems(_Act):
    """Go on without what events do

    Resources of an end that is given up are disabled, so that nobody gets a host with servers of somebody else.
    """

    action = "give_up"


class EndProblems(_Act):
    """End leases, what they have left, or what is not on record

    What would be done before the end of a lease, such as snapshots, is not done.
    """

    action = "end"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--confirm", metavar="<id>", help="the id of a reservation that is not on record, once more"
        )
        return parser


class MendProblems(_Act):
    """Bring what reservations have in the cloud to what the books say"""

    action = "mend"


class RecheckProblems(_Act):
    """Ask the cloud now how resources are that have failed"""

    action = "recheck"


class DropProblems(_Act):
    """Forget messages that the receivers of subscriptions have refused for good"""

    action = "drop"
