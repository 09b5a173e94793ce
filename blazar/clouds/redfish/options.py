# SPDX-License-Identifier: Apache-2.0
"""The options of BMCs, and the names and passwords by which they are asked."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from oslo_config import cfg

from blazar.model.base.errors import CloudRefused, InvalidInput
from blazar.model.base.values import dataclass, field

SECTION = "redfish"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("username", default="", help="Name by which a BMC is asked that credentials_file does not have."),
    cfg.StrOpt("password", default="", secret=True, help="The password of that name."),
    cfg.StrOpt(
        "credentials_file",
        default="",
        help="File in JSON with the names and passwords of BMCs, by the name of the host: "
        '{"node-1": {"username": "blazar", "password": "…"}}. It is read again when it has changed. Only '
        "blazar-manager needs to read it.",
    ),
    cfg.BoolOpt(
        "sessions",
        default=False,
        help="Log in to a BMC once and use the session that it gives, instead of sending name and password each time.",
    ),
    cfg.ListOpt(
        "allowed_networks",
        default=[],
        help="Networks that BMCs are in, such as 10.30.0.0/16; without any, no BMC is asked, as each would be sent "
        "the password. Addresses of this machine, link-local, multicast and reserved ones, and those of the metadata "
        "services of clouds, are only asked if a network here has them. The address is checked when a connection is "
        "made.",
    ),
    cfg.BoolOpt(
        "allow_http",
        default=False,
        help="Also ask BMCs without TLS: names and passwords can be read on their way then.",
    ),
    cfg.BoolOpt(
        "insecure",
        default=False,
        help="Accept any certificate of a BMC, as those that BMCs come with. What answers in its place learns "
        "the password.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=5.0,
        min=0.5,
        max=30.0,
        help="Seconds within which a BMC must answer a request. A BMC that did not is left alone for a minute, but for "
        "switching.",
    ),
]


@dataclass(frozen=True, slots=True)
class BmcLogin:
    """The name and the password by which a BMC is asked."""

    username: str
    password: str = field(repr=False)


class CredentialsSource:
    """The credentials of BMCs by the name of the host: those of a file, or else the ``usual`` ones."""

    def __init__(self, usual: BmcLogin | None, path: Path | None) -> None:
        self._usual = usual
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[int, dict[str, BmcLogin]] = (-1, {})

    @classmethod
    def configured(cls, section: Any) -> CredentialsSource:
        """Return what the options say; InvalidInput names the option."""
        if bool(section.username) != bool(section.password):
            raise InvalidInput("[redfish] username and password go together; set both, or none")
        usual = BmcLogin(section.username, section.password) if section.username else None
        source = cls(usual, Path(section.credentials_file) if section.credentials_file else None)
        try:
            source._of_file()
        except CloudRefused as error:
            raise InvalidInput(error.message) from error
        return source

    def find(self, host: str) -> BmcLogin:
        """Return the credentials for the BMC of a host; CloudRefused if there are none, or the file cannot be read."""
        found = self._of_file().get(host) or self._usual
        if found is None:
            raise CloudRefused(
                "its BMC has no name and password in [redfish] credentials_file, or username and password"
            )
        return found

    def _of_file(self) -> dict[str, BmcLogin]:
        if self._path is None:
            return {}
        try:
            written_at = self._path.stat().st_mtime_ns
            with self._lock:
                if self._read[0] != written_at:
                    self._read = (written_at, _parse(self._path.read_text(encoding="utf-8")))
                return self._read[1]
        except OSError as error:
            raise CloudRefused(f"[redfish] credentials_file cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError):
            # Without the words of the library, which may repeat a password.
            raise CloudRefused(
                "[redfish] credentials_file is not what it should be; write it as "
                '{"HOST": {"username": "…", "password": "…"}}'
            ) from None


def _parse(text: str) -> dict[str, BmcLogin]:
    """Return the credentials of a file; ValueError."""
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return {host: _read_entry(entry) for host, entry in content.items()}


def _read_entry(entry: object) -> BmcLogin:
    match entry:
        case {"username": str(username), "password": str(password)} if username and ":" not in username:
            return BmcLogin(username, password)
    raise ValueError("no name and password")
