# SPDX-License-Identifier: Apache-2.0
"""Access of projects to the volume types of pools, and their quotas by type.

A quota is one number for a project and a type, whatever reservations it is for. It is computed from all that are in
use, and computed again after it was written: of two managers that act at a time for one project, the later one sees
both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from blazar.clouds.ports import VolumeQuota, Volumes, VolumeType
from blazar.model.amounts import Amounts
from blazar.model.errors import CloudUnavailable, Conflict, NotFound
from blazar.model.resource import Resource
from blazar.resources.base import Task, Unusable
from blazar.resources.volumes.registration import GIGABYTES, TYPE, TYPE_ID, VOLUMES

NOTHING = VolumeQuota(0, 0)

MOST_WRITES = 10


def type_id_of(resource: Resource) -> str:
    """Return the id of the volume type of a pool."""
    return str(resource.attributes[TYPE_ID])


class Quotas:
    """Ensures what a project may have of pools."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def usable(self, resource: Resource) -> VolumeType:
        """Return the type of a pool; Unusable if it is gone, or no longer private."""
        found = self._volumes.volume_type(type_id_of(resource))
        if found is None or found.public:
            wrong = "does not exist" if found is None else "is public"
            raise Unusable({resource.id: f"volume type {resource.attributes[TYPE]} of {resource.name} {wrong}"})
        return found

    def projects(self, resource: Resource) -> frozenset[str]:
        """Return the projects that may use the type of a pool; none if that is gone, or public."""
        try:
            return self._volumes.volume_type_access(type_id_of(resource))
        except NotFound:
            return frozenset()

    def give(self, task: Task, resource: Resource, own: Amounts) -> None:
        """Ensure that the project may use the type, and has a quota for all of its reservations with this one."""
        found = self.usable(resource)
        project = task.lease.project_id
        self._set(task, resource, found, own)
        if project not in self._volumes.volume_type_access(found.id):
            try:
                self._volumes.give_volume_type(found.id, project)
            except Conflict:
                # Another manager was faster.
                return

    def take(self, task: Task, resource: Resource) -> VolumeQuota:
        """Ensure that the quota is that of the other reservations alone; return it."""
        found = self._volumes.volume_type(type_id_of(resource))
        if found is None or found.public:
            return NOTHING
        return self._set(task, resource, found, Amounts())

    def close(self, task: Task, resource: Resource) -> None:
        """Ensure that the project may use the type no longer, unless another of its reservations needs that."""
        if task.shares((resource.id,)).get(resource.id):
            return
        try:
            if task.lease.project_id in self._volumes.volume_type_access(type_id_of(resource)):
                self._volumes.take_volume_type(type_id_of(resource), task.lease.project_id)
        except NotFound:
            return
        if task.shares((resource.id,)).get(resource.id):
            try:
                # A reservation that has begun meanwhile saw the access that was taken a moment later.
                self._volumes.give_volume_type(type_id_of(resource), task.lease.project_id)
            except (Conflict, NotFound):
                return

    def _set(self, task: Task, resource: Resource, found: VolumeType, own: Amounts) -> VolumeQuota:
        """Ensure the quota; return it. Cinder sets none below what a project has: until it has less, it is that."""
        project, floor = task.lease.project_id, NOTHING
        for _ in range(MOST_WRITES):
            wanted = _quota(task.shares((resource.id,)), resource, own)
            limit = VolumeQuota(max(wanted.gigabytes, floor.gigabytes), max(wanted.volumes, floor.volumes))
            if self._volumes.volume_quota(project, found.name) != limit:
                try:
                    self._volumes.set_volume_quota(project, found.name, limit)
                except Conflict:
                    floor = self._volumes.volume_usage(project, found.name)
                    continue
            if _quota(task.shares((resource.id,)), resource, own) == wanted:
                return wanted
        raise CloudUnavailable(f"the reservations of volumes of project {project} kept changing")


def _quota(shares: Mapping[int, Amounts], resource: Resource, own: Amounts) -> VolumeQuota:
    total = shares.get(resource.id, Amounts()) + own
    return VolumeQuota(total.get(GIGABYTES), total.get(VOLUMES))


def exceeds(used: VolumeQuota, quota: VolumeQuota) -> bool:
    """Return whether a project has more than its quota."""
    return used.gigabytes > quota.gigabytes or used.volumes > quota.volumes


def first_excess(sizes: Collection[int], used: VolumeQuota, quota: VolumeQuota) -> int:
    """Return how many volumes of these sizes have to go, from the first, until the rest is within the quota."""
    for number, size in enumerate(sizes):
        if not exceeds(used, quota):
            return number
        used = VolumeQuota(used.gigabytes - size, used.volumes - 1)
    return len(sizes)
