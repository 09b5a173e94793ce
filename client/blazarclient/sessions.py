# SPDX-License-Identifier: Apache-2.0
"""What is asked of a keystoneauth session, also of one within adapters."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import adapter
from keystoneauth1.session import TCPKeepAliveAdapter

from blazarclient.exception import InvalidRequest

CONNECTING = 15.0
"""Seconds for a connection, and for its encryption: a port that is not for TLS says nothing, however long one waits."""


def within(session: Any) -> Any:
    """Return the session of an adapter, or of an adapter of one; a session itself is returned as it is."""
    while isinstance(session, adapter.Adapter):
        session = session.session
    return session


def time_limit(session: Any) -> Any:
    """Return the seconds that a session waits for an answer; None if it waits for ever."""
    return getattr(within(session), "timeout", None)


class Connecting(TCPKeepAliveAdapter):  # type: ignore[misc]
    """Makes connections, each within ``CONNECTING`` seconds, though an answer may take longer."""

    def send(self, request: Any, *args: Any, **options: Any) -> Any:
        """Send a request."""
        patience = options.get("timeout")
        if isinstance(patience, int | float):
            options["timeout"] = (min(CONNECTING, patience), patience)
        return super().send(request, *args, **options)


def connect_soon(session: Any) -> None:
    """Have a session of keystoneauth not wait for a connection as long as for an answer."""
    for scheme in ("http://", "https://"):
        session.mount(scheme, Connecting())


def cannot_be_sent() -> InvalidRequest:
    """Return the error for a text that does not go into a request; it is not told, since it may be the token."""
    return InvalidRequest(
        "The request cannot be sent: a text in it, such as the token or a name, has a line break or a character that "
        "does not belong there"
    )
