# SPDX-License-Identifier: Apache-2.0
"""``lease transfer`` and ``transfer``: leases offered to other projects or users, who accept them."""

from __future__ import annotations

import argparse
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient.commands import base
from blazarclient.commands.base import LibraryCommand, One, Rows, add_lease, add_zone, check_columns, now_in
from blazarclient.commands.refusals import in_words_of
from blazarclient.commands.reserved import asked_for
from blazarclient.exception import CommandError, PreconditionFailed

if TYPE_CHECKING:
    from blazarclient.library import Transfer
    from blazarclient.library.values import OfferedReservation

OFFERED = ("lease_id", "lease_name", "project_id", "user_id", "message", "offered_at", "expires_at")
"""What the giver is told."""

COLUMNS = ("id", "name", "from_project_id", "message", "start_date", "end_date", "expires_at")

_OF_LEASE = ("id", "name", "kind", "status", "start_date", "end_date", "before_end_date", "extend_if_free", "revision")
_OF_OFFER = ("from_project_id", "from_user_id", "project_id", "user_id", "message", "offered_at", "expires_at")
KEYS = (*_OF_LEASE, "reservations", *_OF_OFFER)
"""What the taker is told."""

TAKEN = (*base.BRIEF, "project_id", "user_id")
"""What matters of a lease that was accepted."""

_PLACES = {"/project_id": "--to-project", "/user_id": "--to-user", "/message": "--message"}


def _zone(parsed_args: argparse.Namespace) -> tzinfo:
    return now_in(parsed_args).tzinfo or timezone.utc


def _add_offered(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="<lease>", help="id or name of the lease that is offered")


class OfferLease(One):
    """Offer a lease to another project, or to another user

    It is yours until they accept it, and an offer takes the place of an earlier one.
    """

    answers = OFFERED

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        parser.add_argument(
            "--to-project", metavar="<project>", help="the project, by id or name (default: that of the lease)"
        )
        parser.add_argument(
            "--to-user",
            metavar="<user>",
            help="only this user may accept, by id or name (default: any member of the project)",
        )
        parser.add_argument("--message", metavar="<text>", help="what they read with the offer")
        parser.add_argument("--dry-run", action="store_true", help="only say whether the lease could go")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Offer it."""
        if not (parsed_args.to_project or parsed_args.to_user):
            raise CommandError("Say to whom it is offered: with --to-project, --to-user, or both", code=400)
        zone = _zone(parsed_args)
        project = self.of_keystone("project", parsed_args.to_project, "--to-project")
        user = self.of_keystone("user", parsed_args.to_user, "--to-user")
        lease = self.library.leases.find(parsed_args.id)
        with in_words_of(_PLACES):
            offer = self.library.transfers.offer(
                lease, project_id=project, user_id=user, message=parsed_args.message, dry_run=parsed_args.dry_run
            )
        if parsed_args.dry_run:
            self.tell("Nothing was changed. The lease could go; the offer would be:")
        else:
            self.tell(f"They accept it with: transfer accept {lease.id}")
        # One that Keystone has told the id of is there.
        if project and project == parsed_args.to_project:
            self.tell(f"Nobody has checked that there is a project {project}; see that its id is right.")
        found = {"lease_id": lease.id, "lease_name": lease.name}
        values = ({**found, **{key: getattr(offer, key) for key in _OF_OFFER}}[key] for key in OFFERED)
        return [OFFERED, tuple(self.cell(value, zone, parsed_args) for value in values)]


class WithdrawOffer(LibraryCommand):
    """Withdraw the offer of a lease of yours"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Withdraw it."""
        self.library.transfers.withdraw(self.library.leases.find(parsed_args.id))
        print(f"Withdrew the offer of lease: {parsed_args.id}", file=self.app.stdout)


class ListOffers(Rows):
    """List the leases that are offered to you, or to any member of your project

    The offer that expires first comes first. What you offer yourself is shown by lease show --long.
    """

    nothing = "No lease is offered to you.\n"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = _zone(parsed_args)
        columns = parsed_args.columns or COLUMNS
        check_columns(parsed_args, KEYS)
        chosen = [column for column in columns if column in KEYS]
        found = self.library.transfers.list()
        return chosen, (tuple(_value(self, offer, key, zone, parsed_args) for key in chosen) for offer in found)


class ShowOffer(One):
    """Show a lease that is offered to you, or to any member of your project"""

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_offered(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = _zone(parsed_args)
        offer = self.library.transfers.find(parsed_args.id)
        return [KEYS, tuple(_value(self, offer, key, zone, parsed_args) for key in KEYS)]


class AcceptOffer(One):
    """Accept a lease that is offered to you, or to any member of your project

    It is your project's lease from then on, and yours. If it is refused, the offer stands.
    """

    answers = TAKEN

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_offered(parser)
        parser.add_argument(
            "--revision",
            type=int,
            metavar="<number>",
            help="only if the lease is still as transfer show has told it with this revision",
        )
        parser.add_argument("--dry-run", action="store_true", help="only say what the lease would be")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Accept it."""
        zone = _zone(parsed_args)
        offer = self.library.transfers.find(parsed_args.id)
        etag = None
        if parsed_args.revision is not None:
            revision = offer.lease.revision if offer.lease else None
            if revision != parsed_args.revision:
                raise PreconditionFailed(
                    f"The lease has changed since: its revision is {revision}, not {parsed_args.revision}. Nothing was "
                    f"done; look at it with transfer show {parsed_args.id}"
                )
            etag = offer.etag
        lease = self.library.transfers.accept(offer, dry_run=parsed_args.dry_run, if_match=etag)
        if parsed_args.dry_run:
            self.tell("Nothing was changed. It would be:")
        return [TAKEN, tuple(self.cell(getattr(lease, key), zone, parsed_args) for key in TAKEN)]


class DeclineOffer(LibraryCommand):
    """Decline a lease that is offered to you, or to any member of your project"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_offered(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Decline it."""
        self.library.transfers.decline(self.library.transfers.find(parsed_args.id))
        print(f"Declined the offer of lease: {parsed_args.id}", file=self.app.stdout)


def _value(command: LibraryCommand, offer: Transfer, key: str, zone: tzinfo, parsed_args: argparse.Namespace) -> Any:
    """Return what an offer, or the lease that it is of, has under a key."""
    value = getattr(offer if key in _OF_OFFER else offer.lease, key, None)
    if command.structured(parsed_args) or value is None:
        return command.cell(value, zone, parsed_args)
    if key == "reservations":
        return "\n".join(_reservation(each) for each in value)
    if key == "extend_if_free":
        return f"up to {command.cell(value.until, zone, parsed_args)}"
    return command.cell(value, zone, parsed_args)


def _reservation(reservation: OfferedReservation) -> str:
    amount = f" x {reservation.count}" if reservation.count > 1 else ""
    where = f" in {reservation.region}" if reservation.region else ""
    return f"{reservation.resource_type}{amount}, {reservation.status}{where}\n  {asked_for(reservation)}"
