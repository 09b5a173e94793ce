# SPDX-License-Identifier: Apache-2.0
"""Commands that change when a lease is, or that end or delete it."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import exception, times
from blazarclient.commands.base import BRIEF, LibraryCommand, OfLease, One, add_lease, add_zone, local, now_in
from blazarclient.commands.booking import OVER
from blazarclient.commands.prices import describe_price
from blazarclient.commands.refusals import in_words_of
from blazarclient.utils import API_DATE_FORMAT, read_date

if TYPE_CHECKING:
    from blazarclient.library import Lease


@dataclass(frozen=True)
class Dates:
    """The new dates of a lease; ``start`` None: as it is."""

    end: datetime
    start: datetime | None = None


_PLACES = {"/start_date": "the new start", "/end_date": "the new end"}

PATIENCE = 5.0
"""Seconds to wait for the end of a lease that is ended now."""

_LIMITED = {
    "promised": "what it holds is promised to another lease from then on",
    "limit": "a limit of the project allows no more",
    "range": "it was asked no further than that; the same command once more goes on",
}


class _Change(OfLease, One):
    """Changes dates of a lease that were read before: if they have changed meanwhile, nothing is done."""

    answers = BRIEF

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--dry-run", action="store_true", help="only say whether it would be granted")
        return parser

    def changed(
        self, parsed_args: argparse.Namespace, zone: tzinfo, wanted: Callable[[Lease], Dates]
    ) -> list[tuple[Any, ...]]:
        """Change a lease to the dates that follow from those it has, and return what it is then."""
        try:
            before = self.library.leases.find(parsed_args.id)
        except exception.UnsupportedVersion:
            if parsed_args.dry_run:
                raise
            return self.changed_at_old(parsed_args, zone, wanted)
        dates = wanted(before)
        with in_words_of(_PLACES):
            after = self.library.leases.change_dates(
                before, start_date=dates.start, end_date=dates.end, dry_run=parsed_args.dry_run
            )
        if parsed_args.dry_run:
            costs = f" It would cost {describe_price(after.price, zone)}." if after.price else ""
            self.tell(f"Nothing was changed.{costs} It would be:")
        return self.brief(after, zone, parsed_args)

    def changed_at_old(
        self, parsed_args: argparse.Namespace, zone: tzinfo, wanted: Callable[[Lease], Dates]
    ) -> list[tuple[Any, ...]]:
        """Change a lease at microversion 1.0, which has whole minutes only."""
        manager = self.get_client().lease
        lease_id = self.id_of(parsed_args.id)
        dates = wanted(of_old(manager.get(lease_id)))
        start = None if dates.start is None else minute(dates.start)
        return self.brief(
            of_old(manager.update(lease_id, start_date=start, end_date=minute(dates.end))), zone, parsed_args
        )


class ExtendLease(_Change):
    """Have a lease end later"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        how = parser.add_mutually_exclusive_group(required=True)
        how.add_argument("--by", metavar="<length>", help="end later by so much, such as 2d")
        how.add_argument("--until", metavar="<time>", help="when it ends, such as friday 18:00")
        how.add_argument("--as-far-as-possible", action="store_true", help="end when what it holds is needed by others")
        how.add_argument(
            "--if-free-until",
            metavar="<time>",
            help="shortly before its end, and up to then, have it end later by itself if nobody else wants what it "
            "holds: a time, or +3d after its end; never: it ends when it ends",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Extend it."""
        now = now_in(parsed_args)
        zone = now.tzinfo or timezone.utc
        if parsed_args.if_free_until:
            return self.by_itself(parsed_args, now, zone)

        def wanted(lease: Lease) -> Dates:
            present = end_of(lease).astimezone(zone)
            if parsed_args.by:
                with times.named("--by"):
                    end = times.read_duration(parsed_args.by).after(present)
            elif parsed_args.until:
                with times.named("--until"):
                    end = times.read_time(parsed_args.until, now=now, start=present)
            else:
                end = self.farthest(lease, zone)
            if times.utc(end) <= times.utc(present):
                raise exception.IncorrectLease(
                    f"Lease {lease.name} lasts until {local(present, zone)} already, which is not before "
                    f"{local(end, zone)}; to end it sooner, use lease update or lease end"
                )
            return Dates(end)

        try:
            return self.changed(parsed_args, zone, wanted)
        except exception.NotEnoughResources as error:
            hint = "" if parsed_args.as_far_as_possible else self.hint(parsed_args.id, zone)
            raise exception.NotEnoughResources(
                f"{error}{hint}", faults=error.faults, request_id=error.request_id, code=error.code
            ) from error

    def by_itself(self, parsed_args: argparse.Namespace, now: datetime, zone: tzinfo) -> list[tuple[Any, ...]]:
        """Have it end later by itself, or never more."""
        ends = parsed_args.if_free_until.strip().lower() == "never"
        lease = self.library.leases.find(parsed_args.id)
        with times.named("--if-free-until"):
            present = None if ends else end_of(lease).astimezone(zone)
            until = None if ends else times.utc(times.read_time(parsed_args.if_free_until, now=now, start=present))
        with in_words_of({"/extend_if_free/until": "--if-free-until"}):
            after = self.library.leases.change(
                lease, extend_until=until, stop_extending=ends, dry_run=parsed_args.dry_run
            )
        if parsed_args.dry_run:
            self.tell("Nothing was changed. It would be:")
        return self.brief(after, zone, parsed_args)

    def hint(self, lease_id: str, zone: tzinfo) -> str:
        """Return a sentence on how far a lease can be extended, nothing if it cannot, or if nobody tells."""
        try:
            lease = self.library.leases.find(lease_id)
            extension = self.library.availability(lease_id=str(lease.id), explain=False, alternatives=False).extension
        except exception.BlazarClientException:
            # The refusal, which is told, matters more.
            return ""
        if extension is None or extension.open_until is None or extension.open_until <= end_of(lease):
            return ""
        return f" It can be extended until {local(extension.open_until, zone)}, with --as-far-as-possible."

    def farthest(self, lease: Lease, zone: tzinfo) -> datetime:
        """Return until when a lease can be extended, and say why no further. NotEnoughResources."""
        answer = self.library.availability(lease_id=str(lease.id))
        if answer.extension is None:
            raise exception.BlazarClientException("The service does not say how far the lease can be extended")
        end = answer.extension.open_until or answer.latest
        why = _LIMITED.get(answer.extension.limited_by or "", "")
        why = "; ".join([why, *(refusal.message for refusal in answer.extension.refusals)]).strip("; ")
        if end <= end_of(lease):
            raise exception.NotEnoughResources(
                f"Lease {lease.name} cannot be extended: {why or 'there is no room after it'}"
            )
        if why:
            self.tell(f"It can be extended until {local(end, zone)}: {why}.")
        return end


class MoveLease(_Change):
    """Have a whole lease be earlier or later"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        how = parser.add_mutually_exclusive_group(required=True)
        how.add_argument("--later", "--by", metavar="<length>", help="by how much, such as 2d")
        how.add_argument("--earlier", metavar="<length>", help="by how much, such as 3h")
        how.add_argument("--to", metavar="<time>", help="when it begins, such as monday 9:00")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Move it."""
        now = now_in(parsed_args)
        zone = now.tzinfo or timezone.utc

        def wanted(lease: Lease) -> Dates:
            start, end = start_of(lease).astimezone(zone), end_of(lease).astimezone(zone)
            if parsed_args.later:
                with times.named("--later"):
                    length = times.read_duration(parsed_args.later)
                    return Dates(length.after(end), length.after(start))
            if parsed_args.earlier:
                with times.named("--earlier"):
                    length = times.read_duration(parsed_args.earlier)
                    return Dates(length.before(end), length.before(start))
            with times.named("--to"):
                begin = times.read_time(parsed_args.to, now=now, start=start)
            # Elapsed time, as it was booked: by way of UTC.
            lasted = end_of(lease).astimezone(timezone.utc) - start_of(lease).astimezone(timezone.utc)
            return Dates(begin.astimezone(timezone.utc) + lasted, begin)

        return self.changed(parsed_args, zone, wanted)


class EndLease(OfLease, One):
    """End an active lease now, and keep it in the history"""

    answers = BRIEF

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """End it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        lease_id = self.id_of(parsed_args.id)
        manager = self.get_client().lease
        try:
            lease = self.end(lease_id)
            look = functools.partial(self.library.leases.get, lease_id)
        except exception.UnsupportedVersion:
            lease = of_old(manager.update(lease_id, end_date="now"))
            look = functools.partial(_old, manager, lease_id)
        return self.brief(self.ended(lease, look), zone, parsed_args)

    def ended(self, lease: Lease, look: Callable[[], Lease]) -> Lease:
        """Return the lease once it is over, or as it is after ``PATIENCE`` seconds, and say that its end goes on."""
        from blazarclient.library.waiting import looks

        going_on = f"Lease {lease.name} is ending: what it holds is given back"
        try:
            if lease.status in OVER:
                return lease
            for lease in looks(look, timeout=PATIENCE, every=0.5, clock=time.monotonic, sleep=time.sleep):
                if lease.status in OVER:
                    return lease
        except exception.ServiceUnavailable as error:
            self.tell(f"{going_on}, but the service does not tell at the moment: {error}")
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"No longer waiting. {going_on}.") from None
        else:
            self.tell(f"{going_on}; lease watch {lease.name} tells when that is done.")
        return lease

    def end(self, lease_id: str) -> Lease:
        """End a lease. IncorrectLease if it has not begun: then it would have no length."""
        try:
            return self.library.leases.end(lease_id)
        except exception.InvalidRequest:
            found = self.library.leases.get(lease_id)
            if found.status != "PENDING":
                raise
        raise exception.IncorrectLease(f"Lease {found.name} has not begun, and cannot be ended; use lease delete")


