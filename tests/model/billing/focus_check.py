# SPDX-License-Identifier: Apache-2.0
"""A strict check of a FOCUS bill, written from the standard alone: what it lets pass is a bill that anybody can read.

The public validator lets much through: wrong products, words that it does not know, dates with an offset. So this
looks at each cell: is it there where it has to be, of its type, one of the allowed words; and do products and sums
come out to the ninth decimal.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction

DATE = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z")
NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?")
NANO = Fraction(1, 10**9)

TEXTS = {
    *("BillingAccountId", "BillingAccountName", "BillingCurrency", "ChargeCategory", "ChargeDescription"),
    *("ChargeFrequency", "HostProviderName", "InvoiceId", "InvoiceIssuerName", "PricingCategory", "ProviderName"),
    *("PublisherName", "ServiceCategory", "ServiceName", "ServiceProviderName", "ServiceSubcategory"),
    *("SubAccountId", "SubAccountName", "Tags", "x_Currency"),
}
"""Texts that each row has."""
TEXTS_OR_NONE = {
    *("CapacityReservationId", "CapacityReservationStatus", "ChargeClass", "ConsumedUnit", "PricingUnit", "RegionId"),
    *("RegionName", "ResourceId", "ResourceName", "ResourceType", "SkuId", "SkuMeter", "SkuPriceDetails"),
    *("SkuPriceId", "x_EnergySource"),
}
DATES = {"BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"}
COSTS = {"BilledCost", "ContractedCost", "EffectiveCost", "ListCost"}
QUANTITIES = {"ConsumedQuantity", "PricingQuantity", "ContractedUnitPrice", "ListUnitPrice"}
ENERGY = {"x_CarbonGrams", "x_EnergyWh"}
ALL = TEXTS | TEXTS_OR_NONE | DATES | COSTS | QUANTITIES | ENERGY

WORDS = {
    "ChargeCategory": {"Usage", "Credit", "Adjustment"},
    "ChargeClass": {"", "Correction"},
    "ChargeFrequency": {"One-Time", "Usage-Based"},
    "CapacityReservationStatus": {"", "Used", "Unused"},
    "PricingCategory": {"Standard"},
    "PricingUnit": {"", "Hours", "Leases", "kWh"},
    "ConsumedUnit": {"", "Hours", "Leases", "kWh"},
    "ServiceCategory": {"Compute", "Networking", "Storage", "Other"},
    "x_EnergySource": {"", "measured", "rated", "mixed"},
}
PARENTS = {
    "Virtual Machines": "Compute",
    "Other (Compute)": "Compute",
    "Network Infrastructure": "Networking",
    "Block Storage": "Storage",
    "Other (Other)": "Other",
}
PAIRS = (
    ("PricingQuantity", "PricingUnit"),
    ("ConsumedQuantity", "ConsumedUnit"),
    ("ResourceId", "ResourceType"),
    ("RegionId", "RegionName"),
    ("SkuId", "SkuMeter"),
    ("SkuPriceId", "SkuPriceDetails"),
    ("CapacityReservationId", "CapacityReservationStatus"),
    ("x_EnergyWh", "x_EnergySource"),
)
"""Columns of which a row has both or none."""


def check_bill(text: str, *, amount: str, currency: str) -> list[Mapping[str, str]]:
    """Return the rows of a bill in CSV whose amount is this; AssertionError says what is wrong with which row."""
    reader = csv.DictReader(io.StringIO(text), strict=True)
    assert reader.fieldnames is not None
    assert set(reader.fieldnames) == ALL, set(reader.fieldnames) ^ ALL
    assert list(reader.fieldnames) == sorted(reader.fieldnames)
    rows = list(reader)
    skus: dict[str, str] = {}
    for number, row in enumerate(rows, 1):
        assert None not in {*row, *row.values()}, f"row {number} has another number of cells than the head"
        try:
            _check_cells(row, currency)
            _check_rules(row)
            _check_products(row)
        except AssertionError as error:
            raise AssertionError(f"row {number}: {error}; {row}") from error
        if row["SkuPriceId"]:
            assert skus.setdefault(row["SkuPriceId"], row["SkuId"]) == row["SkuId"], row["SkuPriceId"]
    assert len({row["InvoiceId"] for row in rows}) <= 1
    assert sum((Decimal(row["BilledCost"]) for row in rows), Decimal(0)) == Decimal(amount)
    return rows


def _check_cells(row: Mapping[str, str], currency: str) -> None:
    for name in TEXTS | DATES | COSTS:
        assert row[name].strip(), f"{name} is empty"
    for name in DATES:
        assert DATE.fullmatch(row[name]), f"{name} is no date"
    for name in COSTS | QUANTITIES:
        assert not row[name] or NUMBER.fullmatch(row[name]), f"{name} is no number"
    for name in ("PricingQuantity", "ConsumedQuantity", "ListUnitPrice", "ContractedUnitPrice"):
        assert not row[name].startswith("-"), f"{name} is below zero"
    for name in ENERGY:
        assert not row[name] or row[name].isdigit(), f"{name} is no whole number"
    assert (row["SkuId"] == "energy" or row["PricingUnit"] == "kWh") is bool(row["x_EnergyWh"])
    if row["PricingUnit"] == "kWh":
        assert Fraction(row["PricingQuantity"]) * 1000 == Fraction(row["x_EnergyWh"])
        assert row["SkuMeter"] == "Energy"
    for name, allowed in WORDS.items():
        assert row[name] in allowed, f"{name} is not one of {allowed}"
    assert PARENTS[row["ServiceSubcategory"]] == row["ServiceCategory"]
    assert row["x_Currency"] == currency
    is_code = re.fullmatch("[A-Z]{3}", currency) and currency not in ("SUS",)
    assert row["BillingCurrency"] == (currency if is_code else "XXX")
    assert all(name.startswith("x_") for name in json.loads(row["SkuPriceDetails"] or "{}"))
    assert isinstance(json.loads(row["Tags"]), dict)


def _check_rules(row: Mapping[str, str]) -> None:
    for one, other in PAIRS:
        assert bool(row[one]) is bool(row[other]), f"of {one} and {other} one is empty"
    month, end, start, until = (
        datetime.strptime(row[name], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        for name in ("BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd")
    )
    assert month.day == end.day == 1
    assert (end - month).days in (28, 29, 30, 31)
    assert start < until
    if row["ChargeClass"] != "Correction":
        assert month <= start < until <= end
    is_usage = row["ChargeCategory"] == "Usage"
    for name in ("SkuId", "SkuPriceId", *QUANTITIES, "CapacityReservationId", "ResourceId"):
        assert not is_usage or row[name], f"{name} is empty on a row of usage"
    if not is_usage:
        assert row["ConsumedQuantity"] == row["CapacityReservationId"] == ""
        assert row["ChargeFrequency"] == "One-Time"
    assert row["ChargeCategory"] != "Credit" or row["BilledCost"].startswith("-")
    assert row["ResourceName"] != row["ResourceId"] or not row["ResourceId"]
    assert row["InvoiceId"] == f"{row['BillingPeriodStart'][:7]}/{row['SubAccountId']}"


def _check_products(row: Mapping[str, str]) -> None:
    assert row["EffectiveCost"] == row["BilledCost"] == row["ContractedCost"]
    if not row["PricingQuantity"]:
        assert row["ListCost"] == row["BilledCost"]
        return
    quantity = Fraction(row["PricingQuantity"])
    for price, cost in (("ListUnitPrice", "ListCost"), ("ContractedUnitPrice", "ContractedCost")):
        assert abs(Fraction(row[price]) * quantity - Fraction(row[cost])) <= NANO, f"{price} × quantity is not {cost}"
