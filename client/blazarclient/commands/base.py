# SPDX-License-Identifier: Apache-2.0
"""What the commands beyond microversion 1.0 have in common: the library, names, and times in the user's zone."""

from __future__ import annotations

import argparse
import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.command import BlazarCommand, exit_code
from blazarclient.exception import (
    BlazarClientException,
    CommandError,
    NoBlazarEndpoint,
    NotAuthorized,
    NotFound,
    UnsupportedVersion,
)
from blazarclient.table_fit import FittedLister, SafeShowOne

if TYPE_CHECKING:
    # Imported when it is used: the list of commands needs none of it.
    from blazarclient.library import Lease, Reservations

STOPPED = 130
"""The exit code after Ctrl-C."""

BRIEF = ("id", "name", "status", "start_date", "end_date")
"""What matters of a lease after a change."""

_SHORT_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f-]{0,27})?", re.ASCII)
"""Matches the beginning of an id, as tables show it."""

SOME = 100
"""How many leases of one name are asked for at once."""

LEAST = 0.1
"""Seconds between looks; with less, one client would keep the service busy."""

WRONG = 2
"""The exit code of a command that is written wrongly."""


class LibraryCommand(BlazarCommand):
    """A command that asks the service at more than microversion 1.0."""

    resource = "lease"
    outcome = 0
    """The exit code where the command did its work and the answer is not what was hoped for."""
    answers: Sequence[str] = ()
    """The columns of a command that changes something, if they are always the same."""

    @property
    def library(self) -> Reservations:
        """The library, made when it is first needed."""
        made: Reservations | None = getattr(self, "_library", None)
        if made is None:
            made = self._library = self.get_library()
        return made

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Carry out the command; a time that is none, and Ctrl-C, end it with a sentence."""
        if self.answers and (unknown := unknown_column(parsed_args, self.answers)):
            self.tell(unknown)
            return 1
        try:
            return int(super().run(parsed_args) or self.outcome)
        except times.BadTime as error:
            self.tell(str(error))
            return WRONG
        except KeyboardInterrupt as stop:
            self.tell(str(stop) or "Stopped.")
            return STOPPED

    def id_of(self, text: str) -> str:
        """Return the id of a lease that is given by id or name, without a list of all. NotFound; NoUniqueMatch.

        One that has ended and was not deleted has its name until there is another. An id may be its beginning only.
        """
        if self.is_id(text):
            return text
        try:
            found = [str(each.id) for each in self.library.leases.list(name=text, fields=("id",), limit=SOME)]
            if not found:
                ended = self.library.leases.list(name=text, state="past", fields=("id", "deleted_at"), limit=SOME)
                found = [str(each.id) for each in ended if each.deleted_at is None]
            if not found and _SHORT_ID.fullmatch(text):
                every = (str(each.id) for each in self.library.leases.list(fields=("id",)))
                found = [each for each in every if each.startswith(text)]
        except UnsupportedVersion:
            return super().id_of(text)
        return self.only([{"id": each} for each in found], self.resource, text)

    def each(self, texts: Sequence[str], noun: str, delete: Callable[[str], object]) -> int:
        """Delete things, and say of each what has become of it; return the exit code for the first that failed."""
        code = 0
        for text in texts:
            try:
                delete(text)
            except BlazarClientException as error:
                self.tell(f"{text}: {error}" if len(texts) > 1 else str(error))
                code = code or exit_code(error)
                if isinstance(error, NotAuthorized | NoBlazarEndpoint):
                    break
            else:
                print(f"Deleted {noun}: {text}", file=self.app.stdout)
        return code

    def cell(self, value: Any, zone: tzinfo, parsed_args: argparse.Namespace) -> Any:
        """Return a value for the output that was asked for."""
        if self.structured(parsed_args):
            return plain(value)
        if isinstance(value, datetime):
            return utc(value) if parsed_args.formatter == "csv" else local(value, zone)
        if isinstance(value, list | tuple):
            return ", ".join(str(item) for item in value)
        return "" if value is None else value

    def of_keystone(self, noun: str, text: str | None, option: str | None = None) -> str | None:
        """Return the id of a project or a user that an option gives by id or name; None if it is not given.

        ``option``: by default ``--project`` or ``--user``.
        """
        if not text:
            return None
        # It needs keystoneauth, which the list of commands does not.
        from blazarclient.commands import identity

        session = self.get_client().session
        # Of ``blazar`` it is an adapter.
        return identity.id_of(getattr(session, "session", session), noun, text, option or f"--{noun}")

    def lease_of(self, text: str) -> Lease:
        """Return a lease by id or name; where several past ones have the name, the last. NotFound; NoUniqueMatch."""
        try:
            return self.library.leases.find(text)
        except NotFound:
            newest = self.library.leases.list(
                name=text, state="past", sort_key="updated_at", sort_dir="desc", fields=("id",), limit=1
            )
            for lease in newest:
                return self.library.leases.get(str(lease.id))
            raise


def add_lease(parser: argparse.ArgumentParser) -> None:
    """Add the argument that names a lease."""
    parser.add_argument("id", metavar="<lease>", help="id or name of the lease")


def refuse_empty(parser: argparse.ArgumentParser, *options: str) -> None:
    """Have options refused that say nothing, as of a variable that is not set.

    Left out one means something else: a lease at any price, or of the usual length.
    """
    for action in parser._actions:
        if not {*options}.isdisjoint(action.option_strings):
            action.type = _filled


def _filled(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty; give a value, or leave the option out")
    return text


def add_zone(parser: argparse.ArgumentParser) -> None:
    """Add the option of the zone in which times are read and shown."""
    parser.add_argument("--timezone", metavar="<zone>", help="zone of times, such as Europe/Berlin (default: yours)")


def add_every(parser: argparse.ArgumentParser) -> None:
    """Add the option of the pause between looks."""
    told = f"between looks, {LEAST} to 3600 (default: 2)"
    parser.add_argument("--every", metavar="<seconds>", type=_pause, default=2.0, help=told)


def _pause(text: str) -> float:
    try:
        if LEAST <= (seconds := float(text)) <= 3600:
            return seconds
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from {LEAST} to 3600")


def let_before_now(parser: argparse.ArgumentParser) -> None:
    """Have ``--from -2d`` be read as ``--from=-2d``: what begins with a hyphen and a digit is a value."""
    # argparse has this for numbers below zero.
    parser._negative_number_matcher = re.compile(r"-\d")


def check_columns(parsed_args: argparse.Namespace, known: Sequence[str]) -> None:
    """Refuse columns of which there is none, before anything is changed: afterwards it would look like a failure.

    CommandError.
    """
    if unknown := unknown_column(parsed_args, known):
        raise CommandError(unknown, code=400)


def unknown_column(parsed_args: argparse.Namespace, known: Sequence[str]) -> str:
    """Return a sentence if there is none of the columns that are asked for, else nothing.

    As elsewhere, columns that are not there are left out if there are others.
    """
    asked = getattr(parsed_args, "columns", None) or ()
    if not asked or set(asked) & set(known):
        return ""
    return f"There is no column {asked[0]}; choose from {', '.join(sorted(known))}"


def add_keep_hosts(parser: argparse.ArgumentParser) -> None:
    """Add what says whether a lease, or each of a series, keeps its hosts until it starts."""
    parser.add_argument(
        "--keep-hosts",
        action=argparse.BooleanOptionalAction,
        help="keep the hosts that it gets; else others may take them before its start, and it gets equal ones",
    )


def now_in(parsed_args: argparse.Namespace) -> datetime:
    """Return the present time in the user's zone. BadTime if there is no such zone."""
    return clock().astimezone(times.zone(parsed_args.timezone))


