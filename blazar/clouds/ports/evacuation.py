# SPDX-License-Identifier: Apache-2.0
"""The evacuation port: what is needed to move other people's servers off a host, in Nova and in Placement.

Nova answers 202 to a live migration and checks it afterwards, so an answer is never an outcome: only the record of the
migration is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum
from functools import reduce
from operator import add
from typing import Protocol

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import ResourceInventory


class Special(StrEnum):
    """What a flavor asks of the hardware and makes a move refused, or possible only to some hosts."""

    PCI = "pci"
    VGPU = "vgpu"
    VTPM = "vtpm"
    SEV = "sev"
    ACCELERATOR = "accelerator"
    PMEM = "pmem"
    NUMA = "numa"
    """A NUMA topology, pinned CPUs or huge pages."""


@dataclass(frozen=True, slots=True)
class OccupantGroup:
    """The server group of a server: ``members`` are the ids of all its servers, on whatever host."""

    id: str
    policy: str
    members: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Occupant:
    """A server on a host, with what decides whether it may be moved, and how.

    ``host`` is a service name. ``task_state`` is Nova's word while something is done to it. ``hints`` are the
    reservations that it was booted into by a hint; None where that is not known. ``amounts`` are those of its flavor
    when it was booted or resized, without the root disk if that is a volume (``volume_backed``): its DISK_GB is what a
    move copies unless the hosts share their storage.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    host: str
    status: str
    task_state: str | None = None
    locked: bool = False
    tags: frozenset[str] = frozenset()
    hints: frozenset[str] | None = None
    flavor: str | None = None
    extra_specs: Mapping[str, str] = field(default_factory=dict, hash=False)
    amounts: Amounts = field(default_factory=Amounts)
    volume_backed: bool = False
    group: OccupantGroup | None = None

    @property
    def memory_mb(self) -> int:
        """Its memory in MiB, which a live migration copies."""
        return self.amounts.get("MEMORY_MB")

    @property
    def disk_gb(self) -> int:
        """Its disks on the host in GiB."""
        return self.amounts.get("DISK_GB")

    @property
    def specials(self) -> frozenset[Special]:
        """What its flavor asks of the hardware beyond sizes. Properties of its image and ports are not known here."""
        return specials_of(self.extra_specs)


class MovePhase(StrEnum):
    """Progress of a move."""

    WAITING = "waiting"
    """Accepted, queued behind other moves from the same host, or prepared."""
    RUNNING = "running"
    NO_RETURN = "no return"
    """The server runs on the target already, as after the begin of post-copy: it cannot be aborted, only awaited."""
    TO_CONFIRM = "to confirm"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


_PHASES = {
    "accepted": MovePhase.WAITING,
    "queued": MovePhase.WAITING,
    "pre-migrating": MovePhase.WAITING,
    "preparing": MovePhase.WAITING,
    "running": MovePhase.RUNNING,
    "migrating": MovePhase.RUNNING,
    "running (post-copy)": MovePhase.NO_RETURN,
    "post-migrating": MovePhase.NO_RETURN,
    "finished": MovePhase.TO_CONFIRM,
    "confirming": MovePhase.TO_CONFIRM,
    "completed": MovePhase.COMPLETED,
    "confirmed": MovePhase.COMPLETED,
    "done": MovePhase.COMPLETED,
    "failed": MovePhase.FAILED,
    "error": MovePhase.FAILED,
    "reverted": MovePhase.FAILED,
    "cancelled": MovePhase.CANCELLED,
}

OVER = frozenset({MovePhase.COMPLETED, MovePhase.FAILED, MovePhase.CANCELLED})
"""The phases of a move of which nothing more is to be expected."""

OPEN_STATUSES = tuple(status for status, phase in _PHASES.items() if phase not in OVER)
"""Nova's statuses of a migration that is not over, in the order in which they follow each other."""


@dataclass(frozen=True, slots=True)
class Move:
    """The record of a migration of a server, which is never deleted.

    ``source`` and ``target`` are service names; there is no target before one was found. ``status`` is Nova's word.
    ``consumer`` is the id under which the move holds the server's resources on the source in Placement, while the
    server itself holds those on the target.
    """

    id: str
    consumer: str
    server_id: str
    status: str
    live: bool
    source: str
    target: str | None
    started_at: datetime
    changed_at: datetime

    @property
    def phase(self) -> MovePhase:
        """The progress that the status means; one that is not known is in progress."""
        return _PHASES.get(self.status, MovePhase.RUNNING)

    @property
    def is_open(self) -> bool:
        """Whether something may still come of it."""
        return self.phase not in OVER

    @property
    def can_be_aborted(self) -> bool:
        """Whether Nova takes an abort in this status."""
        return self.live and self.status in ("queued", "preparing", "running")


