# SPDX-License-Identifier: Apache-2.0
"""The options of ``[monitoring]``: where metrics are read, by whom, and what managers read for them."""

from __future__ import annotations

import ipaddress

from oslo_config import cfg

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass

SECTION = "monitoring"

OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "listen",
        default=[],
        help="Addresses with ports, as 127.0.0.1:9320 or [::1]:9320, at which blazar-api or blazar-manager serves "
        "metrics to Prometheus; empty for none. Processes on one machine need a port each. blazar-standalone uses "
        "127.0.0.1:9320 by default.",
    ),
    cfg.StrOpt(
        "token",
        default="",
        secret=True,
        help="What a request for metrics has to send as 'Authorization: Bearer ...'; empty if none is needed. Without "
        "it listen should be loopback or a private network.",
    ),
    cfg.IntOpt(
        "sample_interval",
        default=30,
        min=5,
        max=3600,
        help="Seconds after which a manager with an address to listen at reads again in the database what metrics tell "
        "of leases, resources and what is due. After three of them without success it tells nothing of these.",
    ),
    cfg.ListOpt(
        "properties",
        default=[],
        help="Public properties of resources, three at most, by whose values metrics count resources; 20 values of "
        "each, and the rest together. They are told to everybody who reads metrics.",
    ),
]


DRAIN_SECONDS = cfg.IntOpt(
    "drain_seconds",
    default=0,
    min=0,
    max=3600,
    help="Seconds that blazar-api goes on to serve after SIGTERM, while GET /healthcheck is 503: as long as the "
    "load balancer takes to send nothing more.",
)
DRAIN_TIMEOUT = cfg.IntOpt(
    "drain_timeout",
    default=600,
    min=1,
    max=86400,
    help="Maximum seconds that a manager goes on after SIGUSR2, when it takes no request and no event, to finish "
    "what it has begun; another manager takes over what is left.",
)
"""What belongs to [api] and [manager]: how long one goes on that load balancers, or other managers, replace."""


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """An address and a port to listen at."""

    address: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return ipaddress.ip_address(self.address).is_loopback

    @property
    def host(self) -> str:
        """The address as a URL has it."""
        return f"[{self.address}]" if ":" in self.address else self.address

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def read_address(text: str) -> ListenAddress:
    """Return what an item of ``[monitoring] listen`` names; InvalidInput if that is no address and port."""
    address, _, port = text.rpartition(":")
    address = address.removeprefix("[").removesuffix("]")
    try:
        ipaddress.ip_address(address)
        if not (port.isascii() and port.isdigit() and int(port) <= 65535):
            raise ValueError(port)
    except ValueError as error:
        raise InvalidInput(
            f"[monitoring] listen: {text!r} is no address and port; write 127.0.0.1:9320 or [::1]:9320"
        ) from error
    return ListenAddress(address, int(port))


AUDIT_OPTIONS: list[cfg.Opt] = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Have blazar-api send CADF notifications of each request that may change something, by the audit of "
        "keystonemiddleware; where to, [audit_middleware_notifications] says.",
    ),
    cfg.StrOpt(
        "map_file",
        default="/etc/blazar/api_audit_map.conf",
        help="File by which requests are named in these notifications; etc/blazar/api_audit_map.conf is one.",
    ),
]
