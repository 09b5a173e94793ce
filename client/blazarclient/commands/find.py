# SPDX-License-Identifier: Apache-2.0
"""``find``: when is there room?"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import exception, times
from blazarclient.commands.asked import modern
from blazarclient.commands.base import Rows, add_zone, check_columns, local, now_in, utc, zone_name
from blazarclient.commands.booking import book
from blazarclient.commands.refusals import in_words_of, of_reservations
from blazarclient.reservation_text import HOST, check_references, read_reservation
from blazarclient.utils import read_date

if TYPE_CHECKING:
    from blazarclient.library.values import Alternative, Availability, Opening, Proof

NO_ROOM = 5
"""The exit code if there is no opening."""

ROUNDS = 20
"""How often a search goes on that the service has cut short, and how many openings are tried."""

_OTHERS_WAIT = "reservation.others_wait"

COLUMNS = ("start_date", "end_date", "last_start_date", "open_until", "count", "refusals")


@dataclass(frozen=True)
class Found:
    """An opening, as a row; ``lease_id`` if it was booked."""

    start_date: datetime
    end_date: datetime
    last_start_date: datetime
    open_until: datetime | None
    count: Sequence[int]
    refusals: Sequence[str]
    lease_id: str | None = None
    region: Sequence[str | None] = ()


_PLACES = {f"/{name}": f"--{name}" for name in ("duration", "earliest", "latest", "limit")}


class Find(Rows):
    """Find when there is room

    Each row is a time at which all that is asked for is free, for the whole duration: it may begin at any time from
    start_date to last_start_date, and what begins at start_date may last until open_until. count: how many are free
    then, up to max. refusals: limits of the project that it would exceed. The exit code is 5 if there is none.
    """

    # The reasons say it.
    nothing = ""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--host",
            metavar="min=<n>[,<key>=<value>...]",
            action="append",
            dest="hosts",
            default=[],
            help="hosts: min, max, hypervisor_properties, resource_properties, together, spread, lend_beyond (may be "
            "repeated)",
        )
        parser.add_argument(
            "--reservation",
            metavar="<key>=<value>[,<key>=<value>...]",
            action="append",
            dest="reservations",
            default=[],
            help="what to reserve: resource_type and its keys, or a JSON object, or @file (may be repeated)",
        )
        parser.add_argument("--region", metavar="<name>", help="only there, for what names no region of its own")
        parser.add_argument("--duration", metavar="<length>", default="1d", help="for how long (default: 1d)")
        parser.add_argument("--earliest", metavar="<time>", default="now", help="when it may begin (default: now)")
        parser.add_argument("--latest", metavar="<time>", help="when it must have ended (default: 30 days on)")
        parser.add_argument("--limit", metavar="<n>", type=int, help="how many openings (default: 5)")
        parser.add_argument("--book", metavar="<name>", help="book the first that can be had, as a lease of this name")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask, and book if that is wanted."""
        now = now_in(parsed_args)
        zone = now.tzinfo or timezone.utc
        reservations = _reservations(parsed_args)
        with times.named("--duration"):
            length = times.read_duration(parsed_args.duration)
        with times.named("--earliest"):
            start = times.read_time(parsed_args.earliest, now=now)
        with times.named("--latest"):
            latest = utc(times.read_time(parsed_args.latest, now=now, start=start)) if parsed_args.latest else None
        earliest = None if parsed_args.earliest == "now" else utc(start)
        question = {
            "duration": length.iso(),
            "latest": latest,
            "limit": parsed_args.limit,
            "time_zone": zone_name(zone),
        }
        regional = "region" in (parsed_args.columns or ()) or any("region" in each for each in reservations)
        columns = (*COLUMNS, *(("region",) if regional else ()))
        options = [("--host", len(parsed_args.hosts)), ("--reservation", len(parsed_args.reservations))]
        places = {**of_reservations(options), **_PLACES}
        booking = parsed_args.book is not None
        if booking:
            check_columns(parsed_args, (*columns, "lease_id"))
        try:
            with in_words_of(places):
                openings, last = self.search(reservations, earliest, question)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Stopped; nothing was booked." if booking else "") from None
        if parsed_args.book is not None and openings:
            with in_words_of({**places, "/name": "--book"}):
                found = self.booked(parsed_args.book, openings, reservations, zone, last.latest)
            return self.rows((*columns, "lease_id"), found, zone, parsed_args)
        if not openings:
            self.outcome = NO_ROOM
            self.tell("\n".join(_why_not(last, zone)))
        return self.rows(columns, [_found(opening) for opening in openings], zone, parsed_args)

    def search(
        self,
        reservations: Sequence[dict[str, Any]],
        earliest: str | None,
        question: dict[str, Any],
    ) -> tuple[Sequence[Opening], Availability]:
        """Return the openings, and the first answer, which has the reasons if there are none."""
        first = answer = self.library.availability(reservations, earliest=earliest, **question)
        # Reasons and alternatives are about the first window: they are asked for once.
        more = {**question, "latest": utc(answer.latest), "explain": False, "alternatives": False}
        for _ in range(ROUNDS):
            if answer.openings or answer.complete or answer.searched_until is None:
                break
            answer = self.library.availability(reservations, earliest=utc(answer.searched_until), **more)
        if not answer.openings and not answer.complete:
            self.tell(f"The search was cut short at {utc(answer.searched_until)}; go on with --earliest from there.")
        return answer.openings, first

    def booked(
        self,
        name: str,
        openings: Iterable[Opening],
        reservations: Sequence[dict[str, Any]],
        zone: tzinfo,
        latest: datetime,
    ) -> Iterable[Found]:
        """Book the first opening that can be had, and return it; it has ended by ``latest``.

        Taken meanwhile, beyond a limit or awaited by others, it is passed over: NotEnoughResources, LimitExceeded or
        Conflict if all are.
        """
        refused: exception.BlazarClientException | None = None
        left = list(openings)
        for _ in range(ROUNDS):
            if not left:
                break
            opening = left.pop(0)
            if opening.refusals:
                refused = refused or exception.LimitExceeded(opening.refusals[0].message)
                continue
            dates = {"start_date": utc(opening.start_date), "end_date": utc(opening.end_date)}
            body = {"name": name, **dates, "reservations": list(reservations)}
            try:
                key = str(uuid.uuid4())
                booked = book(self.library.transport, body, key, self.again(body, key))
            except (exception.NotEnoughResources, exception.LimitExceeded) as error:
                self.tell(f"{local(opening.start_date, zone)} is taken meanwhile; trying the next.")
                refused = error
                continue
            except exception.Conflict as error:
                if not any(fault.code == _OTHERS_WAIT for fault in error.faults):
                    raise
                self.tell(f"Others wait for what is free at {local(opening.start_date, zone)}; trying the next.")
                refused = error
                after = _after(opening, error)
                if after and after.end_date <= latest and not (left and left[0].start_date <= after.start_date):
                    left.insert(0, after)
                continue
            self.tell(f"Booked lease {name}.")
            return [dataclasses.replace(_found(opening), lease_id=booked.id)]
        raise refused or exception.NotEnoughResources("There is no opening")

    def again(self, body: Mapping[str, Any], key: str) -> str:
        """Return the command that books the same opening, if it was not booked."""
        program = "openstack reservation" if hasattr(self.app, "client_manager") else "blazar"
        options = [f"--reservation {shlex.quote(json.dumps(each))}" for each in body["reservations"]]
        options += [f"--start {body['start_date']} --end {body['end_date']}", f"--idempotency-key {key}"]
        # A terminal breaks long lines; these can be copied as they are.
        return " \\\n  ".join([f"{program} lease create {shlex.quote(body['name'])}", *options])


