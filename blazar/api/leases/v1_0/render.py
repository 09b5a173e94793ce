# SPDX-License-Identifier: Apache-2.0
"""Render leases as JSON of API 1.0 and of version 2: keys, order and formats that clients parse.

They see states and parameters that they know: programs wait at CREATING and STARTING, and give up at ERROR. What is
newer than its resource type is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from blazar.api.http.shapes import Json
from blazar.api.leases.limits import NEWER
from blazar.model.base.clock import iso
from blazar.model.leases.descriptions import describe_lease, describe_reservation
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Reservation
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.resources.contract.actions import ALIAS, BEFORE_END

_EARLIER: Mapping[LeaseStatus, LeaseStatus] = {
    LeaseStatus.WAITING: LeaseStatus.CREATING,
    LeaseStatus.TIMED_OUT: LeaseStatus.ERROR,
    LeaseStatus.IN_PROGRESS: LeaseStatus.STARTING,
}
"""The status that is shown at 1.0."""

STATES: Json = {"enum": [status.value for status in LeaseStatus if status not in _EARLIER]}
"""The schema of the states at 1.0."""

KEYS_OF_V2 = (
    "id",
    "name",
    "start_date",
    "end_date",
    "before_end_date",
    "user_id",
    "project_id",
    "trust_id",
    "reservations",
    "events",
    "status",
    "created_at",
    "updated_at",
)


def lease(value: Lease) -> Json:
    """Render a lease."""
    found = value.as_estimated
    reservations = (describe_reservation(found.id, r, find_known_parameters(r)) for r in found.asked_for)
    return describe_lease(found, reservations, status=show_status(found.status))


def show_status(status: LeaseStatus) -> str:
    """Return the status that is shown of a lease in this one."""
    return _EARLIER.get(status, status).value


def find_known_parameters(reservation: Reservation) -> Json:
    """Return what of a reservation its type gives, as far as clients of 1.0 know it."""
    hidden = NEWER.get(reservation.resource_type, frozenset())
    return {key: value for key, value in reservation.shown.items() if key not in hidden}


def lease_of_v2(value: Lease) -> Json:
    """Render a lease for version 2: with other keys, and the time of its before-end event."""
    known = lease(value)
    warning = value.as_estimated.event(EventType.BEFORE_END)
    known["before_end_date"] = iso(warning.time) if warning and warning.time else None
    known["reservations"] = [rename_action(reservation) for reservation in known["reservations"]]
    return {key: known[key] for key in KEYS_OF_V2}


def rename_action(values: Json) -> Json:
    """Return values by key, with the before-end action under the name that version 2 uses.

    Under one name only: a client that edits a reservation and sends it back must not send two differing values.
    """
    return {ALIAS if key == BEFORE_END else key: value for key, value in values.items()}
