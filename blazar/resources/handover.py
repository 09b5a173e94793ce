# SPDX-License-Identifier: Apache-2.0
"""Floating IPs on their way to a project and back.

What is ours is told by the tag of the reservation, or by the description that a floating IP is created with: the tags
come a call later, and a crash may come between. Nothing else is ever touched, whosever address it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress

from blazar.clouds.ports import FloatingIp, Network
from blazar.model.errors import BlazarError, CloudUnavailable, Conflict, NotFound
from blazar.model.resource import Resource
from blazar.resources.addresses import (
    BLAZAR,
    NETWORK,
    SUBNET,
    AddressRegistration,
    address_of,
    by_network,
    mark,
    reservation_of,
)
from blazar.resources.base import Unusable, Work


class Handover:
    """Ensures what reservations of addresses have in the cloud."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._registration = AddressRegistration(network)

    def give(self, work: Work) -> None:
        """Ensure that the project has the addresses as floating IPs, with tags, and no others of the reservation.

        Unusable for those that it can not have; the others are there then. Conflict if one that is to go is attached.
        """
        wanted = {address_of(resource): resource for resource in work.resources}
        held = {found.address: found for found in self._at(work.resources)}
        mine = {address: found for address, found in held.items() if _is_ours(found, work)}
        missing = [resource for address, resource in wanted.items() if address not in held]
        reasons = dict(self._registration.obstacles(missing)) if missing else {}
        for resource in missing:
            if resource.id not in reasons:
                made = self._create(work, resource)
                held[made.address] = made
                if _is_ours(made, work):
                    mine[made.address] = made
        for found in mine.values():
            tags = found.tags | {BLAZAR, mark(work.reservation.id)}
            if found.tags != tags:
                self._tag(found, tags)
        for address in held.keys() - mine.keys():
            reasons[wanted[address].id] = f"{address} is a floating IP of project {held[address].project_id}"
        if reasons:
            raise Unusable(reasons)
        surplus = [f for f in self._network.floating_ips(tag=mark(work.reservation.id)) if f.address not in wanted]
        self._take([found for found in surplus if _is_ours(found, work)], work, unless_attached=True)

    def take(self, work: Work, resources: Collection[Resource] | None = None) -> None:
        """Ensure that the project has none of the addresses any more (None: nothing of the reservation)."""
        found = {f.id: f for f in self._at(work.resources if resources is None else resources)}
        if resources is None:
            found |= {f.id: f for f in self._network.floating_ips(tag=mark(work.reservation.id))}
        self._take([f for f in found.values() if _is_ours(f, work)], work, unless_attached=False)

    def reservations(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have floating IPs."""
        found = [*self._network.floating_ips(tag=BLAZAR)]
        for network_id, here in by_network(resources).items():
            found += self._network.floating_ips(network_id=network_id, addresses=here)
        return frozenset(id_ for floating_ip in found if (id_ := reservation_of(floating_ip)))

    def attached(self, work: Work) -> Mapping[int, int]:
        """Return which addresses are attached, as one of each, by calendar id."""
        ids = {address_of(resource): resource.id for resource in work.resources}
        return {ids[f.address]: 1 for f in self._at(work.resources) if f.attached and _is_ours(f, work)}

    def _at(self, resources: Iterable[Resource]) -> tuple[FloatingIp, ...]:
        """Return whoever's floating IPs at the addresses of one reservation, which are all on one network."""
        addresses = [address_of(resource) for resource in resources]
        if not addresses:
            return ()
        network_id = str(next(iter(resources)).attributes[NETWORK])
        return self._network.floating_ips(network_id=network_id, addresses=addresses)

    def _create(self, work: Work, resource: Resource) -> FloatingIp:
        """Return the floating IP at an address: ours, or that of somebody who was faster."""
        try:
            return self._network.create_floating_ip(
                network_id=str(resource.attributes[NETWORK]),
                subnet_id=str(resource.attributes[SUBNET]),
                address=address_of(resource),
                project_id=work.lease.project_id,
                description=mark(work.reservation.id),
            )
        except Conflict:
            late = self._at([resource])
            if not late:
                # The project's quota, for one; what it says is for the user to read.
                raise
            return late[0]

    def _tag(self, found: FloatingIp, tags: Collection[str]) -> None:
        try:
            self._network.tag_floating_ip(found.id, tags)
        except NotFound as error:
            # Its user was faster, and is to have it anyway.
            raise CloudUnavailable(f"{found.address} was deleted while it was being handed over") from error

    def _take(self, found: Collection[FloatingIp], work: Work, *, unless_attached: bool) -> None:
        """Delete floating IPs, whatever happens to some of them; then raise what did."""
        attached = [f.address for f in found if f.attached]
        if attached and unless_attached:
            raise Conflict(
                f"{', '.join(sorted(attached))} of reservation {work.reservation.id} is attached to a port and would "
                f"go; detach it first"
            )
        failures: list[BlazarError] = []
        for floating_ip in found:
            try:
                # Whoever has it may delete it: then it is gone as it should be.
                with suppress(NotFound):
                    if floating_ip.attached:
                        self._network.detach_floating_ip(floating_ip.id)
                    self._network.delete_floating_ip(floating_ip.id)
            except BlazarError as error:
                failures.append(error)
        if failures:
            raise failures[0]


def _is_ours(found: FloatingIp, work: Work) -> bool:
    sign = mark(work.reservation.id)
    return found.project_id == work.lease.project_id and (sign in found.tags or found.description == sign)
