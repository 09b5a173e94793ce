# SPDX-License-Identifier: Apache-2.0
"""Calls to services that are no part of the cloud and that an operator names by URL: one deadline, and safe URLs.

Redirects are not followed, cookies not kept, and messages have nothing of a URL, in which there may be a secret.

An answer has a total deadline, however slowly its bytes arrive. The time limits of the libraries are per
read of a socket, so that a slow peer could hold a thread indefinitely.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import Enum, auto
from http.cookiejar import DefaultCookiePolicy
from typing import Any
from urllib.parse import urlsplit

import requests
import urllib3
from requests.adapters import DEFAULT_POOLSIZE, HTTPAdapter
from requests.auth import AuthBase
from urllib3 import HTTPConnectionPool, HTTPResponse, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from blazar import __version__
from blazar.model.base.errors import InvalidInput


@contextmanager
def _cut_after(connection: HTTPConnection) -> Iterator[None]:
    """Shut the socket down if the block exceeds the connection's time limit: a blocked reader wakes up."""
    wire, limit = connection.sock, connection.timeout
    late = threading.Event()

    def cut() -> None:
        late.set()
        # Not with the socket's own method: with TLS it would try to say goodbye, and wait for an answer.
        with suppress(OSError):
            socket.socket.shutdown(wire, socket.SHUT_RDWR)

    if wire is None or not isinstance(limit, int | float):
        yield
        return
    timer = threading.Timer(limit, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
    if late.is_set():
        # A truncated answer looks complete if enough of it has arrived.
        raise TimeoutError("the answer took too long")


class _PunctualConnection(HTTPConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as the library has it itself
        """Return status and headers, in time."""
        with _cut_after(self):
            return super().getresponse()


class _PunctualTlsConnection(HTTPSConnection):
    def getresponse(self) -> HTTPResponse:  # type: ignore[override]  # as the library has it itself
        """Return status and headers, in time."""
        with _cut_after(self):
            return super().getresponse()


class _Pool(HTTPConnectionPool):
    ConnectionCls = _PunctualConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _PunctualTlsConnection


class _PunctualAdapter(HTTPAdapter):
    """Limits the time for the headers of an answer to that of its request. The reader of a body limits that itself."""

    def init_poolmanager(self, *arguments: Any, **named: Any) -> None:
        """Use our connection classes."""
        super().init_poolmanager(*arguments, **named)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}


HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": f"blazar/{__version__}"}

FAILURES = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)
"""What a call, or the reading of its answer, fails with."""


class OutgoingCalls:
    """Makes calls with connections of its own, of which it keeps some open."""

    def __init__(self, *, verify: bool | str, connections: int = DEFAULT_POOLSIZE) -> None:
        self.verify = verify
        self._session = requests.Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, _PunctualAdapter(pool_maxsize=connections))

    def post(
        self, url: str, data: Any, *, auth: AuthBase, seconds: float, headers: Mapping[str, str] | None = None
    ) -> requests.Response:
        """Return an answer whose headers came in time, to be read with ``read_body`` and closed. FAILURES.

        With ``auth`` the library does not look for a password in ``.netrc``.
        """
        return self._session.post(
            url,
            data=data,
            headers=HEADERS | dict(headers or {}),
            auth=auth,
            timeout=seconds,
            allow_redirects=False,
            stream=True,
            verify=self.verify,
        )


def describe_failure(error: Exception, service: str = "it") -> str:
    """Return why a service gave no answer, without the library's own words."""
    match error:
        case requests.exceptions.SSLError():
            return f"{service} cannot be asked: its certificate cannot be trusted, or TLS fails"
        case requests.exceptions.Timeout() | urllib3.exceptions.TimeoutError() | TimeoutError():
            return f"{service} did not answer in time"
        case requests.exceptions.ConnectionError():
            return f"{service} cannot be reached"
    return f"the connection to {service} broke ({type(error).__name__})"


def check_url(url: str, option: str, *, example: str, credentials: str, secret: str | None = None) -> None:
    """Raise InvalidInput if a URL cannot be called, or if calls to it would give a secret away.

    ``option`` is its option with the section, ``credentials`` the options that are for names and passwords, and
    ``secret`` the one of them that is set.
    """
    # The URL itself is not shown: there may be a password in it.
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(f"{option} is not a URL of a service; write it as {example}")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(f"{option} contains a name or password; remove it, and set {credentials}")
    if secret and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise InvalidInput(
            f"{option} is an http:// URL of another machine, and {secret} would be sent to it unencrypted; give an "
            "https:// URL, or one on loopback"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class Cut(Enum):
    """Why a body was not read to its end."""

    TOO_LONG = auto()
    TOO_LATE = auto()


def read_body(response: requests.Response, *, most: int, end: float) -> tuple[bytes, Cut | None]:
    """Return a body as far as it was read, as it was sent, and why no further; None if that is all of it.

    It is read while it has no more than ``most`` bytes, and until ``end`` (``time.monotonic``).
    """
    body = b""
    while part := response.raw.read1(8192, decode_content=False):
        body += part
        if len(body) > most:
            return body, Cut.TOO_LONG
        if time.monotonic() > end:
            return body, Cut.TOO_LATE
    return body, None
