# SPDX-License-Identifier: Apache-2.0
"""``manager``: the managers of the service, for operators."""

from __future__ import annotations

import argparse
from datetime import timezone, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import LibraryCommand, One, Rows, add_zone, now_in

if TYPE_CHECKING:
    from blazarclient.library.values import Manager, ManagerThread

COLUMNS = ("id", "state", "up", "version", "seen_at", "work", "threads")
KEYS = (
    *("id", "host", "version", "rpc_version", "state", "up", "started_at", "seen_at", "clock_offset_ms"),
    *("options_agree", "regions", "work", "threads"),
)


def _count(manager: Manager) -> str:
    """Return how many events a manager has claimed, as far as the service tells."""
    return str(len(manager.work))


def _failing(threads: tuple[ManagerThread, ...]) -> str:
    """Return which threads fail, and why: nothing if all is well."""
    return "\n".join(f"{thread.name}: {thread.error}" for thread in threads if thread.failing_since is not None)


class ListManagers(Rows):
    """List the managers of the service

    One that is not up has crashed, or does not reach the database: its work stays with it until another takes it over.
    """

    answers = COLUMNS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for them."""
        zone = now_in(parsed_args).tzinfo or timezone.utc

        def value(manager: Manager, key: str) -> Any:
            if key in ("work", "threads") and not self.structured(parsed_args):
                return _count(manager) if key == "work" else _failing(manager.threads)
            return self.cell(getattr(manager, key), zone, parsed_args)

        return COLUMNS, (tuple(value(one, key) for key in COLUMNS) for one in self.library.managers.list())


class ShowManager(One):
    """Show a manager of the service with its threads and its work"""

    answers = KEYS

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="<manager>", help="id of the manager, or its host")
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        manager = self.library.managers.find(parsed_args.id)
        told = {} if self.structured(parsed_args) else _lines(self, manager, zone, parsed_args)
        return [KEYS, tuple(told.get(key, self.cell(getattr(manager, key), zone, parsed_args)) for key in KEYS)]


def _lines(command: LibraryCommand, manager: Manager, zone: tzinfo, parsed_args: argparse.Namespace) -> dict[str, str]:
    """Return a line about each event that a manager has claimed, and about each of its threads."""

    def at(value: Any) -> Any:
        return command.cell(value, zone, parsed_args)

    work = [f"{one.event_type} of {one.lease_id} since {at(one.since)}" for one in manager.work]
    threads = [
        f"{one.name}: last round {at(one.last_round_at) or 'none'}"
        + ("" if one.failing_since is None else f", fails since {at(one.failing_since)}: {one.error}")
        for one in manager.threads
    ]
    return {"work": "\n".join(work), "threads": "\n".join(threads)}
