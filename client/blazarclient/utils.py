# SPDX-License-Identifier: Apache-2.0
"""Elapsed times and sorting, as the managers of version 1 take them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import Any

from blazarclient import exception

API_DATE_FORMAT = "%Y-%m-%d %H:%M"
"""Dates in requests of microversion 1.0, in UTC."""

LEASE_DATE_FORMAT = "%Y-%m-%dT%H:%M:%S.%f"
"""Dates of leases at microversion 1.0, in UTC."""

_UNITS = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_PART = re.compile(r"(\d+)([wdhms])")


def elapsed(text: str) -> timedelta:
    """Return the time of ``90m``, ``1h30m`` or ``2d``; BlazarClientException for other texts."""
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise exception.BlazarClientException(
            f"{text!r} is no length of time; write whole numbers with w, d, h, m or s, such as 90m or 2d12h", code=400
        )
    return sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in parts), timedelta())


def read_date(text: str | None) -> datetime:
    """Return a date of a lease, in UTC; BlazarClientException if that is none."""
    try:
        value = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
    except ValueError:
        raise exception.BlazarClientException(f"The service tells {text!r} as a date of a lease", code=502) from None
    return value if value.tzinfo else value.replace(tzinfo=timezone.utc)


def sort(items: list[dict[str, Any]], by: str | None) -> list[dict[str, Any]]:
    """Return items sorted by a key, those without a value first; BlazarClientException for a key that none has."""
    if not by or not items:
        return items
    if not any(by in item for item in items):
        raise exception.BlazarClientException(f"Cannot sort by {by}; choose one of: {_keys(items)}", code=400)

    def key(item: dict[str, Any]) -> tuple[bool, str, Any]:
        value = item.get(by)
        comparable = value if isinstance(value, str | int | float) else str(value)
        # Values of several kinds cannot be compared with each other.
        kind = "" if isinstance(comparable, int | float) else "text"
        return (value is not None, kind, comparable)

    try:
        return sorted(items, key=lambda item: item[by])
    except (KeyError, TypeError):
        return sorted(items, key=key)


def _keys(items: Iterable[dict[str, Any]]) -> str:
    return ", ".join(sorted({key for item in items for key in item}))
