# SPDX-License-Identifier: Apache-2.0
"""Notifications about leases on the message bus, in the format of the existing Blazar."""

from __future__ import annotations

import logging
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Protocol

from oslo_config import cfg

from blazar.messaging import oslo_messaging
from blazar.model.lease import HIDDEN_EVENTS, Event, Lease, Reservation
from blazar.resources.making_room import MovedServer

LOG = logging.getLogger(__name__)

CREATED = "lease.create"
UPDATED = "lease.update"
DELETED = "lease.delete"
DEGRADED = "lease.degraded"
HEALED = "lease.healed"
UNUSED_WARNING = "lease.unused.warning"
UNUSED_RELEASED = "lease.unused.released"
WAITING = "lease.waiting"
PROMISED = "lease.promised"
ADVANCED = "lease.advanced"
EXTENDED = "lease.extended"
TIMED_OUT = "lease.timed_out"
MOVED = "lease.moved"
MAINTENANCE = "lease.maintenance"
TRANSFER_OFFERED = "lease.transfer.offered"
TRANSFER_WITHDRAWN = "lease.transfer.withdrawn"
TRANSFER_DECLINED = "lease.transfer.declined"
TRANSFERRED = "lease.transferred"
WARNING_OFF = "lease.event.before_end_lease.stop"
SERVERS_MOVED = "servers.moved"


def of_event(event_type: str) -> str:
    """Return the notification type for a finished event of the timetable."""
    return f"lease.event.{event_type}"


@dataclass(frozen=True, slots=True)
class Parties:
    """The ids of the projects between which a lease goes, or is offered."""

    from_project_id: str
    to_project_id: str


class Notifier(Protocol):
    """Emits notifications."""

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
    ) -> None:
        """Emit a notification about a lease. Never raises: a lease does not fail because the bus does.

        ``extendable_until`` is the latest end that the lease could have, for who is told that it ends; ``transfer``
        says between whom it is offered, or has gone.
        """

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        """Emit the notification that servers of a project, which belong to no lease, were moved. Never raises."""


class MessagingNotifier:
    """Emits over oslo.messaging, with priority INFO; drivers, topics and transport are set in the configuration."""

    def __init__(self, conf: cfg.ConfigOpts, publisher_id: str) -> None:
        transport = oslo_messaging.get_notification_transport(conf)
        self._notifier = oslo_messaging.Notifier(transport, publisher_id=publisher_id)

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
    ) -> None:
        """Emit a notification about a lease."""
        try:
            self._notifier.info({}, notification, payload(lease, extendable_until, transfer))
        except Exception:
            # The edge to a message bus: whatever its drivers raise, the work on the lease continues.
            LOG.exception("Notification %s about lease %s could not be sent", notification, lease.id)

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        """Emit the notification that servers of a project were moved."""
        try:
            self._notifier.info({}, SERVERS_MOVED, moves_payload(project_id, servers))
        except Exception:
            # As above.
            LOG.exception("Notification %s to project %s could not be sent", SERVERS_MOVED, project_id)


def payload(lease: Lease, extendable_until: datetime | None = None, transfer: Parties | None = None) -> dict[str, Any]:
    """Return a notification's payload: the lease as the API shows it, without what is internal."""
    return {
        "lease_id": lease.id,
        "name": lease.name,
        "user_id": lease.user_id,
        "project_id": lease.project_id,
        "trust_id": lease.trust_id,
        "start_date": _iso(lease.window.start),
        "end_date": _iso(lease.window.end),
        "status": str(lease.status),
        **({"release_at": _iso(lease.use.release_at)} if lease.use and lease.use.release_at else {}),
        **({"extendable_until": _iso(extendable_until)} if extendable_until else {}),
        **(asdict(transfer) if transfer else {}),
        "degraded": lease.degraded,
        "created_at": _spaced(lease.created_at),
        "updated_at": _spaced(lease.updated_at),
        "reservations": [_reservation(lease, reservation) for reservation in lease.asked_for],
        "events": [_event(lease, event) for event in lease.events if event.event_type not in HIDDEN_EVENTS],
    }


def moves_payload(project_id: str, servers: Collection[MovedServer]) -> dict[str, Any]:
    """Return what a project is told of its servers that were moved: neither for whom, nor from where to where."""
    return {
        "project_id": project_id,
        "servers": [
            {"id": each.id, "user_id": each.user_id, "live": each.live, "moved_at": _iso(each.moved_at)}
            for each in servers
        ],
    }


def _reservation(lease: Lease, reservation: Reservation) -> dict[str, Any]:
    return {
        **reservation.shown,
        "id": reservation.id,
        "lease_id": lease.id,
        "resource_id": reservation.resource_id,
        "resource_type": reservation.resource_type,
        "status": str(reservation.status),
        "missing_resources": reservation.missing_resources,
        "resources_changed": reservation.resources_changed,
        "created_at": _spaced(reservation.created_at),
        "updated_at": _spaced(reservation.updated_at),
    }


def _event(lease: Lease, event: Event) -> dict[str, Any]:
    return {
        "id": event.id,
        "lease_id": lease.id,
        "event_type": event.event_type,
        "time": _iso(event.time),
        "status": str(event.status) if event.status else None,
        "created_at": _spaced(event.created_at),
        "updated_at": _spaced(event.updated_at),
    }


def _iso(instant: datetime | None) -> str | None:
    return f"{instant:%Y-%m-%dT%H:%M:%S.%f}" if instant else None


def _spaced(instant: datetime | None) -> str | None:
    return f"{instant:%Y-%m-%d %H:%M:%S}" if instant else None
