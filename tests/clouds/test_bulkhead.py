# SPDX-License-Identifier: Apache-2.0
"""Calls that come as a service stops to answer wait for it in a part of the threads; the others go on."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
import requests_mock
from keystoneauth1 import fixture
from keystoneauth1.identity import v3

from blazar.clouds.openstack import Access, Credentials
from blazar.clouds.openstack.bulkhead import Bulkhead, ThreadLimits
from blazar.context import Crowd, Pool, scope
from blazar.model.base.errors import CloudUnavailable
from blazar.rpc.server import Endpoint
from tests.clouds.test_breaker import KEYSTONE, Clock, silent

THREADS = 16
REQUESTS = Pool("requests", THREADS, regions=2, patience=0.5)
SLACK = 60.0
"""Seconds that a busy machine may take for what takes none."""
BUSY = 1.5
"""Seconds of patience of a pool whose calls are real: those of a service that answers take less, on a busy machine."""
HANGS = 2 * SLACK
"""Seconds for which a call waits for a service that is silent: who would wait for its end is late."""


@pytest.fixture
def nova():
    return Bulkhead("Nova of R2", "R2")


class Others:
    """Threads of a pool that stay in calls to a service until they are let go."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.errors: list[str] = []
        self._let_go = threading.Event()
        self._threads: list[threading.Thread] = []

    def call(self, bulkhead: Bulkhead, count: int) -> None:
        """Have so many threads call; return when each has its place or waits for one."""
        before = self.pool.crowd.calls.total() + len(self.pool.crowd.line)
        for _ in range(count):
            thread = threading.Thread(target=self._call, args=(bulkhead,))
            thread.start()
            self._threads.append(thread)
        self.until(
            lambda: self.pool.crowd.calls.total() + len(self.pool.crowd.line) + len(self.errors) >= before + count
        )

    def _call(self, bulkhead: Bulkhead) -> None:
        with scope(pool=self.pool):
            try:
                with bulkhead.admit_call():
                    self._let_go.wait(HANGS)
            except CloudUnavailable as error:
                self.errors.append(error.message)

    def until(self, true: Callable[[], bool]) -> None:
        last = time.monotonic() + SLACK
        while not true():
            assert time.monotonic() < last
            with self.pool.crowd.changed:
                self.pool.crowd.changed.wait(0.01)

    def let_go(self) -> None:
        self._let_go.set()
        for thread in self._threads:
            thread.join(SLACK)


@pytest.fixture
def others():
    made: list[Others] = []

    def of(pool: Pool) -> Others:
        made.append(Others(pool))
        return made[-1]

    yield of
    for each in made:
        each.let_go()


def test_a_call_that_finds_no_place_waits_while_there_are_idle_threads(nova, others):
    """The service may be slow, and nobody needs the thread."""
    pool = replace(REQUESTS, patience=0.0, crowd=Crowd())
    crowd = others(pool)
    crowd.call(nova, 8)
    assert (pool.crowd.calls.total(), len(pool.crowd.line), crowd.errors) == (4, 4, [])
    crowd.let_go()
    assert crowd.errors == []


def test_calls_that_wait_for_a_silent_service_give_back_the_threads_that_are_kept_the_last_first(nova, others):
    pool = replace(REQUESTS, patience=0.0, crowd=Crowd())
    crowd = others(pool)
    crowd.call(nova, THREADS)
    kept = ThreadLimits.of(pool).kept
    crowd.until(lambda: len(crowd.errors) == kept)
    assert len(pool.crowd.line) == THREADS - kept - 4
    assert crowd.errors[0] == "Nova of R2 answers too slowly: 4 calls wait for it, and no more may"


