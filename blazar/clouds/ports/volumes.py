# SPDX-License-Identifier: Apache-2.0
"""The volumes port: pools of storage, the private types that lead to them, and volumes in users' projects."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from blazar.model.base.values import dataclass, field

BACKEND_NAME, POOL_NAME, PROVISIONING = "volume_backend_name", "pool_name", "provisioning:type"
"""Extra specs of a volume type: the backend and the pool that it leads to, and ``thick`` or ``thin``."""


@dataclass(frozen=True, slots=True)
class VolumePool:
    """A pool, as its driver reported it some time ago (a minute, by default). Sizes in whole GiB.

    ``total_gb`` and ``free_gb`` are None if the driver does not know them, or says that they are infinite.
    ``ratio`` is how many times its size a thin pool may be promised.
    """

    name: str
    backend_name: str
    pool_name: str
    total_gb: int | None
    free_gb: int | None
    provisioned_gb: int = 0
    reserved_percentage: int = 0
    thin: bool = False
    thick: bool = False
    ratio: float = 1.0

    def capacity_gb(self, specs: Mapping[str, str]) -> int | None:
        """Return how much Cinder lets volumes of a type with these extra specs have; None if the pool does not say.

        The rule of Cinder's scheduler (``calculate_capacity_factors`` in its ``sched_utils``).
        """
        if self.total_gb is None:
            return None
        base = self.total_gb - self.total_gb * self.reserved_percentage // 100
        return int(base * self.ratio) if self._is_thin_for(specs) else base

    def unprovisioned_gb(self, specs: Mapping[str, str]) -> int | None:
        """Return how much of that is left beside what was provisioned; None if the pool does not say."""
        capacity = self.capacity_gb(specs)
        if capacity is None:
            return None
        left = capacity - self.provisioned_gb
        if not self._is_thin_for(specs) and self.free_gb is not None:
            left = min(left, self.free_gb)
        return max(0, left)

    def _is_thin_for(self, specs: Mapping[str, str]) -> bool:
        return self.thin and not (self.thick and specs.get(PROVISIONING) == "thick")


@dataclass(frozen=True, slots=True)
class VolumeType:
    """A volume type with its extra specs; one that is not ``public`` is for the projects that have access."""

    id: str
    name: str
    public: bool
    specs: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_specific(self) -> bool:
        """Return whether it names a backend; any other type leads anywhere."""
        return BACKEND_NAME in self.specs

    def leads_to(self, pool: VolumePool) -> bool:
        """Return whether Cinder may put a volume of this type into a pool."""
        named = {BACKEND_NAME: pool.backend_name, POOL_NAME: pool.pool_name}
        return all(self.specs.get(key, value) == value for key, value in named.items())


@dataclass(frozen=True, slots=True)
class Attachment:
    """What a volume is attached to; ``server_id`` is as its user wrote it, and empty if it is no server."""

    id: str
    server_id: str


@dataclass(frozen=True, slots=True)
class Volume:
    """A volume. ``size_gb`` in GiB; ``created_at`` is ISO 8601.

    Its users can change name and metadata. ``ours``: the service user has made it, which they cannot change.
    """

    id: str
    name: str
    project_id: str
    type_id: str
    size_gb: int
    status: str
    ours: bool
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    attachments: tuple[Attachment, ...] = ()
    created_at: str = ""


@dataclass(frozen=True, slots=True)
class VolumeQuota:
    """The quota of a project for one type, in GiB and volumes."""

    gigabytes: int
    volumes: int


class CopyState(StrEnum):
    """The state of a copy of a volume."""

    MAKING = "making"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class VolumeCopy:
    """An image or a backup of a volume. ``failure``: what Cinder says of one that failed."""

    id: str
    name: str
    state: CopyState
    failure: str = ""


@dataclass(frozen=True, slots=True)
class VolumeService:
    """The cinder-volume of a backend, by its name ``host@backend``; it may serve several pools.

    ``up`` tells whether it runs, and ``mark`` for which reason it was disabled, None if it is enabled.
    """

    name: str
    up: bool
    mark: str | None = None


def service_of(pool: str) -> str:
    """Return the service of a pool, by the name of that: ``host@backend#pool``."""
    return pool.partition("#")[0]


