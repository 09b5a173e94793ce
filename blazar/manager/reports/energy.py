# SPDX-License-Identifier: Apache-2.0
"""Says what hosts drew: those of a lease from their hand-over to their return, or until now, and those of nobody."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from blazar.manager.common.runtime import Runtime
from blazar.manager.reports.questions import LONGEST
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.window import Window
from blazar.model.energy.book import EnergyBook
from blazar.model.energy.carbon import HourlyCurve, LeaseEnergy, summarize
from blazar.model.energy.unbooked import UnbookedEnergy, find_unbooked
from blazar.model.reports.periods import list_days
from blazar.model.reports.sums import share_host
from blazar.model.resources.resource import HOST
from blazar.store.energy.book import EnergyStore
from blazar.store.store import Store


class LeaseEnergies:
    """The energy and the carbon of leases, by what is on record of their hosts, and else by what is known now."""

    def __init__(self, runtime: Runtime) -> None:
        self._reports, self._energy = runtime.store.reports, runtime.store.energy
        self._clock = runtime.clock
        self._carbon = runtime.carbon

    def find(self, lease_id: str) -> LeaseEnergy:
        """Return what a lease drew and emitted until now; four statements."""
        now = to_second(self._clock.now())
        uses = [use for use in self._reports.list_uses_of_lease(lease_id, now=now) if use.handed_over is not None]
        since = min((datetime.fromtimestamp(use.start, UTC) for use in uses), default=now)
        ids = {use.resource_id for use in uses if use.kind == str(HOST)}
        found = self._energy.read_book(ids, Window(since, now)) if ids and since < now else EnergyBook()
        book, end = self._add_curve(found), int(now.timestamp())
        shares = [share for use in uses if (share := share_host(use, use.start, end, book)) is not None]
        energy, footprint = book.measure(shares)
        return summarize(energy, shares, footprint, now)

    def _add_curve(self, book: EnergyBook) -> EnergyBook:
        """Return what is on record, and for hours that are not the curve as this manager knows it."""
        known = self._carbon.read_curve()
        if known is None:
            return book
        kept = {} if book.curve is None else dict(book.curve.values)
        return replace(book, curve=HourlyCurve(ChainMap(kept, dict(known.values))), pue=self._carbon.pue)


def read_hosts(store: EnergyStore, window: Window) -> EnergyBook | None:
    """Return what is on record of all hosts in a window, in three statements; None if the site records nothing."""
    return store.read_book(None, window) if store.terms.records else None


def check_unbooked(window: Window) -> None:
    """Raise InvalidInput if a period is too long: it is computed from leases, and from no record by days."""
    if window.duration > LONGEST:
        raise InvalidInput(
            f"unbooked covers at most {LONGEST.days} days, and from and to are {window.duration.days} days apart; "
            "give a shorter period, or leave unbooked out",
            code="out_of_bounds",
            at=query_field("unbooked"),
            data={"maximum": int(LONGEST.total_seconds())},
        )


def read_unbooked(store: Store, past: Window, zone: ZoneInfo, now: datetime) -> UnbookedEnergy | None:
    """Return what hosts drew that no lease had in a period that is over; None if leases of it were purged.

    Thirteen statements.
    """
    days = list(list_days(past, zone))
    times = store.energy.read_host_times(past, (days[0], days[-1]))
    if not times.is_whole:
        return None
    book = store.energy.read_book(None, past)
    first, last = int(past.start.timestamp()), int(past.end.timestamp())
    with store.reports.view_usage(past, now=now) as view:
        booked = [share for use in view.uses if (share := share_host(use, first, last, book)) is not None]
    return find_unbooked(times, booked, book)
