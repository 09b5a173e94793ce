# SPDX-License-Identifier: Apache-2.0
"""What requests about leases are made of: dates, states, ids and keys as the service takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

from blazarclient.exception import InvalidRequest
from blazarclient.library.values import Lease

Date = datetime | str
"""An aware datetime, or a text as the service takes it: ISO 8601, ``now``, of an end ``+P3D``, of a warning ``-2h``."""


def written(value: Date) -> str:
    """Return a date as the service takes it. ValueError for a datetime without a zone: nobody knows when it is."""
    if isinstance(value, str):
        return value
    if not isinstance(value, datetime):
        raise TypeError(f"{value!r} is no date; give a datetime with a time zone, or a text such as 2030-05-01T10:00Z")
    if value.tzinfo is None:
        raise ValueError(f"{value} has no time zone")
    return value.astimezone(timezone.utc).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def in_capitals(statuses: str | Iterable[str]) -> tuple[str, ...]:
    """Return one status, or several, as leases have them."""
    return tuple(status.upper() for status in ([statuses] if isinstance(statuses, str) else statuses))


def in_seconds(value: datetime) -> datetime:
    """Return a date as the service keeps it."""
    return value.astimezone(timezone.utc).replace(microsecond=0)


def id_of(lease: Lease | str) -> str:
    """Return the id of a lease, or of what is one. InvalidRequest for a lease that was only tried."""
    if not isinstance(lease, Lease):
        return lease
    if lease.id is None:
        raise InvalidRequest("A lease that was only tried has no id")
    return lease.id


def checked(key: str) -> str:
    """Return an idempotency key. InvalidRequest if it cannot be one."""
    if not re.fullmatch(r"[!#-\[\]-~]{1,255}", key):
        raise InvalidRequest(
            "An idempotency key has 1 to 255 ASCII characters, without spaces, quotes and backslashes; leave it out to "
            "have one made"
        )
    return key
