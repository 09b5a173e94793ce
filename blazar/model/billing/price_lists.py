# SPDX-License-Identifier: Apache-2.0
"""Price lists: what resources cost by the hour, in versions that never change. Pure.

An operator publishes one as a JSON document. It is read here, when it is sent and when it is used; InvalidInput names
the field and what would fit. Amounts of money are integers of 10⁻⁹ of the currency, factors and shares fractions,
lengths whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from itertools import pairwise

from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import InvalidInput, pointer_to
from blazar.model.base.values import dataclass, field
from blazar.model.billing.charges import DECIMALS, NOTHING, WHOLE, multiply
from blazar.model.billing.document_parts import DocumentPart, parse_week_hours, read_optional
from blazar.model.billing.hours import FactorWeek, HoursFactor
from blazar.model.energy.consumption import HALF
from blazar.model.resources.requirements import Anything, Requirement, matches, property_keys
from blazar.model.resources.resource import HOST, VOLUME, PropertyValue, Resource
from blazar.model.use.resource_hours import CARD, GIGABYTE, INSTANCE, KWH, VCPU, measures

MOST_PRICES, MOST_PROJECTS, MOST_FACTORS = 200, 1000, 20
MOST_CHOSEN = 10_000
_NEEDED = ("currency", "decimals", "valid_from", "time_zone", "prices")
_OPTIONAL = (
    *("fee", "hours", "lead", "amount", "unused", "projects", "minimum", "round_up"),
    *("cancellation", "early_return", "late", "lost", "pue", "load"),
)
_ANY: Requirement = Anything()
_CURRENCY = re.compile(r"[A-Z][A-Z0-9]{1,7}", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_PROJECT = re.compile(r"[!-~]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Price:
    """What one of a measure costs by the hour, if the resource meets a requirement; its ``sku`` names it in bills.

    Of the measure ``kwh`` it is what a kilowatt-hour costs.
    """

    sku: str
    measure: str
    unit_nano: int
    requirement: Requirement = Anything()


@dataclass(frozen=True, slots=True)
class LeadFactor:
    """The factor of what is booked less than ``below`` seconds before its start."""

    below: int
    factor: Fraction


@dataclass(frozen=True, slots=True)
class AmountFactor:
    """The factor of reservations that have more than ``above`` of the measure."""

    above: int
    factor: Fraction


@dataclass(frozen=True, slots=True)
class CancellationShare:
    """The share of the price that is charged for what is given back more than so many seconds before the start.

    The last one has None for them: it holds for all others.
    """

    before_start: int | None
    share: Fraction


@dataclass(frozen=True, slots=True)
class _Index:
    """What a list says, by what it is asked for."""

    of_sku: Mapping[str, Price]
    measures: Mapping[str, str]
    of_measure: Mapping[str, Sequence[Price]]
    properties: Mapping[str, Sequence[str]]
    power_skus: Collection[str]
    of_project: Mapping[str, Fraction]
    week: FactorWeek
    chosen: dict[tuple[object, ...], Price | None]
    """The price of a measure, by the properties that choose it: as many as were asked for, up to a bound."""

    @classmethod
    def of(cls, prices: PriceList) -> _Index:
        of_sku = {price.sku: price for price in prices.prices}
        of_measure: dict[str, list[Price]] = {}
        for price in of_sku.values():
            of_measure.setdefault(price.measure, []).append(price)
        properties = {
            measure: sorted(frozenset().union(*(property_keys(price.requirement) for price in some)))
            for measure, some in of_measure.items()
        }
        measures = {sku: price.measure for sku, price in of_sku.items()}
        powers = [price.sku for price in of_measure.get(KWH, ())]
        week = FactorWeek.of(prices.hours)
        return cls(of_sku, measures, of_measure, properties, powers, dict(prices.projects), week, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """A version of the prices of a site; keys of the document have the same names, ``zone`` is its ``time_zone``.

    A higher version was published later. ``late_is_free`` is time before the hand-over, ``lost_is_free`` time in which
    a resource is missing. What hosts draw costs ``pue`` times as much, and is estimated by their data sheets at a
    ``load`` from 0 to 1.
    """

    version: int
    published_at: datetime
    valid_from: datetime
    currency: str
    decimals: int
    zone: str
    prices: tuple[Price, ...]
    fee: int = 0
    hours: tuple[HoursFactor, ...] = ()
    lead: tuple[LeadFactor, ...] = ()
    amount: tuple[AmountFactor, ...] = ()
    unused: Fraction = WHOLE
    projects: tuple[tuple[str, Fraction], ...] = ()
    minimum: int = 0
    round_up: int = 1
    cancellation: tuple[CancellationShare, ...] = ()
    early_return: Fraction = Fraction(0)
    late_is_free: bool = True
    lost_is_free: bool = True
    pue: Fraction = WHOLE
    load: Fraction = HALF
    _index: _Index = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # A list is read once, and then asked for each lease that is looked for.
        object.__setattr__(self, "_index", _Index.of(self))

    @property
    def measures(self) -> Mapping[str, str]:
        """Return what each price is of, by its sku."""
        return self._index.measures

    @property
    def week(self) -> FactorWeek:
        """Return the factors of its hours over a week."""
        return self._index.week

    @property
    def power_skus(self) -> Collection[str]:
        """Return the prices of what hosts draw."""
        return self._index.power_skus

    def choose_price(self, measure: str, properties: Mapping[str, PropertyValue]) -> Price | None:
        """Return the first price of a measure that fits a resource with these properties; None: it is free."""
        for price in self._index.of_measure.get(measure, ()):
            if matches(price.requirement, properties):
                return price
        return None

    def choose_price_of(self, measure: str, resource: Resource | None) -> Price | None:
        """Return the first price of a measure that fits a resource, of which nothing may be known; None: it is free."""
        index = self._index
        names = index.properties.get(measure, ())
        known = {} if resource is None or not names else resource.pick(names)
        # Of what is equal, but not of one type, not the same may be true.
        key = (measure, *known, *known.values(), *map(type, known.values()))
        if key in index.chosen:
            return index.chosen[key]
        price = self.choose_price(measure, known)
        if len(index.chosen) < MOST_CHOSEN:
            index.chosen[key] = price
        return price

    def find_price(self, sku: str) -> Price | None:
        """Return the price of this name; None: it is free."""
        return self._index.of_sku.get(sku)

    def find_booking_factor(self, project_id: str, lead: int, amount: int) -> Fraction:
        """Return the factor that is fixed when it is booked: of a project, so many seconds ahead, so many of it."""
        found = self._index.of_project.get(project_id, WHOLE)
        for soon in self.lead:
            if lead < soon.below:
                found = multiply(found, soon.factor)
                break
        for many in reversed(self.amount):
            if amount > many.above:
                return multiply(found, many.factor)
        return found

    def find_energy_factor(self, project_id: str) -> Fraction:
        """Return the factor of what hosts draw for a project: that of the site, and that of the project."""
        return self.pue * self._index.of_project.get(project_id, WHOLE)

    def find_share(self, before_start: int) -> Fraction:
        """Return the share that is charged of what is given back so many seconds before the start; negative: after."""
        if before_start <= 0:
            return self.early_return
        for entry in self.cancellation:
            if entry.before_start is None or before_start > entry.before_start:
                return entry.share
        return NOTHING

    def round_time(self, seconds: int) -> int:
        """Return the seconds that are charged of the time of a reservation, rounded up, and at least the minimum."""
        return max(-(-seconds // self.round_up) * self.round_up, self.minimum)


def find_list(lists: Iterable[PriceList], booked_at: datetime, instant: datetime) -> PriceList | None:
    """Return the list for an instant of what was booked at another; None: there is none, and nothing is charged.

    Of those that were published by then it is the one that became valid last. A list replaces those before it that
    would become valid at the same time or later; so it is the last one published of those that are valid.
    """
    found: PriceList | None = None
    for one in lists:
        if one.published_at <= booked_at and one.valid_from <= instant:
            found = one if found is None or one.version > found.version else found
    return found


def kind_of(measure: str) -> str:
    """Return the kind of the resources whose properties choose the price of a measure."""
    return {INSTANCE: HOST, VCPU: HOST, CARD: HOST, KWH: HOST, GIGABYTE: VOLUME}.get(measure, measure)


def check_currency(new: PriceList, published: PriceList) -> None:
    """Raise InvalidInput if a list has another currency, or other decimals, than the lists of the site."""
    if new.currency != published.currency:
        raise in_body("currency").invalid(
            new.currency, f"{published.currency}, which all price lists here have", "invalid_value"
        )
    if new.decimals != published.decimals:
        raise in_body("decimals").invalid(
            str(new.decimals), f"{published.decimals}, which all price lists here have", "invalid_value"
        )


def check_privacy(new: PriceList, private: Mapping[str, Collection[str]]) -> None:
    """Raise InvalidInput if a requirement has a property that members do not see; these are by the kind of resource.

    A price is no secret, and would tell which resources have that property.
    """
    for number, price in enumerate(new.prices):
        hidden = property_keys(price.requirement) & set(private.get(kind_of(price.measure), ()))
        if hidden:
            name = min(hidden)
            raise InvalidInput(
                f"prices[{number}].requirement uses the property {name}, which is private, and all members see prices; "
                "make it public, or use another one",
                at=pointer_to(("prices", number, "requirement")),
            )


def parse_price_list(document: object, *, version: int, published_at: datetime) -> PriceList:
    """Return the price list that a document describes. InvalidInput names the field and what would fit."""
    given = DocumentPart(document).fields(_NEEDED, _OPTIONAL)
    zone = dates.zone(given["time_zone"].text(), given["time_zone"].place)
    return PriceList(
        version=version,
        published_at=published_at,
        valid_from=dates.day_or_date(given["valid_from"].text(), given["valid_from"].place, zone=zone),
        currency=given["currency"].match(_CURRENCY, "an ISO 4217 code such as EUR, or a word in capitals such as SU"),
        decimals=given["decimals"].whole(0, DECIMALS),
        zone=zone,
        prices=_parse_prices(given["prices"]),
        fee=read_optional(given, "fee", DocumentPart.amount, 0),
        hours=read_optional(given, "hours", _parse_all_hours, ()),
        lead=read_optional(given, "lead", _parse_lead, ()),
        amount=read_optional(given, "amount", _parse_amount, ()),
        unused=read_optional(given, "unused", lambda part: part.factor(least=0), WHOLE),
        projects=read_optional(given, "projects", _parse_projects, ()),
        minimum=read_optional(given, "minimum", DocumentPart.length, 0),
        round_up=read_optional(given, "round_up", DocumentPart.length, 1),
        cancellation=read_optional(given, "cancellation", _parse_cancellation, ()),
        early_return=read_optional(given, "early_return", DocumentPart.share, Fraction(0)),
        late_is_free=read_optional(given, "late", _parse_free, True),
        lost_is_free=read_optional(given, "lost", _parse_free, True),
        pue=read_optional(given, "pue", lambda part: part.factor(least=1), WHOLE),
        load=read_optional(given, "load", DocumentPart.share, HALF),
    )


def _parse_free(part: DocumentPart) -> bool:
    return part.one_of(("free", "charge")) == "free"


def _parse_prices(part: DocumentPart) -> tuple[Price, ...]:
    found: list[Price] = []
    for item in part.items(MOST_PRICES):
        known = item.fields(("sku", "measure"), ("per_hour", "per_kwh", "requirement"))
        measure = known["measure"].one_of((*measures(), KWH))
        unit = "per_kwh" if measure == KWH else "per_hour"
        given = item.fields(("sku", "measure", unit), ("requirement",))
        sku = given["sku"].match(_NAME, "a name of letters, digits and ._- such as host-a100")
        if sku in [price.sku for price in found]:
            raise given["sku"].refuse("another name: a price before it has this one")
        requirement: Requirement = read_optional(given, "requirement", DocumentPart.requirement, _ANY)
        found.append(Price(sku, measure, given[unit].amount(), requirement))
    return tuple(found)


def _parse_all_hours(part: DocumentPart) -> tuple[HoursFactor, ...]:
    return tuple(map(_parse_hours, part.items(MOST_FACTORS)))


def _parse_hours(part: DocumentPart) -> HoursFactor:
    given = part.fields(("factor",), ("days", "from", "to"))
    hours = parse_week_hours(given)
    return HoursFactor(hours.days, hours.start, hours.end, given["factor"].factor())


def _parse_lead(part: DocumentPart) -> tuple[LeadFactor, ...]:
    given = [item.fields(("below", "factor")) for item in part.items(MOST_FACTORS)]
    found = tuple(LeadFactor(one["below"].length(), one["factor"].factor()) for one in given)
    for number, (before, after) in enumerate(pairwise(found), 1):
        if after.below <= before.below:
            raise given[number]["below"].refuse("a longer one than in the entry before it")
    return found


def _parse_amount(part: DocumentPart) -> tuple[AmountFactor, ...]:
    given = [item.fields(("above", "factor")) for item in part.items(MOST_FACTORS)]
    found = tuple(AmountFactor(one["above"].whole(1, 10**9), one["factor"].factor()) for one in given)
    for number, (before, after) in enumerate(pairwise(found), 1):
        if after.above <= before.above:
            raise given[number]["above"].refuse("a larger one than in the entry before it", is_number=True)
    return found


def _parse_projects(part: DocumentPart) -> tuple[tuple[str, Fraction], ...]:
    found: dict[str, Fraction] = {}
    for item in part.items(MOST_PROJECTS):
        given = item.fields(("project_id", "factor"))
        project = given["project_id"].match(_PROJECT, "the id of a project")
        if project in found:
            raise given["project_id"].refuse("each project once: an entry before it has this one")
        found[project] = given["factor"].factor()
    return tuple(found.items())


def _parse_cancellation(part: DocumentPart) -> tuple[CancellationShare, ...]:
    given = [item.fields(("share",), ("before_start",)) for item in part.items(MOST_FACTORS)]
    found = [
        CancellationShare(one["before_start"].length() if "before_start" in one else None, one["share"].share())
        for one in given
    ]
    for number, entry in enumerate(found):
        is_last = number == len(found) - 1
        if (entry.before_start is None) is not is_last:
            place = in_body("cancellation", number)
            raise InvalidInput(
                f"{place.name} is malformed; give before_start in all entries but the last one, which is for the rest",
                at=place.at,
            )
        if number and not is_last and (entry.before_start or 0) >= (found[number - 1].before_start or 0):
            raise given[number]["before_start"].refuse("a shorter one than in the entry before it")
    return tuple(found)
