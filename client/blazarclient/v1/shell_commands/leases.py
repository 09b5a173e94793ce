# SPDX-License-Identifier: Apache-2.0
"""Commands about leases."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta, timezone
from typing import Any

from blazarclient import command, exception
from blazarclient.reservation_text import HOST, check_references, read_change, read_reservation
from blazarclient.utils import API_DATE_FORMAT, elapsed

NOW = "now"
USUAL_LENGTH = timedelta(days=1)


class ListLeases(command.ListCommand):
    """List leases"""

    resource = "lease"
    list_columns = ("id", "name", "start_date", "end_date")
    sort_column = "name"


class _OneLease(command.OneCommand):
    resource = "lease"
    given = ("<lease>", "id or name of the lease")


class ShowLease(_OneLease, command.ShowCommand):
    """Show a lease"""


class DeleteLease(_OneLease, command.DeleteCommand):
    """Delete a lease, and give back what it holds"""


class CreateLeaseBase(command.CreateCommand):
    """Book a lease"""

    resource = "lease"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<name>", help="name of the lease")
        parser.add_argument(
            "--start-date", metavar="<time>", dest="start", default=NOW, help="YYYY-MM-DD HH:MM in UTC (default: now)"
        )
        parser.add_argument(
            "--end-date", metavar="<time>", dest="end", help="YYYY-MM-DD HH:MM in UTC (default: a day after the start)"
        )
        parser.add_argument(
            "--before-end-date", metavar="<time>", dest="before_end", help="when to warn, YYYY-MM-DD HH:MM in UTC"
        )
        parser.add_argument(
            "--reservation",
            metavar="<key>=<value>[,<key>=<value>...]",
            action="append",
            dest="reservations",
            default=[],
            help="what to reserve: resource_type and its keys, or a JSON object, or @file (may be repeated)",
        )
        parser.add_argument(
            "--event",
            metavar="event_type=<type>,event_date=<time>",
            action="append",
            dest="events",
            default=[],
            help="an event of your own, kept with the lease (may be repeated)",
        )
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        reservations = self.reservations(parsed_args)
        if not reservations:
            raise exception.IncorrectLease(
                "Nothing is reserved; add --reservation resource_type=physical:host,min=1,max=1"
            )
        check_references(reservations)
        now = datetime.now(timezone.utc)
        start = now if parsed_args.start == NOW else _date("--start-date", parsed_args.start)
        end = _date("--end-date", parsed_args.end) if parsed_args.end else start + USUAL_LENGTH
        # What comes from the command line has no seconds.
        if end <= start.replace(second=0, microsecond=0):
            raise exception.IncorrectLease(f"--end-date {parsed_args.end} is not after the start")
        if parsed_args.before_end and not start <= _date("--before-end-date", parsed_args.before_end) <= end:
            raise exception.IncorrectLease(f"--before-end-date {parsed_args.before_end} is not within the lease")
        return {
            "name": parsed_args.name,
            "start": parsed_args.start,
            "end": parsed_args.end or end.strftime(API_DATE_FORMAT),
            "before_end": parsed_args.before_end,
            "reservations": reservations,
            "events": [read_event(text) for text in parsed_args.events],
        }

    def reservations(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return what to reserve."""
        return [read_reservation(text) for text in parsed_args.reservations]


class CreateLease(CreateLeaseBase):
    """Book a lease"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--physical-reservation",
            metavar="min=<n>,max=<n>[,<key>=<value>...]",
            action="append",
            dest="physical_reservations",
            default=[],
            help="hosts to reserve: min, max, hypervisor_properties, resource_properties, before_end (may be repeated)",
        )
        return parser

    def reservations(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return what to reserve, whole hosts first."""
        hosts = [read_reservation(text, resource_type=HOST) for text in parsed_args.physical_reservations]
        return hosts + super().reservations(parsed_args)


class UpdateLease(_OneLease, command.UpdateCommand):
    """Change a lease"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", metavar="<name>", help="new name")
        end = parser.add_mutually_exclusive_group()
        end.add_argument("--prolong-for", "--prolong_for", metavar="<time>", help="end later by so much, such as 2h")
        end.add_argument("--reduce-by", "--reduce_by", metavar="<time>", help="end earlier by so much")
        end.add_argument("--end-date", metavar="<time>", help="YYYY-MM-DD HH:MM in UTC")
        start = parser.add_mutually_exclusive_group()
        start.add_argument("--defer-by", "--defer_by", metavar="<time>", help="start later by so much")
        start.add_argument("--advance-by", "--advance_by", metavar="<time>", help="start earlier by so much")
        start.add_argument("--start-date", metavar="<time>", help="YYYY-MM-DD HH:MM in UTC, or now")
        parser.add_argument(
            "--reservation",
            metavar="id=<id>,<key>=<value>[,<key>=<value>...]",
            action="append",
            help="change of a reservation of the lease (may be repeated)",
        )
        return parser

    def args2body(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Return the arguments of the manager's method."""
        lengths = ("prolong_for", "reduce_by", "defer_by", "advance_by")
        keys = ("name", *lengths, "end_date", "start_date")
        body: dict[str, Any] = {key: getattr(parsed_args, key) for key in keys if getattr(parsed_args, key)}
        for key in lengths:
            if key in body:
                elapsed(body[key])
        if parsed_args.reservation:
            body["reservations"] = [read_change(text) for text in parsed_args.reservation]
        return body


def _date(option: str, text: str) -> datetime:
    try:
        return datetime.strptime(text, API_DATE_FORMAT).replace(tzinfo=timezone.utc)
    except ValueError:
        raise exception.IncorrectLease(f"{option} is {text!r}; write it as YYYY-MM-DD HH:MM, in UTC") from None


def read_event(text: str) -> dict[str, str]:
    """Return an event of a user's own. IncorrectLease."""
    pairs = dict(part.partition("=")[::2] for part in text.split(","))
    if set(pairs) != {"event_type", "event_date"}:
        raise exception.IncorrectLease(f"--event is {text!r}; write it as event_type=<type>,event_date=<time>")
    _date("event_date", pairs["event_date"])
    return pairs
