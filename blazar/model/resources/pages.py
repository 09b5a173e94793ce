# SPDX-License-Identifier: Apache-2.0
"""Questions for lists of resources as operators see them, and their answers."""

from __future__ import annotations

from collections.abc import Mapping

from blazar.model.base.amounts import Amounts
from blazar.model.base.moments import Moment
from blazar.model.base.paging import Condition, Page, Position
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import PropertyValue, PropertyValues, Resource, ResourceKind

PROPERTY = "property."


@dataclass(frozen=True, slots=True)
class ResourceQuestion:
    """A page of the registered resources of a kind: those that hold all conditions and meet a requirement.

    Keys of conditions may begin with ``PROPERTY``, and are the names of properties then, which there must be. Other
    keys of conditions, and those of the order, are ``name``, ``label``, ``created_at``, ``updated_at`` and properties;
    conditions may also be about ``condition`` (``ok``, ``disabled``, ``disabled_without_end``, ``failed``) and
    ``project_id``, a project to which a resource is restricted. ``text`` is a part of the name, without regard to case;
    ``requirement`` is JSON; with ``maintenance_before`` a resource has to be in maintenance now or some time before it.
    """

    page: Page
    conditions: tuple[Condition, ...] = ()
    requirement: str | None = None
    text: str | None = None
    maintenance_before: Moment | None = None


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """Resources, and the position of the last one if there are more; ``count`` is that of all pages, if asked for."""

    items: tuple[Resource, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class VisibleResource:
    """What members see of a resource that is open to their project.

    ``id`` is the label, or the id in the cloud if everybody may see that; ``name`` is None where names are for
    operators. ``attributes`` and ``properties`` are the public ones.
    """

    id: str
    kind: ResourceKind
    name: str | None
    reservable: bool
    capacity: Amounts
    attributes: Mapping[str, PropertyValue]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VisiblePage:
    """What a member sees of resources; the other fields are as in ``ResourcePage``."""

    items: tuple[VisibleResource, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class PropertyPage:
    """Capabilities with their values, by name; the other fields are as in ``ResourcePage``."""

    items: tuple[PropertyValues, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A resource of the cloud that may be registered, or is: then ``resource_id`` is the id that the API shows.

    ``state`` is ``up``, ``down`` or ``disabled``; ``servers`` is how many run on it. ``region`` is empty
    where no regions are configured. ``registration`` are the fields that register it, as far as the cloud tells them.
    """

    id: str
    name: str
    state: str
    servers: int
    resource_id: str | None = None
    region: str = ""
    registration: Mapping[str, PropertyValue] = field(default_factory=dict)