@dataclass(frozen=True, slots=True)
class ServerOwner:
    """Whose a server is. The record of a move does not say: it has the project and user that asked for the move."""

    project_id: str
    user_id: str


@dataclass(frozen=True, slots=True)
class HostRoom:
    """What a host has for servers in Placement, and who has how much of it, by consumer.

    ``inventory`` is as in ``Placement.inventories``. A consumer is a server, or the ``consumer`` of a move from this
    host. One that is neither is the boot, or the arrival, of a server that Nova does not list on the host yet; or was
    left behind for good, as by a server that was deleted while it moved.
    """

    inventory: ResourceInventory
    consumers: Mapping[str, Amounts] = field(default_factory=dict, hash=False)

    @property
    def used(self) -> Amounts:
        """What all consumers have together."""
        return reduce(add, self.consumers.values(), Amounts())

    @property
    def free(self) -> Amounts:
        """What is left; nothing of a class of which more is used than there is."""
        used = self.used
        return Amounts.of({name: max(0, amount - used.get(name)) for name, amount in self.inventory.capacity})

    def has_room_for(self, amounts: Amounts) -> bool:
        """Return whether one more server of this size fits, within the limits of a single server too."""
        free = self.free
        return all(n <= free.get(name) and self.inventory.allows(name, n) for name, n in amounts)


CHANGES = frozenset({"begin_move", "begin_move_abort"})
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Evacuation(Protocol):
    """The calls that empty a host of the servers of others."""

    def occupants(self, *service_names: str) -> tuple[Occupant, ...]:
        """Return every server of every project that occupies one of these hosts, whatever its state.

        For several hosts at once what is looked up beside the servers is looked up once. A server that arrives on one
        of them meanwhile may be there on both.
        """

    def moves_of(self, server_id: str) -> tuple[Move, ...]:
        """Return all moves of a server, also those that are over, the oldest first. None if there is no such server."""

    def open_moves(self, service_name: str) -> tuple[Move, ...]:
        """Return the moves from a host or to it that are not over, the oldest first."""

    def moves_since(self, service_name: str, since: datetime) -> tuple[Move, ...]:
        """Return the moves from a host that began at or after an instant, also those that are over, the oldest first.

        What owners have done, as to resize a server, is none.
        """

    def owners(self, server_ids: Collection[str]) -> Mapping[str, ServerOwner]:
        """Return whose these servers are; those that are gone are left out."""

    def rooms(self, hypervisor_hostnames: Collection[str]) -> Mapping[str, HostRoom]:
        """Return inventories and consumers of hosts, by hypervisor hostname; unknown ones are left out."""

    def begin_move(self, server_id: str, service_name: str, *, live: bool) -> None:
        """Ask for a move of a server to a host, which the scheduler checks as it would a boot there.

        NotFound (server); Conflict (its state, as another move); CloudRefused (no such host, or what such a server may
        not do). Everything else shows in the record of the move alone: no room, a filter that refuses the host, a
        failure underway. The record appears soon, not at once: until then ``task_state`` alone says that the server
        moves. A cold move has to be confirmed when it is done.
        """

    def begin_move_abort(self, server_id: str, move_id: str) -> None:
        """Begin to abort a live move: the server stays where it is, and the record says so when that is done.

        NotFound (server); Conflict if it cannot be aborted: it is over, or beyond the point of return. A move that the
        server never had is either.
        """


def specials_of(extra_specs: Mapping[str, str]) -> frozenset[Special]:
    """Return what a flavor with these extra specs asks of the hardware."""
    return frozenset(special for key, value in extra_specs.items() if (special := _special(key, value)) is not None)


def _special(key: str, value: str) -> Special | None:
    # Resources may carry the number of their group, as in ``resources1:VGPU``.
    if key.startswith("resources"):
        return {"VGPU": Special.VGPU, "PCI_DEVICE": Special.PCI}.get(key.partition(":")[2])
    match key:
        case "pci_passthrough:alias":
            return Special.PCI
        case "hw:tpm_version" | "hw:tpm_model":
            return Special.VTPM
        case "hw:mem_encryption":
            return Special.SEV if value.strip().lower() in ("true", "1", "yes", "on", "t", "y") else None
        case "accel:device_profile":
            return Special.ACCELERATOR
        case "hw:pmem":
            return Special.PMEM
        case "hw:cpu_policy":
            return Special.NUMA if value in ("dedicated", "mixed") else None
        case "hw:mem_page_size" | "hw:numa_nodes":
            return Special.NUMA
    return None
