# SPDX-License-Identifier: Apache-2.0
"""Assigns floating IPs to a project and deletes them.

A floating IP of a reservation is recognized by the reservation's tag, or by the description that it is created with:
tags are set by a later call, and a crash may happen in between. No other floating IP is changed, whatever its address.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from blazar.clouds.ports.network import FloatingIp, Network
from blazar.model.base.errors import BlazarError, CloudUnavailable, Conflict, NotFound
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task, Unusable
from blazar.resources.floating_ips.registration import (
    BLAZAR,
    NETWORK,
    SUBNET,
    AddressRegistration,
    address_of,
    by_network,
    reservation_of,
    reservation_tag,
)


class FloatingIpAssignment:
    """Ensures the floating IPs of address reservations."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._registration = AddressRegistration(network)

    def give_addresses(self, task: Task) -> None:
        """Ensure that the project has exactly these addresses of the reservation as tagged floating IPs.

        Raises Unusable for those that it cannot have, after the others were assigned; Conflict if one to remove is
        attached.
        """
        wanted = {address_of(resource): resource for resource in task.resources}
        held = {found.address: found for found in self._floating_ips_at(task.resources)}
        mine = {address: found for address, found in held.items() if _is_ours(found, task)}
        missing = [resource for address, resource in wanted.items() if address not in held]
        reasons = dict(self._registration.find_obstacles(missing)) if missing else {}
        for resource in missing:
            if resource.id not in reasons:
                made = self._create_floating_ip(task, resource)
                held[made.address] = made
                if _is_ours(made, task):
                    mine[made.address] = made
        for found in mine.values():
            tags = found.tags | {BLAZAR, reservation_tag(task.reservation.id)}
            if found.tags != tags:
                self._set_tags(found, tags)
        for address in held.keys() - mine.keys():
            reasons[wanted[address].id] = f"{address} is a floating IP of project {held[address].project_id}"
        if reasons:
            raise Unusable(reasons)
        surplus = [found for found in self._floating_ips_of(task) if found.address not in wanted]
        self._delete_floating_ips(surplus, task, unless_attached=True)

    def take_addresses(self, task: Task, resources: Collection[Resource] | None = None) -> None:
        """Ensure that the project no longer has the addresses (None: all of the reservation)."""
        found = {f.id: f for f in self._floating_ips_at(task.resources if resources is None else resources)}
        if resources is None:
            found |= {f.id: f for f in self._floating_ips_of(task)}
        self._delete_floating_ips([f for f in found.values() if _is_ours(f, task)], task, unless_attached=False)

    def reservations_with_addresses(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have floating IPs."""
        found = [*self._network.floating_ips(tag=BLAZAR)]
        for network_id, here in by_network(resources).items():
            found += self._network.floating_ips(network_id=network_id, addresses=here)
        return frozenset(id_ for floating_ip in found if (id_ := reservation_of(floating_ip)))

    def count_attached(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each attached address, by calendar id."""
        ids = {address_of(resource): resource.id for resource in task.resources}
        return {ids[f.address]: 1 for f in self._floating_ips_at(task.resources) if f.attached and _is_ours(f, task)}

    def _floating_ips_at(self, resources: Iterable[Resource]) -> tuple[FloatingIp, ...]:
        """Return all projects' floating IPs at the addresses of one reservation, which are on one network."""
        addresses = [address_of(resource) for resource in resources]
        if not addresses:
            return ()
        network_id = str(next(iter(resources)).attributes[NETWORK])
        return self._network.floating_ips(network_id=network_id, addresses=addresses)

    def _floating_ips_of(self, task: Task) -> tuple[FloatingIp, ...]:
        """Return the floating IPs of the reservation wherever they are, also those that no later call has tagged."""
        sign = reservation_tag(task.reservation.id)
        found = (*self._network.floating_ips(tag=sign), *self._network.floating_ips(description=sign))
        return tuple({f.id: f for f in found if _is_ours(f, task)}.values())

    def _create_floating_ip(self, task: Task, resource: Resource) -> FloatingIp:
        """Create the floating IP of an address and return it, or the one that somebody else created first."""
        try:
            return self._network.create_floating_ip(
                network_id=str(resource.attributes[NETWORK]),
                subnet_id=str(resource.attributes[SUBNET]),
                address=address_of(resource),
                project_id=task.lease.project_id,
                description=reservation_tag(task.reservation.id),
            )
        except Conflict:
            late = self._floating_ips_at([resource])
            if not late:
                # For example the project's quota; the user reads the message.
                raise
            return late[0]

    def _set_tags(self, found: FloatingIp, tags: Collection[str]) -> None:
        try:
            self._network.set_address_tags(found.id, tags)
        except NotFound as error:
            # Its user deleted it; a retry creates it again.
            raise CloudUnavailable(f"{found.address} was deleted while it was being assigned") from error

    def _delete_floating_ips(self, found: Collection[FloatingIp], task: Task, *, unless_attached: bool) -> None:
        """Delete all floating IPs, even if some fail; then raise the first failure."""
        attached = [f.address for f in found if f.attached]
        if attached and unless_attached:
            raise Conflict(
                f"{', '.join(sorted(attached))} of reservation {task.reservation.id} is attached to a port and would "
                f"be deleted; detach it first"
            )
        failures: list[BlazarError] = []
        for floating_ip in found:
            try:
                # Its project may delete it at the same time.
                with suppress(NotFound):
                    if floating_ip.attached:
                        self._network.detach_floating_ip(floating_ip.id)
                    self._network.delete_floating_ip(floating_ip.id)
            except BlazarError as error:
                failures.append(error)
        if failures:
            raise failures[0]


def _is_ours(found: FloatingIp, task: Task) -> bool:
    sign = reservation_tag(task.reservation.id)
    return found.project_id == task.lease.project_id and (sign in found.tags or found.description == sign)
