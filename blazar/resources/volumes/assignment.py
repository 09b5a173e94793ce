# SPDX-License-Identifier: Apache-2.0
"""Makes the volumes of reservations, finds them, and deletes them.

A volume of a reservation is known by its recorded id, or else by its mark, which it has from the first call: but only
if the service user has made it, because users can write marks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta

from blazar.clouds.ports.volumes import Volume, VolumeQuota, Volumes
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode
from blazar.model.base.values import dataclass, field, replace
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.resource import Resource
from blazar.resources.contract.actions import RECHECK_LATER, RECHECK_SOON
from blazar.resources.contract.parameters import may_be_reservation
from blazar.resources.contract.values import NotYet, Task, Unusable
from blazar.resources.volumes.parameters import VolumeParameters
from blazar.resources.volumes.quotas import NOTHING, exceeds, first_excess, remaining_room, type_id_of
from blazar.resources.volumes.registration import TYPE

VOLUME_IDS, VOLUME_TYPES, IMAGE_IDS, BACKUP_IDS = "volume_ids", "volume_types", "image_ids", "backup_ids"
TRIES, COPIED, MADE = "tries", "copied", "made"


@dataclass(frozen=True, slots=True)
class Record:
    """The ids of its volumes, their types, how many volumes have failed, and the copies of them before the end.

    ``copied`` says how often a copy of each name was begun; ``made`` how many volumes a pool has given, by calendar id:
    those too that users have deleted since, which are not made again.
    """

    ids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tries: int = 0
    images: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()
    copied: Mapping[str, int] = field(default_factory=dict, hash=False)
    made: Mapping[int, int] = field(default_factory=dict, hash=False)

    @classmethod
    def of(cls, content: Content) -> Record:
        """Return what a reservation keeps."""
        ids, types, images, backups = (
            _read_texts(content, key) for key in (VOLUME_IDS, VOLUME_TYPES, IMAGE_IDS, BACKUP_IDS)
        )
        tries, made = content.values.get(TRIES), _read_numbers(content, MADE)
        by_pool = {int(key): count for key, count in made.items() if key.isdigit()}
        number = tries if isinstance(tries, int) else 0
        return cls(ids, types, number, images, backups, _read_numbers(content, COPIED), by_pool)

    @property
    def content(self) -> Content:
        """Return it as a reservation keeps it."""
        more: dict[str, object] = {
            TRIES: self.tries,
            IMAGE_IDS: list(self.images),
            BACKUP_IDS: list(self.backups),
            COPIED: dict(self.copied),
            MADE: {str(key): count for key, count in self.made.items()},
        }
        given = {key: value for key, value in more.items() if value}
        return Content({VOLUME_IDS: list(self.ids), VOLUME_TYPES: list(self.types), **given})

    def with_volumes(self, ids: Iterable[str]) -> Record:
        """Return it with more volumes."""
        return replace(self, ids=(*self.ids, *ids))

    def with_made(self, resource_id: int, count: int) -> Record:
        """Return it with the number of volumes that a pool has given."""
        return replace(self, made={**self.made, resource_id: count})

    def with_begun(self, name: str) -> Record:
        """Return it with a copy of this name begun once more."""
        return replace(self, copied={**self.copied, name: self.copied.get(name, 0) + 1})

    def with_image(self, image_id: str) -> Record:
        """Return it with an image that is complete."""
        return self if image_id in self.images else replace(self, images=(*self.images, image_id))

    def with_backup(self, backup_id: str) -> Record:
        """Return it with a backup that is complete."""
        return self if backup_id in self.backups else replace(self, backups=(*self.backups, backup_id))


def _read_numbers(content: Content, key: str) -> Mapping[str, int]:
    value = content.values.get(key)
    return {str(k): v for k, v in value.items() if isinstance(v, int)} if isinstance(value, Mapping) else {}


def _read_texts(content: Content, key: str) -> tuple[str, ...]:
    value = content.values.get(key)
    return tuple(str(text) for text in value) if isinstance(value, list | tuple) else ()


MARK = "blazar:reservation"
"""The key of the reservation's id in the metadata of its volumes."""

MOST_TRIES = 3
"""How often a volume that fails while it is made is made again on the same pool."""

QUOTA_PAUSE = timedelta(minutes=5)
"""When a project may have no more volumes, its users have to mend that."""

AT_ONCE = timedelta(seconds=1)

READY = ("available", "in-use")


@dataclass(frozen=True, slots=True)
class Made:
    """What is recorded when a pool has its volumes of a reservation, and whether all have grown to its size."""

    record: Record
    all_grown: bool = True