CHANGES = frozenset(
    {
        "enable_volume_service",
        "disable_volume_service",
        "grant_volume_type",
        "revoke_volume_type",
        "set_volume_quota",
        "begin_volume",
        "begin_volume_growth",
        "begin_attachment",
        "begin_detachment",
        "drop_attachment",
        "cancel_transfer",
        "begin_volume_deletion",
        "begin_upload",
        "begin_backup",
    }
)
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Volumes(Protocol):
    """The calls to Cinder, and to Nova to detach. Lists are of all projects."""

    def volume_pools(self) -> tuple[VolumePool, ...]:
        """Return all pools."""

    def volume_services(self) -> tuple[VolumeService, ...]:
        """Return the cinder-volumes of all backends, whether they run or not."""

    def disable_volume_service(self, name: str, reason: str) -> None:
        """Let a backend get no new volumes, for a reason that operators see. NotFound."""

    def enable_volume_service(self, name: str) -> None:
        """Let a backend get new volumes. NotFound."""

    def has_volumes(self, name: str) -> bool:
        """Return whether a volume is on a backend, in whichever of its pools and in whichever state; one call."""

    def volume_types(self) -> tuple[VolumeType, ...]:
        """Return all types, private ones too."""

    def volume_type(self, type_id: str) -> VolumeType | None:
        """Return the type with this id."""

    def has_backups(self) -> bool:
        """Return whether the service that makes backups is there and up."""

    def volume_type_access(self, type_id: str) -> frozenset[str]:
        """Return the projects that may use a private type. NotFound, also for a public one."""

    def grant_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project use a private type. NotFound; Conflict if it may already."""

    def revoke_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project no longer use a private type; its volumes stay. NotFound (type, or it could not before)."""

    def volume_quota(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return the quota of a project for a type; -1 is no limit."""

    def volume_usage(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return what a project has of a type, as its quota counts it: failed volumes too, and snapshots."""

    def set_volume_quota(self, project_id: str, type_name: str, quota: VolumeQuota) -> None:
        """Set the quota of a project for a type. Snapshots count as GiB. Conflict if it has more than that."""

    def volume(self, volume_id: str) -> Volume | None:
        """Return a volume."""

    def volumes_of_type(self, type_id: str, *, project_id: str | None = None) -> tuple[Volume, ...]:
        """Return the volumes of a type, of one project or of all, the oldest first."""

    def volumes_with(self, key: str, value: str, *, project_id: str) -> tuple[Volume, ...]:
        """Return the volumes of a project that have this pair in their metadata, the oldest first."""

    def service_volumes(self) -> tuple[Volume, ...]:
        """Return the volumes that the service user has made, of all projects, the oldest first."""

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
        """Begin to create a volume in a project, as a member of it; it fails later if there is no room.

        RoleMissing; NotFound (the type, or the project has no access); CloudRefused, also for an image that there is
        not, and with the cause QUOTA_EXCEEDED if the project may have no more.
        """

    def volume_failure(self, volume: Volume) -> str:
        """Return what Cinder says about why a volume failed; empty if it says nothing."""

    def begin_volume_growth(self, volume_id: str, size_gb: int) -> None:
        """Begin to grow a volume. NotFound; Conflict by its state; CloudRefused as for ``begin_volume``."""

    def begin_attachment(self, volume_id: str, server_id: str, *, project_id: str) -> None:
        """Begin to attach a volume to a server, both of a project, as a member of it.

        RoleMissing; NotFound; Conflict by their states, also if the server has it already.
        """

    def begin_detachment(self, volume_id: str, server_id: str) -> None:
        """Begin to detach a volume from a server. NotFound (the server, or it does not have the volume).

        Conflict if it is the server's root volume, or by its state.
        """

    def drop_attachment(self, attachment_id: str) -> None:
        """Delete an attachment of which Nova knows nothing. NotFound; Conflict if Nova has it."""

    def cancel_transfer(self, volume_id: str) -> None:
        """Cancel the offer of a volume to another project; none is no error."""

    def begin_volume_deletion(self, volume_id: str) -> None:
        """Begin to delete a volume with its snapshots, also a failed one. NotFound; Conflict by its state."""

    def begin_upload(self, volume: Volume, name: str) -> str:
        """Begin to make an image of a volume, private to its project, as a member of it; return its id.

        An image that cannot be completed is deleted by Cinder. RoleMissing; NotFound; Conflict by the volume's state,
        which is also that it is attached, unless the operator of Cinder allows that; CloudRefused as for
        ``begin_volume``.
        """

    def images_named(self, project_id: str, name: str) -> tuple[VolumeCopy, ...]:
        """Return the images of a project with this name. RoleMissing."""

    def begin_backup(self, volume: Volume, name: str) -> str:
        """Begin to make a backup of a volume in its project, as a member of it; return its id.

        A volume that is attached is copied as it is at the moment, for which Cinder takes room of its pool meanwhile.
        RoleMissing; NotFound; Conflict by the volume's state; CloudRefused as for ``begin_volume``.
        """

    def backups_of(self, volume_id: str) -> tuple[VolumeCopy, ...]:
        """Return the backups of a volume, those too that failed."""
