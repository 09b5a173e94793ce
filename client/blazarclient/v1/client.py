# SPDX-License-Identifier: Apache-2.0
"""The client of version 1."""

from __future__ import annotations

import logging
from typing import Any

from blazarclient.v1 import allocations, devices, floatingips, hosts, leases, networks

LOG = logging.getLogger(__name__)


class Client:
    """The managers ``lease``, ``host``, ``floatingip``, ``network``, ``device`` and ``allocation``.

    ``adapter_options``: what the adapters of the managers get besides the session.
    """

    version = "1"

    def __init__(
        self, blazar_url: str | None = None, auth_token: str | None = None, session: Any | None = None, **kwargs: Any
    ) -> None:
        self.blazar_url = blazar_url
        self.auth_token = auth_token
        self.session = session
        self.adapter_options = kwargs
        if blazar_url and not session:
            LOG.warning("blazar_url and auth_token are deprecated: give a keystoneauth session")
        common: dict[str, Any] = {
            "blazar_url": blazar_url,
            "auth_token": auth_token,
            "session": session,
            "version": self.version,
            **kwargs,
        }
        self.lease = leases.LeaseClientManager(**common)
        self.host = hosts.ComputeHostClientManager(**common)
        self.floatingip = floatingips.FloatingIPClientManager(**common)
        self.network = networks.NetworkClientManager(**common)
        self.device = devices.DeviceClientManager(**common)
        self.allocation = allocations.AllocationClientManager(**common)
