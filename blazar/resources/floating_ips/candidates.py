# SPDX-License-Identifier: Apache-2.0
"""Addresses that operators may register: what external networks have outside of their pools, and nobody uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, ip_address, ip_network
from itertools import islice

from blazar.clouds.ports import Network, NetworkInfo, Subnet
from blazar.model.resource import Resource
from blazar.model.resource_pages import Candidate
from blazar.resources.floating_ips.registration import ADDRESS, NETWORK, by_network, name_of, own_use

MOST = 256
"""Maximum addresses of a subnet that are proposed; those that are registered come on top."""


def candidates(cloud: Network, registered: Collection[Resource]) -> tuple[Candidate, ...]:
    """Return registered addresses of external networks, and of each subnet the first that can be registered beside.

    By networks, subnets and addresses. Two calls for each network that has such an address, and those for the list of
    networks. Only of IPv4: Neutron (29) refuses floating IPs of IPv6.
    """
    networks = sorted(cloud.external_networks(), key=lambda each: (each.name, each.id))
    alike = Counter(each.name for each in networks)
    known = by_network(registered)
    found: list[Candidate] = []
    for network in networks:
        words = network.name if network.name and alike[network.name] == 1 else f"{network.name} {network.id}".strip()
        here = known.get(network.id, {})
        for address in _addresses(cloud, network, here):
            found.append(_candidate(network.id, words, address, here.get(address)))
    return tuple(found)


def _candidate(network_id: str, words: str, address: str, resource: Resource | None) -> Candidate:
    return Candidate(
        name_of(network_id, address),
        f"{address} on {words}",
        "up",
        0,
        resource_id=None if resource is None else resource.external_id,
        registration={NETWORK: network_id, ADDRESS: address},
    )


def _addresses(cloud: Network, network: NetworkInfo, registered: Mapping[str, Resource]) -> Iterator[str]:
    """Yield the registered addresses of a network and those that can be registered, subnet by subnet in order."""
    subnets = sorted(network.subnets, key=_place)
    taken = set(registered)
    if any(next(_unpooled(each), None) for each in subnets):
        taken.update(each.address for each in cloud.floating_ips(network_id=network.id))
        taken.update(cloud.used_addresses(network.id))
    for subnet in subnets:
        block = ip_network(subnet.cidr)
        known = [address for address in registered if ip_address(address) in block]
        free = islice((address for address in _unpooled(subnet) if address not in taken), MOST)
        yield from sorted({*known, *free}, key=lambda address: int(ip_address(address)))


def _place(subnet: Subnet) -> tuple[int, int]:
    """Return where a subnet stands in the order of addresses."""
    block = ip_network(subnet.cidr)
    return block.version, int(block.network_address)


def _unpooled(subnet: Subnet) -> Iterator[str]:
    """Yield the addresses of IPv4 that a subnet neither uses nor allocates itself, in order; pools are not walked."""
    block = ip_network(subnet.cidr)
    if not isinstance(block, IPv4Network):
        return
    number, beyond = int(block.network_address), int(block.broadcast_address) + 1
    pools = sorted((int(ip_address(first)), int(ip_address(last))) for first, last in subnet.pools)
    for first, last in (*pools, (beyond, beyond)):
        for each in range(number, first):
            address = str(IPv4Address(each))
            if own_use(subnet, address) is None:
                yield address
        number = max(number, last + 1)
