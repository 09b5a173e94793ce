# SPDX-License-Identifier: Apache-2.0
"""The compute port: Nova, and Glance for the snapshots of servers. One protocol for each role."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Protocol

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.calendar.cards import Cards


@dataclass(frozen=True, slots=True)
class Hypervisor:
    """A compute node as Nova shows it. ``memory_mb`` in MiB, ``local_gb`` in GiB, ``cpu_info`` JSON text.

    ``service_name`` is the host of the nova-compute service: the name by which aggregates name the node.
    ``availability_zone`` is the zone the cloud shows for it ('' if it shows none). ``disabled_reason`` is what was
    given as the reason when its service was disabled.
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
    disabled_reason: str | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A host aggregate. ``hosts`` are service names; the zone is in ``availability_zone``, not in ``metadata``."""

    id: int
    name: str
    availability_zone: str | None
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


class AggregateList(tuple[Aggregate, ...]):
    """All aggregates of a cloud, as one read found them.

    A burst of starts shares one read: what they look for is indexed once for all, not searched by each, so that the
    work of a start does not grow with the number of aggregates. All that is returned is in the order of the list.
    """

    def named(self, name: str) -> Aggregate | None:
        """Return the aggregate of this name, the first if there are several; None if there is none."""
        return next(iter(self._by_name.get(name, ())), None)

    def with_host(self, service_name: str) -> tuple[Aggregate, ...]:
        """Return the aggregates that have a host."""
        return tuple(self._by_host.get(service_name, ()))

    def with_key(self, key: str) -> tuple[Aggregate, ...]:
        """Return the aggregates that have a key in their metadata."""
        return tuple(self._by_key.get(key, ()))

    # Threads that share a list may make an index twice: each is right, and one of them is kept.

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[Aggregate]]:
        return _index(self, lambda aggregate: (aggregate.name,))

    @cached_property
    def _by_host(self) -> Mapping[str, Sequence[Aggregate]]:
        return _index(self, lambda aggregate: aggregate.hosts)

    @cached_property
    def _by_key(self) -> Mapping[str, Sequence[Aggregate]]:
        return _index(self, lambda aggregate: aggregate.metadata)


def _index(
    aggregates: Iterable[Aggregate], words: Callable[[Aggregate], Iterable[str]]
) -> Mapping[str, Sequence[Aggregate]]:
    """Return the aggregates by each of their words."""
    found: dict[str, list[Aggregate]] = {}
    for aggregate in aggregates:
        for word in words(aggregate):
            found.setdefault(word, []).append(aggregate)
    return found


@dataclass(frozen=True, slots=True)
class Server:
    """An instance. ``host`` is the service name of the host it is on (None: on none, as when shelved).

    ``flavor`` is the name of its flavor, which may be deleted; ``extra_specs`` and ``amounts`` are those of the flavor
    when the server was booted or resized. ``created_at`` is ISO 8601. ``hints`` are the reservations that it was booted
    into by a hint; None where that is not known. ``metadata`` are the keys of ours, which begin with ``blazar:``.
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
    hints: frozenset[str] | None = None
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor. ``memory_mb`` in MiB, ``disk_gb`` and ``ephemeral_gb`` in GiB, ``swap_mb`` in MiB.

    If it is not ``public``, only the projects that have access may use it. ``cards`` is what its PCI aliases mean, of a
    flavor that a reservation keeps: Nova does not tell.
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
    cards: tuple[Cards, ...] = ()


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """Servers that are placed together (``affinity``) or apart (``anti-affinity``).

    ``project_id`` is None if it is the service user's own.
    """

    id: str
    name: str
    policy: str
    project_id: str | None = None


class MigrationState(StrEnum):
    """Progress of a migration."""

    RUNNING = "running"
    TO_CONFIRM = "to confirm"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Migration:
    """A migration of a server to a host (its service name), live or cold."""

    host: str | None
    live: bool
    state: MigrationState


@dataclass(frozen=True, slots=True)
class Image:
    """A snapshot of a server. ``project_id`` is None while the service owns it, which made it."""

    id: str
    name: str
    project_id: str | None
    status: str
    metadata: Mapping[str, str] = field(default_factory=dict)


CHANGES = frozenset(
    {
        "disable_service",
        "enable_service",
        "create_aggregate",
        "set_aggregate_metadata",
        "delete_aggregate",
        "add_host",
        "remove_host",
        "create_flavor",
        "set_flavor_specs",
        "delete_flavor",
        "grant_flavor",
        "revoke_flavor",
        "create_server_group",
        "delete_server_group",
        "begin_server_deletion",
        "set_server_metadata",
        "begin_snapshot",
        "set_image_owner",
        "begin_migration",
        "confirm_migration",
    }
)
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Hypervisors(Protocol):
    """Nova's hypervisors."""

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors."""

    def hypervisor(self, *, id: str | None = None, hostname: str | None = None) -> Hypervisor:
        """Return the hypervisor with exactly this id or hostname; NotFound if there is none."""

    def disable_service(self, service_name: str, reason: str) -> None:
        """Disable the nova-compute of a host, or give another reason if it is disabled: no server is placed there.
        NotFound."""

    def enable_service(self, service_name: str) -> None:
        """Enable the nova-compute of a host; the reason is forgotten. NotFound."""


class Aggregates(Protocol):
    """Nova's host aggregates."""

    def aggregates(self) -> AggregateList:
        """Return all aggregates. Callers that ask at the same time share the answer of a read that began after that."""

    def aggregate(self, name: str) -> Aggregate | None:
        """Return the aggregate with exactly this name."""

    def create_aggregate(self, name: str, availability_zone: str | None, metadata: Mapping[str, str]) -> Aggregate:
        """Create an aggregate without hosts. Conflict if there is one of this name."""

    def set_aggregate_metadata(self, aggregate_id: int, metadata: Mapping[str, str | None]) -> None:
        """Set keys, and remove those whose value is None; other keys stay. NotFound."""

    def delete_aggregate(self, aggregate_id: int) -> None:
        """Delete an aggregate. NotFound; Conflict if it still has hosts."""

    def add_host(self, aggregate_id: int, service_name: str) -> None:
        """Add a host to an aggregate.

        NotFound (no such aggregate or host); Conflict if it is in there already, if another aggregate gives it
        another zone, or if it runs servers and its zone would change.
        """

    def remove_host(self, aggregate_id: int, service_name: str) -> None:
        """Remove a host from an aggregate. NotFound (aggregate, or host not in it); Conflict if it runs
        servers and its zone would change."""


