# SPDX-License-Identifier: Apache-2.0
"""What surgery on leases was done, and what must hold of it: histories tell each once, and nothing is lost."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import sqlalchemy as sa

from blazar.model.base.errors import NotFound
from blazar.model.base.paging import Page
from blazar.model.calendar.allocations import Allocation
from blazar.model.journal.entries import PastEntry, Verb
from blazar.store.sql.tables import journal
from blazar.store.store import Store

OF_SURGERY = frozenset({Verb.SPLIT, Verb.MERGED, Verb.SWAPPED})

Amounts = Counter[object]
"""For how many seconds how much of each resource is promised."""


@dataclass(frozen=True, slots=True)
class Side:
    """A lease at one of its revisions, and what it has then."""

    revision: int
    allocations: tuple[Allocation, ...]

    @classmethod
    def of(cls, store: Store, lease_id: str) -> Side | None:
        """Return a lease as it is; None if it is gone, or changed while it was read."""
        try:
            lease = store.leases.one(lease_id)
            allocations = store.calendar.of_lease(lease_id)
            same = store.leases.one(lease_id).revision == lease.revision
        except NotFound:
            return None
        return cls(lease.revision, allocations) if same else None

    def amounts(self, *, of_resources: bool) -> Amounts:
        """Return how much of what it has for how long."""
        found: Amounts = Counter()
        for each in self.allocations:
            length = int(each.window.duration.total_seconds())
            what = (each.resource_id, each.per_instance) if of_resources else each.kind
            found[what] += each.count * length
        return found


@dataclass(frozen=True, slots=True)
class Before:
    """The leases of an operation before it, by id; one that cannot be told is None."""

    sides: Mapping[str, Side | None]

    @classmethod
    def of(cls, store: Store, lease_ids: Collection[str]) -> Before:
        """Return these leases as they are."""
        return cls({lease_id: Side.of(store, lease_id) for lease_id in lease_ids})


@dataclass(slots=True)
class Operations:
    """What was done, by lease and verb, counted; ``found`` notes what must never be."""

    store: Store
    found: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    _done: Counter[tuple[str, Verb]] = field(default_factory=Counter)
    _perhaps: Counter[tuple[str, Verb]] = field(default_factory=Counter)
    _made: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def done(self, verb: Verb, lease_ids: Collection[str]) -> None:
        """Note an operation that was done."""
        with self._lock:
            self.counts[verb] += 1
            self._done.update((lease_id, verb) for lease_id in lease_ids)

    def unsure(self, verb: Verb, lease_ids: Collection[str]) -> None:
        """Note an operation of which nobody knows whether it was done."""
        with self._lock:
            self.counts[f"{verb}, perhaps"] += 1
            self._perhaps.update((lease_id, verb) for lease_id in lease_ids)
            self._made += verb == Verb.SPLIT

    def compare(self, verb: Verb, before: Before, left: Collection[str]) -> None:
        """Compare what leases have with what they had before, unless others have changed them meanwhile."""
        told = {lease_id: self._told(lease_id, verb) for lease_id in {*before.sides, *left}}
        # Nobody came in between if the operation made the revision after the one that was read.
        for lease_id, side in before.sides.items():
            if side is None or told[lease_id] is None or told[lease_id] != side.revision + 1:
                return
        after = {lease_id: Side.of(self.store, lease_id) for lease_id in left}
        if any(side is None or side.revision != told[lease_id] for lease_id, side in after.items()):
            return
        with self._lock:
            self.counts[f"{verb}, compared"] += 1
        # Who gets another host has it as long; who exchanges one may have a longer window.
        same = verb != Verb.SWAPPED
        had = sum((s.amounts(of_resources=same) for s in before.sides.values() if s is not None), Counter[object]())
        has = sum((s.amounts(of_resources=same) for s in after.values() if s is not None), Counter[object]())
        if had != has:
            self.found(f"leases {', '.join(before.sides)} were {verb}: they had {dict(had)}, and have {dict(has)}")

    def check(self) -> None:
        """Check that the history of every lease tells each operation on it once, and no other."""
        told: Counter[tuple[str, Verb]] = Counter()
        for lease in (*self.store.leases.of_project(None), *self.store.leases.load_past()):
            for entry in _history(self.store, lease.id):
                if entry.verb in OF_SURGERY:
                    told[lease.id, entry.verb] += 1
                if entry.verb is Verb.SWAPPED:
                    for move in entry.moves:
                        if move.gone_count != move.come_count:
                            self.found(f"reservation {move.reservation_id} of lease {lease.id} was swapped: {move}")
        made = self._made
        for lease_id, verb in {*told, *self._done}:
            number, least = told[lease_id, verb], self._done[lease_id, verb]
            if number > least + self._perhaps[lease_id, verb] and verb == Verb.SPLIT and made:
                # The second lease of an operation that nobody has heard of any more.
                made -= 1
            elif not least <= number <= least + self._perhaps[lease_id, verb]:
                tale = [f"{entry.id} {entry.verb} {entry.by}" for entry in _history(self.store, lease_id)]
                self.found(f"lease {lease_id} was {verb} {least} times, not {number} times as its history says: {tale}")

    def _told(self, lease_id: str, verb: Verb) -> int | None:
        """Return the revision that the last operation has made; None if there was none."""
        j = journal.c
        query = sa.select(sa.func.max(j.revision)).where(j.object_id == lease_id, j.verb == str(verb))
        with self.store.transactions.reading() as connection:
            found: int | None = connection.execute(query).scalar()
        return found


def _history(store: Store, lease_id: str) -> tuple[PastEntry, ...]:
    return store.history.page(lease_id, Page(10_000, "id")).items
