# SPDX-License-Identifier: Apache-2.0
"""Keystone tokens of the service user, for calls to other services."""

from __future__ import annotations

import requests
from keystoneauth1 import exceptions as ksa
from keystoneauth1.session import Session

from blazar.model.errors import CloudUnavailable


class ServiceUser:
    """Tokens of the service user, cached by the session until they expire."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def token(self) -> str:
        """Return a valid token; CloudUnavailable if Keystone issues none."""
        try:
            return str(self._session.get_token())
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(
                f"Keystone does not issue a token for the service user ({type(error).__name__})"
            ) from error

    def renew(self) -> None:
        """Discard the cached token."""
        self._session.invalidate()
