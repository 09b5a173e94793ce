# SPDX-License-Identifier: Apache-2.0
"""Price lists as they were published, and what differs between two of them. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from blazar.model.base.clock import to_second
from blazar.model.base.dates import in_body
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.values import dataclass, replace
from blazar.model.billing.comparison import MonthComparison
from blazar.model.billing.price_lists import PriceList, find_list, kind_of, parse_price_list
from blazar.model.resources.resource import Resource
from blazar.model.use.resource_hours import KWH

_SECOND = timedelta(seconds=1)
_KEYS = {"prices": "sku", "projects": "project_id"}
"""What tells the entries of a list apart."""


@dataclass(frozen=True, slots=True)
class PublishedList:
    """A version of the price list: its document as JSON text, and the id of the user who published it, if known."""

    version: int
    published_at: datetime
    valid_from: datetime
    content: str
    published_by: str | None = None

    @property
    def id(self) -> str:
        """Return its version as a text."""
        return str(self.version)

    @property
    def digest(self) -> str:
        """Return a hash of the document: the same document has the same one."""
        return hashlib.sha256(self.content.encode()).hexdigest()

    @property
    def document(self) -> Mapping[str, Any]:
        """Return its document."""
        found: Mapping[str, Any] = json.loads(self.content)
        return found

    def parse(self) -> PriceList:
        """Return the prices."""
        return parse_price_list(self.document, version=self.version, published_at=self.published_at)

    def hold_from(self, now: datetime, last_booking: datetime | None) -> PublishedList:
        """Return the list as it is published now, for bookings after the last one that did not know of it."""
        first = _find_second(now)
        if last_booking is not None:
            first = max(first, to_second(last_booking) + _SECOND)
        return replace(self, published_at=max(self.published_at, first))


@dataclass(frozen=True, slots=True)
class PriceChange:
    """A part of the document before and after, as JSON texts; None where there was or is none.

    ``field`` names an entry of ``prices`` by its sku, and of ``projects`` by its project: ``prices[host].per_hour``.
    """

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Publication:
    """A price list that is published, or would be, and what it changes.

    ``left_out`` are the skus of lists until then that it has no price for, if it is published ahead: what is booked
    meanwhile by these is free from its begin on. ``replaced`` are the versions that were published ahead, and of which
    nothing comes, as this one holds for what is booked from then on, ``unmatched`` the skus of prices that no resource
    has. ``last_month``, of a dry run, is what the month
    before would have cost by it; None: nothing was charged.
    """

    new: PublishedList
    changes: tuple[PriceChange, ...]
    left_out: tuple[str, ...] = ()
    replaced: tuple[int, ...] = ()
    unmatched: tuple[str, ...] = ()
    last_month: MonthComparison | None = None


def draft_list(
    document: Mapping[str, Any], before: PublishedList | None, *, now: datetime, published_by: str | None = None
) -> PublishedList:
    """Return the list that a document makes if it is published after another one. InvalidInput for a wrong document.

    It holds from the next full second on, at once if this is one: bookings are known to the second.
    """
    published_at = _find_second(now)
    if before is not None:
        published_at = max(published_at, before.published_at)
    version = 1 if before is None else before.version + 1
    prices = parse_price_list(document, version=version, published_at=published_at)
    content = json.dumps(document, separators=(",", ":"))
    return PublishedList(version, published_at, prices.valid_from, content, published_by)


def _find_second(now: datetime) -> datetime:
    """Return the first full second that has not begun before an instant."""
    second = to_second(now)
    return second if now == second else second + _SECOND


def check_measures(new: PriceList, published: Iterable[PriceList]) -> None:
    """Raise InvalidInput if a price has another measure than the price of the same sku in a list before.

    What was booked has its sku for ever: it would be charged for something else.
    """
    known = {price.sku: (price.measure, prices.version) for prices in published for price in prices.prices}
    for number, price in enumerate(new.prices):
        measure, version = known.get(price.sku, (price.measure, 0))
        if measure != price.measure:
            wanted = f"{measure}, which {price.sku} is a price of in version {version}, or another sku"
            raise in_body("prices", number, "measure").invalid(price.measure, wanted, "invalid_value")


def check_energy(new: PriceList, *, is_recorded: bool) -> None:
    """Raise InvalidInput if energy has a price, and nothing is recorded of it: nothing would ever be charged."""
    if is_recorded:
        return
    for number, price in enumerate(new.prices):
        if price.measure == KWH:
            place = in_body("prices", number, "measure")
            raise InvalidInput(
                f"{place.name} is {KWH}, and what hosts draw is not recorded here; set [energy] enabled = true for all "
                "managers first, or leave this price out",
                at=place.at,
            )


def list_left_out(new: PriceList, published: Iterable[PriceList]) -> tuple[str, ...]:
    """Return the skus that have prices until a list that is published ahead begins, and that it leaves out."""
    lists = tuple(published)
    begins = {new.published_at, *(one.valid_from for one in lists)}
    holding = {find_list(lists, new.published_at, at) for at in begins if new.published_at <= at < new.valid_from}
    known = {price.sku for prices in holding if prices is not None for price in prices.prices}
    return tuple(sorted(known - {price.sku for price in new.prices}))


def list_replaced(new: PriceList, published: Iterable[PriceList]) -> tuple[int, ...]:
    """Return the versions that would begin later, and never will for what is booked once a list is published."""
    lists = tuple(published)
    begins = {one.valid_from for one in lists if one.valid_from > new.published_at}
    holding = [find_list(lists, new.published_at, at) for at in sorted(begins) if at >= new.valid_from]
    return tuple(sorted({one.version for one in holding if one is not None and one.valid_from in begins}))


def list_unmatched(prices: PriceList, resources: Mapping[str, Collection[Resource]]) -> tuple[str, ...]:
    """Return the skus of prices that no resource has, by the resources of each kind; where there are none, of none.

    Their requirement fits nothing, as a misspelled one, or a price before them fits all that they do.
    """
    asked = {price.measure: resources.get(kind_of(price.measure), ()) for price in prices.prices}
    chosen = {prices.choose_price_of(measure, one) for measure, some in asked.items() for one in some}
    return tuple(price.sku for price in prices.prices if asked[price.measure] and price not in chosen)


def compare_documents(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[PriceChange, ...]:
    """Return the parts of two documents that differ, in the order of ``after``; those only ``before`` come last."""
    was, became = dict(_list_parts(before)), dict(_list_parts(after))
    names = [*became, *(name for name in was if name not in became)]
    pairs = ((name, was.get(name), became.get(name)) for name in names)
    return tuple(PriceChange(*one) for one in pairs if one[1] != one[2])


def show_to_project(document: Mapping[str, Any], project_id: str) -> Mapping[str, Any]:
    """Return a document as a project sees it: of ``projects`` only its own entry."""
    own = [entry for entry in document.get("projects", ()) if entry["project_id"] == project_id]
    return {**document, "projects": own} if "projects" in document else document


def unknown_list(version: int) -> NotFound:
    """Return the error for a version that was never published."""
    return NotFound(f"price list {version} not found", code="price_list_not_found")


def _list_parts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in document.items():
        if name in _KEYS:
            for entry in value:
                for field, part in entry.items():
                    if field != _KEYS[name]:
                        yield f"{name}[{entry[_KEYS[name]]}].{field}", json.dumps(part)
        else:
            yield name, json.dumps(value)
