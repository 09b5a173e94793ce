# SPDX-License-Identifier: Apache-2.0
"""Requests to offer a lease to another project or user, and to accept such an offer.

An offer is a part of the lease, so that each write of either meets the other: an offer that was withdrawn, or a lease
that has changed, cannot be accepted any more.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from blazar.context import scope
from blazar.manager.booking.booking import Booker, Proposal
from blazar.manager.booking.lease_changes import ChangeDraft, DecidedChange
from blazar.manager.changing.change_decisions import busy_error
from blazar.manager.changing.change_grants import Grants
from blazar.manager.changing.updates import Decide, Updates
from blazar.manager.common.busy_leases import Busy
from blazar.manager.common.notifications import TRANSFER_DECLINED, TRANSFER_OFFERED, TRANSFER_WITHDRAWN, Parties
from blazar.manager.common.request_keys import do_once
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle
from blazar.manager.requests.leases import LeaseService, describe_unwritten
from blazar.manager.surgery.common import LeaseToChange, load_changeable
from blazar.manager.surgery.swap import mark_changed
from blazar.manager.surgery.transfer_checks import GrantToProject, GrantToUser, check_transferable
from blazar.model.base.clock import later
from blazar.model.base.errors import InvalidInput, NotFound, PreconditionFailed, StaleLease
from blazar.model.base.paging import Page
from blazar.model.calendar.allocations import AllocationPlan
from blazar.model.journal.entries import Verb
from blazar.model.leases.details import LeaseDetails
from blazar.model.leases.lease import Lease, TransferOffer
from blazar.model.leases.requests import Actor, IdempotencyKey, LeaseChange
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.surgery import OfferPage, OfferRequest, Operated, Terms, find_standing_offer, may_accept
from blazar.store.booking.commit import Commit, LeaseWrite


class TransferService:
    """Offers leases, and takes them over."""

    def __init__(self, runtime: Runtime, booker: Booker, updates: Updates, leases: LeaseService) -> None:
        self._runtime = runtime
        self._booker = booker
        self._updates = updates
        self._leases = leases

    def offer(self, lease_id: str, request: OfferRequest, terms: Terms) -> LeaseDetails:
        """Offer a lease; for a dry run only say whether it could go."""
        found = self._leases.patience.until_free(lambda: self._offered(lease_id, request, terms))
        assert found.offer is not None
        if not terms.dry_run:
            parties = Parties(found.project_id, found.offer.project_id)
            self._runtime.notifier.notify(TRANSFER_OFFERED, found, transfer=parties)
        # As it was offered: by now it may have been declined, or accepted.
        return describe_unwritten(self._runtime, found, self._runtime.store.calendar.of_lease(found.id))

    def withdraw(self, lease_id: str, terms: Terms) -> None:
        """Take back an offer that stands."""
        self._end_offer(lease_id, terms, Verb.WITHDRAWN, TRANSFER_WITHDRAWN, taker=None)

    def decline(self, lease_id: str, terms: Terms) -> None:
        """Turn down an offer to the caller."""
        self._end_offer(lease_id, terms, Verb.DECLINED, TRANSFER_DECLINED, taker=terms.asked_by)

    def page(self, taker: Actor, page: Page) -> OfferPage:
        """Return a page of the leases that are offered to somebody, the first whose offer expires first."""
        return self._runtime.store.offers.page(taker, page, now=self._runtime.clock.now())

    def one(self, lease_id: str, taker: Actor) -> LeaseDetails:
        """Return a lease that is offered to somebody. NotFound."""
        self._giver(lease_id, taker)
        details = self._leases.details(lease_id)
        self._check_offered(details.lease, taker)
        return details

    def accept(self, lease_id: str, terms: Terms) -> Operated:
        """Take over a lease that is offered to the caller; for a dry run return what it would be."""

        def find(key: IdempotencyKey) -> Operated | None:
            known = self._leases.replay(key)
            return None if known is None else Operated((known.details,), replayed=True)

        # The same request, sent before, may be at work still, or have left nothing to accept.
        gone = (NotFound, PreconditionFailed)
        key = None if terms.dry_run else terms.key
        return do_once(key, find, lambda: self._accept(lease_id, terms), maybe_done=gone)

    def _accept(self, lease_id: str, terms: Terms) -> Operated:
        change = LeaseChange(
            asked_by=terms.asked_by, revisions=terms.revisions, dry_run=terms.dry_run, key=terms.key, exact=True
        )
        if terms.dry_run:
            preview = self._updates.preview(lease_id, change, *self._way(lease_id, terms))
            return Operated((describe_unwritten(self._runtime, *preview),))
        try:
            with scope(operation=Verb.TRANSFERRED):
                saved = self._leases.patience.until_free(
                    lambda: self._updates.update(lease_id, change, *self._way(lease_id, terms))
                )
        finally:
            self._runtime.signals.events_due()
        return Operated((self._leases.details(saved.id),))

    def _offered(self, lease_id: str, request: OfferRequest, terms: Terms) -> Lease:
        def propose(attempt: int) -> Proposal[LeaseToChange]:
            found = load_changeable(self._runtime, lease_id, terms.revisions)
            after = replace(found.lease, offer=self._offer(found, request, terms), updated_at=found.now)
            return Proposal(found, Commit([LeaseWrite(found.lease, after, keeps=True)], at=found.now))

        def check(proposal: Proposal[LeaseToChange]) -> Proposal[LeaseToChange]:
            found, (after,) = proposal.found, proposal.leases
            if after.offer is not None and after.offer.project_id != found.lease.project_id:
                self._runtime.enforcement.check_transfer()
                with scope(limit=self._runtime.settings.request_limit):
                    check_transferable(self._runtime, found.lease, found.tasks, after.offer.project_id, names=True)
            return proposal

        with scope(operation=Verb.OFFERED):
            return self._booker.book(propose, check=check, dry_run=terms.dry_run).leases[0]

    def _offer(self, found: LeaseToChange, request: OfferRequest, terms: Terms) -> TransferOffer:
        lease = found.lease
        project_id = request.project_id or lease.project_id
        if project_id == lease.project_id and request.user_id in (None, lease.user_id):
            whose = "the user" if request.user_id else "the project"
            raise InvalidInput(
                f"the lease is that of {whose} already; name another project_id, or another user_id of the project",
                at="/user_id" if request.user_id else "/project_id",
            )
        return TransferOffer(
            project_id,
            request.user_id,
            request.message,
            terms.asked_by.user_id,
            found.now,
            later(found.now, self._runtime.settings.offer_lifetime),
        )

    def _end_offer(self, lease_id: str, terms: Terms, verb: Verb, notification: str, *, taker: Actor | None) -> None:
        if taker is not None:
            self._giver(lease_id, taker)

        def once() -> tuple[Lease, Lease]:
            while True:
                now = self._runtime.clock.now()
                lease = self._runtime.store.leases.one(lease_id)
                self._check_offered(lease, taker, now)
                lease.check_revision(terms.revisions)
                if lease.status not in (*lifecycle.STABLE, LeaseStatus.WAITING):
                    # It may be on its way to the taker.
                    raise busy_error(lease)
                try:
                    with scope(operation=verb):
                        after = replace(lease, offer=None, updated_at=now)
                        return lease, self._runtime.store.leases.save(lease, after, at=now)
                except StaleLease:
                    continue

        before, after = self._leases.patience.until_free(once)
        assert before.offer is not None
        parties = Parties(before.project_id, before.offer.project_id)
        self._runtime.notifier.notify(notification, after, transfer=parties)

    def _giver(self, lease_id: str, taker: Actor) -> str:
        """Return the project of a lease that is offered to somebody.

        NotFound, the same and as fast for one that is not offered and for none: nobody learns which leases there are.
        """
        found = self._runtime.store.offers.find_giver(lease_id, taker, now=self._runtime.clock.now())
        if found is None:
            raise _no_offer(lease_id)
        return found

    def _check_offered(self, lease: Lease, taker: Actor | None, now: datetime | None = None) -> TransferOffer:
        """Return the offer of a lease. NotFound if none stands, or none to the ``taker``."""
        offer = find_standing_offer(lease, now or self._runtime.clock.now())
        if offer is None or (taker is not None and not may_accept(offer, taker)):
            raise _no_offer(lease.id, "you" if taker else "anybody")
        return offer

    def _way(self, lease_id: str, terms: Terms) -> tuple[Decide, Grants]:
        """Return how a lease goes to who accepts it, and how that is granted. NotFound."""
        giver = self._giver(lease_id, terms.asked_by)
        grants = GrantToUser if giver == terms.asked_by.project_id else GrantToProject

        def decide(asked: object, attempt: int) -> DecidedChange:
            change = self._decided(lease_id, terms)
            if change.lease.project_id != giver:
                # It has gone to another project, which offers it: that is granted in another way.
                sentence = f"lease {lease_id} has just gone to another project; accept it once more"
                raise Busy(sentence, change.lease.project_id)
            return change

        return decide, grants

    def _decided(self, lease_id: str, terms: Terms) -> DecidedChange:
        try:
            found = load_changeable(self._runtime, lease_id, terms.revisions)
        except NotFound as error:
            raise _no_offer(lease_id) from error
        except PreconditionFailed as error:
            lease = self._runtime.store.leases.one(lease_id)
            if terms.key is not None and lease.status is LeaseStatus.UPDATING:
                # Maybe it is the same request, sent before, that changes it.
                raise busy_error(lease) from error
            raise
        lease, taker = found.lease, terms.asked_by
        offer = self._check_offered(lease, taker, found.now)
        moves = offer.project_id != lease.project_id
        after = replace(
            mark_changed(lease, lease, found.now),
            project_id=offer.project_id,
            user_id=taker.user_id,
            offer=None,
            # They were written by, and for, those who have had it.
            reminders=() if moves else lease.reminders,
        )
        in_use = {r.id for r in lease.reservations if moves and r.status is ReservationStatus.ACTIVE}
        waiting = {r.id for r in lease.reservations if moves and r.status is ReservationStatus.PENDING}
        to_prepare = frozenset(
            r.id for r in lease.reservations if r.id in waiting and self._runtime.type_of(r).has("prepare")
        )
        draft = ChangeDraft(after, replan=False, warning_off=False, to_prepare=to_prepare)
        return DecidedChange(
            lease, draft, AllocationPlan(found.allocations), found.tasks, found.allocations, frozenset(in_use)
        )


def _no_offer(lease_id: str, whom: str = "you") -> NotFound:
    return NotFound(f"lease {lease_id[:80]} is not offered to {whom}", code="transfer_not_found")
