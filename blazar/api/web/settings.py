# SPDX-License-Identifier: Apache-2.0
"""What an operator decides of the sign-in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

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
