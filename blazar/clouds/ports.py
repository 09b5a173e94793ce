# SPDX-License-Identifier: Apache-2.0
"""The small interfaces through which the life cycle acts on a cloud.

Every call may raise ``CloudUnavailable`` (a passing fault) besides what it names. Calls are not idempotent by
themselves; the *ensures* of the resource types are, by looking before they act and by bearing a ``Conflict`` or
``NotFound`` that says that somebody was faster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from blazar.model.amounts import Amounts
from blazar.model.resource import ResourceInventory


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node as Nova tells of it. ``memory_mb`` in MiB, ``local_gb`` in GiB, ``cpu_info`` JSON text.

    ``service_name`` is the host of the nova-compute service: the name by which aggregates know the node.
    ``availability_zone`` is the zone the cloud shows for it ('' if it shows none).
    """

    id: str
    hypervisor_hostname: str
    service_name: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: str
    availability_zone: str
    up: bool = True
    enabled: bool = True


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A host aggregate. ``hosts`` are service names; the zone is in ``availability_zone``, not in ``metadata``."""

    id: int
    name: str
    availability_zone: str | None
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Server:
    """An instance. ``host`` is the service name of the host it is on (None: on none, as when shelved).

    ``flavor`` is the name of its flavor, which may be gone by now; ``extra_specs`` and ``amounts`` are what that said
    when the server was booted or resized. ``created_at`` is ISO 8601.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    host: str | None
    status: str
    locked: bool = False
    flavor: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict, hash=False)
    amounts: Amounts = field(default_factory=Amounts)
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor. ``memory_mb`` in MiB, ``disk_gb`` and ``ephemeral_gb`` in GiB, ``swap_mb`` in MiB.

    One that is not ``public`` can be used by the projects that have access to it.
    """

    id: str
    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    rxtx_factor: float = 1.0
    public: bool = False


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers that are to lie together (``affinity``) or apart (``anti-affinity``)."""

    id: str
    name: str
    policy: str


@dataclass(frozen=True, slots=True)
class ReservedCapacity:
    """How much of a resource class a provider has, and how much of it is used."""

    total: int
    used: int


class MigrationState(StrEnum):
    """How far a move of a server has come."""

    RUNNING = "running"
    TO_CONFIRM = "to confirm"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Migration:
    """A move of a server to a host (its service name), live or cold."""

    host: str | None
    live: bool
    state: MigrationState


@dataclass(frozen=True, slots=True)
class Image:
    """A snapshot of a server."""

    id: str
    name: str
    project_id: str
    status: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subnet:
    """A part of a network. ``pools`` are the ranges (first and last address) from which the cloud itself gives out."""

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
        "create_aggregate",
        "set_aggregate_metadata",
        "delete_aggregate",
        "add_host",
        "remove_host",
        "create_flavor",
        "set_flavor_specs",
        "delete_flavor",
        "give_flavor",
        "take_flavor",
        "create_server_group",
        "delete_server_group",
        "delete_server",
        "snapshot_server",
        "give_image",
        "migrate_server",
        "confirm_migration",
        "create_reservation_provider",
        "create_resource_class",
        "delete_resource_class",
        "set_inventory",
        "delete_inventory",
        "create_floating_ip",
        "tag_floating_ip",
        "detach_floating_ip",
        "delete_floating_ip",
    }
)
"""The calls of all ports that change the cloud: each adapter lets them pass ``scope.check_change`` first."""


