# SPDX-License-Identifier: Apache-2.0
"""Histories of leases: who did what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Lease
from blazarclient.library.written import id_of


@dataclass(frozen=True, kw_only=True)
class DoneBy:
    """Who did it: ``kind`` is ``user``, ``operator`` or ``service``. Users of other projects have no ids."""

    kind: str
    user_id: str | None = None
    project_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    """A value before and after. ``reservation_id`` is None for a field of the lease itself."""

    field: str
    before: str | None = None
    after: str | None = None
    reservation_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class ResourceMove:
    """The resources that a reservation gave up and got, by the ids that the lease shows, and how many."""

    reservation_id: str
    gone: tuple[str, ...] = ()
    come: tuple[str, ...] = ()
    gone_count: int = 0
    come_count: int = 0


@dataclass(frozen=True, kw_only=True)
class HistoryEntry:
    """One thing that was done to a lease."""

    id: str
    at: datetime
    by: DoneBy
    verb: str
    changes: tuple[FieldChange, ...] = ()
    resources: tuple[ResourceMove, ...] = ()
    reason: str | None = None


class History:
    """What was done to leases."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, lease: Lease | str, /, *, newest_first: bool = False) -> Iterator[HistoryEntry]:
        """Yield what was done to a lease, also to one that is deleted, the first first. NotFound."""
        path = f"/leases/{part_of_path(id_of(lease))}/history"
        query = {"sort_dir": "desc" if newest_first else None}
        for item in self._transport.pages(path, "history", query=query):
            yield decode(HistoryEntry, item)
