# SPDX-License-Identifier: Apache-2.0
"""Measurements from Prometheus, or what has its HTTP API (Thanos, Mimir, VictoriaMetrics).

First the template of a query, and what its answer says of servers. A value counts only if there can be no doubt about
it: an answer with warnings, as a partial one has, says nothing of any server, and a server with no series, several of
them, or a value that is no number has none.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from blazar.clouds.ports.compute import Metrics, NoMetrics
from blazar.clouds.prometheus_server import PrometheusServer, server_options
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.base.values import dataclass

LONGEST = 2000

OLDEST = 600.0
"""Seconds after which a value says nothing any more: as an answer from a cache."""


@dataclass(frozen=True, slots=True)
class AskedFor:
    """What a query is asked for: the ``noun``, the ``place`` of its names in a template, what these may be."""

    noun: str
    place: str
    names: re.Pattern[str]
    example: str

    @property
    def matcher(self) -> re.Pattern[str]:
        """What matches the place in a template, with its label."""
        return re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=~\s*"' + re.escape(self.place) + '"')


SERVERS = AskedFor(
    "the id of the server",
    "{server_id}",
    re.compile(r"[A-Za-z0-9-]{1,64}"),
    'rate(libvirt_domain_info_cpu_time_seconds_total{instanceId=~"{server_id}"}[1h])',
)


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query in PromQL with a matcher ``LABEL=~"{server_id}"``; ``label`` has the id of the server in its answers.

    ``asked`` says what is in the place of servers.
    """

    text: str
    label: str
    asked: AskedFor = SERVERS

    @classmethod
    def of(cls, text: str, option: str, asked: AskedFor = SERVERS) -> QueryTemplate:
        """Return a template; InvalidInput names the option."""
        found = asked.matcher.findall(text)
        if len(text) > LONGEST or not text.isprintable():
            raise InvalidInput(f"{option} must be one line of at most {LONGEST} printable characters")
        if len(set(found)) != 1 or len(found) != text.count(asked.place):
            raise InvalidInput(
                f"{option} must have {asked.place} in matchers of one label with {asked.noun}, and nowhere else, as "
                f"{asked.example}"
            )
        return cls(text, found[0], asked)

    def query(self, names: Collection[str]) -> str:
        """Return the query for some servers. CloudUnavailable for names that none can have."""
        if not names or not all(self.asked.names.fullmatch(name) for name in names):
            # Nothing that could be read as a part of the query is ever sent.
            raise CloudUnavailable(f"{self.asked.noun} has characters that cannot be asked for")
        # A hyphen means nothing in a regular expression outside of a class; but for the dot there is nothing to escape.
        return self.text.replace(self.asked.place, "|".join(name.replace(".", "[.]") for name in sorted(names)))


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

NOBODY = "00000000-0000-0000-0000-000000000000"


class Prometheus:
    """Measurements of servers by ``POST /api/v1/query``."""

    def __init__(self, server: PrometheusServer, template: QueryTemplate) -> None:
        self._server = server
        self._template = template

    def measure_servers(self, server_ids: Collection[str]) -> Mapping[str, float]:
        """Return the value of each server that has one, by one query for every 200. CloudUnavailable."""
        if len(server_ids) > MOST:
            raise CloudUnavailable(f"the lease has more than {MOST} running servers, which are not measured")
        found: dict[str, float] = {}
        wanted = sorted(server_ids)
        for part in (wanted[n : n + AT_ONCE] for n in range(0, len(wanted), AT_ONCE)):
            found |= read_values(self._ask(part), self._template, part, time.time())
        return found

    def check(self) -> None:
        """Ask for a server that is not there. CloudUnavailable if the answer to that would not be understood."""
        self.measure_servers([NOBODY])

    def _ask(self, server_ids: Collection[str]) -> object:
        return self._server.ask("/api/v1/query", {"query": self._template.query(server_ids)})


OPTIONS = server_options(
    'The query in PromQL, with the label that has the id of the server as LABEL=~"{server_id}", and with one '
    'value for each server: max by (LABEL) (max_over_time(METRIC{LABEL=~"{server_id}"}[2h])). It is asked once for '
    "all servers of a lease. A server of which it says nothing keeps its lease."
)


def metrics(section: Any, cafile: str | None) -> Metrics:
    """Return the source of measurements; InvalidInput with a sentence that names the option."""
    if not section.prometheus_url:
        return NoMetrics()
    server = PrometheusServer.configured(section, "unused", cafile)
    return Prometheus(server, QueryTemplate.of(section.prometheus_query, "[unused] prometheus_query"))
