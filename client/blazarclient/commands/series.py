# SPDX-License-Identifier: Apache-2.0
"""``series``: leases that recur."""

from __future__ import annotations

import argparse
import contextlib
import functools
import re
from collections.abc import Callable, Sequence
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands import asked as forms
from blazarclient.commands.base import (
    LibraryCommand,
    One,
    Rows,
    add_keep_hosts,
    add_zone,
    check_columns,
    let_before_now,
    now_in,
    refuse_empty,
    zone_name,
)
from blazarclient.commands.refusals import Places, in_words_of, of_reservations
from blazarclient.commands.reminders import add_reminders, read_reminders
from blazarclient.exception import CommandError
from blazarclient.reservation_text import HOST, check_references, read_reservation

if TYPE_CHECKING:
    from blazarclient.library.values import Series

COLUMNS = ("id", "name", "status", "rule", "start", "time_zone")
KEYS = (
    *("id", "name", "status", "reason", "rule", "start", "time_zone", "duration", "until_local", "exdates", "rdates"),
    *(
        "fit",
        "max_price",
        "before_end_date",
        "keep_hosts",
        "reminders",
        "reservations",
        "booked_until",
        "previous_id",
        "project_id",
        "user_id",
        "created_at",
    ),
    *("updated_at", "deleted_at", "occurrences"),
)
_DATES = ("rule", "start", "duration", "until_local", "fit", "max_price", "quoted_at", "before_end_date")
_LISTS = ("exdates", "rdates")
_LOCAL = re.compile(r"(\d{4}-\d{2}-\d{2})[Tt ](\d{1,2}:\d{2})(:\d{2})?")
"""A start as the service names it, but for the blank, and hours of one digit."""

_OPTIONS = {
    "/rule": "--rule",
    "/start": "--start",
    "/duration": "--duration",
    "/until_local": "--until",
    "/exdates": "--except",
    "/rdates": "--also",
    "/before_end_date": "--before-end",
    "/max_price": "--max-price",
    "/quoted_at": "--quoted-at",
    "/reminders": "--reminder",
    "/keep_hosts": "--keep-hosts",
    "/from": "--from",
}
"""What says the parts of a request."""


def _add_dates(parser: argparse.ArgumentParser, *, required: bool) -> None:
    """Add what says when a series recurs, and what it reserves."""
    parser.add_argument(
        "--rule",
        metavar="<rule>",
        required=required,
        help="a recurrence rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24",
    )
    parser.add_argument(
        "--start",
        metavar="<time>",
        required=required,
        help="the first start by the clocks of the zone, such as 2030-04-01T09:00 or monday 9:00",
    )
    length = parser.add_mutually_exclusive_group(required=required)
    length.add_argument("--duration", metavar="<length>", help="how long each lasts, such as 4h or P1D")
    length.add_argument(
        "--until", metavar="<time>", dest="until_local", help="when each ends by the clock, as 17:00 or 06:00+1d"
    )
    parser.add_argument(
        "--except", metavar="<time>", dest="exdates", action="append", help="a start that is left out; may be repeated"
    )
    parser.add_argument(
        "--also", metavar="<time>", dest="rdates", action="append", help="a start beside the rule; may be repeated"
    )
    parser.add_argument(
        "--before-end",
        metavar="<length>",
        dest="before_end_date",
        type=lambda text: text if text[:1] in ("+", "-") else f"-{text}",
        help="when to warn: 2h before the end, or +1h after the start",
    )
    let_before_now(parser)
    add_keep_hosts(parser)
    add_reminders(parser, instead=not required, dates=False)
    parser.add_argument(
        "--fit",
        type=lambda text: text.replace("_", "-"),
        choices=("all", "as-many"),
        help="all: book nothing unless all of it fits; as-many: what fits",
    )
    parser.add_argument("--max-price", metavar="<amount>", dest="max_price", help="the most that each lease may cost")
    parser.add_argument(
        "--physical-reservation",
        metavar="min=<n>[,<key>=<value>...]",
        dest="physical_reservations",
        action="append",
        default=[],
        help="hosts that each lease reserves, as of lease create; may be repeated",
    )
    parser.add_argument(
        "--reservation",
        metavar="<key>=<value>[,<key>=<value>...]",
        dest="reservations",
        action="append",
        default=[],
        help="what else each lease reserves, as of lease create; may be repeated",
    )
    parser.add_argument("--dry-run", action="store_true", help="only show what fits")
    add_zone(parser)
    refuse_empty(parser, "--rule", "--start", "--duration", "--until", "--except", "--also", "--max-price")


