# SPDX-License-Identifier: Apache-2.0
"""``lease create``, with all that microversions beyond 1.0 add to it."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from blazarclient import times
from blazarclient.command import exit_code, told
from blazarclient.commands import asked as forms
from blazarclient.commands.base import (
    LibraryCommand,
    add_keep_hosts,
    add_zone,
    check_columns,
    now_in,
    refuse_empty,
    utc,
)
from blazarclient.commands.booking import Booked, Progress, book, may_be_booked, uncertain_of_old, wait_active
from blazarclient.commands.listing import in_line, outline
from blazarclient.commands.refusals import Places, in_words_of, of_reminders, of_reservations
from blazarclient.commands.reminders import add_reminders
from blazarclient.exception import (
    BlazarClientException,
    CommandError,
    IncorrectLease,
    InvalidRequest,
    ServiceUnavailable,
    TooManyRequests,
    UnsupportedVersion,
)
from blazarclient.reservation_text import check_references
from blazarclient.v1.shell_commands import leases as old

KEYS = (
    *("id", "name", "status", "degraded", "start_date", "end_date", "reservations", "events"),
    *("project_id", "user_id", "trust_id", "created_at", "updated_at"),
)
"""Keys of a lease at microversion 1.0."""

_IN_LINE = ("waits", "wait")
"""Keys that a lease in line has besides: a sentence, and for programs its parts."""

PAUSES = (0.5, 1.0, 2.0)
"""Seconds between tries to read a lease that was booked."""

_NEW_OPTIONS = ("begins", "ends", "warned", "duration", "timezone", "file")
"""Options that the existing client does not have."""


_DATES: Mapping[str, Sequence[tuple[str, str]]] = {
    "/start_date": (("begins", "--start"), ("start", "--start-date")),
    "/end_date": (("ends", "--end"), ("end", "--end-date"), ("duration", "--duration")),
    "/before_end_date": (("warned", "--before-end"), ("before_end", "--before-end-date")),
}
"""What can say the dates of a request; a file can, too, under a key."""

_PLACES: Mapping[str, str] = {
    "/wait/until": "queue_until",
    "/wait/latest": "latest_start",
    "/wait/at_least": "at_least",
    "/wait/tries": "tries",
    "/extend_if_free": "if_free_until",
    "/max_price": "max_price",
    "/quoted_at": "quoted_at",
    "/keep_hosts": "keep_hosts",
    "/confirm_within": "confirm_within",
    "/kind": "kind",
}
"""What the options beyond those of microversion 1.0 say, by their attributes, which are also the keys of a file."""


_OF_LINE = ("--queue-until", "--latest-start", "--at-least", "--if-free-until")


class CreateLease(LibraryCommand, old.CreateLease):
    """Book a lease

    Times are those of your zone: "tomorrow 9:00", "2026-12-01 09:00", with Z or an offset, or +3d. --start-date,
    --end-date and --before-end-date without an offset are UTC, as they ever were.
    """

    own_options = ("--timeout",)
    may_wait = False
    """Whether the lease that was asked for may be in line."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        for action in parser._actions:
            if action.dest == "name":
                # A file may have it.
                action.nargs, action.required = "?", False
            elif action.dest == "start":
                action.default = None
        parser.add_argument("--start", metavar="<time>", dest="begins", help="when it begins (default: now)")
        parser.add_argument("--end", metavar="<time>", dest="ends", help="when it ends, such as friday 18:00 or +3d")
        parser.add_argument("--duration", metavar="<length>", help="how long it lasts, such as 3d12h (default: a day)")
        parser.add_argument(
            "--before-end",
            metavar="<time>",
            dest="warned",
            help="when to warn: a time, or 2h before the end",
        )
        add_zone(parser)
        parser.add_argument(
            "--kind",
            metavar="<kind>",
            help="scheduled; immediate: handed over now, or refused within a minute, and nothing is left of it; or "
            "retries: if it cannot be started, it is tried again at its next turn (needs --queue-until); best_effort: "
            "servers of others are moved off its hosts if need be",
        )
        parser.add_argument(
            "--queue-until",
            metavar="<time>",
            help="if not enough is free, wait in line until then, such as friday or +3d, and start at its turn",
        )
        parser.add_argument(
            "--latest-start",
            metavar="<time>",
            help="the latest start that will do for a lease in line: a time, or +6h from its start",
        )
        parser.add_argument(
            "--at-least",
            metavar="<length>",
            help="how long a lease in line has to be at least, such as 4h, if it cannot be as long as it asks for",
        )
        parser.add_argument(
            "--tries", metavar="<number>", type=_count, help="how many tries of the kind retries may fail"
        )
        parser.add_argument(
            "--if-free-until",
            metavar="<time>",
            help="shortly before its end, and up to then, have it end later by itself if nobody else wants what it "
            "holds: a time, or +3d after its end",
        )
        parser.add_argument(
            "--max-price", metavar="<amount>", help="book it only if it costs no more, such as 640.00; see --dry-run"
        )
        parser.add_argument(
            "--quoted-at",
            metavar="<date>",
            help="when its price was quoted, as --dry-run tells: for some minutes it costs no more than that",
        )
        add_keep_hosts(parser)
        parser.add_argument(
            "--confirm-within",
            metavar="<time>",
            help="delete it after so long, such as 10m, unless it is confirmed before; see lease confirm",
        )
        add_reminders(parser)
        parser.add_argument("-F", "--file", metavar="<file>", help="the lease as YAML or JSON; - reads stdin")
        parser.add_argument("--wait", action="store_true", help="wait until it is active; exit code 1 if it fails")
        parser.add_argument("--timeout", metavar="<seconds>", help="how long to wait; then exit code 8")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be booked")
        parser.add_argument(
            "--idempotency-key", metavar="<key>", help="never book twice with this key, however often it is tried"
        )
        refuse_empty(
            parser, "--start", "--end", "--duration", "--before-end", "--kind", "--max-price", "--quoted-at", *_OF_LINE
        )
        return parser

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Book it, and return its keys and values as microversion 1.0 tells them."""
        if parsed_args.timeout and not parsed_args.wait:
            raise CommandError("--timeout is for --wait; give both", code=400)
        if parsed_args.timeout:
            # Nothing is booked if it cannot be read.
            _seconds(parsed_args.timeout)
        if parsed_args.idempotency_key == "":
            # As of a variable that is not set: without a key, the same command would book twice.
            raise CommandError("--idempotency-key is empty; give 1 to 255 visible ASCII characters", code=400)
        asked = self.asked(parsed_args)
        places = _places(asked, parsed_args)
        window = forms.window(asked, now_in(parsed_args), places)
        with in_words_of(places):
            if parsed_args.dry_run:
                return self.tried(asked, window, parsed_args)
            check_columns(parsed_args, (*KEYS, *(_IN_LINE if asked.queue_until else ())))
            try:
                found = self.booked(asked, window, parsed_args)
            except KeyboardInterrupt as stop:
                # Once something is sent, it is told what has become of it.
                raise KeyboardInterrupt(str(stop) or "Stopped; nothing was booked.") from None
        return self.after(found, asked, parsed_args)

    def after(self, found: Booked, asked: forms.Asked, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return the keys and values of a lease that is booked, whatever happens now."""
        lease_id = found.id
        self.may_wait = bool(asked.queue_until)
        booked = "booked, or in line" if self.may_wait else "booked"
        try:
            if found.again and parsed_args.idempotency_key:
                self.tell(f"Lease {asked.name} was booked before with this key.")
            else:
                self.tell_done("Created a new lease:", parsed_args)
            if asked.confirm_within:
                # The table is that of microversion 1.0, which knows nothing of it.
                self.tell(f"It is deleted in {asked.confirm_within}, unless it is confirmed: lease confirm {lease_id}")
            data = self.waited(lease_id, parsed_args) if parsed_args.wait else self.read(lease_id, parsed_args)
            if self.may_wait:
                # Who asks for these columns gets them, whatever has become of it.
                data = {**{key: None for key in _IN_LINE if key in (parsed_args.columns or ())}, **data}
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(str(stop) or f"Stopped, but lease {asked.name} is {booked}: {lease_id}") from None
        except Exception as error:
            ours = told(error)
            if ours is None:
                raise
            self.tell(f"Lease {asked.name} is {booked}, but cannot be shown: {ours}")
            data = {**dict.fromkeys(KEYS), "id": lease_id, "name": asked.name}
        return self.shown(data, parsed_args)

    def asked(self, parsed_args: argparse.Namespace) -> forms.Asked:
        """Return the lease that options and file ask for; options go first."""
        for new, former, words in (
            ("begins", "start", "--start and --start-date"),
            ("ends", "end", "--end and --end-date"),
            ("warned", "before_end", "--before-end and --before-end-date"),
        ):
            if getattr(parsed_args, new) and getattr(parsed_args, former):
                raise IncorrectLease(f"{words} are both given; give one of them")
        asked = forms.read_file(parsed_args.file) if parsed_args.file else forms.Asked()
        parsed_args.timezone = parsed_args.timezone or asked.timezone
        given: dict[str, Any] = {
            "name": parsed_args.name,
            "start": parsed_args.begins or _in_utc("--start-date", parsed_args.start, parsed_args),
            "end": parsed_args.ends or _in_utc("--end-date", parsed_args.end, parsed_args),
            "duration": parsed_args.duration,
            "before_end": parsed_args.warned or _in_utc("--before-end-date", parsed_args.before_end, parsed_args),
            "reservations": self.reservations(parsed_args),
            "kind": parsed_args.kind,
            "queue_until": parsed_args.queue_until,
            "tries": parsed_args.tries,
            "latest_start": parsed_args.latest_start,
            "at_least": parsed_args.at_least,
            "if_free_until": parsed_args.if_free_until,
            "max_price": parsed_args.max_price,
            "quoted_at": parsed_args.quoted_at,
            "reminders": parsed_args.reminders,
            "keep_hosts": parsed_args.keep_hosts,
            "confirm_within": parsed_args.confirm_within,
        }
        if given["duration"] and not given["end"]:
            asked = dataclasses.replace(asked, end=None)
        elif given["end"] and not given["duration"]:
            asked = dataclasses.replace(asked, duration=None)
        chosen: dict[str, Any] = {key: value for key, value in given.items() if value or value is False}
        asked = dataclasses.replace(asked, **chosen)
        if not asked.name:
            raise IncorrectLease("The lease has no name; give one")
        if not asked.reservations:
            raise IncorrectLease("Nothing is reserved; add --reservation resource_type=physical:host,min=1,max=1")
        check_references(asked.reservations)
        return asked

    def body(self, asked: forms.Asked, window: forms.Window, now: datetime) -> dict[str, Any]:
        """Return the request."""
        return {
            "name": asked.name,
            **({"kind": asked.kind} if asked.kind else {}),
            **forms.wait(asked, now),
            **forms.extension(asked, window, now),
            **window.dates(),
            **forms.reminders(asked, now),
            **({} if asked.max_price is None else {"max_price": asked.max_price}),
            **({} if asked.quoted_at is None else {"quoted_at": asked.quoted_at}),
            **({} if asked.keep_hosts is None else {"keep_hosts": asked.keep_hosts}),
            **forms.confirmation(asked),
            "reservations": [forms.modern(reservation) for reservation in asked.reservations],
        }

    def booked(self, asked: forms.Asked, window: forms.Window, parsed_args: argparse.Namespace) -> Booked:
        """Book the lease; a service that knows only microversion 1.0 is asked as ever."""
        key = parsed_args.idempotency_key
        if parsed_args.events and key:
            raise CommandError("--event and --idempotency-key do not go together: leave one out", code=400)
        # Microversion 1.0 does not know regions: it would book in any.
        regional = any("region" in each for each in asked.reservations)
        if parsed_args.events and regional:
            raise CommandError("--event and a region do not go together: leave one out", code=400)
        if parsed_args.events and asked.new_kind:
            raise CommandError(
                "--event and a kind, a place in line, or reminders do not go together: leave one out", code=400
            )
        # Events of one's own are known at microversion 1.0 only.
        if parsed_args.events:
            return self.booked_of_old(asked, window, parsed_args)
        new_key = key or str(uuid.uuid4())
        try:
            # Asked beforehand: a service that does not know of versions would book, and its answer not be understood.
            self.library.info()
            return self.new(
                self.body(asked, window, now_in(parsed_args)), new_key, _again(parsed_args, window, new_key)
            )
        except UnsupportedVersion as error:
            if key:
                raise UnsupportedVersion(f"--idempotency-key cannot be had: {error}") from error
            if regional or asked.new_kind:
                raise
            return self.booked_of_old(asked, window, parsed_args)
        except InvalidRequest:
            # Nothing was booked. Microversion 1.0 takes more: long names, words for truth values, ends without an end.
            if key or regional or asked.new_kind or any(getattr(parsed_args, name) for name in _NEW_OPTIONS):
                raise
            try:
                return self.booked_of_old(asked, window, parsed_args)
            except InvalidRequest:
                pass
            raise

    def new(self, body: dict[str, Any], key: str, again: str) -> Booked:
        """Book a lease with a key."""
        return book(self.library.transport, body, key, again)

    def booked_of_old(self, asked: forms.Asked, window: forms.Window, parsed_args: argparse.Namespace) -> Booked:
        """Book the lease at microversion 1.0."""
        events = [old.read_event(text) for text in parsed_args.events]
        manager = self.get_client().lease
        name = str(asked.name)
        try:
            data = manager.create(name=name, **window.old_dates(), reservations=list(asked.reservations), events=events)
        except KeyboardInterrupt:
            raise uncertain_of_old(name, "stopped before the answer came") from None
        except Exception as error:
            ours = told(error)
            if ours is None or not may_be_booked(ours):
                raise
            raise uncertain_of_old(name, str(ours)) from error
        return Booked(str(data["id"]), again=False)

    def tried(self, asked: forms.Asked, window: forms.Window, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return what would be booked."""
        # A service that does not know of it would book.
        self.library.info()
        body = self.body(asked, window, now_in(parsed_args))
        answer = self.library.transport.ask("POST", "/leases", body=body, query={"dry_run": True}, repeatable=True)
        waits = answer.part("lease").get("status") == "WAITING"
        self.tell("Nothing was booked. It would wait for its turn:" if waits else "Nothing was booked. It would be:")
        if parsed_args.formatter != "table":
            return self.shown(dict(answer.part("lease")), parsed_args)
        # Not needed for the list of commands.
        from blazarclient.library.decoding import decode
        from blazarclient.library.values import Lease

        zone = now_in(parsed_args).tzinfo or timezone.utc
        values = outline(decode(Lease, answer.part("lease")), zone)
        return [tuple(values), tuple(values.values())]

    def lease(self, lease_id: str, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return a lease as microversion 1.0 tells it, and how it waits if it is in line."""
        found: dict[str, Any] = self.get_client().lease.get(lease_id)
        return {**found, **in_line(self, found, parsed_args)} if self.may_wait else found

    def read(self, lease_id: str, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return a lease that was booked; a service that fails for a moment is asked again."""
        for pause in PAUSES:
            try:
                return self.lease(lease_id, parsed_args)
            except Exception as error:
                if not isinstance(told(error), ServiceUnavailable | TooManyRequests):
                    raise
            time.sleep(pause)
        return self.lease(lease_id, parsed_args)

    def waited(self, lease_id: str, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the lease once it has begun, or failed, which is the command's exit code."""
        limit = _seconds(parsed_args.timeout) if parsed_args.timeout else None
        try:
            look = functools.partial(self.lease, lease_id, parsed_args)
            lease = wait_active(look, timeout=limit, progress=Progress(), clock=time.monotonic, sleep=time.sleep)
        except KeyboardInterrupt:
            stays = "stays booked, or in line" if self.may_wait else "stays booked"
            raise KeyboardInterrupt(f"No longer waiting; the lease {stays}: {lease_id}") from None
        except BlazarClientException as error:
            self.tell(str(error))
            self.outcome = exit_code(error)
            return self.read(lease_id, parsed_args)
        if lease["status"] != "ACTIVE":
            self.outcome = 1
            told = f"Lease {lease['name']} is {lease['status']}"
            waited = f": it has waited {lease['waits']}" if lease.get("waits") else f". {self.reason(lease_id)}"
            self.tell(f"{told}{waited}".rstrip())
        return dict(lease)

    def reason(self, lease_id: str) -> str:
        """Return why a lease failed, nothing if the service does not tell."""
        try:
            reason = self.library.leases.get(lease_id).reason
        except BlazarClientException:
            return ""
        return reason.message if reason else ""


def _again(parsed_args: argparse.Namespace, window: forms.Window, key: str) -> str:
    """Return which command sends the same request once more, though it is later then."""
    options = []
    if window.start is not None:
        options.append(f"--start{'-date' if parsed_args.start else ''} {utc(window.start)}")
    if window.before_end is not None:
        options.append(f"--before-end{'-date' if parsed_args.before_end else ''} {utc(window.before_end)}")
    return "the same command once more with " + " ".join([*options, f"--idempotency-key {key}"])


def _places(asked: forms.Asked, parsed_args: argparse.Namespace) -> Places:
    """Return what has said the parts of the request."""
    physical = len(getattr(parsed_args, "physical_reservations", ()))
    options = [("--physical-reservation", physical), ("--reservation", len(parsed_args.reservations))]
    if not any(count for _, count in options):
        options = [(f"reservations of {parsed_args.file}", len(asked.reservations))]
    keys = ("start", "duration" if asked.duration else "end", "before_end")
    dates = {
        place: next((option for name, option in given if getattr(parsed_args, name)), key)
        for (place, given), key in zip(_DATES.items(), keys, strict=True)
    }
    new = {
        place: f"--{name.replace('_', '-')}" if getattr(parsed_args, name) else name for place, name in _PLACES.items()
    }
    return {**of_reservations(options), **of_reminders(len(asked.reminders)), **dates, **new}


def _count(text: str) -> int:
    """Return a number from 1 on."""
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    """Return the seconds of a number of them, or of a length of time. BadTime."""
    if text.isdigit():
        return float(text)
    with times.named("--timeout"):
        length = times.read_duration(text)
    return float(86400 * length.days + length.seconds)


def _in_utc(option: str, text: str | None, parsed_args: argparse.Namespace) -> str | None:
    """Return a date of an old option with its zone, which is UTC where it has none; other texts as they are."""
    if not text or text == old.NOW or text.startswith(("+", "-")):
        return text
    try:
        return utc(times.read_time(text, now=now_in(parsed_args).astimezone(timezone.utc)))
    except times.BadTime as error:
        raise IncorrectLease(f"{option}: {error}") from None
