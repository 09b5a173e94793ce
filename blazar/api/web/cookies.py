# SPDX-License-Identifier: Apache-2.0
"""What a browser keeps of a session: an encrypted cookie that no script can read.

There is no table of sessions. Any process with the same keys opens the cookie, and a sign-out revokes the tokens in it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from blazar.model.base.values import asdict, dataclass

NAME = "__Host-blazar"
"""With this prefix a browser takes the cookie over https only, for this host alone, and all of its paths."""

NAME_ON_LOOPBACK = "blazar-loopback"
"""The name without https, on the own machine: not every browser takes the other there."""

LONGEST = 4000
"""Bytes of a value; browsers drop cookies with more than 4 096 bytes of name and value."""

RECEIPT_SECONDS = 300
"""How long the second step of a sign-in may take: the life of a receipt in Keystone."""

_SESSION = "session-1"
_RECEIPT = "receipt-1"


@dataclass(frozen=True, slots=True)
class Named:
    """A user or a project, and the domain it belongs to; the name of the domain is known of users only."""

    id: str
    name: str
    domain_id: str
    domain: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A user who has signed in, and the project the user works in.

    ``unscoped`` is the token of the sign-in, from which those of projects are derived; None for an application
    credential, which has one project. ``csrf`` is what a page must send with each change.
    """

    user: Named
    project: Named
    roles: tuple[str, ...]
    unscoped: str | None
    scoped: str
    expires_at: datetime
    csrf: str


@dataclass(frozen=True, slots=True)
class Receipt:
    """The first step of a sign-in with two: what Keystone gave for the password, and whose it was."""

    receipt: str
    user: str
    domain: str


class Sealer:
    """Encrypts with the first key, decrypts with any: keys can be replaced without signing everybody out."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise ValueError if one is no key."""
        self._fernet = MultiFernet([Fernet(key) for key in keys])

    def seal(self, session: Session) -> str:
        """Return the value of the cookie."""
        return self._encrypt(_SESSION, {**asdict(session), "expires_at": session.expires_at.timestamp()})

    def open(self, value: str, now: datetime) -> Session | None:
        """Return the session of a cookie; None if it is none of ours, or has expired."""
        if (found := self._decrypt(_SESSION, value)) is None:
            return None
        expires_at = datetime.fromtimestamp(found.pop("expires_at"), UTC)
        if expires_at <= now:
            return None
        user, project = Named(**found.pop("user")), Named(**found.pop("project"))
        roles = tuple(found.pop("roles"))
        return Session(user=user, project=project, roles=roles, expires_at=expires_at, **found)

    def seal_receipt(self, receipt: Receipt) -> str:
        """Return a receipt that a page may keep for the second step."""
        return self._encrypt(_RECEIPT, asdict(receipt))

    def open_receipt(self, value: str) -> Receipt | None:
        """Return a receipt; None if it is none of ours, or too old."""
        found = self._decrypt(_RECEIPT, value, RECEIPT_SECONDS)
        return None if found is None else Receipt(**found)

    def _encrypt(self, kind: str, content: dict[str, Any]) -> str:
        text = json.dumps({"v": kind, **content}, ensure_ascii=False, separators=(",", ":"))
        return self._fernet.encrypt(text.encode()).decode()

    def _decrypt(self, kind: str, value: str, seconds: int | None = None) -> dict[str, Any] | None:
        """Return what was encrypted as this kind: a receipt is never taken for a session."""
        try:
            content: dict[str, Any] = json.loads(self._fernet.decrypt(value.encode(), ttl=seconds))
        except (InvalidToken, UnicodeEncodeError):
            return None
        return content if content.pop("v", None) == kind else None


def read(header: str, name: str) -> str | None:
    """Return the value of a cookie in a request's header; None if there is none."""
    # Parsers of libraries give up, or fail, at the first cookie of another service of this host that they do not like.
    for part in header.split(";"):
        given, _, value = part.strip().partition("=")
        if given == name:
            return value
    return None


def header(name: str, value: str) -> str:
    """Return the ``Set-Cookie`` that keeps a value until the browser closes; an empty value removes the cookie."""
    secure = "" if name == NAME_ON_LOOPBACK else "; Secure"
    ended = "" if value else "; Max-Age=0"
    return f"{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{ended}"
