# SPDX-License-Identifier: Apache-2.0
"""Make sessions of what users give: at Keystone, with limits on attempts, as the operator has decided."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from blazar.api.web import bodies
from blazar.api.web.answers import PageRefusal
from blazar.api.web.attempts import Attempts
from blazar.api.web.cookies import Named, Receipt, Sealer, Session
from blazar.api.web.keystone import Keystone, LoginRefused, PasscodeNeeded, Token, Unavailable
from blazar.model.base.values import dataclass, replace

METHODS = ("password", "application_credential", "token")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """``keys`` are Fernet keys, ``methods`` some of ``METHODS``, ``domains`` those that a user chooses from.

    ``public_url`` is where browsers reach the service, None to believe requests; ``proxies`` the number of proxies
    that add to ``X-Forwarded-For``.
    """

    keys: tuple[str, ...]
    methods: tuple[str, ...] = METHODS[:2]
    domains: tuple[str, ...] = ()
    public_url: str | None = None
    proxies: int = 0


@dataclass(frozen=True, slots=True)
class Clocks:
    """The time of day, aware, and a clock in seconds that never goes back."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]


LOG = logging.getLogger(__name__)


class SigningIn:
    """Signs in, switches projects and signs out; holds no session itself."""

    def __init__(self, keystone: Keystone, sealer: Sealer, settings: SessionSettings, attempts: Attempts) -> None:
        self._keystone = keystone
        self._sealer = sealer
        self._settings = settings
        self._attempts = attempts

    def sign_in(self, asked: bodies.SignIn, address: str) -> tuple[Session, tuple[Named, ...]]:
        """Return a new session and the user's projects; PageRefusal, in one sentence, if Keystone refuses."""
        if asked.method not in self._settings.methods and not isinstance(asked, bodies.ByPasscode):
            raise PageRefusal(403, "method_disabled", f"This service does not let users sign in by {asked.method}.")
        if isinstance(asked, bodies.ByPasscode):
            return self._by_passcode(asked, address)
        try:
            with self._attempts.attempt(address, _name(asked)):
                return self._at_keystone(asked, address)
        except LoginRefused:
            raise _refusal(asked.method, address) from None
        except Unavailable:
            raise _unavailable() from None

    def projects(self, session: Session, address: str) -> tuple[Named, ...]:
        """Return the projects that a session may switch to, its own among them; PageRefusal if it is over."""
        if session.unscoped is None:
            return (session.project,)
        try:
            return self._keystone.projects(session.unscoped, address)
        except LoginRefused:
            raise signed_out() from None
        except Unavailable:
            raise _unavailable() from None

    def switch(self, session: Session, project_id: str, address: str) -> tuple[Session, tuple[Named, ...]]:
        """Return the session in another project; PageRefusal if the user has no role there."""
        if session.unscoped is None:
            raise PageRefusal(
                409, "cannot_switch", "An application credential belongs to one project; sign in otherwise."
            )
        projects = self.projects(session, address)
        if project_id not in {project.id for project in projects}:
            raise PageRefusal(403, "no_such_project", "You have no role in this project, or it does not exist.")
        try:
            token = self._keystone.in_project(session.unscoped, project_id, address)
        except LoginRefused:
            raise signed_out() from None
        except Unavailable:
            raise _unavailable() from None
        return replace(_session(token, session.unscoped), csrf=session.csrf), projects

    def sign_out(self, session: Session, address: str) -> bool:
        """Revoke all tokens of a session; return whether Keystone has done it."""
        try:
            self._keystone.revoke(session.unscoped or session.scoped, address)
        except (LoginRefused, Unavailable):
            return False
        return True

    def _by_passcode(self, asked: bodies.ByPasscode, address: str) -> tuple[Session, tuple[Named, ...]]:
        first = self._sealer.open_receipt(asked.receipt.get_secret_value())
        if first is None:
            raise PageRefusal(401, "receipt_expired", "The first step was too long ago; enter name and password again.")
        try:
            with self._attempts.attempt(address, _key(first.domain, first.user)):
                passcode = asked.passcode.get_secret_value()
                token = self._keystone.by_passcode(first.receipt, first.user, first.domain, passcode, address)
                return self._in_a_project(token, asked.project, address)
        except (LoginRefused, PasscodeNeeded):
            raise _refusal(asked.method, address) from None
        except Unavailable:
            raise _unavailable() from None

    def _at_keystone(
        self, asked: bodies.ByPassword | bodies.ByApplicationCredential | bodies.ByToken, address: str
    ) -> tuple[Session, tuple[Named, ...]]:
        if isinstance(asked, bodies.ByApplicationCredential):
            token = self._keystone.by_application_credential(asked.id, asked.secret.get_secret_value(), address)
            session = _session(token, None)
            return session, (session.project,)
        if isinstance(asked, bodies.ByToken):
            return self._of_token(asked.token.get_secret_value(), asked.project, address)
        try:
            token = self._keystone.by_password(asked.user, asked.domain, asked.password.get_secret_value(), address)
        except PasscodeNeeded as needed:
            receipt = self._sealer.seal_receipt(Receipt(needed.receipt, asked.user, asked.domain))
            raise PageRefusal(401, "totp", "Enter the one-time passcode as well.", receipt=receipt) from None
        return self._in_a_project(token, asked.project, address)

    def _in_a_project(self, token: Token, wished: str | None, address: str) -> tuple[Session, tuple[Named, ...]]:
        """Return a session in the wished project, or in the first; the token ends if there is none."""
        try:
            return self._of_token(token.id, wished, address)
        except BaseException:
            with suppress(LoginRefused, Unavailable):
                self._keystone.revoke(token.id, address)
            raise

    def _of_token(self, token: str, wished: str | None, address: str) -> tuple[Session, tuple[Named, ...]]:
        projects = self._keystone.projects(token, address)
        if not projects:
            raise PageRefusal(403, "no_project", "You have no role in any project; ask the operator for one.")
        ids = [project.id for project in projects]
        scoped = self._keystone.in_project(token, wished if wished in ids else ids[0], address)
        return _session(scoped, token), projects


def signed_out() -> PageRefusal:
    """Return the refusal of a session that is over."""
    return PageRefusal(401, "signed_out", "You are not signed in, or your session is over; sign in.")


def _session(token: Token, unscoped: str | None) -> Session:
    """Return a session with a token of a project; LoginRefused if it has none, such as a token for a whole domain."""
    if token.project is None:
        raise LoginRefused
    return Session(
        user=token.user,
        project=token.project,
        roles=token.roles,
        unscoped=unscoped,
        scoped=token.id,
        expires_at=token.expires_at,
        csrf=secrets.token_urlsafe(32),
    )


def _name(asked: bodies.ByPassword | bodies.ByApplicationCredential | bodies.ByToken) -> str | None:
    """Return whose secret is tried, None if that is not known."""
    if isinstance(asked, bodies.ByToken):
        return None
    return _key(asked.domain, asked.user) if isinstance(asked, bodies.ByPassword) else f"credential {asked.id}"


def _key(domain: str, user: str) -> str:
    # Keystone compares names without regard to case on some databases.
    return f"{domain.casefold()}\n{user.casefold()}"


def _refusal(method: str, address: str) -> PageRefusal:
    # Without the name: people sometimes type their password there.
    LOG.info("A sign-in by %s from %s was refused", method, address)
    return PageRefusal(401, "refused", "Keystone does not accept this; check what you entered, and try again.")


def _unavailable() -> PageRefusal:
    detail = "Keystone does not answer at the moment; try again in a few seconds."
    return PageRefusal(503, "identity_unavailable", detail, retry_after=5)