def _given(parsed_args: argparse.Namespace, now: datetime) -> dict[str, Any]:
    """Return what options say of a series in the zone of ``now``. BadTime."""
    given = {key: getattr(parsed_args, key) for key in (*_DATES, *_LISTS) if getattr(parsed_args, key, None)}
    if "start" in given:
        given["start"] = _start("--start", given["start"], now)
    for key, option in (("exdates", "--except"), ("rdates", "--also")):
        if key in given:
            given[key] = [_start(option, text, now) for text in given[key]]
    if "duration" in given:
        # The service knows more of them, such as months, and fewer words.
        with contextlib.suppress(times.BadTime):
            given["duration"] = times.read_duration(given["duration"]).iso()
    if "fit" in given:
        given["fit"] = given["fit"].replace("-", "_")
    if parsed_args.reminders or getattr(parsed_args, "no_reminders", False):
        given["reminders"] = read_reminders(parsed_args.reminders or (), now)
    if parsed_args.keep_hosts is not None:
        given["keep_hosts"] = parsed_args.keep_hosts
    found = [read_reservation(text, resource_type=HOST) for text in parsed_args.physical_reservations]
    found += [read_reservation(text) for text in parsed_args.reservations]
    if found:
        check_references(found)
        given["reservations"] = [forms.modern(each) for each in found]
    return given


def _start(option: str, text: str, now: datetime) -> str:
    """Return a start as the service takes it, which is a local time of the series. BadTime."""
    if found := _LOCAL.fullmatch(text.strip()):
        # What the clocks leave out is for the service to move.
        return f"{found[1]}T{found[2]:0>5}{found[3] or ''}"
    with times.named(option):
        start = times.read_time(text, now=now)
    return start.astimezone(now.tzinfo).replace(microsecond=0, tzinfo=None).isoformat()


def _places(parsed_args: argparse.Namespace) -> Places:
    """Return what has said the parts of the request."""
    options = {"--physical-reservation": parsed_args.physical_reservations, "--reservation": parsed_args.reservations}
    return {**of_reservations((option, len(texts)) for option, texts in options.items()), **_OPTIONS}


