# SPDX-License-Identifier: Apache-2.0
"""Lines of what a lease is charged: exact sums of time, rounded once. Pure.

Amounts of money are integers of 10⁻⁹ of the currency, ``nano``. Factors are fractions, which lose nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from fractions import Fraction

from blazar.model.base.window import Window

NANO = 10**9
"""Of the smallest amounts in one of the currency."""
DECIMALS = 9


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


class ChargeStatus(StrEnum):
    """What became of the time of a line. The time of lines that are ``free`` was late, lost or unpriced."""

    USED = "used"
    UNUSED = "unused"
    LATE = "late"
    LOST = "lost"
    UNPRICED = "unpriced"


@dataclass(frozen=True, slots=True)
class ChargeLine:
    """An amount of money, and how it came about.

    The amount is ``unit_nano``, the price of an hour, times ``factor`` times the hours of ``resource_seconds``; of a
    fee it is the price of a lease times the factor. A line that is free has the price that it would have had, and the
    amount 0. All its time lies in ``window``, which lies in a month of UTC, and is of one ``version`` of price lists,
    or of none.
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

    @property
    def month(self) -> date:
        """Return the first day of its month."""
        return self.window.start.date().replace(day=1)


def price_seconds(unit_nano: int, factor: Fraction, resource_seconds: int) -> int:
    """Return what resource-seconds cost at a price of an hour, rounded half to even."""
    return round(Fraction(unit_nano * resource_seconds, 3600) * factor)


def sum_lines(lines: Sequence[ChargeLine]) -> int:
    """Return the sum of amounts, not rounded."""
    return sum(line.nano for line in lines)


def adjust(lines: Sequence[ChargeLine], month: date, decimals: int) -> ChargeLine | None:
    """Return the line that makes the sum of the lines of a month one of so many decimals, rounded half to even.

    None if it is one already.
    """
    total, unit = sum_lines(lines), 10 ** (DECIMALS - decimals)
    if not (missing := round(Fraction(total, unit)) * unit - total):
        return None
    begin = datetime(month.year, month.month, 1, tzinfo=UTC)
    last = datetime(month.year + month.month // 12, month.month % 12 + 1, 1, tzinfo=UTC)
    return ChargeLine(Window(begin, last), ChargeCategory.ADJUSTMENT, ChargeStatus.USED, missing)
