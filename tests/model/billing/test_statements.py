# SPDX-License-Identifier: Apache-2.0
"""Statements: totals of a month, its rounding, and what a correction may be."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.billing.charges import ChargeCategory, ChargeLine, ChargeStatus, format_nano
from blazar.model.billing.statements import (
    CorrectionRequest,
    StatementTotal,
    check_correction,
    parse_month,
    spell_month,
    sum_charges,
)
from tests.model.billing.builders import APRIL, a_charge, a_correction, a_statement

DAY = Window(datetime(2030, 4, 2, tzinfo=UTC), datetime(2030, 4, 3, tzinfo=UTC))


def a_line(nano: int, sku: str | None = "host", seconds: int = 3600, **changes: ChargeStatus) -> ChargeLine:
    return ChargeLine(
        DAY, ChargeCategory.USAGE, changes.get("status", ChargeStatus.USED), nano, "r", sku, 1, 1, 1, seconds
    )


def test_a_statement_adds_up_what_has_the_same_category_status_and_sku():
    lines = [a_line(5), a_line(7), a_line(1, "vcpu"), a_line(2, status=ChargeStatus.UNUSED)]
    totals = sum_charges(a_charge(line, number) for number, line in enumerate(lines))
    assert totals == (
        StatementTotal(ChargeCategory.USAGE, ChargeStatus.UNUSED, "host", 1, 3600, 2),
        StatementTotal(ChargeCategory.USAGE, ChargeStatus.USED, "host", 2, 7200, 12),
        StatementTotal(ChargeCategory.USAGE, ChargeStatus.USED, "vcpu", 1, 3600, 1),
    )


@pytest.mark.parametrize(
    ("nano", "decimals", "amount"),
    [
        (1_005_000_000, 2, "1.00"),
        (1_015_000_000, 2, "1.02"),
        (1_005_000_001, 2, "1.01"),
        (-1_005_000_001, 2, "-1.01"),
        (500_000_000, 0, "0"),
        (1_500_000_000, 0, "2"),
        (123, 9, "0.000000123"),
        (0, 2, "0.00"),
    ],
)
def test_the_sum_is_rounded_once_to_the_decimals_of_the_currency_and_the_difference_is_a_line(nano, decimals, amount):
    statement = a_statement([a_charge(a_line(nano))], decimals=decimals)
    assert format_nano(statement.nano, decimals) == amount
    rounding = 0 if statement.rounding is None else statement.rounding.nano
    assert statement.exact_nano + rounding == statement.nano


def test_a_correction_counts_in_the_month_in_which_it_was_made():
    charges = [a_charge(a_line(5_000_000_000)), a_correction(-1_500_000_000)]
    assert a_statement(charges).nano == 3_500_000_000
    assert a_statement(charges).id == "2030-04/p"


@pytest.mark.parametrize("text", ["2030-13", "2030-4", "2030-04-01", "", "abcd-ef", "２０30-04", "2030_04", "0000-01"])
def test_what_is_no_month_is_none(text):
    assert parse_month(text) is None


def test_a_month_is_read_as_it_is_written():
    assert parse_month("2030-04") == APRIL == date(2030, 4, 1)
    assert spell_month(APRIL) == "2030-04"


def test_a_correction_corrects_a_charge_by_some_amount():
    charge = a_charge(a_line(5))
    check_correction(charge, CorrectionRequest(1, -5, "late"))
    with pytest.raises(InvalidInput, match="amount is 0"):
        check_correction(charge, CorrectionRequest(1, 0, "late"))
    with pytest.raises(InvalidInput, match="a correction of 1"):
        check_correction(a_correction(5), CorrectionRequest(9, -5, "late"))
