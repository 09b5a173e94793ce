# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of a network, and the schema of a request for it."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from blazar.clouds.ports.segments import NewSubnet
from blazar.model.base.errors import InvalidInput, pointing_at
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Requirement
from blazar.resources.contract.actions import BEFORE_END, simple_action
from blazar.resources.contract.parameters import quote, requirement_of, requirement_text, stored_maybe_text, stored_text
from blazar.resources.contract.schemas import NOTICE, REQUIREMENT, TEXT, a_request

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
            f"{SUBNET} is {quote(value)}; give null, or an object with {CIDR} and perhaps {IP_VERSION}, {SERVERS} and "
            f'{DHCP}, such as {{"cidr": "10.0.0.0/24"}}',
            at=f"/{SUBNET}",
        )
    with pointing_at(f"/{SUBNET}"):
        cidr, version = _parse_cidr(value[CIDR])
        if value.get(IP_VERSION, version) != version or isinstance(value.get(IP_VERSION), bool):
            raise InvalidInput(
                f"{SUBNET}.{IP_VERSION} is {quote(value[IP_VERSION])}, and {cidr} is of version {version}; leave it "
                f"out",
                at=f"/{IP_VERSION}",
            )
        dhcp = value.get(DHCP, True)
        if not isinstance(dhcp, bool):
            raise InvalidInput(f"{SUBNET}.{DHCP} is {quote(dhcp)}; give true or false", at=f"/{DHCP}")
        return NewSubnet(cidr, version, _checked_name_servers(value.get(SERVERS, []), version), dhcp)


def subnet_as_json(subnet: NewSubnet) -> Json:
    """Return a subnet as a reservation keeps it, and as the API shows it."""
    return {**asdict(subnet), SERVERS: list(subnet.dns_nameservers)}


def _parse_cidr(value: object) -> tuple[str, int]:
    try:
        found = ip_network(value if isinstance(value, str) else "")
        least, most = _BITS[found.version]
        fits = least <= found.prefixlen <= most and not (found.is_multicast or found.is_loopback or found.is_link_local)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"{SUBNET}.{CIDR} is {quote(value)}; give the addresses of a subnet, such as 10.0.0.0/24 or fd00:1::/64, "
            f"with a prefix of 8 to 29 bits, or 32 to 126 for IPv6",
            at=f"/{CIDR}",
        )
    return str(found), found.version


def _checked_name_servers(value: object, version: int) -> tuple[str, ...]:
    try:
        fits = isinstance(value, list) and len(value) <= MOST_SERVERS and all(isinstance(a, str) for a in value)
        found = [ip_address(address) for address in value] if fits and isinstance(value, list) else []
        fits = fits and all(address.version == version for address in found) and len(set(found)) == len(found)
    except ValueError:
        fits = False
    if not fits:
        raise InvalidInput(
            f"{SUBNET}.{SERVERS} is {quote(value)}; give a list of at most {MOST_SERVERS} addresses of IPv{version}",
            at=f"/{SERVERS}",
        )
    return tuple(str(address) for address in found)


SCHEMA = a_request(
    {
        "network_name": {
            **TEXT,
            "minLength": 1,
            "title": "Name of the network",
            "description": "a name of 1 to 255 characters",
        },
        "network_description": {**TEXT, "title": "Description", "default": ""},
        "network_properties": {**REQUIREMENT, "title": "Properties of the network", "default": []},
        "resource_properties": {**REQUIREMENT, "default": []},
        "subnet": {
            "type": ["object", "null"],
            "required": ["cidr"],
            "additionalProperties": False,
            "properties": {
                "cidr": {
                    **TEXT,
                    "maxLength": 64,
                    "title": "Addresses",
                    "description": "a range of addresses, such as 10.0.0.0/24",
                },
                "ip_version": {"enum": [4, 6], "title": "IP version"},
                "dns_nameservers": {
                    "type": "array",
                    "maxItems": MOST_SERVERS,
                    "items": {**TEXT, "maxLength": 64},
                    "title": "Name servers",
                },
                "enable_dhcp": {"type": "boolean", "title": "DHCP"},
            },
            "title": "Subnet",
            "description": 'null, or a subnet that the network has from the start, such as {"cidr": "10.0.0.0/24"}',
        },
        "before_end": NOTICE,
    },
    required=("network_name",),
    before_start=("network_name", "network_description", "subnet"),
    example={"network_name": "lab", "resource_properties": ["==", "$physical_network", "physnet1"]},
)


NAME, DESCRIPTION = "network_name", "network_description"


REQUIREMENTS = ("network_properties", "resource_properties")


LONGEST = 255
"""Maximum characters of a name and of a description in Neutron."""


@dataclass(frozen=True, slots=True)
class NetworkParameters:
    """The parameters of a reservation of a network, named as in the API."""

    network_name: str
    network_description: str
    network_properties: str | None
    resource_properties: str | None
    before_end: str
    subnet: NewSubnet | None = None

    @classmethod
    def checked(cls, given: Json) -> NetworkParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        action = simple_action(given, "networks")
        name = given[NAME]
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST:
            raise InvalidInput(
                f"{NAME} is {quote(name)}; give a name for the network, of 1 to {LONGEST} characters", at=f"/{NAME}"
            )
        network, resource = (requirement_text(given[field], field) for field in REQUIREMENTS)
        return cls(
            name, _checked_description(given[DESCRIPTION]), network, resource, action, subnet_of(given.get(SUBNET))
        )

    @classmethod
    def of(cls, content: Content) -> NetworkParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_text(content, NAME),
            stored_text(content, DESCRIPTION, ""),
            stored_maybe_text(content, "network_properties"),
            stored_maybe_text(content, "resource_properties"),
            stored_text(content, BEFORE_END, "default"),
            subnet_of(content.values.get(SUBNET)),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them; a subnet only if one is asked for, as 1.0 knows none."""
        kept = asdict(self)
        del kept[SUBNET]
        return Content(kept if self.subnet is None else {**kept, SUBNET: subnet_as_json(self.subnet)})

    @property
    def requirement(self) -> Requirement:
        """Return what a segment must have."""
        return requirement_of(network_properties=self.network_properties, resource_properties=self.resource_properties)


def _checked_description(given: object) -> str:
    if not isinstance(given, str | int | float | None):
        raise InvalidInput(f"{DESCRIPTION} is {quote(given)}; give a string", at=f"/{DESCRIPTION}")
    text = "" if given is None else str(given)
    if len(text) > LONGEST:
        raise InvalidInput(f"{DESCRIPTION} has {len(text)} characters; give at most {LONGEST}", at=f"/{DESCRIPTION}")
    return text
