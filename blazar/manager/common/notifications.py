# SPDX-License-Identifier: Apache-2.0
"""Notifications about leases on the message bus, in the format of the existing Blazar."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Protocol

from oslo_config import cfg

from blazar.messaging import oslo_messaging
from blazar.model.base.clock import iso
from blazar.model.base.values import asdict, dataclass
from blazar.model.leases.descriptions import describe_lease, describe_reservation
from blazar.model.leases.lease import Lease
from blazar.model.use.preemption import Preemption
from blazar.resources.contract.evacuation import MovedServer

LOG = logging.getLogger(__name__)

Send = Callable[[Mapping[str, Any], str, Mapping[str, Any]], object]
"""Sends a message with a context, its type and its payload."""

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
CONFIRMED = "lease.confirmed"
LAPSED = "lease.lapsed"
TIMED_OUT = "lease.timed_out"
MOVED = "lease.moved"
MAINTENANCE = "lease.maintenance"
TRANSFER_OFFERED = "lease.transfer.offered"
TRANSFER_WITHDRAWN = "lease.transfer.withdrawn"
TRANSFER_DECLINED = "lease.transfer.declined"
TRANSFERRED = "lease.transferred"
WARNING_OFF = "lease.event.before_end_lease.stop"
REMINDED = "lease.reminded"
SERVERS_MOVED = "servers.moved"
SERVERS_PREEMPTED = "servers.before_end"


def event_notification(event_type: str) -> str:
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
        reminder: str | None = None,
    ) -> None:
        """Emit a notification about a lease. Never raises: a lease does not fail because the bus does.

        ``extendable_until`` is the latest end that the lease could have, for who is told that it ends; ``transfer``
        says between whom it is offered, or has gone; ``reminder`` is the text that its user wants to be told.
        """

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        """Emit the notification that servers of a project, which belong to no lease, were moved. Never raises."""

    def notify_preempted(self, project_id: str, told: Collection[Preemption]) -> None:
        """Emit the notification that preemptible servers of a project will be deleted. Never raises."""


class MessagingNotifier:
    """Emits over oslo.messaging, with priority INFO; drivers, topics and transport are set in the configuration.

    ``send_later`` makes of what sends a message what has it sent, without waiting for the bus.
    """

    def __init__(
        self, conf: cfg.ConfigOpts, publisher_id: str, send_later: Callable[[Send], Send] = lambda send: send
    ) -> None:
        transport = oslo_messaging.get_notification_transport(conf)
        self._send = send_later(oslo_messaging.Notifier(transport, publisher_id=publisher_id).info)

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
        reminder: str | None = None,
    ) -> None:
        """Emit a notification about a lease."""
        try:
            self._send({}, notification, render_payload(lease, extendable_until, transfer, reminder))
        except Exception:
            # The edge to a message bus: whatever its drivers raise, the work on the lease continues.
            LOG.exception("Notification %s about lease %s could not be sent", notification, lease.id)

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        """Emit the notification that servers of a project were moved."""
        self._send_to_project(SERVERS_MOVED, project_id, render_moves(project_id, servers))

    def notify_preempted(self, project_id: str, told: Collection[Preemption]) -> None:
        """Emit the notification that preemptible servers of a project will be deleted."""
        self._send_to_project(SERVERS_PREEMPTED, project_id, render_preempted(project_id, told))

    def _send_to_project(self, notification: str, project_id: str, payload: Mapping[str, Any]) -> None:
        try:
            self._send({}, notification, payload)
        except Exception:
            # As above.
            LOG.exception("Notification %s to project %s could not be sent", notification, project_id)


def render_payload(
    lease: Lease,
    extendable_until: datetime | None = None,
    transfer: Parties | None = None,
    reminder: str | None = None,
) -> dict[str, Any]:
    """Return a notification's payload: the lease as the API shows it, without what is internal."""
    reservations = (describe_reservation(lease.id, reservation, reservation.shown) for reservation in lease.asked_for)
    described = describe_lease(lease, reservations)
    release_at = lease.use and lease.use.release_at
    return {
        "lease_id": described.pop("id"),
        **described,
        **({"release_at": iso(release_at)} if release_at else {}),
        **({"extendable_until": iso(extendable_until)} if extendable_until else {}),
        **(asdict(transfer) if transfer else {}),
        **({"reminder": reminder} if reminder else {}),
    }


def render_moves(project_id: str, servers: Collection[MovedServer]) -> dict[str, Any]:
    """Return what a project is told of its servers that were moved: neither for whom, nor from where to where."""
    return {
        "project_id": project_id,
        "servers": [
            {"id": server.id, "user_id": server.user_id, "live": server.live, "moved_at": iso(server.moved_at)}
            for server in servers
        ],
    }


def render_preempted(project_id: str, told: Collection[Preemption]) -> dict[str, Any]:
    """Return which preemptible servers of a project will be deleted, and when; not for which lease."""
    return {
        "project_id": project_id,
        "servers": [
            {"id": p.server.id, "user_id": p.server.user_id, "ends_at": iso(p.ends_at), "saved": p.server.saved}
            for p in told
        ],
    }
