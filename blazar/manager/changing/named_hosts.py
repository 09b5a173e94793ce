# SPDX-License-Identifier: Apache-2.0
"""Hosts of a reservation that a request names, as the caller sees them: which they are, and which are given up."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationChange
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.resources.resource import FLOATING_IP, NAMED_KINDS, Resource
from blazar.model.surgery import Terms
from blazar.resources.contract.parameters import MAX, MIN
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Given, Task
from blazar.resources.floating_ips.registration import address_in


def mark_given_up(runtime: Runtime, lease: Lease, tasks: Iterable[Task], change: LeaseChange) -> Iterator[Task]:
    """Yield the reservations of a lease with the hosts that a change takes from them; most give up none.

    InvalidInput, Conflict. Reservations that the lease does not have are told of elsewhere.
    """
    places = {asked.id: (number, asked) for number, asked in enumerate(change.reservations) if asked.give_up}
    terms = Terms(change.asked_by or Actor(lease.user_id, lease.project_id), names=change.names)
    for task in tasks:
        if task.reservation.id not in places:
            yield task
            continue
        number, asked = places[task.reservation.id]
        check_whole_host(runtime, task.reservation)
        yield replace(task, given_up=_find_hosts(task, asked, terms, f"/reservations/{number}/give_up"))


def _find_hosts(task: Task, asked: ReservationChange, terms: Terms, pointer: str) -> frozenset[int]:
    ids: set[int] = set()
    for index, text in enumerate(asked.give_up):
        at, what = f"{pointer}/{index}", f"host of reservation {task.reservation.id}"
        host = find_named(task.resources, text, terms, pointer=at, what=what)
        check_not_emptied(host, text, at)
        if host.id in ids:
            raise InvalidInput(f"give_up names host {text[:80]} twice", at=at)
        ids.add(host.id)
    if len(ids) == len(task.resources):
        sentence = "give_up names all hosts of the reservation; it keeps one at least: end or delete the lease instead"
        raise InvalidInput(sentence, at=pointer)
    return frozenset(ids)


def reduce_count(
    kind: ResourceType, reservation: Reservation, parameters: Content, asked: ReservationChange, left: int
) -> Content:
    """Return the parameters of a reservation that gives up hosts by name, and has so many ``left``. InvalidInput."""
    before = reservation.parameters.values
    for field in (MIN, MAX):
        if field in asked.parameters and asked.parameters[field] not in (before.get(field), left):
            sentence = (
                f"{field} is given beside give_up, after which the reservation has {left} hosts; leave {field} out"
            )
            raise InvalidInput(sentence, at=f"/{field}")
    least = min(int(str(parameters.values[MIN])), left)
    return kind.changed(parameters, Given({MIN: least, MAX: left}))


def find_named(resources: Iterable[Resource], text: str, terms: Terms, *, pointer: str, what: str) -> Resource:
    """Return the resource that a caller means: by its label, or by id or name for those who see these.

    InvalidInput, which says nothing of resources that the caller does not see.
    """
    for resource in resources:
        shown = {resource.label}
        if terms.asked_by.operator:
            shown |= {resource.external_id, resource.name}
        elif terms.names:
            shown.add(resource.name)
        if resource.kind in NAMED_KINDS:
            # Everybody sees what these are.
            shown |= {
                resource.external_id,
                address_in(resource.name) if resource.kind == FLOATING_IP else resource.name,
            }
        if text in shown:
            return resource
    raise InvalidInput(f"{text[:80]} is no {what}", code="unknown_reference", at=pointer)


def check_whole_host(runtime: Runtime, reservation: Reservation) -> None:
    """Raise Conflict if a reservation is not of whole hosts."""
    if not runtime.type_of(reservation).has_named_hosts:
        types = ", ".join(name for name, kind in runtime.types.items() if kind.has_named_hosts)
        raise Conflict(
            f"reservation {reservation.id} is of type {reservation.resource_type}; only reservations of whole hosts "
            f"({types}) have hosts that can be swapped",
            code="invalid_state",
        )


def check_not_emptied(host: Resource, text: str, pointer: str) -> None:
    """Raise Conflict if a host was emptied of others' servers for its lease: only the end returns it to these."""
    if host.evacuable:
        raise Conflict(
            f"host {text[:80]} was emptied for the lease and stays with it until its end; only hosts that are free for "
            "leases anyway are swapped",
            at=pointer,
        )
