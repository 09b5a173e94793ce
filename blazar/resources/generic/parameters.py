# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of generic resources, and the schema of a request for it."""

from __future__ import annotations

import re

from blazar.model.base.errors import InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Content
from blazar.model.resources.requirements import Membership, Requirement, join_requirements, property_keys
from blazar.resources.contract.actions import BEFORE_END, simple_action
from blazar.resources.contract.parameters import (
    quote,
    requirement_of,
    requirement_text,
    stored_maybe_text,
    stored_number,
    stored_text,
    whole_number,
)
from blazar.resources.contract.schemas import COUNT, INSTEAD_OF, NOTICE, REQUIREMENT, a_request

CLASS, CAPACITY, HOOK_URL, NAME = "class", "capacity", "hook_url", "name"
"""What operators register of a thing."""

MIN, MAX, AMOUNT, PROPERTIES = "min", "max", "amount", "resource_properties"

ASKED_FOR = frozenset({"id", CLASS, CAPACITY})
"""Properties that requirements may name, beside those that operators set; never the URL of a hook."""

_WORD = re.compile(r"[a-z0-9][a-z0-9:_.-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9:_.-]{0,254}")


def class_name(value: object) -> str:
    """Return the name of a class; InvalidInput if it is none."""
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise InvalidInput(
            f"class is {quote(value)}; give the name of a class of resources, such as 'microscope': at most 64 "
            f"characters of a-z 0-9 : _ . -",
            at="/class",
        )
    return value


def thing_name(value: object) -> str:
    """Return the name of a thing; InvalidInput if it is none."""
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InvalidInput(
            f"name is {quote(value)}; give the name of the resource, such as 'microscope-1': at most 255 characters "
            f"of A-Z a-z 0-9 : _ . -",
            at="/name",
        )
    return value


@dataclass(frozen=True, slots=True)
class GenericParameters:
    """The parameters of a reservation: ``least`` to ``most`` whole things, or an ``amount`` of the units of one."""

    class_name: str
    least: int | None
    most: int | None
    amount: int | None
    resource_properties: str | None
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> GenericParameters:
        """Return the parameters of a request; InvalidInput names the field."""
        if CLASS not in given:
            raise InvalidInput(
                "Missing parameter class (a generic reservation needs the class of the resources, and either min and "
                "max, for whole ones, or amount, for units of one that others share)"
            )
        named = class_name(given[CLASS])
        shared, whole = AMOUNT in given, MIN in given or MAX in given
        if shared == whole:
            raise InvalidInput(
                "give either min and max, the number of whole resources, or amount, the number of units of one that "
                "others share",
                at=f"/{AMOUNT if shared else MIN}",
            )
        action = simple_action(given, "generic resources")
        wanted = requirement_text(given.get(PROPERTIES), PROPERTIES)
        if shared:
            amount = whole_number(given[AMOUNT], AMOUNT, least=1, what="a whole number of units")
            return cls(named, None, None, amount, wanted, action)
        least = whole_number(given[MIN if MIN in given else MAX], MIN, least=1, what="a whole number of resources")
        most = whole_number(given[MAX if MAX in given else MIN], MAX, least=1, what="a whole number of resources")
        if most < least:
            raise InvalidInput(f"max is {most}, less than min, which is {least}; give a larger max", at=f"/{MAX}")
        return cls(named, least, most, None, wanted, action)

    @classmethod
    def of(cls, content: Content) -> GenericParameters:
        """Return the parameters that a reservation keeps."""
        shared = AMOUNT in content.values
        return cls(
            stored_text(content, CLASS),
            None if shared else stored_number(content, MIN),
            None if shared else stored_number(content, MAX),
            stored_number(content, AMOUNT) if shared else None,
            stored_maybe_text(content, PROPERTIES),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them, and as the API shows them."""
        counts = {MIN: self.least, MAX: self.most} if self.amount is None else {AMOUNT: self.amount}
        rest = {PROPERTIES: self.resource_properties, BEFORE_END: self.before_end}
        return Content({CLASS: self.class_name, **counts, **rest})

    @property
    def requirement(self) -> Requirement:
        """Return what a resource must have: the class, and the properties."""
        return join_requirements(Membership(CLASS, (self.class_name,)), self._properties)

    @property
    def is_any_of_class(self) -> bool:
        """Return whether any resource of the class will do."""
        return not property_keys(self._properties)

    @property
    def _properties(self) -> Requirement:
        return requirement_of(**{PROPERTIES: self.resource_properties})


SCHEMA = a_request(
    {
        "class": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "title": "Class",
            "description": "the class of the resources, such as microscope",
        },
        "min": {**COUNT, "title": "Whole resources, at least"},
        "max": {
            **COUNT,
            "title": "Whole resources, at most",
            "description": "a whole number from 1; as many as at least, if it is left out",
        },
        "amount": {**COUNT, "title": "Units of a shared one", INSTEAD_OF: ["min", "max"]},
        "resource_properties": REQUIREMENT,
        "before_end": NOTICE,
    },
    required=("class",),
    fixed=("class",),
    example={"class": "microscope", "min": 1, "max": 2, "resource_properties": [">", "$lens", "40"]},
)
