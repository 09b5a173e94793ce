# SPDX-License-Identifier: Apache-2.0
"""The external service over HTTPS: who is trusted, and that slow answers have an end there, too."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from blazar.enforcement.external import CHECK_CREATE, ExternalServiceFilter, Patience
from blazar.model.errors import EnforcementUnavailable
from tests.enforcement.builders import asking

GRANTED = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"

Speak = Callable[[ssl.SSLSocket], None]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that vouches for itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / "certificate.pem", folder / "key.pem"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return paths


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


def test_an_answer_that_drips_is_not_waited_for_to_the_end(certificate):
    with serving(certificate, drip) as url:
        begun = time.monotonic()
        with pytest.raises(EnforcementUnavailable):
            a_filter(url, str(certificate[0]), seconds=0.6).check(asking())
        assert time.monotonic() - begun < 2