class _OneSeries(One):
    """A command whose answer is a series."""

    answers = KEYS

    def told(self, series: Series, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return the keys and values of a series."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        values = [self._value(series, key, zone, parsed_args) for key in KEYS]
        return [KEYS, tuple(values)]

    def _value(self, series: Series, key: str, zone: tzinfo, parsed_args: argparse.Namespace) -> Any:
        value = getattr(series, key)
        if self.structured(parsed_args) or key not in ("occurrences", "reservations", "reminders"):
            return self.cell(value, zone, parsed_args)
        if key == "reminders":
            return "\n".join(f"{each.at} from its {each.anchor}: {each.text}" for each in value)
        if key == "reservations":
            return "\n".join(str(each.get("resource_type", "")) for each in value)
        head = f"{'recurrence_id':19} start_date"
        rows = (
            " ".join(
                str(part)
                for part in (
                    # Whatever becomes of the lease, that is what --from is given.
                    f"{each.recurrence_id:19}",
                    self.cell(each.start_date, zone, parsed_args),
                    each.state,
                    "(changed)" if each.changed else "",
                    each.lease_id or "",
                    each.reason or "",
                    "" if each.opening is None else f"(fits {self.cell(each.opening.start_date, zone, parsed_args)})",
                )
                if part
            )
            for each in value
        )
        return "\n".join((head, *rows)) if value else ""

    def tell_fit(self, series: Series) -> None:
        """Say how much of a series fits, if not all of it does."""
        unfit = sum(each.state == "unfit" for each in series.occurrences)
        if unfit:
            self.tell(f"{unfit} of {len(series.occurrences)} occurrences do not fit; see their reasons.")


class CreateSeries(_OneSeries):
    """Book leases that recur

    Starts are times of your zone, or of --timezone: 2030-04-01T09:00, tomorrow 9:00, monday 9:00. Each occurrence is a
    lease of its own.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<name>", help="name of the series and of each lease")
        _add_dates(parser, required=True)
        parser.add_argument(
            "--quoted-at",
            metavar="<date>",
            help="when the prices were quoted, as --dry-run tells: for some minutes they cost no more than that",
        )
        refuse_empty(parser, "--quoted-at")
        parser.add_argument(
            "--idempotency-key", metavar="<key>", help="never book twice with this key, however often it is tried"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Book it."""
        check_columns(parsed_args, KEYS)
        zone = parsed_args.timezone or zone_name(now_in(parsed_args).tzinfo)
        if zone is None:
            raise CommandError("The name of your time zone is not known; give it with --timezone", code=400)
        given = _given(parsed_args, now_in(parsed_args))
        if "reservations" not in given:
            raise CommandError(
                "Nothing is reserved; add --reservation resource_type=physical:host,min=1,max=1", code=400
            )
        with in_words_of(_places(parsed_args)):
            made = self.library.series.create(
                parsed_args.name,
                time_zone=zone,
                idempotency_key=parsed_args.idempotency_key,
                dry_run=parsed_args.dry_run,
                **given,
            )
        if parsed_args.dry_run:
            self.tell("Nothing was booked. It would be:")
        elif made.status == "CREATING":
            self.tell("It is being booked; see series show.")
        self.tell_fit(made)
        return self.told(made, parsed_args)


class ListSeries(Rows):
    """List series of leases"""

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
        return self.rows(COLUMNS, self.library.series.list(status=status), zone, parsed_args)


class ShowSeries(_OneSeries):
    """Show a series of leases with its occurrences"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<series>", help="id or name of the series")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.told(self.library.series.find(parsed_args.id), parsed_args)


class ChangeSeries(_OneSeries):
    """Change a series of leases from one of its occurrences on

    Without --from all leases change that have not begun. Those before stay, and another series continues. Starts are
    times of the zone of the series.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<series>", help="id or name of the series")
        parser.add_argument(
            "--from", metavar="<time>", dest="since", help="the first that changes, by its recurrence_id"
        )
        parser.add_argument("--name", metavar="<name>", help="new name")
        parser.add_argument("--changed", action="store_true", help="change also leases that were changed by themselves")
        _add_dates(parser, required=False)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change it."""
        check_columns(parsed_args, KEYS)
        options = ("name", *_DATES, *_LISTS, "physical_reservations", "reservations")
        if (
            not any(getattr(parsed_args, option, None) for option in (*options, "reminders", "no_reminders"))
            and parsed_args.keep_hosts is None
        ):
            raise CommandError("Nothing is to change; give a name, dates, a rule or reservations", code=400)
        series = self.library.series
        found = series.find(parsed_args.id)
        # An occurrence is named by the zone that the series has had.
        before = now_in(parsed_args).astimezone(times.zone(found.time_zone))
        since = None if parsed_args.since is None else _start("--from", parsed_args.since, before)
        moves = parsed_args.timezone and (parsed_args.rule or parsed_args.start)
        changes = _given(parsed_args, now_in(parsed_args) if moves else before)
        if parsed_args.name:
            changes["name"] = parsed_args.name
        if moves:
            changes["time_zone"] = parsed_args.timezone
        if parsed_args.changed:
            changes["changed"] = True
        with in_words_of(_places(parsed_args)):
            done = series.change(str(found.id), since=since, dry_run=parsed_args.dry_run, **changes)
        if parsed_args.dry_run:
            self.tell("Nothing was changed. It would be:")
        elif done.id != found.id:
            self.tell(f"Occurrences before stay in series {found.id}; it goes on as:")
        self.tell_fit(done)
        return self.told(done, parsed_args)


class DeleteSeries(LibraryCommand):
    """Delete series with their leases that have not begun"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<series>", nargs="+", help="id or name of a series")
        parser.add_argument("--running", action="store_true", help="end leases that have begun, too")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Delete each."""
        series = self.library.series
        delete: Callable[..., None] = functools.partial(series.delete, running=parsed_args.running)
        texts: Sequence[str] = parsed_args.id
        return self.each(texts, "series", lambda text: delete(str(series.find(text).id)))
