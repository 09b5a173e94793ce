# SPDX-License-Identifier: Apache-2.0
"""``subscription``: to whom events are sent, over HTTPS or by mail."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, check_columns, let_before_now, now_in, utc
from blazarclient.exception import CommandError

if TYPE_CHECKING:
    from blazarclient.library import Subscription

COLUMNS = ("id", "url", "events", "state", "behind", "dead", "last_delivered_at")
KEYS = (
    *("id", "url", "events", "lease_id", "batch", "state", "reason", "project_id", "user_id", "position", "behind"),
    *("dead", "dropped", "last_delivered_at", "failing_since", "created_at", "updated_at"),
)
FAILURE = ("at", "type", "subject", "reason", "position", "id")
MADE = ("id", "url", "events", "state", "secret")
MINE = ("events", "digest", "time_zone", "state", "reason", "behind", "last_delivered_at", "updated_at")

KEEP = "Keep the secret to yourself, and give it to the receiver: it is not shown again."


class _OneSubscription(One):
    """A command whose answer is a subscription."""

    def answer(self, found: Subscription, parsed_args: argparse.Namespace) -> Any:
        """Return a subscription as it is shown, with its secret if it is told now."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        if found.secret:
            self.tell(KEEP)
        keys = MADE if found.secret else KEYS
        return [keys, tuple(self.cell(getattr(found, key), zone, parsed_args) for key in keys)]


class _NamedSubscription(_OneSubscription):
    """A command about one subscription, whose id it is given."""

    answers: Sequence[str] = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_subscription(parser)
        add_zone(parser)
        return parser


def _add_subscription(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", metavar="<subscription>", help="id of the subscription")


class CreateSubscription(_OneSubscription):
    """Have messages sent to a URL, or mail to you, when something happens

    To a URL nothing but a test is sent until the receiver has accepted one.
    """

    answers = MADE

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("url", metavar="<url>", nargs="?", help="https:// URL to which messages are posted")
        parser.add_argument("--mail", action="store_true", help="by mail instead, to your address in Keystone")
        parser.add_argument(
            "--event",
            metavar="<event>",
            dest="events",
            action="append",
            required=True,
            help="what to tell of, such as lease.started, or lease.* for all of leases; may be repeated",
        )
        parser.add_argument("--lease", metavar="<lease>", help="id or name of the only lease to tell of")
        parser.add_argument("--batch", action="store_true", help="up to 50 events in one message")
        parser.add_argument("--everything", action="store_true", help="of all projects, for operators")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Subscribe."""
        if bool(parsed_args.url) == parsed_args.mail:
            raise CommandError("Give a url, or --mail")
        found = self.library.subscriptions.create(
            parsed_args.url,
            parsed_args.events,
            lease_id=self.id_of(parsed_args.lease) if parsed_args.lease else None,
            batch=parsed_args.batch,
            everything=parsed_args.everything,
        )
        return self.answer(found, parsed_args)


class ListSubscriptions(Rows):
    """List to whom events are sent"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--state", choices=("unconfirmed", "active", "paused", "disabled"), help="only those in this state"
        )
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        filters = {"state": parsed_args.state} if parsed_args.state else {}
        return self.rows(COLUMNS, self.library.subscriptions.list(**filters), zone, parsed_args)


class ShowSubscription(_NamedSubscription):
    """Show a subscription, and how its messages arrive"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.answer(self.library.subscriptions.get(parsed_args.id), parsed_args)


class ChangeSubscription(_OneSubscription):
    """Change, pause or resume a subscription, or make a new secret"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_subscription(parser)
        parser.add_argument("--url", metavar="<url>", help="another receiver, which has to accept a test first")
        parser.add_argument(
            "--event",
            metavar="<event>",
            dest="events",
            action="append",
            help="what to tell of instead; may be repeated",
        )
        parser.add_argument(
            "--batch",
            action=argparse.BooleanOptionalAction,
            default=None,
            help="up to 50 events in one message, or one",
        )
        states = parser.add_mutually_exclusive_group()
        states.add_argument("--pause", action="store_true", help="send nothing until it is resumed")
        states.add_argument("--resume", action="store_true", help="send again, also what has happened meanwhile")
        parser.add_argument(
            "--new-secret", action="store_true", help="make another secret; the former one signs, too, for 24 hours"
        )
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Change it."""
        check_columns(parsed_args, (*KEYS, *MADE))
        state = "paused" if parsed_args.pause else "active" if parsed_args.resume else None
        given = {
            "url": parsed_args.url,
            "events": parsed_args.events,
            "batch": parsed_args.batch,
            "state": state,
            "new_secret": parsed_args.new_secret or None,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        if not changes:
            raise CommandError(
                "Nothing is to be changed; give --url, --event, --batch, --pause, --resume or --new-secret"
            )
        return self.answer(self.library.subscriptions.change(parsed_args.id, **changes), parsed_args)


class TestSubscription(_NamedSubscription):
    """Have a test sent to the receiver of a subscription

    What came of it is seen soon in state, reason and last_delivered_at.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        return self.answer(self.library.subscriptions.test(parsed_args.id), parsed_args)


class ReplaySubscription(_OneSubscription):
    """Have what has happened be told once more, with the same ids"""

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_subscription(parser)
        places = parser.add_mutually_exclusive_group(required=True)
        places.add_argument("--after", metavar="<position>", type=int, help="what comes after this position")
        places.add_argument("--since", metavar="<time>", help="what has happened since then, such as -2d")
        let_before_now(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        now = now_in(parsed_args)
        since = None
        if parsed_args.since is not None:
            with times.named("--since"):
                since = utc(times.read_time(parsed_args.since, now=now))
        found = self.library.subscriptions.replay(parsed_args.id, after=parsed_args.after, since=since)
        return self.answer(found, parsed_args)


class ListFailures(Rows):
    """List the messages that a receiver has refused for good"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        _add_subscription(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return self.rows(FAILURE, self.library.subscriptions.failures(parsed_args.id), zone, parsed_args)


class OwnSubscription(_OneSubscription):
    """Show or change which mails you get about your own leases

    It is about your leases in all projects. Without options it is shown.
    """

    answers = MINE

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        events = parser.add_mutually_exclusive_group()
        events.add_argument(
            "--event",
            metavar="<event>",
            dest="events",
            action="append",
            help="what to send instead, such as lease.before_end; may be repeated",
        )
        events.add_argument("--no-events", action="store_true", help="send no mail")
        parser.add_argument("--digest", choices=("none", "daily"), help="daily: one mail each morning")
        parser.add_argument("--mail-zone", metavar="<zone>", help="the zone of times in mails, such as Europe/Paris")
        parser.add_argument("--resume", action="store_true", help="send again, after an address was refused")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Show or change it."""
        check_columns(parsed_args, MINE)
        given = {
            "events": [] if parsed_args.no_events else parsed_args.events,
            "digest": parsed_args.digest,
            "time_zone": parsed_args.mail_zone,
            "state": "active" if parsed_args.resume else None,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        mine = self.library.subscriptions
        found = mine.change_mine(**changes) if changes else mine.mine()
        zone = now_in(parsed_args).tzinfo or timezone.utc
        return [MINE, tuple(self.cell(getattr(found, key), zone, parsed_args) for key in MINE)]


class DeleteSubscriptions(LibraryCommand):
    """Delete subscriptions: nothing more is sent"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<subscription>", nargs="+", help="id of a subscription")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Delete each."""
        return self.each(parsed_args.id, "subscription", self.library.subscriptions.delete)
