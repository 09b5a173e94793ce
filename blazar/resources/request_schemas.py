# SPDX-License-Identifier: Apache-2.0
"""The schemas of our resource types by name, for the API, which does not load the types themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from blazar.model.base.json_text import Json
from blazar.resources.contract.schemas import Schema
from blazar.resources.devices.type import SCHEMA as DEVICES
from blazar.resources.floating_ips.parameters import SCHEMA as FLOATING_IPS
from blazar.resources.generic.parameters import SCHEMA as GENERIC
from blazar.resources.hosts.parameters import SCHEMA as HOSTS
from blazar.resources.instances.schemas import FLAVOR, VIRTUAL
from blazar.resources.networks.parameters import SCHEMA as NETWORKS
from blazar.resources.servers.schema import SCHEMA as SERVERS
from blazar.resources.stacks.parameters import SCHEMA as STACKS
from blazar.resources.stacks.source import StackSource
from blazar.resources.volumes.parameters import SCHEMA as VOLUMES

SCHEMAS: Mapping[str, Schema] = {
    "physical:host": HOSTS,
    "virtual:instance": VIRTUAL,
    "flavor:instance": FLAVOR,
    "virtual:floatingip": FLOATING_IPS,
    "network": NETWORKS,
    "device": DEVICES,
    "generic": GENERIC,
    "virtual:volume": VOLUMES,
    "virtual:server": SERVERS,
    "virtual:stack": STACKS,
}
"""What a request for a reservation of each of our types may have."""

DOCUMENTS: Mapping[str, Callable[[Json], object]] = {"virtual:stack": StackSource.checked}
"""What parses the documents of a request for a reservation, of the types that have some; InvalidInput."""


def default_values(schema: Schema) -> Schema:
    """Return the values of the fields that a request leaves out."""
    return {name: field["default"] for name, field in schema["properties"].items() if "default" in field}
