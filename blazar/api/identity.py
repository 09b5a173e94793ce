# SPDX-License-Identifier: Apache-2.0
"""Who is asking."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from blazar.model.errors import CloudUnavailable


@dataclass(frozen=True, slots=True)
class Caller:
    """A user, acting in a project with roles.

    ``facts`` are further words about the caller that rules of the policy may ask for, as the scope of the token.
    """

    user_id: str
    project_id: str
    roles: tuple[str, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Unauthenticated(Exception):
    """The request does not prove who is asking."""


class Identity(Protocol):
    """Tells who is asking."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller, or raise Unauthenticated; CloudUnavailable if nobody can tell at the moment."""


STATUS = "X-Identity-Status"
UNKNOWN = "Unknown"
"""What our own guard says of a token if Keystone does not answer."""


class KeystoneIdentity:
    """Believes Keystone's middleware, which checks the token and says in headers of its own whose it is.

    The middleware takes these headers out of every request before it sets them.
    """

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return whom the token belongs to."""
        status = headers.get(STATUS)
        if status == UNKNOWN:
            raise CloudUnavailable("Keystone can not be asked about the token at the moment; please try again")
        if status != "Confirmed":
            raise Unauthenticated
        roles = tuple(role.strip().lower() for role in headers.get("X-Roles", "").split(",") if role.strip())
        facts = {
            "domain_id": headers.get("X-Domain-Id"),
            "user_domain_id": headers.get("X-User-Domain-Id"),
            "project_domain_id": headers.get("X-Project-Domain-Id"),
            "system_scope": headers.get("Openstack-System-Scope"),
            "is_admin_project": headers.get("X-Is-Admin-Project", "True").lower() == "true",
        }
        known = {name: value for name, value in facts.items() if value is not None}
        return Caller(headers.get("X-User-Id", ""), headers.get("X-Project-Id", ""), roles, known)


NO_TOKEN = "notused"
"""What keystoneauth's ``none`` plugin sends for want of a token (``--os-auth-type none``)."""

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ADDRESS = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


_IMPLIED = {"admin": ("member", "reader"), "member": ("reader",)}
"""Which roles have which others with them, as Keystone makes them."""

_OWN_SITE = ("", "same-origin", "none")
"""What a browser says of a request (``Sec-Fetch-Site``) that no other page has made; programs say nothing."""


class StandaloneIdentity:
    """Believes what the request says, for a service that only this machine can reach.

    No token is the admin of project ``demo``; ``<user>:<project>[:<role>,…]`` is somebody else, by default with the
    roles member and reader. A web page that this service has not served itself is nobody, although the browser that
    shows it runs here, and also if another program of this machine has served it.
    """

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller that the token names."""
        if not _is_own(headers):
            raise Unauthenticated
        token = headers.get("X-Auth-Token")
        if not token or token == NO_TOKEN:
            return Caller("admin", "demo", ("admin", *_IMPLIED["admin"]))
        user, _, rest = token.partition(":")
        project, _, given = rest.partition(":")
        roles = tuple(given.split(",")) if given else ("member", "reader")
        if not all(_NAME.fullmatch(name) for name in (user, project, *roles)):
            raise Unauthenticated
        implied = (other for role in roles for other in _IMPLIED.get(role.lower(), ()))
        return Caller(user, project, tuple(dict.fromkeys((*roles, *implied))))


def _is_own(headers: Mapping[str, str]) -> bool:
    """Tell whether a request is from a program of this machine, or from a page of this very service."""
    host, origin = headers.get("Host", ""), headers.get("Origin", "")
    if not _is_local(host) or headers.get("Sec-Fetch-Site", "").lower() not in _OWN_SITE:
        return False
    return not origin or (bool(host) and origin.lower() == f"http://{host}".lower())


def _is_local(address: str) -> bool:
    """Tell whether a Host header, if there is one, names this machine."""
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
