# SPDX-License-Identifier: Apache-2.0
"""``lease list`` with filters, ``lease show`` in full, and ``history``."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands import base, glance
from blazarclient.commands.base import LibraryCommand, Rows, add_zone, let_before_now, local, now_in, utc
from blazarclient.commands.prices import describe_price, list_costs
from blazarclient.commands.reminders import describe_reminders
from blazarclient.commands.reserved import asked_for, describe_allocation, lines_of
from blazarclient.exception import BlazarClientException, CommandError, UnsupportedVersion
from blazarclient.utils import sort
from blazarclient.v1.shell_commands import leases as old

if TYPE_CHECKING:
    from blazarclient.library import Lease, Reservation
    from blazarclient.library.values import ExtendIfFree, Transfer, Wait, WakingHosts

SORTED_BY = ("created_at", "updated_at", "start_date", "end_date", "name", "status")
"""What the service sorts leases by."""

LARGEST_PAGE = 1000

IN_LINE = ("WAITING", "TIMED_OUT")
"""Statuses of leases that wait for their turn, or have in vain."""

_OF_OLD = ("CREATING", "ERROR")
"""What microversion 1.0 calls them, and others."""

BRIEF = ("id", "name", "start_date", "end_date")
LONG = (*BRIEF, "status", "degraded", "resource_types", "project_id", "user_id", "created_at")

_FIELDS = (
    "id",
    "name",
    "project_id",
    "user_id",
    "status",
    "degraded",
    "revision",
    "start_date",
    "end_date",
    "before_end_date",
    "created_at",
    "updated_at",
    "deleted_at",
    "conditions",
    "reservations",
    "events",
    "kind",
    "end_reason",
    "usage",
    "used_at",
    "release_at",
    "held",
)

_OWN: Mapping[str, tuple[tuple[str, ...], Callable[[Lease], Any]]] = {
    "resource_types": (("reservations",), lambda lease: sorted({each.resource_type for each in lease.reservations})),
    "regions": (("reservations",), lambda lease: sorted({each.region for each in lease.reservations if each.region})),
    "what": (("reservations",), glance.contents_of),
    "remaining": (("status", "start_date", "end_date"), lambda lease: glance.time_left_of(lease, base.clock())),
    "price": (("price",), lambda lease: f"{lease.price.amount} {lease.price.currency}" if lease.price else None),
}
"""Columns that are no keys of a lease: the keys that they need, and how they follow from the lease."""

_NEW = (
    *("status", "state", "mine", "all_projects", "project", "user", "text", "resource_type", "region", "kind"),
    *("since", "until", "long", "limit", "timezone"),
)
"""Options that microversion 1.0 has no answer to."""

_NEW_COLUMNS = frozenset(
    {"regions", "what", "remaining", "price", "kind", "end_reason", "usage", "used_at", "release_at", "held"}
)


class _Leases(Rows):
    """Lists leases page by page: what was written is not kept."""

    def add_filters(self, parser: argparse.ArgumentParser) -> None:
        """Add the options that choose among leases."""
        parser.add_argument("--mine", action="store_true", help="those that you have booked yourself")
        parser.add_argument("--project", metavar="<project>", help="those of a project, by id or name (for operators)")
        parser.add_argument("--user", metavar="<user>", help="those of a user, by id or name")
        parser.add_argument("--text", metavar="<text>", help="those with this in their name")
        parser.add_argument("--resource-type", metavar="<type>", help="those with a reservation of this type")
        parser.add_argument("--region", metavar="<name>", help="those with a reservation in this region")
        parser.add_argument(
            "--kind", metavar="<kind>", help="those of a kind: scheduled, immediate, retries or best_effort"
        )
        let_before_now(parser)
        parser.add_argument("--from", metavar="<time>", dest="since", help="those that last beyond a time, such as -2d")
        parser.add_argument("--to", metavar="<time>", dest="until", help="those that begin before a time")
        parser.add_argument("--long", action="store_true", help="tell more of each")
        parser.add_argument("--limit", metavar="<n>", type=_positive, help="at most so many")
        add_zone(parser)

    def found(
        self, parsed_args: argparse.Namespace, columns: Sequence[str], **query: Any
    ) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return the columns, and the rows as they are read."""
        now = now_in(parsed_args)
        zone = now.tzinfo or timezone.utc
        asked = list(parsed_args.columns or ()) or [*columns, *(("regions",) if parsed_args.region else ())]
        known = (*_FIELDS, *_OWN)
        if unknown := [column for column in asked if column not in known]:
            raise CommandError(f"There is no column {unknown[0]}; choose from {', '.join(sorted(known))}", code=400)
        # Whether the service has regions is seen by the first lease.
        looks = parsed_args.long and not parsed_args.columns
        since, until = _instant("--from", parsed_args.since, now), _instant("--to", parsed_args.until, now)
        leases = self.library.leases.list(
            text=parsed_args.text,
            resource_type=parsed_args.resource_type,
            region=parsed_args.region,
            kind=parsed_args.kind,
            project_id=self.of_keystone("project", parsed_args.project),
            user_id=self.library.info().user_id if parsed_args.mine else self.of_keystone("user", parsed_args.user),
            overlapping=(since, until),
            fields=list(dict.fromkeys(key for c in asked for key in (_OWN[c][0] if c in _OWN else (c,)))),
            limit=min(parsed_args.limit or LARGEST_PAGE, LARGEST_PAGE),
            **query,
        )
        first = list(itertools.islice(leases, 1))
        if looks and "regions" not in asked and any(_value(lease, "regions") for lease in first):
            asked.append("regions")
        rows = itertools.islice(itertools.chain(first, leases), parsed_args.limit)
        return asked, (tuple(self.cell(_value(lease, c), zone, parsed_args) for c in asked) for lease in rows)


