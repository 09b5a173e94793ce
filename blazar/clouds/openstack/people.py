# SPDX-License-Identifier: Apache-2.0
"""What Keystone knows of users: their e-mail addresses, each remembered for an hour."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from email.errors import MessageError
from email.headerregistry import Address
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystoneauth1.session import Session

from blazar.clouds.openstack.service import brief
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudRefused, CloudUnavailable

REMEMBERED_SECONDS = 3600.0
MOST_REMEMBERED = 10_000

SECONDS = 10.0
"""The time limit of a request."""

_USER_ID = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


class KeystonePeople:
    """Implements the port of people with a session of the service user, who needs to be allowed to read users."""

    def __init__(self, session: Session, *, clock: Callable[[], float] = monotonic, **filters: Any) -> None:
        self._session = session
        self._clock = clock
        self._filter = {"service_type": "identity", **filters}
        self._known: dict[str, tuple[float, str | None]] = {}
        self._lock = threading.Lock()

    def find_address(self, user_id: str) -> str | None:
        """Return the e-mail address of a user, as it was in the last hour; None."""
        if not _USER_ID.fullmatch(user_id):
            return None
        with self._lock:
            known = self._known.get(user_id)
        if known is not None and self._clock() - known[0] < REMEMBERED_SECONDS:
            return known[1]
        address = self._ask(user_id)
        with self._lock:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[user_id] = (self._clock(), address)
        return address

    def _ask(self, user_id: str) -> str | None:
        try:
            answer = self._session.get(
                f"/v3/users/{user_id}",
                endpoint_filter=self._filter,
                headers={"Accept": "application/json"},
                timeout=SECONDS,
                # The catalog has the URL with the version, or without.
                endpoint_override=self._endpoint(),
            )
        except ksa.NotFound:
            return None
        except (ksa.Forbidden, ksa.Unauthorized) as error:
            raise CloudRefused(f"the service user may not read users of Keystone: {brief(error)}") from error
        except ksa.ClientException as error:
            raise CloudUnavailable(f"Keystone cannot be asked for a user: {brief(error)}") from error
        try:
            address = answer.json()["user"].get("email")
        except (ValueError, KeyError, AttributeError) as error:
            raise CloudUnavailable("Keystone gave an answer about a user that cannot be read") from error
        return address if isinstance(address, str) and _is_address(address) else None

    def _endpoint(self) -> str:
        url = str(self._session.get_endpoint(**self._filter) or "")
        return re.sub(r"/v3/?$", "", url.rstrip("/"))


def _is_address(text: str) -> bool:
    """Return whether a text can be an address to which mail is sent: one, and nothing that begins a header."""
    if not text.isascii() or re.fullmatch(r"[^\s<>,;:\"()\\@]{1,64}@[^\s<>,;:\"()\\@]{1,255}", text) is None:
        return False
    try:
        Address(addr_spec=text)
    except (ValueError, LookupError, MessageError):
        # It has two dots in a row, or anything else of which no header can be made.
        return False
    return True
