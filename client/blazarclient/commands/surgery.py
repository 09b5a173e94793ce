# SPDX-License-Identifier: Apache-2.0
"""Commands that give leases other hosts for those that they have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import BRIEF, Rows, add_lease, add_zone, now_in
from blazarclient.exception import CommandError

if TYPE_CHECKING:
    from blazarclient.library import Lease


class _Operation(Rows):
    """An operation on leases, which tells what they are afterwards."""

    answers = BRIEF

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        add_zone(parser)
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
            help="the host to get, which is for operators to name (default: any that fits)",
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
        leases = self.library.surgery.swap(
            lease,
            _reservation_on(lease, parsed_args.host),
            parsed_args.host,
            parsed_args.target,
            partner=partner,
            dry_run=parsed_args.dry_run,
        )
        return self.told(leases, parsed_args)


def _reservation_on(lease: Lease, host: str) -> str:
    """Return the reservation of a lease that has a host. CommandError if none has it."""
    for reservation in lease.reservations or ():
        for each in reservation.allocations or ():
            if host in (each.resource.id, each.resource.name, each.resource.label):
                return str(reservation.id)
    raise CommandError(f"Lease {lease.name} has no host {host}; lease show {lease.name} has its hosts", code=404)