def test_a_service_that_answers_is_called_by_more_than_one_that_has_not_yet(others):
    clock = Clock()
    nova, pool = Bulkhead("Nova of R2", "R2", clock=clock), replace(REQUESTS, patience=60, crowd=Crowd())
    crowd = others(pool)
    crowd.call(nova, 12)
    assert pool.crowd.calls.total() == 4
    nova.note_answer()
    with scope(pool=pool), Bulkhead("Heat of R1", "R1").admit_call():
        pass
    crowd.until(lambda: pool.crowd.calls.total() == ThreadLimits.of(pool).of_service)
    assert crowd.errors == []


def test_calls_wait_as_long_as_the_patience_when_all_threads_are_busy(others):
    clock = Clock()
    nova, pool = Bulkhead("Nova of R2", "R2", clock=clock), replace(REQUESTS, patience=60, crowd=Crowd())
    crowd = others(pool)
    crowd.call(nova, THREADS)
    assert crowd.errors == []
    clock.now += 61
    with scope(pool=pool), pytest.raises(CloudUnavailable, match="answers too slowly"), nova.admit_call():
        raise AssertionError("no call is made")


def test_a_thread_that_has_no_pool_is_not_bound_and_each_pool_has_places_of_its_own(nova, others):
    others(replace(REQUESTS, crowd=Crowd())).call(nova, 12)
    with nova.admit_call():
        pass
    with scope(pool=Pool("start-R2", 2)), nova.admit_call():
        pass


def test_a_thread_that_calls_again_and_again_takes_no_place_before_one_that_waits():
    """Else a service that answers at once would be too slow for those that wait for their first call."""
    made, patient = [], Pool("requests", 2, patience=60)
    bulkhead = Bulkhead("Nova")

    def call(who: str) -> None:
        with scope(pool=patient), bulkhead.admit_call():
            made.append(who)

    def waits() -> bool:
        with patient.crowd.changed:
            return bool(patient.crowd.line)

    for number in range(20):
        with scope(pool=patient), bulkhead.admit_call():
            other = threading.Thread(target=call, args=(f"waits {number}",))
            other.start()
            last = time.monotonic() + SLACK
            while not waits():
                assert time.monotonic() < last
        call(f"again {number}")
        other.join(SLACK)
    assert made == [f"{what} {number}" for number in range(20) for what in ("waits", "again")]


def test_a_call_waits_no_longer_than_the_time_for_its_request(nova, others):
    patient = replace(REQUESTS, patience=60, crowd=Crowd())
    others(patient).call(nova, 4)
    with (
        scope(pool=patient, limit=timedelta(seconds=0.1)),
        pytest.raises(CloudUnavailable, match="the time for this request is over"),
        nova.admit_call(),
    ):
        raise AssertionError("no call is made")


@contextmanager
def regions(count: int, url_of_others: str) -> Iterator[dict[str, Access]]:
    """The services of R1 answer; Nova of all other regions is at a URL, and their Neutrons answer."""
    token, names = fixture.V3Token(), [f"R{number}" for number in range(1, count + 1)]
    with requests_mock.Mocker() as web:
        for kind, path in (("compute", "v2.1"), ("network", "v2.0")):
            service = token.add_service(kind)
            for region in names:
                hangs = kind == "compute" and region != "R1"
                host = url_of_others if hangs else f"http://{kind}.{region.lower()}.test"
                url = f"{host}/{path}"
                service.add_standard_endpoints(public=url, internal=url, admin=url, region=region)
        web.get(KEYSTONE, json=fixture.V3Discovery(KEYSTONE))
        web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t"})
        web.get(re.compile(r"http://(compute|network)\.r[0-9]\.test"), json={})
        web.get(re.compile(url_of_others), real_http=True)
        auth = v3.Password(auth_url=KEYSTONE, username="blazar", password="p", project_name="service")
        yield {region: Access(Credentials(auth=auth, region=region, timeout=HANGS, attempts=1)) for region in names}


