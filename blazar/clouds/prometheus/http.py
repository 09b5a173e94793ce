# SPDX-License-Identifier: Apache-2.0
"""Queries over HTTP: one deadline for an answer, a limit of its size, no redirects, and nothing secret in messages."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy

import requests
import urllib3

from blazar import __version__
from blazar.clouds.outgoing.bodies import Cut, read_body
from blazar.clouds.outgoing.punctual import PunctualAdapter
from blazar.clouds.prometheus.template import QueryTemplate, values_of
from blazar.context import current
from blazar.model.errors import CloudUnavailable

AT_ONCE = 200
"""Servers that one query asks for: a query of about eight kilobytes."""

MOST = 2000
"""Servers of a lease beyond which nothing is asked, so that a lease costs at most ten queries."""

MOST_BYTES = 1024 * 1024
"""The limit of an answer: a series has a few hundred bytes."""

NOBODY = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Login:
    """How Prometheus is asked: a name and password, or a bearer token, or neither."""

    username: str = ""
    password: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add what is sent to a request; also keeps the library from reading ~/.netrc."""
        if self.bearer_token:
            request.headers["Authorization"] = f"Bearer {self.bearer_token}"
        elif self.username:
            requests.auth.HTTPBasicAuth(self.username.encode(), self.password.encode())(request)
        return request


class Prometheus:
    """Measurements of servers by ``POST /api/v1/query``."""

    def __init__(
        self,
        url: str,
        template: QueryTemplate,
        *,
        login: Login | None = None,
        timeout: float = 10.0,
        cafile: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._template = template
        self._login = login or Login()
        self._timeout = timeout
        self._verify = cafile or True
        self._now = now
        self._session = requests.Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, PunctualAdapter())

    def of_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return the value of each server that has one, by one query for every 200. CloudUnavailable."""
        if len(server_ids) > MOST:
            raise CloudUnavailable(f"the lease has more than {MOST} running servers, which are not measured")
        found: dict[str, float] = {}
        wanted = sorted(server_ids)
        for part in (wanted[n : n + AT_ONCE] for n in range(0, len(wanted), AT_ONCE)):
            found |= values_of(self._asked(self._template.query(part)), self._template, part, self._now())
        return found

    def check(self) -> None:
        """Ask for a server that is not there. CloudUnavailable if the answer to that would not be understood."""
        self.of_servers([NOBODY])

    def _asked(self, query: str) -> object:
        left = current().remaining()
        seconds = self._timeout if left is None else min(self._timeout, left)
        if seconds <= 0:
            raise CloudUnavailable("no time was left to ask Prometheus")
        end = time.monotonic() + seconds
        try:
            with self._session.post(
                self._url,
                data={"query": query, "timeout": f"{seconds:.3f}s"},
                headers={"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": _AGENT},
                auth=self._login,
                timeout=seconds,
                allow_redirects=False,
                stream=True,
                verify=self._verify,
            ) as response:
                text = _whole(response, end)
                if response.status_code != 200:
                    raise CloudUnavailable(f"Prometheus answered {response.status_code}{_advice(response.status_code)}")
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            # Without the library's own message, which has the URL. An answer that is cut at its end may look broken.
            why = "did not answer in time" if time.monotonic() >= end else _why(error)
            raise CloudUnavailable(f"Prometheus {why}") from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise CloudUnavailable("Prometheus gave an answer that is not JSON") from None


_AGENT = f"blazar/{__version__}"


def _whole(response: requests.Response, end: float) -> bytes:
    body, cut = read_body(response, most=MOST_BYTES, end=end)
    if cut is Cut.TOO_LONG:
        raise CloudUnavailable(f"Prometheus gave an answer of more than {MOST_BYTES} bytes")
    if cut is Cut.TOO_LATE:
        raise CloudUnavailable("Prometheus did not answer in time")
    return body


def _advice(status: int) -> str:
    if status in (400, 422):
        return "; [unused] prometheus_query is probably not correct PromQL"
    if status in (401, 403):
        return "; it does not accept the credentials of [unused]"
    if 300 <= status < 400:
        return ", a redirect, which is never followed; correct [unused] prometheus_url"
    return ""


def _why(error: Exception) -> str:
    match error:
        case requests.exceptions.SSLError():
            return "has a certificate that cannot be trusted, or TLS fails"
        case requests.exceptions.Timeout() | urllib3.exceptions.TimeoutError() | TimeoutError():
            return "did not answer in time"
        case requests.exceptions.ConnectionError():
            return "cannot be reached"
    return f"broke the connection ({type(error).__name__})"
