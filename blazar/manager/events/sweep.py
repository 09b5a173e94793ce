# SPDX-License-Identifier: Apache-2.0
"""The sweep: finds objects with our names in the cloud that belong to no live lease, and has them removed.

What it finds is on record (``store.findings``), for all managers and for who asks for problems.

A call to the cloud that was sent just before its sender was stopped, or that the cloud executes after the sender has
given up, may take effect when its lease has finished. The sweep finds what it made. The removal is an event of that
lease, claimed and retried like every other. Objects of reservations that are not on record may belong to another Blazar
on the same cloud: these are only reported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.deleted_by_users import DeletedByUsers
from blazar.manager.leases import lifecycle
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, CloudError, StaleLease
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.lease import Lease
from blazar.model.leases.states import EventType
from blazar.model.problems.problems import ProblemKind
from blazar.model.problems.troubles import CLEAN_UPS, MARK, CloudFinding
from blazar.observe import metrics
from blazar.resources.contract.type import ResourceType
from blazar.store.problems.findings import Look, Recorded

LOG = logging.getLogger(__name__)

RECENT = timedelta(days=7)
"""How long after the end of a lease its project is searched, where the cloud lists one project at a time."""

UNRECORDED = 50
"""Clean-ups that a sweep begins of leases of which no finding is on record, as there are too many."""

LONGEST_PAUSE = timedelta(hours=4)
"""Clean-ups of a lease follow each other in ``CLEAN_UPS`` sweeps; then pauses double, up to this."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The types of the reservations that have something in the cloud, by id, and the types that told all they have."""

    found: Mapping[str, str]
    types: frozenset[str]


