# SPDX-License-Identifier: Apache-2.0
"""What must hold of leases that wait, of series and of maintenance windows: at each look, and when all is at rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from blazar.manager.queue.waiting_leases import backoff_until
from blazar.model.base.paging import Page
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import LeaseStatus
from blazar.model.maintenance.windows import MARK, Maintenance, MaintenancePage, MaintenanceQuestion, MaintenanceStatus
from blazar.model.series.details import OccurrenceState, Series, SeriesDetails, SeriesPage, SeriesQuestion, SeriesStatus
from blazar.store.store import Store
from tests.people import PeopledCloud

WORKED_ON = (MaintenanceStatus.STARTING, MaintenanceStatus.ENDING)
GONE = (MaintenanceStatus.DONE, MaintenanceStatus.CANCELLED)
ALL = 10_000


class Turns:
    """What the looks of a watcher say of leases that wait: nobody is served twice, and no promise becomes later."""

    def __init__(self, found: Callable[[str], None]) -> None:
        self._found = found
        self._promises: dict[tuple[str, int], datetime] = {}
        self._started: dict[str, int] = {}
        self.served: set[str] = set()
        """Leases that have waited and were booked."""

    def look(self, before: Mapping[str, Lease], held: Mapping[str, int], after: Mapping[str, Lease]) -> None:
        """Compare one look with all before it. ``held`` counts what leases hold, read between the other two."""
        for lease in before.values():
            if lease.wait is None:
                continue
            now = after.get(lease.id)
            same = now is not None and now.revision == lease.revision
            if same and lease.status in (LeaseStatus.WAITING, LeaseStatus.TIMED_OUT) and held.get(lease.id):
                self._found(f"lease {lease.id} is {lease.status} and holds {held[lease.id]} resources")
            self._look_at(lease)

    def _look_at(self, lease: Lease) -> None:
        assert lease.wait is not None
        tries = len(lease.wait.failed)
        if lease.status in (LeaseStatus.PENDING, LeaseStatus.STARTING, LeaseStatus.ACTIVE):
            self.served.add(lease.id)
        if lease.status is LeaseStatus.ACTIVE:
            self._started[lease.id] = tries
        elif lease.status is LeaseStatus.WAITING and self._started.get(lease.id) == tries:
            # Only a start that failed, which is on record, brings a lease back to the list.
            self._found(f"lease {lease.id} was in use, and waits for another turn")
        if not lease.is_promised:
            return
        start = self._promises.setdefault((lease.id, tries), lease.window.start)
        if lease.window.start > start:
            self._found(f"lease {lease.id} was promised {start}, and then {lease.window.start}")
        self._promises[lease.id, tries] = lease.window.start


def check_turns(store: Store, now: datetime) -> None:
    """Check a waiting list at rest: all that wait have been told their places by a plan of the state of now."""
    state = store.waiting_list.load_state()
    waiting = store.waiting_list.load_waiting()
    if not waiting:
        return
    assert state.seen == state.now_seen, "something has changed since the last plan, and nobody plans"
    assert state.due_at is not None, "leases wait, and no plan is due ever"
    assert state.due_at > now - timedelta(seconds=20), f"a plan is due since {state.due_at}, and nobody plans"
    for lease in waiting:
        assert lease.wait is not None
        told = lease.wait.position is not None or lease.wait.reason is not None
        assert told, f"lease {lease.id} waits and was told nothing"
        assert lease.wait.gives_up_at > now - timedelta(seconds=20), f"lease {lease.id} should have given up"


def forgotten(leases: Collection[Lease]) -> list[str]:
    """Return the leases that still wait, or gave up, when everything is free; not those that let others go first."""
    return [
        f"{lease.id} {lease.status} {lease.wait}"
        for lease in leases
        if lease.status is LeaseStatus.WAITING and backoff_until(lease) is None
    ]


def check_series(store: Store, now: datetime) -> None:
    """Check that each series has each of its occurrences exactly once, and that no lease is left without its series."""
    known = {found.id: store.series.one(found.id, now) for found in all_series(store.series)}
    leases = {lease.id: lease for lease in store.leases.of_project(None)}
    for found in known.values():
        _check_occurrences(found, leases)
    places = Counter[object]()
    for lease in leases.values():
        if lease.series is None:
            continue
        places[lease.series] += 1
        series_id = lease.series.series_id
        details = known.get(series_id)
        if details is None:
            # Its series was deleted, which left it as it had begun.
            assert lease.status is not LeaseStatus.PENDING, (
                f"lease {lease.id} is left of the deleted series {series_id}"
            )
            continue
        mine = [o for o in details.occurrences if o.lease_id == lease.id]
        assert len(mine) == 1, f"lease {lease.id} of series {series_id} is {mine} of its occurrences"
    twice = [place for place, number in places.items() if number > 1]
    assert not twice, f"occurrences have several leases: {twice}"


def _check_occurrences(found: SeriesDetails, leases: Mapping[str, Lease]) -> None:
    series, named = found.series, f"series {found.series.id}"
    assert series.status in (SeriesStatus.ACTIVE, SeriesStatus.ENDED, SeriesStatus.FAILED), f"{named}: {series.status}"
    ids = [each.recurrence_id for each in found.occurrences]
    assert len(set(ids)) == len(ids), f"{named} has an occurrence twice: {ids}"
    live = [each for each in found.occurrences if each.state is OccurrenceState.BOOKED]
    if series.status is SeriesStatus.FAILED:
        assert not live, f"{named} has failed, and has leases: {live}"
        return
    for each in found.occurrences:
        assert each.state is not OccurrenceState.PLANNED, f"{named}: {each.recurrence_id} is never booked"
        assert each.state is not OccurrenceState.UNFIT or each.reason, f"{named}: {each.recurrence_id} has no reason"
    for each in live:
        lease = leases.get(each.lease_id or "")
        assert lease is not None, f"{named}: the lease {each.lease_id} of {each.recurrence_id} does not exist"
        assert lease.series is not None, f"{named}: lease {lease.id} is not of a series"
        assert (lease.series.series_id, lease.series.recurrence_id) == (series.id, each.recurrence_id), named
    last = series.recurrence.start + timedelta(days=400) if series.recurrence.rule.has_end else max(ids)
    wanted = (
        set(series.recurrence.rule_starts(series.recurrence.start.date(), last.date())) - series.recurrence.excluded
    )
    assert wanted <= {*ids}, f"{named}: nothing is on record of {sorted(wanted - {*ids})}"


def check_maintenance(store: Store, cloud: PeopledCloud, now: datetime) -> None:
    """Check that no window is overdue, and that exactly the hosts of windows that have begun carry our mark."""
    begun: set[str] = set()
    for window in windows(store.maintenances):
        assert window.status not in WORKED_ON, f"maintenance {window.id} stays {window.status}: {window.trouble}"
        late = window.window.start if window.status is MaintenanceStatus.PLANNED else window.window.end
        overdue = window.status not in GONE and late < now - timedelta(seconds=20)
        assert not overdue, f"maintenance {window.id} is still {window.status}: {window.trouble}"
        if window.status is MaintenanceStatus.ACTIVE:
            begun.add(window.id)
    for host in cloud.compute.hypervisors():
        if (host.disabled_reason or "").startswith(MARK):
            owner = (host.disabled_reason or "").removeprefix(MARK).strip()
            assert owner in begun, f"{host.hypervisor_hostname} is disabled by maintenance {owner}, which is over"
        else:
            assert host.enabled, f"{host.hypervisor_hostname} is disabled, and nobody says why"


class Windows(Protocol):
    """Who lists maintenance windows: a store, or a manager."""

    def page(self, question: MaintenanceQuestion) -> MaintenancePage:
        """Return a page of them."""


class SeriesList(Protocol):
    """Who lists series: a store, or a manager."""

    def page(self, question: SeriesQuestion) -> SeriesPage:
        """Return a page of them."""


def windows(listing: Windows) -> tuple[Maintenance, ...]:
    """Return all maintenance windows there ever were."""
    return listing.page(MaintenanceQuestion(Page(ALL, "created_at"))).items


def all_series(listing: SeriesList) -> tuple[Series, ...]:
    """Return all series that are not deleted."""
    return listing.page(SeriesQuestion(Page(ALL, "created_at"))).items


def give_back(store: Store, ask: Callable[[str, str], object]) -> int:
    """Ask to delete all series and to end all windows; return how many there were."""
    number = 0
    for series in all_series(store.series):
        number += series.status is not SeriesStatus.DELETING
        ask("DELETE", f"/v1/series/{series.id}?running=true")
    for window in windows(store.maintenances):
        if window.status in GONE:
            continue
        number += 1
        if window.status is MaintenanceStatus.PLANNED:
            ask("DELETE", f"/v1/maintenances/{window.id}")
        else:
            ask("POST", f"/v1/maintenances/{window.id}/end")
    return number
