# SPDX-License-Identifier: Apache-2.0
"""The sweep: finds objects with our names in the cloud that belong to no live lease, and has them removed.

A call to the cloud that was sent just before its sender was stopped, or that the cloud executes after the sender has
given up, may take effect when its lease has finished. The sweep finds what it made. The removal is an event of that
lease, claimed and retried like every other. Objects of reservations that are not on record may belong to another Blazar
on the same cloud: these are only reported.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.deleted_by_users import DeletedByUsers
from blazar.manager.leases import lifecycle
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, CloudError, NotFound, StaleLease
from blazar.model.base.window import Window
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EndReason, EventType, LeaseStatus, ReservationStatus
from blazar.observe import metrics
from blazar.resources.contract.type import ResourceType
from blazar.store.booking.commit import Commit, LeaseWrite

LOG = logging.getLogger(__name__)

RECENT = timedelta(days=7)
"""How long after the end of a lease its project is searched, where the cloud lists one project at a time."""

AT_ONCE = 3
"""Clean-ups of a lease that follow each other in so many sweeps; then pauses double, up to ``LONGEST_PAUSE``."""

LONGEST_PAUSE = timedelta(hours=4)


@dataclass(frozen=True, slots=True)
class Tried:
    """How many clean-ups of a lease have begun since it was first found, and when the next one may."""

    count: int
    until: datetime


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
        self._reported: frozenset[str] = frozenset()
        self._tried: dict[str, Tried] = {}
        self._unlisted = 0

    def start(self) -> None:
        """Start the thread that sweeps every ``sweep_interval``; none if that is zero."""
        if self._runtime.settings.sweep_interval:
            super().start()

    def run_once(self) -> int:
        """Sweep once; return how many leases have leftovers. What a service does not tell is left to the next one."""
        self._unlisted = 0
        found = self._reservations_in_cloud()
        owners = self._runtime.store.leases.load_owners(found)
        unknown = found - owners.keys()
        self._report_unknown(unknown)
        left = frozenset(id_ for id_, owner in owners.items() if owner.over)
        if left:
            # List again: an object may have been removed between the first list and the query of the database.
            left &= self._reservations_in_cloud()
        leases = sorted({owners[id_].lease_id for id_ in left})
        for lease_id in self._due(leases):
            self._end(lease_id)
        self._tell_findings(leftover=len(leases), unknown=len(unknown), unlisted=self._unlisted)
        if leases:
            self._runtime.signals.events_due()
        return len(leases)

    @property
    def region(self) -> str:
        """The region whose cloud it searches."""
        return self._region

    def unknown(self) -> dict[str, str]:
        """Return the types of the reservations that have something in the cloud and are not on record, by id.

        CloudError if a service does not tell.
        """
        found: dict[str, str] = {}
        for kind in self._runtime.types.values():
            found |= dict.fromkeys(self._listed(kind) - found.keys(), kind.resource_type)
        return {id_: found[id_] for id_ in found.keys() - self._runtime.store.leases.load_owners(found).keys()}

    def _due(self, leases: Collection[str]) -> list[str]:
        """Return the leases whose clean-up may begin now.

        Users can write the mark of a past reservation on what is theirs. The clean-up leaves that alone, so that every
        sweep finds it: less and less is done about what no clean-up removes. Each manager counts by itself.
        """
        now = self._runtime.clock.now()
        self._tried = {lease_id: tried for lease_id, tried in self._tried.items() if lease_id in leases}
        return [lease_id for lease_id in leases if lease_id not in self._tried or self._tried[lease_id].until <= now]

    def _note(self, lease_id: str, now: datetime) -> None:
        """Record that a clean-up has begun."""
        before = self._tried.get(lease_id)
        count = 1 if before is None else before.count + 1
        pause = timedelta(0)
        if count >= AT_ONCE:
            pause = min(LONGEST_PAUSE, self._runtime.settings.sweep_interval * 2.0 ** min(count - AT_ONCE + 1, 15))
        if count == AT_ONCE:
            LOG.warning(
                "Lease %s has finished, and something in the cloud still bears the mark of its reservations after %d "
                "clean-ups. It may not be ours: the next one begins in %s, later ones after longer pauses",
                lease_id,
                count,
                pause,
            )
        self._tried[lease_id] = Tried(count, now + pause)

    def _reservations_in_cloud(self) -> frozenset[str]:
        found: set[str] = set()
        for kind in self._runtime.types.values():
            # Types skipped now are covered by the next sweep, of any manager.
            if not self._stopping.is_set():
                # Each for itself: a service that is silent takes no time from the others.
                with scope(limit=self._runtime.settings.poll_limit):
                    found |= self._of_type(kind)
        return frozenset(found)

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

    def _of_type(self, kind: ResourceType) -> frozenset[str]:
        try:
            return self._listed(kind)
        except CloudError as error:
            self._unlisted += 1
            LOG.warning(
                "Leftovers of %s cannot be listed, retrying with the next sweep: %s", kind.resource_type, error.message
            )
            return frozenset()
        except BlazarError:
            raise
        except Exception:
            # Code of other packages may raise anything; the other types are swept all the same.
            self._unlisted += 1
            LOG.exception("Leftovers of %s cannot be listed", kind.resource_type)
            return frozenset()

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

    def _end(self, lease_id: str) -> None:
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
            self._note(lease_id, now)
        except StaleLease:
            LOG.debug("Lease %s was changed by another thread or manager; the next sweep retries", lease_id)

    def _report_unknown(self, reservation_ids: frozenset[str]) -> None:
        for id_ in sorted(reservation_ids - self._reported):
            LOG.warning(
                "Reservation %s is not on record here, but has objects in the cloud; they stay, as they may belong to "
                "another Blazar. If they do not, as after a backup was restored, run: blazar-status leftovers",
                id_[:80],
            )
        self._reported = reservation_ids

    def _round(self) -> float:
        self.deleted.run_once()
        self.run_once()
        return self._runtime.settings.sweep_interval.total_seconds()


NOT_ON_RECORD = "not on record"
"""The name, user and project of the lease under which such a reservation is put on record."""


@dataclass(frozen=True, slots=True)
class Leftover:
    """A reservation that is not on record, and has something in the cloud of a region."""

    reservation_id: str
    resource_type: str
    region: str


class Leftovers:
    """Lists reservations that are not on record, and puts them on record as ended."""

    def __init__(self, runtime: Runtime, sweeps: Iterable[Sweep]) -> None:
        self._runtime = runtime
        self._sweeps = tuple(sweeps)

    def all(self) -> tuple[Leftover, ...]:
        """Return them, in the order of their ids. CloudError if a service does not tell."""
        found = [
            Leftover(id_, resource_type, sweep.region)
            for sweep in self._sweeps
            for id_, resource_type in sweep.unknown().items()
        ]
        return tuple(sorted(found, key=lambda leftover: (leftover.reservation_id, leftover.region)))

    def end(self, reservation_id: str) -> Leftover:
        """Put one on record as part of a lease that has ended, whose leftovers managers remove at once. NotFound."""
        found = next((leftover for leftover in self.all() if leftover.reservation_id == reservation_id), None)
        if found is None:
            raise NotFound(f"no reservation {reservation_id} that is not on record has anything in the cloud")
        now = self._runtime.clock.now().replace(microsecond=0)
        ended = Reservation(
            found.reservation_id, found.resource_type, None, ReservationStatus.DELETED, now, region=found.region
        )
        lease = Lease(
            str(uuid.uuid4()),
            NOT_ON_RECORD,
            NOT_ON_RECORD,
            NOT_ON_RECORD,
            Window(now - timedelta(seconds=1), now),
            LeaseStatus.DELETING,
            now,
            deleted_at=now,
            end_reason=EndReason.DELETED,
            reservations=(ended,),
        )
        due = begin_clean_up(lease, now=now)
        self._runtime.store.bookings.commit(Commit([LeaseWrite(None, due)], at=now))
        return found


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
