# SPDX-License-Identifier: Apache-2.0
"""What searches for hosts read: once for all that look at one moment, such as for each lease in line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from blazar.calendar.repack.in_use import HostsInUse
from blazar.manager.booking.booking import PlacementRequest
from blazar.manager.booking.held_calendar import HeldCalendar
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import later, to_second
from blazar.model.base.values import dataclass, field
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.resource import HOST
from blazar.store.resources.catalog import ResourceCatalog

_IN_USE = "hosts in use"


@dataclass(slots=True)
class HostReading:
    """What is promised ``around`` a window: read once, when it is needed, for all searches of a moment."""

    runtime: Runtime
    now: datetime
    around: Window
    generations: Mapping[int, int] = field(default_factory=dict)
    _held: HeldCalendar | None = None
    _in_use: tuple[ResourceCatalog, HostsInUse] | None = None

    @property
    def held(self) -> HeldCalendar:
        """Return what is promised, which is read at first, in a constant number of statements."""
        if self._held is None:
            store = self.runtime.store
            start = max(self.around.start, to_second(self.now))
            whole = Window(start, later(self.around.end, store.calendar.cleaning_time))
            with store.maintenances.open_planning(HOST, self.now, around=whole) as view:
                self.generations = view.generations([resource.id for resource in view.catalog.resources])
            self._held = HeldCalendar(self.runtime, HOST, view, self.now)
        return self._held

    def read_in_use(self, lease: Lease, requests: Sequence[PlacementRequest]) -> HostsInUse | None:
        """Return the hosts that others have over time; None if that is not kept, or proves what is not to be told.

        Of hosts that are open to some projects only, others are not told the number. Where too few are as they are
        asked for, there is another reason. Leases that have nothing share what is read for the first.
        """
        has_nothing = lease.status is LeaseStatus.WAITING
        known = (self._in_use if has_nothing else None) or self._read_in_use(lease)
        if known is None:
            return None
        catalog, in_use = known
        if has_nothing:
            self._in_use = known
        if any(len(catalog.matching(r.demand.requirement)) < r.demand.min_count for r in requests):
            return None
        return in_use

    def _read_in_use(self, lease: Lease) -> tuple[ResourceCatalog, HostsInUse] | None:
        with self.runtime.store.calendar.view_kept(HOST, self.now) as view:
            catalog, kept = view.catalog, view.kept
            if kept is None or catalog.restricted:
                return None
            others = view.list_kept_without(lease.id, as_of=self.now)
        known = kept.derived.find(_IN_USE)
        if known is None or known[0] is not catalog:
            known = catalog, HostsInUse.of(resource.id for resource in catalog.resources if resource.reservable)
        in_use: HostsInUse = known[1].follow(kept.resources)
        kept.derived.keep(_IN_USE, (catalog, in_use))
        return catalog, in_use if others is None or others is kept.resources else in_use.follow(others)
