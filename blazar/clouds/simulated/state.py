# SPDX-License-Identifier: Apache-2.0
"""The state of a simulated cloud, and its conversion to and from JSON."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from typing import Any

from blazar.clouds.ports.stacks import COMPLETE, DELETE, FAILED, IN_PROGRESS
from blazar.clouds.simulated.machines import MachineState
from blazar.clouds.simulated.server_state import MoveState, ServerState
from blazar.clouds.simulated.volume_state import BlockStorage
from blazar.model.base.values import dataclass, field


@dataclass(slots=True)
class StackResourceState:
    """A resource of a stack; ``reason`` is why it failed, empty if it has not."""

    name: str
    type: str
    physical_id: str
    reason: str = ""


@dataclass(slots=True)
class StackState:
    """A stack: its last action is over at the instant ``over_at`` (ISO 8601); ``reason`` is why it failed, then."""

    id: str
    name: str
    project_id: str
    action: str
    over_at: str
    reason: str = ""
    tags: list[str] = field(default_factory=list)
    resources: list[StackResourceState] = field(default_factory=list)

    def state_at(self, now: datetime) -> str:
        """Return the state of the last action."""
        if datetime.fromisoformat(self.over_at) > now:
            return IN_PROGRESS
        return FAILED if self.reason else COMPLETE

    def is_gone(self, now: datetime) -> bool:
        """Return whether the deletion is complete."""
        return self.action == DELETE and self.state_at(now) == COMPLETE

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> StackState:
        """Return a stack from its fields."""
        return cls(**{**data, "resources": [StackResourceState(**resource) for resource in data["resources"]]})


@dataclass(slots=True)
class BootImageState:
    """An image to boot from; one without a project is public. Sizes in GiB and MiB."""

    id: str
    status: str = "active"
    project_id: str = ""
    min_disk_gb: int = 0
    min_memory_mb: int = 0
    size_gb: int = 0


def _images() -> dict[str, BootImageState]:
    return {"cirros": BootImageState("cirros")}


@dataclass(slots=True)
class BootState:
    """Images and key pairs.

    ``keys`` are the public keys of the service user by name, ``user_keys`` those of users by user and name
    (``user/name``). ``most_servers``, ``most_vcpus`` and ``most_memory_mb`` are the quotas of each project, None for no
    limit; so many of the next servers as ``failing`` says get no host.
    """

    images: dict[str, BootImageState] = field(default_factory=_images)
    keys: dict[str, str] = field(default_factory=dict)
    user_keys: dict[str, str] = field(default_factory=dict)
    most_servers: int | None = None
    most_vcpus: int | None = None
    most_memory_mb: int | None = None
    failing: int = 0

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> BootState:
        """Return the state from its fields; that of a new cloud if there are none."""
        if data is None:
            return cls()
        return cls(**{**data, "images": {key: BootImageState(**value) for key, value in data["images"].items()}})


@dataclass(slots=True)
class HostState:
    """A compute node; sizes in MiB and GiB.

    ``inventories`` is what Placement has in addition to the sizes or instead of them, by class and with Placement's
    keys, as ``{"VCPU": {"allocation_ratio": 4.0}, "PCPU": {"total": 8}}``; ``nested`` are the inventories of further
    providers in the host's tree, by name, and ``nested_traits`` the traits that some of these have. ``cpu_info`` tells
    the number of NUMA cells, as that of libvirt.
    """

    id: str
    name: str
    service_name: str
    vcpus: int
    memory_mb: int
    local_gb: int
    hypervisor_type: str = "QEMU"
    hypervisor_version: int = 8002002
    cpu_info: str = '{"arch": "x86_64", "model": "simulated", "topology": {"cells": 1}}'
    up: bool = True
    enabled: bool = True
    disabled_reason: str | None = None
    inventories: dict[str, dict[str, float]] = field(default_factory=dict)
    nested: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    nested_traits: dict[str, list[str]] = field(default_factory=dict)
    traits: list[str] = field(default_factory=list)


@dataclass(slots=True)
class AggregateState:
    """A host aggregate."""

    id: int
    name: str
    zone: str | None
    hosts: list[str] = field(default_factory=list)
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class FlavorState:
    """A flavor, and the projects that have access if it is private."""

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: dict[str, str] = field(default_factory=dict)
    projects: list[str] = field(default_factory=list)
    rxtx_factor: float = 1.0
    public: bool = False

    @property
    def local_gb(self) -> int:
        """The disk that a server takes of its host: root, ephemeral and swap."""
        return self.disk_gb + self.ephemeral_gb - (-self.swap_mb // 1024)


@dataclass(slots=True)
class GroupState:
    """A server group; ``members`` are ids of servers."""

    id: str
    name: str
    policy: str
    project_id: str | None = None
    members: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ImageState:
    """A snapshot; ``active_at`` is the instant (ISO 8601) at which it is complete."""

    id: str
    name: str
    project_id: str
    active_at: str
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class SubnetState:
    """A subnet; a pool is its first and its last address."""

    id: str
    cidr: str
    gateway: str | None = None
    pools: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class NetworkState:
    """A network; one with a ``network_type`` is on a segment, as in ``ports.Segment``."""

    id: str
    name: str
    external: bool = True
    subnets: list[SubnetState] = field(default_factory=list)
    project_id: str = ""
    description: str = ""
    tags: list[str] = field(default_factory=list)
    network_type: str = ""
    physical_network: str | None = None
    segment_id: int | None = None


@dataclass(slots=True)
class PortState:
    """A port, other than the port of a floating IP; ``address`` is empty if it has none. ``bound``: to a host."""

    id: str
    network_id: str
    address: str
    owner: str
    project_id: str = ""
    device_id: str = ""
    bound: bool = False


@dataclass(slots=True)
class RouterState:
    """A router; its interfaces are ports. A route is a destination (CIDR) and the address of the next hop.

    ``vpn`` is the id of a VPN service that needs its interfaces.
    """

    id: str
    project_id: str
    routes: list[list[str]] = field(default_factory=list)
    vpn: str = ""


@dataclass(slots=True)
class TrunkState:
    """A trunk with its parent port and its sub-ports."""

    id: str
    project_id: str
    parent: str
    sub_ports: list[str] = field(default_factory=list)
    enabled: bool = True


@dataclass(slots=True)
class RangeState:
    """A range of segments; one without a project is shared."""

    network_type: str
    physical_network: str | None
    minimum: int
    maximum: int
    project_id: str | None = None


@dataclass(slots=True)
class FloatingIpState:
    """A floating IP."""

    id: str
    network_id: str
    address: str
    project_id: str
    port_id: str | None = None
    tags: list[str] = field(default_factory=list)
    description: str = ""


@dataclass(slots=True)
class ThingState:
    """A thing with a hook: the number that each reservation has of it, and why it has failed or cannot be used.

    ``ready_at`` are the instants (ISO 8601) at which what calls began is complete, by message id; ``heard`` are the
    latest messages that were completed.
    """

    name: str = ""
    users: dict[str, int] = field(default_factory=dict)
    failure: str | None = None
    unusable: str | None = None
    ready_at: dict[str, str] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)


@dataclass(slots=True)
class State:
    """The whole state of a cloud.

    ``providers`` has the reservation providers by hypervisor hostname, ``inventories`` their totals by class.
    ``ranges`` is None in a cloud without the extension for ranges of segments; ``most_networks`` is the quota of each
    project, None without a limit. ``things`` are those with a hook, by id. The service user has no role in the
    ``closed_projects``. ``block`` is the state of Cinder. ``move_faults`` are what becomes of the next move of a
    server, by its id. ``machines`` are those whose power somebody has switched, by the name of the host.
    ``pci_aliases`` are those of nova.conf, by name: the ``resource_class`` and ``traits`` of their devices.
    """

    hosts: dict[str, HostState] = field(default_factory=dict)
    aggregates: dict[int, AggregateState] = field(default_factory=dict)
    servers: dict[str, ServerState] = field(default_factory=dict)
    images: dict[str, ImageState] = field(default_factory=dict)
    providers: dict[str, str] = field(default_factory=dict)
    last_aggregate: int = 0
    flavors: dict[str, FlavorState] = field(default_factory=dict)
    groups: dict[str, GroupState] = field(default_factory=dict)
    classes: list[str] = field(default_factory=list)
    inventories: dict[str, dict[str, int]] = field(default_factory=dict)
    networks: dict[str, NetworkState] = field(default_factory=dict)
    ports: dict[str, PortState] = field(default_factory=dict)
    floating_ips: dict[str, FloatingIpState] = field(default_factory=dict)
    routers: dict[str, RouterState] = field(default_factory=dict)
    trunks: dict[str, TrunkState] = field(default_factory=dict)
    physical_networks: list[str] = field(default_factory=lambda: ["physnet1", "physnet2"])
    ranges: list[RangeState] | None = None
    most_networks: int | None = None
    things: dict[str, ThingState] = field(default_factory=dict)
    closed_projects: list[str] = field(default_factory=list)
    block: BlockStorage = field(default_factory=BlockStorage)
    stacks: dict[str, StackState] = field(default_factory=dict)
    boot: BootState = field(default_factory=BootState)
    move_faults: dict[str, str] = field(default_factory=dict)
    machines: dict[str, MachineState] = field(default_factory=dict)
    pci_aliases: dict[str, dict[str, Any]] = field(default_factory=dict)

    def copy(self) -> State:
        """Return a copy that shares nothing with this state."""
        # Half of the time of ``deepcopy``; what is read was written just before.
        copied: State = pickle.loads(pickle.dumps(self, pickle.HIGHEST_PROTOCOL))
        return copied

    def to_text(self) -> str:
        """Return the JSON of what ``from_json`` takes."""
        # A tenth of the time of ``asdict`` and ``json.dump``, which a cloud of 500 hosts would have at each change.
        return json.dumps(self, default=_fields_of)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> State:
        """Return the state of which ``to_text`` returned this."""
        return cls(
            hosts={key: HostState(**value) for key, value in data["hosts"].items()},
            aggregates={int(key): AggregateState(**value) for key, value in data["aggregates"].items()},
            servers={key: _server(value) for key, value in data["servers"].items()},
            images={key: ImageState(**value) for key, value in data["images"].items()},
            providers=dict(data["providers"]),
            last_aggregate=data["last_aggregate"],
            # Files of older versions do not have these.
            flavors={key: FlavorState(**value) for key, value in data.get("flavors", {}).items()},
            groups={key: GroupState(**value) for key, value in data.get("groups", {}).items()},
            classes=list(data.get("classes", ())),
            inventories={key: dict(value) for key, value in data.get("inventories", {}).items()},
            networks={key: _network(value) for key, value in data.get("networks", {}).items()},
            ports={key: PortState(**value) for key, value in data.get("ports", {}).items()},
            floating_ips={key: FloatingIpState(**value) for key, value in data.get("floating_ips", {}).items()},
            routers={key: RouterState(**value) for key, value in data.get("routers", {}).items()},
            trunks={key: TrunkState(**value) for key, value in data.get("trunks", {}).items()},
            physical_networks=list(data.get("physical_networks", ("physnet1", "physnet2"))),
            ranges=[RangeState(**value) for value in data["ranges"]] if data.get("ranges") is not None else None,
            most_networks=data.get("most_networks"),
            things={key: ThingState(**value) for key, value in data.get("things", {}).items()},
            closed_projects=list(data.get("closed_projects", ())),
            block=BlockStorage.from_json(data.get("block", {})),
            stacks={key: StackState.from_json(value) for key, value in data.get("stacks", {}).items()},
            boot=BootState.from_json(data.get("boot")),
            move_faults=dict(data.get("move_faults", {})),
            machines={key: MachineState(**value) for key, value in data.get("machines", {}).items()},
            pci_aliases=dict(data.get("pci_aliases", {})),
        )

    def is_up(self, host: HostState, now: datetime) -> bool:
        """Return whether the nova-compute of a host is up, which it is not on a machine that is off or boots."""
        machine = self.machines.get(host.name)
        return host.up and (machine is None or machine.is_up(now))

    def occupants(self, service_name: str, now: datetime) -> list[ServerState]:
        """Return the servers that occupy a host."""
        return [s for s in self.servers.values() if s.location(now) == service_name and not s.is_gone(now)]

    def remove_gone(self, now: datetime) -> None:
        """Remove the servers whose deletion is complete."""
        for server in [server for server in self.servers.values() if server.is_gone(now)]:
            del self.servers[server.id]

    def add_aggregate(self, name: str, zone: str | None) -> AggregateState:
        """Add an aggregate; ids ascend and are never reused."""
        self.last_aggregate += 1
        aggregate = AggregateState(self.last_aggregate, name, zone)
        self.aggregates[aggregate.id] = aggregate
        return aggregate


def _server(data: dict[str, Any]) -> ServerState:
    # Files of earlier versions do not say when a move had settled: when the server arrived.
    moves = [MoveState(**{"settled_at": move["over_at"], **move}) for move in data.get("migrations", [])]
    return ServerState(**{**data, "migrations": moves})


def _network(data: dict[str, Any]) -> NetworkState:
    return NetworkState(**{**data, "subnets": [SubnetState(**subnet) for subnet in data["subnets"]]})


def _fields_of(part: Any) -> dict[str, Any]:
    return {name: getattr(part, name) for name in part.__slots__}
