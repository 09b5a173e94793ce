# SPDX-License-Identifier: Apache-2.0
"""Where managers are on the message bus."""

from __future__ import annotations

import warnings
from typing import Any

from oslo_config import cfg

from blazar.messaging import oslo_messaging
from blazar.model.errors import InvalidInput

NAMESPACE = "blazar.manager"
VERSION = "2.0"
"""Version 1 is the interface of the existing Blazar, which calls by the names of attributes; the two do not mix."""


def target(topic: str, *, server: str | None = None) -> Any:
    """Return the target of all managers that share a topic, or of one of them."""
    return oslo_messaging.Target(topic=topic, server=server, namespace=NAMESPACE, version=VERSION)


def transport(conf: cfg.ConfigOpts) -> Any:
    """Return the way to the message bus that ``transport_url`` names; InvalidInput if it names none."""
    with warnings.catch_warnings():
        # The library warns its developers about its own parts.
        warnings.simplefilter("ignore")
        try:
            return oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=[])
        except (oslo_messaging.MessagingException, cfg.Error, ValueError) as error:
            # The URL itself is not told: there is a password in it.
            raise InvalidInput(
                f"[DEFAULT] transport_url can not be used: {error}; write rabbit://USER:PASSWORD@HOST:5672/"
            ) from error
