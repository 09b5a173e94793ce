# SPDX-License-Identifier: Apache-2.0
"""What tests look at on the real cloud, as operators and users see it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import blazarclient

from blazar.clouds.ports.compute import Compute
from blazar.model.base.errors import NotFound
from tests import openstack
from tests.openstack import Servers

PROGRAMS = openstack.HOME / "venv" / "bin"
"""The programs of the test cloud, and those of our client among them."""


def installed_client() -> Path:
    """Return where the services of the test cloud import the client from; AssertionError if it is not ours."""
    asked = "import blazarclient; print(blazarclient.__file__)"
    command = [str(PROGRAMS / "python"), "-c", asked]
    plain = openstack.without_login()
    found = subprocess.check_output(command, cwd="/", env=plain, text=True, timeout=120).strip()
    file, ours = Path(found), Path(blazarclient.__file__).parent
    for source in ours.rglob("*.py"):
        assert (file.parent / source.relative_to(ours)).read_bytes() == source.read_bytes(), "type make cloud"
    return file


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
