# SPDX-License-Identifier: Apache-2.0
"""Clears and deletes a network, in the order in which Neutron lets things go.

Trunks, ports, routes, router interfaces, network. Routers, floating IPs, servers and security groups stay. Users may
build on the network meanwhile: each turn reads again what is there.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address, ip_network

from blazar.clouds.ports import Port, Segments
from blazar.clouds.ports.segments import AUTOMATIC, INTERFACES, SNAT
from blazar.model.errors import Conflict, NotFound

TURNS = 3
"""Maximum turns of one look."""

BATCH = 100
"""Maximum ports that one turn removes: a call for each takes a while."""


class Teardown:
    """Deletes networks with all that is on them."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    def clear(self, network_id: str) -> bool:
        """Return whether the network is gone; if not, users or the cloud still work on it, and it needs another look.

        Whatever is gone already, or still in use by something that a later turn removes, is passed over.
        """
        return any(self._turn(network_id) for _ in range(TURNS))

    def _turn(self, network_id: str) -> bool:
        ports = self._segments.ports_on(network_id)
        interfaces = [port for port in ports if port.owner in INTERFACES]
        others = [port for port in ports if port.owner not in (*INTERFACES, *AUTOMATIC, SNAT)][:BATCH]
        self._leave_trunks(frozenset(port.id for port in others))
        for port in others:
            with suppress(NotFound, Conflict):
                self._segments.delete_port(port.id)
        if interfaces:
            self._leave_routers(network_id, interfaces)
        try:
            self._segments.delete_network(network_id)
        except NotFound:
            return True
        except Conflict:
            return False
        return True

    def _leave_trunks(self, here: frozenset[str]) -> None:
        for trunk in self._segments.trunks_with(here) if here else ():
            with suppress(NotFound, Conflict):
                if trunk.parent in here:
                    self._segments.delete_trunk(trunk.id)
                else:
                    self._segments.remove_sub_ports(trunk.id, trunk.sub_ports & here)

    def _leave_routers(self, network_id: str, interfaces: Collection[Port]) -> None:
        cidrs = [ip_network(cidr) for cidr in self._segments.cidrs(network_id)]
        for router in self._segments.routers({port.device_id for port in interfaces if port.device_id}):
            through = [route for route in router.routes if any(ip_address(route.next_hop) in cidr for cidr in cidrs)]
            if through:
                with suppress(NotFound, Conflict):
                    self._segments.remove_routes(router.id, through)
        for port in interfaces:
            with suppress(NotFound, Conflict):
                self._segments.remove_interface(port.device_id, port.id)
