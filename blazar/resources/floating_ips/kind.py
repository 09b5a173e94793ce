# SPDX-License-Identifier: Apache-2.0
"""The kind ``floatingip``: addresses that operators register, and how they are polled. It never changes the cloud."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.network import Network
from blazar.model.base.errors import InvalidInput, pointing_at
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import FLOATING_IP, KindShape, Resource, ResourceDetails, ResourceInventory
from blazar.resources.contract.kind import CalendarReads, CloudResource, Kind, Polled
from blazar.resources.contract.parameters import text_of
from blazar.resources.floating_ips.registration import (
    ADDRESS,
    NETWORK,
    SUBNET,
    AddressRegistration,
    attributes_of,
    list_candidates,
    name_of,
    registrable_text,
)

SHAPE = KindShape(
    "floating IP",
    "floating IPs",
    registration={
        "type": "object",
        "description": "an object",
        "required": [NETWORK, ADDRESS],
        "additionalProperties": False,
        "properties": {
            NETWORK: {
                "type": "string",
                "minLength": 1,
                "maxLength": 64,
                "description": "the id of an external network",
            },
            ADDRESS: {
                "type": "string",
                "maxLength": 64,
                "description": "an IPv4 address in a subnet of the network, outside its allocation pools",
            },
        },
    },
    attributes={name: {"type": "string"} for name in (NETWORK, SUBNET, ADDRESS)},
    public=(NETWORK, SUBNET, ADDRESS),
    shown=(NETWORK, SUBNET, ADDRESS),
    named=True,
)


class FloatingIps(Kind):
    """Addresses outside the cloud's allocation pools."""

    kind = FLOATING_IP
    usual_type = "virtual:floatingip"
    shape = SHAPE

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> FloatingIps:
        """Return the kind; it has no options."""
        return cls(cloud.network)

    def __init__(self, network: Network) -> None:
        self._network = network
        self._registration = AddressRegistration(network)

    def find(self, request: Registration) -> CloudResource:
        """Return the address with a new id. InvalidInput."""
        network_id = text_of(request.given, NETWORK)
        if network_id is None:
            raise InvalidInput(f"Missing parameter {NETWORK}; give the id of an external network")
        with pointing_at(f"/{ADDRESS}"):
            address = registrable_text(request.given.get(ADDRESS))
        return CloudResource(str(uuid.uuid4()), name_of(network_id, address), {NETWORK: network_id, ADDRESS: address})

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return the addresses of external networks that are registered, and some that can be."""
        return list_candidates(self._network, registered)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes of an address that can be reserved. InvalidInput, NotFound (subnet), Conflict."""
        network_id, address = str(in_cloud.attributes[NETWORK]), str(in_cloud.attributes[ADDRESS])
        subnet = self._registration.subnet_for(network_id, address)
        return ResourceDetails(attributes_of(network_id, subnet.id, address), ResourceInventory())

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return whether each address can be assigned, or is where it belongs: a few calls for each network."""
        faults = self._registration.find_faults(registered, uses.holders)
        return Polled({resource.name: faults.get(resource.id) for resource in registered})
