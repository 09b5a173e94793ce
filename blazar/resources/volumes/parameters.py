# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of volumes, and the schema of a request for it."""

from __future__ import annotations

import re
from enum import StrEnum

from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Anything, Membership, Requirement, join_requirements
from blazar.resources.contract.actions import BEFORE_END, checked_action
from blazar.resources.contract.parameters import (
    quote,
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    text_of,
    whole_number,
)
from blazar.resources.contract.schemas import COUNT, REQUIREMENT, TEXT, a_choice, a_request
from blazar.resources.contract.values import Action
from blazar.resources.volumes.registration import GIGABYTES, TYPE, VOLUMES

SIZE, AMOUNT, MODE, NAME, IMAGE, PROPERTIES = "size", "amount", "mode", "name", "image", "resource_properties"

MOST_VOLUMES = 100
"""Volumes of one reservation; a quota may be for more."""

_IMAGE = re.compile(r"[A-Za-z0-9_-]{1,64}")


class Mode(StrEnum):
    """What a project gets: volumes that are made for it, or the right to make its own."""

    VOLUME = "volume"
    QUOTA = "quota"


ACTIONS = (Action.NONE, Action.NOTIFICATION, Action.SNAPSHOT, Action.BACKUP)
"""What can be done before the end."""

_CHOICES = ("default", "", *(str(action) for action in ACTIONS))

DEFAULTS: Json = {
    AMOUNT: 1,
    MODE: str(Mode.VOLUME),
    TYPE: None,
    NAME: None,
    IMAGE: None,
    PROPERTIES: "",
    BEFORE_END: "default",
}


@dataclass(frozen=True, slots=True)
class VolumeParameters:
    """The parameters, named as in the API; ``size`` of each volume in GiB."""

    size: int
    amount: int
    mode: str
    volume_type: str | None
    name: str | None
    image: str | None
    resource_properties: str | None
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> VolumeParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        mode = given[MODE]
        if mode not in tuple(Mode):
            raise InvalidInput(
                f"{MODE} is {quote(mode)}; use 'volume' (the volumes are made for you) or 'quota' (you make them)",
                at=f"/{MODE}",
            )
        size = whole_number(given[SIZE], SIZE, least=1, what="the size of a volume in GiB, a whole number")
        amount = whole_number(given[AMOUNT], AMOUNT, least=1, what="a whole number of volumes")
        if mode == Mode.VOLUME and amount > MOST_VOLUMES:
            raise InvalidInput(
                f"{AMOUNT} is {amount}; give at most {MOST_VOLUMES}, or the {MODE} 'quota'", at=f"/{AMOUNT}"
            )
        image = text_of(given, IMAGE) or None
        if image is not None and not _IMAGE.fullmatch(image):
            raise InvalidInput(f"{IMAGE} is {quote(image)}; give the id of an image", at=f"/{IMAGE}")
        name = text_of(given, NAME) or None
        for field, value in ((IMAGE, image), (NAME, name)):
            if mode == Mode.QUOTA and value is not None:
                raise InvalidInput(
                    f"{field} is given, and the {MODE} is 'quota', in which no volumes are made; leave it out",
                    at=f"/{field}",
                )
        wanted = requirement_text(given[PROPERTIES], PROPERTIES)
        return cls(
            size, amount, str(mode), text_of(given, TYPE) or None, name, image, wanted, _checked_action(given, mode)
        )

    @classmethod
    def of(cls, content: Content) -> VolumeParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_number(content, SIZE),
            stored_number(content, AMOUNT),
            stored_text(content, MODE),
            stored_maybe_text(content, TYPE),
            stored_maybe_text(content, NAME),
            stored_maybe_text(content, IMAGE),
            stored_maybe_text(content, PROPERTIES),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them, and as the API shows them."""
        return Content(asdict(self))

    @property
    def makes_volumes(self) -> bool:
        """Return whether volumes are made for the project."""
        return self.mode == Mode.VOLUME

    @property
    def each(self) -> Amounts:
        """Return what one volume takes of its pool."""
        return Amounts.of({GIGABYTES: self.size, VOLUMES: 1})

    @property
    def requirement(self) -> Requirement:
        """Return what a pool must have."""
        of_type = Anything() if self.volume_type is None else Membership(TYPE, (self.volume_type,))
        return join_requirements(of_type, self.properties)

    @property
    def properties(self) -> Requirement:
        """Return the properties that a pool must have beside the type."""
        return requirement_of(**{PROPERTIES: self.resource_properties})

    def name_of_volume(self, reservation_id: str, number: int) -> str:
        """Return the name of one of the volumes, counted from 1."""
        name = self.name or f"reservation-{reservation_id}"
        return name if self.amount == 1 else f"{name[:240]}-{number}"


def _checked_action(given: Json, mode: object) -> str:
    if given[BEFORE_END] == "transfer":
        raise InvalidInput(
            f"{BEFORE_END} is 'transfer', and a volume of another project would stay on the pool, which is promised to "
            f"others then; use 'snapshot' (an image) or 'backup', and give that away",
            at=f"/{BEFORE_END}",
        )
    action = checked_action(given, _CHOICES)
    if mode == Mode.QUOTA and action in (Action.SNAPSHOT, Action.BACKUP):
        raise InvalidInput(
            f"{BEFORE_END} is {action!r}, which saves volumes that were made for you; in the {MODE} 'quota' save yours "
            f"yourself, and use 'notification' or 'none'",
            at=f"/{BEFORE_END}",
        )
    return action


_MAYBE: dict[str, object] = {**TEXT, "type": ["string", "null"], "default": None}

SCHEMA = a_request(
    {
        "size": {**COUNT, "title": "Size of each, GiB", "description": "a whole number of GiB from 1"},
        "amount": {**COUNT, "title": "Volumes", "default": 1},
        "mode": {
            "enum": ["volume", "quota"],
            "title": "Who makes them",
            "description": "volume (they are made for the project) or quota (the project makes them)",
            "default": "volume",
        },
        "volume_type": {**_MAYBE, "title": "Volume type", "description": "the name of a volume type, or null"},
        "name": {**_MAYBE, "title": "Name", "description": "a name of at most 255 characters, or null"},
        "image": {**_MAYBE, "title": "Image", "description": "the id of an image, or null"},
        "resource_properties": {**REQUIREMENT, "default": ""},
        "before_end": a_choice("default", *(str(action) for action in ACTIONS), title="At the end"),
    },
    required=("size",),
    before_start=("name",),
    fixed=("mode", "volume_type", "image"),
    example={"size": 100, "amount": 2, "volume_type": "fast"},
)
