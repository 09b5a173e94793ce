# SPDX-License-Identifier: Apache-2.0
"""Questions for a page of a list: filters, order, and the place where the page begins."""

from __future__ import annotations

from enum import StrEnum

from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.values import dataclass


class Operator(StrEnum):
    """How a filter compares; a filter without one compares by ``EQ``."""

    EQ = "eq"
    IN = "in"
    NEQ = "neq"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"


COMPARISONS = (Operator.EQ, Operator.NEQ, Operator.GT, Operator.GTE, Operator.LT, Operator.LTE)


@dataclass(frozen=True, slots=True)
class Condition:
    """A filter: the items whose ``key`` compares so with the values; ``IN`` has one or more values, the others one.

    Values are texts: instants as ``zulu`` writes them, or ``now``; booleans as ``true`` and ``false``.
    """

    key: str
    operator: Operator
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Position:
    """The place of an item in a list: its value of the sort key, as a text or None, and its id."""

    value: str | None
    id: str


@dataclass(frozen=True, slots=True)
class Page:
    """Which page is wanted: at most ``limit`` items ``after`` a position, or after the item with that id (a text).

    Items with the same value of the sort key are in the order of their ids, in the same direction.
    """

    limit: int
    sort_key: str
    descending: bool = False
    after: Position | str | None = None
    with_count: bool = False


@dataclass(frozen=True, slots=True)
class PageBounds:
    """The items of a page: ``usual`` if the request names no number, and at most ``most``."""

    usual: int
    most: int

    def limit(self, asked: int | None) -> int:
        """Return how many items a page has; a number that is too large is cut."""
        return min(self.usual if asked is None else asked, self.most)


PAGES = PageBounds(100, 1000)
"""Those of pages, if operators choose no others."""


@dataclass(frozen=True, slots=True)
class ApiBounds:
    """The bounds of lists: of ``pages`` in general, of pages of the ``calendar``, of ``openings`` in an answer."""

    pages: PageBounds = PAGES
    calendar: PageBounds = PageBounds(200, 1000)
    openings: PageBounds = PageBounds(5, 20)


DEFAULT_BOUNDS = ApiBounds()
"""The bounds, if operators choose no others."""


def unknown_marker() -> InvalidInput:
    """Return the error for a marker that names no item of the list; the same whether there is one elsewhere or not."""
    return InvalidInput(
        "marker names no item of this list; send the marker of a next link, or the id of an item that was listed",
        code="invalid_marker",
        at=query_field("marker"),
    )
