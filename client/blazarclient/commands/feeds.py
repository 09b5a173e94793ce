# SPDX-License-Identifier: Apache-2.0
"""``feed``: links with which calendar programs show leases."""

from __future__ import annotations

import argparse
from datetime import timezone
from typing import Any

from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, now_in
from blazarclient.requirement_text import add_requirement, read_requirements

KINDS = ("user", "project", "resource", "free_busy")
COLUMNS = ("id", "kind", "name", "created_at", "expires_at")
MADE = ("id", "kind", "name", "url", "created_at", "expires_at")


class CreateFeed(One):
    """Make a link for calendar programs

    Who has the link sees what it tells, without a password. It is shown only now.
    """

    answers = MADE

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--kind",
            type=lambda text: text.replace("-", "_"),
            choices=KINDS,
            default="user",
            help="whose leases: your own, those of the project, those on a resource, or only when it is busy",
        )
        parser.add_argument(
            "--name",
            metavar="<name>",
            default="calendar",
            help="what it is for, such as 'my phone'",
        )
        parser.add_argument("--resource", metavar="<id>", help="the resource, for --kind resource")
        parser.add_argument("--resource-type", metavar="<type>", help="of what, for --kind free_busy")
        add_requirement(parser, "resources")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Make it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        values = {
            "resource": parsed_args.resource,
            "resource_type": parsed_args.resource_type,
            "requirement": read_requirements(parsed_args.requirement),
        }
        given = {key: value for key, value in values.items() if value is not None}
        feed = self.library.feeds.create(parsed_args.kind, name=parsed_args.name, **given)
        self.tell("Keep the url to yourself: it is a secret, and is not shown again.")
        return [MADE, tuple(self.cell(getattr(feed, key), zone, parsed_args) for key in MADE)]


class ListFeeds(Rows):
    """List links for calendar programs"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.rows(COLUMNS, self.library.feeds.list(), zone, parsed_args)


class DeleteFeed(LibraryCommand):
    """Revoke links for calendar programs: they are dead at once"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<feed>", nargs="+", help="id of a feed")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Revoke each."""
        return self.each(parsed_args.id, "feed", self.library.feeds.delete)
