# SPDX-License-Identifier: Apache-2.0
"""What hosts drew by Prometheus: the mean of each hour, by range queries that are bounded in time and in size."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from blazar.clouds.ports.energy import HostMeters, Means, NoMeters
from blazar.clouds.prometheus import AskedFor, QueryTemplate
from blazar.clouds.prometheus_server import PrometheusServer
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.energy.consumption import HOUR
from blazar.model.resources.regions import Regions

SECTION = "energy"
STEP = 300
"""Seconds between two values of an answer."""

AT_ONCE = 200
"""Hosts that one query asks for."""

HOURS_AT_ONCE = 6
"""Hours that one query asks for: 14 400 values for 200 hosts."""

HOSTS = AskedFor(
    "the name of the host",
    "{host}",
    re.compile(r"[A-Za-z0-9._-]{1,255}"),
    'sum by (node_name) (kepler_platform_watts{node_name=~"{host}"})',
)

REGION = "{region}"
_OF_REGION = re.compile(r'[A-Za-z_][A-Za-z0-9_]*\s*=\s*"' + re.escape(REGION) + '"')


class PrometheusMeters:
    """Implements the port of meters by ``POST /api/v1/query_range``.

    A query that names the region is asked of the hosts of one region at a time.
    """

    enabled = True

    def __init__(self, server: PrometheusServer, template: QueryTemplate) -> None:
        self._server = server
        self._template = template

    @property
    def is_by_region(self) -> bool:
        """Whether the query names the region."""
        return REGION in self._template.text

    def read_means(self, hosts: Collection[str], since: int, until: int, region: str = "") -> Means:
        """Return the means of hours that Prometheus has values of. CloudUnavailable."""
        # A host with a name that cannot be asked for keeps none of the others from being measured.
        wanted = sorted(host for host in hosts if HOSTS.names.fullmatch(host))
        found: dict[str, dict[int, float]] = defaultdict(dict)
        for start in range(since - since % HOUR, until, HOURS_AT_ONCE * HOUR):
            end = min(until, start + HOURS_AT_ONCE * HOUR - STEP)
            for number in range(0, len(wanted), AT_ONCE):
                part = wanted[number : number + AT_ONCE]
                for host, hours in self._read(part, start, end, region).items():
                    found[host] |= hours
        return found

    def _read(self, hosts: Collection[str], start: int, end: int, region: str) -> Means:
        # Names of hosts have no braces, and names of regions nothing that would end a text of the query.
        query = self._template.query(hosts).replace(REGION, region)
        answer = self._server.ask(
            "/api/v1/query_range",
            {"query": query, "start": str(start), "end": str(end), "step": str(STEP)},
        )
        return read_means(answer, self._template.label, hosts)


def read_means(answer: Any, label: str, hosts: Collection[str]) -> Means:
    """Return the means of hours by host. CloudUnavailable if an answer says nothing at all."""
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise CloudUnavailable("Prometheus did not answer the query")
    if answer.get("warnings"):
        raise CloudUnavailable("Prometheus answered with warnings: its answer may be partial")
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise CloudUnavailable("Prometheus did not answer with a matrix; the query must give one value for each host")
    found: dict[str, Mapping[int, float]] = {}
    several: set[str] = set()
    for series in data["result"]:
        host, hours = _read_series(series, label)
        if host not in hosts:
            raise CloudUnavailable(
                f"Prometheus answered with a series whose label {label} has none of the hosts that it was asked for; "
                f"an aggregation in the query must keep it: by ({label})"
            )
        if host in found:
            several.add(host)
        found[host] = hours
    # Of two series of a host nobody knows which is right, or whether they are to be added.
    return {host: hours for host, hours in found.items() if hours and host not in several}


def _read_series(series: Any, label: str) -> tuple[str, Mapping[int, float]]:
    """Return the host of a series, and the mean of its values by hour."""
    values: dict[int, list[float]] = defaultdict(list)
    try:
        host = str(series["metric"].get(label))
        for at, watts in _list_values(series["values"]):
            values[int(at) // HOUR * HOUR].append(watts)
        means = {hour: math.fsum(known) / len(known) for hour, known in values.items()}
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CloudUnavailable("Prometheus gave an answer that cannot be understood") from error
    return host, means


def _list_values(pairs: Any) -> Iterator[tuple[float, float]]:
    for at, text in pairs:
        watts = float(text)
        if math.isfinite(watts) and watts >= 0:
            yield float(at), watts


def meters(section: Any, cafile: str | None, regions: Regions) -> HostMeters:
    """Return what keeps what hosts drew; InvalidInput with a sentence that names the option."""
    if not section.prometheus_url:
        return NoMeters()
    server, option = PrometheusServer.configured(section, SECTION, cafile), f"[{SECTION}] prometheus_query"
    template = QueryTemplate.of(section.prometheus_query, option, HOSTS)
    if len(_OF_REGION.findall(template.text)) != template.text.count(REGION):
        raise InvalidInput(
            f'{option} must have {REGION} only as the value of a label, as in {{node_name=~"{HOSTS.place}", '
            f'region="{REGION}"}}'
        )
    if REGION in template.text and not regions:
        raise InvalidInput(f"{option} has {REGION}, and [cloud] regions names none; name the regions, or leave it out")
    return PrometheusMeters(server, template)
