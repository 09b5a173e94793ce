# SPDX-License-Identifier: Apache-2.0
"""Authentication: who sends a request."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any, Protocol

from blazar.model.base.errors import CloudUnavailable
from blazar.model.base.values import dataclass, field


@dataclass(frozen=True, slots=True)
class Caller:
    """A user with roles in a project.

    ``credentials`` are further credentials that policy rules may use, for example the scope of the token.
    ``project_name`` is None if it is not known.
    """

    user_id: str
    project_id: str
    roles: tuple[str, ...]
    credentials: Mapping[str, Any] = field(default_factory=dict)
    project_name: str | None = None


class Unauthenticated(Exception):
    """The request has no valid credentials."""


class Identity(Protocol):
    """Authenticates requests."""

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller; raise Unauthenticated, or CloudUnavailable if the token cannot be validated now."""


STATUS = "X-Identity-Status"
UNKNOWN = "Unknown"
"""The status that ``KeystoneGuard`` sets for a token that Keystone could not validate."""


class KeystoneIdentity:
    """Trusts Keystone's middleware, which validates the token and sets identity headers.

    The middleware removes these headers from every request before it sets them, so clients cannot forge them.
    """

    def authenticate(self, headers: Mapping[str, str]) -> Caller:
        """Return the caller that the identity headers describe."""
        status = headers.get(STATUS)
        if status == UNKNOWN:
            sentence = "Keystone cannot validate the token at the moment; please retry later"
            raise CloudUnavailable(sentence, code="identity_unavailable", public=sentence)
        if status != "Confirmed":
            raise Unauthenticated
        roles = tuple(role.strip().lower() for role in headers.get("X-Roles", "").split(",") if role.strip())
        credentials = {
            "domain_id": headers.get("X-Domain-Id"),
            "user_domain_id": headers.get("X-User-Domain-Id"),
            "project_domain_id": headers.get("X-Project-Domain-Id"),
            "system_scope": headers.get("Openstack-System-Scope"),
            "is_admin_project": headers.get("X-Is-Admin-Project", "True").lower() == "true",
        }
        known = {name: value for name, value in credentials.items() if value is not None}
        ids = headers.get("X-User-Id", ""), headers.get("X-Project-Id", "")
        return Caller(*ids, roles, known, headers.get("X-Project-Name"))


NO_TOKEN = "notused"
"""The token that keystoneauth's ``none`` plugin sends (``--os-auth-type none``)."""

_NAME = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_ADDRESS = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::\d{1,5})?", re.ASCII | re.IGNORECASE)


_IMPLIED = {"admin": ("member", "reader"), "member": ("reader",)}
"""The roles that a role implies, as in Keystone."""

_OWN_SITE = ("", "same-origin", "none")
"""Values of ``Sec-Fetch-Site`` of requests that no other site has made; programs send no such header."""


class StandaloneIdentity:
    """Trusts the token as sent, for a service that only this machine can reach.

    Without a token the caller is the admin of project ``demo``; the token ``<user>:<project>[:<role>,…]`` names another
    caller, by default with the roles member and reader. Requests from web pages of any other site are rejected, even if
    another program on this machine serves the page: the browser runs here, but the page is not trusted.
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
    """Return whether a request comes from a program on this machine or from a page of this service."""
    host, origin = headers.get("Host", ""), headers.get("Origin", "")
    if not _is_local(host) or headers.get("Sec-Fetch-Site", "").lower() not in _OWN_SITE:
        return False
    return not origin or (bool(host) and origin.lower() == f"http://{host}".lower())


def _is_local(address: str) -> bool:
    """Return whether a Host header names this machine; True if it is empty."""
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
