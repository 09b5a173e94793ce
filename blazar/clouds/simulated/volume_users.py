# SPDX-License-Identifier: Apache-2.0
"""Users of volumes in the simulated cloud, and the operators of its pools."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from blazar.clouds.ports import Volume
from blazar.clouds.simulated.storage import StateStorage
from blazar.clouds.simulated.volume_state import PoolState, VolumeState, VolumeTypeState
from blazar.clouds.simulated.volumes import created, delete, volume_of
from blazar.model.clock import Clock


class VolumeUsers:
    """The users and operators of Cinder, whose calls have no faults."""

    def __init__(self, storage: StateStorage, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock

    def add_pool(self, pool: PoolState, *, type_name: str, public: bool = False) -> str:
        """Add a pool with a type that leads only to it; return the id of the type."""
        with self._storage.open(to_change=True) as state:
            state.block.pools.append(pool)
            specs = {"volume_backend_name": pool.backend_name, "pool_name": pool.pool_name}
            made = VolumeTypeState(str(uuid.uuid4()), type_name, public, specs)
            state.block.types[made.id] = made
            return made.id

    def create(self, project_id: str, type_id: str, size_gb: int, *, name: str = "mine") -> Volume:
        """Create a volume; NotFound, CloudRefused."""
        with self._storage.open(to_change=True) as state:
            now = self._clock.now()
            wanted = VolumeState(
                str(uuid.uuid4()), name, project_id, "u", type_id, size_gb, None, now.isoformat(), now.isoformat()
            )
            return volume_of(created(state, wanted, None, now), now)

    def attach(self, volume_id: str, server_id: str, *, root: bool = False) -> str:
        """Attach a volume to a server; return the id of the attachment."""
        with self._storage.open(to_change=True) as state:
            found, attachment = state.block.volumes[volume_id], str(uuid.uuid4())
            found.servers[attachment] = server_id
            if root:
                found.roots.append(server_id)
            return attachment

    def delete(self, volume_id: str) -> None:
        """Delete a volume; NotFound, Conflict."""
        with self._storage.open(to_change=True) as state:
            delete(state, volume_id, self._clock.now(), ends_at=self._clock.now())

    def snapshot(self, volume_id: str) -> None:
        """Make a snapshot of a volume."""
        with self._storage.open(to_change=True) as state:
            found = state.block.volumes[volume_id]
            found.snapshots_gb.append(found.size_gb)

    def offer(self, volume_id: str) -> None:
        """Offer a volume to another project."""
        with self._storage.open(to_change=True) as state:
            state.block.volumes[volume_id].offered = True

    def rename(self, volume_id: str, *, name: str = "mine", metadata: Mapping[str, str] | None = None) -> None:
        """Change all that the owner of a volume may change of it."""
        with self._storage.open(to_change=True) as state:
            found = state.block.volumes[volume_id]
            found.name, found.metadata = name, dict(metadata or {})

    def limit(self, project_id: str, **limits: int) -> None:
        """Set quotas of a project, as ``gigabytes``."""
        with self._storage.open(to_change=True) as state:
            state.block.quotas.setdefault(project_id, {}).update(limits)
