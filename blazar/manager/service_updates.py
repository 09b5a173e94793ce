# SPDX-License-Identifier: Apache-2.0
"""What Nova says of its compute services: a reason to look at once.

A notification is taken as a hint only, whatever it says: what counts is what Nova answers then. So notifications may
come twice, late, in any order, or from anybody.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from blazar.messaging import oslo_messaging
from blazar.model.errors import InvalidInput

LOG = logging.getLogger(__name__)

EVENT = "service.update"
EXCHANGE = "nova"
"""Where Nova publishes, whatever the exchange of others."""


class ServiceUpdates:
    """Hears notifications, and tells of the hosts they are about."""

    def __init__(self, hear: Callable[[str], None]) -> None:
        self.filter_rule = oslo_messaging.NotificationFilter(event_type=r"^service\.update$")
        self._hear = hear

    def info(
        self, context: object, publisher_id: str, event_type: str, payload: object, metadata: Mapping[str, Any]
    ) -> None:
        """Take a notification; what it can not be understood as is none."""
        host = compute_host(event_type, payload)
        if host is not None:
            LOG.debug("Nova tells of nova-compute on %s", host)
            self._hear(host)


def compute_host(event_type: str, payload: object) -> str | None:
    """Return the host of the nova-compute that a notification is about; None if it is about something else."""
    data = payload.get("nova_object.data") if isinstance(payload, dict) else None
    if event_type != EVENT or not isinstance(data, dict) or data.get("binary", "nova-compute") != "nova-compute":
        return None
    host = data.get("host")
    return host if isinstance(host, str) and host else None


def queue(rpc_topic: str) -> str:
    """Return the name of a queue that the managers of one topic share: other listeners lose nothing to them."""
    return f"{rpc_topic}.service-updates"


def listener(conf: cfg.ConfigOpts, topics: Sequence[str], hear: Callable[[str], None], *, pool: str) -> Any:
    """Return a listener, to be started and stopped, on native threads. InvalidInput if there is no way to the bus."""
    try:
        transport = oslo_messaging.get_notification_transport(conf)
    except (oslo_messaging.MessagingException, cfg.Error, ValueError) as error:
        # The URL itself is not told: there is a password in it.
        raise InvalidInput(
            f"transport_url of [oslo_messaging_notifications], or else of [DEFAULT], can not be used: {error}"
        ) from error
    targets = [oslo_messaging.Target(topic=topic, exchange=EXCHANGE) for topic in topics]
    return oslo_messaging.get_notification_listener(
        transport, targets, [ServiceUpdates(hear)], executor="threading", pool=pool
    )
