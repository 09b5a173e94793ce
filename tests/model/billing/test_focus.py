# SPDX-License-Identifier: Apache-2.0
"""Bills in the format FOCUS: each row as the standard wants it, and their sum that of the statement."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.model.base.window import Window
from blazar.model.billing.charges import (
    CarbonState,
    Charge,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    LineEnergy,
    format_nano,
    price_energy,
)
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.rating import PricedUse, rate, rate_fee
from blazar.model.energy.consumption import EnergySource
from tests.cases import cases
from tests.model.billing.builders import APRIL, a_charge, a_correction, a_statement, write_bill
from tests.model.billing.focus_check import check_bill
from tests.model.billing.test_rating import WORKING_HOURS, a_list, a_use, booked, utc, window

MONTH = window("2030-04-01T00:00", "2030-05-01T00:00")
PROJECT = [{"project_id": "p", "factor": "0.8"}]


def bill(lines: Sequence[ChargeLine | None], lists: Sequence[PriceList], *more: Charge, **changes: Any) -> str:
    """Return the checked bill of April of these lines."""
    charges = [
        a_charge(line, number) for number, line in enumerate(lines, 1) if line is not None and line.month == APRIL
    ]
    charges = [replace(charge, currency=changes.get("currency", "EUR")) for charge in (*charges, *more)]
    statement = a_statement(charges, **changes)
    text = write_bill(statement, charges, lists)
    amount = format_nano(statement.nano, statement.decimals)
    check_bill(text, amount=amount, currency=statement.currency)
    return text


def some_lines(prices: PriceList, **changes: Any) -> list[ChargeLine | None]:
    """Return the lines of a lease with all that can happen to one."""
    terms = booked("2030-04-02T08:00", unused=(window("2030-04-03T00:00", "2030-04-04T00:00"),))
    use = a_use("2030-04-02T08:00", "2030-04-08T08:20", amount=3, sku="host-a100", **changes)
    late = replace(use, reservation_id="late", handed_over_at=utc("2030-04-02T09:00"))
    back = replace(use, reservation_id="back", given_back_at=utc("2030-04-05T00:00"))
    cancelled = replace(use, reservation_id="gone", given_back_at=utc("2030-04-01T00:00"))
    rounded = replace(use, reservation_id="rounded", rounded_from=use.window.start)
    fee = rate_fee([prices], terms)
    return [*rate([use, late, back, cancelled, rounded], [prices], terms), fee]


def test_a_bill_of_all_that_can_happen_to_a_lease_is_as_the_standard_wants_it():
    prices = a_list(
        hours=[WORKING_HOURS], projects=PROJECT, cancellation=[{"share": "0.25"}], early_return="0.5", round_up="PT1H"
    )
    lines = some_lines(prices)
    text = bill(lines, [prices], a_correction(-7_100_000_001), a_correction(3, id=10, of=APRIL))
    rows = check_bill(text, amount=text_amount(text), currency="EUR")
    assert {row["ChargeCategory"] for row in rows} == {"Usage", "Credit", "Adjustment"}
    assert [row["ChargeClass"] for row in rows if row["ChargeCategory"] != "Usage"] == ["Correction", "", ""]
    assert {row["CapacityReservationStatus"] for row in rows} == {"Used", "Unused", ""}
    assert {row["SkuId"] for row in rows} == {"host-a100", "lease-fee", ""}
    # What was free is not in it, and the discount of the project is: 0.8 of the price of the list.
    assert len(rows) == sum(line is not None and line.category != "free" for line in lines) + 3
    hours = [row for row in rows if row["SkuId"] == "host-a100"]
    assert {row["ListUnitPrice"] for row in hours} >= {"3.2", "4.0"}
    assert {row["ContractedUnitPrice"] for row in hours} >= {"2.56", "3.2"}
    assert {row["SkuPriceId"] for row in hours} >= {"host-a100/1/1", "host-a100/1/1.25"}


def an_energy(**more: Any) -> ChargeLine:
    head = (window("2030-04-02T08:00", "2030-04-02T10:30"), ChargeCategory.ENERGY, ChargeStatus.USED, 0, "r")
    told = LineEnergy(**{"wh": 2250, "source": EnergySource.MIXED, "gco2": 700, "carbon": CarbonState.KNOWN, **more})
    return ChargeLine(*head, resource_seconds=9000, energy=told)


@pytest.mark.parametrize("gco2", [700, None])
def test_energy_has_a_row_that_costs_nothing(gco2):
    lines = some_lines(a_list())
    text, without = bill([*lines, an_energy(gco2=gco2)], [a_list()]), bill(lines, [a_list()])
    rows = check_bill(text, amount=text_amount(without), currency="EUR")
    (row,) = [row for row in rows if row["SkuId"] == "energy"]
    assert (row["x_EnergyWh"], row["x_EnergySource"], row["x_CarbonGrams"]) == ("2250", "mixed", str(gco2 or ""))
    assert (Decimal(row["BilledCost"]), row["ConsumedQuantity"], row["ConsumedUnit"]) == (0, "2.5", "Hours")
    assert row["ChargeDescription"] == "2.25 kWh in 2.5 hours of hosts, free"


POWER = {"sku": "power", "measure": "kwh", "per_kwh": "0.301234"}


def a_priced_energy(prices: PriceList, wh: int = 2250) -> ChargeLine:
    factor = prices.find_energy_factor("p")
    nano = price_energy(prices.prices[-1].unit_nano, factor, wh)
    told = {"sku": "power", "version": 1, "unit_nano": prices.prices[-1].unit_nano, "factor": factor, "nano": nano}
    return replace(an_energy(wh=wh), **told)


def test_energy_that_has_a_price_is_billed_by_the_kilowatt_hour():
    prices = a_list(prices=[POWER], pue="1.5", projects=PROJECT)
    text = bill([a_priced_energy(prices)], [prices], decimals=9)
    (row,) = check_bill(text, amount="0.81333180", currency="EUR")
    assert (row["SkuId"], row["SkuMeter"], row["SkuPriceId"]) == ("power", "Energy", "power/1/1.5")
    assert (row["PricingQuantity"], row["PricingUnit"], row["ConsumedUnit"]) == ("2.25", "kWh", "kWh")
    # The price of the list, and that of the project, times what the site adds.
    assert (row["ListUnitPrice"], row["ContractedUnitPrice"]) == ("0.451851", "0.3614808")
    assert (row["x_EnergyWh"], row["x_EnergySource"], row["x_CarbonGrams"]) == ("2250", "mixed", "700")
    assert row["ChargeDescription"] == "2.25 kWh of power, mixed, factor 1.2"


def text_amount(text: str) -> str:
    """Return the sum of what is billed, by the text alone."""
    head, *rows = text.splitlines()
    assert head.startswith("BilledCost,")
    return str(sum(Decimal(row.partition(",")[0]) for row in rows))


@pytest.mark.parametrize(("currency", "code"), [("CHF", "CHF"), ("SU", "XXX"), ("CREDITS", "XXX")])
def test_credits_of_a_site_are_no_currency(currency, code):
    prices = a_list(currency=currency)
    text = bill(some_lines(prices), [prices], currency=currency)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {(row["BillingCurrency"], row["x_Currency"]) for row in rows} == {(code, currency)}


def test_a_bill_of_what_no_list_knows_any_more_has_all_rows():
    prices = a_list()
    assert bill(some_lines(prices), []).count("\r\n") == bill(some_lines(prices), [prices]).count("\r\n")


def test_a_text_of_a_user_that_is_like_csv_stays_one_cell():
    prices = a_list()
    charges = [a_charge(rate_fee([prices], booked("2030-04-02T08:00")), lease_name='a,"b"\r\nc')]  # type: ignore[arg-type]
    (row,) = check_bill(write_bill(a_statement(charges), charges, [prices]), amount="5", currency="EUR")
    assert row["ResourceName"] == 'a,"b"\r\nc'


amounts = st.integers(1, 999_999_999).map(lambda n: f"{n // 10**6}.{n % 10**6:06}")


@settings(max_examples=cases(300))
@given(amounts, amounts, amounts, st.integers(1, 2_000), st.integers(1, 2_000_000), st.integers(0, 9))
def test_products_and_sums_come_out_for_all_prices(price, factor, discount, amount, seconds, decimals):
    prices = a_list(
        prices=[{"sku": "host", "measure": "host", "per_hour": price}],
        hours=[{**WORKING_HOURS, "factor": factor}],
        projects=[{"project_id": "p", "factor": discount}],
        decimals=decimals,
    )
    use = PricedUse(
        reservation_id="r",
        sku="host",
        amount=amount,
        booked_amount=amount,
        window=Window(MONTH.start, MONTH.start + timedelta(seconds=seconds)),
    )
    bill(rate([use], [prices], booked("2030-04-01T00:00")), [prices], decimals=decimals)


@settings(max_examples=cases(300))
@given(amounts, amounts, amounts, st.integers(0, 10**9), st.integers(0, 9))
def test_products_and_sums_come_out_for_all_prices_of_energy(price, pue, discount, wh, decimals):
    prices = a_list(
        prices=[{**POWER, "per_kwh": price}],
        pue=f"1{pue[-7:]}",
        projects=[{"project_id": "p", "factor": discount[-10:]}],
        decimals=decimals,
    )
    bill([a_priced_energy(prices, wh)], [prices], decimals=decimals)
