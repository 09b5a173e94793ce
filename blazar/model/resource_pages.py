# SPDX-License-Identifier: Apache-2.0
"""Questions for lists of resources as operators see them, and their answers."""

from __future__ import annotations

from dataclasses import dataclass

from blazar.model.demand import ResourceAllocations
from blazar.model.paging import Condition, Page, Position
from blazar.model.resource import PropertyValues, Resource


@dataclass(frozen=True, slots=True)
class ResourceQuestion:
    """A page of the registered resources of a kind: those that hold all conditions and meet a requirement.

    Keys of conditions and of the order are ``name``, ``label``, ``created_at``, ``updated_at`` and properties;
    conditions may also be about ``condition`` (``ok``, ``disabled``, ``failed``) and ``project_id``, a project to which
    a resource is restricted. ``text`` is a part of the name, without regard to case; ``requirement`` is JSON.
    """

    page: Page
    conditions: tuple[Condition, ...] = ()
    requirement: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """Resources, and the position of the last one if there are more; ``count`` is that of all pages, if asked for."""

    items: tuple[Resource, ...]
    following: Position | None = None
    count: int | None = None


@dataclass(frozen=True, slots=True)
class AllocationQuestion:
    """A page of the registered resources of a kind with their allocations, also of those that have none.

    Keys of the order are as for ``ResourceQuestion``. Without conditions the allocations are the live ones; conditions
    are about ``lease_id`` and ``reservation_id``, narrow the allocations, and include past ones.
    """

    page: Page
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class AllocationPage:
    """Resources with their allocations; the other fields are as in ``ResourcePage``."""

    items: tuple[ResourceAllocations, ...]
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

    ``state`` is ``up``, ``down`` or ``disabled``; ``servers`` is how many run on it.
    """

    id: str
    name: str
    state: str
    servers: int
    resource_id: str | None = None
