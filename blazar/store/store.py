# SPDX-License-Identifier: Apache-2.0
"""The store: what the rest of the service asks of the database, each question in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.engine import Connection, Engine

from blazar.calendar.snapshot import Snapshot
from blazar.model.bounds import Bounds
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import Conflict, StaleCalendar
from blazar.model.lease import Lease, LeaseRevision, Reservation, ReservationOwner
from blazar.model.requests import HostChange
from blazar.model.resource import Facts, PropertyValues, Resource, ResourceKind, ResourceProperty
from blazar.model.usage import Notice, ProjectUse
from blazar.model.window import Window
from blazar.store import calendar_queries as calendar
from blazar.store import event_queries, health_queries, lease_queries, notice_queries, purge_queries, use_queries
from blazar.store import resource_queries as resource_store
from blazar.store.calendar_queries import EarlierUser
from blazar.store.event_queries import DueEvent
from blazar.store.inventory import Inventory, InventoryCache
from blazar.store.tables import allocations as allocation_table
from blazar.store.tables import resources as resource_table
from blazar.store.transactions import Clash, Transactions

__all__ = ["CalendarView", "DueEvent", "EarlierUser", "LeaseAtStart", "Store"]

ChangeCheck = Callable[[frozenset[str], tuple[Reservation, ...]], None]

CLASHES = 4
"""How often a write is begun anew because a property that it needs was just added by somebody else."""


@dataclass(frozen=True, slots=True)
class CalendarView:
    """The calendar as one transaction sees it. Good only while it is open."""

    snapshot: Snapshot
    inventory: Inventory
    connection: Connection

    def generations(self, ids: Collection[int]) -> Mapping[int, int]:
        """Return the generations that belong to what this view showed."""
        return calendar.generations(self.connection, ids)


@dataclass(frozen=True, slots=True)
class LeaseAtStart:
    """A lease with what is promised to it. ``late``: earlier users of that may be in its way."""

    lease: Lease
    allocations: tuple[Allocation, ...]
    resources: Mapping[int, Resource]
    late: bool


class Store:
    """Reads and writes domain values. Raises StoreUnavailable besides what each method names.

    ``cleaning_time`` is kept free between two users of a resource.
    """

    def __init__(self, engine: Engine, *, cleaning_time: timedelta = timedelta(0)) -> None:
        self._transactions = Transactions(engine)
        self._cleaning_time = cleaning_time
        self._cache = InventoryCache()

    # Resources

    def resources(self, kind: ResourceKind) -> tuple[Resource, ...]:
        """Return the registered resources of a kind, oldest first."""
        with self._transactions.reading() as connection:
            return resource_store.load(connection, kind)

    def resource(self, kind: ResourceKind, external_id: str) -> Resource:
        """Return a registered resource by the cloud's id of it; NotFound."""
        with self._transactions.reading() as connection:
            return resource_store.one(connection, kind, external_id)

    def resource_named(self, kind: ResourceKind, name: str) -> Resource | None:
        """Return a registered resource by its name."""
        with self._transactions.reading() as connection:
            found = resource_store.load(connection, kind, resource_table.c.name == name)
            return found[0] if found else None

    def resources_by_id(self, ids: Collection[int]) -> Mapping[int, Resource]:
        """Return resources, also retired ones, by calendar id and without their capabilities."""
        with self._transactions.reading() as connection:
            return resource_store.by_ids(connection, ids)

    def add_resource(
        self,
        kind: ResourceKind,
        *,
        external_id: str,
        name: str,
        facts: Facts,
        capabilities: Mapping[str, str],
        at: datetime,
        disabled: bool = False,
        open_to: Collection[str] | None = None,
    ) -> Resource:
        """Register a resource. Conflict if one of its kind with its id or name is registered."""

        def work(connection: Connection) -> Resource:
            resource_store.insert(
                connection,
                kind,
                external_id=external_id,
                name=name,
                facts=facts,
                capabilities=capabilities,
                at=at,
                disabled=disabled,
                authorized_projects=None if open_to is None else list(open_to),
            )
            resource_store.raise_version(connection, kind)
            return resource_store.one(connection, kind, external_id)

        for _ in range(CLASHES):
            try:
                return self._transactions.write(work)
            except Clash as error:
                if self.resource_named(kind, name) is not None or self._is_registered(kind, external_id):
                    raise Conflict(f"{kind.noun} {name} is registered already") from error
                # Somebody else has just been the first to use the same property: now it is there.
        return self._transactions.write(work)

    def change_resource(
        self, resource_id: int, change: HostChange, *, at: datetime, check: ChangeCheck | None = None
    ) -> Resource:
        """Set capabilities and take away those that are None, disable or enable, say whom it is for. NotFound.

        ``check`` sees the names of the capabilities that the resource has and that change, and the reservations to
        which it is promised; what it raises undoes the change. It may be called more than once.
        """
        columns: dict[str, object] = {}
        if change.disabled is not None:
            columns["disabled"] = change.disabled
        if change.sets_projects:
            columns["authorized_projects"] = None if change.open_to is None else list(change.open_to)

        def work(connection: Connection) -> Resource:
            # The generation goes up before anybody looks: a booking under way misses it and places anew.
            kind = resource_store.change(connection, resource_id, at, **columns)
            known = resource_store.capabilities_of(connection, resource_id)
            changed = frozenset(name for name, value in change.capabilities.items() if known.get(name, value) != value)
            if check is not None and changed:
                check(changed, lease_queries.live_reservations_on(connection, resource_id))
            resource_store.set_capabilities(connection, kind, resource_id, change.capabilities, at)
            return resource_store.load(connection, kind, resource_table.c.id == resource_id)[0]

        for _ in range(CLASHES):
            # Somebody else may be the first to use the same property; after that it is there.
            with suppress(Clash):
                return self._transactions.write(work)
        return self._transactions.write(work)

    def refresh_resources(self, kind: ResourceKind, facts: Mapping[int, Facts], *, at: datetime) -> frozenset[int]:
        """Write what the cloud tells of resources, by calendar id, where it tells otherwise now; return which.

        Those not registered any more are left out. What is promised of them stays promised.
        """
        return self._transactions.write(lambda c: resource_store.refresh(c, kind, facts, at))

    def set_reservable(self, resource_id: int, reservable: bool, *, at: datetime) -> None:
        """Let a resource take new allocations, or not. NotFound."""
        self._transactions.write(lambda c: resource_store.change(c, resource_id, at, reservable=reservable))

    def withdraw_resource(self, resource_id: int, *, at: datetime) -> None:
        """Let a resource take no new allocation, if it has none. Conflict if it has; NotFound."""

        def work(connection: Connection) -> None:
            # The generation goes up before anybody looks: a booking under way will miss it and place anew.
            resource_store.change(connection, resource_id, at, reservable=False)
            kind = resource_store.by_ids(connection, [resource_id])[resource_id].kind
            held = calendar.live(
                connection, kind, resource_id=resource_id, lease_id=None, reservation_id=None, ending_after=None
            )
            if held:
                others = len({a.lease_id for a in held}) - 1
                more = f" and {others} more" if others else ""
                raise Conflict(
                    f"the {kind.noun} is allocated to lease {held[0].lease_id}{more}; delete it or wait for its end"
                )

        self._transactions.write(work)

    def retire_resource(self, resource_id: int, *, at: datetime) -> None:
        """Take a resource off the calendar; what happened on it stays on record. NotFound."""
        self._transactions.write(
            lambda c: resource_store.change(c, resource_id, at, reservable=False, live=None, retired_at=at)
        )

    def property_values(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the properties that registered resources have, with their values."""
        with self._transactions.reading() as connection:
            return resource_store.property_values(connection, kind, include_private=include_private)

    def set_property_private(self, kind: ResourceKind, name: str, *, private: bool, at: datetime) -> ResourceProperty:
        """Show a property to everybody or only to operators; NotFound."""
        changed = self._transactions.write(lambda c: resource_store.set_private(c, kind, name, private=private, at=at))
        # What is kept here is asked without a look at the database: it has to know at once.
        self.inventory(kind)
        return changed

    def inventory(self, kind: ResourceKind) -> Inventory:
        """Return all registered resources of a kind; costs one statement while nothing has changed."""
        with self._transactions.reading() as connection:
            return self._inventory(connection, kind)

    def known_properties(self, kind: ResourceKind, *, private: bool) -> frozenset[str]:
        """Return the properties, private ones or not, that resources of a kind had when last read; costs nothing.

        One that is missing may have come since: then ask ``inventory``.
        """
        kept = self._cache.latest(kind)
        return kept.keys(private=private) if kept else frozenset()

    # Health

    def set_failed(self, kind: ResourceKind, failures: Mapping[int, str], *, at: datetime) -> frozenset[int]:
        """Let resources take no new allocation, for these reasons by calendar id; return those that took some before.

        Any number of processes may say the same: one of them is told that it was the first.
        """

        def work(connection: Connection) -> frozenset[int]:
            changed = health_queries.set_failed(connection, failures, at)
            resource_store.raise_version(connection, kind)
            return changed

        return self._transactions.write(work) if failures else frozenset()

    def set_well(self, kind: ResourceKind, ids: Collection[int], *, at: datetime) -> frozenset[int]:
        """Let resources that had failed take allocations again; return those that had."""

        def work(connection: Connection) -> frozenset[int]:
            changed = health_queries.set_well(connection, ids, at)
            if changed:
                resource_store.raise_version(connection, kind)
            return changed

        return self._transactions.write(work) if ids else frozenset()

    def failed_by(self, kinds: Collection[ResourceKind], instant: datetime) -> Mapping[int, ResourceKind]:
        """Return the resources of some kinds that have failed since an instant or longer, with their kinds."""
        with self._transactions.reading() as connection:
            found = health_queries.failed_by(connection, [str(kind) for kind in kinds], instant)
            return {id_: ResourceKind(kind) for id_, kind in found.items()}

    def leases_to_heal(
        self, *, now: datetime, until: datetime | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[tuple[datetime, str]]:
        """Return starts and ids of the next leases that hold what has failed by ``until`` or have something missing.

        In this order, from the one ``after``.
        """
        with self._transactions.reading() as connection:
            return health_queries.to_heal(connection, now=now, until=until, after=after, limit=limit)

    def in_use(self, kind: ResourceKind, now: datetime) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources of a kind that reservations in use hold, by reservation."""
        with self._transactions.reading() as connection:
            return health_queries.in_use(connection, str(kind), now)

    # The calendar

    @contextmanager
    def calendar(
        self,
        kind: ResourceKind,
        window: Window,
        *,
        whole_only: bool,
        now: datetime,
        besides: str | None,
    ) -> Iterator[CalendarView]:
        """Open the calendar of a kind for a window, without the allocations of the lease ``besides``.

        The view stays one picture while it is open, so that resources can be chosen on it and only then the
        generations of just these be read; keep it open for as long as that takes, no longer.
        """
        with self._transactions.reading() as connection:
            inventory = self._inventory(connection, kind)
            occupancy = calendar.occupancy(
                connection,
                kind,
                window,
                whole_only=whole_only,
                now=now,
                besides=besides,
                cleaning=self._cleaning_time,
            )
            yield CalendarView(Snapshot(inventory.resources, occupancy), inventory, connection)

    def book(
        self,
        lease: Lease,
        plan: Plan,
        *,
        use: ProjectUse | None = None,
        bounds: Bounds | None = None,
        now: datetime | None = None,
    ) -> Lease:
        """Insert a lease with what is planned, if every resource is still at its generation; else StaleCalendar.

        The same if ``use`` is given, and the project has been granted something since. UsageDenied if the project has
        by ``now`` as much as ``bounds`` allow; of requests at one moment to different processes, each may pass.
        """

        def work(connection: Connection) -> Lease:
            if bounds is not None and now is not None and bounds.of_project:
                leases, reservations = use_queries.count(connection, lease.project_id, now)
                bounds.check_project(leases, reservations, more=len(lease.reservations))
            calendar.raise_generations(connection, plan.generations)
            lease_queries.insert(connection, lease)
            calendar.insert(connection, plan.allocations, self._cleaning_time)
            return lease

        return self._limited(work, use)

    def rebook(
        self,
        before: Lease,
        after: Lease,
        plan: Plan,
        *,
        at: datetime,
        use: ProjectUse | None = None,
        notices: Collection[Notice] = (),
    ) -> Lease:
        """Write a changed lease and make its live allocations those of the plan, all or nothing.

        The generations of the plan are those of the resources that are taken anew or for longer, ``use`` is as for
        ``book``.
        StaleLease, StaleCalendar.
        """

        def work(connection: Connection) -> Lease:
            saved = replace(after, revision=before.revision + 1)
            calendar.raise_generations(connection, plan.generations)
            lease_queries.save(connection, before, saved, saved.revision)
            calendar.replace(connection, saved, plan.allocations, cleaning=self._cleaning_time, at=at)
            notice_queries.write(connection, notices, at=at)
            return saved

        return self._limited(work, use)

    def lease_allocations(self, lease_id: str) -> tuple[Allocation, ...]:
        """Return what is promised to a lease and not released."""
        with self._transactions.reading() as connection:
            return calendar.of_lease(connection, lease_id)

    def live_allocations(
        self,
        kind: ResourceKind,
        *,
        resource_id: int | None = None,
        lease_id: str | None = None,
        reservation_id: str | None = None,
        ending_after: datetime | None = None,
    ) -> tuple[Allocation, ...]:
        """Return what is promised and not released, earliest first."""
        with self._transactions.reading() as connection:
            return calendar.live(
                connection,
                kind,
                resource_id=resource_id,
                lease_id=lease_id,
                reservation_id=reservation_id,
                ending_after=ending_after,
            )

    def ever_held(self, lease_id: str) -> Mapping[str, frozenset[int]]:
        """Return the calendar ids of all that was ever promised to a lease, released or not, by reservation."""
        with self._transactions.reading() as connection:
            return calendar.ever_held(connection, lease_id)

    def holdings(self, reservation_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources that reservations hold, by reservation; those with none are left out."""
        with self._transactions.reading() as connection:
            return calendar.holdings(connection, reservation_ids)

    def whose(self, reservation_ids: Collection[str]) -> Mapping[str, ReservationOwner]:
        """Return the leases of reservations, those on record too; unknown ids are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.owners(connection, reservation_ids)

    def earlier_users(self, lease_id: str, *, before: datetime, now: datetime) -> tuple[EarlierUser, ...]:
        """Return the leases in the way of this one's start: not gone though due by ``before``, or cleaned up after."""
        with self._transactions.reading() as connection:
            return calendar.earlier_users(connection, lease_id, before=before, now=now, cleaning=self._cleaning_time)

    def starts(self, lease_ids: Collection[str], *, now: datetime) -> Mapping[str, LeaseAtStart]:
        """Return what a start needs to know of each of many leases, in as many statements as for one."""
        with self._transactions.reading() as connection:
            held = calendar.of_leases(connection, lease_ids)
            ids = {allocation.resource_id for parts in held.values() for allocation in parts}
            resources = resource_store.by_ids(connection, ids)
            late = calendar.with_earlier_users(connection, lease_ids, now=now, cleaning=self._cleaning_time)
            leases = lease_queries.whole(connection, lease_ids)

        def at_start(lease: Lease) -> LeaseAtStart:
            mine = held[lease.id]
            known = {allocation.resource_id: resources[allocation.resource_id] for allocation in mine}
            return LeaseAtStart(lease, mine, known, lease.id in late)

        return {lease.id: at_start(lease) for lease in leases}

    # Leases

    def lease(self, lease_id: str, *, including_deleted: bool = False) -> Lease:
        """Return one lease; NotFound."""
        with self._transactions.reading() as connection:
            return lease_queries.one(connection, lease_id, including_deleted=including_deleted)

    def leases(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first, without their request events."""
        with self._transactions.reading() as connection:
            return lease_queries.all_of(connection, project_id)

    def lease_revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of what ``leases`` returns, in one statement."""
        with self._transactions.reading() as connection:
            return lease_queries.revisions(connection, project_id)

    def leases_by_id(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as ``leases`` does, by their ids; those gone are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.by_ids(connection, lease_ids)

    def past_leases(
        self, project_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[Lease, ...]:
        """Return leases that have ended or were deleted, oldest first."""
        with self._transactions.reading() as connection:
            return lease_queries.past(connection, project_id, since, until)

    def purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return how many leases were deleted or ended before then, and how many rows of what belong to them."""
        with self._transactions.reading() as connection:
            return purge_queries.count(connection, before)

    def purge(self, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these leases for good with all that belongs to them; return how many of what."""
        return self._transactions.write(lambda connection: purge_queries.purge(connection, before, limit))

    def save(
        self,
        before: Lease,
        after: Lease,
        *,
        release: Collection[str] = (),
        at: datetime,
        notices: Collection[Notice] = (),
    ) -> Lease:
        """Write a changed lease, release the allocations of the reservations named, and add notices. StaleLease."""

        def work(connection: Connection) -> Lease:
            saved = replace(after, revision=before.revision + 1)
            lease_queries.save(connection, before, saved, saved.revision)
            if release:
                which = allocation_table.c.reservation_id.in_(sorted(release))
                calendar.release(connection, which, at=at, cleaning=self._cleaning_time)
            notice_queries.write(connection, notices, at=at)
            return saved

        return self._transactions.write(work)

    def use_of_project(
        self, project_id: str, window: Window, *, besides: str, reach: Window | None = None, now: datetime
    ) -> ProjectUse:
        """Return what a project holds in a window, without the lease ``besides``; and over a longer time, if asked."""
        with self._transactions.reading() as connection:
            use = use_queries.of_project(connection, project_id, window, besides)
            if reach is None:
                return use
            usage, own = use_queries.over_time(connection, project_id, reach, besides, now)
            return replace(use, usage=usage, own_usage=own)

    # Notices

    def due_notices(self, now: datetime, limit: int) -> tuple[Notice, ...]:
        """Return at most ``limit`` notices that are due, of each lease only the one whose turn it is."""
        with self._transactions.reading() as connection:
            return notice_queries.due(connection, now, limit)

    def outstanding_notices(self, lease_id: str) -> tuple[Notice, ...]:
        """Return the notices about a lease that are still to be told, in their order."""
        with self._transactions.reading() as connection:
            return notice_queries.outstanding(connection, lease_id)

    def next_notice(self) -> datetime | None:
        """Return when the next notice is due, which may be in the past; None if nothing is to be told."""
        with self._transactions.reading() as connection:
            return notice_queries.next_due(connection)

    def settle_notice(self, held: Notice, *, at: datetime) -> None:
        """Write what has become of a held notice, if nobody else has settled it."""
        self._transactions.write(lambda c: notice_queries.settle(c, held, at=at))

    def claim_notice(self, notice: Notice, *, until: datetime) -> Notice | None:
        """Return a notice that nobody else touches until then; None if somebody was faster."""
        claimed = self._transactions.write(lambda c: notice_queries.claim(c, notice, until=until))
        return replace(notice, due_at=until) if claimed else None

    def finish_notice(self, notice: Notice, *, told: Collection[str], reason: str | None, at: datetime) -> None:
        """Record that a claimed notice needs no more work: it is told, or (with a reason) given up."""
        self._transactions.write(lambda c: notice_queries.finish(c, notice, told=told, reason=reason, at=at))

    def postpone_notice(self, notice: Notice, *, told: Collection[str], reason: str, until: datetime) -> None:
        """Record that a claimed notice could not be told, and when to try again."""
        self._transactions.write(lambda c: notice_queries.postpone(c, notice, told=told, reason=reason, until=until))

    # Events

    def due_events(self, now: datetime, limit: int) -> tuple[DueEvent, ...]:
        """Return at most ``limit`` events that are due, the longest waiting first."""
        with self._transactions.reading() as connection:
            return event_queries.due(connection, now, limit)

    def next_due(self) -> datetime | None:
        """Return when the next event is due, which may be in the past; None if nothing is to come."""
        with self._transactions.reading() as connection:
            return event_queries.next_due(connection)

    def renew_claims(self, tokens: Collection[str], *, now: datetime, until: datetime) -> frozenset[str]:
        """Renew the claims with these tokens that have not ended; return the tokens of those that were renewed."""
        return self._transactions.write(lambda c: event_queries.renew_claims(c, tokens, now=now, until=until))

    def drop_claims(self, *, at: datetime) -> None:
        """Make every event due at ``at`` that somebody has a claim on."""
        self._transactions.write(lambda connection: event_queries.drop_claims(connection, at=at))

    def _limited(self, work: Callable[[Connection], Lease], use: ProjectUse | None) -> Lease:
        """Write, if the project still holds what was seen; else StaleCalendar."""
        if use is None:
            return self._transactions.write(work)

        def counted(connection: Connection) -> Lease:
            use_queries.raise_version(connection, use)
            return work(connection)

        try:
            return self._transactions.write(counted)
        except Clash as error:
            if use.version:
                raise
            # The project's first two bookings met.
            raise StaleCalendar("the project was granted something else in the meantime") from error

    def _inventory(self, connection: Connection, kind: ResourceKind) -> Inventory:
        version = resource_store.version(connection, kind)

        def load() -> Inventory:
            private = resource_store.private_names(connection, kind)
            return Inventory(version, resource_store.load(connection, kind), private=private)

        return self._cache.at(kind, version, load)

    def _is_registered(self, kind: ResourceKind, external_id: str) -> bool:
        with self._transactions.reading() as connection:
            return bool(resource_store.load(connection, kind, resource_table.c.external_id == external_id))
