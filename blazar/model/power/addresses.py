# SPDX-License-Identifier: Apache-2.0
"""Where the power of a host is switched. There is never a secret in it: those are in the configuration."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import urlsplit

from blazar.model.base.errors import InvalidInput
from blazar.model.base.values import dataclass
from blazar.model.resources.resource import HOST, ResourceKind, noun


class PowerAdapter(StrEnum):
    """By what the power of a host is switched."""

    REDFISH = "redfish"
    HOOK = "hook"
    IRONIC = "ironic"
    SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class PowerAddress:
    """The switch of one host.

    ``target`` is the URL of a system (redfish) or of a hook, the name or id of a node (ironic), and the name of the
    host in a simulated cloud.
    """

    adapter: PowerAdapter
    target: str

    def identify(self, region: str) -> tuple[str, ...] | None:
        """Return what no two hosts have alike, of a host in a region; None of a hook, which is told the host it is for.

        However its URL is written, a system of a BMC is the same.
        """
        match self.adapter:
            case PowerAdapter.HOOK:
                return None
            case PowerAdapter.REDFISH:
                parts = urlsplit(self.target)
                return self.adapter, f"{parts.hostname}:{parts.port or 443}", parts.path.rstrip("/")
        return self.adapter, region, self.target


def check_adapter(kind: ResourceKind, adapter: PowerAdapter) -> None:
    """Raise InvalidInput if what a resource of a kind is switched by is no hook, but for hosts.

    No driver of storage switches a pool. In a simulated cloud there is no hook either.
    """
    if kind != HOST and adapter not in (PowerAdapter.HOOK, PowerAdapter.SIMULATED):
        raise InvalidInput(
            f"adapter is {adapter}, which switches hosts; a {noun(kind)} is switched by a hook: give hook",
            at="/adapter",
        )
