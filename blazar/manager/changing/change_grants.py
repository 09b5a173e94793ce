# SPDX-License-Identifier: Apache-2.0
"""What one change of a lease is granted by: what it proposes, who has to allow it, and the messages about it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.booking.booking import Proposal
from blazar.manager.booking.lease_changes import DecidedChange, Unchanged
from blazar.manager.common.notifications import UPDATED, Parties
from blazar.manager.common.runtime import Runtime
from blazar.manager.events.cloud_changes import CloudChanges
from blazar.manager.outbox.enforcement_check import EnforcementCheck, Examined
from blazar.manager.outbox.messages import plan_messages
from blazar.manager.outbox.outbox import Outbox
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange
from blazar.model.use.resource_hours import OutboxMessage, ProjectUse
from blazar.store.booking.commit import Commit, LeaseWrite

ChangeProposal = Proposal[DecidedChange | Unchanged]


class ChangeGrant:
    """One change of a lease for a user: checked by enforcement, and written, or begun if it is made in steps.

    ``told`` is the notification of it. A subclass grants otherwise.
    """

    told = UPDATED

    def __init__(self, runtime: Runtime, changes: CloudChanges, outbox: Outbox, change: LeaseChange) -> None:
        self.claim = runtime.claims.new()
        self.change = change
        self.runtime = runtime
        self.outbox = outbox
        self._changes = changes
        self.enforcement_check = EnforcementCheck(runtime)

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
        return proposal

    def check_change(self, found: DecidedChange | Unchanged) -> None:
        """Check the limits of the project. UsageDenied, EnforcementUnavailable."""
        # A new name needs no check: it uses no resources.
        if isinstance(found, DecidedChange):
            lease = found.lease
            self.outbox.catch_up(lease.id)
            before = lease, found.allocations
            self.enforcement_check.check(
                Examined(self.caller(lease), found.draft.after, found.plan.allocations, before=before)
            )

    def propose(self, found: DecidedChange | Unchanged) -> ChangeProposal:
        """Propose what was decided, or its beginning if it is made in steps."""
        now = self.runtime.clock.now()
        if not isinstance(found, DecidedChange):
            same = found.after is found.lease
            return Proposal(found, None if same else Commit([LeaseWrite(found.lease, found.after, keeps=True)], at=now))
        plan, after = found.plan, found.draft.after
        if self.in_steps(found) and not self.change.dry_run:
            begun = self._changes.begin(found.lease, found.allocations, plan, self.claim, turn=self.change.turn)
            return Proposal(found, begun, claim=self.claim)
        commit = Commit(
            [LeaseWrite(found.lease, after, plan.allocations)],
            at=now,
            generations=plan.generations,
            key=self.change.key,
            turn=self.change.turn,
        )
        return Proposal(found, commit, messages=partial(self.messages, found, after))

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


Grants = Callable[[Runtime, CloudChanges, Outbox, LeaseChange], ChangeGrant]
"""Makes the grant of a change."""
