# SPDX-License-Identifier: Apache-2.0
"""Calls to receivers that are trusted as little as possible.

A connection leads to an address that was checked right before it was made, and carries one call, or several one after
the other. Each call has one deadline for everything: however slowly bytes arrive, the connection is cut then.
Redirects are not followed, proxies not used, little is read.
"""

from __future__ import annotations

import http.client
import ipaddress
import queue
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

from requests.utils import DEFAULT_CA_BUNDLE_PATH

from blazar import __version__
from blazar.clouds.outgoing.addresses import Allowed
from blazar.clouds.outgoing.deadlines import shut_down_at
from blazar.model.base.values import dataclass, field, replace

MOST_BYTES = 4096
"""The limit of what is read of an answer."""

COMMON = {"Accept-Encoding": "identity", "User-Agent": f"blazar/{__version__}"}

FAILURES = (OSError, http.client.HTTPException, ValueError)
"""What a call fails with."""

CLOSED = (ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""What a call fails with by a connection that the other side has closed since the last one."""


class NotAllowed(Exception):
    """The operator does not allow calls to an address."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; ``body`` is None if it is too long, or did not arrive whole."""

    status: int
    retry_after: str | None = None
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict, compare=False)
    """By names in small letters."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What is sent; ``most`` is the limit of what is read of its answer, in bytes."""

    method: str
    parts: SplitResult
    headers: Mapping[str, str]
    body: bytes = b""
    most: int = MOST_BYTES

    @property
    def target(self) -> Target:
        """Where its connection leads."""
        parts = self.parts
        return Target(parts.scheme, str(parts.hostname), parts.port or (443 if parts.scheme == "https" else 80))

    @property
    def path(self) -> str:
        """What it asks for."""
        return (self.parts.path or "/") + (f"?{self.parts.query}" if self.parts.query else "")


