# SPDX-License-Identifier: Apache-2.0
"""Leases as the API shows them at each commit, beside what is kept to tell that they are shown otherwise now.

A page keeps the text of a lease by its mark, a list of 1.0 by its revision, and both show something stale if what is
shown changes without these. So whatever writes while this watches is held against that, each transaction by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from flask import Flask
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from blazar.api.http.answers import encode
from blazar.api.leases.rules import View
from blazar.api.leases.v1_0 import render as render_v1_0
from blazar.api.leases.v1_1 import render
from blazar.model.base.paging import Page
from blazar.model.leases.details import LeaseFilter, LeaseState
from blazar.store.leases.leases import read_leases
from blazar.store.leases.pages import LeasePages
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import leases
from blazar.store.sql.transactions import Transactions
from blazarconformance.clock import NOON

_APP = Flask("marks")
VIEWS: Mapping[str, View] = {"operator": View(operator=True, names=True), "member": View(operator=False, names=False)}


@dataclass(slots=True)
class WatchedLeases:
    """What was shown by what it is kept by; ``stale`` says what changed without that, ``changed`` what changed."""

    shown: dict[tuple[object, ...], Any] = field(default_factory=dict)
    last: dict[tuple[str, str], Any] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    stale: list[str] = field(default_factory=list)

    def note(self, connection: Connection) -> None:
        """Look at all leases as a transaction leaves them, which is about to be committed."""
        pages = LeasePages(cast(Transactions, _Inside(connection)))
        page = pages.page(LeaseFilter(LeaseState.ALL), Page(1000, sort_key="created_at"), now=NOON)
        # Leases are shown with their URL.
        with _APP.test_request_context():
            for mark, details in zip(page.listed, page.items, strict=True):
                for name, view in VIEWS.items():
                    self._compare(name, mark.id, mark, render.lease(details, view))
        for lease in read_leases(connection, [leases.c.deleted_at.is_(None)]):
            self._compare("1.0", lease.id, (lease.id, lease.revision), render_v1_0.lease(lease))

    def _compare(self, form: str, lease_id: str, kept_by: object, new: Any) -> None:
        before = self.shown.setdefault((form, kept_by), new)
        if encode(before) != encode(new):
            self.stale.append(f"{form}: {', '.join(sorted(list_changes(before, new)))}")
        self.changed |= list_changes(self.last.get((form, lease_id), new), new)
        self.last[form, lease_id] = new


def list_changes(before: Any, after: Any, where: str = "") -> set[str]:
    """Return the names of what differs in two JSON values; parts of a list are one."""
    if isinstance(before, dict) and isinstance(after, dict):
        keys = before.keys() | after.keys()
        return {p for k in keys for p in list_changes(before.get(k), after.get(k), f"{where}/{k}" if where else k)}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return {path for one, other in zip(before, after, strict=True) for path in list_changes(one, other, where)}
    return set() if before == after else {where}


class _Inside:
    """Reads inside of a transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection


@contextmanager
def watched(engine: Engine) -> Iterator[WatchedLeases]:
    """Watch what is committed on an engine in the block."""
    found = WatchedLeases()

    def note(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITES):
            found.note(connection)

    event.listen(engine, "commit", note)
    try:
        yield found
    finally:
        event.remove(engine, "commit", note)