class Sweep(BackgroundThread):
    """Searches the cloud of a region for leftovers of finished leases. Any number of managers may do so at a time."""

    def __init__(self, runtime: Runtime, region: str = "") -> None:
        self._runtime = runtime
        self._region = region
        # After a take-over it waits until calls of the previous manager have taken effect.
        settle = 2 * runtime.settings.claim_ttl.total_seconds()
        name = f"sweep-{region}" if region else "sweep"
        super().__init__(
            name,
            work="Leftovers of finished leases cannot be searched for",
            retry=runtime.settings.sweep_interval.total_seconds(),
            first_pause=runtime.settings.sweep_interval.total_seconds(),
            settle=settle,
        )
        runtime.signals.work_taken_over.connect(self.wake)
        self.deleted = DeletedByUsers(runtime, region)
        self._unlisted = 0
        # The last lease without a finding that was cleaned up: so each has its turn, whatever is left of the others.
        self._last_unrecorded = ""

    def start(self) -> None:
        """Start the thread that sweeps every ``sweep_interval``; none if that is zero."""
        if self._runtime.settings.sweep_interval:
            super().start()

    def run_once(self) -> int:
        """Sweep once; return how many leases have leftovers. What a service does not tell is left to the next one."""
        self._unlisted = 0
        seen = self._list_cloud()
        owners = self._runtime.store.leases.load_owners(seen.found)
        unknown = seen.found.keys() - owners.keys()
        self._record_unknown(seen, unknown)
        left = frozenset(id_ for id_, owner in owners.items() if owner.over)
        if left:
            # List again: an object may have been removed between the first list and the query of the database.
            again = self._list_cloud()
            left &= again.found.keys()
            seen = replace(seen, types=seen.types & again.types)
        leases = {id_: owners[id_].lease_id for id_ in left}
        recorded = self._record_leftovers(seen, leases)
        for lease_id, finding in recorded.items():
            if finding.next_at is None or finding.next_at <= self._runtime.clock.now():
                self._end(lease_id, finding)
        for lease_id in self._choose_unrecorded(set(leases.values()) - recorded.keys()):
            self._end(lease_id, None)
        count = len(set(leases.values()))
        self._tell_findings(leftover=count, unknown=len(unknown), unlisted=self._unlisted)
        if leases:
            self._runtime.signals.events_due()
        return count

    @property
    def region(self) -> str:
        """The region whose cloud it searches."""
        return self._region

    def look(self) -> tuple[str, ...]:
        """Record what is in the cloud and not on record, and end nothing; return the types that do not tell now."""
        seen = self._list_cloud()
        owners = self._runtime.store.leases.load_owners(seen.found)
        self._record_unknown(seen, seen.found.keys() - owners.keys())
        return tuple(sorted(self._runtime.types.keys() - seen.types))

    def _record_leftovers(self, seen: Listing, leases: Mapping[str, str]) -> dict[str, CloudFinding]:
        """Record which reservations of which leases have left something; return a finding of each lease, in order.

        Users can write the mark of a past reservation on what is theirs. The clean-up leaves that alone, so that every
        sweep finds it: less and less is done about what no clean-up removes. All managers count together.
        """
        recorded = self._record(seen, ProblemKind.LEFTOVER, leases, leases)
        by_lease: dict[str, CloudFinding] = {}
        for finding in recorded.findings:
            if finding.lease_id is not None and finding.key in leases:
                by_lease.setdefault(finding.lease_id, finding)
        return dict(sorted(by_lease.items()))

    def _choose_unrecorded(self, lease_ids: Iterable[str]) -> list[str]:
        """Return the leases without a finding whose turn it is: marks that users invent hide no other's leftover."""
        last = self._last_unrecorded
        chosen = sorted(lease_ids, key=lambda lease_id: (lease_id <= last, lease_id))[:UNRECORDED]
        if chosen:
            self._last_unrecorded = chosen[-1]
        return chosen

    def _record(self, seen: Listing, what: ProblemKind, keys: Iterable[str], leases: Mapping[str, str]) -> Recorded:
        now = self._runtime.clock.now()
        found = {
            key: CloudFinding(what, self._region, key, seen.found[key], now, now, leases.get(key))
            for key in keys
            if MARK.fullmatch(key)
        }
        return self._runtime.store.findings.record(Look(what, self._region, now, found, seen.types))

    def _note(self, lease_id: str, finding: CloudFinding, now: datetime) -> None:
        """Record that a clean-up has begun."""
        count = finding.tries + 1
        pause = timedelta(0)
        if count >= CLEAN_UPS:
            pause = min(LONGEST_PAUSE, self._runtime.settings.sweep_interval * 2.0 ** min(count - CLEAN_UPS + 1, 15))
        if count == CLEAN_UPS:
            LOG.warning(
                "Lease %s has finished, and something in the cloud still bears the mark of its reservations after %d "
                "clean-ups. It may not be ours: the next one begins in %s, later ones after longer pauses",
                lease_id,
                count,
                pause,
            )
        self._runtime.store.findings.count_try(finding, tries=count, next_at=now + pause)

    def _list_cloud(self) -> Listing:
        found: dict[str, str] = {}
        told: set[str] = set()
        for kind in self._runtime.types.values():
            # Types skipped now are covered by the next sweep, of any manager.
            if not self._stopping.is_set():
                # Each for itself: a service that is silent takes no time from the others.
                with scope(limit=self._runtime.settings.poll_limit):
                    listed = self._of_type(kind)
                if listed is not None:
                    told.add(kind.resource_type)
                    found |= dict.fromkeys(listed - found.keys(), kind.resource_type)
        return Listing(found, frozenset(told))

    def _tell_findings(self, **findings: int) -> None:
        for what, count in findings.items():
            metrics.SWEEP_FINDINGS.set(count, self._region, what)
        metrics.SWEEP_LAST_SUCCESS.set_to_now(self._region)

    def _listed(self, kind: ResourceType) -> frozenset[str]:
        every = self._runtime.store.resources.catalog(kind.kind).resources
        resources = [resource for resource in every if resource.region == self._region] if self._region else every
        within = kind.within(self._region)
        found = within.reservations_in_cloud(resources) | self._past(within.projects_in_cloud(resources))
        return found | within.reservations_in_projects(self._projects(kind))

    def _of_type(self, kind: ResourceType) -> frozenset[str] | None:
        """Return the reservations of a type that have something in the cloud; None if a service does not tell."""
        try:
            return self._listed(kind)
        except CloudError as error:
            self._unlisted += 1
            LOG.warning(
                "Leftovers of %s cannot be listed, retrying with the next sweep: %s", kind.resource_type, error.message
            )
            return None
        except BlazarError:
            raise
        except Exception:
            # Code of other packages may raise anything; the other types are swept all the same.
            self._unlisted += 1
            LOG.exception("Leftovers of %s cannot be listed", kind.resource_type)
            return None

    def _projects(self, kind: ResourceType) -> frozenset[str]:
        """Return the projects in which a type may have left something of late, if that has to be known."""
        if not kind.has("reservations_in_projects"):
            return frozenset()
        since = self._runtime.clock.now() - RECENT
        return self._runtime.store.leases.list_projects_with(kind.resource_type, since=since)

    def _past(self, projects: Mapping[int, frozenset[str]]) -> frozenset[str]:
        """Return the last reservations of the projects that can still use resources, and should no more."""
        past = self._runtime.store.leases.last_reservations(projects, self._runtime.clock.now())
        return frozenset(past.values())

    def _end(self, lease_id: str, finding: CloudFinding | None) -> None:
        """Begin the clean-up of a lease, and count it if it has a finding."""
        if self._runtime.settings.sweep_dry_run:
            LOG.warning("Lease %s has finished and has leftovers in the cloud; they stay (sweep_dry_run)", lease_id)
            return
        now = self._runtime.clock.now()
        lease = self._runtime.store.leases.one(lease_id, including_deleted=True)
        after = begin_clean_up(lease, now=now)
        if after is lease:
            return
        LOG.warning("Lease %s has finished and has leftovers in the cloud; removing them", lease_id)
        try:
            self._runtime.store.leases.save(lease, after, at=now)
            if finding is not None:
                self._note(lease_id, finding, now)
        except StaleLease:
            LOG.debug("Lease %s was changed by another thread or manager; the next sweep retries", lease_id)

    def _record_unknown(self, seen: Listing, reservation_ids: Iterable[str]) -> None:
        """Record what is not on record here, and log what is new."""
        for key in sorted(self._record(seen, ProblemKind.UNKNOWN, reservation_ids, {}).new):
            LOG.warning(
                "Reservation %s is not on record here, but has objects in the cloud; they stay, as they may belong to "
                "another Blazar. If they do not, as after a backup was restored, end them: see docs/repair.md",
                key,
            )

    def _round(self) -> float:
        self.deleted.run_once()
        self.run_once()
        return self._runtime.settings.sweep_interval.total_seconds()


def begin_clean_up(lease: Lease, *, now: datetime) -> Lease:
    """Return a finished lease with an event, due at once, that removes its leftovers from the cloud.

    The same lease if such an event is in progress. One that is finished, or was dropped when the lease was deleted, is
    reused: however often leftovers are found, the record does not grow.
    """
    known = lease.event(EventType.CLEAN_UP)
    if known is not None and known.due_at is not None:
        return lease
    return lifecycle.with_event(
        lease, lifecycle.new_event(EventType.CLEAN_UP, to_second(now), now, due_at=now, known=known)
    )
