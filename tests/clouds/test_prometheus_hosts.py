# SPDX-License-Identifier: Apache-2.0
"""What hosts drew by Prometheus: means of hours, by queries that are bounded."""

from __future__ import annotations

import gzip
import socket
import threading
import time
import tracemalloc
from contextlib import suppress
from datetime import timedelta

import pytest
from oslo_config import cfg

from blazar.clouds.energy import OPTIONS, SECTION
from blazar.clouds.prometheus import QueryTemplate
from blazar.clouds.prometheus_hosts import AT_ONCE, HOSTS, PrometheusMeters, meters, read_means
from blazar.clouds.prometheus_server import MOST_BYTES, PrometheusServer
from blazar.context import scope
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.resources.regions import Regions
from tests.clouds.test_prometheus import speaking

HOUR = 3600
QUERY = 'sum by (node) (watts{node=~"{host}"})'
TEMPLATE = QueryTemplate.of(QUERY, "[energy] prometheus_query", HOSTS)


class Server:
    """A Prometheus that answers each query by a function of its form."""

    def __init__(self, answer=None) -> None:
        self.asked: list[dict[str, str]] = []
        self._answer = answer or (lambda sent: matrix())

    def ask(self, path, sent):
        assert path == "/api/v1/query_range"
        self.asked.append(sent)
        return self._answer(sent)


def matrix(*series, **more):
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}, **more}


def series(host, *values, label="node"):
    return {"metric": {label: host}, "values": [[at, str(watts)] for at, watts in values]}


def test_an_hour_has_the_mean_of_its_values():
    answer = matrix(series("node-1", (0, 100), (1800, 300), (HOUR, 50), (HOUR + 300, "NaN")), series("node-2"))
    assert read_means(answer, "node", {"node-1", "node-2"}) == {"node-1": {0: 200.0, HOUR: 50.0}}


def test_a_host_with_two_series_is_not_measured():
    answer = matrix(series("a", (0, 1)), series("a", (0, 2)), series("b", (0, 3)))
    assert read_means(answer, "node", {"a", "b"}) == {"b": {0: 3.0}}


def test_queries_are_bounded_in_time_and_in_hosts():
    server = Server()
    hosts = [f"node-{number:03}" for number in range(AT_ONCE + 1)]
    PrometheusMeters(server, TEMPLATE).read_means(hosts, 0, 12 * HOUR)
    assert [(one["start"], one["end"]) for one in server.asked] == [("0", "21300")] * 2 + [("21600", "42900")] * 2
    assert max(one["query"].count("node-") for one in server.asked) == AT_ONCE


def test_names_with_dots_match_nothing_else_and_names_that_cannot_be_asked_for_are_left_out():
    server = Server()
    PrometheusMeters(server, TEMPLATE).read_means(["a.b", 'x"} or vector(1)'], 0, HOUR)
    assert [one["query"] for one in server.asked] == ['sum by (node) (watts{node=~"a[.]b"})']


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "error"},
        matrix(warnings=["partial"]),
        {"status": "success", "data": {"resultType": "vector", "result": []}},
        matrix(series("other", (0, 1))),
        matrix({"metric": {"node": "a"}, "values": [["x", "1"]]}),
        matrix({"metric": {"node": "a"}}),
        None,
    ],
)
def test_an_answer_with_any_doubt_is_none(answer):
    with pytest.raises(CloudUnavailable):
        read_means(answer, "node", {"a"})


@pytest.mark.parametrize("query", ["watts", 'watts{a=~"{host}"} + watts{b=~"{host}"}', 'watts{a="{host}"}'])
def test_a_query_without_the_place_of_hosts_is_refused(query):
    with pytest.raises(InvalidInput, match=r"must have \{host\} in matchers of one label with the name of the host"):
        QueryTemplate.of(query, "[energy] prometheus_query", HOSTS)


BY_REGION = 'sum by (node) (watts{node=~"{host}", site="{region}"})'


def options(query: str) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf.register_opts(OPTIONS, SECTION)
    conf([], default_config_files=[])
    conf.set_override("prometheus_url", "https://prometheus.example.org/", SECTION)
    conf.set_override("prometheus_query", query, SECTION)
    return conf[SECTION]


