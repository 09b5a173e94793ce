# SPDX-License-Identifier: Apache-2.0
"""Closes accounts: once a month is over, or all that a lease had, it is charged, from facts that stay as they are.

Any manager may do so. Of several that close an account at the same time one writes, and the others find it done.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import DueWork
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import EnforcementUnavailable
from blazar.model.billing.accounts import AccountState, LeaseAccount, find_metered
from blazar.model.billing.ledger import Closing, close_account, plan_account, tell_untold
from blazar.model.billing.uses import LeaseFacts
from blazar.model.use.resource_hours import SpendLimit
from blazar.store.billing.closings import ClaimedAccounts, ClosedAccount

LOG = logging.getLogger(__name__)

PAGE = 10
"""Batches that are read at a time."""

BATCH = 50
"""Accounts that are closed in one transaction: few enough that no booking waits for it for long."""

AWAITED = timedelta(minutes=10)
"""How long after a look at a lease whose start is still to be done it is looked at again."""


class Closings(DueWork[Sequence[LeaseAccount], ClaimedAccounts]):
    """Closes accounts that are due, some at a time: of many at the end of a month each costs little then.

    ``batch`` is how many at most.
    """

    page = PAGE
    shortest = 1.0

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("closing", runtime, work="Leases cannot be charged", retry=10.0)
        self._store = runtime.store.closings
        self.batch = BATCH

    def _due(self) -> Iterator[Sequence[LeaseAccount]]:
        # So that this manager knows of the first list, also if it books nothing itself.
        if not self._runtime.store.price_lists.read():
            return
        due = self._store.due(self._runtime.clock.now(), PAGE * self.batch)
        for first in range(0, len(due), self.batch):
            yield due[first : first + self.batch]

    def _next_due(self) -> datetime | None:
        return self._store.next_due()

    def _claim(self, due: Sequence[LeaseAccount], claim: Claim) -> ClaimedAccounts | None:
        # Longer than closing them may take: it is not renewed.
        now = self._runtime.clock.now()
        return self._store.claim(due, claim.token, now=now, until=now + self._runtime.settings.outbox_claim)

    def work(self, claimed: ClaimedAccounts, claim: Claim) -> None:
        """Close claimed accounts as far as all is known of their leases. StoreUnavailable."""
        now = self._runtime.clock.now()
        closed, waiting = [], []
        # What an hour is metered with is known once it is over: till then an account with hosts waits.
        metered_until = find_metered(now)
        for account in claimed.accounts:
            facts = claimed.facts[account.lease_id]
            cut = _find_cut(account, facts, now)
            is_metered = cut <= metered_until or (claimed.book is None and not account.untold)
            closing = _close(account, cut, claimed) if is_metered else None
            if closing is None:
                waiting.append(account)
                continue
            closed.append(ClosedAccount(account, closing, plan_account(closing.account, facts, claimed.lists)))
        if closed:
            limits = self._find_limits({one.before.project_id for one in closed})
            self._store.close(claimed, claim.token, closed, at=now, limits=limits)
        if waiting:
            self._store.postpone(waiting, claim.token, now + AWAITED)

    def _find_limits(self, projects: Collection[str]) -> Mapping[str, SpendLimit]:
        """Return the limits of projects of which it is told that shares are reached."""
        found = {}
        try:
            for project_id in sorted(projects):
                limit = self._runtime.enforcement.find_spend_limit(project_id)
                if limit is not None and limit.shares:
                    found[project_id] = limit
        except EnforcementUnavailable as error:
            # A bill does not wait for what it is not charged by: it is only not told what of a budget it reaches.
            LOG.warning("Shares of budgets that bills reach are not told, as limits cannot be read: %s", error.message)
        return found


def _close(account: LeaseAccount, cut: datetime, claimed: ClaimedAccounts) -> Closing | None:
    """Return an account closed up to an instant; None if there is nothing to charge yet."""
    if account.state is AccountState.CLOSED:
        return tell_untold(account, claimed.book)
    if cut <= account.closed_until:
        return None
    return close_account(account, cut, claimed.facts[account.lease_id], claimed.lists, claimed.book)


def _find_cut(account: LeaseAccount, facts: LeaseFacts, now: datetime) -> datetime:
    """Return until when an account can be closed: not beyond a start that is still to be done."""
    cut = account.find_cut(now)
    if account.state is AccountState.CLOSED:
        return cut
    return min(cut, account.parts[0].since) if facts.is_awaited and not facts.is_handed_over else cut
