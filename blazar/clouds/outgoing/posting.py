# SPDX-License-Identifier: Apache-2.0
"""One POST to a receiver that is trusted as little as possible.

Each call has a connection of its own, to an address that was checked right before, and one deadline for everything:
however slowly bytes arrive, the connection is cut then. Redirects are not followed, proxies not used, little is read.
"""

from __future__ import annotations

import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from blazar import __version__
from blazar.clouds.outgoing.addresses import Allowed

MOST_BYTES = 4096
"""The limit of what is read of an answer."""

COMMON = {"Accept-Encoding": "identity", "Connection": "close", "User-Agent": f"blazar/{__version__}"}

FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What a call fails with."""


class NotAllowed(Exception):
    """The operator does not allow calls to an address."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; ``body`` is None if it is too long, or did not arrive whole."""

    status: int
    retry_after: str | None = None
    body: bytes | None = None


class Poster:
    """Makes calls to where they are allowed; ``cafile`` has the certificates to trust."""

    def __init__(self, allowed: Allowed, cafile: str | None = None) -> None:
        self._allowed = allowed
        self._cafile = cafile

    def post(self, parts: SplitResult, headers: Mapping[str, str], body: bytes, seconds: float) -> Reply:
        """Return an answer whose headers came in time; NotAllowed, FAILURES."""
        deadline = time.monotonic() + seconds
        host, port = str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80)
        raw = self._connect(host, port, deadline)
        with _shut_down_at(raw, deadline) as late, closing(self._wrap_in_tls(raw, parts.scheme, host)) as wire:
            connection = http.client.HTTPConnection(host, port)
            connection.sock = wire
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, {"Host": parts.netloc, **COMMON, **headers})
            response = connection.getresponse()
            if late.is_set():
                # The end of a connection looks like the end of the headers.
                raise TimeoutError("the answer took too long")
            text: bytes | None = None
            # The status says what was done, even if the rest is missing.
            with suppress(OSError, http.client.HTTPException, ValueError):
                text = response.read(MOST_BYTES + 1)
                if len(text) > MOST_BYTES or response.length:
                    text = None
            return Reply(response.status, response.getheader("Retry-After"), text)

    def _connect(self, host: str, port: int, deadline: float) -> socket.socket:
        """Return a connection to the first address of a host that answers, if every address of it is allowed."""
        found = _resolve_host(host, port, deadline)
        for *_, place in found:
            address = ipaddress.ip_address(str(place[0]).partition("%")[0])
            if (obstacle := self._allowed.obstacle(host, address)) is not None:
                raise NotAllowed(obstacle)
        failure: OSError = TimeoutError("no time is left")
        for family, kind, protocol, _, place in found:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            wire = socket.socket(family, kind, protocol)
            try:
                wire.settimeout(left)
                wire.connect(place)
            except OSError as error:
                wire.close()
                failure = error
                continue
            return wire
        raise failure

    def _wrap_in_tls(self, raw: socket.socket, scheme: str, host: str) -> socket.socket:
        if scheme == "http":
            return raw
        try:
            return ssl.create_default_context(cafile=self._cafile or DEFAULT_CA_BUNDLE_PATH).wrap_socket(
                raw, server_hostname=host
            )
        except BaseException:
            raw.close()
            raise


def _resolve_host(host: str, port: int, deadline: float) -> Sequence[tuple[Any, ...]]:
    """Return the addresses of a host; TimeoutError at the deadline, OSError, ValueError.

    Nothing can stop a look-up, which takes as long as the resolver's own limits say: its thread is left alone then.
    """
    looked_up: queue.SimpleQueue[Sequence[tuple[Any, ...]] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            looked_up.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:
            looked_up.put(error)

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    try:
        found = looked_up.get(timeout=max(0.0, deadline - time.monotonic()))
    except queue.Empty:
        raise TimeoutError("the address of the host was not found in time") from None
    if isinstance(found, Exception):
        raise found
    return found


@contextmanager
def _shut_down_at(raw: socket.socket, deadline: float) -> Iterator[threading.Event]:
    """Shut a connection down at the deadline, whatever is being waited for; an error after that is a TimeoutError."""
    late = threading.Event()
    # A handle of our own: TLS takes over the one that it wraps.
    handle = raw.dup()

    def cut() -> None:
        late.set()
        with suppress(OSError):
            handle.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, deadline - time.monotonic()), cut)
    timer.daemon = True
    timer.start()
    try:
        yield late
    except (OSError, http.client.HTTPException) as error:
        if late.is_set():
            raise TimeoutError("the answer took too long") from error
        raise
    finally:
        timer.cancel()
        timer.join()
        handle.close()


def describe_error(error: Exception) -> str:
    """Return what went wrong with a call, as the rest of a sentence, without the library's own words."""
    match error:
        case ssl.SSLError():
            return "has a certificate that cannot be trusted, or TLS fails"
        case TimeoutError():
            return "did not answer in time"
        case OSError():
            return "cannot be reached"
    return f"gave an answer that is not HTTP ({type(error).__name__})"