def test_a_query_that_names_the_region_is_asked_of_the_hosts_of_one():
    server = Server(lambda sent: matrix(series("a", (0, 5 if "R.2" in sent["query"] else 4))))
    asked = PrometheusMeters(server, QueryTemplate.of(BY_REGION, "[energy] prometheus_query", HOSTS))
    assert [asked.read_means(["a"], 0, HOUR, region)["a"] for region in ("R-1", "R.2")] == [{0: 4.0}, {0: 5.0}]
    assert [one["query"] for one in server.asked] == [
        f'sum by (node) (watts{{node=~"a", site="{region}"}})' for region in ("R-1", "R.2")
    ]


@pytest.mark.parametrize(
    ("query", "is_by_region"), [(QUERY, False), (BY_REGION, True), (f'{BY_REGION} * on () x{{r = "{{region}}"}}', True)]
)
def test_a_query_tells_regions_apart_if_it_names_the_region(query, is_by_region):
    assert meters(options(query), None, Regions(("R1", "R2"))).is_by_region is is_by_region
    if not is_by_region:
        assert not meters(options(query), None, Regions()).is_by_region


@pytest.mark.parametrize(
    ("query", "regions", "said"),
    [
        (BY_REGION, (), r"has \{region\}, and \[cloud\] regions names none; name the regions, or leave it out"),
        ('w_{region}{a=~"{host}"}', ("R1",), r"must have \{region\} only as the value of a label, as in"),
        ('w{a=~"{host}", r=~"{region}"}', ("R1",), r"must have \{region\} only as the value of a label, as in"),
        ('w{a=~"{host}", r="{region}{region}"}', ("R1",), r"must have \{region\} only as the value of a label, as in"),
    ],
    ids=["no regions", "in a name", "as a pattern", "twice"],
)
def test_a_query_with_the_region_where_it_cannot_be_is_refused(query, regions, said):
    with pytest.raises(InvalidInput, match=rf"^\[energy\] prometheus_query {said}"):
        meters(options(query), None, Regions(regions))


def test_values_whose_sum_is_no_number_are_no_answer():
    with pytest.raises(CloudUnavailable, match="cannot be understood"):
        read_means(matrix(series("a", (0, 1.7e308), (300, 1.7e308))), "node", {"a"})


def test_a_service_that_drips_takes_no_longer_than_its_limit_or_than_the_turn_has_time():
    over = threading.Event()

    def drip(wire: socket.socket) -> None:
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        with suppress(OSError):
            while not over.wait(0.02):
                wire.sendall(b" ")

    for timeout, limit in ((0.3, 60), (60, 0.3)):
        with speaking(drip) as url, scope(limit=timedelta(seconds=limit)):
            begun = time.monotonic()
            with pytest.raises(CloudUnavailable, match="did not answer in time"):
                PrometheusMeters(PrometheusServer(url, timeout=timeout), TEMPLATE).read_means(["a"], 0, 12 * HOUR)
            assert time.monotonic() - begun < 10
    over.set()


@pytest.mark.parametrize("packed", [False, True])
def test_of_an_answer_of_a_hundred_megabytes_no_more_than_the_limit_is_read(packed):
    size, sent = 100 * 2**20, []
    part = gzip.compress(b" " * size) if packed else b" " * 2**16
    headers = f"Content-Encoding: gzip\r\nContent-Length: {len(part)}" if packed else f"Content-Length: {size}"

    def pour(wire: socket.socket) -> None:
        wire.sendall(f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n".encode())
        with suppress(OSError):
            for _ in range(1 if packed else size // len(part)):
                wire.sendall(part)
                sent.append(len(part))

    with speaking(pour) as url:
        tracemalloc.start()
        try:
            with pytest.raises(CloudUnavailable, match=f"more than {MOST_BYTES} bytes|not JSON"):
                PrometheusMeters(PrometheusServer(url), TEMPLATE).read_means(["a"], 0, HOUR)
            assert tracemalloc.get_traced_memory()[1] < 10 * MOST_BYTES
        finally:
            tracemalloc.stop()
    assert sum(sent) < size
