# SPDX-License-Identifier: Apache-2.0
"""State of a process for systemd, for units with ``Type=notify``: the protocol of sd_notify(3)."""

from __future__ import annotations

import logging
import os
import socket

LOG = logging.getLogger(__name__)


def say_ready(status: str) -> None:
    """Say that the process serves."""
    _notify(f"READY=1\nSTATUS={status}")


def say_status(status: str) -> None:
    """Say what the process does or waits for; ``systemctl status`` shows it."""
    _notify(f"STATUS={status}")


def say_stopping() -> None:
    """Say that the process finishes its work and ends."""
    _notify("STOPPING=1")


def _notify(state: str) -> None:
    """Send a state; do nothing where nobody listens, as in a shell or a container."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        # The abstract namespace of Linux.
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(state.encode(), address)
    except OSError as error:
        LOG.warning("systemd cannot be told at NOTIFY_SOCKET %r: %s", address, error)
