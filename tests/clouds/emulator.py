# SPDX-License-Identifier: Apache-2.0
"""A BMC that is not ours: the emulator of sushy-tools in a process of its own, with fake systems."""

from __future__ import annotations

import socket
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def systems_of(hosts: Iterable[str]) -> dict[str, str]:
    """Return the ids of the systems of hosts, by name."""
    return {host: str(uuid.uuid5(uuid.NAMESPACE_DNS, host)) for host in hosts}


SYSTEMS = systems_of(("node-1", "node-2"))


def system_url(url: str, system: str) -> str:
    """Return the URL of a system of the emulator."""
    return f"{url}/redfish/v1/Systems/{system}"


@contextmanager
def run_emulator(
    folder: Path, *, port: int | None = None, systems: dict[str, str] = SYSTEMS, told: str | None = None
) -> Iterator[str]:
    """Run the emulator, by default on a port that is free. Systems of which the folder knows no state are on.

    Each change of a system is ``told`` to a URL.
    """
    made = [
        {"uuid": id_, "name": name, "power_state": "On", "external_notifier": told is not None, "nics": []}
        for name, id_ in systems.items()
    ]
    # By default it keeps the states of systems where the next one finds them.
    lines = f"SUSHY_EMULATOR_FAKE_SYSTEMS = {made!r}\nSUSHY_EMULATOR_STATE_DIR = {str(folder)!r}\n"
    lines += f"EXTERNAL_NOTIFICATION_URL = {told!r}\n"
    (folder / "bmc.py").write_text(lines)
    port = port or find_port()
    command = ["--config", str(folder / "bmc.py"), "--fake", "-i", "127.0.0.1", "-p", str(port)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sushy_tools.emulator.main", *command], cwd=folder, stdout=log, stderr=log
        )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def find_port() -> int:
    """Return a port of this machine that is free."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
    return found
