# SPDX-License-Identifier: Apache-2.0
"""Neutron: networks, and the floating IPs on them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import Json
from blazar.clouds.ports.network import FloatingIp, NetworkInfo, Subnet
from blazar.model.base.errors import CloudRefused, Conflict, NotFound

FLOATING_IP_OWNER = "network:floatingip"
"""Owner of the port that Neutron makes for every floating IP."""

MOST_IN_URL = 100
"""Maximum addresses or ids in one URL; servers limit its length."""


class OpenStackNetwork:
    """Implements the network port."""

    def __init__(self, access: Access) -> None:
        self._neutron = access.network

    def network(self, network_id: str) -> NetworkInfo | None:
        """Return a network with its subnets, in the order of their ids in it."""
        # By query and not by path, because an id from a user could change the path.
        found = self._neutron.get("/networks", params={"id": network_id})["networks"]
        if not found:
            return None
        return _network(found[0], self._subnets([network_id]))

    def external_networks(self) -> tuple[NetworkInfo, ...]:
        """Return the external networks with their subnets; of those in the list twice, the last."""
        found = {n["id"]: n for n in self._neutron.pages("/networks", "networks", params={"router:external": True})}
        subnets = self._subnets(found)
        return tuple(_network(network, subnets) for network in found.values())

    def floating_ips(
        self,
        *,
        network_id: str | None = None,
        addresses: Collection[str] | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[FloatingIp, ...]:
        """Return floating IPs of all projects."""
        params: dict[str, Any] = {}
        if network_id is not None:
            params["floating_network_id"] = network_id
        if tag is not None:
            params["tags"] = tag
        if description is not None:
            params["description"] = description
        found = (
            item
            for part in _split_for_urls(addresses)
            for item in self._neutron.pages(
                "/floatingips", "floatingips", params=params | ({"floating_ip_address": part} if part else {})
            )
        )
        return tuple(_floating_ip(item) for item in found)

    def used_addresses(self, network_id: str, addresses: Collection[str] | None = None) -> Mapping[str, str]:
        """Return the addresses of ports, except the ports of floating IPs."""
        wanted = None if addresses is None else frozenset(addresses)
        users: dict[str, str] = {}
        for part in _split_for_urls(addresses):
            params = _network_query(network_id) | (
                {"fixed_ips": [f"ip_address={address}" for address in part]} if part else {}
            )
            for port in self._neutron.pages("/ports", "ports", params=params):
                if port["device_owner"] == FLOATING_IP_OWNER:
                    continue
                kind = f" ({port['device_owner']})" if port["device_owner"] else ""
                for fixed in port["fixed_ips"]:
                    address = _shorten_address(fixed["ip_address"])
                    if wanted is None or address in wanted:
                        users[address] = f"port {port['id']}{kind}"
        return users

    def create_floating_ip(
        self, *, network_id: str, subnet_id: str, address: str, project_id: str, description: str
    ) -> FloatingIp:
        """Create a floating IP for a project."""
        body = {
            "floating_network_id": network_id,
            "subnet_id": subnet_id,
            "floating_ip_address": address,
            "project_id": project_id,
            "description": description,
        }
        return _floating_ip(self._neutron.call("POST", "/floatingips", body={"floatingip": body})["floatingip"])

    def set_address_tags(self, floating_ip_id: str, tags: Collection[str]) -> None:
        """Replace the tags."""
        self._neutron.call("PUT", f"/floatingips/{floating_ip_id}/tags", body={"tags": sorted(tags)})

    def attach_floating_ip(self, floating_ip_id: str, server_id: str) -> None:
        """Attach a floating IP to a port of a server; Neutron knows which subnets have a way to its network."""
        ports = list(self._neutron.pages("/ports", "ports", params={"device_id": server_id, "fields": "id"}))
        if not ports:
            raise NotFound(f"server {server_id} has no port for a floating IP")
        for number, port in enumerate(ports, 1):
            body = {"floatingip": {"port_id": port["id"]}}
            try:
                self._neutron.call("PUT", f"/floatingips/{quote(floating_ip_id, safe='')}", body=body)
            except (NotFound, CloudRefused) as error:
                # 404 without a router between the two, 400 without an address of IPv4.
                if number == len(ports):
                    raise Conflict(error.message, public="No router leads from the server to the address") from error
            else:
                return

    def detach_floating_ip(self, floating_ip_id: str) -> None:
        """Detach a floating IP from its port."""
        self._neutron.call("PUT", f"/floatingips/{floating_ip_id}", body={"floatingip": {"port_id": None}})

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP, and before it its port forwardings if Neutron refuses."""
        path = f"/floatingips/{floating_ip_id}"
        try:
            self._neutron.call("DELETE", path)
        except Conflict:
            forwards = list(self._neutron.pages(f"{path}/port_forwardings", "port_forwardings"))
            if not forwards:
                raise
            for forward in forwards:
                self._neutron.call("DELETE", f"{path}/port_forwardings/{forward['id']}")
            self._neutron.call("DELETE", path)

    def _subnets(self, network_ids: Collection[str]) -> Collection[Json]:
        """Return the subnets of networks, each once."""
        found = (
            subnet
            for part in _split_for_urls(network_ids)
            for subnet in self._neutron.pages("/subnets", "subnets", params={"network_id": part})
        )
        return {subnet["id"]: subnet for subnet in found}.values()


def _network_query(network_id: str) -> dict[str, Any]:
    return {"network_id": network_id}


def _split_for_urls(values: Collection[str] | None) -> list[Sequence[str]]:
    """Return addresses or ids in chunks for one URL each; one empty chunk stands for all."""
    if values is None:
        return [()]
    every = sorted(values)
    return [every[start : start + MOST_IN_URL] for start in range(0, len(every), MOST_IN_URL)]


def _shorten_address(address: str) -> str:
    return str(ip_address(address))


def _network(network: Json, subnets: Collection[Json]) -> NetworkInfo:
    """Return a network with those of the subnets that are on it."""
    own = tuple(_subnet(subnet) for subnet in subnets if subnet["network_id"] == network["id"])
    return NetworkInfo(network["id"], network["name"], bool(network.get("router:external")), own)


def _subnet(subnet: Json) -> Subnet:
    pools = tuple(
        (_shorten_address(pool["start"]), _shorten_address(pool["end"])) for pool in subnet["allocation_pools"]
    )
    gateway = subnet.get("gateway_ip")
    return Subnet(subnet["id"], subnet["cidr"], _shorten_address(gateway) if gateway else None, pools)


def _floating_ip(item: Json) -> FloatingIp:
    return FloatingIp(
        id=item["id"],
        network_id=item["floating_network_id"],
        address=_shorten_address(item["floating_ip_address"]),
        project_id=item.get("project_id") or item.get("tenant_id") or "",
        attached=bool(item.get("port_id") or item.get("port_forwardings")),
        tags=frozenset(item.get("tags") or ()),
        description=item.get("description") or "",
    )