class Compute(Protocol):
    """What we need of Nova (and of Glance, for snapshots of servers)."""

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname; NotFound if there is none."""

    def aggregates(self) -> tuple[Aggregate, ...]:
        """Return all aggregates."""

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate with exactly this name."""

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate without hosts. Conflict if there is one of this name."""

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set keys, and take away those whose value is None; other keys stay. NotFound."""

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate. NotFound; Conflict if it still has hosts."""

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate.

        NotFound (no such aggregate or host); Conflict if it is in there already, if another aggregate gives it
        another zone, or if it runs servers and its zone would change.
        """

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Take a host out of an aggregate. NotFound (aggregate, or host not in it); Conflict if it runs
        servers and its zone would change."""

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return every server of every project that occupies the host, whatever its state."""

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the project's servers that were booted into the reservation and are on no host: shelved, or failed."""

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return every server of every project that has a flavor, whatever its state, the newest second first."""

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return the flavor with this id."""

    def create_flavor(self, flavor: Flavor) -> None:
        """Create a private flavor that nobody has access to. Conflict if there is one with its id or name."""

    def set_flavor_specs(self, flavor_id: str, specs: Mapping[str, str | None]) -> None:
        """Set extra specs, and take away those whose value is None; others stay. NotFound."""

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor; servers keep what it said. NotFound."""

    def flavor_access(self, flavor_id: str) -> frozenset[str]:
        """Return the projects that may boot servers with a private flavor. NotFound, also for a public one."""

    def give_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project boot servers with a private flavor. NotFound; Conflict if it may already."""

    def take_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project no longer boot servers with a private flavor. NotFound (flavor, or it could not before)."""

    def flavor_names(self) -> Mapping[str, str]:
        """Return the names of all flavors, private ones too, by id."""

    def server_groups(self, name: str | None = None) -> tuple[ServerGroup, ...]:
        """Return the server groups of all projects with exactly this name (None: all)."""

    def create_server_group(self, name: str, policy: str, project_id: str) -> str:
        """Create a server group with the policy ``affinity`` or ``anti-affinity``; return its id.

        It belongs to the project, whose users alone can name it, or to us where the cloud does not let us act for it.
        """

    def delete_server_group(self, group_id: str) -> None:
        """Delete a server group; its servers stay. NotFound."""

    def delete_server(self, server_id: str) -> None:
        """Begin to force-delete a server, also a locked or broken one. It is gone when it is no longer listed.
        A server that does not exist is no error."""

    def snapshot_server(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server, owned by the server's project. NotFound; Conflict by its state."""

    def give_image(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image. NotFound."""

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images whose metadata ``blazar:reservation`` is this id, finished or not."""

    def migrate_server(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to move a server to a host. NotFound; Conflict or CloudRefused if it can not be moved like that."""

    def confirm_migration(self, server_id: str) -> None:
        """Let a server that was moved cold stay where it is. NotFound; Conflict if it was not."""

    def moves_to_confirm(self, service_name: str) -> tuple[str, ...]:
        """Return the ids of the servers that were moved cold away from a host and wait to be confirmed."""

    def migrations_of(self, server_id: str) -> tuple[Migration, ...]:
        """Return the moves of a server, the oldest first."""


class Placement(Protocol):
    """What we need of Placement."""

    def inventories(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, ResourceInventory]:
        """Return what hosts have to share out, by hypervisor hostname; hosts unknown to Placement are left out.

        Of every class ``int((total - reserved) * allocation_ratio)``, of the host's own provider and those nested in
        it, but for the reservation provider and our own classes. A class that several of them have (GPUs, say) is
        added up, and then a unit can take but one of it, which never has to come from two of them. The traits are
        those of the host's own provider.
        """

    def reservation_provider(self, hypervisor_hostname: str) -> str | None:
        """Return the uuid of the host's reservation provider ``blazar_<hypervisor_hostname>``, None if absent."""

    def create_reservation_provider(self, hypervisor_hostname: str) -> str:
        """Create that provider as a child of the host's own. NotFound (host unknown to Placement); Conflict."""

    def create_resource_class(self, name: str) -> None:
        """Ensure that there is a resource class of this name."""

    def delete_resource_class(self, name: str) -> None:
        """Delete a resource class. NotFound; Conflict while a provider has an inventory of it."""

    def resource_classes(self) -> frozenset[str]:
        """Return the names of all resource classes."""

    def reserved_capacity(self, hypervisor_hostname: str, resource_class: str) -> ReservedCapacity | None:
        """Return what a host's reservation provider has of a class; None if it has none, or is absent."""

    def reserved_totals(self, hypervisor_hostname: str) -> Mapping[str, int]:
        """Return the totals of all classes that a host's reservation provider has; none if it is absent."""

    def set_inventory(self, hypervisor_hostname: str, resource_class: str, total: int) -> None:
        """Give a host's reservation provider so much of a class, to be taken one by one; its other classes stay.

        Less than is used is no error. NotFound (provider); CloudRefused (class); CloudUnavailable if others keep
        changing the provider.
        """

    def delete_inventory(self, hypervisor_hostname: str, resource_class: str) -> None:
        """Take a class away from a host's reservation provider. NotFound; Conflict while it is used."""

    def hosts_with_free(self, resource_class: str) -> frozenset[str]:
        """Return the hypervisor hostnames whose reservation provider has some of a class that is not used.

        None if there is no such class.
        """

    def hosts_with_room_for(self, server_id: str) -> frozenset[str]:
        """Return the hypervisor hostnames that could take, beside all that they have, what a server takes now."""


class Network(Protocol):
    """What we need of Neutron. Addresses are texts in their shortest form, as ``ipaddress`` writes them."""

    def network(self, network_id: str) -> NetworkInfo | None:
        """Return a network with its subnets."""

    def floating_ips(
        self, *, network_id: str | None = None, addresses: Collection[str] | None = None, tag: str | None = None
    ) -> tuple[FloatingIp, ...]:
        """Return the floating IPs of all projects; narrowed to a network, to addresses, to those that have a tag."""

    def users_of(self, network_id: str, addresses: Collection[str] | None = None) -> Mapping[str, str]:
        """Return which addresses of a network (None: all) something has that is no floating IP, and what: words."""

    def create_floating_ip(
        self, *, network_id: str, subnet_id: str, address: str, project_id: str, description: str
    ) -> FloatingIp:
        """Create a floating IP of a project with exactly this address, free and without tags.

        NotFound (network or subnet); Conflict if somebody has the address, or the project may have no more;
        CloudRefused if the network can not have it.
        """

    def tag_floating_ip(self, floating_ip_id: str, tags: Collection[str]) -> None:
        """Give a floating IP these tags, and no others.

        NotFound if it is gone; or CloudUnavailable, as Neutron (29) fails then.
        """

    def detach_floating_ip(self, floating_ip_id: str) -> None:
        """Take a floating IP from its port; one without is no error. NotFound."""

    def delete_floating_ip(self, floating_ip_id: str) -> None:
        """Delete a floating IP with all that forwards from it. NotFound."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """The services of one cloud."""

    compute: Compute
    placement: Placement
    network: Network
