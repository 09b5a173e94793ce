# SPDX-License-Identifier: Apache-2.0
"""Charges and statements for tests, of lines that the rating has found."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

from blazar.model.base.window import Window
from blazar.model.billing.charges import Charge, ChargeCategory, ChargeLine, ChargeStatus, window_of_month
from blazar.model.billing.focus import COLUMNS, Cell, Issuer, list_rows
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.statements import Statement, StatementState, sum_charges

MARCH, APRIL = date(2030, 3, 1), date(2030, 4, 1)
ISSUER = Issuer("Cloud of Bern", "domain:default", "Default")


def a_charge(line: ChargeLine, id: int = 1, **changes: Any) -> Charge:
    usual = Charge(
        id=id,
        lease_id="5f0c8f5e-3a52-4d1f-9a55-6f0f3c1f7b1d",
        project_id="p",
        user_id="u",
        line=line,
        currency="EUR",
        at=datetime(2030, 5, 1, tzinfo=UTC),
        lease_name="training",
        region="bern",
    )
    return replace(usual, **changes)


def a_correction(nano: int, id: int = 9, corrects: int = 1, of: date = MARCH, **changes: Any) -> Charge:
    begin = window_of_month(of).start
    line = ChargeLine(
        Window(begin, begin.replace(day=2)), ChargeCategory.CORRECTION, ChargeStatus.USED, nano, "r", "host"
    )
    return a_charge(line, id, corrects=corrects, reason="the host was slow", stated_in=APRIL, **changes)


def a_statement(charges: Sequence[Charge], month: date = APRIL, **changes: Any) -> Statement:
    usual = Statement("p", month, StatementState.FINAL, "EUR", 2, sum_charges(charges), 99, ISSUER.name)
    return replace(usual, **changes)


def write_bill(statement: Statement, charges: Iterable[Charge], lists: Sequence[PriceList]) -> str:
    """Return a bill as CSV, as the service writes it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    rows = list_rows(statement, charges, lists, ISSUER, _spell)
    writer.writerows([row[name] for name in COLUMNS] for row in rows)
    return text.getvalue()


def _spell(cell: Cell) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else f"{cell:f}"