class Servers(Protocol):
    """Servers of all projects."""

    def servers_on(self, service_name: str) -> tuple[Server, ...]:
        """Return every server of every project that occupies the host, whatever its state."""

    def count_servers(self) -> Mapping[str, int]:
        """Return how many servers of all projects occupy each host that has some, by service name."""

    def stranded_servers(self, reservation_id: str, project_id: str) -> tuple[Server, ...]:
        """Return the project's servers that were booted into the reservation and are on no host: shelved, or failed."""

    def servers_of_flavor(self, flavor_id: str) -> tuple[Server, ...]:
        """Return every server of every project that has a flavor, whatever its state, the newest second first."""

    def servers_of_project(self, project_id: str) -> tuple[Server, ...]:
        """Return every server of a project with its hints, on hosts or on none; those in the recycle bin are left out.

        CloudUnavailable also if a part of the cloud does not answer: then some are not known.
        """

    def begin_server_deletion(self, server_id: str) -> None:
        """Begin to force-delete a server, also a locked or broken one. It is gone when it is no longer listed.
        A server that does not exist is no error."""

    def set_server_metadata(self, server_id: str, metadata: Mapping[str, str | None]) -> None:
        """Set keys that the server itself can read, and remove those whose value is None; others stay. NotFound;
        Conflict by its state."""


class Migrations(Protocol):
    """Migrations of servers to other hosts."""

    def begin_migration(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Begin to migrate a server to a host. NotFound; Conflict or CloudRefused if that is not possible."""

    def confirm_migration(self, server_id: str) -> None:
        """Confirm a cold migration. NotFound; Conflict if there is none to confirm."""

    def unfinished_moves_from(self, service_name: str) -> Mapping[str, MigrationState]:
        """Return the ids of servers that have left a host by a cold migration that is not complete, with its state.

        RUNNING: the server is no longer listed on the host, and its migration cannot be confirmed yet; or TO_CONFIRM.
        """

    def migrations_of(self, server_id: str) -> tuple[Migration, ...]:
        """Return the migrations of a server, the oldest first."""


class Images(Protocol):
    """Snapshots of servers."""

    def begin_snapshot(self, server_id: str, name: str, metadata: Mapping[str, str]) -> None:
        """Begin to make an image of a server, owned by the server's project. NotFound; Conflict by its state."""

    def set_image_owner(self, image_id: str, project_id: str) -> None:
        """Make a project the owner of an image. NotFound."""

    def images_of_reservation(self, reservation_id: str) -> tuple[Image, ...]:
        """Return the images whose metadata ``blazar:reservation`` is this id, finished or not.

        Anybody can write that on an image of their own, and show it to all projects.
        """


class Flavors(Protocol):
    """Nova's flavors, and the access of projects to them."""

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return the flavor with this id."""

    def create_flavor(self, flavor: Flavor) -> None:
        """Create a private flavor without access for any project. Conflict if there is one with its id or name."""

    def set_flavor_specs(self, flavor_id: str, specs: Mapping[str, str | None]) -> None:
        """Set extra specs, and remove those whose value is None; others stay. NotFound."""

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor; servers keep their sizes and extra specs. NotFound."""

    def flavor_access(self, flavor_id: str) -> frozenset[str]:
        """Return the projects that may boot servers with a private flavor. NotFound, also for a public one."""

    def grant_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project boot servers with a private flavor. NotFound; Conflict if it may already."""

    def revoke_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project no longer boot servers with a private flavor. NotFound (flavor, or it could not before)."""

    def flavor_names(self) -> Mapping[str, str]:
        """Return the names of all flavors, private ones too, by id."""


class ServerGroups(Protocol):
    """Nova's server groups."""

    def server_groups(self, name: str | None = None) -> tuple[ServerGroup, ...]:
        """Return the server groups of all projects with exactly this name (None: all)."""

    def create_server_group(self, name: str, policy: str, project_id: str) -> str:
        """Create a server group with the policy ``affinity`` or ``anti-affinity``; return its id.

        It belongs to the project, whose users alone can use it, or to the project of the service user if that user has
        no role in the project.
        """

    def delete_server_group(self, group_id: str) -> None:
        """Delete a server group; its servers stay. NotFound."""


class Compute(Hypervisors, Aggregates, Servers, Migrations, Images, Flavors, ServerGroups, Protocol):
    """The calls to Nova (and to Glance, for snapshots of servers)."""


class Metrics(Protocol):
    """Tells how busy servers are, by one number each that an operator has chosen."""

    def measure_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return the measured value of each server; one of which nothing certain is known is left out.

        The number of calls does not grow with the servers of a usual lease. CloudUnavailable if nothing is known of any
        of them: no answer never looks like a small number.
        """


class NoMetrics:
    """No source of measurements: nothing is known of any server."""

    def measure_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return nothing."""
        return {}