class Manager:
    """Takes requests with the threads of a pool, each of which makes one call; ``"none"``: no call at all."""

    def __init__(self, clouds: dict[str, Access], threads: ThreadPoolExecutor, pool: Pool) -> None:
        def leases(project_id: str) -> tuple[()]:
            if project_id != "none":
                region, service = project_id.split()
                getattr(clouds[region], service).get("/x")
            return ()

        self._threads = threads
        self._endpoint = Endpoint(SimpleNamespace(leases=SimpleNamespace(revisions=leases)), pool=pool)

    def ask(self, what: str) -> Future[dict[str, str]]:
        return self._threads.submit(self._endpoint.ask, {}, "leases.revisions", {"project_id": f'"{what}"'})


@pytest.mark.slow
def test_a_burst_of_requests_on_a_service_that_hangs_leaves_threads_for_others():
    # The threads are last: calls that hang end when the server that is silent is gone.
    with ThreadPoolExecutor(THREADS) as threads, silent() as nowhere, regions(2, nowhere) as clouds:
        ask = Manager(clouds, threads, replace(REQUESTS, patience=BUSY, crowd=Crowd())).ask
        for warm in ("R1 compute", "R2 network"):
            assert "error" not in ask(warm).result(SLACK)
        burst = [ask("R2 compute") for _ in range(8 * THREADS)]
        others = [ask(what) for _ in range(THREADS) for what in ("R1 compute", "R2 network")]
        done, late = wait(others, timeout=SLACK)
        assert not late, f"{len(late)} of {len(others)} were not answered after {SLACK} s"
        assert all("error" not in each.result() for each in done)
        ended = ended_of(burst, len(burst) - THREADS + ThreadLimits.of(REQUESTS).kept)
        assert {"Nova of R2 answers too slowly" in str(each.result()) for each in ended} == {True}


def ended_of(burst: list[Future[dict[str, str]]], least: int) -> list[Future[dict[str, str]]]:
    """Return the requests that have an answer, as soon as so many have one."""
    last = time.monotonic() + SLACK
    while len(ended := [each for each in burst if each.done()]) < least:
        assert time.monotonic() < last, f"only {len(ended)} of {least} have an answer"
        time.sleep(0.01)
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("hanging", [2, 3, 5])
def test_however_many_regions_hang_at_once_there_are_threads_for_the_others(hanging):
    pool = Pool("requests", THREADS, regions=hanging + 1, patience=BUSY)
    with ThreadPoolExecutor(THREADS) as threads, silent() as nowhere, regions(hanging + 1, nowhere) as clouds:
        ask = Manager(clouds, threads, pool).ask
        assert "error" not in ask("R1 compute").result(SLACK)
        burst = [ask(f"R{number + 2} compute") for _ in range(2 * THREADS) for number in range(hanging)]
        others = [ask(what) for _ in range(THREADS) for what in ("R1 compute", "R1 network", "none")]
        done, late = wait(others, timeout=SLACK)
        assert not late, f"{len(late)} of {len(others)} were not answered after {SLACK} s"
        assert all("error" not in each.result() for each in done)
        ended_of(burst, len(burst) - THREADS + ThreadLimits.of(pool).kept)


@pytest.mark.slow
def test_a_service_that_answers_slowly_is_refused_to_nobody_while_there_are_threads():
    with slow(3 * REQUESTS.patience) as url, regions(2, url) as clouds, ThreadPoolExecutor(THREADS) as threads:
        pool = replace(REQUESTS, crowd=Crowd())
        ask = Manager(clouds, threads, pool).ask
        answers = [ask("R2 compute") for _ in range(THREADS - ThreadLimits.of(pool).kept)]
        others = [ask("R1 compute") for _ in range(THREADS)]
        assert all("error" not in each.result(SLACK) for each in others)
        assert [each.result() for each in answers if "error" in each.result()] == []


@contextmanager
def slow(seconds: float) -> Iterator[str]:
    """A server that answers each request after so many seconds."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            threading.Event().wait(seconds)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
