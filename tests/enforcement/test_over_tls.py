# SPDX-License-Identifier: Apache-2.0
"""The external service over HTTPS: who is trusted, and that slow answers have an end there, too."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blazar.enforcement.external import CHECK_CREATE, ExternalServiceFilter, Patience
from blazar.model.base.errors import EnforcementUnavailable
from tests.certificates import make_certificate
from tests.enforcement.builders import asking

GRANTED = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"

Speak = Callable[[ssl.SSLSocket], None]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def hear_out(wire: ssl.SSLSocket) -> None:
    """Read a request to its end: who hangs up on one that is still coming resets the connection, answer and all."""
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += wire.recv(65536)
    head, _, body = heard.partition(b"\r\n\r\n")
    (length,) = re.findall(rb"(?i)content-length: (\d+)", head)
    while len(body) < int(length):
        body += wire.recv(65536)


@contextlib.contextmanager
def serving(certificate: tuple[Path, Path], speak: Speak) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    plain, _ = listening.accept()
                    with contextlib.suppress(OSError), context.wrap_socket(plain, server_side=True) as wire:
                        hear_out(wire)
                        speak(wire)

        threading.Thread(target=serve, daemon=True).start()
        yield f"https://127.0.0.1:{listening.getsockname()[1]}/check"


def a_filter(url: str, verify: bool | str, *, seconds: float = 9) -> ExternalServiceFilter:
    return ExternalServiceFilter({CHECK_CREATE: url}, patience=Patience(seconds, 1), verify=verify)


def grant(wire: ssl.SSLSocket) -> None:
    wire.sendall(GRANTED)


def drip(wire: ssl.SSLSocket) -> None:
    for byte in GRANTED * 9:
        wire.sendall(bytes([byte]))
        time.sleep(0.1)


def test_a_service_whose_certificate_we_know_is_heard(certificate):
    with serving(certificate, grant) as url:
        a_filter(url, str(certificate[0])).check(asking())


def test_a_service_whose_certificate_we_do_not_know_is_no_answer(certificate, caplog):
    with serving(certificate, grant) as url, pytest.raises(EnforcementUnavailable):
        a_filter(url, True).check(asking())
    assert "its certificate cannot be trusted" in caplog.text


@pytest.mark.slow
def test_an_answer_that_drips_is_not_waited_for_to_the_end(certificate):
    with serving(certificate, drip) as url:
        begun = time.monotonic()
        with pytest.raises(EnforcementUnavailable):
            a_filter(url, str(certificate[0]), seconds=0.6).check(asking())
        assert time.monotonic() - begun < 2
