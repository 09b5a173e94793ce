# SPDX-License-Identifier: Apache-2.0
"""Neutron: networks on chosen segments, and the ports, trunks and routers that have to leave them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import Explained, Json, TypedConflict
from blazar.clouds.ports.segments import (
    NewSubnet,
    Port,
    Router,
    RouterRoute,
    Segment,
    SegmentInUse,
    SegmentNetwork,
    SegmentRange,
    SegmentRefused,
    Trunk,
)
from blazar.model.base.errors import NotFound

_IN_USE = frozenset({"VlanIdInUse", "TunnelIdInUse"})
_NO_SEGMENT = "InvalidInput"
"""What Neutron says of a physical network that it does not know; to a bad name it says ``HTTPBadRequest``."""
_MAX_IDS = 100
"""Maximum ids in one URL; servers limit its length."""

_NETWORK_FIELDS = (
    "id",
    "name",
    "project_id",
    "description",
    "tags",
    "segments",
    "provider:network_type",
    "provider:physical_network",
    "provider:segmentation_id",
)


class OpenStackSegments:
    """Implements the segments port."""

    def __init__(self, access: Access) -> None:
        self._neutron = access.network
        self._access = access

    def segment_networks(
        self,
        *,
        id: str | None = None,
        segment: Segment | None = None,
        tag: str | None = None,
        description: str | None = None,
    ) -> tuple[SegmentNetwork, ...]:
        """Return networks of all projects."""
        params: dict[str, Any] = {"fields": list(_NETWORK_FIELDS)}
        params |= {k: v for k, v in {"id": id, "tags": tag, "description": description}.items() if v is not None}
        if segment is not None:
            params["provider:network_type"] = segment.network_type
            params["provider:segmentation_id"] = segment.segment_id
            if segment.physical_network is not None:
                params["provider:physical_network"] = segment.physical_network
        return tuple(_network(item) for item in self._neutron.pages("/networks", "networks", params=params))

    def segment_ranges(self, network_type: str) -> tuple[SegmentRange, ...] | None:
        """Return the ranges of a type; None without the extension."""
        try:
            # Not the free segments, which are many; Neutron computes them all the same.
            found = list(
                self._neutron.pages(
                    "/network_segment_ranges", "network_segment_ranges", params={"network_type": network_type}
                )
            )
        except NotFound:
            return None
        return tuple(_range(item) for item in found)

    def service_project(self) -> str:
        """Return the id of the project of the service user."""
        return self._access.log_in()

    def create_segment_network(
        self, segment: Segment, *, name: str, project_id: str, description: str
    ) -> SegmentNetwork:
        """Create a network for a project."""
        body = {
            "name": name,
            "project_id": project_id,
            "description": description,
            "provider:network_type": segment.network_type,
            "provider:segmentation_id": segment.segment_id,
        }
        if segment.physical_network is not None:
            body["provider:physical_network"] = segment.physical_network
        try:
            return _network(self._neutron.call("POST", "/networks", body={"network": body})["network"])
        except TypedConflict as error:
            if error.type in _IN_USE:
                raise SegmentInUse(error.message, public=error.public) from error
            raise
        except Explained as error:
            if error.type == _NO_SEGMENT:
                raise SegmentRefused(error.message) from error
            raise

    def set_network_tags(self, network_id: str, tags: Collection[str]) -> None:
        """Replace the tags."""
        self._neutron.call("PUT", f"/networks/{network_id}/tags", body={"tags": sorted(tags)})

    def set_description(self, network_id: str, description: str) -> None:
        """Replace the description."""
        self._neutron.call("PUT", f"/networks/{network_id}", body={"network": {"description": description}})

    def create_subnet(self, network_id: str, wanted: NewSubnet, *, project_id: str) -> str:
        """Create a subnet for a project."""
        body = {
            "network_id": network_id,
            "project_id": project_id,
            "cidr": wanted.cidr,
            "ip_version": wanted.ip_version,
            "dns_nameservers": list(wanted.dns_nameservers),
            "enable_dhcp": wanted.enable_dhcp,
        }
        return str(self._neutron.call("POST", "/subnets", body={"subnet": body})["subnet"]["id"])

    def delete_network(self, network_id: str) -> None:
        """Delete a network."""
        self._neutron.call("DELETE", f"/networks/{network_id}")

    def cidrs(self, network_id: str) -> tuple[str, ...]:
        """Return the CIDRs of the subnets."""
        params = {"network_id": network_id, "fields": "cidr"}
        return tuple(item["cidr"] for item in self._neutron.pages("/subnets", "subnets", params=params))

    def ports_on(self, network_id: str) -> tuple[Port, ...]:
        """Return the ports of a network."""
        params = {"network_id": network_id, "fields": ["id", "device_owner", "device_id"]}
        return tuple(
            Port(item["id"], item["device_owner"] or "", item["device_id"] or "")
            for item in self._neutron.pages("/ports", "ports", params=params)
        )

    def delete_port(self, port_id: str) -> None:
        """Delete a port."""
        self._neutron.call("DELETE", f"/ports/{port_id}")

    def clear_port_owner(self, port_id: str) -> None:
        """Remove owner, device and host of a port."""
        port = {"device_owner": "", "device_id": "", "binding:host_id": None}
        self._neutron.call("PUT", f"/ports/{port_id}", body={"port": port})

    def trunks_with(self, port_ids: Collection[str]) -> tuple[Trunk, ...]:
        """Return the trunks of these ports; none if the cloud has no trunks."""
        wanted = frozenset(port_ids)
        try:
            # All of them: Neutron finds trunks by their parents only, and a trunk need not mark its sub-ports.
            found = [_trunk(item) for item in self._neutron.pages("/trunks", "trunks")] if wanted else []
        except NotFound:
            return ()
        return tuple(trunk for trunk in found if wanted & {trunk.parent, *trunk.sub_ports})

    def remove_sub_ports(self, trunk_id: str, port_ids: Collection[str]) -> None:
        """Remove sub-ports from a trunk."""
        body = {"sub_ports": [{"port_id": port_id} for port_id in sorted(port_ids)]}
        self._neutron.call("PUT", f"/trunks/{trunk_id}/remove_subports", body=body)

    def set_trunk_enabled(self, trunk_id: str, *, enabled: bool) -> None:
        """Enable or disable a trunk."""
        self._neutron.call("PUT", f"/trunks/{trunk_id}", body={"trunk": {"admin_state_up": enabled}})

    def delete_trunk(self, trunk_id: str) -> None:
        """Delete a trunk."""
        self._neutron.call("DELETE", f"/trunks/{trunk_id}")

    def routers(self, router_ids: Collection[str]) -> tuple[Router, ...]:
        """Return routers."""
        return tuple(
            Router(item["id"], tuple(RouterRoute(r["destination"], r["nexthop"]) for r in item.get("routes") or ()))
            for part in _split_for_urls(router_ids)
            for item in self._neutron.pages("/routers", "routers", params={"id": part, "fields": ["id", "routes"]})
        )

    def remove_routes(self, router_id: str, routes: Collection[RouterRoute]) -> None:
        """Remove extra routes, and never write the whole list: others change it, too."""
        body = {"router": {"routes": [{"destination": r.destination, "nexthop": r.next_hop} for r in routes]}}
        self._neutron.call("PUT", f"/routers/{router_id}/remove_extraroutes", body=body)

    def remove_interface(self, router_id: str, port_id: str) -> None:
        """Remove an interface."""
        # The id is the device of a port, which users write: it must not become another path.
        path = f"/routers/{quote(router_id, safe='')}/remove_router_interface"
        self._neutron.call("PUT", path, body={"port_id": port_id})


def _split_for_urls(ids: Iterable[str]) -> Iterator[list[str]]:
    every = sorted(ids)
    for start in range(0, len(every), _MAX_IDS):
        yield every[start : start + _MAX_IDS]


def _network(item: Json) -> SegmentNetwork:
    # A network of several segments has a list of them, and no attributes of one.
    segments = item.get("segments") or ([item] if item.get("provider:network_type") else [])
    return SegmentNetwork(
        id=item["id"],
        name=item["name"],
        project_id=item.get("project_id") or "",
        segments=tuple(_segment(segment) for segment in segments),
        description=item.get("description") or "",
        tags=frozenset(item.get("tags") or ()),
    )


def _segment(item: Json) -> Segment:
    return Segment(
        item["provider:network_type"], item.get("provider:physical_network"), item.get("provider:segmentation_id")
    )


def _range(item: Json) -> SegmentRange:
    return SegmentRange(
        item["network_type"],
        # Neutron tells none as an empty text here.
        item.get("physical_network") or None,
        int(item["minimum"]),
        int(item["maximum"]),
        bool(item["shared"]),
        item.get("project_id") or None,
    )


def _trunk(item: Json) -> Trunk:
    sub_ports = frozenset(sub_port["port_id"] for sub_port in item.get("sub_ports") or ())
    return Trunk(item["id"], item["port_id"], sub_ports, bool(item.get("admin_state_up", True)))
