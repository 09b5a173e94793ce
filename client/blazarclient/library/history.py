# SPDX-License-Identifier: Apache-2.0
"""Histories: who did what to a lease, and to any object of the service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from blazarclient.exception import ServiceUnavailable
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Lease
from blazarclient.library.waiting import EVERY, Outages
from blazarclient.library.written import Date, id_of, written


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


@dataclass(frozen=True, kw_only=True)
class HistoryObject:
    """What an entry is about: a lease, a resource (its id has its kind, as ``host/7``) and so on, named as then."""

    type: str
    id: str
    name: str | None = None
    revision: int | None = None


@dataclass(frozen=True, kw_only=True)
class JournalEntry(HistoryEntry):
    """One thing that was done to any object. ``position`` is its place among all; ``project_id`` is whose it was."""

    position: int
    object: HistoryObject
    project_id: str | None = None
    request_id: str | None = None
    global_request_id: str | None = None


class History:
    """What was done, and by whom."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def of(self, lease: Lease | str, /, *, newest_first: bool = False) -> Iterator[HistoryEntry]:
        """Yield what was done to a lease, also to one that is deleted, the first first. NotFound."""
        path = f"/leases/{part_of_path(id_of(lease))}/history"
        query = {"sort_dir": "desc" if newest_first else None}
        for item in self._transport.pages(path, "history", query=query):
            yield decode(HistoryEntry, item)

    def list(
        self,
        *,
        after: int | None = None,
        object_type: str | None = None,
        object_id: str | None = None,
        verb: str | None = None,
        by: str | None = None,
        project_id: str | None = None,
        since: Date | None = None,
        until: Date | None = None,
        newest_first: bool = False,
        limit: int | None = None,
    ) -> Iterator[JournalEntry]:
        """Yield what was done to any object, in the order of positions: after one, and as the filters say.

        ``by`` is the id of a user. Others than operators see what was done in their project. ``limit``: of a page.
        """
        query = {
            "after": after,
            "object_type": object_type,
            "object_id": object_id,
            "verb": verb,
            "by": by,
            "project_id": project_id,
            "from": None if since is None else written(since),
            "to": None if until is None else written(until),
            "sort_dir": "desc" if newest_first else None,
            "limit": limit,
        }
        for item in self._transport.pages("/history", "history", query=query):
            yield decode(JournalEntry, item)

    def follow(
        self,
        *,
        after: int | None = None,
        every: float = EVERY,
        when_silent: Callable[[ServiceUnavailable], None] | None = None,
        **filters: Any,
    ) -> Iterator[JournalEntry]:
        """Yield what is done from now on, or after a position, without an end: none is missed, and none comes twice.

        ``filters`` are those of ``list``; ``every`` is the seconds between two looks. With ``when_silent`` an outage of
        the service after the first look does not end it: it is called once with the error, and the looks go on.
        """
        if after is None:
            last = next(self.list(newest_first=True, limit=1), None)
            after = 0 if last is None else last.position
        outages = Outages(when_silent)
        while True:
            with outages.bridge():
                for entry in self.list(after=after, **filters):
                    after = entry.position
                    yield entry
            time.sleep(every)
