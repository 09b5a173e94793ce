# SPDX-License-Identifier: Apache-2.0
"""The lease service: the operations of users on leases, each all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from blazar.context import current, scope
from blazar.manager.billing.booked_prices import BookedPrices
from blazar.manager.billing.quoting import Quoting
from blazar.manager.booking.asleep import find_waking
from blazar.manager.booking.booking import Booker, Proposal, SomebodyWaits
from blazar.manager.booking.repacking import tell_moved
from blazar.manager.changing.confirmation import Confirmation
from blazar.manager.changing.creation import Creation, CreationGrant
from blazar.manager.changing.deletion import Deletion
from blazar.manager.changing.evacuated_hosts import HostsToEvacuate
from blazar.manager.changing.updates import Updates
from blazar.manager.common.busy_leases import LeasePatience
from blazar.manager.common.notifications import CREATED
from blazar.manager.common.request_keys import do_once, find_record, refuse_key
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.price_limits import PriceLimits
from blazar.manager.search.refusals import Refusals
from blazar.manager.use.watch import UsageHolds
from blazar.manager.waiting.waiting_list import WaitingList
from blazar.model.base.clock import to_second
from blazar.model.base.errors import BlazarError, Contention, NotEnoughResources, NotFound, OthersWait, StaleCalendar
from blazar.model.base.moments import NOW
from blazar.model.base.paging import Page
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import check_order
from blazar.model.billing.booked_prices import AccountTotals
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation, AllocationPlan
from blazar.model.journal.entries import HistoryPage
from blazar.model.leases.details import (
    BookedLease,
    HeldResource,
    ImmediateVerdict,
    LeaseDetails,
    LeaseFilter,
    LeaseMark,
    LeaseOwner,
    LeasePage,
    LeaseRows,
)
from blazar.model.leases.lease import Lease, LeaseRevision
from blazar.model.leases.requests import IdempotencyKey, LeaseChange, LeaseRequest
from blazar.model.leases.states import UNREAD_EVENTS, EndReason, LeaseKind, LeaseStatus
from blazar.model.power.classes import POWERED

T = TypeVar("T")

MOST_CHOICES = 5
"""How often hosts to be emptied are chosen for one request, while others are faster."""


@dataclass(frozen=True, slots=True)
class CreatedLease:
    """A lease that was created, and what it cost when it was booked; None: that is not known."""

    lease: Lease
    totals: AccountTotals | None = None

    def find_totals(self, lease: Lease) -> AccountTotals | None:
        """Return what it costs as it is by now; None: it has changed since, or that is not known."""
        return self.totals if lease.revision == self.lease.revision else None


class LeaseCreator:
    """Creates leases: at once, after hosts were emptied for them, or in their turn on the waiting list."""

    def __init__(
        self, runtime: Runtime, booker: Booker, creation: Creation, refusals: Refusals, waiting_list: WaitingList
    ) -> None:
        self._runtime = runtime
        self.booker, self._creation = booker, creation
        self._refusals, self._waiting_list = refusals, waiting_list
        self._hosts_to_evacuate = HostsToEvacuate(runtime)
        self._price_limits = PriceLimits(Quoting(runtime))

    def create(self, request: LeaseRequest) -> CreatedLease:
        """Book a lease, make the cloud objects it needs before its start, and return it PENDING; or undo all.

        If there is not enough, one with ``wait_until`` is returned WAITING; so is one of the kind ``retries`` of which
        something cannot be made.
        """
        with self._refusals.tell_of_lease(request) as asked:
            grant = self._granted(request)
            asked.append(grant.new)
            with scope(limit=self._runtime.settings.request_limit):
                granted, book = None, self._make_booking(grant, request.kind)
                grant.expect_nobody()
                try:
                    with self._refusals.explained_lease(request, waits=grant.new.place is not None):
                        with suppress(SomebodyWaits):
                            granted = book()
                        if granted is None:
                            grant.take(self._waiting_list.turns(grant.options))
                            granted = book()
                except (NotEnoughResources, OthersWait, Contention):
                    if (place := grant.new.place) is None:
                        raise
                    return CreatedLease(self._waiting_list.add(grant.new, place))
                booked = granted.leases[0]
                try:
                    with self._runtime.claims.held(grant.claim):
                        created = self._creation.prepare(booked, granted.found, grant.claim)
                except BlazarError:
                    if (kept := self._kept(booked)) is None:
                        raise
                    return CreatedLease(kept)
        self._runtime.notifier.notify(CREATED, created)
        if grant.moved:
            tell_moved(self._runtime, grant.moved)
        self._runtime.signals.events_due()
        return CreatedLease(created, grant.totals.get((created.id, created.project_id)))

    def _make_booking(self, grant: CreationGrant, kind: LeaseKind) -> Callable[[], Proposal[AllocationPlan]]:
        """Return what books a new lease, with hosts emptied for it if it is a best-effort one."""
        propose = partial(self._propose, grant)
        beside = partial(propose, 0) if grant.takes_only_whole else None
        commit = partial(self._runtime.store.bookings.commit, tell=grant.totals.update)
        book = partial(
            self.booker.book,
            propose,
            beside=beside,
            checks=grant.enforcement_checks,
            write=lambda _, proposed: commit(proposed),
        )
        return partial(self._with_room, grant, book) if kind is LeaseKind.BEST_EFFORT else book

    def _granted(self, request: LeaseRequest) -> CreationGrant:
        grant = self._creation.grant(request)
        if request.kind is LeaseKind.BEST_EFFORT:
            self._hosts_to_evacuate.check(grant.new)
        return grant

    def _with_room(self, grant: CreationGrant, find: Callable[[], T]) -> T:
        """Return what is found for a best-effort lease; as long as that is not enough, with hosts emptied for it."""
        for _ in range(MOST_CHOICES):
            try:
                return find()
            except NotEnoughResources:
                # Another lease may have been given the hosts that were chosen before: then these are others.
                if not self._makes_room(grant):
                    raise
        return find()

    def _makes_room(self, grant: CreationGrant) -> bool:
        """Let a lease have hosts that are emptied for it; return whether there may be some. NotEnoughResources."""
        if grant.confined:
            return False
        self._hosts_to_evacuate.check_others(grant.lease.project_id)
        grant.evacuate(self._hosts_to_evacuate.choose(grant.new))
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

    def _propose(
        self, grant: CreationGrant, attempt: int, in_flight: frozenset[int] = frozenset()
    ) -> Proposal[AllocationPlan]:
        """Propose what a lease may have without a delay of those who wait; what is ``in_flight`` counts as taken.

        NotEnoughResources, OthersWait; StaleCalendar if others were faster.
        """
        if attempt:
            # What those who wait leave to others has changed.
            grant.take(self._waiting_list.turns(grant.options))
        try:
            plan = grant.find_beside(in_flight) if in_flight else grant.find(attempt)
            if grant.new.max_price is not None or grant.new.lapsed_at is not None:
                self._quote(grant, plan)
            return grant.propose(plan)
        except NotEnoughResources as error:
            # Beside what is in flight nothing was taken yet: who waits for it may get it.
            if grant.confined and not in_flight:
                raise StaleCalendar("what nobody waits for was taken meanwhile") from error
            raise

    def _quote(self, grant: CreationGrant, plan: AllocationPlan) -> None:
        """Say what a lease costs. Conflict if that is more than it may."""
        # What is emptied for a lease of best effort is not looked for again.
        near = None if grant.lease.kind is LeaseKind.BEST_EFFORT else grant
        grant.price = self._price_limits.check(
            grant.lease, plan.allocations, grant.new.max_price, near, lapsed_at=grant.new.lapsed_at
        )

    def preview(self, request: LeaseRequest) -> LeaseDetails:
        """Return a lease as ``create`` would book it, with its allocations; nothing is written."""
        grant = self._granted(request)
        explained = self._refusals.explained_lease(request, waits=grant.new.place is not None)
        with scope(limit=self._runtime.settings.request_limit), explained:
            try:
                grant.take(self._waiting_list.turns(grant.options))
                find = partial(grant.find, 0)
                plan = self._with_room(grant, find) if request.kind is LeaseKind.BEST_EFFORT else find()
            except (NotEnoughResources, OthersWait):
                if (place := grant.new.place) is None:
                    raise
                waits = self._waiting_list.preview(grant.new, place)
                grant.check_bounds()
                return describe_unwritten(self._runtime, waits, ())
            self._quote(grant, plan)
            grant.check(plan)
            grant.check_bounds()
        return describe_unwritten(self._runtime, grant.planned, plan.allocations, grant.price, len(grant.moved))


class LeaseService:
    """Creates, changes, deletes and lists leases."""

    def __init__(
        self, runtime: Runtime, creator: LeaseCreator, updates: Updates, deletion: Deletion, refusals: Refusals
    ) -> None:
        self._runtime = runtime
        self.creator = creator
        self._updates = updates
        self._deletion = deletion
        self._refusals = refusals
        self._usage_holds, self._prices = UsageHolds(runtime), BookedPrices(runtime)
        self._confirmation, self.patience = Confirmation(runtime), LeasePatience(runtime)

    def all(self, project_id: str | None) -> tuple[Lease, ...]:
        """Return the leases of a project (None: of all), oldest first."""
        return self._runtime.store.leases.of_project(project_id)

    def revisions(self, project_id: str | None) -> tuple[LeaseRevision, ...]:
        """Return the ids and revisions of the same leases, oldest first."""
        return self._runtime.store.leases.revisions(project_id)

    def by_id(self, lease_ids: Collection[str]) -> tuple[Lease, ...]:
        """Return leases as a list shows them; deleted ones are left out."""
        return self._runtime.store.leases.by_ids(lease_ids)

    def rows(self, lease_ids: Sequence[str]) -> LeaseRows:
        """Return leases as a list shows them, as rows; deleted ones are left out."""
        return self._runtime.store.lease_rows.read(lease_ids)

    def one(self, lease_id: str) -> Lease:
        """Return one lease; NotFound."""
        return self._runtime.store.leases.one(lease_id)

    def create(self, request: LeaseRequest) -> Lease:
        """Book a lease and make what it needs before its start, or undo all."""
        return self.creator.create(request).lease

    def update(self, lease_id: str, change: LeaseChange) -> Lease:
        """Change a lease and return it, all or nothing; while other work on it is in progress, wait for a moment."""
        try:
            with self._refusals.explained_change(lease_id, change), self._refusals.tell_of_change(lease_id):
                return self.patience.until_free(lambda: self._updates.update(lease_id, change))
        finally:
            self._runtime.signals.events_due()

    def owner(self, lease_id: str) -> LeaseOwner:
        """Return whose a lease is, past ones too; NotFound."""
        return self._runtime.store.lease_pages.owner(lease_id)

    def details(self, lease_id: str) -> LeaseDetails:
        """Return a lease with what it holds and costs, past ones too; NotFound."""
        return self._prices.add(self._runtime.store.lease_pages.one(lease_id))

    def history(self, lease_id: str, page: Page) -> HistoryPage:
        """Return a page of what was done to a lease, past ones too. InvalidInput for an unknown marker."""
        return self._runtime.store.history.page(lease_id, page)

    def page(self, wanted: LeaseFilter, page: Page, known: tuple[LeaseMark, ...] = ()) -> LeasePage:
        """Return a page of leases with what they hold, without those that are ``known`` and have no price.

        InvalidInput: unknown region, or an end before the begin.
        """
        for condition in wanted.conditions:
            if condition.key == "region":
                self._runtime.regions.check_known(condition.values)
        now = self._runtime.clock.now()
        begin = to_second(now) if wanted.begin is NOW else wanted.begin
        end = to_second(now) if wanted.end is NOW else wanted.end
        if begin is not None and end is not None:
            check_order(begin, end)
        # What a lease costs changes without it.
        priced = wanted.with_prices and self._prices.are_known
        found = self._runtime.store.lease_pages.page(wanted, page, now=now, known=() if priced else known)
        return self._prices.add_to_page(found) if wanted.with_prices else found

    def verdict(self, lease_id: str) -> ImmediateVerdict:
        """Return what has become of the request for an immediate lease; NotFound."""
        return self._runtime.store.lease_pages.verdict(lease_id)

    def replay(self, key: IdempotencyKey) -> BookedLease | None:
        """Return the lease that was made with a key, as it is now; None if there is none."""
        record = find_record(self._runtime, key, "lease")
        if record is None:
            return None
        details = self.details(record.lease_id)
        actor = current().actor
        if actor is not None and not actor.operator and details.lease.project_id != actor.project_id:
            raise refuse_key(
                "the lease of this Idempotency-Key belongs to another project by now; use a new key for each lease"
            )
        lease = details.lease
        # Neither granted nor, with all that this takes, refused.
        if lease.status is LeaseStatus.CREATING or (
            lease.kind is LeaseKind.IMMEDIATE
            and (lease.end_reason is EndReason.REFUSED or self.verdict(lease.id) is ImmediateVerdict.WAITING)
        ):
            raise refuse_key(
                "the request with this Idempotency-Key is in progress; send it again in a moment",
                code="request_in_progress",
            )
        return BookedLease(details, replayed=True)

    def book(self, request: LeaseRequest) -> BookedLease:
        """Create a lease as ``create`` does, once for each key; for a dry run return what would be booked."""
        if request.dry_run:
            return BookedLease(self.creator.preview(request))

        def make() -> BookedLease:
            made = self.creator.create(request)
            limit = self._runtime.settings.immediate_timeout if made.lease.kind is LeaseKind.IMMEDIATE else None
            details = self._runtime.store.lease_pages.one(made.lease.id)
            lease, hosts = details.lease, [held.resource_id for held in details.held if held.kind in POWERED]
            price = self._prices.find_price(lease, made.find_totals(lease))
            return BookedLease(
                replace(details, price=price, waking=find_waking(self._runtime, lease, hosts)), limit=limit
            )

        return do_once(request.key, self.replay, make)

    def change(self, lease_id: str, change: LeaseChange) -> LeaseDetails:
        """Change a lease as ``update`` does; for a dry run return what it would be."""
        if change.dry_run:
            with self._refusals.explained_change(lease_id, change):
                return describe_unwritten(self._runtime, *self._updates.preview(lease_id, change))
        return self.details(self.update(lease_id, change).id)

    def confirm(self, lease_id: str) -> LeaseDetails:
        """Confirm an unconfirmed lease: it is firm from then on. Conflict."""
        self.patience.until_free(lambda: self._confirmation.confirm(lease_id))
        return self.details(lease_id)

    def keep(self, lease_id: str, *, again: bool = False) -> LeaseDetails:
        """Keep a lease that is not used from being released; ``again``: also if it was kept before. Conflict."""
        self.patience.until_free(lambda: self._usage_holds.keep(lease_id, again=again))
        return self.details(lease_id)

    def hold(self, lease_id: str, *, held: bool) -> LeaseDetails:
        """Never release a lease because it is not used, or no longer hold it. Conflict."""
        self.patience.until_free(lambda: self._usage_holds.hold(lease_id, held=held))
        return self.details(lease_id)

    def delete(self, lease_id: str, revisions: Collection[int] | None = None) -> None:
        """Delete a lease, ending it now.

        What can be returned at once is returned before this method returns; the rest follows in the background while it
        is DELETING. Work in progress, as a start, is waited for up to ``patience``.
        """
        if (left := self._deletion.delete(lease_id, revisions)) is not None:
            self.patience.until_gone(left)


def describe_unwritten(
    runtime: Runtime,
    lease: Lease,
    allocations: Collection[Allocation],
    price: LeasePrice | None = None,
    moves_others: int = 0,
) -> LeaseDetails:
    """Return a lease that is not written, with what it would have and cost, and how many others it would move."""
    names = runtime.store.lease_pages.resource_names({allocation.resource_id for allocation in allocations})
    resources = tuple(
        HeldResource(
            allocation.reservation_id,
            allocation.resource_id,
            allocation.kind,
            *names[allocation.resource_id],
            count=allocation.count,
            per_instance=allocation.per_instance,
            released=False,
        )
        for allocation in allocations
    )
    shown = replace(lease, events=tuple(e for e in lease.events if e.event_type not in UNREAD_EVENTS))
    hosts = [allocation.resource_id for allocation in allocations if allocation.kind in POWERED]
    return LeaseDetails(shown, resources, price, find_waking(runtime, lease, hosts), moves_others)
