# SPDX-License-Identifier: Apache-2.0
"""Pages of resources and their properties, which are few enough to be sorted in memory. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from blazar.model.calendar import order_of
from blazar.model.json_text import read_json
from blazar.model.paging import Page, Position, unknown_marker
from blazar.model.resource import PropertyValue

_Key = tuple[tuple[bool, bool, float, str], str]
Item = TypeVar("Item")


def page_of(
    found: Sequence[Item],
    page: Page,
    *,
    value_of: Callable[[Item], PropertyValue],
    id_of: Callable[[Item], str],
) -> tuple[list[Item], Position | None]:
    """Return the items of a page, and the position of the last one if there are more.

    They are sorted by a value, numbers first and what has none last, and by an id. InvalidInput for an unknown marker.
    """
    keyed: list[tuple[_Key, Item]] = [((order_of(value_of(each)), id_of(each)), each) for each in found]
    keyed.sort(key=itemgetter(0), reverse=page.descending)
    if page.after is not None:
        last = _last(page.after, {key[1]: key for key, _ in keyed})
        keyed = [(key, each) for key, each in keyed if (key < last if page.descending else key > last)]
    shown = [each for _, each in keyed[: page.limit]]
    if len(keyed) <= page.limit or not shown:
        return shown, None
    return shown, Position(json.dumps(value_of(shown[-1])), id_of(shown[-1]))


def _last(after: Position | str, keys: Mapping[str, _Key]) -> _Key:
    """Return the key of the item after which a page begins; InvalidInput if none is meant."""
    if isinstance(after, str):
        if after not in keys:
            raise unknown_marker()
        return keys[after]
    try:
        value: Any = read_json(after.value or "null")
        if not isinstance(value, str | int | float | bool | None):
            raise unknown_marker()
        return order_of(value), after.id
    except (OverflowError, ValueError):
        # Also numbers of hundreds of digits, which no property has.
        raise unknown_marker() from None
