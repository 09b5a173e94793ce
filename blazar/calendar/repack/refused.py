# SPDX-License-Identifier: Apache-2.0
"""Searches that found no way, which are not made again while nothing has changed for them.

Those who wait, or have lost a host, are looked at again and again: after each change anywhere, and each minute.
"""

from __future__ import annotations

from collections import OrderedDict

from blazar.model.base.values import dataclass, field

MOST = 1000
"""How many leases are remembered."""


@dataclass(frozen=True, slots=True)
class RefusedSearch:
    """No way was found for a window, with all that it depends on summed up as ``state``, before something ends.

    Until that ``next_end`` a later window that ends no earlier has no way either: nothing has left, and fewer may move.
    """

    state: int
    start: int
    end: int
    next_end: int | None

    def covers(self, state: int, start: int, end: int) -> bool:
        """Return whether a window has no way for that reason."""
        ends = self.next_end is not None and self.next_end <= start
        return state == self.state and self.start <= start and self.end <= end and not ends


@dataclass(slots=True)
class RefusedSearches:
    """The last search of each lease that found no way."""

    _known: OrderedDict[str, RefusedSearch] = field(default_factory=OrderedDict)

    def has(self, lease_id: str, state: int, start: int, end: int) -> bool:
        """Return whether it is known that a lease finds no way."""
        known = self._known.get(lease_id)
        return known is not None and known.covers(state, start, end)

    def add(self, lease_id: str, refused: RefusedSearch) -> None:
        """Remember a search instead of the last one of its lease."""
        self._known[lease_id] = refused
        self._known.move_to_end(lease_id)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
