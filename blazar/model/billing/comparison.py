# SPDX-License-Identifier: Apache-2.0
"""What a month that is over would have cost by another price list. Pure.

It is the same leases with the same use, by the function that makes bills. What was given back and corrected is in
neither sum: its share was computed from what a lease had before, which is no fact any more. Energy is that of the lines
that tell it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime

from blazar.model.base.values import dataclass, replace
from blazar.model.billing.charges import ChargeCategory, ChargeStatus, price_energy, sum_lines, window_of_month
from blazar.model.billing.ledger import close_account
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.recomputation import CheckedLease, find_begin
from blazar.model.billing.uses import BookedUse, LeaseFacts, size_power
from blazar.model.resources.resource import PropertyValue
from blazar.model.use.resource_hours import KWH

_COMPARED = (ChargeCategory.USAGE, ChargeCategory.ROUNDING_UP, ChargeCategory.FEE, ChargeCategory.ENERGY)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Properties = Mapping[int, Mapping[str, PropertyValue]]
"""The properties of resources, by their ids in the calendar."""


@dataclass(frozen=True, slots=True)
class ProjectComparison:
    """What a project was charged, and what it would have been, in 10⁻⁹ of the currency."""

    project_id: str
    nano: int
    new_nano: int


@dataclass(frozen=True, slots=True)
class MonthComparison:
    """What projects were charged for a month, of which this is the first day, and what they would have been.

    ``leases`` is for how many; ``is_whole``: there are no more.
    """

    month: date
    projects: tuple[ProjectComparison, ...]
    leases: int
    is_whole: bool

    @property
    def nano(self) -> int:
        """Return what all were charged, in 10⁻⁹ of the currency."""
        return sum(one.nano for one in self.projects)

    @property
    def new_nano(self) -> int:
        """Return what all would have been charged."""
        return sum(one.new_nano for one in self.projects)


class Comparing:
    """Adds up what leases cost in a month, and what they would have cost by a list, whenever that was published."""

    def __init__(self, month: date, new: PriceList, published: Sequence[PriceList]) -> None:
        self._month = window_of_month(month)
        # As if it had always been there: only this list is known.
        self._new = replace(new, valid_from=EPOCH, published_at=EPOCH)
        self._measures = {price.sku: price.measure for prices in published for price in prices.prices}
        self._charged: Counter[str] = Counter()
        self._would_be: Counter[str] = Counter()
        self.leases = 0

    def add(self, lease: CheckedLease, properties: Properties) -> None:
        """Add a lease; one that was purged has no facts, and is left out."""
        if lease.facts is None:
            return
        self.leases += 1
        power = self._map_power(lease.facts, properties)
        for charge in lease.charges:
            line = charge.line
            if line.month == self._month.start.date() and charge.corrects is None and line.category in _COMPARED:
                self._charged[charge.project_id] += line.nano
                # A fee is due where one was.
                self._would_be[charge.project_id] += self._new.fee * (line.category is ChargeCategory.FEE)
                if line.energy is not None and line.status is ChargeStatus.USED:
                    unit, factor = power.get(line.reservation_id, 0), self._new.find_energy_factor(charge.project_id)
                    self._would_be[charge.project_id] += price_energy(unit, factor, line.energy.wh)
        facts = replace(lease.facts, uses=tuple(self._retag(use, properties) for use in lease.facts.uses))
        accounts = sorted(lease.accounts, key=lambda account: account.opened_at)
        for number, account in enumerate(accounts):
            begin = max(self._month.start, find_begin(account, is_first=number == 0))
            cut = min(self._month.end, account.closed_until)
            if begin < cut:
                opened = replace(account, closed_until=begin, has_fee=False)
                lines = close_account(opened, cut, facts, (self._new,)).lines
                self._would_be[account.project_id] += sum_lines(lines)

    def sum_projects(self, *, is_whole: bool) -> MonthComparison:
        """Return the sums."""
        projects = sorted({*self._charged, *self._would_be})
        found = (ProjectComparison(id_, self._charged[id_], self._would_be[id_]) for id_ in projects)
        return MonthComparison(self._month.start.date(), tuple(found), self.leases, is_whole)

    def _map_power(self, facts: LeaseFacts, properties: Properties) -> Mapping[str | None, int]:
        """Return what a kilowatt-hour would cost of each reservation: by the first of its hosts, if they differ."""
        found: dict[str | None, int] = {}
        for use in facts.uses if self._new.power_skus else ():
            if size_power(use.amounts) and use.reservation_id not in found:
                price = self._new.choose_price(KWH, properties.get(use.resource_id, {}))
                found[use.reservation_id] = 0 if price is None else price.unit_nano
        return found

    def _retag(self, use: BookedUse, properties: Properties) -> BookedUse:
        """Return a use with the prices that the list chooses for it; how many were booked stays."""
        booked = {self._measures.get(sku, ""): number for sku, number in (use.skus or {}).items()}
        known = properties.get(use.resource_id, {})
        skus: dict[str, int] = {}
        for measure, amount in use.amounts.items():
            price = self._new.choose_price(measure, known)
            if price is not None:
                skus[price.sku] = booked.get(measure, amount)
        return replace(use, skus=skus)
