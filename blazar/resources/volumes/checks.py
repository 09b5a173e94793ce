# SPDX-License-Identifier: Apache-2.0
"""What a request for volumes names in the cloud, looked up as the project sees it."""

from __future__ import annotations

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.booting import BootImage, Booting
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Reservation
from blazar.resources.contract.actions import BEFORE_END, with_action
from blazar.resources.contract.parameters import cloud_id, quote
from blazar.resources.contract.values import Action, Given
from blazar.resources.volumes.parameters import IMAGE, MODE, SIZE, Mode, VolumeParameters


@dataclass(frozen=True, slots=True)
class ResolvedVolumes(Given):
    """The parameters of a request, with the image that the volumes are made from, if it has one."""

    image: BootImage | None = None


class VolumeChecks:
    """Looks up, with the token of the project, what a start and the action before the end will need."""

    def __init__(self, cloud: Cloud) -> None:
        self._projects = cloud.projects
        self._images = cloud.booting
        self._volumes = cloud.volumes

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None) -> Given:
        """Return the parameters with their image. InvalidInput, NotFound, RoleMissing."""
        values = with_action(given.values)
        known: Json = {} if reservation is None else reservation.parameters.values
        after = {MODE: str(Mode.VOLUME), **known, **values}
        if after[MODE] != Mode.VOLUME:
            return given
        if reservation is None:
            self._projects.check_role(project_id)
        action = after.get(BEFORE_END)
        if action == Action.BACKUP and known.get(BEFORE_END) != action and not self._volumes.has_backups():
            raise InvalidInput(
                f"{BEFORE_END} is 'backup', and this cloud has no service for backups of volumes that is up; use "
                f"'snapshot', which makes images",
                at=f"/{BEFORE_END}",
            )
        image, is_asked = after.get(IMAGE), reservation is None or SIZE in values
        # A change cannot name another image, but make the volumes smaller.
        return ResolvedVolumes(
            given.values, usable_image(self._images, project_id, image) if image and is_asked else None
        )


def usable_image(images: Booting, project_id: str, value: object) -> BootImage:
    """Return the image that a request names as ``image``, if it is active and the project can use it.

    InvalidInput, NotFound.
    """
    asked = cloud_id(value, IMAGE, "an image")
    found = images.boot_image(project_id, asked)
    if found is None:
        raise NotFound(f"{IMAGE}: there is no image {quote(asked)} that your project can use", at=f"/{IMAGE}")
    if found.status != "active":
        raise InvalidInput(f"{IMAGE}: image {quote(asked)} is {found.status}; use one that is active", at=f"/{IMAGE}")
    return found


def needs_cloud(change: Given, before: VolumeParameters, after: VolumeParameters) -> bool:
    """Return whether a change that was not resolved needs something of the cloud."""
    if isinstance(change, ResolvedVolumes):
        return False
    backs_up = after.before_end == Action.BACKUP and before.before_end != after.before_end
    return backs_up or (after.image is not None and after.size < before.size)


def check_image(given: Given, wanted: VolumeParameters) -> None:
    """Raise InvalidInput if the image of a request does not fit into the volumes."""
    image = given.image if isinstance(given, ResolvedVolumes) else None
    if image is not None and (least := max(image.min_disk_gb, image.size_gb)) > wanted.size:
        raise InvalidInput(
            f"{SIZE} is {wanted.size}, and image {quote(image.id)} needs {least} GiB; give at least that", at=f"/{SIZE}"
        )
