# SPDX-License-Identifier: Apache-2.0
"""Reservations, and what they have made in their project, by the ids that are recorded of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, replace
from blazar.model.leases import secrets
from blazar.model.leases.states import ReservationStatus

_IDS_OF: Mapping[str, str] = {"network": "network_id", "virtual:volume": "volume_ids", "virtual:server": "server_ids"}
"""The cloud id that has the ids of what is made, by resource type."""

TYPES = frozenset(_IDS_OF)
"""The resource types that make what users can delete."""


@dataclass(frozen=True, slots=True)
class Gone:
    """What was made and is not in the cloud any more; ``since`` is when that was seen first."""

    id: str
    since: datetime


def created_ids(resource_type: str, cloud_ids: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of what a reservation of a type has made, in the order in which they are recorded."""
    found = cloud_ids.get(_IDS_OF.get(resource_type, ""))
    if isinstance(found, str):
        return (found,)
    return tuple(str(id_) for id_ in found) if isinstance(found, list | tuple) else ()


_OF_INSTANCES = ("flavor_id", "aggregate_id", "server_group_id")


SHOWN_IDS: Mapping[str, tuple[str, ...]] = {
    "physical:host": (),
    "virtual:instance": _OF_INSTANCES,
    "flavor:instance": _OF_INSTANCES,
    "network": ("network_id",),
    "virtual:volume": ("volume_ids", "volume_types", "image_ids", "backup_ids"),
    "virtual:server": (*_OF_INSTANCES, "server_ids"),
    "virtual:stack": ("stack_id", "stack_reason"),
}
"""Cloud ids that users of a reservation need to know, by resource type; of types of other packages, all of them."""


@dataclass(frozen=True, slots=True)
class Content:
    """Values of a resource type that are kept with a reservation.

    Only the resource type reads them, by a typed value of its own (such as ``HostParameters``); everything else stores,
    compares and shows them. ``values`` is a JSON object.
    """

    values: Json


NO_CONTENT = Content({})


@dataclass(frozen=True, slots=True)
class Reservation:
    """What one lease reserves of one resource type.

    ``resource_id`` is an id that API 1.0 shows and nothing uses. ``parameters`` are the type's own values as the API
    shows them; ``cloud_ids`` are the cloud ids of what the type created (such as the id of an aggregate).
    ``unassigned`` are allocated resources that could not be assigned, ``failed`` those that have failed, by calendar
    id. ``missing_since`` and ``changed_since`` are since when ``missing_resources`` and ``resources_changed`` hold;
    None where they do not, or where an earlier version set them. ``region`` is that of its resources, empty where no
    regions are configured. ``parent`` is the id of the reservation of the lease that it is a part of, None for one that
    a user asked for. ``gone`` is what it has made in the project and the cloud does not have any more.
    ``handed_over_at`` is when its start was done; None before, and where an earlier version did it.
    """

    id: str
    resource_type: str
    resource_id: str | None
    status: ReservationStatus
    created_at: datetime
    updated_at: datetime | None = None
    missing_resources: bool = False
    resources_changed: bool = False
    parameters: Content = NO_CONTENT
    cloud_ids: Content = NO_CONTENT
    unassigned: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    missing_since: datetime | None = None
    changed_since: datetime | None = None
    region: str = ""
    parent: str | None = None
    gone: tuple[Gone, ...] = ()
    handed_over_at: datetime | None = None

    @property
    def made_ids(self) -> tuple[str, ...]:
        """Return the ids of what it has made in the project; none of a type that makes nothing there."""
        return created_ids(self.resource_type, self.cloud_ids.values)

    @property
    def lost_ids(self) -> frozenset[int]:
        """Return the resources that are promised and cannot be used, by calendar id."""
        return self.unassigned | self.failed

    @property
    def shown_parameters(self) -> Json:
        """Return the parameters without those that are secret."""
        return secrets.mask_secrets(self.parameters.values)

    @property
    def without_secrets(self) -> Reservation:
        """Return the reservation with null in place of the secrets of its users."""
        kept = self.parameters.values
        left = secrets.forget_secrets(kept)
        return self if left is kept else replace(self, parameters=Content(left))

    @property
    def shown(self) -> Json:
        """Return the parameters and the cloud ids that users need to know; an id that does not exist yet is None."""
        ids = SHOWN_IDS.get(self.resource_type, self.cloud_ids.values)
        return {**self.shown_parameters, **{key: self.cloud_ids.values.get(key) for key in ids}}


@dataclass(frozen=True, slots=True)
class ReservationOwner:
    """The lease of a reservation; ``over`` if that lease is terminated or deleted."""

    lease_id: str
    over: bool