class Poster:
    """Makes calls to where they are allowed; ``cafile`` has the certificates to trust. Unless ``verify``: any."""

    def __init__(self, allowed: Allowed, cafile: str | None = None, *, verify: bool = True) -> None:
        self._allowed = allowed
        self._cafile = cafile
        self._verify = verify

    def post(self, parts: SplitResult, headers: Mapping[str, str], body: bytes, seconds: float) -> Reply:
        """Return an answer whose headers came in time, by a connection for this call alone; NotAllowed, FAILURES."""
        return self.send(HttpRequest("POST", parts, headers, body), seconds)

    def send(self, request: HttpRequest, seconds: float) -> Reply:
        """Return an answer whose headers came in time, by a connection for this call alone; NotAllowed, FAILURES.

        It is sent once at most.
        """
        with closing(self.open_line()) as line:
            return line.send(replace(request, headers={"Connection": "close", **request.headers}), seconds)

    def open_line(self) -> Line:
        """Return what makes calls one after the other, if it can by one connection; to be closed."""
        return Line(self._connect)

    def _connect(self, target: Target, deadline: float) -> Connected:
        """Return a connection to the first address of a host that answers, if every address of it is allowed."""
        found = resolve_host(target.host, target.port, deadline)
        for *_, place in found:
            address = ipaddress.ip_address(str(place[0]).partition("%")[0])
            if (obstacle := self._allowed.obstacle(target.host, address)) is not None:
                raise NotAllowed(obstacle)
        return self._wrap_in_tls(connect_first(found, deadline), target, deadline)

    def _wrap_in_tls(self, raw: socket.socket, target: Target, deadline: float) -> Connected:
        # A handle of our own: TLS takes over the one that it wraps.
        handle = raw.dup()
        if target.scheme == "http":
            return Connected(target, raw, handle)
        try:
            with shut_down_at(handle, deadline):
                trust = _trust(self._cafile or DEFAULT_CA_BUNDLE_PATH) if self._verify else _trust_all()
                wire = trust.wrap_socket(raw, server_hostname=target.host)
        except BaseException:
            raw.close()
            handle.close()
            raise
        return Connected(target, wire, handle)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a connection leads."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection, and a second handle of it by which it can be shut down."""

    target: Target
    wire: socket.socket
    handle: socket.socket

    def is_quiet(self) -> bool:
        """Return whether it is open, and nothing has come that nobody has asked for."""
        self.wire.settimeout(0)
        try:
            self.wire.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close it."""
        self.wire.close()
        self.handle.close()


class Line:
    """Makes calls to a host one after the other, by one connection as long as the host keeps it open.

    The address is checked whenever a connection is made, also when one that was closed is made again.
    """

    def __init__(self, connect: Callable[[Target, float], Connected]) -> None:
        self._connect = connect
        self._kept: Connected | None = None

    def post(self, parts: SplitResult, headers: Mapping[str, str], body: bytes, seconds: float) -> Reply:
        """Return an answer whose headers came in time; NotAllowed, FAILURES."""
        return self.send(HttpRequest("POST", parts, headers, body), seconds)

    def send(self, request: HttpRequest, seconds: float) -> Reply:
        """Return an answer whose headers came in time; NotAllowed, FAILURES."""
        deadline = time.monotonic() + seconds
        target = request.target
        if self._kept is not None and (self._kept.target != target or not self._kept.is_quiet()):
            self.close()
        if self._kept is not None:
            # The host may have closed it meanwhile. If it has read the message, that comes twice, with one id.
            with suppress(*CLOSED):
                return self._exchange(self._kept, request, deadline)
        self._kept = self._connect(target, deadline)
        return self._exchange(self._kept, request, deadline)

    def close(self) -> None:
        """Close the connection, if there is one."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()

    def _exchange(self, kept: Connected, request: HttpRequest, deadline: float) -> Reply:
        """Send a message by a connection, and read the answer; close it unless it can be used once more."""
        whole = False
        try:
            kept.wire.settimeout(max(0.01, deadline - time.monotonic()))
            with shut_down_at(kept.handle, deadline) as cut:
                connection = http.client.HTTPConnection(kept.target.host, kept.target.port)
                # Nobody but us connects: the address must have been checked.
                connection.auto_open = 0
                connection.sock = kept.wire
                headers = {"Host": request.parts.netloc, **COMMON, **request.headers}
                connection.request(request.method, request.path, request.body or None, headers)
                response = connection.getresponse()
                if cut.late:
                    # The end of a connection looks like the end of the headers.
                    raise TimeoutError("the answer took too long")
                text: bytes | None = None
                # The status says what was done, even if the rest is missing.
                with suppress(OSError, http.client.HTTPException, ValueError):
                    text = response.read(request.most + 1)
                    if len(text) > request.most or response.length:
                        text = None
                whole = text is not None and response.isclosed() and not response.will_close and not cut.late
                got = {name.lower(): value for name, value in response.getheaders()}
                return Reply(response.status, response.getheader("Retry-After"), text, got)
        finally:
            if not whole:
                self.close()


def _trust(cafile: str) -> ssl.SSLContext:
    """Return what trusts the certificates of a file as it is now."""
    return _read_trusted(cafile, Path(cafile).stat().st_mtime_ns)


@lru_cache(maxsize=1)
def _trust_all() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@lru_cache(maxsize=4)
def _read_trusted(cafile: str, written_at: int) -> ssl.SSLContext:
    # Reading a hundred certificates takes longer than a call.
    return ssl.create_default_context(cafile=cafile)


def resolve_host(host: str, port: int, deadline: float) -> Sequence[tuple[Any, ...]]:
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


def connect_first(found: Sequence[tuple[Any, ...]], deadline: float) -> socket.socket:
    """Return a connection to the first of some addresses that answers; OSError, which may be a TimeoutError."""
    failure: OSError = TimeoutError("no time is left")
    for family, kind, protocol, _, place in found:
        left = deadline - time.monotonic()
        if left <= 0:
            break
        wire = socket.socket(family, kind, protocol)
        try:
            wire.settimeout(left)
            wire.connect(place)
            # So that the end of a message does not wait until its begin was acknowledged.
            wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            wire.close()
            failure = error
            continue
        return wire
    raise failure


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
