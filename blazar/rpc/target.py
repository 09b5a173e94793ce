"""Where managers are on the message bus."""

from __future__ import annotations

import warnings
from typing import Any

from oslo_config import cfg

from blazar.manager.messaging import oslo_messaging

NAMESPACE = "blazar.manager"
VERSION = "2.0"
"""Version 1 is the interface of the existing Blazar, which calls by the names of attributes; the two do not mix."""


def target(topic: str, *, server: str | None = None) -> Any:
    """Return the target of all managers that share a topic, or of one of them."""
    return oslo_messaging.Target(topic=topic, server=server, namespace=NAMESPACE, version=VERSION)


def transport(conf: cfg.ConfigOpts) -> Any:
    """Return the way to the message bus that ``transport_url`` names."""
    with warnings.catch_warnings():
        # The library warns its developers about its own parts.
        warnings.simplefilter("ignore")
        return oslo_messaging.get_rpc_transport(conf, allowed_remote_exmods=[])
