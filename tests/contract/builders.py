# SPDX-License-Identifier: Apache-2.0
"""Users who build on networks, in the simulated cloud and in the real one of ``make cloud``: all calls return ids."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.segments import Segment, SegmentRange
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.state import RangeState
from blazar.model.base.errors import BlazarError, NotFound
from tests import openstack
from tests.people import PeopledCloud
from tests.world import ManualClock

NAME = "test-segments"


class Builder(Protocol):
    """Somebody who builds on networks. ``physical`` is a physical network with VLANs, ``project`` whose it all is."""

    cloud: Cloud
    physical: str
    project: str

    def subnet(self, network_id: str, cidr: str) -> str: ...

    def port(self, network_id: str, owner: str = "") -> str: ...

    def router(self, network_id: str, routes: tuple[tuple[str, str], ...] = ()) -> str: ...

    def routes_of(self, router_id: str) -> list[tuple[str, str]]: ...

    def trunk(self, parent: str, *sub_ports: str, enabled: bool = True, bound: bool = False) -> str: ...

    def offer(self, *ranges: SegmentRange) -> None: ...


class SimulatedBuilder:
    """One of the simulated cloud, which alone has floating IPs and distributed routers here."""

    physical = "physnet1"
    project = "p"

    def __init__(self, simulated: PeopledCloud) -> None:
        self.cloud = simulated.cloud
        self.simulated = simulated
        self._users = simulated.network_users

    def subnet(self, network_id: str, cidr: str) -> str:
        return self._users.subnet(network_id, cidr)

    def port(self, network_id: str, owner: str = "") -> str:
        return self._users.port(network_id, owner)

    def router(self, network_id: str, routes: tuple[tuple[str, str], ...] = ()) -> str:
        return self._users.router(network_id, routes=routes)

    def routes_of(self, router_id: str) -> list[tuple[str, str]]:
        return [(destination, hop) for destination, hop in self._users.routes_of(router_id)]

    def trunk(self, parent: str, *sub_ports: str, enabled: bool = True, bound: bool = False) -> str:
        return self._users.trunk(parent, *sub_ports, enabled=enabled, bound=bound)

    def offer(self, *ranges: SegmentRange) -> None:
        with self.simulated.change_state() as state:
            state.ranges = [
                RangeState(r.network_type, r.physical_network, r.minimum, r.maximum, r.project_id) for r in ranges
            ]


class RealBuilder:
    """An operator of the test cloud, who builds for the project ``demo``."""

    physical = "physnet1"

    def __init__(self) -> None:
        self.cloud = open_cloud(openstack.access("blazar"))
        self.project = str(openstack.access("demo").session.get_project_id())
        self._neutron = openstack.access("admin").network
        self.clean()

    def subnet(self, network_id: str, cidr: str) -> str:
        wanted = {"network_id": network_id, "cidr": cidr, "ip_version": 4, "enable_dhcp": False}
        return self._made("subnet", wanted)

    def port(self, network_id: str, owner: str = "") -> str:
        return self._made("port", {"network_id": network_id, "device_owner": owner})

    def router(self, network_id: str, routes: tuple[tuple[str, str], ...] = ()) -> str:
        made = self._made("router", {})
        subnets = self._neutron.get("/subnets", params={"network_id": network_id})["subnets"]
        body: dict[str, Any] = {"subnet_id": subnets[0]["id"]}
        self._neutron.call("PUT", f"/routers/{made}/add_router_interface", body=body)
        body = {"router": {"routes": [{"destination": to, "nexthop": hop} for to, hop in routes]}}
        self._neutron.call("PUT", f"/routers/{made}", body=body)
        return made

    def routes_of(self, router_id: str) -> list[tuple[str, str]]:
        routes = self._neutron.get(f"/routers/{router_id}")["router"]["routes"]
        return [(route["destination"], route["nexthop"]) for route in routes]

    def trunk(self, parent: str, *sub_ports: str, enabled: bool = True, bound: bool = False) -> str:
        tagged = [
            {"port_id": port, "segmentation_type": "vlan", "segmentation_id": number}
            for number, port in enumerate(sub_ports, 101)
        ]
        made = self._made("trunk", {"port_id": parent, "sub_ports": tagged, "admin_state_up": enabled})
        if bound:
            self._neutron.call("PUT", f"/ports/{parent}", body={"port": {"binding:host_id": "compute-1"}})
        return made

    def offer(self, *ranges: SegmentRange) -> None:
        for each in ranges:
            wanted: dict[str, Any] = {
                "name": NAME,
                "network_type": each.network_type,
                "minimum": each.minimum,
                "maximum": each.maximum,
                "shared": each.shared,
            }
            if each.physical_network is not None:
                wanted["physical_network"] = each.physical_network
            if each.project_id is not None:
                wanted["project_id"] = each.project_id
            self._neutron.call("POST", "/network_segment_ranges", body={"network_segment_range": wanted})

    def clean(self) -> None:
        """Delete what was made, also by a run that was killed."""
        for trunk in self._named("trunks"):
            self.cloud.segments.set_trunk_enabled(trunk, enabled=True)
            for port in self._neutron.get(f"/trunks/{trunk}", params={"fields": "port_id"})["trunk"].values():
                self.cloud.segments.clear_port_owner(port)
            self.cloud.segments.delete_trunk(trunk)
        for router in self._named("routers"):
            self._neutron.call("PUT", f"/routers/{router}", body={"router": {"routes": []}})
            for port in self._neutron.get("/ports", params={"device_id": router})["ports"]:
                path = f"/routers/{router}/remove_router_interface"
                self._neutron.call("PUT", path, body={"port_id": port["id"]})
            self._neutron.call("DELETE", f"/routers/{router}")
        for network in self._named("networks"):
            for port in self.cloud.segments.ports_on(network):
                with suppress(BlazarError):
                    self.cloud.segments.delete_port(port.id)
            with suppress(NotFound):
                self.cloud.segments.delete_network(network)
        for found in self._named("network_segment_ranges"):
            self._neutron.call("DELETE", f"/network_segment_ranges/{found}")

    def _named(self, kind: str) -> list[str]:
        return [str(found["id"]) for found in self._neutron.get(f"/{kind}", params={"name": NAME})[kind]]

    def _made(self, kind: str, wanted: dict[str, Any]) -> str:
        body = {kind: {"name": NAME, "project_id": self.project, **wanted}}
        return str(self._neutron.call("POST", f"/{kind}s", body=body)[kind]["id"])


def builder_on(where: str, folder: Path) -> Iterator[Builder]:
    """Yield somebody who builds on the cloud of this name."""
    if where == "openstack":
        real = RealBuilder()
        yield real
        real.clean()
        return
    state = of_size(1)
    storage = MemoryStorage(state) if where == "memory" else FileStorage(folder / "cloud.json", state)
    yield SimulatedBuilder(PeopledCloud(storage, clock=ManualClock()))


def made(builder: Builder, segment: Segment, description: str = "reservation:x") -> Any:
    """Create a network on a segment."""
    return builder.cloud.segments.create_segment_network(
        segment, name=NAME, project_id=builder.project, description=description
    )


def nowhere() -> str:
    """Return an id that nothing has."""
    return str(uuid.uuid4())
