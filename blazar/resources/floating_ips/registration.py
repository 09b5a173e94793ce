# SPDX-License-Identifier: Apache-2.0
"""Checks of reservable addresses: which can be registered, and whether registered ones can still be assigned.

Neutron allocates addresses of its allocation pools to any request; an address outside the pools is allocated only to
a request that names it. So a reservable address is outside the pools, on a subnet of an external network, and not in
use.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from itertools import islice

from blazar.clouds.ports.network import FloatingIp, Network, NetworkInfo, Subnet
from blazar.model.base.errors import Conflict, InvalidInput, NotFound
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import PropertyValue, Resource
from blazar.resources.contract.kind import Holders
from blazar.resources.contract.parameters import may_be_reservation, quote

NETWORK, SUBNET, ADDRESS = "floating_network_id", "subnet_id", "floating_ip_address"
_ON_NETWORK = " on network "
"""The attributes of an address on the calendar, and what the API calls them."""

BLAZAR = "blazar"
"""The tag of every floating IP that Blazar creates."""


class AddressRegistration:
    """Checks whether an address can be reserved, at its registration and later."""

    def __init__(self, network: Network) -> None:
        self._network = network

    def subnet_for(self, network_id: str, address: str) -> Subnet:
        """Return the subnet of an address that can be registered.

        Raises InvalidInput (network, or an address that the subnet itself uses), NotFound (subnet), Conflict (in use).
        """
        network = self._network.network(network_id)
        if network is None:
            raise InvalidInput(
                f"{NETWORK} is {quote(network_id)}, and there is no such network; give the id of an external one",
                code="unknown_reference",
                at=f"/{NETWORK}",
            )
        if not network.external:
            raise InvalidInput(
                f"{NETWORK}: network {network_id} is not external, and has no floating IPs; give an external one",
                at=f"/{NETWORK}",
            )
        subnet = next((s for s in network.subnets if ip_address(address) in ip_network(s.cidr)), None)
        if subnet is None:
            ranges = ", ".join(s.cidr for s in network.subnets) or "none"
            raise NotFound(
                f"no subnet of network {network_id} has {ADDRESS} {address}; its subnets are: {ranges}",
                at=f"/{ADDRESS}",
            )
        if reason := use_by_subnet(subnet, address):
            raise InvalidInput(
                f"{ADDRESS} {address} {reason}; give one that the network does not use or allocate itself",
                at=f"/{ADDRESS}",
            )
        found = self._network.floating_ips(network_id=network_id, addresses=[address])
        users = self._network.used_addresses(network_id, [address])
        if found or users:
            holder = _describe_holder(found[0]) if found else f"is in use by {users[address]}"
            raise Conflict(f"{ADDRESS} {address} {holder}; free it first, or register another")
        return subnet

    def find_faults(self, resources: Iterable[Resource], holders: Holders) -> Mapping[int, str]:
        """Return why registered addresses cannot be assigned, by calendar id; those that can be are left out.

        An address that a reservation has and holds (``holders``) is healthy. Makes a few calls per network, whatever
        the number of addresses.
        """
        reasons: dict[int, str] = {}
        for network_id, here in by_network(resources).items():
            reasons |= self._find_misplacement(network_id, here)
            held = self._network.floating_ips(network_id=network_id, addresses=here)
            owners = {f.address: reservation_of(f) for f in held}
            holdings = holders({id_ for id_ in owners.values() if id_}) if any(owners.values()) else {}
            strangers = {
                f.address: _describe_holder(f)
                for f in held
                if here[f.address].name not in holdings.get(owners[f.address] or "", ())
            }
            users = self._network.used_addresses(network_id, here)
            for address, resource in here.items():
                reason = strangers.get(address) or (f"is in use by {users[address]}" if address in users else None)
                if reason:
                    reasons.setdefault(resource.id, f"{address} {reason}")
        return reasons

    def find_obstacles(self, resources: Iterable[Resource]) -> Mapping[int, str]:
        """Return why addresses that are no floating IPs at present cannot be assigned, by calendar id."""
        reasons: dict[int, str] = {}
        for network_id, here in by_network(resources).items():
            reasons |= self._find_misplacement(network_id, here)
            users = self._network.used_addresses(network_id, here)
            for address, user in users.items():
                reasons.setdefault(here[address].id, f"{address} is in use by {user}")
        return reasons

    def _find_misplacement(self, network_id: str, here: Mapping[str, Resource]) -> Mapping[int, str]:
        """Return why the network or subnet rules out addresses of one network, by calendar id."""
        network = self._network.network(network_id)
        reasons = {resource.id: _find_misplacement(network, resource) for resource in here.values()}
        return {id_: reason for id_, reason in reasons.items() if reason}


def name_of(network_id: str, address: str) -> str:
    """Return the name of an address on the calendar; the subnets of a network never overlap."""
    return f"{address}{_ON_NETWORK}{network_id}"


def address_in(name: str) -> str:
    """Return the address of which this is the name on the calendar."""
    return name.partition(_ON_NETWORK)[0]


def attributes_of(network_id: str, subnet_id: str, address: str) -> Mapping[str, PropertyValue]:
    """Return the attributes of an address on the calendar."""
    return {NETWORK: network_id, SUBNET: subnet_id, ADDRESS: address}


def address_of(resource: Resource) -> str:
    """Return the IP address of a resource."""
    return str(resource.attributes[ADDRESS])


def reservation_tag(reservation_id: str) -> str:
    """Return the tag of a reservation's floating IPs, and the description that they are created with."""
    return f"reservation:{reservation_id}"


