# SPDX-License-Identifier: Apache-2.0
"""A reservation in lines for people: what was asked for, what is promised, and how it is used."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from typing import TYPE_CHECKING

from blazarclient.commands.base import local

if TYPE_CHECKING:
    from blazarclient.library import Reservation
    from blazarclient.library.values import Allocation, OfferedReservation

_RESOURCES = "resources"
"""What a generic reservation has: its resources, with the answers of their hooks."""


def lines_of(reservation: Reservation, zone: tzinfo) -> Iterator[str]:
    """Yield all of a reservation of a lease."""
    yield from _held(reservation)
    yield from (
        f"  {each.id} was deleted, seen {local(each.deleted_at, zone)}" for each in reservation.made if each.deleted_at
    )
    yield from (f"  {line}" for line in _answered(reservation.parameters.get(_RESOURCES)))
    yield from (f"  {line}" for line in how_to_use(reservation))
    # Nothing is to be put onto what a stack has: that is for what the stack makes.
    yield from (f"  {line}" for child in reservation.children for line in _held(child))


def _held(reservation: Reservation) -> Iterator[str]:
    where = f" in {reservation.region}" if reservation.region else ""
    yield f"{reservation.resource_type} {reservation.id}, {reservation.status}{where}"
    yield f"  {asked_for(reservation)}"
    yield from (f"  {describe_allocation(allocation)}, {allocation.status}" for allocation in reservation.allocations)


def asked_for(reservation: Reservation | OfferedReservation) -> str:
    """Return what a reservation asks for, as its options say it."""
    # What is an object is of the cloud, and for programs.
    items = ((key, value) for key, value in reservation.parameters.items() if key != _RESOURCES)
    given = {key: value for key, value in items if value not in (None, [], "") and not isinstance(value, Mapping)}
    return ", ".join(f"{key}={_in_a_line(value)}" for key, value in given.items())


def _in_a_line(value: object) -> str:
    """Return a value as it can stand in a line of a terminal: a template only as the number of its lines."""
    text = str(value)
    if (lines := len(text.splitlines())) > 1:
        return f"({lines} lines)"
    return text if text.isprintable() else json.dumps(text)


def _answered(resources: object) -> Iterator[str]:
    """Yield what the hooks of generic resources answered, in ASCII: nothing of it reaches a terminal as it is."""
    for each in resources if isinstance(resources, Sequence) else ():
        if isinstance(each, Mapping) and each.get("answer"):
            yield f"{each.get('name')}: {json.dumps(each['answer'])}"


def describe_allocation(allocation: Allocation) -> str:
    """Return which resource is promised."""
    amount = f" x {allocation.count}" if allocation.count > 1 else ""
    return f"{allocation.resource.type} {allocation.resource.name or allocation.resource.id}{amount}"


def how_to_use(reservation: Reservation) -> Iterator[str]:
    """Yield commands that put something onto what is reserved."""
    use = reservation.use
    hints = "".join(f" --hint {key}={value}" for key, value in use.scheduler_hints.items())
    group = f" --hint group={use.server_group_id}" if use.server_group_id else ""
    if hints or use.flavor_id:
        flavor = use.flavor_id or "<flavor>"
        yield f"openstack server create --flavor {flavor}{hints}{group} --image <image> <name>"
    for address in use.addresses:
        yield f"openstack server add floating ip <server> {address}"
