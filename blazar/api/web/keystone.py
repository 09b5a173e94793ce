# SPDX-License-Identifier: Apache-2.0
"""What the sign-in needs of Keystone: tokens, projects, and that tokens end."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystoneauth1.identity import v3
from keystoneauth1.session import Session

from blazar.api.web.cookies import Named
from blazar.model.base.values import dataclass

LOG = logging.getLogger(__name__)

TIMEOUT = 10.0
"""Seconds that Keystone may take to connect, and again to answer."""


class LoginRefused(Exception):
    """Keystone does not accept what it was given; it tells nobody why."""


class PasscodeNeeded(Exception):
    """The password is right, and this user also needs a one-time passcode."""

    def __init__(self, receipt: str) -> None:
        super().__init__("a one-time passcode is needed")
        self.receipt = receipt


class Unavailable(Exception):
    """Keystone does not answer."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token, whose it is, and its project with the roles there; no project if it is unscoped."""

    id: str
    user: Named
    project: Named | None
    roles: tuple[str, ...]
    expires_at: datetime


class Keystone:
    """Calls Keystone for one user after the other. Nothing of one call is kept for another.

    ``verify`` and ``cert`` are as in requests. ``address`` in each call is the user's, for Keystone's log.
    """

    def __init__(self, url: str, *, verify: bool | str = True, cert: Any = None, timeout: float = TIMEOUT) -> None:
        url = url.rstrip("/")
        self._url = url if url.endswith("/v3") else f"{url}/v3"
        self._verify = verify
        self._cert = cert
        self._timeout = timeout

    def by_password(self, user: str, domain: str, password: str, address: str) -> Token:
        """Return an unscoped token. Raises PasscodeNeeded, LoginRefused, Unavailable."""
        method = v3.PasswordMethod(username=user, user_domain_name=domain, password=password)
        return self._token(address, [method], unscoped=True)

    def by_passcode(self, receipt: str, user: str, domain: str, passcode: str, address: str) -> Token:
        """Return an unscoped token for the second step. Raises LoginRefused, Unavailable."""
        method = v3.TOTPMethod(username=user, user_domain_name=domain, passcode=passcode)
        return self._token(address, [method, v3.ReceiptMethod(receipt=receipt)], unscoped=True)

    def by_application_credential(self, id_: str, secret: str, address: str) -> Token:
        """Return a token of the credential's project. Raises LoginRefused, Unavailable."""
        method = v3.ApplicationCredentialMethod(application_credential_id=id_, application_credential_secret=secret)
        return self._token(address, [method])

    def in_project(self, token: str, project_id: str, address: str) -> Token:
        """Return a token for a project; it expires when the given one does. Raises LoginRefused, Unavailable."""
        return self._token(address, [v3.TokenMethod(token=token)], project_id=project_id)

    def projects(self, token: str, address: str) -> tuple[Named, ...]:
        """Return the enabled projects that the user of a token has a role in. Raises LoginRefused, Unavailable."""
        with _errors():
            answer = self._session(address).get(
                f"{self._url}/auth/projects", headers={"X-Auth-Token": token}, authenticated=False, log=False
            )
            found = answer.json()["projects"]
        return tuple(
            Named(one["id"], one["name"], one["domain_id"])
            for one in sorted(found, key=lambda one: (one["name"].lower(), one["id"]))
            if one.get("enabled", True)
        )

    def revoke(self, token: str, address: str) -> None:
        """End a token and those derived from it; one that is not valid has ended. Raises LoginRefused, Unavailable."""
        with _errors():
            try:
                headers = {"X-Auth-Token": token, "X-Subject-Token": token}
                self._session(address).delete(
                    f"{self._url}/auth/tokens", headers=headers, authenticated=False, log=False
                )
            except (ksa.Unauthorized, ksa.NotFound):
                return

    def _token(self, address: str, methods: Sequence[Any], **scope: Any) -> Token:
        plugin = v3.Auth(self._url, list(methods), include_catalog=False, **scope)
        with _errors():
            found = plugin.get_auth_ref(self._session(address))
        user = Named(found.user_id, found.username, found.user_domain_id, found.user_domain_name)
        project = Named(found.project_id, found.project_name, found.project_domain_id) if found.project_id else None
        return Token(found.auth_token, user, project, tuple(found.role_names), found.expires)

    def _session(self, address: str) -> Session:
        """Return a session without cookies or tokens of others."""
        original = None if address == "unknown" else address
        return Session(verify=self._verify, cert=self._cert, timeout=self._timeout, original_ip=original)


@contextmanager
def _errors() -> Iterator[None]:
    """Turn errors of the library into those of this module."""
    try:
        yield
    except ksa.MissingAuthMethods as error:
        done = set(error.methods)
        if any(set(rule) - done == {"totp"} for rule in error.required_auth_methods):
            raise PasscodeNeeded(error.receipt) from error
        LOG.warning("A sign-in needs methods that the pages do not have: %s", error.required_auth_methods)
        raise LoginRefused from error
    except ksa.HTTPClientError as error:
        raise LoginRefused from error
    except (ksa.ClientException, ValueError, KeyError) as error:
        # The texts of these errors may quote what was sent.
        LOG.error("Keystone does not answer a sign-in: %s", type(error).__name__)
        raise Unavailable from error
