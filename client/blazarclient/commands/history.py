# SPDX-License-Identifier: Apache-2.0
"""``lease history``: what was done to a lease, and by whom."""

from __future__ import annotations

import argparse
from datetime import timezone
from typing import TYPE_CHECKING, Any

from blazarclient.commands.base import Rows, add_lease, add_zone, now_in
from blazarclient.library.transport import is_uuid

if TYPE_CHECKING:
    from blazarclient.library.history import FieldChange, HistoryEntry, ResourceMove

COLUMNS = ("at", "by", "verb", "changes", "reason")


class LeaseHistory(Rows):
    """List what was done to a lease, and by whom

    A lease that is deleted has its history as long as the service keeps it; name it by its id.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return a parser with the options of the command."""
        parser = super().get_parser(prog_name)
        add_lease(parser)
        add_zone(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask for it."""
        zone = now_in(parsed_args).tzinfo or timezone.utc
        # A deleted lease is found by its id only.
        lease = parsed_args.id if is_uuid(parsed_args.id) else self.library.leases.find(parsed_args.id)

        def value(entry: HistoryEntry, key: str) -> Any:
            if key == "by" and not self.structured(parsed_args):
                return entry.by.user_id or _WHO[entry.by.kind]
            if key == "changes" and not self.structured(parsed_args):
                told = [_change(each) for each in entry.changes]
                return "; ".join([*told, *(_move(each) for each in entry.resources)])
            return self.cell(getattr(entry, key), zone, parsed_args)

        columns = (*COLUMNS, "resources") if self.structured(parsed_args) else COLUMNS
        found = self.library.history.of(lease)
        return columns, (tuple(value(entry, key) for key in columns) for entry in found)


_WHO = {"user": "a user of another project", "operator": "an operator", "service": "the service"}


def _change(change: FieldChange) -> str:
    if change.before is None:
        return f"{change.field}: {change.after}"
    return f"{change.field}: {change.before} -> {change.after}"


def _move(move: ResourceMove) -> str:
    told = []
    if move.gone_count:
        told.append(f"gave up {_named(move.gone, move.gone_count)}")
    if move.come_count:
        told.append(f"got {_named(move.come, move.come_count)}")
    return " and ".join(told)


def _named(ids: tuple[str, ...], count: int) -> str:
    shown = ", ".join(ids[:5])
    return shown if count <= 5 else f"{shown} and {count - 5} more"
