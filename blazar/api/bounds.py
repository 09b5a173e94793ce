# SPDX-License-Identifier: Apache-2.0
"""Bounds of lists in an answer, which operators choose."""

from __future__ import annotations

from dataclasses import dataclass


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


DEFAULTS = ApiBounds()
"""The bounds, if operators choose no others."""
