# SPDX-License-Identifier: Apache-2.0
"""``lease history``, ``journal list`` and ``journal follow``: what was done, and by whom."""

from __future__ import annotations

import argparse
import itertools
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import (
    LibraryCommand,
    OfLease,
    Rows,
    add_every,
    add_zone,
    let_before_now,
    local,
    now_in,
    utc,
)
from blazarclient.library.transport import is_uuid
from blazarclient.text_columns import say

if TYPE_CHECKING:
    from blazarclient.library.history import FieldChange, HistoryEntry, JournalEntry, ResourceMove

JOURNAL = ("position", "at", "by", "verb", "object", "reason")
COLUMNS = ("at", "by", "verb", "changes", "reason")


class LeaseHistory(OfLease, Rows):
    """List what was done to a lease, and by whom

    A lease that is deleted has its history as long as the service keeps it; name it by its id.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        # A deleted lease is found by its id only.
        lease = parsed_args.id if is_uuid(parsed_args.id) else self.library.leases.find(parsed_args.id)

        def value(entry: HistoryEntry, key: str) -> Any:
            if key == "by" and not self.structured(parsed_args):
                return _who(entry)
            if key == "changes" and not self.structured(parsed_args):
                told = [_change(each) for each in entry.changes]
                return "; ".join([*told, *(_move(each) for each in entry.resources)])
            return self.cell(getattr(entry, key), zone, parsed_args)

        columns = (*COLUMNS, "resources") if self.structured(parsed_args) else COLUMNS
        found = self.library.history.of(lease)
        return columns, (tuple(value(entry, key) for key in columns) for entry in found)


class ListJournal(Rows):
    """List what was done to anything, and by whom, the latest last

    Operators see all, others what was done in their project: to leases, series, feeds, resources and so on.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_filters(parser)
        let_before_now(parser)
        for option, told in (("--from", "then or later"), ("--to", "before it")):
            parser.add_argument(option, metavar="<time>", dest=option[2:] + "_", help=f"what was done {told}")
        parser.add_argument("--limit", metavar="<number>", type=_number, default=50, help="the last ones (default: 50)")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        now = now_in(parsed_args)
        zone = now.tzinfo or timezone.utc
        first = parsed_args.after is not None
        found = self.library.history.list(
            **_filters(parsed_args),
            after=parsed_args.after,
            since=_instant("--from", parsed_args.from_, now),
            until=_instant("--to", parsed_args.to_, now),
            newest_first=not first,
            limit=min(parsed_args.limit, 1000),
        )
        entries = list(itertools.islice(found, parsed_args.limit))
        columns = (*JOURNAL, "changes", "resources", "request_id") if self.structured(parsed_args) else JOURNAL

        def value(entry: JournalEntry, key: str) -> Any:
            if key in ("by", "object") and not self.structured(parsed_args):
                return _who(entry) if key == "by" else _what(entry)
            return self.cell(getattr(entry, key), zone, parsed_args)

        ordered = entries if first else reversed(entries)
        return columns, (tuple(value(entry, key) for key in columns) for entry in ordered)


class FollowJournal(LibraryCommand):
    """Write a line for each thing that is done, as it is done

    With --after it begins after that position, else with what is done from now on. It ends when it is interrupted.
    While the service does not answer, as it is restarted, it says so once and goes on asking.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_filters(parser)
        add_every(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Follow it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        entries = self.library.history.follow(
            after=parsed_args.after,
            every=parsed_args.every,
            when_silent=lambda error: self.tell(f"{error}; it is asked again"),
            **_filters(parsed_args),
        )
        for entry in entries:
            told = "; ".join(_change(change) for change in entry.changes)
            line = f"{local(entry.at, zone)}  {_what(entry)} {entry.verb} by {_who(entry)}{told and ': '}{told}"
            say(f"{entry.position}  {line}", self.app.stdout, indent="  ")
        return 0


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--after", metavar="<position>", type=_number, help="only what comes after this position")
    parser.add_argument("--type", metavar="<type>", help="only what was done to a type of object, such as resource")
    parser.add_argument("--object", metavar="<id>", help="only what was done to the object with this id, as host/7")
    parser.add_argument("--verb", metavar="<verb>", help="only what was done so, such as disabled")
    parser.add_argument("--by", metavar="<user>", help="only what the user with this id did")
    parser.add_argument("--project", metavar="<project>", help="only what was done in this project (operators)")


def _filters(parsed_args: argparse.Namespace) -> dict[str, Any]:
    return {
        "object_type": parsed_args.type,
        "object_id": parsed_args.object,
        "verb": parsed_args.verb,
        "by": parsed_args.by,
        "project_id": parsed_args.project,
    }


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _instant(option: str, text: str | None, now: datetime) -> str | None:
    """Return the time of an option for the service, None if it is not given. BadTime."""
    if not text:
        return None
    with times.named(option):
        return utc(times.read_time(text, now=now, end=now))


def _who(entry: HistoryEntry) -> str:
    return entry.by.user_id or _WHO[entry.by.kind]


def _what(entry: JournalEntry) -> str:
    about = entry.object
    return f"{about.type} {about.name or about.id}"


_WHO = {"user": "a user of another project", "operator": "an operator", "service": "the service"}


def _change(change: FieldChange) -> str:
    if change.before is None:
        return f"{change.field}: {change.after}"
    return f"{change.field}: {change.before} -> {change.after}"


def _move(move: ResourceMove) -> str:
    told = []
    if move.gone_count:
        told.append(f"gave up {_named(move.gone, move.gone_count)}")
    if move.come_count:
        told.append(f"got {_named(move.come, move.come_count)}")
    return " and ".join(told)


def _named(ids: tuple[str, ...], count: int) -> str:
    shown = ", ".join(ids[:5])
    return shown if count <= 5 else f"{shown} and {count - 5} more"
