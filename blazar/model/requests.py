# SPDX-License-Identifier: Apache-2.0
"""Parsed requests to the manager: types are checked, rules of the domain are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from blazar.model.lease import Json


class Now(Enum):
    """The literal ``now`` of a request: the time of the server's clock."""

    NOW = "now"


NOW = Now.NOW
Moment = datetime | Now


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller and the project: not always the owner of the lease, as operators change leases, too.

    An ``operator`` may use what is for operators only.
    """

    user_id: str
    project_id: str
    operator: bool = False


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """One reservation of a new lease; ``parameters`` are as the client sent them."""

    resource_type: str
    parameters: Json


@dataclass(frozen=True, slots=True)
class EventRequest:
    """An event of the client's own: stored and shown, never processed."""

    event_type: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A new lease for a user of a project. ``before_end`` None means the operator's default lead time.

    ``operator``: the user is an operator, and may use what is for operators only.
    """

    name: str
    user_id: str
    project_id: str
    start: Moment
    end: Moment
    before_end: datetime | None = None
    reservations: tuple[ReservationRequest, ...] = ()
    events: tuple[EventRequest, ...] = ()
    operator: bool = False


@dataclass(frozen=True, slots=True)
class ReservationChange:
    """New values for some parameters of one reservation; ``resource_type`` must be the stored one."""

    id: str
    parameters: Json
    resource_type: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """Changes of a lease; None leaves a value unchanged. ``asked_by`` None means the lease's owner."""

    name: str | None = None
    start: Moment | None = None
    end: Moment | None = None
    before_end: datetime | None = None
    reservations: tuple[ReservationChange, ...] = ()
    asked_by: Actor | None = None

    @property
    def empty(self) -> bool:
        """Return whether nothing changes."""
        return self == LeaseChange(asked_by=self.asked_by)

    @property
    def rename_only(self) -> bool:
        """Return whether only the name changes."""
        return self.name is not None and self == LeaseChange(name=self.name, asked_by=self.asked_by)


@dataclass(frozen=True, slots=True)
class Registration:
    """A resource to register. ``given`` are the parameters that name it in the cloud, as the client sent them.

    ``open_to`` are the projects that may use it, None for all.
    """

    given: Json
    capabilities: Mapping[str, str] = field(default_factory=dict)
    disabled: bool = False
    open_to: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class ResourceChange:
    """Changes of a resource: capabilities to set; None removes a capability.

    ``disabled`` None leaves that unchanged. ``open_to`` are the projects that may use the resource, None for all; it is
    applied only if ``sets_projects``.
    """

    capabilities: Mapping[str, str | None]
    disabled: bool | None = None
    open_to: tuple[str, ...] | None = None
    sets_projects: bool = False
