# SPDX-License-Identifier: Apache-2.0
"""Access of projects to the volume types of pools, and their quotas by type.

A quota is one number for a project and a type, whatever reservations it is for. It is computed from all that are in
use, and computed again after it was written: of two managers that act at a time for one project, the later one sees
both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from blazar.clouds.ports.volumes import VolumeQuota, Volumes, VolumeType
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import CloudUnavailable, Conflict, NotFound
from blazar.model.resources.resource import Resource
from blazar.resources.contract.values import Task, Unusable
from blazar.resources.volumes.registration import GIGABYTES, TYPE, TYPE_ID, VOLUMES

NOTHING = VolumeQuota(0, 0)

MOST_WRITES = 10


def type_id_of(resource: Resource) -> str:
    """Return the id of the volume type of a pool."""
    return str(resource.attributes[TYPE_ID])


class PoolQuotas:
    """Ensures what a project may have of pools."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def find_usable_type(self, resource: Resource) -> VolumeType:
        """Return the type of a pool; Unusable if it is gone, or no longer private."""
        found = self._volumes.volume_type(type_id_of(resource))
        if found is None or found.public:
            wrong = "does not exist" if found is None else "is public"
            raise Unusable({resource.id: f"volume type {resource.attributes[TYPE]} of {resource.name} {wrong}"})
        return found

    def projects_with_access(self, resource: Resource) -> frozenset[str]:
        """Return the projects that may use the type of a pool; none if that is gone, or public."""
        try:
            return self._volumes.volume_type_access(type_id_of(resource))
        except NotFound:
            return frozenset()

    def give_quota(self, task: Task, resource: Resource, own: Amounts) -> None:
        """Ensure that the project may use the type, and has a quota for all of its reservations with this one."""
        found = self.find_usable_type(resource)
        project = task.lease.project_id
        self._set_quotas(task, [(resource, found, own)])
        if project not in self._volumes.volume_type_access(found.id):
            try:
                self._volumes.grant_volume_type(found.id, project)
            except Conflict:
                # Another manager was faster.
                return

    def take_quotas(self, task: Task, resources: Collection[Resource]) -> None:
        """Ensure that the quotas are those of the other reservations alone; two statements for any number of pools."""
        types = ((resource, self._volumes.volume_type(type_id_of(resource))) for resource in resources)
        self._set_quotas(task, [(r, found, Amounts()) for r, found in types if found is not None and not found.public])

    def revoke_access(self, task: Task, resources: Collection[Resource]) -> None:
        """Ensure that the project may use the types no longer, unless another of its reservations needs that.

        Two statements for any number of pools.
        """
        needed = task.shares([resource.id for resource in resources]) if resources else {}
        closed = [
            resource for resource in resources if not needed.get(resource.id) and self._revoke_type(task, resource)
        ]
        needed = task.shares([resource.id for resource in closed]) if closed else {}
        for resource in closed:
            if needed.get(resource.id):
                # A reservation that has begun meanwhile saw the access that was taken a moment later.
                with suppress(Conflict, NotFound):
                    self._volumes.grant_volume_type(type_id_of(resource), task.lease.project_id)

    def _revoke_type(self, task: Task, resource: Resource) -> bool:
        """Ensure that the project may not use the type; return whether that exists."""
        try:
            if task.lease.project_id in self._volumes.volume_type_access(type_id_of(resource)):
                self._volumes.revoke_volume_type(type_id_of(resource), task.lease.project_id)
        except NotFound:
            return False
        return True

    def _set_quotas(self, task: Task, wanted: Sequence[tuple[Resource, VolumeType, Amounts]]) -> None:
        """Ensure quotas. Cinder sets none below what a project has: until it has less, it is that."""
        if not wanted:
            return
        shares = task.shares([resource.id for resource, _, _ in wanted])
        floors: dict[int, VolumeQuota] = {}
        left = list(wanted)
        for _ in range(MOST_WRITES):
            again = {
                resource.id
                for resource, found, own in left
                if not self._write_quota(task, resource, found, own, shares, floors)
            }
            after = task.shares([resource.id for resource, _, _ in left])
            left = [
                (resource, found, own)
                for resource, found, own in left
                if resource.id in again
                or _quota_with_shares(after, resource, own) != _quota_with_shares(shares, resource, own)
            ]
            if not left:
                return
            shares = after
        raise CloudUnavailable(f"the reservations of volumes of project {task.lease.project_id} kept changing")

    def _write_quota(
        self,
        task: Task,
        resource: Resource,
        found: VolumeType,
        own: Amounts,
        shares: Mapping[int, Mapping[str, Amounts]],
        floors: dict[int, VolumeQuota],
    ) -> bool:
        """Write the quota of a pool, not below its floor; where Cinder refuses that, return False with a new floor."""
        project, floor = task.lease.project_id, floors.get(resource.id, NOTHING)
        wanted = _quota_with_shares(shares, resource, own)
        limit = VolumeQuota(max(wanted.gigabytes, floor.gigabytes), max(wanted.volumes, floor.volumes))
        if self._volumes.volume_quota(project, found.name) != limit:
            try:
                self._volumes.set_volume_quota(project, found.name, limit)
            except Conflict:
                floors[resource.id] = self._volumes.volume_usage(project, found.name)
                return False
        return True


def _quota_with_shares(shares: Mapping[int, Mapping[str, Amounts]], resource: Resource, own: Amounts) -> VolumeQuota:
    total = sum(shares.get(resource.id, {}).values(), own)
    return VolumeQuota(total.get(GIGABYTES), total.get(VOLUMES))


def remaining_room(shares: Mapping[str, Amounts], made: Mapping[str, VolumeQuota]) -> VolumeQuota:
    """Return what users may have by themselves of what reservations have; ``made`` are their volumes.

    What is made of one beyond its share takes no room: a change makes it, which is not final.
    """
    gigabytes = number = 0
    for id_, share in shares.items():
        there = made.get(id_, NOTHING)
        gigabytes += max(0, share.get(GIGABYTES) - there.gigabytes)
        number += max(0, share.get(VOLUMES) - there.volumes)
    return VolumeQuota(gigabytes, number)


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
