# SPDX-License-Identifier: Apache-2.0
"""The store: the queries and writes of the rest of the service, each in one transaction."""

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
from blazar.model.resource import PropertyValues, Resource, ResourceDetails, ResourceKind, ResourceProperty
from blazar.model.usage import OutboxMessage, ProjectUse
from blazar.model.window import Window
from blazar.store import calendar_queries as calendar
from blazar.store import event_queries, health_queries, lease_queries, outbox_queries, purge_queries, use_queries
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
"""Attempts of a write that fails because a property that it needs was added concurrently."""


@dataclass(frozen=True, slots=True)
class CalendarView:
    """The calendar as seen by one transaction. Valid only while that is open."""

    snapshot: Snapshot
    inventory: Inventory
    connection: Connection

    def generations(self, ids: Collection[int]) -> Mapping[int, int]:
        """Return the generations that belong to what this view shows."""
        return calendar.generations(self.connection, ids)


@dataclass(frozen=True, slots=True)
class LeaseAtStart:
    """A lease with its allocations. ``late``: earlier users of its resources may not have left."""

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
        """Return a registered resource by its id in the cloud; NotFound."""
        with self._transactions.reading() as connection:
            return resource_store.one(connection, kind, external_id)

    def resource_named(self, kind: ResourceKind, name: str) -> Resource | None:
        """Return a registered resource by its name."""
        with self._transactions.reading() as connection:
            found = resource_store.load(connection, kind, resource_table.c.name == name)
            return found[0] if found else None

    def resources_by_id(self, ids: Collection[int]) -> Mapping[int, Resource]:
        """Return resources, retired ones too, by calendar id and without their capabilities."""
        with self._transactions.reading() as connection:
            return resource_store.by_ids(connection, ids)

    def add_resource(
        self,
        kind: ResourceKind,
        *,
        external_id: str,
        name: str,
        details: ResourceDetails,
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
                details=details,
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
                # The same property was added concurrently: now it exists.
        return self._transactions.write(work)

    def change_resource(
        self, resource_id: int, change: HostChange, *, at: datetime, check: ChangeCheck | None = None
    ) -> Resource:
        """Set or remove (None) capabilities; enable or disable the resource; set its projects. NotFound."""
        columns: dict[str, object] = {}
        if change.disabled is not None:
            columns["disabled"] = change.disabled
        if change.sets_projects:
            columns["authorized_projects"] = None if change.open_to is None else list(change.open_to)

        def work(connection: Connection) -> Resource:
            # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
            kind = resource_store.change(connection, resource_id, at, **columns)
            known = resource_store.capabilities_of(connection, resource_id)
            changed = frozenset(name for name, value in change.capabilities.items() if known.get(name, value) != value)
            if check is not None and changed:
                check(changed, lease_queries.live_reservations_on(connection, resource_id))
            resource_store.set_capabilities(connection, kind, resource_id, change.capabilities, at)
            return resource_store.load(connection, kind, resource_table.c.id == resource_id)[0]

        for _ in range(CLASHES):
            # The same property may be added concurrently; after that it exists.
            with suppress(Clash):
                return self._transactions.write(work)
        return self._transactions.write(work)

    def refresh_resources(
        self, kind: ResourceKind, details: Mapping[int, ResourceDetails], *, at: datetime
    ) -> frozenset[int]:
        """Write the cloud's data about resources, by calendar id, where it has changed; return which resources changed.

        Those no longer registered are ignored. What is promised of the resources stays promised.
        """
        return self._transactions.write(lambda c: resource_store.refresh(c, kind, details, at))

    def set_reservable(self, resource_id: int, reservable: bool, *, at: datetime) -> None:
        """Set whether a resource takes new allocations. NotFound."""
        self._transactions.write(lambda c: resource_store.change(c, resource_id, at, reservable=reservable))

    def withdraw_resource(self, resource_id: int, *, at: datetime) -> None:
        """Exclude a resource from new allocations. Conflict if it has an allocation; NotFound."""

        def work(connection: Connection) -> None:
            # The generation is raised before the check: a concurrent booking then fails on it, and plans once more.
            resource_store.change(connection, resource_id, at, reservable=False)
            kind = resource_store.by_ids(connection, [resource_id])[resource_id].kind
            held = calendar.live(
                connection, kind, resource_id=resource_id, lease_id=None, reservation_id=None, ending_after=None
            )
            if held:
                others = len({a.lease_id for a in held}) - 1
                more = f" and {others} more" if others else ""
                raise Conflict(
                    f"the {kind.noun} is allocated to lease {held[0].lease_id}{more}; delete it, or wait until it ends"
                )

        self._transactions.write(work)

    def retire_resource(self, resource_id: int, *, at: datetime) -> None:
        """Remove a resource from the calendar; its past allocations stay on record. NotFound."""
        self._transactions.write(
            lambda c: resource_store.change(c, resource_id, at, reservable=False, live=None, retired_at=at)
        )

    def property_values(self, kind: ResourceKind, *, include_private: bool) -> tuple[PropertyValues, ...]:
        """Return the properties that registered resources have, with their values."""
        with self._transactions.reading() as connection:
            return resource_store.property_values(connection, kind, include_private=include_private)

    def set_property_private(self, kind: ResourceKind, name: str, *, private: bool, at: datetime) -> ResourceProperty:
        """Show a property to all users or only to operators; NotFound."""
        changed = self._transactions.write(lambda c: resource_store.set_private(c, kind, name, private=private, at=at))
        # The cache of this process is used without reading the database, so update it at once.
        self.inventory(kind)
        return changed

    def inventory(self, kind: ResourceKind) -> Inventory:
        """Return all registered resources of a kind; costs one statement while nothing has changed."""
        with self._transactions.reading() as connection:
            return self._inventory(connection, kind)

    def known_properties(self, kind: ResourceKind, *, private: bool) -> frozenset[str]:
        """Return the properties, private ones or not, that resources of a kind had when last read; costs nothing.

        A property that is not included may have been added since: then call ``inventory``.
        """
        kept = self._cache.latest(kind)
        return kept.keys(private=private) if kept else frozenset()

    # Health

    def set_failed(self, kind: ResourceKind, failures: Mapping[int, str], *, at: datetime) -> frozenset[int]:
        """Mark resources as failed, by calendar id and reason: they take no new allocation. Return those newly failed.

        Any number of processes may report the same: only one of them gets the resource returned.
        """

        def work(connection: Connection) -> frozenset[int]:
            changed = health_queries.set_failed(connection, failures, at)
            resource_store.raise_version(connection, kind)
            return changed

        return self._transactions.write(work) if failures else frozenset()

    def set_recovered(self, kind: ResourceKind, ids: Collection[int], *, at: datetime) -> frozenset[int]:
        """Mark resources as recovered: they take allocations as before. Return those that had failed."""

        def work(connection: Connection) -> frozenset[int]:
            changed = health_queries.set_recovered(connection, ids, at)
            if changed:
                resource_store.raise_version(connection, kind)
            return changed

        return self._transactions.write(work) if ids else frozenset()

    def failed_by(self, kinds: Collection[ResourceKind], instant: datetime) -> Mapping[int, ResourceKind]:
        """Return the resources of some kinds that failed by an instant and have not recovered, with their kinds."""
        with self._transactions.reading() as connection:
            found = health_queries.failed_by(connection, [str(kind) for kind in kinds], instant)
            return {id_: ResourceKind(kind) for id_, kind in found.items()}

    def leases_to_heal(
        self, *, now: datetime, until: datetime | None, after: tuple[datetime, str] | None, limit: int
    ) -> list[tuple[datetime, str]]:
        """Return starts and ids of the next leases that have what has failed by ``until``, or are missing something.

        In this order, from the one ``after``.
        """
        with self._transactions.reading() as connection:
            return health_queries.to_heal(connection, now=now, until=until, after=after, limit=limit)

    def in_use(self, kind: ResourceKind, now: datetime) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources of a kind that reservations in use have, by reservation."""
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

        The view is one snapshot while it is open, so that resources can be chosen on it before the generations of only
        these are read; close it as soon as that is done.
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
        """Insert a lease with its plan, if every resource is still at its generation; else StaleCalendar.

        The same if ``use`` is given and the project has been granted something since. UsageDenied if the project has
        reached ``bounds`` by ``now``; of simultaneous requests to different processes, each may pass.
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
        messages: Collection[OutboxMessage] = (),
    ) -> Lease:
        """Write a changed lease and replace its live allocations with those of the plan, atomically.

        The generations of the plan are those of resources that are taken newly or for longer; ``use`` is as for
        ``book``. StaleLease, StaleCalendar.
        """

        def work(connection: Connection) -> Lease:
            saved = replace(after, revision=before.revision + 1)
            calendar.raise_generations(connection, plan.generations)
            lease_queries.save(connection, before, saved, saved.revision)
            calendar.replace(connection, saved, plan.allocations, cleaning=self._cleaning_time, at=at)
            outbox_queries.write(connection, messages, at=at)
            return saved

        return self._limited(work, use)

    def lease_allocations(self, lease_id: str) -> tuple[Allocation, ...]:
        """Return the live allocations of a lease."""
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
        """Return live allocations, earliest first."""
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
        """Return the calendar ids of all resources ever promised to a lease, released or not, by reservation."""
        with self._transactions.reading() as connection:
            return calendar.ever_held(connection, lease_id)

    def holdings(self, reservation_ids: Collection[str]) -> Mapping[str, frozenset[str]]:
        """Return the names of the resources that reservations have, by reservation; those with none are left out."""
        with self._transactions.reading() as connection:
            return calendar.holdings(connection, reservation_ids)

    def whose(self, reservation_ids: Collection[str]) -> Mapping[str, ReservationOwner]:
        """Return the leases of reservations, those on record too; unknown ids are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.owners(connection, reservation_ids)

    def earlier_users(self, lease_id: str, *, before: datetime, now: datetime) -> tuple[EarlierUser, ...]:
        """Return the leases that delay this one's start: late ones, due by ``before``, and ones being cleaned up."""
        with self._transactions.reading() as connection:
            return calendar.earlier_users(connection, lease_id, before=before, now=now, cleaning=self._cleaning_time)

    def starts(self, lease_ids: Collection[str], *, now: datetime) -> Mapping[str, LeaseAtStart]:
        """Return what the start of each of many leases needs, in the number of statements of one."""
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
        """Return leases as ``leases`` does, by id; deleted ones are left out."""
        with self._transactions.reading() as connection:
            return lease_queries.by_ids(connection, lease_ids)

    def past_leases(
        self, project_id: str | None = None, *, since: datetime | None = None, until: datetime | None = None
    ) -> tuple[Lease, ...]:
        """Return leases that have ended or were deleted, oldest first."""
        with self._transactions.reading() as connection:
            return lease_queries.past(connection, project_id, since, until)

    def purgeable(self, before: datetime) -> Mapping[str, int]:
        """Return the number of leases deleted or ended before then, and of their rows by table."""
        with self._transactions.reading() as connection:
            return purge_queries.count(connection, before)

    def purge(self, before: datetime, limit: int) -> Mapping[str, int]:
        """Delete at most ``limit`` of these leases with all their rows for good; return the number of rows by table."""
        return self._transactions.write(lambda connection: purge_queries.purge(connection, before, limit))

    def save(
        self,
        before: Lease,
        after: Lease,
        *,
        release: Collection[str] = (),
        at: datetime,
        messages: Collection[OutboxMessage] = (),
    ) -> Lease:
        """Write a changed lease, release the allocations of these reservations, and add messages. StaleLease."""

        def work(connection: Connection) -> Lease:
            saved = replace(after, revision=before.revision + 1)
            lease_queries.save(connection, before, saved, saved.revision)
            if release:
                which = allocation_table.c.reservation_id.in_(sorted(release))
                calendar.release(connection, which, at=at, cleaning=self._cleaning_time)
            outbox_queries.write(connection, messages, at=at)
            return saved

        return self._transactions.write(work)

    def use_of_project(
        self, project_id: str, window: Window, *, besides: str, reach: Window | None = None, now: datetime
    ) -> ProjectUse:
        """Return what a project has in a window, without the lease ``besides``; and over ``reach``, if given."""
        with self._transactions.reading() as connection:
            use = use_queries.of_project(connection, project_id, window, besides)
            if reach is None:
                return use
            usage, own = use_queries.over_time(connection, project_id, reach, besides, now)
            return replace(use, usage=usage, own_usage=own)

    # Notices

    def due_messages(self, now: datetime, limit: int) -> tuple[OutboxMessage, ...]:
        """Return at most ``limit`` outbox messages that are due, for each lease only the next one."""
        with self._transactions.reading() as connection:
            return outbox_queries.due(connection, now, limit)

    def outstanding_messages(self, lease_id: str) -> tuple[OutboxMessage, ...]:
        """Return the messages about a lease that are not finished, in their order."""
        with self._transactions.reading() as connection:
            return outbox_queries.outstanding(connection, lease_id)

    def next_message(self) -> datetime | None:
        """Return when the next message is due, which may be in the past; None if there is none."""
        with self._transactions.reading() as connection:
            return outbox_queries.next_due(connection)

    def settle_message(self, held: OutboxMessage, *, at: datetime) -> None:
        """Write the result of a message held by its request, if it has not been written yet."""
        self._transactions.write(lambda c: outbox_queries.settle(c, held, at=at))

    def claim_message(self, message: OutboxMessage, *, until: datetime) -> OutboxMessage | None:
        """Claim a message until then, and return it; None if it was claimed by another process."""
        claimed = self._transactions.write(lambda c: outbox_queries.claim(c, message, until=until))
        return replace(message, due_at=until) if claimed else None

    def finish_message(
        self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str | None, at: datetime
    ) -> None:
        """Record that a claimed message is finished: delivered, or (with a reason) given up."""
        self._transactions.write(
            lambda c: outbox_queries.finish(c, message, delivered_to=delivered_to, reason=reason, at=at)
        )

    def postpone_message(
        self, message: OutboxMessage, *, delivered_to: Collection[str], reason: str, until: datetime
    ) -> None:
        """Record that a claimed message could not be delivered, and when to retry."""
        self._transactions.write(
            lambda c: outbox_queries.postpone(c, message, delivered_to=delivered_to, reason=reason, until=until)
        )

    # Events

    def due_events(self, now: datetime, limit: int) -> tuple[DueEvent, ...]:
        """Return at most ``limit`` events that are due, the longest waiting first."""
        with self._transactions.reading() as connection:
            return event_queries.due(connection, now, limit)

    def next_due(self) -> datetime | None:
        """Return when the next event is due, which may be in the past; None if there is none."""
        with self._transactions.reading() as connection:
            return event_queries.next_due(connection)

    def renew_claims(self, tokens: Collection[str], *, now: datetime, until: datetime) -> frozenset[str]:
        """Renew the claims with these tokens that have not expired; return the tokens of those."""
        return self._transactions.write(lambda c: event_queries.renew_claims(c, tokens, now=now, until=until))

    def drop_claims(self, *, at: datetime) -> None:
        """Make every event with a claim due at ``at``."""
        self._transactions.write(lambda connection: event_queries.drop_claims(connection, at=at))

    def _limited(self, work: Callable[[Connection], Lease], use: ProjectUse | None) -> Lease:
        """Write, if the project's usage is still the one that was read; else StaleCalendar."""
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
            # The project's first two bookings conflicted.
            raise StaleCalendar("the project was granted another lease or change in the meantime") from error

    def _inventory(self, connection: Connection, kind: ResourceKind) -> Inventory:
        version = resource_store.version(connection, kind)

        def load() -> Inventory:
            private = resource_store.private_names(connection, kind)
            return Inventory(version, resource_store.load(connection, kind), private=private)

        return self._cache.at(kind, version, load)

    def _is_registered(self, kind: ResourceKind, external_id: str) -> bool:
        with self._transactions.reading() as connection:
            return bool(resource_store.load(connection, kind, resource_table.c.external_id == external_id))