def _reservations(parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
    wanted = [read_reservation(text, resource_type=HOST) for text in parsed_args.hosts]
    wanted += [read_reservation(text) for text in parsed_args.reservations]
    if not wanted:
        raise exception.IncorrectLease("Nothing is asked for; add --host min=1, or --reservation")
    check_references(wanted)
    where = {} if parsed_args.region is None else {"region": parsed_args.region}
    return [{**where, **modern(each)} for each in wanted]


def _found(opening: Opening) -> Found:
    return Found(
        start_date=opening.start_date,
        end_date=opening.end_date,
        last_start_date=opening.last_start_date,
        open_until=opening.open_until,
        count=[each.count for each in opening.reservations],
        region=[each.region for each in opening.reservations],
        refusals=[refusal.message for refusal in opening.refusals],
    )


def _after(opening: Opening, error: exception.Conflict) -> Opening | None:
    """Return the opening that those who wait leave, which is later and as long; None if the service knows of none."""
    told = next((fault.data.get("opening") for fault in error.faults if fault.code == _OTHERS_WAIT), None)
    if not isinstance(told, str):
        return None
    start = read_date(told)
    if start <= opening.start_date:
        return None
    end = start + (opening.end_date - opening.start_date)
    if start <= opening.last_start_date:
        return dataclasses.replace(opening, start_date=start, end_date=end)
    return dataclasses.replace(opening, start_date=start, end_date=end, last_start_date=start, open_until=end)


def _why_not(answer: Availability, zone: tzinfo) -> Iterator[str]:
    yield f"There is no room from {local(answer.earliest, zone)} to {local(answer.latest, zone)}."
    for reason in answer.reasons:
        yield f"  {reason.message}"
    if answer.proof is not None:
        yield f"  {_proof(answer.proof, zone)}"
    if answer.alternatives:
        yield "What would fit:"
    for alternative in answer.alternatives:
        costs = f", costs {alternative.price} {alternative.currency}" if alternative.price else ""
        yield f"  {_alternative(alternative, zone)}{costs}"


def _proof(proof: Proof, zone: tzinfo) -> str:
    if proof.code == "no_arrangement":
        return "However other leases get other hosts, none are free for all of that time."
    if proof.moves_others:
        return f"It would fit if {proof.moves_others} other leases got other hosts, which is more than may for one."
    if proof.at is None:
        return "Whether it would fit if other leases got other hosts was not found in the time of a search."
    return (
        f"At {local(proof.at, zone)} leases that can have no others hold {proof.promised} of {proof.hosts} hosts, and "
        f"{proof.asked} more {'is' if proof.asked == 1 else 'are'} needed."
    )


def _alternative(alternative: Alternative, zone: tzinfo) -> str:
    when = f"{local(alternative.start_date, zone)} to {local(alternative.end_date, zone)}"
    if alternative.drop:
        return f"without {alternative.drop.rpartition('/')[2]}: {when}"
    if alternative.reservations:
        amounts = "; ".join(
            ", ".join(f"{key}={value}" for key, value in each.items()) for each in alternative.reservations
        )
        return f"with {amounts}: {when}"
    words = {"time": "at another time", "duration": "for a shorter time"}
    return f"{words.get(alternative.change, alternative.change)}: {when}"
