# SPDX-License-Identifier: Apache-2.0
"""Checks of the URL of a service that an operator has configured."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from blazar.model.errors import InvalidInput


def check_url(url: str, option: str, *, example: str, credentials: str, secret: str | None = None) -> None:
    """Raise InvalidInput if a URL cannot be called, or if calls to it would give a secret away.

    ``option`` is its option with the section, ``credentials`` the options that are for names and passwords, and
    ``secret`` the one of them that is set.
    """
    # The URL itself is not shown: there may be a password in it.
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(f"{option} is not a URL of a service; write it as {example}")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{option} contains a name or password; remove it, and set {credentials}")
    if secret and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise InvalidInput(
            f"{option} is an http:// URL of another machine, and {secret} would be sent to it unencrypted; give an "
            "https:// URL, or one on loopback"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
