# SPDX-License-Identifier: Apache-2.0
"""Statements: what a project is charged in a month, by what, and how the total was rounded. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from enum import StrEnum

from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput, pointer_to
from blazar.model.base.paging import Page, Position
from blazar.model.base.values import dataclass, replace
from blazar.model.billing.charges import (
    Charge,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    adjust_total,
    window_of_month,
)
from blazar.model.billing.prices import show_exactly

SETTLED = timedelta(minutes=5)
"""How long after its end a month is final at the earliest: what was had in it is charged a minute after."""


class StatementState(StrEnum):
    """Whether charges may still be added: until all that was had in the month is charged a statement is open."""

    OPEN = "open"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class StatementTotal:
    """The sum of the charges of a category, a status and a sku; ``count`` is how many there are.

    ``wh`` and ``gco2`` are watt-hours and grams of CO2e; None where nothing tells them.
    """

    category: ChargeCategory
    status: ChargeStatus
    sku: str | None
    count: int
    resource_seconds: int
    nano: int
    wh: int | None = None
    gco2: int | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """What a project is charged in a month, of which this is the first day; amounts as ``currency`` writes them.

    ``last_id`` is the highest id of its charges: those after it were made since. ``provider`` is who is to be paid.
    """

    project_id: str
    month: date
    state: StatementState
    currency: str
    decimals: int
    totals: tuple[StatementTotal, ...]
    last_id: int
    provider: str

    @property
    def id(self) -> str:
        """Return its name, which is the number of an invoice, too."""
        return f"{spell_month(self.month)}/{self.project_id}"

    @property
    def exact_nano(self) -> int:
        """Return the sum of all charges."""
        return sum(total.nano for total in self.totals)

    @property
    def wh(self) -> int | None:
        """Return the watt-hours of all that was had; None if nothing is known of them."""
        return _add_up(total.wh for total in self.totals)

    @property
    def gco2(self) -> int | None:
        """Return the grams of CO2e of all that was had; None if nothing is known of them."""
        return _add_up(total.gco2 for total in self.totals)

    @property
    def rounding(self) -> ChargeLine | None:
        """Return the line that rounds the sum; None if nothing is to be rounded."""
        return adjust_total(self.exact_nano, self.month, self.decimals)

    @property
    def nano(self) -> int:
        """Return what is to be paid: the sum, rounded to the decimals of the currency."""
        return self.exact_nano + (0 if (line := self.rounding) is None else line.nano)


def _add_up(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def sum_charges(charges: Iterable[Charge]) -> tuple[StatementTotal, ...]:
    """Return the totals of charges, in the order of their categories, status and skus."""
    found: dict[tuple[ChargeCategory, ChargeStatus, str | None], list[ChargeLine]] = {}
    for charge in charges:
        line = charge.line
        found.setdefault((line.category, line.status, line.sku), []).append(line)
    return sort_totals(_sum_lines(*key, lines) for key, lines in found.items())


def _sum_lines(
    category: ChargeCategory, status: ChargeStatus, sku: str | None, lines: Sequence[ChargeLine]
) -> StatementTotal:
    energies = [line.energy for line in lines if line.energy is not None]
    return StatementTotal(
        *(category, status, sku, len(lines)),
        sum(line.resource_seconds for line in lines),
        sum(line.nano for line in lines),
        _add_up(one.wh for one in energies),
        _add_up(one.gco2 for one in energies),
    )


def sort_totals(totals: Iterable[StatementTotal]) -> tuple[StatementTotal, ...]:
    """Return totals in the order in which a statement shows them."""
    categories = list(ChargeCategory)
    return tuple(sorted(totals, key=lambda one: (categories.index(one.category), one.status, one.sku or "")))


def spell_month(month: date) -> str:
    """Return a month as it is written, such as ``2030-04``."""
    return f"{month:%Y-%m}"


def parse_month(text: str) -> date | None:
    """Return the first day of a month that is written as ``2030-04``; None if it is none."""
    if len(text) != 7 or not text.isascii():
        return None
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class CorrectionRequest:
    """What an operator answers to a charge that was wrong: ``nano`` are added to what the project has to pay."""

    charge_id: int
    nano: int
    reason: str


@dataclass(frozen=True, slots=True)
class MadeCharge:
    """A charge that an operator has made; ``replayed``: it was made before, by the same request."""

    charge: Charge
    replayed: bool = False


def check_correction(corrected: Charge, request: CorrectionRequest) -> None:
    """Raise InvalidInput if a charge cannot be corrected like this."""
    if corrected.line.category is ChargeCategory.CORRECTION:
        raise InvalidInput(
            f"corrects is {corrected.id}, which is a correction of {corrected.corrects}; give that one instead",
            code="invalid_value",
            at=pointer_to(("corrects",)),
        )
    if corrected.line.is_only_told:
        raise InvalidInput(
            f"corrects is {corrected.id}, which tells energy and costs nothing; give a charge of usage or of a fee",
            code="invalid_value",
            at=pointer_to(("corrects",)),
        )
    if request.nano == 0:
        raise InvalidInput(
            "amount is 0, which corrects nothing; give what is to be added, or a credit below 0",
            at=pointer_to(("amount",)),
        )


def draft_correction(corrected: Charge, request: CorrectionRequest, *, now: datetime) -> Charge:
    """Return the charge that answers another one, in the statement of the month in which it is made; it has no id yet.

    InvalidInput if that one cannot be corrected like this.
    """
    check_correction(corrected, request)
    line = ChargeLine(
        corrected.line.window,
        ChargeCategory.CORRECTION,
        ChargeStatus.USED,
        request.nano,
        corrected.line.reservation_id,
        corrected.line.sku,
    )
    return replace(
        corrected,
        id=0,
        stated_in=now.date().replace(day=1),
        line=line,
        at=to_second(now),
        corrects=corrected.id,
        reason=request.reason,
    )


def check_given_back(correction: Charge, of_lease: int) -> None:
    """Raise InvalidInput if a correction gives more back than the project was charged for the lease in all."""
    nano, amount, currency = correction.line.nano, show_exactly(correction.line.nano, 0), correction.currency
    if nano < 0 and of_lease + nano < 0:
        raise InvalidInput(
            f"amount is {amount}, which gives more back than project {correction.project_id} was charged for lease "
            f"{correction.lease_id} in all, corrections included: that is {show_exactly(max(of_lease, 0), 0)} "
            f"{currency}; give at most that back",
            at=pointer_to(("amount",)),
        )


@dataclass(frozen=True, slots=True)
class MonthCharges:
    """The sums of the charges of a project in a month; from ``planned_from`` on more is to come, None: nothing is."""

    project_id: str
    month: date
    currency: str
    totals: tuple[StatementTotal, ...]
    last_id: int
    planned_from: date | None = None

    def make_statement(self, decimals: int, provider: str, *, now: datetime) -> Statement:
        """Return the statement: final once the month is over, and all of it is charged."""
        end = window_of_month(self.month).end
        is_open = now < end + SETTLED or (self.planned_from is not None and self.planned_from <= self.month)
        state = StatementState.OPEN if is_open else StatementState.FINAL
        head = (self.project_id, self.month, state, self.currency, decimals)
        return Statement(*head, self.totals, self.last_id, provider)


@dataclass(frozen=True, slots=True)
class StatementQuestion:
    """Which statements are wanted: those of a project, or of all (None)."""

    page: Page
    project_id: str | None = None


@dataclass(frozen=True, slots=True)
class MonthPage:
    """A page of the sums of months; ``following`` is the place of the last one, None if no page follows."""

    items: tuple[MonthCharges, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class StatementPage:
    """A page of statements; ``following`` is the place of the last one, None if no page follows."""

    items: tuple[Statement, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class ChargeQuestion:
    """Which charges are wanted: of a project (None: of all), a lease, a month, a category, up to the id ``last_id``."""

    page: Page
    project_id: str | None = None
    lease_id: str | None = None
    month: date | None = None
    category: ChargeCategory | None = None
    last_id: int | None = None


@dataclass(frozen=True, slots=True)
class ChargePage:
    """Charges in the order of their ids; ``following`` is the position of the last one, None if no page follows."""

    items: tuple[Charge, ...]
    following: Position | None = None
    count: int | None = None
