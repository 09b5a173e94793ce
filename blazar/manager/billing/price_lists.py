# SPDX-License-Identifier: Apache-2.0
"""The requests about price lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from blazar.manager.common.runtime import Runtime
from blazar.model.billing.comparison import Comparing, MonthComparison
from blazar.model.billing.price_lists import PriceList, check_currency, check_privacy
from blazar.model.billing.published import (
    Publication,
    PublishedList,
    check_energy,
    check_measures,
    compare_documents,
    draft_list,
    list_left_out,
    list_replaced,
    list_unmatched,
)
from blazar.model.billing.recomputation import CheckedLease
from blazar.model.leases.requests import Actor
from blazar.model.reports.periods import DAY
from blazar.model.resources.resource import PropertyValue, ResourceKind

MOST_LEASES = 2000
"""Leases of which a dry run says what they would have cost."""

BATCH = 100
"""Leases that are read together for that."""

LONGEST = 8.0
"""Seconds that it may take: who asks waits for the answer."""


class PriceListService:
    """Answers the calls about price lists; ``kinds`` are those whose resources may have prices."""

    def __init__(self, runtime: Runtime, kinds: Iterable[ResourceKind]) -> None:
        self._runtime = runtime
        self._store = runtime.store.price_lists
        self._kinds = tuple(kinds)
        self.most_leases = MOST_LEASES

    def all(self) -> tuple[PublishedList, ...]:
        """Return all price lists, oldest first; one statement."""
        return self._store.list_published()

    def one(self, version: int) -> PublishedList:
        """Return a price list; NotFound. One statement."""
        return self._store.one(version)

    def publish(self, document: Mapping[str, Any], by: Actor, *, dry_run: bool = False) -> Publication:
        """Publish a price list, unless this is a dry run, and return what it changes.

        InvalidInput for a wrong document; Conflict if somebody else has published one meanwhile.
        """
        before = self._store.newest()
        new = draft_list(document, before, now=self._runtime.clock.now(), published_by=by.user_id)
        catalogs = {str(kind): self._runtime.store.resources.catalog(kind) for kind in self._kinds}
        self._check(new, before, {kind: one.private for kind, one in catalogs.items()})
        changes = compare_documents({} if before is None else before.document, new.document)
        prices, published = new.parse(), self._store.read()
        publication = Publication(
            new,
            changes,
            list_left_out(prices, published),
            list_replaced(prices, published),
            list_unmatched(prices, {kind: one.resources for kind, one in catalogs.items()}),
        )
        if dry_run:
            return replace(publication, last_month=self._compare_month(prices))
        return self._store.add(publication, self._runtime.clock.now)

    def _compare_month(self, new: PriceList) -> MonthComparison | None:
        """Return what the last month would have cost, of as many leases as there is time for; None: of none."""
        clock, recomputations = self._runtime.clock, self._runtime.store.recomputations
        month = (clock.now().replace(day=1) - DAY).date().replace(day=1)
        found = recomputations.list_charged(month, self.most_leases + 1)
        comparing, until = Comparing(month, new, self._store.read()), clock.elapsed() + LONGEST
        properties: dict[int, Mapping[str, PropertyValue]] = {}
        looked_at, is_whole = found[: self.most_leases], len(found) <= self.most_leases
        for first in range(0, len(looked_at), BATCH):
            if clock.elapsed() > until:
                is_whole = False
                break
            checked = recomputations.read(looked_at[first : first + BATCH])
            self._add_properties(properties, checked.leases)
            for lease in checked.leases:
                comparing.add(lease, properties)
        return comparing.sum_projects(is_whole=is_whole) if found else None

    def _add_properties(self, known: dict[int, Mapping[str, PropertyValue]], leases: Iterable[CheckedLease]) -> None:
        """Read the properties of what leases had that are not known yet, as they are now."""
        ids = {use.resource_id for lease in leases if lease.facts is not None for use in lease.facts.uses}
        if ids <= known.keys():
            return
        resources = self._runtime.store.resources
        for kind in self._kinds:
            known |= {one.id: one.properties for one in resources.catalog(kind).resources}
        if gone := ids - known.keys():
            known |= {id_: one.properties for id_, one in resources.by_ids(gone).items()}
            known |= {id_: {} for id_ in gone - known.keys()}

    def _check(self, new: PublishedList, before: PublishedList | None, private: Mapping[str, Collection[str]]) -> None:
        """Raise InvalidInput for what a document alone does not show: another currency, a private property."""
        prices = new.parse()
        check_energy(prices, is_recorded=self._runtime.store.energy.terms.records)
        if before is not None:
            check_currency(prices, before.parse())
            check_measures(prices, self._store.read())
        check_privacy(prices, private)
