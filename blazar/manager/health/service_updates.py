# SPDX-License-Identifier: Apache-2.0
"""Nova's notifications about its compute services, which trigger a poll.

A notification is only a hint: its content is not trusted, the poll reads the state from Nova. So notifications may come
twice, late, in any order, or from any sender.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from blazar.messaging import oslo_messaging
from blazar.model.base.errors import InvalidInput

LOG = logging.getLogger(__name__)

EVENT = "service.update"
EXCHANGE = "nova"
"""The exchange to which Nova publishes, independent of other services' exchanges."""


class ServiceUpdates:
    """Receives notifications, and calls ``hear`` with the hosts that they are about."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.filter_rule = oslo_messaging.NotificationFilter(event_type=r"^service\.update$")
        self._hear = hear

    def info(
        self, context: object, publisher_id: str, event_type: str, payload: object, metadata: Mapping[str, Any]
    ) -> None:
        """Receive a notification; one that cannot be parsed is ignored."""
        host = compute_host(event_type, payload)
        if host is not None:
            LOG.debug("nova-compute on %s has changed, says Nova", host)
            self._hear(host)


def compute_host(event_type: str, payload: object) -> str | None:
    """Return the host of the nova-compute that a notification is about; None if it is about something else."""
    data = payload.get("nova_object.data") if isinstance(payload, dict) else None
    if event_type != EVENT or not isinstance(data, dict) or data.get("binary", "nova-compute") != "nova-compute":
        return None
    host = data.get("host")
    return host if isinstance(host, str) and host else None


def queue(rpc_topic: str) -> str:
    """Return the name of the queue that the managers of one topic share: it takes no messages from other listeners."""
    return f"{rpc_topic}.service-updates"


def listener(conf: cfg.ConfigOpts, topics: Sequence[str], hear: Callable[[str], None], *, pool: str) -> Any:
    """Return a listener, not started, on native threads. InvalidInput if the transport cannot be configured."""
    try:
        transport = oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.MessagingException, cfg.Error, ValueError) as error:
        # The URL itself is left out: it contains a password.
        raise InvalidInput(
            f"transport_url of [oslo_messaging_notifications], or else of [DEFAULT], cannot be used: {error}"
        ) from error
    targets = [oslo_messaging.Target(topic=topic, exchange=EXCHANGE) for topic in topics]
    return oslo_messaging.get_notification_listener(
        transport, targets, [ServiceUpdates(hear)], executor="threading", pool=pool
    )
