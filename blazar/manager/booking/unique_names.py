# SPDX-License-Identifier: Apache-2.0
"""Names that a project can have only once at a time, as those of stacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.window import enclose
from blazar.model.leases.lease import Lease
from blazar.resources.contract.parameters import quote
from blazar.store.leases.leases import NamedReservation


def check_names(runtime: Runtime, lease: Lease) -> None:
    """Refuse names that another reservation of the lease has, or another lease of the project at the time.

    InvalidInput, Conflict. Two requests at the same time can both pass: then what starts later waits for the other.
    """

    def named(resource_type: str, parameter: str) -> tuple[NamedReservation, ...]:
        return runtime.store.leases.find_named_reservations(lease.project_id, resource_type, parameter, lease.window)

    _check(runtime, lease, named)


def find_taken_names(
    runtime: Runtime, leases: Sequence[Lease], without: frozenset[str] = frozenset()
) -> Mapping[str, Conflict]:
    """Return which of some leases of a project have names that others have at the time, and why that cannot be.

    By lease; those ``without`` have none. One statement for each type, however many leases there are. InvalidInput.
    """
    found: dict[str, Conflict] = {}
    if not leases or not any(True for _ in _names(runtime, leases[0])):
        return found
    span = enclose([lease.window for lease in leases])

    @cache
    def named(resource_type: str, parameter: str) -> tuple[NamedReservation, ...]:
        found = runtime.store.leases.find_named_reservations(leases[0].project_id, resource_type, parameter, span)
        return tuple(reservation for reservation in found if reservation.lease_id not in without)

    for lease in leases:
        try:
            _check(runtime, lease, named)
        except Conflict as error:
            found[lease.id] = error
    return found


def _check(runtime: Runtime, lease: Lease, named: Callable[[str, str], tuple[NamedReservation, ...]]) -> None:
    seen: dict[tuple[str, str, str], int] = {}
    others: dict[str, tuple[NamedReservation, ...]] = {}
    for number, resource_type, parameter, region, name in _names(runtime, lease):
        pointer = f"/reservations/{number}/{parameter}"
        if (first := seen.setdefault((resource_type, region, name), number)) != number:
            raise InvalidInput(
                f"{parameter} is {quote(name)}, which reservations[{first}] has; a project can have a name once: give "
                f"another one, or leave it out",
                at=pointer,
            )
        if resource_type not in others:
            # One statement for each type.
            others[resource_type] = named(resource_type, parameter)
        for other in others[resource_type]:
            elsewhere = other.lease_id != lease.id and other.window.overlaps(lease.window)
            if elsewhere and (other.region, other.name) == (region, name):
                raise Conflict(
                    f"{parameter} is {quote(name)}, which lease {other.lease_id} has at the same time; a project can "
                    f"have a name once: give another one, leave it out, or choose another time",
                    at=pointer,
                )


def _names(runtime: Runtime, lease: Lease) -> Iterator[tuple[int, str, str, str, str]]:
    """Yield number, type, parameter, region and name of each reservation that names what it makes."""
    for number, reservation in enumerate(lease.asked_for):
        kind = runtime.types.get(reservation.resource_type)
        parameter = None if kind is None else kind.unique
        if parameter is not None and isinstance(name := reservation.parameters.values.get(parameter), str):
            yield number, reservation.resource_type, parameter, reservation.region, name
