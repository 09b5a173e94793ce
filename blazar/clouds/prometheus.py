# SPDX-License-Identifier: Apache-2.0
"""Measurements from Prometheus, or what has its HTTP API (Thanos, Mimir, VictoriaMetrics).

First the template of a query, and what its answer says of servers. A value counts only if there can be no doubt about
it: an answer with warnings, as a partial one has, says nothing of any server, and a server with no series, several of
them, or a value that is no number has none. Then the query: one deadline for an answer, a limit of its size, no
redirects, and nothing secret in messages.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import requests
from oslo_config import cfg

from blazar.clouds.outgoing.calls import FAILURES, Cut, OutgoingCalls, check_url, describe_failure, read_body
from blazar.clouds.ports.compute import Metrics, NoMetrics
from blazar.context import current
from blazar.model.base.errors import CloudUnavailable, InvalidInput

PLACE = "{server_id}"
LONGEST = 2000

OLDEST = 600.0
"""Seconds after which a value says nothing any more: as an answer from a cache."""

_MATCHER = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=~\s*"\{server_id\}"')
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query in PromQL with a matcher ``LABEL=~"{server_id}"``; ``label`` has the id of the server in its answers."""

    text: str
    label: str

    @classmethod
    def of(cls, text: str, option: str) -> QueryTemplate:
        """Return a template; InvalidInput names the option."""
        labels = {found.group(1) for found in _MATCHER.finditer(text)}
        places = text.count(PLACE)
        if len(text) > LONGEST or not text.isprintable():
            raise InvalidInput(f"{option} must be one line of at most {LONGEST} printable characters")
        if len(labels) != 1 or len(_MATCHER.findall(text)) != places:
            raise InvalidInput(
                f"{option} must have {PLACE} in matchers of one label with the id of the server, and nowhere else, as "
                f'rate(libvirt_domain_info_cpu_time_seconds_total{{instanceId=~"{PLACE}"}}[1h])'
            )
        return cls(text, labels.pop())

    def query(self, server_ids: Collection[str]) -> str:
        """Return the query for some servers. CloudUnavailable for ids that no cloud gives to servers."""
        if not server_ids or not all(_ID.fullmatch(id_) for id_ in server_ids):
            # Nothing that could be read as a part of the query is ever sent.
            raise CloudUnavailable("a server has an id that cannot be asked for")
        # A hyphen means nothing in a regular expression outside of a class; there is nothing else to escape.
        return self.text.replace(PLACE, "|".join(sorted(server_ids)))


def read_values(answer: Any, template: QueryTemplate, server_ids: Collection[str], now: float) -> Mapping[str, float]:
    """Return the certain values of an answer by server. CloudUnavailable if it says nothing at all."""
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise CloudUnavailable("Prometheus did not answer the query")
    if answer.get("warnings"):
        raise CloudUnavailable("Prometheus answered with warnings: its answer may be partial")
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "vector" or not isinstance(data.get("result"), list):
        raise CloudUnavailable("Prometheus did not answer with a vector; the query must give one value for each server")
    series = [_read_series(series, template.label) for series in data["result"]]
    if any(id_ not in server_ids for id_, _, _ in series):
        raise CloudUnavailable(
            f"Prometheus answered with a series whose label {template.label} has none of the servers that it was asked "
            f"for; an aggregation in the query must keep it: by ({template.label})"
        )
    several = Counter(id_ for id_, _, _ in series)
    return {
        id_: value
        for id_, value, at in series
        if several[id_] == 1 and math.isfinite(value) and abs(now - at) <= OLDEST
    }


def _read_series(series: Any, label: str) -> tuple[str, float, float]:
    """Return the server, value and time of a series; not a number for a value that is none."""
    try:
        labels, (at, text) = series["metric"], series["value"]
        if not isinstance(text, str):
            return str(labels.get(label)), math.nan, float(at)
        return str(labels.get(label)), float(text), float(at)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CloudUnavailable("Prometheus gave an answer that cannot be understood") from error


AT_ONCE = 200
"""Servers that one query asks for: a query of about eight kilobytes."""

MOST = 2000
"""Servers of a lease beyond which nothing is asked, so that a lease costs at most ten queries."""

MOST_BYTES = 1024 * 1024
"""The limit of an answer: a series has a few hundred bytes."""

