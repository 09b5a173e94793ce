# SPDX-License-Identifier: Apache-2.0
"""Images and backups of volumes in the simulated Cinder."""

from __future__ import annotations

import uuid
from datetime import datetime

from blazar.clouds.ports.volumes import CopyState, Volume, VolumeCopy
from blazar.clouds.simulated.service import SimulatedService, check_role
from blazar.clouds.simulated.state import ImageState, State
from blazar.clouds.simulated.volume_state import BackupState, VolumeState
from blazar.model.base.errors import Conflict, NotFound


class SimulatedVolumeCopies(SimulatedService):
    """The calls that copy volumes, with the rules of Cinder 29. An image that fails is never there."""

    def begin_upload(self, volume: Volume, name: str) -> str:
        """Begin to make an image of a volume."""
        with self._calls.changing("begin_upload") as state:
            check_role(state, volume.project_id)
            self._begin(state, volume.id, "uploading", ("available",))
            ends_at = (self._clock.now() + self._durations.snapshot).isoformat()
            made = ImageState(str(uuid.uuid4()), name, volume.project_id, ends_at)
            if not _takes_failure(state):
                state.images[made.id] = made
            return made.id

    def images_named(self, project_id: str, name: str) -> tuple[VolumeCopy, ...]:
        """Return the images of a project with a name."""
        with self._calls.reading("images_named") as state:
            check_role(state, project_id)
            mine = [i for i in state.images.values() if (i.project_id, i.name) == (project_id, name)]
            return tuple(VolumeCopy(i.id, i.name, self._state(i.active_at, fails=False)) for i in mine)

    def begin_backup(self, volume: Volume, name: str) -> str:
        """Begin to make a backup; without the service for it, it fails."""
        with self._calls.changing("begin_backup") as state:
            check_role(state, volume.project_id)
            self._begin(state, volume.id, "backing-up", ("available", "in-use"))
            ends_at = (self._clock.now() + self._durations.snapshot).isoformat()
            fails = _takes_failure(state) or not state.block.backups
            made = BackupState(str(uuid.uuid4()), name, volume.project_id, volume.id, ends_at, fails)
            state.block.copies[made.id] = made
            return made.id

    def backups_of(self, volume_id: str) -> tuple[VolumeCopy, ...]:
        """Return the backups of a volume."""
        with self._calls.reading("backups_of") as state:
            return tuple(
                VolumeCopy(b.id, b.name, found, "Service not found." if found is CopyState.FAILED else "")
                for b in state.block.copies.values()
                if b.volume_id == volume_id and (found := self._state(b.ready_at, fails=b.fails))
            )

    def _begin(self, state: State, volume_id: str, status: str, allowed: tuple[str, ...]) -> VolumeState:
        now = self._clock.now()
        found = state.block.volumes.get(volume_id)
        if found is None or found.is_gone(now):
            raise NotFound(f"there is no volume {volume_id}")
        if found.status(now) not in allowed:
            raise Conflict(f"Volume {volume_id} status must be {' or '.join(allowed)}, and is {found.status(now)}")
        found.busy, found.busy_until = status, (now + self._durations.snapshot).isoformat()
        return found

    def _state(self, ends_at: str, *, fails: bool) -> CopyState:
        if datetime.fromisoformat(ends_at) > self._clock.now():
            return CopyState.MAKING
        return CopyState.FAILED if fails else CopyState.DONE


def _takes_failure(state: State) -> bool:
    """Return whether the next copy fails, and count it."""
    fails = state.block.failing > 0
    state.block.failing = max(0, state.block.failing - 1)
    return fails
