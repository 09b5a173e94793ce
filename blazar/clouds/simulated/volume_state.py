# SPDX-License-Identifier: Apache-2.0
"""The state of the simulated Cinder, as JSON objects could have it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from blazar.clouds.ports.volumes import service_of
from blazar.clouds.simulated.machines import MachineState
from blazar.model.base.values import dataclass, field


@dataclass(slots=True)
class PoolState:
    """A pool; ``total_gb`` in GiB, None if its driver does not know it. ``ratio``: of a thin pool."""

    name: str
    backend_name: str
    pool_name: str
    total_gb: int | None = None
    reserved_percentage: int = 0
    ratio: float | None = None


@dataclass(slots=True)
class VolumeTypeState:
    """A volume type, and the projects that have access if it is private."""

    id: str
    name: str
    public: bool = True
    specs: dict[str, str] = field(default_factory=dict)
    projects: list[str] = field(default_factory=list)


@dataclass(slots=True)
class VolumeState:
    """A volume; ``pool`` is None if there was no room for it.

    ``ready_at`` and ``gone_at`` are the instants (ISO 8601) at which what was begun, or its deletion, is complete.
    ``servers`` has the id of a server by that of the attachment; ``roots`` are those that have booted from it.
    ``snapshots_gb`` are the sizes of its snapshots. Until ``busy_until`` a copy is made: ``busy`` is its status.
    """

    id: str
    name: str
    project_id: str
    user_id: str
    type_id: str
    size_gb: int
    pool: str | None
    ready_at: str
    created_at: str = ""
    gone_at: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)
    servers: dict[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    snapshots_gb: list[int] = field(default_factory=list)
    offered: bool = False
    busy: str = ""
    busy_until: str = ""

    def is_gone(self, now: datetime) -> bool:
        """Return whether the deletion is complete."""
        return self.gone_at is not None and datetime.fromisoformat(self.gone_at) <= now

    def status(self, now: datetime) -> str:
        """Return Cinder's status."""
        if self.gone_at is not None:
            return "deleting"
        if datetime.fromisoformat(self.ready_at) > now:
            return "creating"
        if self.pool is None:
            return "error"
        if self.offered:
            return "awaiting-transfer"
        if self.busy and datetime.fromisoformat(self.busy_until) > now:
            return self.busy
        return "in-use" if self.servers else "available"

    @property
    def taken_gb(self) -> int:
        """Return what it takes of its pool, and of a quota."""
        return self.size_gb + sum(self.snapshots_gb)


@dataclass(slots=True)
class BackupState:
    """A backup; ``ready_at`` is the instant (ISO 8601) at which it is complete, or has failed."""

    id: str
    name: str
    project_id: str
    volume_id: str
    ready_at: str
    fails: bool = False


@dataclass(slots=True)
class BlockStorage:
    """All of Cinder. ``quotas`` has the limits of projects by what they limit, as ``gigabytes_fast``; -1 is none.

    ``backups``: there is a service that makes them; ``copies`` has them. So many of the next images and backups of
    volumes as ``failing`` says fail. ``closed`` are the services that are disabled, with the reason of each.
    """

    pools: list[PoolState] = field(default_factory=list)
    types: dict[str, VolumeTypeState] = field(default_factory=dict)
    volumes: dict[str, VolumeState] = field(default_factory=dict)
    quotas: dict[str, dict[str, int]] = field(default_factory=dict)
    backups: bool = False
    copies: dict[str, BackupState] = field(default_factory=dict)
    failing: int = 0
    closed: dict[str, str] = field(default_factory=dict)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> BlockStorage:
        """Return the state whose JSON this is; files of older versions have none of it."""
        return cls(
            pools=[PoolState(**value) for value in data.get("pools", ())],
            types={key: VolumeTypeState(**value) for key, value in data.get("types", {}).items()},
            volumes={key: VolumeState(**value) for key, value in data.get("volumes", {}).items()},
            quotas={key: dict(value) for key, value in data.get("quotas", {}).items()},
            backups=data.get("backups", False),
            copies={key: BackupState(**value) for key, value in data.get("copies", {}).items()},
            failing=data.get("failing", 0),
            closed=dict(data.get("closed", {})),
        )

    @property
    def services(self) -> tuple[str, ...]:
        """Return the cinder-volumes of all backends, by their names."""
        return tuple(dict.fromkeys(service_of(pool.name) for pool in self.pools))

    def is_served(self, service: str, machines: Mapping[str, MachineState], now: datetime) -> bool:
        """Return whether a cinder-volume is up: the machines of all of its pools are."""
        names = {pool.name for pool in self.pools if service_of(pool.name) == service}
        return all(machines[name].is_up(now) for name in names & machines.keys())

    def open_pools(self, machines: Mapping[str, MachineState], now: datetime) -> list[PoolState]:
        """Return the pools that Cinder's scheduler knows: those whose service is up and enabled."""
        known = {one for one in self.services if one not in self.closed and self.is_served(one, machines, now)}
        return [pool for pool in self.pools if service_of(pool.name) in known]

    def remove_gone(self, now: datetime) -> None:
        """Remove the volumes whose deletion is complete."""
        for volume in [volume for volume in self.volumes.values() if volume.is_gone(now)]:
            del self.volumes[volume.id]

    def provisioned(self, pool: PoolState, now: datetime) -> int:
        """Return how much of a pool volumes and snapshots have, in GiB."""
        there = (volume for volume in self.volumes.values() if volume.pool == pool.name and not volume.is_gone(now))
        return sum(volume.taken_gb for volume in there)
