# SPDX-License-Identifier: Apache-2.0
"""What one change of a lease is granted by: what it proposes, who has to allow it, and the messages about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.billing.booked_prices import BookedPrices
from blazar.manager.billing.refusals import explain_growth, refuse_excess
from blazar.manager.booking.booking import Proposal
from blazar.manager.booking.lease_changes import DecidedChange, Unchanged
from blazar.manager.changing.change_fits import ChangeFits
from blazar.manager.common.notifications import UPDATED, Parties
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges
from blazar.manager.outbox.enforcement_check import EnforcementCheck, Examined, is_spending_read
from blazar.manager.outbox.messages import plan_messages
from blazar.manager.outbox.outbox import Outbox
from blazar.model.base.errors import NotEnoughResources, StaleCalendar, StaleLease, UsageDenied
from blazar.model.billing.prices import LeasePrice
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import GrowthDenied
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.use.resource_hours import OutboxMessage, ProjectUse
from blazar.store.booking.commit import Commit, LeaseWrite, limit_prices

ChangeProposal = Proposal[DecidedChange | Unchanged]


class ChangeGrant:
    """One change of a lease for a user: checked by enforcement, and written, or begun if it is made in steps.

    ``told`` is the notification of it, ``price`` what the lease will cost, if that is asked for. A subclass grants
    otherwise.
    """

    told = UPDATED

    def __init__(self, runtime: Runtime, changes: CloudChanges, outbox: Outbox, change: LeaseChange) -> None:
        self.claim = runtime.claims.new()
        self.change = change
        self.runtime = runtime
        self.outbox = outbox
        self._changes = changes
        self.enforcement_check = EnforcementCheck(runtime)
        self.price: LeasePrice | None = None
        self._prices = BookedPrices(runtime)
        self._decided: DecidedChange | None = None

    @property
    def checked(self) -> bool:
        """Tell whether filters have to check what was decided."""
        return self.runtime.enforcement.enabled

    def caller(self, lease: Lease) -> Actor:
        """Return the user who asked for the change."""
        return self.change.asked_by or Actor(lease.user_id, lease.project_id)

    def check(self, proposal: ChangeProposal) -> ChangeProposal:
        """Return a change that is allowed by the limits of the project. UsageDenied, EnforcementUnavailable."""
        self.check_change(proposal.found)
        if self.change.dry_run:
            self._try_budget(proposal, self.enforcement_check.uses)
        return proposal

    def _try_budget(self, proposal: ChangeProposal, known: Sequence[ProjectUse]) -> None:
        """Try whether a change keeps to what its project may spend, as its transaction would. UsageDenied."""
        uses = tuple(use for use in known if use.spend_limit is not None)
        if uses and proposal.commit is not None:
            self.runtime.store.bookings.try_prices(replace(proposal.commit, uses=uses), [proposal.found.lease.id])

    def check_change(self, found: DecidedChange | Unchanged) -> None:
        """Check the limits of the project. UsageDenied, EnforcementUnavailable."""
        # A new name needs no check: it uses no resources.
        if isinstance(found, DecidedChange):
            self.outbox.catch_up(found.lease.id)
            self.enforcement_check.check(_examine(self.caller(found.lease), found))

    def propose(self, found: DecidedChange | Unchanged) -> ChangeProposal:
        """Propose what was decided, or its beginning if it is made in steps."""
        now = self.runtime.clock.now()
        if not isinstance(found, DecidedChange):
            kept = Commit([LeaseWrite(found.lease, found.after, keeps=True)], at=now)
            self._find_price(kept, found.after, None)
            return Proposal(found, None if found.after is found.lease else kept)
        plan, after, moved = found.plan, found.draft.after, found.moved
        # As it is once it is made, also if that takes steps.
        self._decided = found
        self._find_price(self._try(found, after, plan.allocations), after, found)
        if self.in_steps(found) and not self.change.dry_run:
            begun = self._changes.begin(found.lease, found.allocations, plan, self.claim, turn=self.change.turn)
            return Proposal(found, replace(begun, leases=[*begun.leases, *moved]), claim=self.claim)
        commit = Commit(
            [LeaseWrite(found.lease, after, plan.allocations), *moved],
            at=now,
            generations=plan.generations,
            most=limit_prices([after.id], self.change.max_price),
            key=self.change.key,
            turn=self.change.turn,
        )
        return Proposal(found, commit, messages=partial(self.messages, found, after))

    def _find_price(self, commit: Commit, after: Lease, found: DecidedChange | None) -> None:
        """Find what the lease will cost, if somebody wants to know. Conflict if that is more than it may."""
        most = self.change.max_price
        if not self.change.dry_run and most is None:
            return
        is_planned = found is not None and found.draft.replan
        self.price = price = self._prices.price_change(commit, after, most, is_planned=is_planned)
        if price is not None and most is not None and price.value > Fraction(most):
            cheaper = () if found is None else tuple(self._seek_fits(found).list_fits(Fraction(most)))
            raise refuse_excess(price, most, cheaper, "allow more, or change less")

    def check_last_price(self, commit: Commit) -> None:
        """Check what the lease will cost once more before the last write of a change that is made in steps.

        Conflict if that is more than it may; StaleLease.
        """
        if (most := self.change.max_price) is None:
            return
        tried = replace(commit, most={}, uses=(), messages=(), key=None)
        price = self._prices.price_change(tried, commit.leases[0].after, most)
        if price is not None and price.value > Fraction(most):
            # It has what is added by now: how much more that costs is not known any more.
            raise refuse_excess(replace(price, difference=None), most, (), "allow more, or change less")

    def explain(self, error: UsageDenied) -> UsageDenied:
        """Return the refusal of the change with what would be granted, if it is one for want of money."""
        if not isinstance(error, GrowthDenied) or self._decided is None:
            return error
        try:
            fits = tuple(self._seek_fits(self._decided).list_fits(None))
        except (StaleLease, StaleCalendar, NotEnoughResources):
            # The lease, or what its project has, is another one by now: the refusal stands as it is.
            return error
        return explain_growth(error.growth, self._decided.draft.after.window, fits)

    def _seek_fits(self, found: DecidedChange) -> ChangeFits:
        return ChangeFits(found, partial(self._quote, found, self._read_spend_limit(found.draft.after)))

    def _read_spend_limit(self, after: Lease) -> tuple[ProjectUse, ...]:
        """Return what the project has of its limit of money; nothing if it has none. EnforcementUnavailable."""
        if not is_spending_read(self.runtime):
            return ()
        limit = self.runtime.enforcement.find_spend_limit(after.project_id)
        if limit is None:
            return ()
        now, calendar = self.runtime.clock.now(), self.runtime.store.calendar
        use = calendar.read_project_use(after.project_id, after.window, besides=after.id, now=now)
        return (replace(use, spend_limit=limit),)

    def _quote(
        self, found: DecidedChange, uses: tuple[ProjectUse, ...], after: Lease, held: Sequence[Allocation]
    ) -> LeasePrice | None:
        """Return what the lease would cost if it were so, and had that; None if its project cannot pay for it."""
        try:
            # By the lists by which the change was found to be too dear.
            return self._prices.price_change(replace(self._try(found, after, held), uses=uses), after, is_planned=True)
        except GrowthDenied:
            return None

    def _try(self, found: DecidedChange, after: Lease, held: Sequence[Allocation]) -> Commit:
        return Commit([LeaseWrite(found.lease, after, tuple(held))], at=self.runtime.clock.now())

    def in_steps(self, found: DecidedChange) -> bool:
        """Tell whether a change can fail after it is booked: in the cloud, or because a service rejects it."""
        return found.needs_cloud or self.must_accept(found)

    def must_accept(self, found: DecidedChange) -> bool:
        """Tell whether a filter has to accept the change before it is made."""
        return self.runtime.enforcement.needs_acceptance(Occasion.UPDATED, found.lease.project_id)

    def messages(self, found: DecidedChange, after: Lease) -> tuple[OutboxMessage, ...]:
        """Return what filters are told of a change that leads to ``after``: held, if one has to accept it first."""
        return plan_messages(
            self.runtime,
            Occasion.UPDATED,
            after,
            found.plan.allocations,
            by=self.caller(after),
            before=(found.lease, found.allocations),
        )

    def parties(self, found: DecidedChange) -> Parties | None:
        """Return between whom the lease has changed hands; None if it has not."""
        return None

    def confirm(self, found: DecidedChange) -> None:
        """Look once more at the cloud after the change was made there; whatever is raised undoes it."""

    def check_last(self, found: DecidedChange) -> ProjectUse | None:
        """Check once more before the last write of a change that is made in steps; what is raised undoes it.

        Return the use of a project that must not have changed until that write; None: that does not matter.
        """
        return None


class TrialGrant(ChangeGrant):
    """A change that is only tried, to be offered: by our own limits, and no service is asked."""

    def check(self, proposal: ChangeProposal) -> ChangeProposal:
        """Return a change that our own limits allow. UsageDenied, EnforcementUnavailable."""
        found = proposal.found
        if isinstance(found, DecidedChange):
            for objection in self.enforcement_check.list_objections(_examine(self.caller(found.lease), found)):
                raise objection
            self._try_budget(proposal, self._read_spend_limit(found.draft.after))
        return proposal

    def explain(self, error: UsageDenied) -> UsageDenied:
        """Return the refusal as it is: nobody reads it."""
        return error


Grants = Callable[[Runtime, CloudChanges, Outbox, LeaseChange], ChangeGrant]
"""Makes the grant of a change."""


def _examine(caller: Actor, found: DecidedChange) -> Examined:
    """Return what enforcement is to look at of a change."""
    before = found.lease, found.allocations
    return Examined(caller, found.draft.after, found.plan.allocations, before=before)
