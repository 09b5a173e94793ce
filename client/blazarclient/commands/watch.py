# SPDX-License-Identifier: Apache-2.0
"""``lease watch`` and ``why``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING

from blazarclient.commands.base import LibraryCommand, OfLease, add_every, add_lease, add_zone, clock, local, now_in
from blazarclient.commands.booking import FAILED, OVER
from blazarclient.commands.listing import IN_LINE, conditions, probable, waits
from blazarclient.text_columns import say

if TYPE_CHECKING:
    from blazarclient.library import Lease
    from blazarclient.library.values import Wait

STATUSES = (
    *("CREATING", "PENDING", "IN_PROGRESS", "STARTING", "ACTIVE", "UPDATING"),
    *("TERMINATING", "TERMINATED", "DELETING", "ERROR", "WAITING", "TIMED_OUT"),
)


class WatchLease(LibraryCommand):
    """Write a line each time a lease changes, until it is over

    The exit code is 0 when it has ended, or has the status that was waited for; 1 when it has failed, or has waited for
    its turn in vain. Of a lease in line its place and its probable start are told.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        parser.add_argument(
            "--until", metavar="<status>", type=str.upper, choices=STATUSES, help="stop at a status, such as ACTIVE"
        )
        add_every(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Watch it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        until = parsed_args.until or ""
        for lease in self.seen(self.lease_of(parsed_args.id), parsed_args.every):
            say(_line(lease, zone), self.app.stdout, indent="  ")
            if until and lease.status == until:
                return 0
            if lease.status in OVER or lease.deleted_at is not None:
                return 1 if until or lease.status in FAILED else 0
        return 1

    def seen(self, lease: Lease, every: float) -> Iterator[Lease]:
        """Yield a lease as it is and each time it has changed, also across times without an answer."""
        last: tuple[int, Wait | None] | None = None
        watched = self.library.leases.watch(
            str(lease.id), every=every, when_silent=lambda error: self.tell(f"{error}; still watching.")
        )
        for now in watched:
            # A place in line changes without a revision.
            if (now.revision, now.wait) != last:
                last = now.revision, now.wait
                yield now


class Why(OfLease):
    """Say what is wrong with a lease, and why"""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Say it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        lease = self.lease_of(parsed_args.id)
        say(_headline(lease, zone), self.app.stdout)
        for sentence in (*conditions(lease, zone), *_events(lease, zone)):
            say(f"  {sentence}", self.app.stdout)


def _line(lease: Lease, zone: tzinfo) -> str:
    when = local(clock().replace(microsecond=0), zone)
    if lease.wait and lease.status in IN_LINE and not lease.deleted_at:
        # It has nothing, and its dates are those of the estimate.
        return f"{when}  {lease.status}, {waits(lease.wait, zone, lease.status)}"
    resources = sum(len(reservation.allocations) for reservation in lease.reservations)
    status = "deleted" if lease.deleted_at else lease.status + (" (degraded)" if lease.degraded else "")
    dates = f"{local(lease.start_date, zone)} to {local(lease.end_date, zone)}"
    why = f"; {lease.reason.message}" if lease.reason and (lease.degraded or lease.status == "ERROR") else ""
    plural = "" if resources == 1 else "s"
    return f"{when}  {status}, {dates}, {resources} resource{plural}{why}"


def _headline(lease: Lease, zone: tzinfo) -> str:
    status = f"Lease {lease.name} is {lease.status}"
    if lease.deleted_at is not None:
        return f"Lease {lease.name} was deleted at {local(lease.deleted_at, zone)}."
    if lease.status == "TERMINATED":
        status = f"Lease {lease.name} ended at {local(lease.end_date, zone)}"
    elif lease.status == "PENDING":
        status += f" and begins at {local(lease.start_date, zone)}"
    elif lease.status == "ACTIVE":
        status += f" until {local(lease.end_date, zone)}"
    elif lease.wait and lease.status == "WAITING":
        return f"Lease {lease.name} waits for its turn until {local(lease.wait.until, zone)}{_place(lease.wait, zone)}."
    elif lease.wait and lease.status == "TIMED_OUT":
        why = f": {lease.wait.reason}" if lease.wait.reason else ""
        return f"Lease {lease.name} has waited for its turn in vain, until {local(lease.wait.until, zone)}{why}."
    if lease.release_at:
        status += f", and is released at {local(lease.release_at, zone)} because nobody uses it"
    if lease.degraded:
        return f"{status}, but not all of it is as it was promised:"
    if lease.conditions or any(event.reason for event in lease.events):
        return f"{status}:"
    return f"{status}; nothing is known to be wrong."


def _place(wait: Wait, zone: tzinfo) -> str:
    place = f"; it is number {wait.position} in line" if wait.position else ""
    estimate = probable(wait)
    start = f", and probably starts at {local(estimate, zone)}" if estimate else ""
    return f"{place}{start}: {wait.reason}" if wait.reason else f"{place}{start}"


def _events(lease: Lease, zone: tzinfo) -> Iterator[str]:
    told = {condition.reason.message for condition in lease.conditions if condition.reason}
    for event in sorted(lease.events, key=lambda event: event.time):
        if event.reason is None or event.reason.message in told:
            continue
        tries = f", tried {event.attempts} times" if event.attempts > 1 else ""
        again = f"; tried again at {local(event.next_attempt_at, zone)}" if event.next_attempt_at else ""
        yield f"{event.event_type} at {local(event.time, zone)}{tries}: {event.reason.message}{again}"
