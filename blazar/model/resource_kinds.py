# SPDX-License-Identifier: Apache-2.0
"""Kinds of resources as they describe themselves: words, JSON schemas, and what everybody may see of them."""

from __future__ import annotations

from dataclasses import dataclass, field

from blazar.model.lease import Json
from blazar.model.resource import ResourceKind

GENERAL_FIELDS = ("properties", "disabled", "authorized_projects")
"""Fields that every request to register has; no kind has one of these names."""


@dataclass(frozen=True, slots=True)
class KindShape:
    """What a kind says of itself.

    ``noun`` and ``nouns`` are the words for one resource and for several. ``registration`` is the JSON schema of the
    fields that name a resource to register, ``attributes`` has the schemas of what the cloud tells of it, by name.
    Everybody may see the ``public`` attributes, of which a row of the calendar has the ``shown`` ones (the others are
    in its capacity), and if it is ``named`` also ids and names; members see a label in their place otherwise.
    ``changeable`` are the fields of the registration that can be changed later, as attributes of the same names.
    """

    noun: str
    nouns: str
    registration: Json = field(default_factory=lambda: {"type": "object"})
    attributes: Json = field(default_factory=dict)
    public: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    named: bool = False
    changeable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KindDescription:
    """A kind that is served: its name and shape, the resource types that reserve it, and if it lists candidates.

    ``parameters`` has the JSON schemas of requests for reservations, by resource type, where they are known.
    """

    kind: ResourceKind
    shape: KindShape
    resource_types: tuple[str, ...] = ()
    has_candidates: bool = False
    parameters: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KindList:
    """All kinds that are served, by name."""

    items: tuple[KindDescription, ...]