def clock() -> datetime:
    """Return the present time; tests put another in its place."""
    return datetime.now(timezone.utc)


def zone_name(zone: tzinfo | None) -> str | None:
    """Return the IANA name of a zone, None if it has none."""
    return "UTC" if zone is timezone.utc else getattr(zone, "key", None)


def local(value: datetime | None, zone: tzinfo) -> str:
    """Return a date for a table: ``2026-12-01 09:00+01:00``, with seconds only where there are some."""
    if value is None:
        return ""
    own = value.astimezone(zone)
    return own.isoformat(sep=" ", timespec="seconds" if own.second else "minutes")


def utc(value: datetime | None) -> str | None:
    """Return a date for a program: ``2026-12-01T08:00:00Z``."""
    if value is None:
        return None
    return value.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def plain(value: Any) -> Any:
    """Return a value of the library as JSON has it: dates in UTC, values as objects."""
    if isinstance(value, datetime):
        return utc(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


class Rows(LibraryCommand, FittedLister):
    """A command whose answer is a table with a row for each thing."""

    def rows(
        self, columns: Sequence[str], items: Iterable[Any], zone: tzinfo, parsed_args: argparse.Namespace
    ) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return the columns and, as they are read, the rows."""
        return columns, (
            tuple(self.cell(getattr(item, column), zone, parsed_args) for column in columns) for item in items
        )


class One(LibraryCommand, SafeShowOne):
    """A command whose answer is the keys and values of one thing."""

    def brief(self, lease: Lease, zone: tzinfo, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return what matters of a lease after a change."""
        return [BRIEF, tuple(self.cell(getattr(lease, key), zone, parsed_args) for key in BRIEF)]


class OfLease(LibraryCommand):
    """A command that names one lease, and shows times of a zone. Beside another base it comes first."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        add_zone(parser)
        return parser
