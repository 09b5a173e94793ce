# SPDX-License-Identifier: Apache-2.0
"""What an evacuation is planned from, and the plan: servers on hosts, other hosts that may take them, and moves."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum

from blazar.model.base.amounts import Amounts
from blazar.model.base.values import dataclass, field


@dataclass(frozen=True, slots=True)
class HostedServer:
    """A server on a host that is to be emptied.

    ``amounts`` is what it takes of a host: VCPU, MEMORY_MB in MiB, DISK_GB in GiB. ``copied_gib`` is its disk that has
    to be copied, 0 for one on a volume or on shared storage. ``live``: it moves while it runs. ``traits`` are what a
    host must have for it. ``together`` and ``apart`` are its server groups with affinity and with anti-affinity.
    ``obstacle`` tells why it may not move, empty if it may. ``avoid`` are hosts, by name, that do not take it.
    """

    id: str
    project_id: str
    amounts: Amounts
    copied_gib: int = 0
    live: bool = True
    traits: frozenset[str] = frozenset()
    together: str = ""
    apart: str = ""
    obstacle: str = ""
    avoid: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EvacuationCandidate:
    """A host that may be emptied. ``building`` is how many servers are being booted there that are not known yet."""

    resource_id: int
    name: str
    occupants: tuple[HostedServer, ...] = ()
    building: int = 0


@dataclass(frozen=True, slots=True)
class TargetHost:
    """A host that may take servers. ``capacity`` and ``used`` are those of Placement; ``groups`` are the server groups
    with anti-affinity that have a server there."""

    name: str
    capacity: Amounts
    used: Amounts = field(default_factory=Amounts)
    traits: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()


class EvacuationStrategy(StrEnum):
    """What is spared when hosts are chosen that are to be emptied."""

    FEWEST = "fewest"
    """The fewest servers move."""
    SMALLEST = "smallest"
    """The least memory and disk are copied, which takes the least time."""
    CHEAPEST = "cheapest"
    """The least trouble for the owners, by the state and the disks of their servers."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How hosts are emptied.

    ``headroom`` is the share of every target, in percent, that stays free. ``rate`` is how much of memory and disks is
    copied in a second by one move, in MiB; ``per_host`` and ``in_all`` are how many moves run at the same time from
    one host and in all. ``limit`` is how long it may take.
    """

    strategy: EvacuationStrategy = EvacuationStrategy.FEWEST
    headroom: int = 10
    rate: int = 100
    per_host: int = 2
    in_all: int = 10
    limit: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class ServerMove:
    """A server and the hosts between which it moves, by name."""

    server_id: str
    project_id: str
    source: str
    target: str
    live: bool = True


@dataclass(frozen=True, slots=True)
class EvacuationPlan:
    """The hosts that are emptied, by calendar id, the moves, and how long they take at most."""

    resource_ids: tuple[int, ...]
    moves: tuple[ServerMove, ...]
    duration: timedelta


class ObstacleKind(StrEnum):
    """Why a host is not emptied."""

    SERVER = "server"
    """A server on it may not move."""
    BUILDING = "building"
    """A server is being booted on it."""
    ROOM = "room"
    """There is no room for all of its servers together."""
    TIME = "time"
    """It would take too long."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a host, by name, is not emptied; ``server_id`` and ``why`` for a server that may not move."""

    host: str
    kind: ObstacleKind
    server_id: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class NotEnough:
    """Fewer hosts than needed can be emptied: ``found`` of ``needed``, and why not the others."""

    needed: int
    found: int
    obstacles: tuple[Obstacle, ...]
