# SPDX-License-Identifier: Apache-2.0
"""Commands that give leases other hosts, make two of one, and one of two."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import BRIEF, OfLease, Rows, now_in
from blazarclient.commands.refusals import in_words_of
from blazarclient.exception import CommandError

if TYPE_CHECKING:
    from blazarclient.library import Lease


_OF_SWAP = {"/host": "--host", "/for": "--for", "/with": ""}
"""What says the parts of a request to swap."""


class _Operation(OfLease, Rows):
    """An operation on leases, which tells what they are afterwards."""

    answers = BRIEF

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--dry-run", action="store_true", help="only say what would come of it")
        return parser

    def told(self, leases: Sequence[Lease], parsed_args: argparse.Namespace) -> Any:
        """Return what matters of the leases after it."""
        if parsed_args.dry_run:
            self.tell("Nothing was changed. It would be:")
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return BRIEF, [tuple(self.cell(getattr(each, key), zone, parsed_args) for key in BRIEF) for each in leases]


class SwapHost(_Operation):
    """Give up a host of a lease for another one

    In use it has to be empty: servers are neither moved nor deleted. With --with two leases exchange hosts.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--host", metavar="<host>", required=True, help="the host to give up, as lease show has it")
        parser.add_argument(
            "--for",
            dest="target",
            metavar="<host>",
            help="the host to get (default: any that fits): with --with it is that of the other lease, which anybody "
            "names; without, only operators may name one",
        )
        parser.add_argument(
            "--with", dest="partner", metavar="<lease>", help="the lease that gets the host, and gives up the other one"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Swap it."""
        if parsed_args.partner and not parsed_args.target:
            raise CommandError("Say with --for which host of the other lease this one gets", code=400)
        lease = self.library.leases.find(parsed_args.id)
        partner = None
        if parsed_args.partner:
            other = self.library.leases.find(parsed_args.partner)
            partner = other, _reservation_on(other, parsed_args.target)
        with in_words_of(_OF_SWAP):
            leases = self.library.surgery.swap(
                lease,
                _reservation_on(lease, parsed_args.host),
                parsed_args.host,
                parsed_args.target,
                partner=partner,
                dry_run=parsed_args.dry_run,
            )
        return self.told(leases, parsed_args)


class ShrinkLease(_Operation):
    """Give up hosts of a lease

    In use they have to be empty: servers are neither moved nor deleted. With --to the service chooses which ones go.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument(
            "--host",
            metavar="<host>",
            dest="hosts",
            action="append",
            default=[],
            help="a host to give up, as lease show has it; may be repeated",
        )
        which.add_argument(
            "--to", type=int, metavar="<number>", help="how many hosts the only reservation of hosts is to have"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Give them up."""
        lease = self.library.leases.find(parsed_args.id)
        if parsed_args.hosts:
            hosts: dict[str, list[str]] = {}
            for host in parsed_args.hosts:
                hosts.setdefault(_reservation_on(lease, host), []).append(host)
            changes: list[dict[str, Any]] = [{"id": id_, "give_up": named} for id_, named in hosts.items()]
        else:
            changes = [_to_count(lease, parsed_args.to)]
        option = "--host" if parsed_args.hosts else "--to"
        with in_words_of({f"/reservations/{number}": option for number in range(len(changes))}):
            after = self.library.leases.change(
                lease, reservations=changes, if_match=lease.etag, dry_run=parsed_args.dry_run
            )
        return self.told([after], parsed_args)


class SplitLease(_Operation):
    """Make two leases of one

    Reservations and hosts that are named go to the second lease. Or with --at the second begins where the first ends,
    on the same resources, which only a lease that has not started can.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", metavar="<name>", help="name of the second lease (default: the same)")
        parser.add_argument(
            "--reservation",
            metavar="<id>",
            dest="reservations",
            action="append",
            default=[],
            help="a reservation that goes to the second lease; may be repeated",
        )
        parser.add_argument(
            "--host",
            metavar="<host>",
            dest="hosts",
            action="append",
            default=[],
            help="a host that goes to the second lease, as lease show has it; may be repeated",
        )
        parser.add_argument("--count", type=int, metavar="<number>", help="so many of what the only reservation has go")
        parser.add_argument("--at", metavar="<time>", help="when the second lease begins")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Split it."""
        options = {"--reservation": parsed_args.reservations, "--host": parsed_args.hosts, "--count": parsed_args.count}
        given = [option for option, value in options.items() if value not in (None, [])]
        if parsed_args.at and given:
            raise CommandError(
                f"{' and '.join([*given, '--at'])} are given; give either --at, or what goes to the second lease: "
                "split by one first, and each part by the other then",
                code=400,
            )
        if not parsed_args.at and not given:
            raise CommandError(
                "Say what goes to the second lease: with --reservation, --host or --count, or --at", code=400
            )
        lease = self.library.leases.find(parsed_args.id)
        parts = self._parts(lease, parsed_args)
        at = None
        if parsed_args.at:
            with times.named("--at"):
                at = times.read_time(parsed_args.at, now=now_in(parsed_args))
        told_by = [
            "--host" if "resources" in each else "--count" if "count" in each else "--reservation" for each in parts
        ]
        places = {f"/reservations/{number}": option for number, option in enumerate(told_by)}
        with in_words_of({**places, "/reservations": "", "/at": "--at", "/name": "--name"}):
            leases = self.library.surgery.split(lease, parts, at=at, name=parsed_args.name, dry_run=parsed_args.dry_run)
        return self.told(leases, parsed_args)

    def _parts(self, lease: Lease, parsed_args: argparse.Namespace) -> list[dict[str, Any]]:
        """Return what options say of what goes."""
        hosts: dict[str, list[str]] = {}
        for host in parsed_args.hosts:
            hosts.setdefault(_reservation_on(lease, host), []).append(host)
        parts: list[dict[str, Any]] = [{"id": id_} for id_ in parsed_args.reservations]
        parts += [{"id": id_, "resources": named} for id_, named in hosts.items()]
        if parsed_args.count is not None:
            if len(lease.reservations or ()) != 1:
                raise CommandError(f"Lease {lease.name} has several reservations; name hosts with --host", code=400)
            parts.append({"id": str(lease.reservations[0].id), "count": parsed_args.count})
        return parts


class MergeLeases(_Operation):
    """Make one lease of two

    They have the same window, or the second begins where the first ends, on the same resources. The second is deleted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("other", metavar="<other lease>", help="id or name of the lease that it gets all of")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Merge them."""
        lease, other = (self.library.leases.find(text) for text in (parsed_args.id, parsed_args.other))
        with in_words_of({"/with": ""}):
            merged = self.library.surgery.merge(lease, other, dry_run=parsed_args.dry_run)
        return self.told([merged], parsed_args)


def _reservation_on(lease: Lease, host: str) -> str:
    """Return the reservation of a lease that has a host. CommandError if none has it."""
    for reservation in lease.reservations or ():
        for each in reservation.allocations or ():
            if host in (each.resource.id, each.resource.name, each.resource.label):
                return str(reservation.id)
    raise CommandError(f"Lease {lease.name} has no host {host}; lease show {lease.name} has its hosts", code=404)


def _to_count(lease: Lease, count: int) -> dict[str, Any]:
    """Return the change of the only reservation of hosts to fewer of them. CommandError."""
    of_hosts = [each for each in lease.reservations or () if each.resource_type == "physical:host"]
    if len(of_hosts) != 1:
        how_many = "several reservations" if of_hosts else "no reservation"
        raise CommandError(f"Lease {lease.name} has {how_many} of hosts; name hosts with --host", code=400)
    if count < 1:
        raise CommandError("--to: give a whole number from 1; end or delete the lease to give up all", code=400)
    least = of_hosts[0].parameters.get("min") or count
    return {"id": str(of_hosts[0].id), "min": min(int(least), count), "max": count}
