# SPDX-License-Identifier: Apache-2.0
"""The ledger: what an account is charged when it is closed up to an instant, and what a change of a lease does. Pure.

What was charged stays so. So an account is only closed up to instants of which all is known, and each change of a lease
says what it gives back at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction

from blazar.model.base.clock import later, to_second
from blazar.model.base.errors import InvalidInput, pointer_to
from blazar.model.base.values import dataclass, replace
from blazar.model.base.window import Window
from blazar.model.billing.accounts import AccountState, LeaseAccount
from blazar.model.billing.charges import MOST_NANO, NANO, ChargeLine
from blazar.model.billing.energy import EnergyRates, list_power_shares, tell_energy
from blazar.model.billing.power import PowerShare, estimate_energy, estimate_shares
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.prices import LONGEST, QuotedLease
from blazar.model.billing.rating import ChargeTerms, PricedUse, count_months, price_fee, rate, rate_fee, rate_times
from blazar.model.billing.uses import BookedUse, LeaseFacts, list_given_back, list_powers, list_priced
from blazar.model.energy.book import EnergyBook

_SECOND = timedelta(seconds=1)
HORIZON = timedelta(days=3 * 366)
"""How far ahead the rest of a lease is planned: some last for ever."""

DEAREST = 1000
"""No factor of hours that nobody uses is as much."""


@dataclass(frozen=True, slots=True)
class PlannedMonth:
    """What is still to be charged for a month, in 10⁻⁹ of the currency; what is ``estimated`` of it is for energy."""

    nano: int = 0
    estimated: int = 0


_Months = dict[int, tuple[int, int]]
"""By month, counted as in ``RatedTime``, what a ``PlannedMonth`` has."""
_NOTHING = (0, 0)

Planned = Mapping[date, PlannedMonth]
"""What the rest of a lease will cost, by the first day of each month."""


@dataclass(frozen=True, slots=True)
class Closing:
    """An account that is closed up to an instant, and what is charged for that."""

    account: LeaseAccount
    lines: tuple[ChargeLine, ...] = ()


def close_account(
    account: LeaseAccount,
    cut: datetime,
    facts: LeaseFacts,
    lists: Sequence[PriceList],
    book: EnergyBook | None = None,
    *,
    keeps_energy: bool = False,
) -> Closing:
    """Return an account closed up to an instant, with what is charged of the time from its last closing until then.

    By a ``book`` it also tells what the lease drew in that time, and what was untold of it. ``keeps_energy``: that is
    not metered yet, and is kept to be told.
    """
    if cut <= account.closed_until:
        return Closing(account)
    terms, span = _terms_of(account, facts), Window(account.closed_until, cut)
    lines = rate(list_priced(facts, span, lists, is_quote=False), lists, terms)
    untold = account.untold
    if (keeps_energy or book is not None) and (had := list_power_shares(facts, span, EnergyRates(lists, terms))):
        untold = (*untold, had)
    if not keeps_energy:
        lines, untold = (*lines, *_tell_all(untold, book)), ()
    starts = account.has_fee and facts.is_handed_over
    fee = rate_fee(lists, terms) if starts else None
    closed = replace(account, closed_until=cut, has_fee=account.has_fee and not starts, untold=untold)
    if cut >= account.booked_until:
        closed = replace(closed, state=AccountState.CLOSED)
    return _charge(closed, lines if fee is None else (fee, *lines))


def tell_untold(account: LeaseAccount, book: EnergyBook | None) -> Closing:
    """Return an account with what is charged for what is untold of it; without a ``book`` nothing is told."""
    return _charge(replace(account, untold=()), _tell_all(account.untold, book))


def _tell_all(untold: Iterable[tuple[PowerShare, ...]], book: EnergyBook | None) -> tuple[ChargeLine, ...]:
    # By each time that an account was closed: a line has no time between in which something was of another one.
    return () if book is None else tuple(line for shares in untold for line in tell_energy(shares, book))


def plan_account(account: LeaseAccount, facts: LeaseFacts, lists: Sequence[PriceList]) -> Planned:
    """Return what the rest of an account will cost if all goes as it is booked.

    A month of which nothing will cost anything is in it, too: more will be said of it.
    """
    sums: _Months = {}
    for line in estimate_shares(account.untold_shares) if account.untold else ():
        _add(sums, line.window.start, line.nano, line.nano)
    end = min(account.booked_until, later(account.closed_until, HORIZON))
    if account.state is AccountState.OPEN and account.closed_until < end:
        span = Window(account.closed_until, end)
        if begins := [use.window.start for use in facts.uses if use.window.overlaps(span)]:
            _add_months(sums, max(span.start, min(begins)), end)
        terms = _terms_of(account, facts)
        _add_uses(sums, list_priced(facts, span, lists, is_quote=True), list_powers(facts, span, lists), lists, terms)
        if account.has_fee and (fee := price_fee(lists, terms)):
            _add(sums, terms.start, fee)
    return _list_planned(sums)


def plan_quoted(quoted: QuotedLease, lists: Sequence[PriceList]) -> Planned:
    """Return what will be planned for a new lease once it is booked, as ``plan_account`` does."""
    sums: _Months = {}
    terms, window = quoted.terms, quoted.window
    end = later(min(quoted.booked_at, window.start), HORIZON)
    if window.start < end:
        if not (is_whole := window.end <= end):
            quoted = replace(quoted, window=Window(window.start, end))
        _add_months(sums, window.start, quoted.window.end)
        _add_uses(sums, quoted.list_uses(is_whole=is_whole), quoted.list_powers(), lists, terms)
    if fee := price_fee(lists, terms):
        _add(sums, window.start, fee)
    return _list_planned(sums)


def _add_uses(
    sums: _Months,
    priced: Iterable[PricedUse],
    powers: Collection[PricedUse],
    lists: Sequence[PriceList],
    terms: ChargeTerms,
) -> None:
    """Add what uses will cost to the sums of their months."""
    for time in rate_times(priced, lists, terms):
        nano, estimated = sums.get(time.month, _NOTHING)
        sums[time.month] = nano + time.nano, estimated
    for line in estimate_energy(powers, lists, terms) if powers else ():
        _add(sums, line.window.start, line.nano, line.nano)


def _add(sums: _Months, at: datetime, more: int, estimated: int = 0) -> None:
    """Add an amount, and what of it is estimated, to the sums of the month of an instant."""
    month = count_months(at)
    nano, before = sums.get(month, _NOTHING)
    sums[month] = nano + more, before + estimated


def _add_months(sums: _Months, start: datetime, end: datetime) -> None:
    """Add the months from an instant to another, whatever they cost."""
    for month in range(count_months(start), count_months(end - _SECOND) + 1):
        sums.setdefault(month, _NOTHING)


def _list_planned(sums: _Months) -> Planned:
    return {date(month // 12, month % 12 + 1, 1): PlannedMonth(*sums[month]) for month in sorted(sums)}


def check_planned(planned: Planned, lists: Sequence[PriceList]) -> None:
    """Raise InvalidInput if a lease costs more in a month than a ledger can keep, also if nobody uses it.

    ``lists`` are those that were published, in the order of their versions.
    """
    most = max((month.nano for month in planned.values()), default=0)
    if most * DEAREST <= MOST_NANO:
        return
    dearest: Fraction = max(prices.unused for prices in _list_holding(lists))
    # Energy that costs more by its estimate counts as this.
    if most * max(dearest, Fraction(1)) >= MOST_NANO:
        raise InvalidInput(
            f"reservations: the lease would cost more than {MOST_NANO // NANO} {lists[-1].currency} in a month"
            f"{', if nobody uses it' if dearest > 1 else ''}, which cannot be charged; ask for less, or tell the "
            "operators that their prices are too high",
            at=pointer_to(("reservations",)),
        )


def _list_holding(lists: Sequence[PriceList]) -> Iterator[PriceList]:
    """Yield the lists that hold at some time for what is booked now: those that no later one has replaced."""
    for number, prices in enumerate(lists):
        if all(later.valid_from > prices.valid_from for later in lists[number + 1 :]):
            yield prices


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledChange:
    """A change of a lease: its dates before and after, when it is made, and what is given back by it.

    ``given_back_at``: its owner gave back what it has less then; None: nobody did.
    """

    before: Window
    after: Window
    at: datetime
    given_back_at: datetime | None = None


def change_account(
    account: LeaseAccount, change: BilledChange, was: LeaseFacts, became: LeaseFacts, lists: Sequence[PriceList]
) -> Closing:
    """Return the account of a lease that is changed, and what is charged for what is given back by that."""
    lines: tuple[ChargeLine, ...] = ()
    has_fee = account.has_fee
    at = change.given_back_at
    starts_at = account.parts[0].since
    # Of what was to be handed over and was not, nobody gives anything back.
    if at is not None and (to_second(at) < starts_at or was.is_handed_over):
        terms = _terms_of(account, was)
        live = _list_live(became)
        since = to_second(change.at)
        had = _list_live(was)
        given_back = list_given_back(had, live, lists, whole=was.uses, since=since, at=to_second(at))
        lines = rate(_limit_uses(given_back, max(since, starts_at)), lists, terms)
        if has_fee and not live and not (became.uses and was.is_handed_over):
            # Of one that is deleted in the second in which it starts nothing but the fee is left to charge.
            returned_at = None if was.is_handed_over else to_second(at)
            fee = rate_fee(lists, terms, given_back_at=returned_at)
            lines = lines if fee is None else (fee, *lines)
            has_fee = False
    # One that is released for want of use ends now, and gives back what it had a moment later: by the terms of that.
    still_has = was.uses == became.uses and change.after.end < change.before.end
    redated = account if still_has else account.redate(change.before, change.after, change.at)
    return _charge(fit_account(replace(redated, has_fee=has_fee), became), lines)


def _charge(account: LeaseAccount, lines: tuple[ChargeLine, ...]) -> Closing:
    return Closing(account.charge(lines), lines)


def fit_account(account: LeaseAccount, facts: LeaseFacts) -> LeaseAccount:
    """Return an account until the end of all that its lease has; closed if there is nothing left to charge."""
    ends = [use.window.end for use in facts.uses if use.window.end > account.closed_until]
    if not ends:
        return replace(account, booked_until=account.closed_until, state=AccountState.CLOSED)
    end = max(ends)
    if account.booked_until == end and account.state is AccountState.OPEN:
        return account
    return replace(account, booked_until=end, state=AccountState.OPEN)


def _limit_uses(uses: Iterable[PricedUse], start: datetime) -> Iterator[PricedUse]:
    """Yield what of uses is in the time for which there are quotes: who gives for ever back pays no share of that."""
    last = later(start, LONGEST)
    for use in uses:
        if use.window.end <= last:
            yield use
        elif use.window.start < last:
            yield replace(use, window=Window(use.window.start, last), rounded_from=None)


def _list_live(facts: LeaseFacts) -> list[BookedUse]:
    return [use for use in facts.uses if use.is_live]


def _terms_of(account: LeaseAccount, facts: LeaseFacts) -> ChargeTerms:
    return ChargeTerms(account.project_id, account.parts, facts.unused, account.joined)
