# SPDX-License-Identifier: Apache-2.0
"""Requests to a BMC: one attempt each, with one deadline, to an address that was checked, and no redirect followed."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from blazar.clouds.outgoing.posting import FAILURES, HttpRequest, NotAllowed, Poster, Reply, describe_error
from blazar.clouds.redfish.options import BmcLogin
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudRefused, CloudUnavailable
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.observe.cloud_calls import count_cloud_call

MOST_BYTES = 256 * 1024
"""The limit of an answer: large machines tell some ten kilobytes of themselves."""

SESSIONS = "/redfish/v1/SessionService/Sessions"
MOST_SAID = 200
HIDDEN = "***"


class BmcSilent(CloudUnavailable):
    """A BMC gave no answer at all."""


@dataclass(frozen=True, slots=True)
class Bmc:
    """A BMC by the URL of a resource of its own, and how to log in."""

    parts: SplitResult
    credentials: BmcLogin

    @property
    def origin(self) -> str:
        """What its sessions are kept by."""
        return f"{self.parts.scheme}://{self.parts.netloc}"


class RedfishClient:
    """Asks BMCs. With ``sessions`` each is logged in to once, else name and password are sent each time."""

    def __init__(self, poster: Poster, *, timeout: float, sessions: bool) -> None:
        self._poster = poster
        self.timeout = timeout
        self._sessions = sessions
        self._tokens: dict[tuple[str, str], str] = {}
        self._lock = threading.Lock()

    def get(self, bmc: Bmc, path: str, seconds: float) -> Json:
        """Return the resource at a path of a BMC. CloudUnavailable, CloudRefused."""
        reply = self._call(bmc, "GET", path, None, seconds)
        try:
            content = json.loads(reply.body or b"")
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise CloudUnavailable("its BMC gave an answer that is not a JSON object, or too long")
        return content

    def post(self, bmc: Bmc, path: str, body: Json, seconds: float) -> None:
        """Call an action of a BMC, once. CloudUnavailable, CloudRefused."""
        self._call(bmc, "POST", path, body, seconds)

    def _call(self, bmc: Bmc, method: str, path: str, body: Json | None, seconds: float) -> Reply:
        deadline = monotonic() + seconds
        reply = self._send(bmc, method, path, body, self._authorize(bmc, deadline), deadline)
        if reply.status == 401 and self._sessions:
            # The session is over. Nothing was done, so that asking once more does nothing twice.
            with self._lock:
                self._tokens.pop((bmc.origin, bmc.credentials.username), None)
            reply = self._send(bmc, method, path, body, self._authorize(bmc, deadline), deadline)
        _check_status(reply, bmc.credentials)
        return reply

    def _authorize(self, bmc: Bmc, deadline: float) -> Mapping[str, str]:
        credentials = bmc.credentials
        if not self._sessions:
            text = f"{credentials.username}:{credentials.password}".encode()
            return {"Authorization": f"Basic {base64.b64encode(text).decode()}"}
        key = (bmc.origin, credentials.username)
        with self._lock:
            token = self._tokens.get(key)
        if token is None:
            login = {"UserName": credentials.username, "Password": credentials.password}
            reply = self._send(bmc, "POST", SESSIONS, login, {}, deadline)
            _check_status(reply, credentials)
            token = reply.headers.get("x-auth-token", "")
            if not token.isascii() or not token.isprintable() or not token:
                raise CloudUnavailable("its BMC gave no token for a session")
            with self._lock:
                self._tokens[key] = token
        return {"X-Auth-Token": token}

    def _send(
        self, bmc: Bmc, method: str, path: str, body: Json | None, login: Mapping[str, str], deadline: float
    ) -> Reply:
        parts = find_on_bmc(bmc, path)
        headers = {"Accept": "application/json", "OData-Version": "4.0", **login}
        if body is not None:
            headers["Content-Type"] = "application/json"
        text = b"" if body is None else json.dumps(body).encode()
        request = HttpRequest(method, parts, headers, text, MOST_BYTES)
        with count_cloud_call("redfish"):
            try:
                return self._poster.send(request, max(0.0, deadline - monotonic()))
            except NotAllowed as error:
                raise CloudRefused(f"its BMC is not asked: {error}") from error
            except FAILURES as error:
                raise BmcSilent(f"its BMC {describe_error(error)}") from None


def find_on_bmc(bmc: Bmc, path: str) -> SplitResult:
    """Return the URL of a path; CloudRefused for one that leads to another machine, where the password must not go."""
    try:
        found = urlsplit(path)
    except ValueError:
        found = None
    if found is None or found.scheme or found.netloc or not path.startswith("/") or not path.isascii():
        raise CloudRefused("its BMC names a place that is not its own")
    if any(not character.isprintable() or character == " " for character in path):
        raise CloudRefused("its BMC names a place that cannot be asked")
    return bmc.parts._replace(path=found.path, query=found.query)


def _check_status(reply: Reply, sent: BmcLogin) -> None:
    if 200 <= reply.status < 300:
        return
    said = _read_error(reply.body, sent.password)
    if reply.status in (401, 403):
        raise CloudRefused(f"its BMC does not accept the name and password of [redfish] ({reply.status}){said}")
    if 300 <= reply.status < 400:
        raise CloudRefused(f"its BMC answered {reply.status}, a redirect, which is never followed; correct the target")
    if reply.status in (408, 409, 425, 429) or reply.status in (500, 502, 503, 504):
        # It is busy, perhaps with a former switch.
        raise CloudUnavailable(f"its BMC answered {reply.status}{said}")
    raise CloudRefused(f"its BMC refuses the request ({reply.status}){said}")


def _read_error(body: bytes | None, secret: str) -> str:
    """Return what an error of Redfish says, as the end of a sentence: one short printable line.

    Its standard messages repeat the value that was wrong, which may be the password.
    """
    try:
        content = json.loads(body or b"")
        error = content["error"]
        details = error.get("@Message.ExtendedInfo") or [{}]
        said = details[0].get("Message") or error.get("message") or ""
        shown = said.replace(secret, HIDDEN) if secret else said
        line = " ".join("".join(c if c.isprintable() else " " for c in shown).split())
    except (ValueError, RecursionError, TypeError, KeyError, IndexError, AttributeError):
        return ""
    return f": {line[:MOST_SAID]}" if line else ""
