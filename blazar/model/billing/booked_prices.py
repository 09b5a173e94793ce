# SPDX-License-Identifier: Apache-2.0
"""What a lease that is booked costs its project: what it was charged so far, and what is planned for the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from blazar.model.base.clock import later, to_second
from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.billing.accounts import AccountState, LeaseAccount
from blazar.model.billing.ledger import HORIZON, BilledChange, Planned, change_account
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import CancellationCost, LeasePrice, list_cancellation, show_amount
from blazar.model.billing.uses import LeaseFacts


@dataclass(frozen=True, slots=True)
class AccountTotals:
    """The sums of an account, in 10⁻⁹ of the currency; what is charged includes earlier accounts of its project.

    ``estimated`` is what of the planned is for energy.
    """

    account: LeaseAccount
    charged: int
    planned: int
    estimated: int = 0

    @classmethod
    def plan(cls, account: LeaseAccount, months: Planned) -> AccountTotals:
        """Return the sums of an account that was never charged anything."""
        every = months.values()
        return cls(account, 0, sum(one.nano for one in every), sum(one.estimated for one in every))

    @property
    def nano(self) -> int:
        """Return what the lease costs in all, not rounded."""
        return self.charged + self.planned

    @property
    def is_whole(self) -> bool:
        """Return whether all of the rest is planned: that of some lasts for too long."""
        account = self.account
        is_closed = account.state is AccountState.CLOSED
        return is_closed or account.booked_until <= later(account.closed_until, HORIZON)


def sum_account(
    totals: AccountTotals, lists: Sequence[PriceList], cancelled: Sequence[CancellationCost] = ()
) -> LeasePrice | None:
    """Return what a lease costs that is booked; None if not all of the rest of it is planned."""
    if not totals.is_whole or not lists:
        return None
    # All lists of a site have the same currency.
    decimals = lists[-1].decimals
    return LeasePrice(
        amount=show_amount(totals.nano, decimals),
        currency=lists[-1].currency,
        if_cancelled=tuple(cancelled),
        charged=show_amount(totals.charged, decimals),
        estimated=show_amount(totals.estimated, decimals) if totals.estimated else None,
    )


def list_costs(
    totals: AccountTotals, facts: LeaseFacts, lists: Sequence[PriceList], now: datetime
) -> Iterator[CancellationCost]:
    """Yield what a booked lease costs in all if it is cancelled until an instant; nothing once it has started."""
    begin, start = to_second(now), totals.account.parts[0].since
    if totals.account.state is AccountState.CLOSED or begin >= start or facts.is_handed_over:
        return

    def find_cost(before_start: int) -> int:
        at = start - timedelta(seconds=before_start)
        window = Window(start, totals.account.booked_until)
        change = BilledChange(before=window, after=window, at=at, given_back_at=at)
        closing = change_account(totals.account, change, facts, LeaseFacts(), lists)
        return totals.charged + sum(line.nano for line in closing.lines)

    yield from list_cancellation(Window(begin, start), lists, lists[-1].decimals, find_cost)
