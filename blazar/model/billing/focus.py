# SPDX-License-Identifier: Apache-2.0
"""Charges as rows of FOCUS 1.2, the open format of cloud bills (focus.finops.org), with the names of 1.3. Pure.

A cell is a text, a number, or None where the format wants nothing. What was free is in no row: it costs nothing, and
the format has no word for it. The sum of ``BilledCost`` is the amount of the statement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from blazar.model.base.clock import zulu
from blazar.model.base.values import dataclass
from blazar.model.billing.charges import (
    DECIMALS,
    NANO,
    WHOLE,
    Charge,
    ChargeCategory,
    ChargeLine,
    ChargeStatus,
    LineEnergy,
    divide_half_even,
    price_energy,
    price_seconds,
    window_of_month,
)
from blazar.model.billing.price_lists import PriceList
from blazar.model.billing.statements import Statement

Cell = str | Decimal | None
T = TypeVar("T")

_CODES = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF "
    "CHE CHF CHW CLF CLP CNY COP COU CRC CUC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
    "GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK LBP LKR "
    "LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK "
    "PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SLL SOS SRD SSP STN SVC SYP SZL THB TJS TMT "
    "TND TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAF XAG XAU XBA XBB XBC XBD XCD XDR "
    "XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWL"
)
CURRENCIES = frozenset(_CODES.split())
"""The codes of currencies (ISO 4217); other words are credits of a site."""

NO_CURRENCY = "XXX"
"""The code of what is paid in no currency."""

COLUMNS = (
    *("BilledCost", "BillingAccountId", "BillingAccountName", "BillingCurrency", "BillingPeriodEnd"),
    *("BillingPeriodStart", "CapacityReservationId", "CapacityReservationStatus", "ChargeCategory", "ChargeClass"),
    *("ChargeDescription", "ChargeFrequency", "ChargePeriodEnd", "ChargePeriodStart", "ConsumedQuantity"),
    *("ConsumedUnit", "ContractedCost", "ContractedUnitPrice", "EffectiveCost", "HostProviderName", "InvoiceId"),
    *("InvoiceIssuerName", "ListCost", "ListUnitPrice", "PricingCategory", "PricingQuantity", "PricingUnit"),
    *("ProviderName", "PublisherName", "RegionId", "RegionName", "ResourceId", "ResourceName", "ResourceType"),
    *("ServiceCategory", "ServiceName", "ServiceProviderName", "ServiceSubcategory", "SkuId", "SkuMeter"),
    *("SkuPriceDetails", "SkuPriceId", "SubAccountId", "SubAccountName", "Tags"),
    *("x_CarbonGrams", "x_Currency", "x_EnergySource", "x_EnergyWh"),
)
"""The columns, in the order of their names. ``HostProviderName`` and ``ServiceProviderName`` are of 1.3."""

_PLACES = 18
_KWH = "kWh"

_FEE = "lease-fee"
_ENERGY = "energy"


@dataclass(frozen=True, slots=True)
class _BilledService:
    """What is charged for, in the words of the format: each name has one category and one subcategory."""

    name: str
    category: str
    subcategory: str


_OTHER = _BilledService("Reservations", "Other", "Other (Other)")
_MACHINES = _BilledService("Machine Reservations", "Compute", "Other (Compute)")
_SERVERS = _BilledService("Server Reservations", "Compute", "Virtual Machines")
_STORAGE = _BilledService("Volume Reservations", "Storage", "Block Storage")
_NETWORKS = _BilledService("Network Reservations", "Networking", "Network Infrastructure")
_SERVICES: Mapping[str, _BilledService] = {
    "host": _MACHINES,
    "device": _MACHINES,
    "instance": _SERVERS,
    "vcpu": _SERVERS,
    "card": _SERVERS,
    "volume": _STORAGE,
    "gigabyte": _STORAGE,
    "floatingip": _NETWORKS,
    "network": _NETWORKS,
}
"""The service of each measure."""
_ADDED = (ChargeCategory.CORRECTION, ChargeCategory.ADJUSTMENT)
"""Lines that are no use of anything."""
_NOUNS = {
    ChargeCategory.FEE: "fee of the lease",
    ChargeCategory.ROUNDING_UP: "rounded up",
    ChargeCategory.EARLY_RETURN: "given back after the start",
    ChargeCategory.CANCELLATION: "given back before the start",
}


@dataclass(frozen=True, slots=True)
class Issuer:
    """Who writes a bill: the operators, by their ``name``, and the account that pays."""

    name: str
    account_id: str
    account_name: str


def list_rows(
    statement: Statement,
    charges: Iterable[Charge],
    lists: Sequence[PriceList],
    issuer: Issuer,
    spell: Callable[[Cell], T],
) -> Iterator[Mapping[str, T]]:
    """Yield a row for each charge of a statement that is not free, and one for its rounding.

    ``spell`` returns what stands for a cell in a row; cells that rows have in common are spelled once.
    """
    bill = _Bill(statement, {one.version: one for one in lists}, issuer, spell)
    for charge in charges:
        if charge.line.category is not ChargeCategory.FREE:
            yield bill.describe_charge(charge)
    if (rounding := statement.rounding) is not None:
        yield {**bill.describe(rounding), "ChargeDescription": spell("Rounding of the total")}


def _describe_head(statement: Statement, issuer: Issuer) -> dict[str, Cell]:
    """Return what all rows of a statement have in common."""
    month = window_of_month(statement.month)
    currency = statement.currency
    return {
        "BillingAccountId": issuer.account_id,
        "BillingAccountName": issuer.account_name,
        "BillingCurrency": currency if currency in CURRENCIES else NO_CURRENCY,
        "BillingPeriodStart": zulu(month.start),
        "BillingPeriodEnd": zulu(month.end),
        "InvoiceId": statement.id,
        "PricingCategory": "Standard",
        "SubAccountId": statement.project_id,
        "SubAccountName": issuer.account_name,
        "Tags": "{}",
        "x_Currency": currency,
        **dict.fromkeys(
            ("InvoiceIssuerName", "ProviderName", "PublisherName", "HostProviderName", "ServiceProviderName"),
            issuer.name,
        ),
    }


def _capacity_status(line: ChargeLine) -> str:
    return "Unused" if line.status is ChargeStatus.UNUSED else "Used"


@dataclass(frozen=True, slots=True)
class _Pricing(Generic[T]):
    """What lines of one kind, price and factor have in common: a long bill has few of these.

    ``row`` has the spelled cells of all columns: those that differ are put into a copy of it.
    """

    row: dict[str, T]
    listed: Fraction = WHOLE
    """The factor without that of the project."""
    words: str = ""
    has_list_cost: bool = False
    """Whether they cost something else by the list."""


class _Bill(Generic[T]):
    """Describes the lines of a statement, in cells that are spelled.

    A row is a copy of one of few: to put three dicts together for each of a hundred thousand takes twice as long.
    """

    def __init__(
        self, statement: Statement, lists: Mapping[int, PriceList], issuer: Issuer, spell: Callable[[Cell], T]
    ) -> None:
        self._project_id = statement.project_id
        self._lists = lists
        self._spell = spell
        self._head = self._spell_all({**dict.fromkeys(COLUMNS), **_describe_head(statement, issuer)})
        self._lease_type = spell("Reservation")
        self._pricings: dict[tuple[object, ...], _Pricing[T]] = {}
        # Many lines of a long bill are equally long, and of few regions.
        self._measure = lru_cache(maxsize=4096)(self._spell_hours)
        self._spell_region = lru_cache(maxsize=64)(spell)

    def describe_charge(self, charge: Charge) -> dict[str, T]:
        """Return the row of a charge."""
        spell, line = self._spell, charge.line
        row = self.describe(line)
        row["ResourceId"] = lease = spell(f"lease:{charge.lease_id}")
        row["ResourceName"] = spell(charge.lease_name)
        row["ResourceType"] = self._lease_type
        row["RegionId"] = row["RegionName"] = self._spell_region(charge.region or None)
        if line.category not in _ADDED:
            row["CapacityReservationId"] = lease
        if charge.corrects is not None:
            # What is corrected in its own month was never invoiced as it was.
            row["ChargeClass"] = spell("Correction" if line.month < charge.month else None)
            row["ChargeDescription"] = spell(f"Correction of charge {charge.corrects}: {charge.reason}")
        return row

    def describe(self, line: ChargeLine) -> dict[str, T]:
        """Return the row of a line that belongs to no lease."""
        spell = self._spell
        # The hash of a fraction takes longer than that of all others.
        of_price = line.sku, line.version, line.unit_nano, *line.factor.as_integer_ratio()
        key = *of_price, line.category, line.status, line.nano < 0
        if (pricing := self._pricings.get(key)) is None:
            pricing = self._pricings[key] = self._price(line)
        row = pricing.row.copy()
        cost = spell(_money(line.nano))
        row["BilledCost"] = row["EffectiveCost"] = row["ContractedCost"] = row["ListCost"] = cost
        row["ChargePeriodStart"] = spell(zulu(line.window.start))
        row["ChargePeriodEnd"] = spell(zulu(line.window.end))
        if line.energy is not None:
            row.update(self._spell_all(_describe_energy(line, line.energy, pricing.words)))
        elif line.sku is not None and line.category not in _ADDED:
            quantity, words = self._measure(line.resource_seconds)
            row["PricingQuantity"] = row["ConsumedQuantity"] = quantity
            row["ChargeDescription"] = spell(f"{words} hours of {line.sku}, {pricing.words}")
        if pricing.has_list_cost:
            row["ListCost"] = spell(_money(_price_listed(line, pricing.listed)))
        return row

    def _spell_all(self, cells: Mapping[str, Cell]) -> dict[str, T]:
        """Return cells as they are spelled."""
        spell = self._spell
        return {name: spell(cell) for name, cell in cells.items()}

    def _spell_hours(self, seconds: int) -> tuple[T, str]:
        """Return so many seconds in hours, exactly as a cell and in words."""
        return self._spell(_divide(seconds, 3600)), _spell_quotient(seconds, 3600, 2)

    def _start_row(self, cells: Mapping[str, Cell]) -> dict[str, T]:
        return {**self._head, **self._spell_all(cells)}

    def _price(self, line: ChargeLine) -> _Pricing[T]:
        """Return what a line has by its price: that of the list, and that which the project has agreed on."""
        if line.category in _ADDED:
            is_credit = line.category is ChargeCategory.CORRECTION and line.nano < 0
            kind = {"ChargeCategory": "Credit" if is_credit else "Adjustment", "ChargeFrequency": "One-Time"}
            return _Pricing(self._start_row({**kind, **_name_service(_OTHER)}))
        if line.is_only_told:
            return _Pricing(self._start_row({**_HEAD_OF_ENERGY, "CapacityReservationStatus": _capacity_status(line)}))
        found = None if line.version is None else self._lists.get(line.version)
        measure = _find_measure(line, found)
        factor = _list_factor(line, found, self._project_id)
        cells: dict[str, Cell] = {
            "ChargeCategory": "Usage",
            "ChargeFrequency": "One-Time" if line.sku is None else "Usage-Based",
            "ListUnitPrice": _number(line.unit_nano * factor / NANO),
            "ContractedUnitPrice": _number(line.unit_nano * line.factor / NANO),
            "SkuPriceId": f"{line.sku or _FEE}/{line.version}/{_spell(factor)}",
            "SkuPriceDetails": json.dumps({"x_PriceList": line.version, "x_Factor": _spell(factor)}),
            "CapacityReservationStatus": _capacity_status(line),
            **_describe_sku(line, measure),
            **dict.fromkeys(("PricingUnit", "ConsumedUnit"), _find_unit(line)),
            **_name_service(_SERVICES.get(measure or "", _OTHER)),
        }
        # What is given back of a fee costs a share of it, and its list price is that of the whole.
        has_list_cost = line.sku is None or line.energy is not None or factor != line.factor
        return _Pricing(self._start_row(cells), factor, _describe_factor(line), has_list_cost)


def _price_listed(line: ChargeLine, factor: Fraction) -> int:
    """Return what a line costs by a factor."""
    if line.sku is None:
        return round(line.unit_nano * factor)
    if line.energy is not None:
        return price_energy(line.unit_nano, factor, line.energy.wh)
    return price_seconds(line.unit_nano, factor, line.resource_seconds)


def _describe_energy(line: ChargeLine, energy: LineEnergy, words: str) -> dict[str, Cell]:
    """Return the cells of what hosts drew. If it costs nothing its quantity is of hours of hosts, else of energy."""
    kwh, seconds = _spell_quotient(energy.wh, 1000, 3), line.resource_seconds
    if line.is_only_told:
        quantity = _divide(seconds, 3600)
        told = f"{kwh} kWh in {_spell_quotient(seconds, 3600, 2)} hours of hosts, free"
    else:
        quantity = _divide(energy.wh, 1000)
        told = f"{kwh} kWh of {line.sku}, {energy.source}, {words}"
    return {
        **dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), quantity),
        "ChargeDescription": told,
        "x_EnergyWh": Decimal(energy.wh),
        "x_EnergySource": str(energy.source),
        "x_CarbonGrams": None if energy.gco2 is None else Decimal(energy.gco2),
    }


def _name_service(service: _BilledService) -> dict[str, Cell]:
    names = {"ServiceName": service.name, "ServiceCategory": service.category}
    return {**names, "ServiceSubcategory": service.subcategory}


_HEAD_OF_ENERGY: Mapping[str, Cell] = {
    "ChargeCategory": "Usage",
    "ChargeFrequency": "Usage-Based",
    **dict.fromkeys(("ListUnitPrice", "ContractedUnitPrice"), Decimal("0.0")),
    **dict.fromkeys(("PricingUnit", "ConsumedUnit"), "Hours"),
    "SkuId": _ENERGY,
    "SkuMeter": "Host hours with energy",
    "SkuPriceId": f"{_ENERGY}/0/1",
    "SkuPriceDetails": "{}",
    **_name_service(_OTHER),
}
"""What lines have in common that cost nothing, and tell what hosts drew."""


def _list_factor(line: ChargeLine, found: PriceList | None, project_id: str) -> Fraction:
    """Return the factor of a line without that of its project, which a fee does not have."""
    discount = Fraction(1) if found is None else dict(found.projects).get(project_id, Fraction(1))
    return line.factor if line.sku is None else line.factor / discount


def _describe_sku(line: ChargeLine, measure: str | None) -> Mapping[str, Cell]:
    if line.sku is None:
        what = _NOUNS[ChargeCategory.FEE]
        if line.category is not ChargeCategory.FEE:
            what = f"{what}, {_NOUNS[line.category]}"
        one = dict.fromkeys(("PricingQuantity", "ConsumedQuantity"), Decimal("1.0"))
        return {"SkuId": _FEE, "SkuMeter": "Leases", "ChargeDescription": what.capitalize(), **one}
    meter = "Energy" if line.energy is not None else f"{(measure or 'resource').capitalize()} hours"
    return {"SkuId": line.sku, "SkuMeter": meter}


def _find_unit(line: ChargeLine) -> str:
    if line.sku is None:
        return "Leases"
    return "Hours" if line.energy is None else _KWH


def _describe_factor(line: ChargeLine) -> str:
    words = [f"factor {_spell(line.factor, 6)}"]
    if line.category in _NOUNS:
        words.append(_NOUNS[line.category])
    elif line.status is ChargeStatus.UNUSED:
        words.append("not used")
    return ", ".join(words)


def _find_measure(line: ChargeLine, found: PriceList | None) -> str | None:
    """Return what is counted of a line; None of a fee, and if the price is not known."""
    price = None if found is None or line.sku is None else found.find_price(line.sku)
    return None if price is None else price.measure


def _money(nano: int) -> Decimal:
    return Decimal(nano).scaleb(-DECIMALS)


def _number(value: Fraction) -> Decimal:
    """Return a number with as many decimals as it has, of 18 at most, and one at least: it is read as no integer."""
    return _divide(*value.as_integer_ratio())


def _divide(number: int, by: int) -> Decimal:
    """Return a quotient as ``_number`` does."""
    text = _spell_quotient(number, by, _PLACES)
    return Decimal(text if "." in text else f"{text}.0")


def _spell(value: Fraction, places: int = _PLACES) -> str:
    """Return a number with at most so many decimals, rounded half to even, without zeros at its end."""
    return _spell_quotient(*value.as_integer_ratio(), places)


def _spell_quotient(number: int, by: int, places: int) -> str:
    """Return a quotient as ``_spell`` does."""
    # Long bills have hundreds of thousands of these: whole numbers take a fraction of what fractions do.
    scaled = divide_half_even(number * 10**places, by)
    whole, decimals = divmod(scaled, 10**places)
    return f"{whole}.{decimals:0{places}}".rstrip("0").rstrip(".")
