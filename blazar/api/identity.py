"""Who is asking."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, acting in a project with roles."""

    user_id: str
    project_id: str
    roles: tuple[str, ...]


class Unauthenticated(Exception):
    """The request does not prove who is asking."""


class Identity(Protocol):
    """Tells who is asking."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller, or raise Unauthenticated."""


NO_TOKEN = "notused"
"""What keystoneauth's ``none`` plugin sends for want of a token (``--os-auth-type none``)."""

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ADDRESS = re.compile(r"(?:https?://)?(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


class StandaloneIdentity:
    """Believes what the request says, for a service that only this machine can reach.

    No token is the admin of project ``demo``; ``<user>:<project>[:<role>,…]`` is somebody else, by default with the
    roles member and reader. A web page from elsewhere is nobody, although the browser that shows it runs here.
    """

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller that the token names."""
        if not _is_local(headers.get("Host", "")) or not _is_local(headers.get("Origin", "")):
            raise Unauthenticated
        token = headers.get("X-Auth-Token")
        if not token or token == NO_TOKEN:
            return Caller("admin", "demo", ("admin", "member", "reader"))
        user, _, rest = token.partition(":")
        project, _, given = rest.partition(":")
        roles = tuple(given.split(",")) if given else ("member", "reader")
        if not all(_NAME.fullmatch(name) for name in (user, project, *roles)):
            raise Unauthenticated
        return Caller(user, project, roles)


def _is_local(address: str) -> bool:
    """Tell whether a Host or Origin header, if there is one, names this machine."""
    if not address:
        return True
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return False
    name = (match[1] or match[2]).lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
