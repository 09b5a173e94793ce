# SPDX-License-Identifier: Apache-2.0
"""What callers ask of the manager, parsed: types are right, rules of the domain are not yet checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from blazar.model.lease import Parameters


class Now(Enum):
    """The literal ``now`` of a request: the server's clock decides."""

    NOW = "now"


NOW = Now.NOW
Moment = datetime | Now


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, and in which project: not always the owner of the lease, as operators change leases, too.

    An ``operator`` may ask about what is for operators only.
    """

    user_id: str
    project_id: str
    operator: bool = False


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """One reservation of a new lease; ``parameters`` are unchecked."""

    resource_type: str
    parameters: Parameters


@dataclass(frozen=True, slots=True)
class EventRequest:
    """An event of the client's own; kept and shown, never acted on."""

    event_type: str
    time: datetime | None


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A new lease for a user of a project. ``before_end`` None means the operator's default lead time.

    ``operator`` tells that the user is one, who may ask about what is for operators only.
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
    parameters: Parameters
    resource_type: str | None = None


@dataclass(frozen=True, slots=True)
class LeaseChange:
    """What is to change in a lease; None leaves a value as it is. ``asked_by`` None stands for the lease's owner."""

    name: str | None = None
    start: Moment | None = None
    end: Moment | None = None
    before_end: datetime | None = None
    reservations: tuple[ReservationChange, ...] = ()
    asked_by: Actor | None = None

    @property
    def empty(self) -> bool:
        """Tell whether nothing changes at all."""
        return self == LeaseChange(asked_by=self.asked_by)

    @property
    def rename_only(self) -> bool:
        """Tell whether nothing but the name changes."""
        return self.name is not None and self == LeaseChange(name=self.name, asked_by=self.asked_by)


@dataclass(frozen=True, slots=True)
class HostRequest:
    """A host to register, by the cloud's id of it or by its hypervisor's hostname (the id wins)."""

    name: str | None
    id: str | None
    capabilities: Mapping[str, str]
    disabled: bool = False
    open_to: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class HostChange:
    """Capabilities to set (a text) or to take away (None).

    ``disabled`` None leaves that as it is; ``open_to`` are the projects that a host is for, None for all, and counts
    where ``sets_projects``.
    """

    capabilities: Mapping[str, str | None]
    disabled: bool | None = None
    open_to: tuple[str, ...] | None = None
    sets_projects: bool = False


@dataclass(frozen=True, slots=True)
class FloatingIpRequest:
    """An address of an external network to register."""

    network_id: str
    address: str
