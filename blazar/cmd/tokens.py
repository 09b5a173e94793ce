# SPDX-License-Identifier: Apache-2.0
"""The manager's own way of proving to other services who it is."""

from __future__ import annotations

import requests
from keystoneauth1 import exceptions as ksa
from keystoneauth1.session import Session

from blazar.model.errors import CloudUnavailable


class ServiceUser:
    """Tokens of the service user, kept by the session until they run out."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def token(self) -> str:
        """Return a token that is good. CloudUnavailable."""
        try:
            return str(self._session.get_token())
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"Keystone gives the service user no token ({type(error).__name__})") from error

    def renew(self) -> None:
        """Forget the token."""
        self._session.invalidate()
