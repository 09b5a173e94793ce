# SPDX-License-Identifier: Apache-2.0
"""A budget of money for each project and month.

Of a new lease it is seen before it is booked whether its price fits, and what would. The transaction of each booking
and change keeps to the limit, too: it knows exactly what the ledger has then.
"""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction
from typing import Any, ClassVar

from oslo_config import cfg

from blazar.enforcement.limits import LimitFilter, count_only_reservation
from blazar.enforcement.pricing import describe_lease
from blazar.enforcement.sentences import span
from blazar.enforcement.unified import PREFIX, UnifiedLimits
from blazar.enforcement.values import Question
from blazar.model.base.clock import to_second, zulu
from blazar.model.base.errors import EnforcementUnavailable, InvalidInput, UsageDenied
from blazar.model.base.window import Window
from blazar.model.billing.budgets import BudgetFacts, BudgetSource, BudgetUnit, ProjectBudget
from blazar.model.billing.charges import NANO, window_of_month
from blazar.model.billing.fits import JointLimit, PriceLimit
from blazar.model.billing.prices import QuotedLease
from blazar.model.billing.spending import (
    LONGEST_MOVED,
    SpendExcess,
    SpendRoom,
    find_affordable_count,
    find_affordable_length,
    find_affordable_start,
    parse_limit,
    spell_down,
    spell_month,
    spell_up,
)
from blazar.model.leases.limits import RAISE_LIMIT, Exceeded, Fits
from blazar.model.leases.states import LeaseStatus
from blazar.model.use.resource_hours import MonthSpending, SpendLimit

OPTION = "max_spend"
REGISTERED = f"{PREFIX}spend"
NEW = (LeaseStatus.CREATING, LeaseStatus.WAITING, LeaseStatus.PENDING)


class SpendFilter(LimitFilter):
    """Limits what a project has to pay for a month: what was charged, and what is planned for what is booked."""

    needs_use: ClassVar[bool] = True
    options: ClassVar[list[cfg.Opt]] = [
        cfg.StrOpt(
            OPTION,
            default="-1",
            help="The most that a project may have to pay for a month of UTC, for SpendFilter: a decimal number in the "
            "currency of the price lists, such as 1000.00; -1 for any amount.",
        ),
    ]

    def __init__(self, most_nano: int | None, *, unified: UnifiedLimits | None = None) -> None:
        self._most = most_nano
        self._unified = unified

    @classmethod
    def configured(cls, section: Any, identity: Any) -> SpendFilter:
        """Return the filter as configured; InvalidInput."""
        try:
            most = parse_limit(section.max_spend)
        except ValueError as error:
            raise InvalidInput(
                f"[enforcement] {OPTION} cannot be {section.max_spend[:40]!r}; give an amount in the currency of the "
                "price lists, such as 1000.00, or -1 for no limit"
            ) from error
        return cls(most, unified=identity.limits)

    def spend_limit(self, project_id: str) -> SpendLimit | None:
        """Return the limit of a project; None: there is none. EnforcementUnavailable."""
        if self._unified is None:
            return None if self._most is None else SpendLimit(OPTION, self._most)
        found = self._unified.limits_of(project_id)
        if REGISTERED not in found:
            raise EnforcementUnavailable(
                f"Keystone has no registered limit {REGISTERED}; an operator must create it before leases can be "
                "granted"
            )
        return None if found[REGISTERED] < 0 else SpendLimit(REGISTERED, found[REGISTERED] * NANO)

    def budget_window(self, at: datetime) -> Window:
        """Return the month in which an instant lies."""
        return window_of_month(at.date())

    def list_budgets(self, facts: BudgetFacts) -> tuple[ProjectBudget, ...]:
        """Return the budget of a project for a month; none if nothing has a price."""
        if facts.spending is None or (limit := self.spend_limit(facts.project_id)) is None:
            return ()
        window = self.budget_window(facts.at)
        month = facts.spending.months.get(window.start.date(), MonthSpending())
        budget = ProjectBudget(
            project_id=facts.project_id,
            source=BudgetSource.CONFIGURATION if self._unified is None else BudgetSource.UNIFIED_LIMITS,
            unit=BudgetUnit.MONEY,
            limit_name=limit.name,
            measure=facts.spending.currency,
            window=window,
            limit=limit.nano,
            used=month.charged,
            held=month.planned,
        )
        return (budget,)

    def check(self, question: Question) -> None:
        """Deny a new lease that costs more than is left for one of its months.

        What a change costs, or a lease that is in use already, is only known with its charges: to the transaction.
        """
        spending, wanted = question.spending, question.wanted
        if spending is None or question.current is not None or wanted.window.end <= question.now:
            return
        if wanted.lease.status not in NEW or (limit := self.spend_limit(wanted.project_id)) is None:
            return
        # The start of a lease that begins at once is over when it is looked at in the next second.
        booked_at = min(to_second(question.now), wanted.window.start)
        room = SpendRoom(limit, spending)
        quoted = describe_lease(wanted.lease, wanted.window, wanted.allocated_resources, spending.lists, now=booked_at)
        excess = room.find_excess(quoted)
        if excess is not None:
            raise _refuse(room, excess, quoted, question)


def _refuse(room: SpendRoom, excess: SpendExcess, quoted: QuotedLease, question: Question) -> UsageDenied:
    spending, name, most = room.spending, room.limit.name, question.max_price
    count = count_only_reservation(question)
    # What is shorter or fewer costs no more, but another time may.
    limit = room if most is None else JointLimit((room, PriceLimit(Fraction(most), room.lists)))
    currency, decimals = spending.currency, spending.decimals
    shorter = find_affordable_length(quoted, room, excess)
    fewer = find_affordable_count(quoted, count, room) if count > 1 else 0
    later = find_affordable_start(quoted, limit)
    fits: Fits = {
        **({"duration_seconds": int(shorter.duration.total_seconds())} if shorter else {}),
        **({"amount": fewer} if fewer else {}),
        **({"start_date": zulu(later.start), "end_date": zulu(later.end)} if later else {}),
    }
    advice = [
        *([f"for at most {span(shorter.duration)}"] if shorter else []),
        *([f"for at most {fewer} of what it would have"] if fewer else []),
        *([f"for a start at {zulu(later.start)}"] if later else []),
        # No other start was looked for.
        *(["for another time"] if quoted.window.duration > LONGEST_MOVED else []),
    ]
    asked = ", or ".join(advice) or RAISE_LIMIT
    month = spending.months.get(excess.month, MonthSpending())
    exceeded = Exceeded(
        name,
        currency,
        spell_down(room.limit.nano, decimals),
        spell_up(excess.taken, decimals),
        spell_up(month.total, decimals),
        fits,
    )
    return exceeded.make_denial(
        f"reservations, start_date, end_date: the lease would cost {spell_up(excess.taken, decimals)} {currency} for "
        f"{spell_month(excess.month)}, and of the {spell_down(room.limit.nano, decimals)} that the project has for a "
        f"month ({name}) {spell_down(excess.left, decimals)} are left; ask {asked}"
    )
