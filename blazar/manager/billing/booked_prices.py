# SPDX-License-Identifier: Apache-2.0
"""What leases that are booked cost: what their projects were charged for them, and what is planned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from blazar.manager.billing.refusals import refuse_unplanned
from blazar.manager.common.runtime import Runtime
from blazar.model.billing.accounts import AccountState
from blazar.model.billing.booked_prices import AccountTotals, list_costs, sum_account
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import CancellationCost, LeasePrice, excuse, show_amount
from blazar.model.leases.details import LeaseDetails, LeasePage
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EndReason
from blazar.model.series.details import SeriesDetails, SeriesOccurrence
from blazar.store.booking.bookings import TriedPrices
from blazar.store.booking.commit import Commit, LeaseWrite


def drop_merged(commit: Commit) -> tuple[LeaseWrite, ...]:
    """Return the leases of an operation but for one that is merged into another one."""
    return tuple(write for write in commit.leases if write.after.end_reason is not EndReason.MERGED)


class BookedPrices:
    """Adds prices to leases; nothing is read as long as no price list is published."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._store = runtime.store

    @property
    def are_known(self) -> bool:
        """Whether leases may have prices: a price list is published."""
        return bool(self._store.price_lists.known())

    def add(self, details: LeaseDetails) -> LeaseDetails:
        """Return a lease with what it costs, and before its start with what it costs to cancel it; six statements."""
        if not (lists := self._store.price_lists.known()) or (totals := self._read_totals(details.lease)) is None:
            return details
        costs, lease = self._list_costs(totals), details.lease
        costs = excuse(costs, lease.confirm_by if costs else None, lists[-1].decimals)
        return replace(details, price=sum_account(totals, lists, costs))

    def find_price(self, lease: Lease, known: AccountTotals | None = None) -> LeasePrice | None:
        """Return what a lease costs; in one statement, none if its totals are ``known``."""
        if not (lists := self._store.price_lists.known()) or (totals := known or self._read_totals(lease)) is None:
            return None
        return sum_account(totals, lists)

    def _read_totals(self, lease: Lease) -> AccountTotals | None:
        return self._store.charges.sum_leases([lease.id]).get((lease.id, lease.project_id))

    def add_to_page(self, page: LeasePage) -> LeasePage:
        """Return leases with what each costs, in one statement."""
        if not page.items or not (lists := self._store.price_lists.known()):
            return page
        totals = self._store.charges.sum_leases([details.lease.id for details in page.items])

        def priced(details: LeaseDetails) -> LeaseDetails:
            found = totals.get((details.lease.id, details.lease.project_id))
            return details if found is None else replace(details, price=sum_account(found, lists))

        return replace(page, items=tuple(map(priced, page.items)))

    def add_to_series(self, series: SeriesDetails) -> SeriesDetails:
        """Return a series with what each of its leases costs, in one statement."""
        booked = [one.lease_id for one in series.occurrences if one.lease_id is not None]
        if not booked or not (lists := self._store.price_lists.known()):
            return series
        totals, project_id = self._store.charges.sum_leases(booked), series.series.project_id

        def priced(one: SeriesOccurrence) -> SeriesOccurrence:
            found = totals.get((one.lease_id or "", project_id))
            # Of one that is only tried to be changed the price is known.
            return one if found is None or one.price is not None else replace(one, price=sum_account(found, lists))

        return replace(series, occurrences=tuple(map(priced, series.occurrences)))

    def price_change(
        self, commit: Commit, lease: Lease, most: str | None = None, *, is_planned: bool = False
    ) -> LeasePrice | None:
        """Return what a lease would cost after a commit, and how much more than before; None: it has no price.

        Conflict if a ``most`` is given and not all of it is planned, StaleLease if the lease is another one by now.
        ``is_planned``: a catalog was read for it a moment ago. If not, it is one statement as long as no price list is
        published.
        """
        # As the ledger does: nothing else has read what is published, and another manager may have added the first.
        lists = self._store.price_lists.known() if is_planned else self._store.price_lists.read()
        if not lists:
            return None
        tried = self._store.bookings.try_prices(commit, [lease.id])
        price = self._price_tried(tried, lists, lease, [lease.id])
        if price is None and most is not None and (lease.id, lease.project_id) in tried.after:
            raise refuse_unplanned(most)
        return price

    def price_leases(self, commit: Commit) -> Mapping[str, LeasePrice]:
        """Return what leases would cost after a commit, by id, those without a price left out.

        UsageDenied, StaleLease, StaleCalendar, as for the commit. One statement as long as no price list is published.
        """
        if not (lists := self._store.price_lists.read()):
            return {}
        ids = [write.after.id for write in (*commit.leases, *commit.redated)]
        tried = self._store.bookings.try_prices(replace(commit, generations={}), ids)
        found = {lease_id: sum_account(totals, lists) for (lease_id, _), totals in tried.after.items()}
        return {id_: price for id_, price in found.items() if price is not None}

    def price_operation(self, commit: Commit) -> Mapping[str, LeasePrice]:
        """Return what the leases that an operation leaves would cost, by id, those without a price left out.

        Where leases become one, or one becomes two, the difference is that of all together. StaleLease if one is
        another one by now. One statement as long as no price list is published.
        """
        if not (lists := self._store.price_lists.read()):
            return {}
        ids = [write.after.id for write in commit.leases]
        # It is only tried: whether others were faster is seen when it is made.
        tried = self._store.bookings.try_prices(replace(commit, generations={}, key=None), ids)
        left = drop_merged(commit)
        is_one = len(left) < len(ids) or any(write.before is None for write in left)
        found = {
            write.after.id: self._price_tried(tried, lists, write.after, ids if is_one else [write.after.id])
            for write in left
        }
        return {id_: price for id_, price in found.items() if price is not None}

    def _price_tried(
        self, tried: TriedPrices, lists: Sequence[PriceList], lease: Lease, compared: Collection[str]
    ) -> LeasePrice | None:
        """Return what a lease would cost, and how much more those that are compared would cost its project."""
        key, now = (lease.id, lease.project_id), self._runtime.clock.now()
        if (after := tried.after.get(key)) is None:
            return None
        price = sum_account(after, lists, tuple(list_costs(after, tried.facts[lease.id], lists, now)))
        keys = [(id_, lease.project_id) for id_ in compared]
        were, are = ([known[one] for one in keys if one in known] for known in (tried.before, tried.after))
        if price is None or not all(totals.is_whole for totals in (*were, *are)):
            return price
        more = sum(totals.nano for totals in are) - sum(totals.nano for totals in were)
        return replace(price, difference=show_amount(more, lists[-1].decimals))

    def _list_costs(self, totals: AccountTotals) -> tuple[CancellationCost, ...]:
        """Return what it costs to cancel a lease until when; nothing once it has started."""
        account, now = totals.account, self._runtime.clock.now()
        if account.state is AccountState.CLOSED or account.parts[0].since <= now:
            return ()
        facts = self._store.closings.read_facts([account.lease_id])[account.lease_id]
        # Another manager may have published one, and passed the lease on by it.
        return tuple(list_costs(totals, facts, self._store.price_lists.read(), now))