class VolumeAssignment:
    """Ensures the volumes of reservations."""

    def __init__(self, volumes: Volumes) -> None:
        self._volumes = volumes

    def ensure_volumes(self, task: Task, resource: Resource, record: Record, first: int) -> Made | NotYet:
        """Ensure that a pool has its volumes of the reservation; return what is recorded then.

        Cinder takes a moment to make a volume, so that each new id is recorded before the next one is made. ``first``
        is the number of its first volume. Of a reservation in use, what users have deleted is not made again: an
        empty volume is not what they had. No volume grows while that may have to be undone. Unusable, CloudRefused.
        """
        wanted = VolumeParameters.of(task.reservation.parameters)
        count = task.counts[resource.id]
        there = self._volumes.volumes_of_type(type_id_of(resource), project_id=task.lease.project_id)
        mine = [volume for volume in there if volume.id in record.ids or is_marked(volume, task.reservation.id)]
        new = [volume.id for volume in mine if volume.id not in record.ids]
        record = record.with_volumes(new)
        in_use = task.reservation.status is ReservationStatus.ACTIVE
        if not in_use and (failed := next((volume for volume in mine if volume.status.startswith("error")), None)):
            return self._replace_failed_volume(resource, failed, record)
        if deleting := [volume for volume in mine if volume.status == "deleting"]:
            return NotYet(RECHECK_SOON, f"volume {deleting[0].id} is being deleted", cloud_ids=record.content)
        # Fewer than were asked for at first may have been kept.
        given = max(len(mine), min(record.made.get(resource.id, 0), count) if in_use else 0)
        while given < count:
            made = self._make_volume(
                task, resource, wanted, wanted.name_of_volume(task.reservation.id, first + given), there
            )
            if isinstance(made, NotYet):
                return replace(made, cloud_ids=record.content)
            given += 1
            record, there = record.with_volumes([made.id]).with_made(resource.id, given), (*there, made)
            if made.status != "available":
                return NotYet(AT_ONCE, f"volume {made.id} is {made.status}", cloud_ids=record.content)
            mine.append(made)
        record = record.with_made(resource.id, count)
        # One that cannot grow now does not keep the others from it.
        mine.sort(key=lambda volume: volume.status not in READY)
        if waits := [w for v in mine if (w := self._settle_volume(v, wanted.size, grow=not task.undoable)) is not None]:
            return replace(min(waits, key=lambda wait: wait.after), cloud_ids=record.content)
        return Made(record, all_grown=all(volume.size_gb >= wanted.size for volume in mine))

    def _settle_volume(self, volume: Volume, size: int, *, grow: bool) -> NotYet | None:
        """Return what is waited for until a volume can be used, and has grown if it is to; None if nothing is."""
        if volume.status in ("creating", "downloading", "extending"):
            return NotYet(RECHECK_SOON, f"volume {volume.id} is {volume.status}")
        if volume.size_gb >= size or not grow:
            return None
        if volume.status not in READY:
            raise CloudRefused(f"volume {volume.id} is {volume.status}, and cannot grow")
        self._volumes.begin_volume_growth(volume.id, size)
        return NotYet(RECHECK_SOON, f"volume {volume.id} grows to {size} GiB")

    def find_volumes(self, task: Task, resource: Resource) -> tuple[Volume, ...]:
        """Return the volumes of a reservation on a pool."""
        ids = Record.of(task.reservation.cloud_ids).ids
        there = self._volumes.volumes_of_type(type_id_of(resource), project_id=task.lease.project_id)
        return tuple(volume for volume in there if volume.id in ids or is_marked(volume, task.reservation.id))

    def delete_new_volumes(self, task: Task, resources: Collection[Resource]) -> Mapping[str, str]:
        """Delete the volumes that were made for a reservation and are not recorded; as ``delete_volumes``."""
        ids = Record.of(task.reservation.cloud_ids).ids
        return self._delete_each(v for r in resources for v in self.find_volumes(task, r) if v.id not in ids)

    def delete_volumes(self, task: Task, resource: Resource) -> Mapping[str, str]:
        """Delete the volumes of a reservation on a pool; return why some are still there, by id.

        Volumes that users have made with its quota go, too, the oldest first, until what is left is within the room of
        the project's other reservations. What the service has made for others counts for them only: those of a
        reservation that is ending, or of a change that is not final, cost users none of theirs.
        """
        left = self._delete_each(self._volumes_to_delete(task, resource))
        if left:
            return left
        project, type_id = task.lease.project_id, type_id_of(resource)
        rest = [v for v in self._volumes.volumes_of_type(type_id, project_id=project) if not v.ours]
        found = self._volumes.volume_type(type_id)
        if not rest or found is None or found.public:
            return {}
        made: dict[str, VolumeQuota] = {}
        used = self._volumes.volume_usage(project, found.name)
        # Read after the usage: what is made in between must not look like volumes of users.
        for volume in self._volumes.volumes_of_type(type_id, project_id=project):
            if volume.ours:
                id_ = volume.metadata.get(MARK, "")
                before = made.get(id_, NOTHING)
                made[id_] = VolumeQuota(before.gigabytes + volume.size_gb, before.volumes + 1)
                used = VolumeQuota(used.gigabytes - volume.size_gb, used.volumes - 1)
        free = remaining_room(task.shares((resource.id,)).get(resource.id, {}), made)
        return self._delete_each(rest[: first_excess([v.size_gb for v in rest], used, free)])

    def reservations_with_volumes(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the ids of the reservations that have volumes, by their marks."""
        types = {type_id_of(resource) for resource in resources}
        marks = (v.metadata.get(MARK, "") for v in self._volumes.service_volumes() if v.type_id in types)
        return frozenset(mark for mark in marks if may_be_reservation(mark))

    def _volumes_to_delete(self, task: Task, resource: Resource) -> tuple[Volume, ...]:
        found = {volume.id: volume for volume in self.find_volumes(task, resource)}
        for volume_id in Record.of(task.reservation.cloud_ids).ids:
            # Its users may have transferred it to another project.
            volume = None if volume_id in found else self._volumes.volume(volume_id)
            if volume is not None and volume.type_id == type_id_of(resource):
                found[volume_id] = volume
        return tuple(found.values())

    def _make_volume(
        self, task: Task, resource: Resource, wanted: VolumeParameters, name: str, there: Iterable[Volume]
    ) -> Volume | NotYet:
        """Make a volume; ``there``: the volumes that the project had of the type before."""
        try:
            return self._volumes.begin_volume(
                project_id=task.lease.project_id,
                type_id=type_id_of(resource),
                size_gb=wanted.size,
                name=name,
                metadata={MARK: task.reservation.id},
                image_id=wanted.image,
            )
        except NotFound as error:
            raise Unusable({resource.id: f"{resource.name}: {error.message}"}) from error
        except CloudRefused as error:
            if error.cause.code is not ReasonCode.QUOTA_EXCEEDED:
                raise
            if self._is_ours_to_mend(task, resource, wanted.size, there):
                return NotYet(RECHECK_SOON, f"volumes of a former reservation are still there ({error.message})")
            sentence = "may have no more volumes, or GiB of them; delete some, or ask for a larger quota"
            if task.undoable:
                # Who asked for more waits for the answer, and can mend it.
                raise Conflict(f"the project {sentence} ({error.message})", public=f"the project {sentence}").because(
                    error.cause
                ) from error
            return NotYet(QUOTA_PAUSE, f"the project {sentence} ({error.message})", error.cause)

    def _is_ours_to_mend(self, task: Task, resource: Resource, size: int, there: Iterable[Volume]) -> bool:
        """Return whether a volume exceeds the quota of its type by volumes of reservations alone.

        Those of a reservation that has ended are there until they are deleted; or else another manager has just set
        the quota, and is about to look at it again. Nobody but us can mend either.
        """
        quota = self._volumes.volume_quota(task.lease.project_id, str(resource.attributes[TYPE]))
        ours = [volume.size_gb for volume in there if volume.ours]
        return exceeds(VolumeQuota(sum(ours) + size, len(ours) + 1), quota)

    def _replace_failed_volume(self, resource: Resource, failed: Volume, record: Record) -> NotYet:
        """Delete a volume that has failed while it was made; Unusable if several have."""
        why = self._volumes.volume_failure(failed) or "Cinder does not say why"
        self._delete_each([failed])
        if record.tries + 1 >= MOST_TRIES:
            raise Unusable({resource.id: f"{resource.name}: volumes fail ({why})"})
        left = replace(record, ids=tuple(i for i in record.ids if i != failed.id), tries=record.tries + 1)
        return NotYet(RECHECK_LATER, f"a volume failed ({why}), and is made again", cloud_ids=left.content)

    def _delete_each(self, volumes: Iterable[Volume]) -> Mapping[str, str]:
        reasons = {volume.id: self._delete_volume(volume) for volume in volumes}
        return {id_: why for id_, why in reasons.items() if self._volumes.volume(id_) is not None}

    def _delete_volume(self, volume: Volume) -> str:
        """Do the next step of the deletion of a volume; return what is waited for."""
        try:
            if volume.status == "awaiting-transfer":
                self._volumes.cancel_transfer(volume.id)
            for attachment in volume.attachments:
                try:
                    self._volumes.begin_detachment(volume.id, attachment.server_id)
                except NotFound:
                    with suppress(NotFound):
                        self._volumes.drop_attachment(attachment.id)
            self._volumes.begin_volume_deletion(volume.id)
        except NotFound:
            return "is gone"
        except Conflict as error:
            return f"cannot be deleted yet ({error.message})"
        return "is being deleted"


def is_marked(volume: Volume, reservation_id: str) -> bool:
    """Return whether a volume was made for a reservation."""
    return volume.ours and volume.metadata.get(MARK) == reservation_id


def types_of(resources: Iterable[Resource]) -> tuple[str, ...]:
    """Return the names of the volume types of pools."""
    return tuple(sorted(str(resource.attributes[TYPE]) for resource in resources))
