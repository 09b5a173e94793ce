# SPDX-License-Identifier: Apache-2.0
"""The port at which metrics are read: who may, what else it says, and who has it of several processes."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from werkzeug.test import Client

from blazar.api.app import MAX_BODY_BYTES
from blazar.cmd import config, monitoring, web
from blazar.cmd.config import ConfigurationError
from blazar.cmd.monitoring import MonitoringApp, MonitoringPort, PortAnswer, PortPage
from blazar.cmd.monitoring_options import ListenAddress, read_address
from blazar.model.base.errors import InvalidInput
from blazar.observe import metrics
from blazar.observe.exposition import Value
from tests.cmd.conftest import Program
from tests.counted import number, samples
from tests.openstack import eventually

pytestmark = pytest.mark.timeout(60)

SECRET = "a-secret-of-the-operators"


def free_address() -> ListenAddress:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return ListenAddress("127.0.0.1", one.getsockname()[1])


def read(place: ListenAddress, path: str = "/metrics", **headers: str) -> str:
    request = urllib.request.Request(f"http://{place}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.read().decode()


def who_has(place: ListenAddress) -> str:
    try:
        return read(place, "/who").strip()
    except urllib.error.URLError:
        return "nobody"


def client(token: str = "", **pages: PortPage) -> Client:
    return Client(
        MonitoringApp({**monitoring.list_pages(), **{f"/{name}": page for name, page in pages.items()}}, token)
    )


def test_metrics_are_read_in_the_format_of_prometheus():
    answer = client().get("/metrics")
    assert answer.status_code == 200
    assert answer.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert "blazar_build_info" in answer.text or "blazar_http_requests_in_progress" in answer.text
    assert list(samples(answer.text))
    assert client().head("/metrics").data == b""


def test_what_is_read_is_asked_for_when_metrics_are_and_what_is_not_allowed_adds_up():
    asked = []

    def read_now():
        asked.append(1)
        yield Value(metrics.CLAIMS_HELD, (), 3)
        yield Value(metrics.OUTBOX_MESSAGES, ("pigeon", "due"), 2)
        yield Value(metrics.OUTBOX_MESSAGES, ("smoke", "due"), 5)

    page = monitoring.list_pages(read_now)["/metrics"]
    assert not asked
    text = page.handler({}).body.decode()
    assert (number(metrics.CLAIMS_HELD, text), len(asked)) == (3, 1)
    assert number(metrics.OUTBOX_MESSAGES, text, channel="other", state="due") == 7


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_a_page_can_only_be_read(method):
    answer = client().open("/metrics", method=method)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_another_path_says_which_pages_there_are():
    answer = client().get("/v1/leases")
    assert (answer.status_code, answer.text) == (404, "There is /metrics.\n")


@pytest.mark.parametrize(
    "given", ["", SECRET, f"Basic {SECRET}", f"Bearer {SECRET}x", f"bearer {SECRET}", "Bearer \xff", "Bearer "]
)
def test_without_the_token_nothing_is_told(given):
    answer = client(SECRET).get("/metrics", headers={"Authorization": given})
    assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "blazar_" not in answer.text
    assert SECRET not in answer.text


def test_with_the_token_metrics_are_told_and_pages_that_need_none_are_told_to_everybody():
    served = client(SECRET, livez=PortPage(lambda _: PortAnswer(b"ok"), needs_token=False))
    assert served.get("/metrics", headers={"Authorization": f"Bearer {SECRET}"}).status_code == 200
    assert served.get("/livez").text == "ok\n"


def test_a_page_gets_its_query_and_one_that_fails_is_in_the_log(caplog):
    def fail(_):
        raise ZeroDivisionError

    echo = PortPage(lambda query: PortAnswer(json.dumps(query).encode(), content_type="application/json"))
    served = client(echo=echo, broken=PortPage(fail))
    assert served.get("/echo?detailed&a=1").json == {"detailed": "", "a": "1"}
    assert served.get("/broken").status_code == 500
    assert "Page /broken of the monitoring port cannot be made" in caplog.text


def test_the_server_takes_bodies_that_the_application_refuses_in_a_sentence():
    assert web.LONGEST_BODY > MAX_BODY_BYTES


@pytest.mark.parametrize(
    ("text", "place"), [("127.0.0.1:9320", "127.0.0.1:9320"), ("[::1]:1", "[::1]:1"), ("::1:80", "[::1]:80")]
)
def test_a_place_is_an_address_and_a_port(text, place):
    assert str(read_address(text)) == place
    assert read_address(text).is_loopback


@pytest.mark.parametrize(
    "text", ["9320", "127.0.0.1", "localhost:9320", "127.0.0.1:http", "127.0.0.1:65536", "1.2.3:1"]
)
def test_what_is_no_place_is_refused_with_what_to_write(text):
    with pytest.raises(InvalidInput, match=r"\[monitoring\] listen: .* write 127.0.0.1:9320"):
        read_address(text)


def test_metrics_are_served_where_the_file_says(load):
    place = free_address()
    port = monitoring.open_port(load("[monitoring]", f"listen = {place}"), monitoring.list_pages())
    try:
        assert number(metrics.BUILD_INFO, read(place)) == 1
    finally:
        port.stop()
    with pytest.raises(urllib.error.URLError):
        read(place)


def test_the_token_of_the_file_is_asked_for(load):
    place = free_address()
    conf = load("[monitoring]", f"listen = {place}", f"token = {SECRET}")
    port = monitoring.open_port(conf, monitoring.list_pages())
    try:
        with pytest.raises(urllib.error.HTTPError, match="401"):
            read(place)
        assert "blazar_build_info" in read(place, Authorization=f"Bearer {SECRET}")
    finally:
        port.stop()


def test_a_place_that_is_taken_is_told_at_the_start(load):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ConfigurationError, match=rf"\[monitoring\] listen {taken}: Address already in use"):
            monitoring.open_port(load("[monitoring]", f"listen = {taken}"), {})


def test_standalone_mode_works_without_its_port(load, monkeypatch, caplog):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        monkeypatch.setattr(monitoring, "STANDALONE", f"127.0.0.1:{other.getsockname()[1]}")
        conf = load()
        monitoring.listen_by_default(conf)
        monitoring.open_trial_port(conf, monitoring.list_pages()).stop()
    assert "Metrics are not served, as after a second start" in caplog.text


def test_an_address_that_others_reach_needs_a_token_or_a_warning(load, caplog):
    port = free_address().port
    for token, warnings in (("", 1), (SECRET, 0)):
        caplog.clear()
        conf = load("[monitoring]", f"listen = 0.0.0.0:{port}", f"token = {token}")
        monitoring.open_port(conf, monitoring.list_pages()).stop()
        assert caplog.text.count(f"Everybody who reaches 0.0.0.0:{port} reads metrics") == warnings
        assert SECRET not in caplog.text


def test_of_several_processes_another_takes_the_port_when_its_holder_is_gone(monkeypatch):
    monkeypatch.setattr(monitoring, "RETRY_SECONDS", 0.02)
    place = free_address()
    ports = [
        MonitoringPort(MonitoringApp({"/who": PortPage(lambda _, me=name: PortAnswer(me))}), [place], is_shared=True)
        for name in (b"first", b"second")
    ]
    ports[0].start()
    eventually(lambda: who_has(place), "first".__eq__)
    ports[1].start()
    ports[0].stop()
    eventually(lambda: who_has(place), "second".__eq__)
    ports[1].stop()


def test_a_port_that_never_was_free_is_given_up_at_the_end():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = MonitoringPort(MonitoringApp({}), [ListenAddress("127.0.0.1", other.getsockname()[1])], is_shared=True)
        port.start()
        port.stop()


def test_several_processes_without_a_folder_are_told_what_is_missing(load, caplog, monkeypatch):
    monkeypatch.delenv("PROMETHEUS_MULTIPROC_DIR", raising=False)
    conf = load("[monitoring]", f"listen = {free_address()}")
    monitoring.open_port(conf, monitoring.list_pages(), is_shared=True).stop()
    assert "PROMETHEUS_MULTIPROC_DIR is not set" in caplog.text


WORKER = """
import sys, time
from blazar.observe import metrics
metrics.HTTP_REQUESTS.add("GET", "/v1/leases", "200", by=float(sys.argv[1]))
metrics.HTTP_REQUEST_DURATION.note(0.02, "/v1/leases")
metrics.HTTP_REQUESTS_IN_PROGRESS.raise_by(1)
print("counted", flush=True)
time.sleep(60)
"""
ASKED = "import sys; from blazar.observe.exposition import render; sys.stdout.buffer.write(render())"


def test_processes_with_a_folder_are_one_and_a_killed_one_has_nothing_in_progress(tmp_path):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def ask() -> str:
        done = subprocess.run([sys.executable, "-c", ASKED], env=environment, capture_output=True, check=True)
        return done.stdout.decode()

    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(n)], env=environment, stdout=subprocess.PIPE)
        for n in (5, 7)
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"counted\n"
        text = ask()
        assert number(metrics.HTTP_REQUESTS, text, route="/v1/leases") == 12
        assert number(metrics.HTTP_REQUEST_DURATION, text) == 2
        assert number(metrics.HTTP_REQUESTS_IN_PROGRESS, text) == 2
        workers[0].send_signal(signal.SIGKILL)
        workers[0].wait()
        text = ask()
        assert number(metrics.HTTP_REQUESTS, text) == 12
        assert number(metrics.HTTP_REQUESTS_IN_PROGRESS, text) == 1
        assert not any("pid" in one.labels for one in samples(text))
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


def test_processes_that_end_leave_what_they_counted_and_no_files(tmp_path):
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    short = WORKER.replace("time.sleep(60)", "")
    left = []
    for rounds in (1, 2, 3):
        for requests in ("2", "3"):
            subprocess.run([sys.executable, "-c", short, requests], env=environment, capture_output=True, check=True)
        text = subprocess.run([sys.executable, "-c", ASKED], env=environment, capture_output=True, check=True)
        assert number(metrics.HTTP_REQUESTS, text.stdout.decode(), route="/v1/leases") == 5 * rounds
        assert number(metrics.HTTP_REQUEST_DURATION, text.stdout.decode()) == 2 * rounds
        left.append(len(list(tmp_path.iterdir())))
    assert left[1] == left[2] < 10


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """A standalone service, and where its metrics are."""
    folder, place = tmp_path_factory.mktemp("watched"), free_address()
    file = folder / "blazar.conf"
    file.write_text(f"[monitoring]\nlisten = {place}\n", encoding="utf-8")
    program = Program(
        "-m", "blazar.cmd.standalone", "--port", "0", "--data", str(folder / "data"), "--config-file", str(file)
    )
    url = program.says("on http://").partition(" on ")[2].partition(";")[0]
    program.says("Ctrl-C stops")
    yield url, place
    assert program.stop() == 0


def ask(url: str, method: str = "GET", body: object = None, **headers: str) -> int:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **headers}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=30) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


def lease(most: int) -> dict:
    hosts = {"resource_type": "physical:host", "min": most, "max": most}
    reservation = {**hosts, "hypervisor_properties": "", "resource_properties": ""}
    return {"name": "L", "start_date": "now", "end_date": "2100-01-01 00:00", "reservations": [reservation]}


@pytest.mark.slow
def test_requests_and_refusals_of_a_service_are_read_from_its_port(running):
    url, place = running
    assert ask(f"{url}/v1/leases", "POST", lease(1), **{"X-Auth-Token": "alice:physics"}) == 201
    assert ask(f"{url}/v1/leases", "POST", lease(1000)) == 409
    assert ask(f"{url}/v1/leases/no-such-lease") == 404
    assert ask(f"{url}/v1/nothing/here") == 404
    assert ask(f"{url}/v1/leases", "GET", **{"X-Auth-Token": "a b c"}) == 401
    # A request is counted when its answer has been sent.
    text = eventually(lambda: read(place), lambda text: number(metrics.HTTP_REQUESTS, text) == 5)
    assert number(metrics.HTTP_REQUESTS, text, method="POST", route="/v1/leases", code="201") == 1
    assert number(metrics.HTTP_REQUESTS, text, method="POST", route="/v1/leases", code="409") == 1
    assert number(metrics.HTTP_REQUESTS, text, route="/v1/leases/{lease_id}", code="404") == 1
    assert number(metrics.HTTP_REQUESTS, text, route="unmatched", code="404") == 1
    assert number(metrics.HTTP_REQUEST_DURATION, text, route="/v1/leases") == 3
    assert number(metrics.HTTP_REQUESTS_IN_PROGRESS, text) == 0
    assert number(metrics.REFUSALS, text, code="not_enough_resources") == 1
    assert number(metrics.REFUSALS, text, code="lease_not_found") == 1
    assert number(metrics.TOKEN_VALIDATIONS, text, outcome="valid") == 1
    assert number(metrics.TOKEN_VALIDATIONS, text, outcome="invalid") == 1


@pytest.mark.slow
def test_threads_and_connections_of_a_service_are_read_from_its_port(running):
    _, place = running
    # What was asked for a moment ago may still be worked on.
    text = eventually(lambda: read(place), lambda text: number(metrics.CLAIMS_HELD, text) == 0)
    assert number(metrics.THREAD_ROUNDS, text, thread="engine", outcome="ok") > 0
    assert abs(number(metrics.THREAD_LAST_ROUND, text, thread="engine") - time.time()) < 60
    assert number(metrics.WORKER_THREADS, text, pool="start", state="idle") > 0
    assert number(metrics.WORKER_THREADS, text, pool="outbox", state="idle") == 4
    assert number(metrics.DB_CONNECTIONS, text) > 0
    assert any(one.name == "process_cpu_seconds_total" for one in samples(text))


def test_a_manager_reads_samples_as_often_as_the_file_says_and_none_if_nobody_reads_metrics(load):
    there = "listen = 127.0.0.1:9320"
    assert config.manager_settings(load("[monitoring]", there, "sample_interval = 7")).sample_interval.seconds == 7
    assert not config.manager_settings(load("[monitoring]", "sample_interval = 7")).sample_interval


def test_resources_are_counted_by_the_properties_of_the_file(load):
    settings = config.manager_settings(load("[monitoring]", "properties = gpu, rack"))
    assert settings.sample_properties == ("gpu", "rack")
