# SPDX-License-Identifier: Apache-2.0
"""What tests look at on the real cloud, as operators and users see it."""

from __future__ import annotations

from typing import Any

from blazar.clouds.ports import Compute
from blazar.model.errors import NotFound
from tests import openstack
from tests.openstack import Servers


def pool(compute: Compute, name: str) -> set[str]:
    """Return the hosts in an aggregate; none if it is not there."""
    found = compute.aggregate(name)
    return set(found.hosts) if found else set()


def host_of(server: dict[str, Any]) -> str | None:
    """Return where a server is, which only operators are told."""
    nova = openstack.access("admin").compute
    return nova.get(f"/servers/{server['id']}", microversion="2.74")["server"]["OS-EXT-SRV-ATTR:host"]


def gone(servers: Servers, server: dict[str, Any]) -> bool:
    """Tell whether a server is there no more."""
    try:
        servers.show(server["id"])
    except NotFound:
        return True
    return False
