# SPDX-License-Identifier: Apache-2.0
"""What a request for a reservation of a network may have."""

from __future__ import annotations

from blazar.resources.networks.subnet import MOST_SERVERS
from blazar.resources.schemas import NOTICE, REQUIREMENT, TEXT, a_request

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
