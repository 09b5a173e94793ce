# SPDX-License-Identifier: Apache-2.0
"""Copies of the volumes of a reservation before its end: images, or backups.

What is to survive the end is outside of the pool, which is promised to others then. Snapshots of Cinder are deleted
with their volume, and a volume that is given to another project stays on its pool: neither is offered.

The name of a copy has the id of its volume, so that a retry after a crash finds it: it is the one mark that is there
from the first call.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from blazar.clouds.ports.volumes import CopyState, Volume, VolumeCopy, Volumes
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.reasons import Cause, ReasonCode
from blazar.model.base.values import dataclass
from blazar.resources.contract.actions import RECHECK_LATER
from blazar.resources.contract.values import Action, Done, NotYet, Progress, Task
from blazar.resources.volumes.assignment import Record

MOST_COPIES = 3
"""How often a copy of a volume that fails is begun."""

COPYING = ("uploading", "backing-up")
"""The status of a volume that is being copied, whatever for."""


@dataclass(frozen=True, slots=True)
class _UnderWay:
    record: Record
    text: str


@dataclass(frozen=True, slots=True)
class _Failure:
    text: str


class Saving:
    """Ensures one copy of each volume of a reservation."""

    def __init__(self, volumes: Volumes, prefix: str) -> None:
        self._volumes = volumes
        self._prefix = prefix

    def ensure_copies(
        self, task: Task, found: Collection[Volume], action: Action, *, name: str, since: datetime | None
    ) -> Progress:
        """Ensure a copy of each of these volumes, in the project of the lease; a user asked for it ``since``.

        Done if each has one; CloudUnavailable, with the reasons, if only those are left that have failed. What a
        copy was begun for is recorded, so that none is made again that has been complete, or has failed too often.
        """
        record = Record.of(task.reservation.cloud_ids)
        under_way, failures = [], []
        for volume in found:
            mark = f"{self._prefix}{name}-{volume.id}" + (f"-{since:%Y%m%dT%H%M%S}" if since else "")
            saved = self._save_volume(volume, action, mark, record)
            match saved:
                case Record():
                    record = saved
                case _UnderWay():
                    record = saved.record
                    under_way.append(saved.text)
                case _Failure():
                    failures.append(saved.text)
        failed = Cause(ReasonCode.SAVE_FAILED)
        if under_way:
            cause = failed if failures else Cause(ReasonCode.RESOURCE_NOT_READY)
            return NotYet(RECHECK_LATER, "; ".join((*under_way, *failures)), cause, cloud_ids=record.content)
        if failures:
            raise CloudUnavailable("; ".join(failures)).because(failed)
        return Done(record.content)

    def _save_volume(self, volume: Volume, action: Action, mark: str, record: Record) -> Record | _UnderWay | _Failure:
        backup = action is Action.BACKUP
        copies = self._find_copies(volume, mark, backup=backup)
        if done := next((volume_copy for volume_copy in copies if volume_copy.state is CopyState.DONE), None):
            return record.with_backup(done.id) if backup else record.with_image(done.id)
        text = f"volume {volume.id} is being copied"
        if any(volume_copy.state is CopyState.MAKING for volume_copy in copies) or volume.status in COPYING:
            return _UnderWay(record, text)
        begun = record.copied.get(mark, 0)
        if begun >= MOST_COPIES:
            why = next((f" ({volume_copy.failure})" for volume_copy in reversed(copies) if volume_copy.failure), "")
            return _Failure(f"volume {volume.id} could not be copied, {begun} times{why}")
        try:
            if backup:
                self._volumes.begin_backup(volume, mark)
            else:
                self._volumes.begin_upload(volume, mark)
        except NotFound:
            # Its users have just deleted it: there is nothing to save.
            return record
        except Conflict as error:
            hint = "; detach it first" if volume.attachments else ""
            return _Failure(f"volume {volume.id} is {volume.status} and cannot be copied{hint} ({error.message})")
        except CloudRefused as error:
            return _Failure(f"volume {volume.id} cannot be copied ({error.message})")
        return _UnderWay(record.with_begun(mark), text)

    def _find_copies(self, volume: Volume, mark: str, *, backup: bool) -> tuple[VolumeCopy, ...]:
        if backup:
            return tuple(volume_copy for volume_copy in self._volumes.backups_of(volume.id) if volume_copy.name == mark)
        return self._volumes.images_named(volume.project_id, mark)
