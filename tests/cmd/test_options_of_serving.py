# SPDX-License-Identifier: Apache-2.0
"""How many are served at a time, and how far a search goes, is what ``blazar.conf`` says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from oslo_messaging.notify import _impl_test
from werkzeug.test import Client

from blazar.calendar.openings import Budget
from blazar.cmd import api, assemble
from blazar.cmd.config import ConfigurationError
from tests.cmd.stub import PASSWORD
from tests.cmd.test_api import BUS, login_at
from tests.cmd.test_pages import KEY
from tests.cmd.test_web import ask, idle, is_closed, serve
from tests.configured import Configured
from tests.openstack import eventually

__all__ = ["serve"]


@pytest.fixture
def served(load, stub, monkeypatch) -> Callable[..., dict[str, Any]]:
    """Return how the API would be served with these lines, without its address and application."""

    def settings(*lines: str) -> dict[str, Any]:
        given: dict[str, Any] = {}

        def server(app: Any, *, host: str, port: int, trusts_proxy: bool, **more: Any) -> None:
            given.update(more)
            raise OSError("enough")

        with monkeypatch.context() as patch:
            patch.setattr(api.web, "server", server)
            with pytest.raises(ConfigurationError, match="enough"):
                api._serve(load(*BUS, *login_at(stub, PASSWORD), *lines))
        return given

    return settings


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 3])
def test_as_many_requests_are_served_at_a_time_as_the_file_says(served, serve, threads):
    three = threading.Barrier(3, timeout=0.5)

    def meet(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [])
        try:
            three.wait()
        except threading.BrokenBarrierError:
            return [b"alone"]
        return [b"met"]

    port = serve(meet, **served("[api]", f"threads = {threads}"))
    with ThreadPoolExecutor(3) as callers:
        answers = [text.rpartition("\r\n")[2] for text in callers.map(lambda _: ask(port), range(3))]
    assert answers == (["met"] * 3 if threads == 3 else ["alone"] * 3)


@pytest.mark.slow
@pytest.mark.parametrize(("connections", "closed"), [(100, True), (300, False)])
def test_as_many_connections_are_open_as_the_file_says(served, serve, connections, closed):
    port = serve(**served("[api]", f"connections = {connections}"))
    with idle(port, 150) as opened:
        ask(port)
        eventually(lambda: any(map(is_closed, opened)) is closed, patience=5)


@pytest.mark.parametrize(("proxies", "status"), [(1, 429), (2, 401)])
def test_attempts_to_sign_in_are_counted_by_the_address_that_the_proxies_of_the_file_have_seen(
    load, stub, proxies, status
):
    """A user has five attempts from one address; the first of two proxies tells that of each client apart."""
    lines = ("[oslo_middleware]", "enable_proxy_headers_parsing = true", "[ui]", f"session_keys = {KEY}")
    conf = load(*BUS, *login_at(stub, PASSWORD), *lines, f"proxies = {proxies}")
    http = Client(api.build(conf))
    wrong = {"method": "password", "user": "curie", "domain": "Default", "password": "wrong"}
    found = []
    for number in range(6):
        headers = {"Sec-Fetch-Site": "same-origin", "X-Forwarded-For": f"192.0.2.{number}, 198.51.100.1"}
        found.append(http.post("/ui/session", json=wrong, headers=headers).status_code)
    assert found == [401] * 5 + [status]


@pytest.mark.parametrize(("url", "status"), [("", 403), ("https://cloud.example/reservation", 401)])
def test_pages_are_at_the_url_of_the_file(load, stub, url, status):
    """The service itself sees the name of its own machine; only who is at the right place is asked for a password."""
    lines = ("[ui]", f"session_keys = {KEY}", f"public_url = {url}")
    http = Client(api.build(load(*BUS, *login_at(stub, PASSWORD), *lines)))
    wrong = {"method": "password", "user": "curie", "domain": "Default", "password": "wrong"}
    answer = http.post("/ui/session", json=wrong, headers={"Origin": "https://cloud.example"})
    assert answer.status_code == status


ROOM = {"resource_type": "physical:host", "min": 1, "max": 1}
SERVER = {"resource_type": "virtual:instance", "amount": 1, "vcpus": 1, "memory_mb": 1, "disk_gb": 1}
QUESTION = {"reservations": [ROOM], "duration": "1h"}


def test_a_project_has_as_many_searches_in_progress_as_the_file_says(tmp_path, monkeypatch):
    service = Configured(tmp_path, "[availability]", "max_searches = 3")
    search = service.manager.availability.find
    statuses = []

    def find(question: Any) -> Any:
        if len(statuses) < 9:
            statuses.append(service.ask("POST", "/v1/availability", QUESTION).status_code)
        return search(question)

    monkeypatch.setattr(service.manager.availability, "find", find)
    assert service.ask("POST", "/v1/availability", QUESTION).status_code == 200
    assert statuses == [429, 200, 200]


@pytest.mark.parametrize(("seconds", "status"), [(2, 503), (60, 200)])
def test_a_search_takes_as_many_seconds_as_the_file_says(tmp_path, monkeypatch, seconds, status):
    service = Configured(tmp_path, "[availability]", f"max_seconds = {seconds}")
    spend = Budget.spend

    def slowly(budget: Budget, placements: int = 1) -> None:
        service.clock.by(seconds=3)
        spend(budget, placements)

    monkeypatch.setattr(Budget, "spend", slowly)
    question = {**QUESTION, "reservations": [{**SERVER, "affinity": None}, ROOM]}
    assert service.ask("POST", "/v1/availability", question).status_code == status


def test_the_publisher_of_notifications_is_that_of_the_file(load):
    conf = load("[notifications]", "publisher_id = blazar.other", "[oslo_messaging_notifications]", "driver = test")
    notifier = assemble._notifier(conf)
    _impl_test.reset()
    notifier.notify_moved("physics", ())
    ((_, message, *_),) = eventually(lambda: _impl_test.NOTIFICATIONS)
    assert message["publisher_id"] == "blazar.other"


@pytest.mark.slow
def test_a_search_tries_as_many_placements_as_the_file_says(tmp_path, monkeypatch):
    """A lease with both needs two hosts. Each of eleven gaps is looked at, for the price of ten placements."""
    service = Configured(tmp_path, "[availability]", "max_placements = 100", hosts=1)
    for hour in range(11):
        made = service.book(start=f"2030-04-02T{hour:02}:00:00Z", end=f"2030-04-02T{hour:02}:30:00Z")
        assert made.status_code == 201, made.text
    spend = Budget.spend
    monkeypatch.setattr(Budget, "spend", lambda budget, placements=1: spend(budget, 10 * placements))
    question = {**QUESTION, "reservations": [{**SERVER, "affinity": None}, ROOM], "duration": "30m"}
    found = service.ask("POST", "/v1/availability", question).json["availability"]
    assert (found["openings"], found["complete"]) == ([], False)
    assert found["searched_until"] < "2030-04-03"
