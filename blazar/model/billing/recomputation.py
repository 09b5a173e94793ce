# SPDX-License-Identifier: Apache-2.0
"""Recomputation: what the accounts of a lease were charged, beside what its facts give now. Pure.

It is the closing's own function that computes it once more. What was given back was computed from what the lease had
before, which is no fact any more; and what leases that were split or merged in use were charged for is a fact of
another one since. Of these, and of energy, each charge is computed from the time, or watt-hours, and the factor that it
says itself, by its list. That none of them is lost, or has another amount than it was written with, is seen by what the
accounts say of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime

from blazar.model.base.clock import to_second
from blazar.model.base.values import dataclass, replace
from blazar.model.billing.accounts import AccountState, LeaseAccount
from blazar.model.billing.charges import Charge, ChargeCategory, ChargeLine, price_energy, price_seconds, take_share
from blazar.model.billing.ledger import close_account
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import show_exactly
from blazar.model.billing.rating import ChargeTerms, rate_fee
from blazar.model.billing.uses import LeaseFacts

_OF_FACTS = (ChargeCategory.USAGE, ChargeCategory.ROUNDING_UP, ChargeCategory.FEE)
_OF_ITSELF = (ChargeCategory.CANCELLATION, ChargeCategory.EARLY_RETURN, ChargeCategory.ENERGY)
_COMPARED = (*_OF_FACTS, *_OF_ITSELF)


@dataclass(frozen=True, slots=True)
class CheckedLease:
    """The accounts of a lease, all its charges, and its facts; None: the lease was purged, and they with it."""

    id: str
    accounts: Sequence[LeaseAccount]
    charges: Sequence[Charge]
    facts: LeaseFacts | None


@dataclass(frozen=True, slots=True)
class ChargeDifference:
    """What a project was charged for a lease in a month, and what its facts give now, in 10⁻⁹ of the currency.

    ``account_id`` is the first account of the project. ``corrected`` is the charge that a correction would answer;
    None: nothing is charged that one could.
    """

    lease_id: str
    account_id: str
    project_id: str
    month: date
    written: int
    recomputed: int
    corrected: int | None = None

    @property
    def key(self) -> str:
        """Return what tells it from others."""
        return f"{self.account_id}.{self.month:%Y-%m}"

    def describe(self, currency: str, decimals: int) -> str:
        """Return what differs and what mends it, a sentence on each line."""
        was, became, missing = (
            show_exactly(nano, decimals) for nano in (self.written, self.recomputed, self.recomputed - self.written)
        )
        found = (
            f"In {self.month:%Y-%m} project {self.project_id} was charged {was} {currency} for lease {self.lease_id}; "
            f"by what is on record of the lease it is {became} {currency}"
        )
        if self.corrected is None:
            return f"{found}\nnothing is charged that a correction could answer: see whether the database was restored"
        reason = f"computed once more for {self.month:%Y-%m}"
        return f'{found}\nthis mends it: blazar charge correct {self.corrected} {missing} --reason "{reason}"'


def list_differences(lease: CheckedLease, lists: Sequence[PriceList]) -> Iterator[ChargeDifference]:
    """Yield where charges of a lease differ from its facts, unless a correction has made up for it.

    Of a project that has still more to pay nothing is said: a charge may be on its way.
    """
    accounts = sorted(lease.accounts, key=lambda account: account.opened_at)
    if lease.facts is None:
        return
    is_mixed = any(account.is_mixed for account in accounts)
    busy = {account.project_id for account in accounts if account.due_at is not None}
    for project_id in sorted({account.project_id for account in accounts} - busy):
        mine = [charge for charge in lease.charges if charge.project_id == project_id]
        lines = [] if is_mixed else list(_recompute(accounts, project_id, mine, lease.facts, lists))
        itself = _COMPARED if is_mixed else _OF_ITSELF
        lines += [_count_again(one.line, lists) for one in mine if one.line.category in itself]
        first = next(account for account in accounts if account.project_id == project_id)
        found = {one.month: one for one in _compare(first, mine, lines)}
        # What was written is known to the last line; by facts no fee is due where none is charged.
        found |= {one.month: one for one in _list_lost(first, accounts, mine)}
        yield from found.values()


def _list_lost(
    first: LeaseAccount, accounts: Sequence[LeaseAccount], charges: Sequence[Charge]
) -> Iterator[ChargeDifference]:
    """Yield the months for which a project has other charges than were written to its accounts."""
    sums: Counter[date] = Counter()
    for account in accounts:
        if account.project_id == first.project_id:
            if account.charged is None:
                return
            sums.update(account.charged)
    was = _sum_months([charge.line for charge in charges if charge.corrects is None])
    for month in sorted({*was, *sums}):
        missing = sums[month] - was[month]
        if missing and missing not in _list_answers(charges, month):
            yield _tell_difference(first, charges, month, was[month], sums[month])


def _tell_difference(
    account: LeaseAccount, charges: Sequence[Charge], month: date, written: int, recomputed: int
) -> ChargeDifference:
    return ChargeDifference(
        lease_id=account.lease_id,
        account_id=account.id,
        project_id=account.project_id,
        month=month,
        written=written,
        recomputed=recomputed,
        corrected=_find_corrected(charges, month),
    )


def _recompute(
    accounts: Sequence[LeaseAccount],
    project_id: str,
    charges: Sequence[Charge],
    facts: LeaseFacts,
    lists: Sequence[PriceList],
) -> Iterator[ChargeLine]:
    """Yield the lines of the accounts of a project, as if they were closed now for the first time."""
    handed_over_at = min((one.at for one in facts.starts.values() if one.at is not None), default=None)
    payer: LeaseAccount | None = None
    for number, account in enumerate(accounts):
        if account.project_id != project_id:
            continue
        begin = find_begin(account, is_first=number == 0)
        opened = replace(account, closed_until=begin, has_fee=False, state=AccountState.OPEN)
        yield from close_account(opened, account.closed_until, facts, lists).lines
        if payer is None or handed_over_at is None or begin <= handed_over_at:
            payer = account
    # Whose the fee is follows from what was done with the lease: what is on record of that is the charge itself.
    if payer is not None and any(charge.line.category is ChargeCategory.FEE for charge in charges):
        fee = rate_fee(lists, ChargeTerms(project_id, payer.parts))
        yield from () if fee is None else (fee,)


def _count_again(line: ChargeLine, lists: Sequence[PriceList]) -> ChargeLine:
    """Return a line with the amount that follows from its time, or energy, and its factor by its price list."""
    prices = next((one for one in lists if one.version == line.version), None)
    if prices is None:
        return replace(line, nano=0)
    if line.sku is None:
        return replace(line, nano=take_share(prices.fee, line.factor))
    price = prices.find_price(line.sku)
    unit_nano = 0 if price is None else price.unit_nano
    if line.energy is not None:
        return replace(line, nano=price_energy(unit_nano, line.factor, line.energy.wh))
    return replace(line, nano=price_seconds(unit_nano, line.factor, line.resource_seconds))


def find_begin(account: LeaseAccount, *, is_first: bool) -> datetime:
    """Return from when on an account has to pay: one that starts at once has started before it was opened."""
    opened_at = to_second(account.opened_at)
    return min(opened_at, account.parts[0].since) if is_first else opened_at


def _compare(
    account: LeaseAccount, charges: Sequence[Charge], lines: Sequence[ChargeLine]
) -> Iterator[ChargeDifference]:
    written = [charge.line for charge in charges if charge.line.category in _COMPARED]
    was, became = _sum_months(written), _sum_months([line for line in lines if line.category in _COMPARED])
    # Each line is rounded once, and a time that was charged in parts has more of them.
    most = len(written) + len(lines)
    for month in sorted({*was, *became}):
        missing = became[month] - was[month]
        if all(abs(missing - answer) > most for answer in (0, *_list_answers(charges, month))):
            yield _tell_difference(account, charges, month, was[month], became[month])


def _list_answers(charges: Sequence[Charge], month: date) -> Iterator[int]:
    """Yield amounts by which corrections may have made up for a difference: of the month together, or one alone.

    What was given for another reason, as a favour, makes up for nothing.
    """
    months = {charge.id: charge.line.month for charge in charges}
    corrections = [charge for charge in charges if charge.corrects is not None]
    yield sum(one.line.nano for one in corrections if months.get(one.corrects or 0) == month)
    yield from (one.line.nano for one in corrections)


def _find_corrected(charges: Sequence[Charge], month: date) -> int | None:
    """Return the first charge of a month that can be corrected, else one of another month."""
    known = [one for one in charges if one.corrects is None and not one.line.is_only_told]
    of_month = [charge for charge in known if charge.line.month == month]
    return next((charge.id for charge in (*of_month, *known)), None)


def _sum_months(lines: Sequence[ChargeLine]) -> Mapping[date, int]:
    sums: Counter[date] = Counter()
    for line in lines:
        sums[line.month] += line.nano
    return sums