class ConfirmLease(OfLease, One):
    """Confirm a lease that was booked with --confirm-within: it is firm from then on"""

    answers = BRIEF

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Confirm it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.brief(self.library.leases.confirm(self.id_of(parsed_args.id)), zone, parsed_args)


class KeepLease(OfLease, One):
    """Keep a lease that nobody uses from being released, once"""

    answers = BRIEF

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Keep it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.brief(self.library.leases.keep(self.id_of(parsed_args.id)), zone, parsed_args)


class HoldLease(One):
    """Hold a lease, so that it is never released because nobody uses it

    By default operators may do that.
    """

    answers = BRIEF

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        parser.add_argument("--let-go", action="store_true", help="hold it no longer")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Hold it, or let go of it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        leases = self.library.leases
        act = leases.let_go if parsed_args.let_go else leases.hold
        return self.brief(act(self.id_of(parsed_args.id)), zone, parsed_args)


class DeleteLease(LibraryCommand):
    """Delete leases, and give back what they hold"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<lease>", nargs="+", help="id or name of a lease")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Delete each, and say of each what has become of it; the exit code is that of the first that failed."""
        return self.each(parsed_args.id, "lease", lambda text: self.get_client().lease.delete(self.id_of(text)))


def start_of(lease: Lease) -> datetime:
    """Return when a lease begins. BlazarClientException if the service does not tell."""
    if lease.start_date is None:
        raise exception.BlazarClientException(f"The service does not say when lease {lease.name} begins")
    return lease.start_date


def end_of(lease: Lease) -> datetime:
    """Return when a lease ends. BlazarClientException if the service does not tell."""
    if lease.end_date is None:
        raise exception.BlazarClientException(f"The service does not say when lease {lease.name} ends")
    return lease.end_date


def _old(manager: Any, lease_id: str) -> Lease:
    return of_old(manager.get(lease_id))


def minute(value: datetime) -> str:
    """Return a date as microversion 1.0 takes it."""
    return value.astimezone(timezone.utc).strftime(API_DATE_FORMAT)


def of_old(found: dict[str, Any]) -> Lease:
    """Return a lease of microversion 1.0, as far as these commands tell of it."""
    from blazarclient.library import Lease

    return Lease(
        id=str(found["id"]),
        name=str(found["name"]),
        status=str(found["status"]),
        start_date=read_date(str(found["start_date"])),
        end_date=read_date(str(found["end_date"])),
    )
