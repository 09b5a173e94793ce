# SPDX-License-Identifier: Apache-2.0
"""Receivers of hooks for tests: real ones over HTTP, and a verifier of signatures written from the specification."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.outgoing.addresses import Allowed
from blazar.clouds.ports.hooks import HookAction, HookCall

MASTER = "m" * 40
LOOPBACK = Allowed.of((), ("127.0.0.0/8", "::1/128"), http=True)


def verified(secret: str, headers: Mapping[str, str], body: bytes, *, now: float, tolerance: float = 300.0) -> bool:
    """Verify a message by the text of Standard Webhooks 1.0.0, and with nothing of ours.

    The secret is base64 after ``whsec_``; the signed content is id, timestamp and body joined by full stops; the header
    has signatures parted by blanks, each with a version and a comma before it; one that matches is enough.
    """
    lower = {name.lower(): value for name, value in headers.items()}
    message_id, timestamp = lower["webhook-id"], lower["webhook-timestamp"]
    if abs(now - int(timestamp)) > tolerance:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    offered = [each.split(",", 1) for each in lower["webhook-signature"].split(" ")]
    return any(version == "v1" and hmac.compare_digest(text, expected) for version, text in offered)


@dataclass
class Receiver:
    """A server on 127.0.0.1 that does with each connection what ``does`` says, and keeps what it was sent."""

    does: Callable[[socket.socket], None]
    port: int = 0
    heard: list[tuple[str, Mapping[str, str], bytes]] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?key=1"

    def read(self, wire: socket.socket) -> None:
        """Read one request."""
        with wire.makefile("rb") as file:
            line = file.readline().decode().strip()
            if not line:
                raise ConnectionResetError("the caller has hung up")
            headers = {}
            while text := file.readline().decode().strip():
                name, _, value = text.partition(":")
                headers[name] = value.strip()
            self.heard.append((line, headers, file.read(int(headers["Content-Length"]))))


def _secured(wire: socket.socket, tls: ssl.SSLContext | None) -> socket.socket:
    return wire if tls is None else tls.wrap_socket(wire, server_side=True)


@contextmanager
def receiver(
    *answers: bytes | Callable[[socket.socket], None], tls: ssl.SSLContext | None = None
) -> Iterator[Receiver]:
    """Serve; the answers are given one after the other, the last one again and again."""
    listener = socket.create_server(("127.0.0.1", 0))
    left = list(answers)
    made = Receiver(lambda wire: None, listener.getsockname()[1])

    def serve() -> None:
        while True:
            try:
                wire, _ = listener.accept()
            except OSError:
                return
            made.connections += 1
            answer = left.pop(0) if len(left) > 1 else left[0]
            # Bytes of TLS are no text.
            with suppress(OSError, UnicodeDecodeError), _secured(wire, tls) as it:
                made.read(it)
                if callable(answer):
                    answer(it)
                else:
                    it.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def answer(status: int, body: object = None, **headers: str) -> bytes:
    """Return the bytes of an answer."""
    text = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(text)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + text


def silent(wire: socket.socket) -> None:
    """Answer nothing until the caller hangs up."""
    wire.recv(1)


def dripping(head: bytes, drop: bytes = b"x") -> Callable[[socket.socket], None]:
    """Return what answers a drop at a time, for ever."""

    def drip(wire: socket.socket) -> None:
        wire.sendall(head)
        while True:
            wire.sendall(drop)
            time.sleep(0.02)

    return drip


def hooks(*, timeout: float = 15.0, allowed: Allowed = LOOPBACK, masters: Any = (MASTER,), **more: Any) -> HttpHooks:
    """Return the adapter, which may call this machine."""
    return HttpHooks(masters, allowed, timeout=timeout, **more)


def a_call(url: str, action: HookAction = HookAction.START, thing_id: str = "thing-1", **data: Any) -> HookCall:
    """Return a message."""
    at = datetime(2030, 4, 1, 12, tzinfo=UTC)
    about = {"reservation_id": "r-1", "amount": 1, **data}
    return HookCall((thing_id,), url, f"r-1:{thing_id}:start:1-1", action, at, about)
