# SPDX-License-Identifier: Apache-2.0
"""``lease update``: as the existing client has it, and with times of the user's zone."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands import asked as forms
from blazarclient.commands.base import LibraryCommand, add_keep_hosts, add_zone, now_in, refuse_empty
from blazarclient.commands.change import end_of, minute, of_old, start_of
from blazarclient.commands.refusals import Places, in_words_of, of_reminders, of_reservations
from blazarclient.commands.reminders import add_reminders, read_reminders
from blazarclient.exception import IncorrectLease, UnsupportedVersion
from blazarclient.utils import API_DATE_FORMAT, elapsed
from blazarclient.v1.shell_commands import leases as old

if TYPE_CHECKING:
    from blazarclient.library import Lease

USUAL = "default"
"""For ``--before-end``: as long before the end as the operator has set."""

_STARTS = ("begins", "start_date", "defer_by", "advance_by")
_ENDS = ("ends", "end_date", "prolong_for", "reduce_by")
_WARNINGS = ("warned", "before_end_date")
_OPTIONS = {"begins": "--start", "ends": "--end", "warned": "--before-end"}
"""Options whose attribute is not called as they are."""


@dataclass(frozen=True)
class Dates:
    """The new dates of a lease; None: as it is. ``resets``: the warning is as usual again."""

    start: datetime | None = None
    end: datetime | None = None
    before_end: datetime | None = None
    resets: bool = False


class UpdateLease(LibraryCommand, old.UpdateLease):
    """Change a lease

    Times of --start, --end and --before-end are those of your zone: "tomorrow 9:00", "2026-12-01 09:00", with Z or an
    offset, or +3d: from now, and of an end from the start. --start-date, --end-date and --before-end-date without an
    offset are UTC.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--start", metavar="<time>", dest="begins", help="when it begins, such as tomorrow 9:00")
        parser.add_argument("--end", metavar="<time>", dest="ends", help="when it ends, such as friday 18:00 or +3d")
        parser.add_argument(
            "--before-end",
            metavar="<time>",
            dest="warned",
            help=f"when to warn: a time, 2h before the end, or {USUAL}",
        )
        parser.add_argument("--before-end-date", metavar="<time>", help="when to warn, YYYY-MM-DD HH:MM in UTC")
        parser.add_argument("--max-price", metavar="<amount>", help="change it only if it then costs no more")
        add_keep_hosts(parser)
        add_reminders(parser, instead=True)
        add_zone(parser)
        refuse_empty(parser, "--start", "--end", "--before-end", "--max-price")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change it: by one request of microversion 1.0, unless something more is asked for."""
        for names in (_STARTS, _ENDS, _WARNINGS):
            given = [_option(name) for name in names if getattr(parsed_args, name)]
            if len(given) > 1:
                raise IncorrectLease(f"{' and '.join(given)} are both given; give one of them")
        if not _new(parsed_args):
            old.UpdateLease.take_action(self, parsed_args)
            return
        body = self.args2body(parsed_args)
        changes = [forms.changed(each) for each in body.get("reservations", ())]
        changed = True
        try:
            lease = self.library.leases.find(parsed_args.id)
            dates = self.dates(lease, parsed_args)
            with in_words_of(_places(parsed_args)):
                after = self.library.leases.change(
                    str(lease.id),
                    name=parsed_args.name or None,
                    start_date=dates.start,
                    end_date=dates.end,
                    before_end_date=dates.before_end,
                    reset_before_end=dates.resets,
                    reservations=changes or None,
                    reminders=self.reminders(parsed_args),
                    max_price=parsed_args.max_price,
                    keep_hosts=parsed_args.keep_hosts,
                    if_match=lease.etag,
                )
            # A change to the present values leaves the revision as it was.
            changed = after.revision != lease.revision
        except UnsupportedVersion as error:
            self.changed_at_old(body, parsed_args, error)
        self.tell_changed(parsed_args, changed, "it is so already")

    def changed_at_old(self, body: dict[str, Any], parsed_args: argparse.Namespace, error: UnsupportedVersion) -> None:
        """Change a lease at microversion 1.0, which has whole minutes, and no change of the warning."""
        if any(getattr(parsed_args, name) for name in _WARNINGS):
            raise UnsupportedVersion(f"The warning cannot be changed: {error}") from error
        if _reminds(parsed_args):
            raise UnsupportedVersion(f"Reminders cannot be changed: {error}") from error
        if parsed_args.max_price is not None:
            raise UnsupportedVersion(f"Nothing has a price: {error}") from error
        if parsed_args.keep_hosts is not None:
            raise UnsupportedVersion(f"It cannot be said who keeps hosts: {error}") from error
        manager = self.get_client().lease
        lease_id = self.id_of(parsed_args.id)
        dates = self.dates(of_old(manager.get(lease_id)), parsed_args)
        new = {"start_date": dates.start, "end_date": dates.end}
        plain = {key: body[key] for key in ("name", "reservations") if key in body}
        manager.update(lease_id, **plain, **{key: minute(value) for key, value in new.items() if value is not None})

    def reminders(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]] | None:
        """Return the new reminders, None if they stay as they are. BadTime."""
        given = parsed_args.reminders or ()
        return read_reminders(given, now_in(parsed_args)) if _reminds(parsed_args) else None

    def dates(self, lease: Lease, parsed_args: argparse.Namespace) -> Dates:
        """Return the new dates that follow from those that a lease has. BadTime names the option."""
        now = now_in(parsed_args)
        start = _time("begins", parsed_args, now) or _time("start_date", parsed_args, now)
        if start is None and (parsed_args.defer_by or parsed_args.advance_by):
            start = start_of(lease) + _moved(parsed_args.defer_by, parsed_args.advance_by)
        from_start = (start or start_of(lease)).astimezone(now.tzinfo)
        end = _time("ends", parsed_args, now, from_start) or _time("end_date", parsed_args, now, from_start)
        if end is None and (parsed_args.prolong_for or parsed_args.reduce_by):
            end = end_of(lease) + _moved(parsed_args.prolong_for, parsed_args.reduce_by)
        if (parsed_args.warned or "").strip().lower() == USUAL:
            return Dates(start, end, resets=True)
        until = (end or end_of(lease)).astimezone(now.tzinfo)
        return Dates(start, end, self.warning(parsed_args, now, from_start, until))

    def warning(
        self, parsed_args: argparse.Namespace, now: datetime, start: datetime, end: datetime
    ) -> datetime | None:
        """Return when to warn, None if nothing is said of it."""
        if parsed_args.warned:
            with times.named("--before-end"):
                return forms.warning(parsed_args.warned, now, start, end)
        return _time("before_end_date", parsed_args, now, start)


def _option(name: str) -> str:
    return _OPTIONS.get(name) or "--" + name.replace("_", "-")


def _places(parsed_args: argparse.Namespace) -> Places:
    """Return what has said the parts of the request."""
    named = (("/start_date", _STARTS), ("/end_date", _ENDS), ("/before_end_date", _WARNINGS))
    dates = {place: next((_option(name) for name in names if getattr(parsed_args, name)), "") for place, names in named}
    given = {place: option for place, option in dates.items() if option}
    reminders = of_reminders(len(parsed_args.reminders or ()))
    price = {"/max_price": "--max-price"} if parsed_args.max_price is not None else {}
    if parsed_args.keep_hosts is not None:
        given["/keep_hosts"] = "--keep-hosts" if parsed_args.keep_hosts else "--no-keep-hosts"
    return {**of_reservations([("--reservation", len(parsed_args.reservation or ()))]), **reminders, **price, **given}


def _reminds(parsed_args: argparse.Namespace) -> bool:
    return bool(parsed_args.reminders or parsed_args.no_reminders)


def _new(parsed_args: argparse.Namespace) -> bool:
    """Return whether something is asked for that the existing client has not."""
    if parsed_args.max_price is not None or parsed_args.keep_hosts is not None or _reminds(parsed_args):
        return True
    if any(getattr(parsed_args, name) for name in (*_OPTIONS, *_WARNINGS)):
        return True
    dates = (parsed_args.start_date, parsed_args.end_date)
    return any(text and not _is_old(text) for text in dates)


def _is_old(text: str) -> bool:
    if text == old.NOW:
        return True
    try:
        datetime.strptime(text, API_DATE_FORMAT)
    except ValueError:
        return False
    return True


def _time(name: str, parsed_args: argparse.Namespace, now: datetime, start: datetime | None = None) -> datetime | None:
    """Return the time of an option; those of the existing client are of UTC, if they do not say otherwise.

    BadTime; IncorrectLease for an option of the existing client, whose exit code is that of a refusal.
    """
    text: str | None = getattr(parsed_args, name)
    if not text:
        return None
    # What counts from a date has no zone; its days are those of the user.
    local = name in _OPTIONS or text.startswith("+")
    try:
        return times.read_time(text, now=now if local else now.astimezone(timezone.utc), start=start)
    except times.BadTime as error:
        wrong = times.BadTime if name in _OPTIONS else IncorrectLease
        raise wrong(f"{_option(name)}: {error}") from None


def _moved(later: str | None, earlier: str | None) -> Any:
    return elapsed(later) if later else -elapsed(str(earlier))
