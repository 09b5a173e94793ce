# SPDX-License-Identifier: Apache-2.0
"""``rule``: when projects may have leases."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, now_in
from blazarclient.commands.documents import read_document

if TYPE_CHECKING:
    from blazarclient.library.rules import Rule

COLUMNS = ("name", "kind", "active", "updated_at")
KEYS = ("name", "kind", "active", "applies_to", "content", "revision", "created_at", "updated_at")


class ListRules(Rows):
    """List the rules on when projects may have leases

    Members see those that hold for their project.
    """

    answers = COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.rows(COLUMNS, self.library.rules.list(), zone, parsed_args)


class _OneRule(One):
    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<name>", help="name of the rule")
        add_zone(parser)
        return parser

    def show(self, rule: Rule, parsed_args: argparse.Namespace) -> Any:
        """Return a rule as it is shown."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return [KEYS, tuple(self._value(rule, key, zone, parsed_args) for key in KEYS)]

    def _value(self, rule: Rule, key: str, zone: tzinfo, parsed_args: argparse.Namespace) -> Any:
        value = getattr(rule, key)
        if isinstance(value, dict) and not self.structured(parsed_args):
            return json.dumps(value, indent=1, ensure_ascii=False)
        return self.cell(value, zone, parsed_args)


class ShowRule(_OneRule):
    """Show a rule"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.show(self.library.rules.get(parsed_args.name), parsed_args)


class WriteRule(_OneRule):
    """Write a rule, a new one or another one of this name

    It holds for what is booked or changed from then on; leases that there are stay.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="<file>", help="file with the rule as JSON; - is the standard input")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Write it."""
        document = read_document(parsed_args.file, "see the page on rules for what a rule has")
        return self.show(self.library.rules.write(parsed_args.name, document), parsed_args)


class DeleteRules(LibraryCommand):
    """Delete rules"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<name>", nargs="+", help="name of a rule")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Delete each."""
        names: Sequence[str] = parsed_args.name
        return self.each(names, "rule", self.library.rules.delete)
