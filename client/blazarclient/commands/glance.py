# SPDX-License-Identifier: Apache-2.0
"""A lease at a glance: what it has, and how long it lasts yet. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from blazarclient.library import Lease, Reservation

COLUMNS = ("id", "name", "what", "status", "remaining")
"""The columns of a list that somebody looks at; programs get other ones."""

FIELDS = ("id", "name", "status", "start_date", "end_date", "reservations")
"""What a service tells of a lease for these columns."""

SHORT_ID = 8
"""Characters of an id in a narrow table; commands take them for the lease."""

NARROW = 110
"""Columns of a terminal from which an id has its room in one line."""

MOST_NAMES = 2

_NOUNS: Mapping[str, str] = {
    "physical:host": "host",
    "virtual:instance": "instance",
    "flavor:instance": "instance",
    "virtual:floatingip": "address",
    "virtual:server": "server",
    "virtual:volume": "volume",
    "virtual:stack": "stack",
}
_OVER = ("TERMINATED", "ERROR", "TIMED_OUT")
_SIZES = ("amount", "count", "max", "min")


def merged(items: Iterable[Mapping[str, Any]], told: Iterable[Lease]) -> Iterator[Lease]:
    """Yield leases of microversion 1.0 in their order, as a later one has told them: it lists those that last only."""
    # Imported only here: the modules of commands are imported for the help of all, too.
    from blazarclient.library.decoding import decode
    from blazarclient.library.values import Lease

    current = {lease.id: lease for lease in told}
    for item in items:
        yield current.get(item.get("id")) or decode(Lease, {key: item[key] for key in FIELDS if key in item})


def row_of(lease: Lease, now: datetime) -> tuple[Any, ...]:
    """Return the cells of a lease."""
    return lease.id, lease.name, contents_of(lease), lease.status, time_left_of(lease, now)


def contents_of(lease: Lease) -> str:
    """Return what a lease has: the names of few resources, or how many of which type."""
    return ", ".join(dict.fromkeys(_of(each) for each in lease.reservations))


def _of(reservation: Reservation) -> str:
    noun = _NOUNS.get(reservation.resource_type, reservation.resource_type)
    names = [each.resource.name for each in reservation.allocations if each.resource.name]
    if reservation.resource_type == "physical:host" and 0 < len(names) <= MOST_NAMES:
        return ", ".join(sorted(names))
    parameters = reservation.parameters
    amount = next((n for key in _SIZES if isinstance(n := parameters.get(key), int)), 1)
    amount = len(reservation.allocations) if reservation.resource_type == "physical:host" and names else amount
    plural = "es" if noun.endswith("s") else "s"
    return f"{amount} {noun}{plural if amount != 1 else ''}"


def time_left_of(lease: Lease, now: datetime) -> str:
    """Return how long a lease lasts yet, or how long it will last and when it starts; nothing if it is over."""
    if lease.status in _OVER or lease.start_date is None or lease.end_date is None or lease.end_date <= now:
        return ""
    if lease.status == "WAITING":
        return f"waits, {_span(lease.end_date - lease.start_date)}"
    if lease.start_date > now:
        return f"{_span(lease.end_date - lease.start_date)}, in {_span(lease.start_date - now)}"
    return _span(lease.end_date - now)


def _span(length: timedelta) -> str:
    """Return the two largest units of a length of time."""
    minutes, seconds = divmod(int(length.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    units = ((days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s"))
    first = next((at for at, (number, _) in enumerate(units) if number), 3)
    return " ".join(f"{number}{unit}" for number, unit in units[first : first + 2] if number) or "0s"
