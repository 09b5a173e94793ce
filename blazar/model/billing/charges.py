# SPDX-License-Identifier: Apache-2.0
"""Lines of what a lease is charged: exact sums of time, rounded once. Pure.

Amounts of money are integers of 10⁻⁹ of the currency, ``nano``. Factors are fractions, which lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache

from blazar.model.base.values import dataclass
from blazar.model.base.window import Window
from blazar.model.energy.consumption import EnergySource

NANO = 10**9
"""Of the smallest amounts in one of the currency."""
DECIMALS = 9
MOST_NANO = 2**63 - 1
"""The most that databases keep in a column, and add up to."""


class ChargeCategory(StrEnum):
    """What a line is charged for."""

    USAGE = "usage"
    FEE = "fee"
    ROUNDING_UP = "rounding_up"
    EARLY_RETURN = "early_return"
    CANCELLATION = "cancellation"
    FREE = "free"
    """Time that is not charged, so that one sees it."""
    ADJUSTMENT = "adjustment"
    """The difference of a total to the decimals of its currency."""
    CORRECTION = "correction"
    """What an operator has charged, or given back, because another charge was wrong."""
    ENERGY = "energy"
    """What hosts drew and emitted for a reservation. It costs something where the price list has a price for it."""


class ChargeStatus(StrEnum):
    """What became of the time of a line. The time of lines that are ``free`` was late, lost or unpriced."""

    USED = "used"
    UNUSED = "unused"
    LATE = "late"
    LOST = "lost"
    UNPRICED = "unpriced"


class CarbonState(StrEnum):
    """Whether what energy emitted is known.

    ``ESTIMATED``: of some hours by the mean of that hour in the days before; ``PARTIAL``: nothing is known of some.
    """

    KNOWN = "known"
    ESTIMATED = "estimated"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class LineEnergy:
    """What hosts drew in watt-hours, how that is known, and grams of CO2e; None where the site tells no carbon."""

    wh: int
    source: EnergySource
    gco2: int | None = None
    carbon: CarbonState | None = None


@dataclass(frozen=True, slots=True)
class ChargeLine:
    """An amount of money, and how it came about.

    The amount is ``unit_nano``, the price of an hour, times ``factor`` times the hours of ``resource_seconds``; of a
    fee it is the price of a lease times the factor. A line that is free has the price that it would have had, and the
    amount 0. All its time lies in ``window``, which lies in a month of UTC, and is of one ``version`` of price lists,
    or of none. ``energy`` is what a line of that category tells; its ``resource_seconds`` are those of hosts of
    which something is known, by the shares that the reservation had, and ``unit_nano`` is the price of a
    kilowatt-hour: it has a sku only if there is one.
    """

    window: Window
    category: ChargeCategory
    status: ChargeStatus
    nano: int
    reservation_id: str | None = None
    sku: str | None = None
    version: int | None = None
    unit_nano: int = 0
    factor: Fraction = Fraction(1)
    resource_seconds: int = 0
    energy: LineEnergy | None = None

    @property
    def month(self) -> date:
        """Return the first day of its month."""
        return self.window.start.date().replace(day=1)

    @property
    def is_only_told(self) -> bool:
        """Return whether it tells an energy that has no price."""
        return self.category is ChargeCategory.ENERGY and self.sku is None


@dataclass(frozen=True, slots=True)
class Charge:
    """A line of the ledger: what a project is charged for a lease. It is never changed.

    ``region`` is that of the reservation, empty where there is none. A correction names the charge that it
    ``corrects``, and its ``reason``; it is in the statement of the month in which it was made: ``stated_in``.
    ``lease_name`` is known as long as the lease is, and belongs to the project.
    """

    id: int
    lease_id: str
    project_id: str
    user_id: str
    line: ChargeLine
    currency: str
    at: datetime
    region: str = ""
    corrects: int | None = None
    reason: str | None = None
    stated_in: date | None = None
    lease_name: str | None = None

    @property
    def month(self) -> date:
        """Return the first day of the month whose statement has it."""
        return self.stated_in or self.line.month


WHOLE, NOTHING = Fraction(1), Fraction(0)
"""The factor, or the share, that changes nothing; and the share of which nothing is left."""


def multiply(factor: Fraction, other: Fraction) -> Fraction:
    """Return the product of two factors, most of which are ``WHOLE``: to multiply fractions takes time."""
    if other is WHOLE:
        return factor
    return other if factor is WHOLE else factor * other


def price_seconds(unit_nano: int, factor: Fraction, resource_seconds: int) -> int:
    """Return what resource-seconds cost at a price of an hour, rounded half to even."""
    # Products of whole numbers, as that of two fractions costs ten times as much.
    over, under = factor.as_integer_ratio()
    return divide_half_even(unit_nano * resource_seconds * over, 3600 * under)


def price_energy(unit_nano: int, factor: Fraction, wh: int) -> int:
    """Return what watt-hours cost at a price of a kilowatt-hour, rounded half to even; at most ``MOST_NANO``.

    What hosts will have drawn is not known as a lease is booked. Were a line refused that costs more than a ledger can
    keep, its account would stay open for ever.
    """
    return min(divide_half_even(unit_nano * wh * factor.numerator, 1000 * factor.denominator), MOST_NANO)


def take_share(nano: int, share: Fraction) -> int:
    """Return a share of an amount, rounded half to even."""
    over, under = share.as_integer_ratio()
    return divide_half_even(nano * over, under)


def divide_half_even(number: int, by: int) -> int:
    """Return a quotient as ``round`` of the fraction, in a fifth of its time; ``by`` is positive."""
    whole, rest = divmod(number, by)
    return whole + (2 * rest > by or (2 * rest == by and whole % 2))


def sum_lines(lines: Sequence[ChargeLine]) -> int:
    """Return the sum of amounts, not rounded."""
    return sum(line.nano for line in lines)


def adjust(lines: Sequence[ChargeLine], month: date, decimals: int) -> ChargeLine | None:
    """Return the line that makes the sum of the lines of a month one of so many decimals, rounded half to even.

    None if it is one already.
    """
    return adjust_total(sum_lines(lines), month, decimals)


def adjust_total(total: int, month: date, decimals: int) -> ChargeLine | None:
    """Return the line that makes a sum of a month one of so many decimals, as ``adjust`` does."""
    unit = 10 ** (DECIMALS - decimals)
    if not (missing := round(Fraction(total, unit)) * unit - total):
        return None
    return ChargeLine(window_of_month(month), ChargeCategory.ADJUSTMENT, ChargeStatus.USED, missing)


@lru_cache(maxsize=1024)
def window_of_month(month: date) -> Window:
    """Return the window of a month, in UTC; that of the last one there is ends with its last second."""
    begin = datetime(month.year, month.month, 1, tzinfo=UTC)
    if (month.year, month.month) == (9999, 12):
        return Window(begin, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))
    return Window(begin, datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC))


def split_months(span: Window) -> Iterator[Window]:
    """Yield what of a span is in each month, in UTC."""
    start = span.start
    while start < span.end:
        end = min(span.end, window_of_month(start.date()).end)
        yield Window(start, end)
        start = end


def format_nano(nano: int, decimals: int = DECIMALS) -> str:
    """Return an amount as it is written, such as ``-0.25``; the sum must be one of so many decimals."""
    sign, (whole, rest) = "-" if nano < 0 else "", divmod(abs(nano), NANO)
    digits = f"{rest:09}"[:decimals]
    return f"{sign}{whole}.{digits}" if digits else f"{sign}{whole}"


def format_factor(factor: Fraction) -> str:
    """Return a product of decimal factors as a decimal number, exactly."""
    digits = 0
    while (factor * 10**digits).denominator != 1:
        digits += 1
    whole, rest = divmod(int(factor * 10**digits), 10**digits)
    return f"{whole}.{rest:0{digits}}" if digits else str(whole)
