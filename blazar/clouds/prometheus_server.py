# SPDX-License-Identifier: Apache-2.0
"""A server with the HTTP API of Prometheus: how it is asked, and the options that say where it is.

One deadline for an answer, a limit of its size, no redirects, and nothing secret in messages.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import requests
from oslo_config import cfg

from blazar.clouds.outgoing.calls import FAILURES, Cut, OutgoingCalls, check_url, describe_failure, read_body
from blazar.context import current
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.base.values import dataclass, field

MOST_BYTES = 2 * 1024 * 1024
"""The limit of an answer: a series has a few hundred bytes, and some 35 for each of its values."""


@dataclass(frozen=True, slots=True)
class Login(requests.auth.AuthBase):
    """How Prometheus is asked: a name and password, or a bearer token, or neither."""

    username: str = ""
    password: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add what is sent to a request."""
        if self.bearer_token:
            request.headers["Authorization"] = f"Bearer {self.bearer_token}"
        elif self.username:
            requests.auth.HTTPBasicAuth(self.username.encode(), self.password.encode())(request)
        return request


class PrometheusServer:
    """Asks a server; ``section`` is that of its options, which messages name."""

    def __init__(
        self,
        url: str,
        *,
        login: Login | None = None,
        timeout: float = 10.0,
        cafile: str | None = None,
        section: str = "unused",
    ) -> None:
        self._url = url.rstrip("/")
        self._login = login or Login()
        self._timeout = timeout
        self._calls = OutgoingCalls(verify=cafile or True)
        self._section = section

    @classmethod
    def configured(cls, section: Any, name: str, cafile: str | None) -> PrometheusServer:
        """Return the server that options say; InvalidInput with a sentence that names the option."""
        return cls(
            section.prometheus_url,
            login=_check_login(section, name),
            timeout=section.prometheus_timeout,
            cafile=cafile,
            section=name,
        )

    def ask(self, path: str, sent: Mapping[str, str]) -> object:
        """Return the answer to a query. CloudUnavailable."""
        left = current().remaining()
        seconds = self._timeout if left is None else min(self._timeout, left)
        if seconds <= 0:
            raise CloudUnavailable("no time was left to ask Prometheus")
        end = time.monotonic() + seconds
        form = {**sent, "timeout": f"{seconds:.3f}s"}
        try:
            with self._calls.post(self._url + path, form, auth=self._login, seconds=seconds) as response:
                text = self._read_whole(response, end)
                if response.status_code != 200:
                    advice = _advise(response.status_code, self._section)
                    raise CloudUnavailable(f"Prometheus answered {response.status_code}{advice}")
        except FAILURES as error:
            # An answer that is cut at its end may look broken.
            is_late = time.monotonic() >= end
            raise CloudUnavailable(describe_failure(TimeoutError() if is_late else error, "Prometheus")) from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise CloudUnavailable("Prometheus gave an answer that is not JSON") from None

    def _read_whole(self, response: requests.Response, end: float) -> bytes:
        body, cut = read_body(response, most=MOST_BYTES, end=end)
        if cut is Cut.TOO_LONG:
            raise CloudUnavailable(f"Prometheus gave an answer of more than {MOST_BYTES} bytes")
        if cut is Cut.TOO_LATE:
            raise CloudUnavailable("Prometheus did not answer in time")
        return body


def _advise(status: int, section: str) -> str:
    if status in (400, 422):
        return f"; [{section}] prometheus_query is probably not correct PromQL"
    if status in (401, 403):
        return f"; it does not accept the credentials of [{section}]"
    if 300 <= status < 400:
        return f", a redirect, which is never followed; correct [{section}] prometheus_url"
    return ""


_TOKEN = "prometheus_bearer_token"


def _check_login(section: Any, name: str) -> Login:
    secrets = {"prometheus_password": section.prometheus_password, _TOKEN: section.prometheus_bearer_token}
    secret = next((option for option, value in secrets.items() if value), None)
    check_url(
        section.prometheus_url,
        f"[{name}] prometheus_url",
        example="https://HOST:9090/",
        credentials="prometheus_username and prometheus_password, or prometheus_bearer_token",
        secret=secret,
    )
    if section.prometheus_bearer_token and (section.prometheus_username or section.prometheus_password):
        raise InvalidInput(f"[{name}] {_TOKEN} and a name or password are set, but only one can be sent; keep one")
    if bool(section.prometheus_username) != bool(section.prometheus_password):
        raise InvalidInput(f"[{name}] prometheus_username and prometheus_password go together; set both, or none")
    token = section.prometheus_bearer_token
    if not (token.isascii() and (token.isprintable() or not token)):
        raise InvalidInput(
            f"[{name}] {_TOKEN} has characters that a header cannot have; use printable ASCII characters"
        )
    return Login(section.prometheus_username, section.prometheus_password, token)


def server_options(query_help: str) -> list[cfg.Opt]:
    """Return the options of a server, and of what it is asked."""
    return [
        cfg.StrOpt(
            "prometheus_url",
            default="",
            help="URL of Prometheus, without /api/v1: https://HOST:9090/. It is trusted as [DEFAULT] cafile says.",
        ),
        cfg.StrOpt("prometheus_query", default="", help=query_help),
        cfg.StrOpt("prometheus_username", default="", help="Name for Prometheus; unset: none is sent."),
        cfg.StrOpt("prometheus_password", default="", secret=True, help="Password for Prometheus."),
        cfg.StrOpt(
            _TOKEN,
            default="",
            secret=True,
            help="Sent to Prometheus as 'Authorization: Bearer …', instead of a name and a password.",
        ),
        cfg.FloatOpt(
            "prometheus_timeout",
            default=10.0,
            min=0.1,
            max=60,
            help="Seconds within which Prometheus must answer a query.",
        ),
    ]
