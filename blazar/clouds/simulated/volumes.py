# SPDX-License-Identifier: Apache-2.0
"""The simulated Cinder: pools with a capacity, types that lead to them, quotas by type, and volumes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from blazar.clouds.ports.volumes import (
    Attachment,
    Volume,
    VolumePool,
    VolumeQuota,
    VolumeService,
    VolumeType,
    service_of,
)
from blazar.clouds.simulated.service import check_role, look_up
from blazar.clouds.simulated.state import State
from blazar.clouds.simulated.volume_copies import SimulatedVolumeCopies
from blazar.clouds.simulated.volume_state import BlockStorage, PoolState, VolumeState, VolumeTypeState
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode

SERVICE_USER = "blazar"
"""The service user, who makes the volumes of reservations."""

NO_LIMIT = -1

_NO_ROOM = "schedule allocate volume:Could not find any available weighted backend."


class SimulatedVolumeTypes(SimulatedVolumeCopies):
    """Pools, volume types, and quotas of projects, for operators."""

    def volume_pools(self) -> tuple[VolumePool, ...]:
        """Return all pools."""
        with self._calls.reading("volume_pools") as state:
            now = self._clock.now()
            return tuple(pool_of(state.block, pool, now) for pool in state.block.open_pools(state.machines, now))

    def volume_services(self) -> tuple[VolumeService, ...]:
        """Return the cinder-volumes of all backends."""
        with self._calls.reading("volume_services") as state:
            now = self._clock.now()
            return tuple(
                VolumeService(name, state.block.is_served(name, state.machines, now), state.block.closed.get(name))
                for name in state.block.services
            )

    def disable_volume_service(self, name: str, reason: str) -> None:
        """Disable a cinder-volume for a reason."""
        with self._calls.changing("disable_volume_service") as state:
            state.block.closed[_look_up_service(state, name)] = reason

    def enable_volume_service(self, name: str) -> None:
        """Enable a cinder-volume."""
        with self._calls.changing("enable_volume_service") as state:
            state.block.closed.pop(_look_up_service(state, name), None)

    def has_volumes(self, name: str) -> bool:
        """Return whether a volume is on a backend."""
        with self._calls.reading("has_volumes") as state:
            now = self._clock.now()
            there = (volume for volume in state.block.volumes.values() if not volume.is_gone(now))
            return any(volume.pool is not None and service_of(volume.pool) == name for volume in there)

    def volume_types(self) -> tuple[VolumeType, ...]:
        """Return all types."""
        with self._calls.reading("volume_types") as state:
            return tuple(_type_of(found) for found in state.block.types.values())

    def volume_type(self, type_id: str) -> VolumeType | None:
        """Return the type with this id."""
        with self._calls.reading("volume_type") as state:
            found = state.block.types.get(type_id)
            return None if found is None else _type_of(found)

    def has_backups(self) -> bool:
        """Return whether there is a service for backups."""
        with self._calls.reading("has_backups") as state:
            return state.block.backups

    def volume_type_access(self, type_id: str) -> frozenset[str]:
        """Return the projects that may use a private type."""
        with self._calls.reading("volume_type_access") as state:
            return frozenset(_private_type(state, type_id).projects)

    def grant_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project use a private type."""
        with self._calls.changing("grant_volume_type") as state:
            found = _private_type(state, type_id)
            if project_id in found.projects:
                raise Conflict(f"project {project_id} has access to volume type {type_id} already")
            found.projects.append(project_id)

    def revoke_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project no longer use a private type."""
        with self._calls.changing("revoke_volume_type") as state:
            found = _private_type(state, type_id)
            if project_id not in found.projects:
                raise NotFound(f"project {project_id} has no access to volume type {type_id}")
            found.projects.remove(project_id)

    def volume_quota(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return the quota of a project for a type."""
        with self._calls.reading("volume_quota") as state:
            return _quota(state, project_id, type_name)

    def volume_usage(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return what a project has of a type."""
        with self._calls.reading("volume_usage") as state:
            return _usage(state, project_id, type_name, self._clock.now())

    def set_volume_quota(self, project_id: str, type_name: str, quota: VolumeQuota) -> None:
        """Set the quota of a project for a type."""
        with self._calls.changing("set_volume_quota") as state:
            used = _usage(state, project_id, type_name, self._clock.now())
            if NO_LIMIT < quota.gigabytes < used.gigabytes or NO_LIMIT < quota.volumes < used.volumes:
                raise Conflict(f"project {project_id} has more of volume type {type_name} than that")
            limits = {f"gigabytes_{type_name}": quota.gigabytes, f"volumes_{type_name}": quota.volumes}
            state.block.quotas.setdefault(project_id, {}).update(limits)


class SimulatedVolumes(SimulatedVolumeTypes):
    """Implements the volumes port; rules as in Cinder 29."""

    def volume(self, volume_id: str) -> Volume | None:
        """Return a volume."""
        with self._calls.reading("volume") as state:
            found = state.block.volumes.get(volume_id)
            now = self._clock.now()
            return None if found is None or found.is_gone(now) else volume_of(found, now)

    def volumes_of_type(self, type_id: str, *, project_id: str | None = None) -> tuple[Volume, ...]:
        """Return the volumes of a type."""
        with self._calls.reading("volumes_of_type") as state:
            here = (v for v in state.block.volumes.values() if v.type_id == type_id)
            return self._show_volumes(v for v in here if project_id in (None, v.project_id))

    def volumes_with(self, key: str, value: str, *, project_id: str) -> tuple[Volume, ...]:
        """Return the volumes of a project with a pair in their metadata."""
        with self._calls.reading("volumes_with") as state:
            here = (v for v in state.block.volumes.values() if v.project_id == project_id)
            return self._show_volumes(v for v in here if v.metadata.get(key) == value)

    def service_volumes(self) -> tuple[Volume, ...]:
        """Return the volumes of the service user."""
        with self._calls.reading("service_volumes") as state:
            return self._show_volumes(v for v in state.block.volumes.values() if v.user_id == SERVICE_USER)

    def begin_volume(
        self,
        *,
        project_id: str,
        type_id: str,
        size_gb: int,
        name: str,
        metadata: Mapping[str, str],
        image_id: str | None = None,
    ) -> Volume:
        """Begin to create a volume."""
        with self._calls.changing("begin_volume") as state:
            check_role(state, project_id)
            now = self._clock.now()
            wanted = VolumeState(
                str(uuid.uuid4()),
                name,
                project_id,
                SERVICE_USER,
                type_id,
                size_gb,
                None,
                (now + self._durations.volume).isoformat(),
                now.isoformat(),
                metadata=dict(metadata),
            )
            return volume_of(add_volume(state, wanted, image_id, now), now)

    def volume_failure(self, volume: Volume) -> str:
        """Return why a volume failed."""
        with self._calls.reading("volume_failure") as state:
            found = state.block.volumes.get(volume.id)
            return _NO_ROOM if found is not None and found.pool is None else ""

    def begin_volume_growth(self, volume_id: str, size_gb: int) -> None:
        """Begin to grow a volume; one that does not fit stays as it is."""
        with self._calls.changing("begin_volume_growth") as state:
            now = self._clock.now()
            found = _look_up_volume(state, volume_id, now)
            if found.status(now) not in ("available", "in-use"):
                raise Conflict(f"volume {volume_id} is {found.status(now)}")
            if size_gb <= found.size_gb:
                raise CloudRefused(f"volume {volume_id} has {found.size_gb} GiB; a volume can only grow")
            type_ = state.block.types[found.type_id]
            _check_quota(state, found.project_id, type_.name, VolumeQuota(size_gb - found.size_gb, 0), now)
            pool = next(pool for pool in state.block.pools if pool.name == found.pool)
            if _fits(state.block, pool, size_gb - found.size_gb, type_, now):
                found.size_gb = size_gb

    def begin_attachment(self, volume_id: str, server_id: str, *, project_id: str) -> None:
        """Attach a volume to a server."""
        with self._calls.changing("begin_attachment") as state:
            now = self._clock.now()
            check_role(state, project_id)
            found, server = state.block.volumes.get(volume_id), state.servers.get(server_id)
            if found is None or server is None or {found.project_id, server.project_id} != {project_id}:
                raise NotFound(f"there is no server {server_id} or no volume {volume_id}")
            if found.status(now) != "available" or server.status_at(now) != "ACTIVE":
                raise Conflict(f"volume {volume_id} is {found.status(now)}, the server {server.status_at(now)}")
            found.servers[str(uuid.uuid4())] = server_id

    def begin_detachment(self, volume_id: str, server_id: str) -> None:
        """Detach a volume from a server."""
        with self._calls.changing("begin_detachment") as state:
            now = self._clock.now()
            found = state.block.volumes.get(volume_id)
            server = state.servers.get(server_id)
            if found is None or server is None or server.is_gone(now) or server_id not in found.servers.values():
                raise NotFound(f"server {server_id} does not have volume {volume_id}")
            if server_id in found.roots:
                raise Conflict("Cannot detach a root device volume")
            found.servers = {key: value for key, value in found.servers.items() if value != server_id}

    def drop_attachment(self, attachment_id: str) -> None:
        """Delete an attachment that no server has."""
        with self._calls.changing("drop_attachment") as state:
            now = self._clock.now()
            found = next((v for v in state.block.volumes.values() if attachment_id in v.servers), None)
            if found is None:
                raise NotFound(f"there is no attachment {attachment_id}")
            server = state.servers.get(found.servers[attachment_id])
            if server is not None and not server.is_gone(now):
                raise Conflict(f"attachment {attachment_id} is in use by server {server.id}")
            del found.servers[attachment_id]

    def cancel_transfer(self, volume_id: str) -> None:
        """Cancel the offer of a volume."""
        with self._calls.changing("cancel_transfer") as state:
            if volume_id in state.block.volumes:
                state.block.volumes[volume_id].offered = False

    def begin_volume_deletion(self, volume_id: str) -> None:
        """Begin to delete a volume with its snapshots."""
        with self._calls.changing("begin_volume_deletion") as state:
            begin_to_delete(state, volume_id, self._clock.now(), ends_at=self._clock.now() + self._durations.deletion)

    def _show_volumes(self, found: Iterable[VolumeState]) -> tuple[Volume, ...]:
        now = self._clock.now()
        return tuple(
            volume_of(volume, now) for volume in sorted(found, key=lambda v: v.created_at) if not volume.is_gone(now)
        )


def add_volume(state: State, wanted: VolumeState, image_id: str | None, now: datetime) -> VolumeState:
    """Add a volume, in a pool that its type leads to; NotFound, CloudRefused."""
    block = state.block
    block.remove_gone(now)
    type_ = block.types.get(wanted.type_id)
    if type_ is None or not (type_.public or wanted.project_id in type_.projects):
        raise NotFound(f"there is no volume type {wanted.type_id}")
    if image_id is not None:
        _check_image(state, wanted, image_id)
    _check_quota(state, wanted.project_id, type_.name, VolumeQuota(wanted.size_gb, 1), now)
    there = (
        pool
        for pool in state.block.open_pools(state.machines, now)
        if _type_of(type_).leads_to(pool_of(block, pool, now))
    )
    pool = next((pool for pool in there if _fits(block, pool, wanted.size_gb, type_, now)), None)
    made = replace(wanted, pool=pool.name if pool else None)
    block.volumes[made.id] = made
    return made


def _check_image(state: State, wanted: VolumeState, image_id: str) -> None:
    found = state.boot.images.get(image_id)
    if found is None or found.project_id not in ("", wanted.project_id) or found.status != "active":
        raise CloudRefused(f"Invalid image identifier or unable to access requested image {image_id}.")
    if wanted.size_gb < max(found.min_disk_gb, found.size_gb):
        raise CloudRefused(f"Size of image {image_id} is larger than {wanted.size_gb} GiB")


def begin_to_delete(state: State, volume_id: str, now: datetime, *, ends_at: datetime) -> None:
    """Begin to delete a volume; NotFound, Conflict."""
    found = _look_up_volume(state, volume_id, now)
    if found.status(now) not in ("available", "error", "deleting"):
        raise Conflict(f"Volume {volume_id} status must be available or error, and is {found.status(now)}")
    if found.gone_at is None:
        found.gone_at = ends_at.isoformat()
    state.block.remove_gone(now)


def _look_up_service(state: State, name: str) -> str:
    if name not in state.block.services:
        raise NotFound(f"there is no cinder-volume {name}")
    return name


def pool_of(block: BlockStorage, pool: PoolState, now: datetime) -> VolumePool:
    """Return a pool as its driver reports it: without delay."""
    used = block.provisioned(pool, now)
    free = None if pool.total_gb is None else pool.total_gb if pool.ratio is not None else pool.total_gb - used
    return VolumePool(
        pool.name,
        pool.backend_name,
        pool.pool_name,
        pool.total_gb,
        free,
        used,
        pool.reserved_percentage,
        thin=pool.ratio is not None,
        thick=pool.ratio is None,
        ratio=pool.ratio or 1.0,
    )


def volume_of(found: VolumeState, now: datetime) -> Volume:
    """Return a volume as Cinder shows it."""
    return Volume(
        found.id,
        found.name,
        found.project_id,
        found.type_id,
        found.size_gb,
        found.status(now),
        found.user_id == SERVICE_USER,
        dict(found.metadata),
        tuple(Attachment(id_, server_id) for id_, server_id in found.servers.items()),
        found.created_at,
    )


def _type_of(found: VolumeTypeState) -> VolumeType:
    return VolumeType(found.id, found.name, found.public, dict(found.specs))


def _private_type(state: State, type_id: str) -> VolumeTypeState:
    found = state.block.types.get(type_id)
    if found is None or found.public:
        raise NotFound(f"there is no private volume type {type_id}")
    return found


def _look_up_volume(state: State, volume_id: str, now: datetime) -> VolumeState:
    state.block.remove_gone(now)
    return look_up(state.block.volumes, volume_id, "volume")


def _quota(state: State, project_id: str, type_name: str) -> VolumeQuota:
    limits = state.block.quotas.get(project_id, {})
    return VolumeQuota(limits.get(f"gigabytes_{type_name}", NO_LIMIT), limits.get(f"volumes_{type_name}", NO_LIMIT))


def _usage(state: State, project_id: str, type_name: str, now: datetime) -> VolumeQuota:
    named = {s.id for s in state.block.types.values() if s.name == type_name}
    mine = [v for v in state.block.volumes.values() if v.project_id == project_id and v.type_id in named]
    there = [volume for volume in mine if not volume.is_gone(now)]
    return VolumeQuota(sum(volume.taken_gb for volume in there), len(there))


def _check_quota(state: State, project_id: str, type_name: str, more: VolumeQuota, now: datetime) -> None:
    """Raise CloudRefused if a project would exceed its quota for a type, or for all."""
    limits = state.block.quotas.get(project_id, {})
    every = total_usage(state, project_id, now)
    of_type = _usage(state, project_id, type_name, now)
    for name, used, wanted in (
        (f"gigabytes_{type_name}", of_type.gigabytes, more.gigabytes),
        (f"volumes_{type_name}", of_type.volumes, more.volumes),
        ("gigabytes", every.gigabytes, more.gigabytes),
        ("volumes", every.volumes, more.volumes),
    ):
        limit = limits.get(name, NO_LIMIT)
        if limit != NO_LIMIT and wanted and used + wanted > limit:
            raise CloudRefused(
                f"Requested volume exceeds allowed {name} quota: {used + wanted} of {limit}",
            ).because(ReasonCode.QUOTA_EXCEEDED)


def total_usage(state: State, project_id: str, now: datetime) -> VolumeQuota:
    """Return what a project has of all types, as its quota counts it."""
    mine = [v for v in state.block.volumes.values() if v.project_id == project_id and not v.is_gone(now)]
    return VolumeQuota(sum(volume.taken_gb for volume in mine), len(mine))


def _fits(block: BlockStorage, pool: PoolState, size_gb: int, type_: VolumeTypeState, now: datetime) -> bool:
    room = pool_of(block, pool, now).unprovisioned_gb(type_.specs)
    return room is None or size_gb <= room