def reservation_of(found: FloatingIp) -> str | None:
    """Return the id of the reservation that a floating IP was created for, even if it is not tagged yet."""
    texts = (*sorted(found.tags), found.description)
    ids = (text.removeprefix(reservation_tag("")) for text in texts if text.startswith(reservation_tag("")))
    return next((id_ for id_ in ids if may_be_reservation(id_)), None)


def address_text(value: object, field: str) -> str:
    """Return an IP address in its shortest form; InvalidInput if it is not one."""
    try:
        # ``ip_address`` would accept a number.
        parsed = ip_address(value) if isinstance(value, str) else None
    except ValueError:
        parsed = None
    if parsed is None or (isinstance(parsed, IPv6Address) and parsed.scope_id):
        raise InvalidInput(f"{field} is {quote(value)}; give an IP address, as 203.0.113.10")
    return str(parsed)


def registrable_text(value: object) -> str:
    """Return an address that can be registered, in its shortest form; InvalidInput if it is none.

    Neutron (29) makes no floating IP of an IPv6 address, so that each lease with one would fail at its start. One that
    was registered all the same stays readable, and can be deleted.
    """
    address = address_text(value, ADDRESS)
    if ip_address(address).version != 4:
        raise InvalidInput(
            f"{ADDRESS} is {address}, an IPv6 address, of which Neutron makes no floating IP; give an IPv4 address, as "
            "203.0.113.10"
        )
    return address


def by_network(resources: Iterable[Resource]) -> Mapping[str, Mapping[str, Resource]]:
    """Return resources by network id and address."""
    networks: dict[str, dict[str, Resource]] = defaultdict(dict)
    for resource in resources:
        networks[str(resource.attributes[NETWORK])][address_of(resource)] = resource
    return networks


def use_by_subnet(subnet: Subnet, address: str) -> str | None:
    """Return why a subnet itself uses or allocates an address; None if it does not."""
    wanted, block = ip_address(address), ip_network(subnet.cidr)
    if subnet.gateway is not None and wanted == ip_address(subnet.gateway):
        return f"is the gateway of subnet {subnet.id}"
    if block.num_addresses > 2 and wanted == block.network_address:
        return f"is the address of subnet {subnet.id} itself"
    if block.version == 4 and block.num_addresses > 2 and wanted == block.broadcast_address:
        return f"is the broadcast address of subnet {subnet.id}"
    for first, last in subnet.pools:
        # As numbers: addresses of two IP versions cannot be compared.
        if int(ip_address(first)) <= int(wanted) <= int(ip_address(last)):
            return f"is in an allocation pool of subnet {subnet.id} ({first} to {last})"
    return None


def _find_misplacement(network: NetworkInfo | None, resource: Resource) -> str | None:
    address, subnet_id = address_of(resource), resource.attributes[SUBNET]
    if network is None:
        return f"{address}: its network is gone"
    if not network.external:
        return f"{address}: its network {network.id} is no longer external"
    subnet = next((s for s in network.subnets if s.id == subnet_id), None)
    if subnet is None:
        return f"{address}: its subnet {subnet_id} is gone"
    reason = use_by_subnet(subnet, address)
    return reason and f"{address} {reason}"


def _describe_holder(found: FloatingIp) -> str:
    return f"is a floating IP of project {found.project_id}"


MOST = 256
"""Maximum addresses of a subnet that are proposed; those that are registered come on top."""


def list_candidates(cloud: Network, registered: Collection[Resource]) -> tuple[Candidate, ...]:
    """Return registered addresses of external networks, and of each subnet the first that can be registered beside.

    By networks, subnets and addresses. Two calls for each network that has such an address, and those for the list of
    networks. Only of IPv4: Neutron (29) refuses floating IPs of IPv6.
    """
    networks = sorted(cloud.external_networks(), key=lambda network: (network.name, network.id))
    alike = Counter(network.name for network in networks)
    known = by_network(registered)
    found: list[Candidate] = []
    for network in networks:
        words = network.name if network.name and alike[network.name] == 1 else f"{network.name} {network.id}".strip()
        here = known.get(network.id, {})
        for address in _iterate_registrable_addresses(cloud, network, here):
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


def _iterate_registrable_addresses(
    cloud: Network, network: NetworkInfo, registered: Mapping[str, Resource]
) -> Iterator[str]:
    """Yield the registered addresses of a network and those that can be registered, subnet by subnet in order."""
    subnets = sorted(network.subnets, key=_sort_key_of)
    taken = set(registered)
    if any(next(_iterate_unpooled(subnet), None) for subnet in subnets):
        taken.update(floating_ip.address for floating_ip in cloud.floating_ips(network_id=network.id))
        taken.update(cloud.used_addresses(network.id))
    for subnet in subnets:
        block = ip_network(subnet.cidr)
        known = [address for address in registered if ip_address(address) in block]
        free = islice((address for address in _iterate_unpooled(subnet) if address not in taken), MOST)
        yield from sorted({*known, *free}, key=lambda address: int(ip_address(address)))


def _sort_key_of(subnet: Subnet) -> tuple[int, int]:
    """Return where a subnet stands in the order of addresses."""
    block = ip_network(subnet.cidr)
    return block.version, int(block.network_address)


def _iterate_unpooled(subnet: Subnet) -> Iterator[str]:
    """Yield the addresses of IPv4 that a subnet neither uses nor allocates itself, in order; pools are not walked."""
    block = ip_network(subnet.cidr)
    if not isinstance(block, IPv4Network):
        return
    number, beyond = int(block.network_address), int(block.broadcast_address) + 1
    pools = sorted((int(ip_address(first)), int(ip_address(last))) for first, last in subnet.pools)
    for first, last in (*pools, (beyond, beyond)):
        for address_number in range(number, first):
            address = str(IPv4Address(address_number))
            if use_by_subnet(subnet, address) is None:
                yield address
        number = max(number, last + 1)
