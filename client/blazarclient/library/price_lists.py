# SPDX-License-Identifier: Apache-2.0
"""Price lists: what leases cost. Operators publish them; a version never changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazarclient.exception import NotFound
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Json


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """A version of the prices. ``content`` is its document; a list of them is without."""

    version: int
    published_at: datetime
    valid_from: datetime
    currency: str = ""
    published_by: str | None = None
    digest: str | None = None
    content: Json = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class PriceChange:
    """A part of the document before and after, as JSON; None where there was or is none."""

    field: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, kw_only=True)
class ProjectComparison:
    """What a project was charged for a month, and what it would have been by a new list."""

    project_id: str
    amount: str
    new_amount: str


@dataclass(frozen=True, kw_only=True)
class PriceComparison:
    """What leases were charged for a month, and what they would have been by a new list; ``is_whole``: all leases."""

    month: str
    currency: str
    amount: str
    new_amount: str
    leases: int
    is_whole: bool
    projects: tuple[ProjectComparison, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A price list that is published, or would be, with what it changes.

    ``left_out`` are skus that have prices until it begins, and of which it has none, ``replaced``
    versions that were published ahead and never hold for what is booked from then on, ``unmatched`` skus whose price
    no resource has. ``last_month`` is what the last
    month would have cost by it, of a dry run; None: nothing was charged.
    """

    price_list: PriceList
    changes: tuple[PriceChange, ...] = ()
    left_out: tuple[str, ...] = ()
    replaced: tuple[int, ...] = ()
    unmatched: tuple[str, ...] = ()
    last_month: PriceComparison | None = None


class PriceLists:
    """The price lists of the service."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[PriceList]:
        """Yield the price lists without their contents, oldest first."""
        for item in self._transport.pages("/price-lists", "price_lists"):
            yield decode(PriceList, item)

    def get(self, version: int | str) -> PriceList:
        """Return a price list; NotFound."""
        answer = self._transport.ask("GET", f"/price-lists/{part_of_path(str(version))}")
        return decode(PriceList, answer.part("price_list"))

    def newest(self) -> PriceList:
        """Return the price list that was published last; NotFound."""
        versions = [each.version for each in self.list()]
        if not versions:
            raise NotFound("No price list is published here; leases cost nothing", code=404)
        return self.get(versions[-1])

    def publish(self, document: Mapping[str, Any], *, dry_run: bool = False) -> Publication:
        """Publish a document, or only say what it would change. Conflict if another one was published meanwhile."""
        query = {"dry_run": True} if dry_run else None
        answer = self._transport.ask("POST", "/price-lists", body=document, query=query, repeatable=dry_run)
        return decode(Publication, answer.body)
