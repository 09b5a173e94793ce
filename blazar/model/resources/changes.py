# SPDX-License-Identifier: Apache-2.0
"""What operators ask of resources: to register one, to change it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from blazar.model.base.json_text import Json
from blazar.model.base.moments import Duration
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import PropertyValue, Resource


@dataclass(frozen=True, slots=True)
class Disabling:
    """Why an operator disables a resource, and when it is to be enabled without another request; None: never.

    ``lasting`` instead of ``until`` counts from the manager's now.
    """

    reason: str | None = None
    until: datetime | None = None
    lasting: Duration | None = None


@dataclass(frozen=True, slots=True)
class Registration:
    """A resource to register. ``given`` are the parameters that name it in the cloud, as the client sent them.

    ``open_to`` are the projects that may use it, None for all. ``disabling`` counts only if it is ``disabled``.
    """

    given: Json
    capabilities: Mapping[str, str] = field(default_factory=dict)
    disabled: bool = False
    open_to: tuple[str, ...] | None = None
    disabling: Disabling = Disabling()


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """Changes of a resource: capabilities to set; None removes a capability.

    ``disabled`` None leaves that unchanged; ``disabling`` None leaves the reason and the end of a resource that is
    disabled already. ``open_to`` are the projects that may use the resource, None for all; it is
    applied only if ``sets_projects``. ``revisions``: only if the resource has one of these.
    ``attributes``: what its registration said of it, of kinds that let it be changed.
    """

    capabilities: Mapping[str, str | None]
    disabled: bool | None = None
    open_to: tuple[str, ...] | None = None
    sets_projects: bool = False
    disabling: Disabling | None = None
    revisions: tuple[int, ...] | None = None
    attributes: Mapping[str, PropertyValue] = field(default_factory=dict)

    def is_made(self, resource: Resource) -> bool:
        """Return whether a resource is as the change, with its dates, makes it."""
        projects = None if self.open_to is None else frozenset(self.open_to)
        disabling = self.disabling
        return (
            all(resource.capabilities.get(name) == value for name, value in self.capabilities.items())
            and all(resource.attributes[name] == value for name, value in self.attributes.items())
            and (not self.sets_projects or resource.authorized_projects == projects)
            and (self.disabled is None or resource.disabled == self.disabled)
            and (not self.disabled or resource.disabled_since is not None)
            and (
                disabling is None
                or (disabling.reason, disabling.until) == (resource.disabled_reason, resource.disabled_until)
            )
        )
