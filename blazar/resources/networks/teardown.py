# SPDX-License-Identifier: Apache-2.0
"""Clears and deletes a network, in the order in which Neutron lets things go.

Trunks, ports, routes, router interfaces, network. Routers, floating IPs, servers and security groups stay. Users may
build on the network meanwhile: each turn reads again what is there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network

from blazar.clouds.ports.segments import (
    AGENT_GATEWAY,
    AUTOMATIC,
    INTERFACES,
    SERVICES,
    SNAT,
    Port,
    Router,
    Segments,
    Trunk,
)
from blazar.model.base.errors import Conflict, NotFound

TURNS = 3
"""Maximum turns of one look."""

BATCH = 100
"""Maximum ports, and maximum interfaces of routers, that one turn removes: a call for each takes a while."""

MOST_NAMED = 3
"""Ports, and refusals of Neutron, that a sentence names; each refusal of at most ``LONGEST`` characters."""

LONGEST = 200

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Teardown:
    """Deletes networks with all that is on them."""

    def __init__(self, segments: Segments) -> None:
        self._segments = segments

    def clear_network(self, network_id: str) -> str | None:
        """Clear a network; return None if it is gone, else what holds it, by name: it needs another look.

        Whatever is gone already, or still in use by something that a later turn removes, is passed over.
        """
        refusals: list[str] = []
        for _ in range(TURNS):
            # Those of the last turn count: what earlier ones ran into is gone.
            refusals = []
            if self._clear_batch(network_id, refusals):
                return None
        return _describe_leftover(self._segments.ports_on(network_id), refusals)

    def _clear_batch(self, network_id: str, refusals: list[str]) -> bool:
        ports = self._segments.ports_on(network_id)
        routers = {router.id: router for router in self._segments.routers(_router_ids(ports))}
        interfaces = [port for port in ports if port.owner in INTERFACES and port.device_id in routers]
        others = _ports_to_delete(ports, interfaces)[:BATCH]
        self._leave_trunks(frozenset(port.id for port in others), refusals)
        for port in others:
            self._delete_port(port, refusals)
        if interfaces:
            self._leave_routers(network_id, interfaces[:BATCH], routers.values(), refusals)
        try:
            self._segments.delete_network(network_id)
        except NotFound:
            return True
        except Conflict as error:
            refusals.append(error.message)
            return False
        return True

    def _delete_port(self, port: Port, refusals: list[str]) -> None:
        try:
            self._segments.delete_port(port.id)
        except NotFound:
            return
        except Conflict as error:
            # Users can give a port the owner and device of a service, so that Neutron refuses to delete it.
            if port.owner.startswith(SERVICES):
                self._delete_disowned_port(port, refusals)
            else:
                refusals.append(error.message)

    def _delete_disowned_port(self, port: Port, refusals: list[str]) -> None:
        with _collect_refusals(refusals):
            self._segments.clear_port_owner(port.id)
            self._segments.delete_port(port.id)

    def _leave_trunks(self, here: frozenset[str], refusals: list[str]) -> None:
        for trunk in self._segments.trunks_with(here) if here else ():
            with _collect_refusals(refusals):
                if not trunk.enabled:
                    self._segments.set_trunk_enabled(trunk.id, enabled=True)
                if trunk.parent in here:
                    self._delete_trunk(trunk)
                    continue
                try:
                    self._segments.remove_sub_ports(trunk.id, trunk.sub_ports & here)
                finally:
                    if not trunk.enabled:
                        # It stays, on another network.
                        self._segments.set_trunk_enabled(trunk.id, enabled=False)

    def _delete_trunk(self, trunk: Trunk) -> None:
        try:
            self._segments.delete_trunk(trunk.id)
        except Conflict:
            # The parent is bound to the host of a server, which some drivers do not let go.
            self._segments.clear_port_owner(trunk.parent)
            self._segments.delete_trunk(trunk.id)

    def _leave_routers(
        self, network_id: str, interfaces: Collection[Port], routers: Collection[Router], refusals: list[str]
    ) -> None:
        cidrs = [ip_network(cidr) for cidr in self._segments.cidrs(network_id)]
        for router in routers:
            through = [route for route in router.routes if any(ip_address(route.next_hop) in cidr for cidr in cidrs)]
            if through:
                with _collect_refusals(refusals):
                    self._segments.remove_routes(router.id, through)
        for port in interfaces:
            try:
                self._segments.remove_interface(port.device_id, port.id)
            except Conflict as error:
                refusals.append(error.message)
            except NotFound:
                # It is gone, or its owner is another than the interfaces of that router have.
                self._delete_disowned_port(port, refusals)


@contextmanager
def _collect_refusals(refusals: list[str]) -> Iterator[None]:
    """Pass over what is gone, or still in use; note what Neutron says of the latter."""
    try:
        yield
    except NotFound:
        pass
    except Conflict as error:
        refusals.append(error.message)


def _describe_leftover(left: Collection[Port], refusals: Collection[str]) -> str:
    """Return what holds a network, for operators."""
    holding = sorted((port for port in left if port.owner not in AUTOMATIC), key=lambda port: port.id)
    ports = [_describe_port(port) for port in holding[:MOST_NAMED]]
    if len(holding) > MOST_NAMED:
        ports.append(f"{len(holding) - MOST_NAMED} more")
    said = [text[:LONGEST] for text in dict.fromkeys(refusals)][:MOST_NAMED]
    held = f"still has ports that have to leave first: {', '.join(ports)}" if ports else "cannot be deleted yet"
    return f"{held}; Neutron says: {'; '.join(said)}" if said else held


def _describe_port(port: Port) -> str:
    device = f" {port.device_id}" if port.device_id else ""
    return f"{port.id} ({port.owner}{device})" if port.owner or device else port.id


def _router_ids(ports: Collection[Port]) -> frozenset[str]:
    """Return the ids of the routers whose interfaces the ports claim to be; users may have written anything there."""
    return frozenset(p.device_id for p in ports if p.owner in INTERFACES and _UUID.fullmatch(p.device_id))


def _ports_to_delete(ports: Collection[Port], interfaces: Collection[Port]) -> list[Port]:
    """Return the ports that leave neither through a router nor with an interface or the network."""
    leaving, distributed = {port.id for port in interfaces}, {port.device_id for port in interfaces}
    return [
        port
        for port in ports
        if port.id not in leaving
        and port.owner not in AUTOMATIC - {AGENT_GATEWAY}
        and not (port.owner == SNAT and port.device_id in distributed)
    ]
