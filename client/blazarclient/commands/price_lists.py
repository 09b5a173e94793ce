# SPDX-License-Identifier: Apache-2.0
"""``price-list``: what leases cost."""

from __future__ import annotations

import argparse
import json
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import One, Rows, add_zone, check_columns, now_in
from blazarclient.commands.documents import read_document

if TYPE_CHECKING:
    from blazarclient.library.price_lists import PriceComparison, PriceList

COLUMNS = ("version", "valid_from", "published_at", "published_by")
KEYS = (*COLUMNS, "digest", "content")
CHANGES = ("field", "before", "after")


class ListPriceLists(Rows):
    """List the price lists, oldest first"""

    answers = COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.rows(COLUMNS, self.library.price_lists.list(), zone, parsed_args)


class ShowPriceList(One):
    """Show a price list

    Of the factors of projects members see only that of their own.
    """

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("version", metavar="<version>", nargs="?", help="by default the one published last")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        lists = self.library.price_lists
        found = lists.get(parsed_args.version) if parsed_args.version else lists.newest()
        zone = now_in(parsed_args).tzinfo or timezone.utc

        def value(key: str, of: PriceList) -> Any:
            if key == "content" and not self.structured(parsed_args):
                return json.dumps(of.content, indent=1, ensure_ascii=False)
            return self.cell(getattr(of, key), zone, parsed_args)

        return [KEYS, tuple(value(key, found) for key in KEYS)]


class PublishPriceList(Rows):
    """Publish a price list, and show what it changes

    It holds for what is booked from then on; what was booked before keeps its prices. It cannot be changed or deleted,
    only followed by another one.
    """

    answers = CHANGES

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("file", metavar="<file>", help="file with the list as JSON; - is the standard input")
        parser.add_argument("--dry-run", action="store_true", help="only say what it would change")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Publish it."""
        check_columns(parsed_args, CHANGES)
        document = read_document(parsed_args.file, "see the page on prices for what a list has")
        done = self.library.price_lists.publish(document, dry_run=parsed_args.dry_run)
        version = done.price_list.version
        self.tell(f"It would be price list {version}" if parsed_args.dry_run else f"Price list {version} is published")
        if done.left_out:
            skus = ", ".join(done.left_out)
            self.tell(f"It has no price for {skus}: what is booked by these before it begins is free from then on")
        if done.unmatched:
            skus = ", ".join(done.unmatched)
            self.tell(
                f"No resource has the price of {skus} now: look at the requirement, and at the order, as the first "
                "price that fits counts"
            )
        for number in done.replaced:
            self.tell(
                f"Price list {number}, which was published ahead, never holds for what is booked from then on; publish "
                "it again after this one if it is to hold"
            )
        if done.last_month is not None:
            self.tell(_compare(done.last_month))
        return self.rows(CHANGES, done.changes, timezone.utc, parsed_args)


def _compare(found: PriceComparison) -> str:
    """Return the sentence on what a month would have cost."""
    whose = (
        f"what leases cost in {found.month}" if found.is_whole else f"what {found.leases} leases cost in {found.month}"
    )
    return f"By it {whose} would have been {found.new_amount} {found.currency} instead of {found.amount}"
