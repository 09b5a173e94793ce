# SPDX-License-Identifier: Apache-2.0
"""The network port: external networks, and the floating IPs on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from blazar.model.base.values import dataclass


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet of a network. ``pools`` are the ranges (first and last address) from which Neutron itself allocates."""

    id: str
    cidr: str
    gateway: str | None = None
    pools: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class NetworkInfo:
    """A network with its subnets. Only an ``external`` one can have floating IPs."""

    id: str
    name: str
    external: bool
    subnets: tuple[Subnet, ...] = ()


@dataclass(frozen=True, slots=True)
class FloatingIp:
    """A floating IP that a project has. ``attached``: to a port, or by the forwarding of single ports."""

    id: str
    network_id: str
    address: str
    project_id: str
    attached: bool = False
    tags: frozenset[str] = frozenset()
    description: str = ""


CHANGES = frozenset(
    {
        "create_floating_ip",
        "set_address_tags",
        "attach_floating_ip",
        "detach_floating_ip",
        "delete_floating_ip",
    }
)
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Network(Protocol):
    """The calls to Neutron. Addresses are strings in their shortest form, as ``ipaddress`` writes them."""

    def network(self, network_id: str) -> NetworkInfo | None:
        """Return a network with its subnets."""

    def external_networks(self) -> tuple[NetworkInfo, ...]:
        """Return the external networks, each with its subnets; few calls, however many networks there are."""

    def floating_ips(
        self,
        *,
        network_id: str | None = None,
        addresses: Collection[str] | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[FloatingIp, ...]:
        """Return the floating IPs of all projects; narrowed to a network, addresses, a tag, or a whole description."""

    def used_addresses(self, network_id: str, addresses: Collection[str] | None = None) -> Mapping[str, str]:
        """Return what uses addresses of a network (None: all) other than floating IPs: a description by address."""

    def create_floating_ip(
        self, *, network_id: str, subnet_id: str, address: str, project_id: str, description: str
    ) -> FloatingIp:
        """Create a floating IP of a project with exactly this address, free and without tags.

        NotFound (network or subnet); Conflict if the address is in use, or the quota of the project is;
        CloudRefused if the network cannot have it.
        """

    def set_address_tags(self, floating_ip_id: str, tags: Collection[str]) -> None:
        """Replace the tags of a floating IP.

        NotFound if it is gone; or CloudUnavailable, as Neutron (29) fails then.
        """

    def attach_floating_ip(self, floating_ip_id: str, server_id: str) -> None:
        """Attach a floating IP to the first port of a server that the external network can reach through a router.

        NotFound (the floating IP, or the server has no port); Conflict if no port can be reached, or by its state.
        """

    def detach_floating_ip(self, floating_ip_id: str) -> None:
        """Detach a floating IP from its port, if it has one. NotFound."""

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP with its port forwardings. NotFound."""