class ListLeases(_Leases, old.ListLeases):
    """List leases

    A table tells what each has, how it stands and how long it lasts; other formats have the columns of old. Those that
    have ended and were not deleted are listed, too. With one of the options that choose among leases, it is those that
    have not ended unless --state says otherwise, times are those of your zone, and long lists are read in parts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--status", metavar="<status>", action="append", help="those in a status (may be repeated)")
        which = parser.add_mutually_exclusive_group()
        which.add_argument(
            "--state",
            choices=("current", "past", "all"),
            help="which ones (default: all but deleted ones; with other filters: current)",
        )
        which.add_argument("--past", action="store_const", const="past", dest="state", help="only those that are over")
        parser.add_argument("--all-projects", action="store_true", help="of all projects, as is usual for operators")
        self.add_filters(parser)
        return parser

    def items(self, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return the leases of microversion 1.0, but for the statuses that it has no words for."""
        found = super().items(parsed_args)
        if "status" not in (parsed_args.columns or ()) or not any(each.get("status") in _OF_OLD for each in found):
            return found
        try:
            waiting = self.library.leases.list(status=IN_LINE, fields=("id", "status"), limit=LARGEST_PAGE)
            status_of = {lease.id: lease.status for lease in waiting}
        except BlazarClientException:
            # There is nobody in line at a service that does not know of it.
            return found
        told = [{**each, "status": status_of.get(each.get("id"), each.get("status"))} for each in found]
        return sort(told, parsed_args.sort_by)

    def get_data(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return columns and rows: for programs as ever, unless something is asked for that is new."""
        new = _NEW_COLUMNS & set(parsed_args.columns or ())
        if new or any(getattr(parsed_args, name, None) for name in _NEW):
            return self._chosen(parsed_args)
        if not self._is_looked_at(parsed_args) or parsed_args.sort_by not in SORTED_BY:
            return old.ListLeases.get_data(self, parsed_args)
        return self._at_a_glance(parsed_args)

    def _at_a_glance(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return the leases that microversion 1.0 lists, those that have ended too, with what later ones tell."""
        items = self.items(parsed_args)
        try:
            told = list(self.library.leases.list(fields=glance.FIELDS, limit=LARGEST_PAGE)) if items else []
        except UnsupportedVersion:
            columns = self.columns_of(items, parsed_args)
            return columns, [tuple(item.get(column, "") for column in columns) for item in items]
        rows = [glance.row_of(lease, base.clock()) for lease in glance.merged(items, told)]
        if parsed_args.sort_by == "status":
            rows.sort(key=lambda row: row[glance.COLUMNS.index("status")])
        return glance.COLUMNS, self._with_short_ids(rows, parsed_args)

    def _with_short_ids(self, rows: Iterable[tuple[Any, ...]], parsed_args: argparse.Namespace) -> Any:
        if (self.room(parsed_args) or glance.NARROW) >= glance.NARROW:
            return rows
        return ((str(row[0])[: glance.SHORT_ID], *row[1:]) for row in rows)

    def _chosen(self, parsed_args: argparse.Namespace) -> tuple[Sequence[str], Iterable[tuple[Any, ...]]]:
        """Return columns and rows of the leases that the options choose."""
        if parsed_args.sort_by not in SORTED_BY:
            raise CommandError(f"Cannot sort by {parsed_args.sort_by}; choose from {', '.join(SORTED_BY)}", code=400)
        status = [word.upper() for text in parsed_args.status or () for word in text.split(",")]
        at_a_glance = self._is_looked_at(parsed_args) and not parsed_args.long
        columns, rows = self.found(
            parsed_args,
            LONG if parsed_args.long else glance.COLUMNS if at_a_glance else BRIEF,
            state=parsed_args.state,
            status=status or None,
            sort_key=parsed_args.sort_by,
        )
        return columns, self._with_short_ids(rows, parsed_args) if at_a_glance else rows

    def _is_looked_at(self, parsed_args: argparse.Namespace) -> bool:
        """Return whether a person looks at what ``blazar`` lists; scripts that run ``openstack`` get what they know."""
        is_own = getattr(self.app, "client_manager", None) is None
        return is_own and parsed_args.formatter == "table" and not parsed_args.columns


class History(_Leases):
    """List leases that are over, the last first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        self.add_filters(parser)
        parser.set_defaults(limit=20)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        columns = (*LONG, "deleted_at") if parsed_args.long else (*BRIEF, "status", "deleted_at")
        return self.found(parsed_args, columns, state="past", sort_key="updated_at", sort_dir="desc")


class ShowLease(LibraryCommand, old.ShowLease):
    """Show a lease

    With --long: what is wrong with it, which resources it has, how to use them, and what happens when; then also a
    lease that is over can be shown.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--long", action="store_true", help="tell all of it, with times of your zone")
        add_zone(parser)
        return parser

    def get_data(self, parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
        """Return keys and values: as ever, and of one in line how it waits, or all that there is."""
        if not parsed_args.long:
            found = self.get_client().lease.get(self.id_of(parsed_args.id))
            return self.shown({**found, **in_line(self, found, parsed_args)}, parsed_args)
        zone = now_in(parsed_args).tzinfo or timezone.utc
        lease = self.lease_of(parsed_args.id)
        if self.structured(parsed_args):
            answer = self.library.transport.ask("GET", f"/leases/{lease.id}")
            return self.shown(dict(answer.part("lease")), parsed_args)
        values = _in_full(lease, zone)
        return [tuple(values), tuple(values.values())]


def _instant(option: str, text: str | None, now: datetime) -> str | None:
    """Return the time of an option for the service, None if it is not given. BadTime."""
    if not text:
        return None
    with times.named(option):
        return utc(times.read_time(text, now=now, end=now))


def _value(lease: Lease, column: str) -> Any:
    return _OWN[column][1](lease) if column in _OWN else getattr(lease, column)


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def outline(lease: Lease, zone: tzinfo) -> dict[str, str]:
    """Return what a lease would be: its dates, and what it would have."""
    dates = ("start_date", "end_date", "before_end_date")
    told = {"name": lease.name, **{key: local(getattr(lease, key), zone) for key in dates}}
    if lease.wait and lease.status == "WAITING":
        # Its dates are those that it cannot have.
        told = {"name": lease.name, "waits": waits(lease.wait, zone)}
    told |= {"reminders": describe_reminders(lease.reminders, zone)} if lease.reminders else {}
    told |= {"costs": "\n".join(list_costs(lease.price, zone))} if lease.price else {}
    told |= {"waits_for": describe_waking(lease.waking, zone)} if lease.waking else {}
    told |= {"moves_others": f"{lease.moves_others} leases would get other hosts"} if lease.moves_others else {}
    return {**told, "reservations": "\n".join(line for each in lease.reservations for line in _would_be(each))}


def describe_waking(waking: WakingHosts, zone: tzinfo) -> str:
    """Return that hosts sleep which are needed, and when the start follows."""
    parts = ((waking.hosts, "host"), (waking.pools, "volume pool"))
    what = " and ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in parts if count)
    sleep = "that sleeps" if waking.hosts + waking.pools == 1 else "that sleep"
    return f"{what} {sleep}; it begins at about {local(waking.ready_at, zone)}"


def _would_be(reservation: Reservation) -> Iterator[str]:
    yield reservation.resource_type
    yield f"  {asked_for(reservation)}"
    yield from (f"  {describe_allocation(allocation)}" for allocation in reservation.allocations)
    yield from (f"  {line}" for child in reservation.children for line in _would_be(child))


def _in_full(lease: Lease, zone: tzinfo) -> dict[str, str]:
    dates = ("start_date", "end_date", "before_end_date", "created_at", "updated_at", "deleted_at")
    told: dict[str, str] = {key: str(getattr(lease, key)) for key in ("id", "name", "status", "degraded")}
    told |= {"kind": lease.kind} if lease.kind else {}
    told |= {"end_reason": lease.end_reason} if lease.end_reason else {}
    told |= {"costs": describe_price(lease.price, zone)} if lease.price else {}
    told |= {"waits_for": describe_waking(lease.waking, zone)} if lease.waking else {}
    told |= {"usage": lease.usage} if lease.usage else {}
    told |= {key: local(at, zone) for key in ("used_at", "release_at") if (at := getattr(lease, key)) is not None}
    told |= {"held": "by an operator: it is never released because nobody uses it"} if lease.held else {}
    told |= {"project_id": lease.project_id, "user_id": lease.user_id}
    told |= {key: local(getattr(lease, key), zone) for key in dates}
    told |= {"waits": waits(lease.wait, zone, lease.status)} if lease.wait and lease.status in IN_LINE else {}
    told |= {"waits": _earlier(lease, lease.wait, zone)} if lease.wait and lease.wait.advance else {}
    told |= {"tries": "\n".join(_tries(lease.wait, zone))} if lease.wait and lease.wait.tries else {}
    told |= {"ends_later_if_free": _later(lease.extend_if_free, zone)} if lease.extend_if_free else {}
    told |= {"reminders": describe_reminders(lease.reminders, zone)} if lease.reminders else {}
    told |= {"keep_hosts": "its hosts stay until it starts"} if lease.keep_hosts else {}
    told |= {"confirm_by": f"{local(lease.confirm_by, zone)}, or it is deleted"} if lease.confirm_by else {}
    told |= {"offered": _offered(lease, lease.transfer, zone)} if lease.transfer else {}
    told["conditions"] = "\n".join(conditions(lease, zone))
    told["reservations"] = "\n".join(line for each in lease.reservations for line in lines_of(each, zone))
    told["events"] = "\n".join(
        f"{event.event_type} {local(event.finished_at or event.time, zone)} {event.status}"
        + (f": {event.reason.message}" if event.reason else "")
        for event in sorted(lease.events, key=lambda event: event.time)
    )
    return told


def _later(extend: ExtendIfFree, zone: tzinfo) -> str:
    return f"up to {local(extend.until, zone)}" + (f": not so far, {extend.reason}" if extend.reason else "")


def _offered(lease: Lease, offer: Transfer, zone: tzinfo) -> str:
    project = f"project {offer.project_id}" if offer.project_id != lease.project_id else ""
    user = f"user {offer.user_id}" if offer.user_id else ""
    taker = ", ".join(part for part in (project, user) if part)
    until = ""
    if offer.expires_at:
        until = f", {'until' if offer.expires_at > base.clock() else 'expired'} {local(offer.expires_at, zone)}"
    return f"to {taker}{until}" + (f": {offer.message}" if offer.message else "")


def _tries(wait: Wait, zone: tzinfo) -> Iterator[str]:
    yield f"{len(wait.failed_tries)} of {wait.tries} failed"
    yield from (f"  {local(failed.at, zone)}: {failed.reason.message}" for failed in wait.failed_tries)


def _earlier(lease: Lease, wait: Wait, zone: tzinfo) -> str:
    estimate = wait.estimated_start
    is_earlier = estimate is not None and lease.start_date is not None and estimate < lease.start_date
    probably = f", probably {local(estimate, zone)}" if is_earlier else ""
    return f"its start was promised, and may become earlier{probably}"


def in_line(command: LibraryCommand, data: Mapping[str, Any], parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return what microversion 1.0, which has told ``data``, does not tell of a lease that waits, or has in vain.

    Nothing of another lease, and if the service does not tell.
    """
    if data.get("status") not in _OF_OLD:
        return {}
    try:
        lease = command.library.leases.get(str(data["id"]))
    except BlazarClientException:
        return {}
    if not lease.wait or lease.status not in IN_LINE:
        return {}
    for_program = command.structured(parsed_args)
    zone = timezone.utc if for_program else now_in(parsed_args).tzinfo or timezone.utc
    told: dict[str, Any] = {"status": lease.status, "waits": waits(lease.wait, zone, lease.status)}
    return {**told, "wait": base.plain(lease.wait)} if for_program else told


def waits(wait: Wait, zone: tzinfo, status: str = "WAITING") -> str:
    """Return how a lease waits: its place, when it will probably start, until when it waits, and why."""
    why = f": {wait.reason}" if wait.reason else ""
    if status == "TIMED_OUT":
        return f"in vain, until {local(wait.until, zone)}{why}"
    place = f"number {wait.position} in line" if wait.position else "in line"
    estimate = probable(wait)
    start = f", probably from {local(estimate, zone)}" if estimate else ""
    return f"{place}{start}, until {local(wait.until, zone)}{why}"


def probable(wait: Wait) -> datetime | None:
    """Return when a lease in line will probably start; None if it is not known, or it gives up before it fits."""
    # Services have told when it would fit, too, beside the reason why that is too late.
    is_too_late = wait.estimated_start is not None and wait.reason is not None and wait.estimated_start > wait.until
    return None if is_too_late else wait.estimated_start


def conditions(lease: Lease, zone: tzinfo) -> Iterator[str]:
    """Yield what is wrong with a lease, in a sentence each."""
    for condition in lease.conditions:
        words = condition.reason.message if condition.reason else condition.type.replace("_", " ")
        yield f"since {local(condition.since, zone)}: {words}"
