# SPDX-License-Identifier: Apache-2.0
"""The lease service: the operations of users on leases, each all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from blazar.context import current, scope
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.runtime import Runtime
from blazar.manager.lease.booking import Booking
from blazar.manager.requests.creation import Creation, Grant
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.keeping import Keeping
from blazar.manager.requests.making_room import MakingRoom
from blazar.manager.requests.ranges import check_order
from blazar.manager.requests.refusals import Refusals
from blazar.manager.requests.updates import Updates
from blazar.manager.requests.waiting import Patience
from blazar.manager.requests.waiting_list import WaitingList
from blazar.model.clock import to_second
from blazar.model.demand import Allocation, Plan
from blazar.model.errors import (
    BlazarError,
    Conflict,
    Contention,
    NotEnoughResources,
    NotFound,
    OthersWait,
    StaleCalendar,
)
from blazar.model.history import HistoryPage
from blazar.model.lease import HIDDEN_EVENTS, EndReason, Lease, LeaseKind, LeaseRevision, LeaseStatus
from blazar.model.lease_details import (
    BookedLease,
    HeldResource,
    LeaseDetails,
    LeaseFilter,
    LeaseOwner,
    LeasePage,
    Verdict,
)
from blazar.model.paging import Page
from blazar.model.requests import NOW, IdempotencyKey, LeaseChange, LeaseRequest
from blazar.store.idempotency import KeyTaken

T = TypeVar("T")

MOST_CHOICES = 5
"""How often hosts to be emptied are chosen for one request, while others are faster."""


class LeaseService:
    """Creates, changes, deletes and lists leases."""

    def __init__(
        self,
        runtime: Runtime,
        booking: Booking,
        creation: Creation,
        updates: Updates,
        deletion: Deletion,
        refusals: Refusals,
        keeping: Keeping,
        waiting_list: WaitingList,
    ) -> None:
        self._runtime = runtime
        self._booking = booking
        self._creation = creation
        self._updates = updates
        self._deletion = deletion
        self._refusals = refusals
        self._keeping = keeping
        self._waiting_list = waiting_list
        self._making_room = MakingRoom(runtime)
        self.patience = Patience(runtime)

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first."""
        return self._runtime.store.leases.of_project(project_id)

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first."""
        return self._runtime.store.leases.revisions(project_id)

    def by_id(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them; deleted ones are left out."""
        return self._runtime.store.leases.by_ids(lease_ids)

    def one(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""
        return self._runtime.store.leases.one(lease_id)

    def create(self, request: LeaseRequest) -> Lease:
        """Book a lease, make the cloud objects it needs before its start, and return it PENDING; or undo all.

        If there is not enough, one with ``wait_until`` is returned WAITING; so is one of the kind ``retries`` of which
        something cannot be made.
        """
        grant = self._granted(request)
        with scope(limit=self._runtime.settings.request_limit):
            check = grant.check if grant.checked else None
            try:
                with self._refusals.of_lease(request):
                    grant.take(self._waiting_list.turns(grant.options))
                    booked, plan = self._book(grant, check)
            except (NotEnoughResources, OthersWait, Contention):
                if (place := grant.new.place) is None:
                    raise
                return self._waiting_list.add(grant.new, place)
            try:
                with self._runtime.claims.held(grant.claim):
                    created = self._creation.prepare(booked, plan, grant.claim)
            except BlazarError:
                if (kept := self._kept(booked)) is None:
                    raise
                return kept
        self._runtime.notifier.notify(CREATED, created)
        self._runtime.wake()
        return created

    def _granted(self, request: LeaseRequest) -> Grant:
        grant = self._creation.grant(request)
        if request.kind is LeaseKind.BEST_EFFORT:
            self._making_room.check(grant.new)
        return grant

    def _book(self, grant: Grant, check: Callable[[Plan], None] | None) -> tuple[Lease, Plan]:
        """Find and book what a lease asks for; for one of the kind ``best_effort`` hosts are emptied if need be."""
        return self._with_room(
            grant, lambda: self._booking.until_it_holds(lambda n: self._find(grant, n), grant.book, check)
        )

    def _with_room(self, grant: Grant, find: Callable[[], T]) -> T:
        """Return what is found for a lease; as long as that is not enough, with hosts that are emptied for it."""
        for _ in range(MOST_CHOICES):
            try:
                return find()
            except NotEnoughResources:
                # Another lease may have been given the hosts that were chosen before: then these are others.
                if not self._makes_room(grant):
                    raise
        return find()

    def _makes_room(self, grant: Grant) -> bool:
        """Let a lease have hosts that are emptied for it; return whether there may be some. NotEnoughResources."""
        if grant.lease.kind is not LeaseKind.BEST_EFFORT or grant.confined:
            return False
        self._making_room.check_others(grant.lease.project_id)
        grant.empty(self._making_room.choose(grant.new))
        return True

    def _kept(self, booked: Lease) -> Lease | None:
        """Return a lease that could not be prepared and is tried again; None if nothing is left of it."""
        if booked.kind is not LeaseKind.RETRIES:
            return None
        try:
            lease = self._runtime.store.leases.one(booked.id)
        except NotFound:
            return None
        kept = (LeaseStatus.CREATING, LeaseStatus.WAITING, LeaseStatus.TIMED_OUT)
        return lease if lease.status in kept else None

    def _find(self, grant: Grant, attempt: int) -> Plan:
        """Find what a lease may have without a delay of those who wait.

        NotEnoughResources, OthersWait; StaleCalendar if others were faster.
        """
        if attempt:
            # What those who wait leave to others has changed.
            grant.take(self._waiting_list.turns(grant.options))
        try:
            return grant.find(attempt)
        except NotEnoughResources as error:
            if grant.confined:
                raise StaleCalendar("what nobody waits for was taken meanwhile") from error
            raise

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease and return it, all or nothing; while other work on it is in progress, wait for a moment."""
        try:
            with self._refusals.of_change(lease_id, change):
                return self.patience.until_free(lambda: self._updates.update(lease_id, change))
        finally:
            self._runtime.wake()

    def owner(self, lease_id: str) -> LeaseOwner:
        """Return whose a lease is, past ones too; NotFound."""
        return self._runtime.store.lease_pages.owner(lease_id)

    def details(self, lease_id: str) -> LeaseDetails:
        """Return a lease with what it holds, past ones too; NotFound."""
        return self._runtime.store.lease_pages.one(lease_id)

    def history(self, lease_id: str, page: Page) -> HistoryPage:
        """Return a page of what was done to a lease, past ones too. InvalidInput for an unknown marker."""
        return self._runtime.store.history.page(lease_id, page)

    def page(self, wanted: LeaseFilter, page: Page) -> LeasePage:
        """Return a page of leases with what they hold. InvalidInput if the span ends before it begins."""
        now = self._runtime.clock.now()
        begin = to_second(now) if wanted.begin is NOW else wanted.begin
        end = to_second(now) if wanted.end is NOW else wanted.end
        if begin is not None and end is not None:
            check_order(begin, end)
        return self._runtime.store.lease_pages.page(wanted, page, now=now)

    def verdict(self, lease_id: str) -> Verdict:
        """Return what has become of the request for an immediate lease; NotFound."""
        return self._runtime.store.lease_pages.verdict(lease_id)

    def replay(self, key: IdempotencyKey) -> BookedLease | None:
        """Return the lease that was made with a key, as it is now; None if there is none."""
        record = self._runtime.store.idempotency.find(key)
        if record is None:
            return None
        if record.fingerprint != key.fingerprint:
            raise Conflict(
                "Idempotency-Key was sent before with another request; use a new key for each lease",
                code="idempotency_key_reused",
                header="Idempotency-Key",
            )
        details = self.details(record.lease_id)
        actor = current().actor
        if actor is not None and not actor.operator and details.lease.project_id != actor.project_id:
            raise Conflict(
                "the lease of this Idempotency-Key belongs to another project by now; use a new key for each lease",
                code="idempotency_key_reused",
                header="Idempotency-Key",
            )
        if self._is_in_progress(details.lease):
            raise Conflict(
                "the request with this Idempotency-Key is in progress; send it again in a moment",
                code="request_in_progress",
                header="Idempotency-Key",
            )
        return BookedLease(details, replayed=True)

    def _is_in_progress(self, lease: Lease) -> bool:
        """Tell whether the request for a lease is neither granted nor, with all that this takes, refused."""
        if lease.status is LeaseStatus.CREATING or lease.kind is not LeaseKind.IMMEDIATE:
            return lease.status is LeaseStatus.CREATING
        return lease.end_reason is EndReason.REFUSED or self.verdict(lease.id) is Verdict.WAITING

    def book(self, request: LeaseRequest) -> BookedLease:
        """Create a lease as ``create`` does, once for each key; for a dry run return what would be booked."""
        if request.dry_run:
            return BookedLease(self._dry_run(request))
        if request.key is not None and (known := self.replay(request.key)) is not None:
            return known
        try:
            made = self.create(request)
            limit = self._runtime.settings.immediate_timeout if made.kind is LeaseKind.IMMEDIATE else None
            return BookedLease(self.details(made.id), limit=limit)
        except KeyTaken:
            # Another request with this key was faster; its lease may be gone again by now.
            if request.key is None or (known := self.replay(request.key)) is None:
                raise
            return known

    def _dry_run(self, request: LeaseRequest) -> LeaseDetails:
        grant = self._granted(request)
        with scope(limit=self._runtime.settings.request_limit):
            try:
                with self._refusals.of_lease(request):
                    grant.take(self._waiting_list.turns(grant.options))
                    plan = self._with_room(grant, lambda: grant.find(0))
            except (NotEnoughResources, OthersWait):
                if (place := grant.new.place) is None:
                    raise
                waits = self._waiting_list.preview(grant.new, place)
                grant.check_bounds()
                return self.previewed(waits, ())
            if grant.checked:
                grant.check(plan)
            grant.check_bounds()
        return self.previewed(grant.planned, plan.allocations)

    def change(self, lease_id: str, change: LeaseChange) -> LeaseDetails:
        """Change a lease as ``update`` does; for a dry run return what it would be."""
        if change.dry_run:
            with self._refusals.of_change(lease_id, change):
                return self.previewed(*self._updates.preview(lease_id, change))
        return self.details(self.update(lease_id, change).id)

    def previewed(self, lease: Lease, held: Sequence[Allocation]) -> LeaseDetails:
        """Return a lease that is not written, with the resources that it would have."""
        names = self._runtime.store.lease_pages.resources({each.resource_id for each in held})
        resources = tuple(
            HeldResource(
                each.reservation_id,
                each.resource_id,
                each.kind,
                *names[each.resource_id],
                count=each.count,
                per_instance=each.per_instance,
                released=False,
            )
            for each in held
        )
        shown = replace(lease, events=tuple(e for e in lease.events if e.event_type not in HIDDEN_EVENTS))
        return LeaseDetails(shown, resources)

    def keep(self, lease_id: str, *, again: bool = False) -> LeaseDetails:
        """Keep a lease that is not used from being released; ``again``: also if it was kept before. Conflict."""
        self.patience.until_free(lambda: self._keeping.keep(lease_id, again=again))
        return self.details(lease_id)

    def hold(self, lease_id: str, *, held: bool) -> LeaseDetails:
        """Never release a lease because it is not used, or no longer hold it. Conflict."""
        self.patience.until_free(lambda: self._keeping.hold(lease_id, held=held))
        return self.details(lease_id)

    def delete(self, lease_id: str, revisions: Collection[int] | None = None) -> None:
        """Delete a lease, ending it now.

        Resources that can be returned at once are returned before this method returns; the rest (slow servers, a cloud
        that does not answer) follows in the background while the lease is DELETING. Work in progress, as a start, is
        waited for up to ``patience``.
        """
        if (left := self._deletion.delete(lease_id, revisions)) is not None:
            self.patience.until_gone(left)