NOBODY = "00000000-0000-0000-0000-000000000000"


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
    ) -> None:
        self._url = f"{url.rstrip('/')}/api/v1/query"
        self._template = template
        self._login = login or Login()
        self._timeout = timeout
        self._calls = OutgoingCalls(verify=cafile or True)

    def measure_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return the value of each server that has one, by one query for every 200. CloudUnavailable."""
        if len(server_ids) > MOST:
            raise CloudUnavailable(f"the lease has more than {MOST} running servers, which are not measured")
        found: dict[str, float] = {}
        wanted = sorted(server_ids)
        for part in (wanted[n : n + AT_ONCE] for n in range(0, len(wanted), AT_ONCE)):
            found |= read_values(self._ask(self._template.query(part)), self._template, part, time.time())
        return found

    def check(self) -> None:
        """Ask for a server that is not there. CloudUnavailable if the answer to that would not be understood."""
        self.measure_servers([NOBODY])

    def _ask(self, query: str) -> object:
        left = current().remaining()
        seconds = self._timeout if left is None else min(self._timeout, left)
        if seconds <= 0:
            raise CloudUnavailable("no time was left to ask Prometheus")
        end = time.monotonic() + seconds
        sent = {"query": query, "timeout": f"{seconds:.3f}s"}
        try:
            with self._calls.post(self._url, sent, auth=self._login, seconds=seconds) as response:
                text = _read_whole(response, end)
                if response.status_code != 200:
                    raise CloudUnavailable(f"Prometheus answered {response.status_code}{_advice(response.status_code)}")
        except FAILURES as error:
            # An answer that is cut at its end may look broken.
            is_late = time.monotonic() >= end
            raise CloudUnavailable(describe_failure(TimeoutError() if is_late else error, "Prometheus")) from None
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise CloudUnavailable("Prometheus gave an answer that is not JSON") from None


def _read_whole(response: requests.Response, end: float) -> bytes:
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


_TOKEN = "prometheus_bearer_token"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "prometheus_url",
        default="",
        help="URL of Prometheus, without /api/v1: https://HOST:9090/. It is trusted as [DEFAULT] cafile says.",
    ),
    cfg.StrOpt(
        "prometheus_query",
        default="",
        help='The query in PromQL, with the label that has the id of the server as LABEL=~"{server_id}", and with one '
        'value for each server: max by (LABEL) (max_over_time(METRIC{LABEL=~"{server_id}"}[2h])). It is asked once for '
        "all servers of a lease. A server of which it says nothing keeps its lease.",
    ),
    cfg.StrOpt("prometheus_username", default="", help="Name for Prometheus; unset: none is sent."),
    cfg.StrOpt("prometheus_password", default="", secret=True, help="Password for Prometheus."),
    cfg.StrOpt(
        "prometheus_bearer_token",
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


def metrics(section: Any, cafile: str | None) -> Metrics:
    """Return the source of measurements; InvalidInput with a sentence that names the option."""
    if not section.prometheus_url:
        return NoMetrics()
    secrets = {"prometheus_password": section.prometheus_password, _TOKEN: section.prometheus_bearer_token}
    secret = next((name for name, value in secrets.items() if value), None)
    check_url(
        section.prometheus_url,
        "[unused] prometheus_url",
        example="https://HOST:9090/",
        credentials="prometheus_username and prometheus_password, or prometheus_bearer_token",
        secret=secret,
    )
    if section.prometheus_bearer_token and (section.prometheus_username or section.prometheus_password):
        raise InvalidInput(f"[unused] {_TOKEN} and a name or password are set, but only one can be sent; keep one")
    if bool(section.prometheus_username) != bool(section.prometheus_password):
        raise InvalidInput("[unused] prometheus_username and prometheus_password go together; set both, or none")
    token = section.prometheus_bearer_token
    if not (token.isascii() and (token.isprintable() or not token)):
        raise InvalidInput(
            f"[unused] {_TOKEN} has characters that a header cannot have; use printable ASCII characters"
        )
    return Prometheus(
        section.prometheus_url,
        QueryTemplate.of(section.prometheus_query, "[unused] prometheus_query"),
        login=Login(section.prometheus_username, section.prometheus_password, token),
        timeout=section.prometheus_timeout,
        cafile=cafile,
    )
