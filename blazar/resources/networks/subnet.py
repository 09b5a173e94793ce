# SPDX-License-Identifier: Apache-2.0
"""The subnet that a reserved network has from the start, if its reservation asks for one: servers need one to boot."""

from __future__ import annotations

from dataclasses import asdict
from ipaddress import ip_address, ip_network

from blazar.clouds.ports import NewSubnet
from blazar.model.errors import InvalidInput, pointing_at
from blazar.model.lease import Json
from blazar.resources.parameters import quoted

SUBNET = "subnet"
CIDR, IP_VERSION, SERVERS, DHCP = "cidr", "ip_version", "dns_nameservers", "enable_dhcp"

MOST_SERVERS = 5
"""Name servers of a subnet, as in Neutron by default."""

_BITS = {4: (8, 29), 6: (32, 126)}
"""The shortest and the longest prefix: there has to be room for gateway, DHCP and a server."""


def subnet_of(value: object) -> NewSubnet | None:
    """Return the subnet that a parameter asks for, None for none; InvalidInput."""
    if value is None:
        return None
    known = {CIDR, IP_VERSION, SERVERS, DHCP}
    if not isinstance(value, dict) or CIDR not in value or not value.keys() <= known:
        raise InvalidInput(
            f"{SUBNET} is {quoted(value)}; give null, or an object with {CIDR} and perhaps {IP_VERSION}, {SERVERS} and "
            f'{DHCP}, such as {{"cidr": "10.0.0.0/24"}}',
            pointer=f"/{SUBNET}",
        )
    with pointing_at(f"/{SUBNET}"):
        cidr, version = _cidr(value[CIDR])
        if value.get(IP_VERSION, version) != version or isinstance(value.get(IP_VERSION), bool):
            raise InvalidInput(
                f"{SUBNET}.{IP_VERSION} is {quoted(value[IP_VERSION])}, and {cidr} is of version {version}; leave it "
                f"out",
                pointer=f"/{IP_VERSION}",
            )
        dhcp = value.get(DHCP, True)
        if not isinstance(dhcp, bool):
            raise InvalidInput(f"{SUBNET}.{DHCP} is {quoted(dhcp)}; give true or false", pointer=f"/{DHCP}")
        return NewSubnet(cidr, version, _servers(value.get(SERVERS, []), version), dhcp)


def as_json(subnet: NewSubnet) -> Json:
    """Return a subnet as a reservation keeps it, and as the API shows it."""
    return {**asdict(subnet), SERVERS: list(subnet.dns_nameservers)}


def _cidr(value: object) -> tuple[str, int]:
    try:
        found = ip_network(value if isinstance(value, str) else "")
        least, most = _BITS[found.version]
        fits = least <= found.prefixlen <= most and not (found.is_multicast or found.is_loopback or found.is_link_local)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"{SUBNET}.{CIDR} is {quoted(value)}; give the addresses of a subnet, such as 10.0.0.0/24 or fd00:1::/64, "
            f"with a prefix of 8 to 29 bits, or 32 to 126 for IPv6",
            pointer=f"/{CIDR}",
        )
    return str(found), found.version


def _servers(value: object, version: int) -> tuple[str, ...]:
    try:
        fits = isinstance(value, list) and len(value) <= MOST_SERVERS and all(isinstance(each, str) for each in value)
        found = [ip_address(each) for each in value] if fits and isinstance(value, list) else []
        fits = fits and all(each.version == version for each in found) and len(set(found)) == len(found)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"{SUBNET}.{SERVERS} is {quoted(value)}; give a list of at most {MOST_SERVERS} addresses of IPv{version}",
            pointer=f"/{SERVERS}",
        )
    return tuple(str(each) for each in found)
