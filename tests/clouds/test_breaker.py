# SPDX-License-Identifier: Apache-2.0
"""A service that does not answer costs few threads, for a short time, and nothing of other services and regions."""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests_mock
from keystoneauth1 import fixture
from keystoneauth1.identity import v3

from blazar.clouds.openstack import Access, Credentials
from blazar.clouds.openstack.breaker import FAILURES, PATIENCE, PAUSE, WAITING, Breaker
from blazar.model.base.errors import CloudUnavailable

KEYSTONE = "http://keystone.test:5000/v3"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return Breaker("Nova of R2", clock=clock)


def waited_in_vain(breaker, clock, seconds=20.0):
    """Make a call that ends without an answer."""
    with breaker.call():
        clock.now += seconds


def answered(breaker):
    with breaker.call() as call:
        call.note_answer()


def opened(breaker, clock):
    for _ in range(FAILURES):
        waited_in_vain(breaker, clock)


def test_after_some_calls_that_were_waited_for_in_vain_the_next_are_refused_at_once(breaker, clock, caplog):
    opened(breaker, clock)
    for _ in range(5):
        with pytest.raises(CloudUnavailable, match="Nova of R2 has not answered for 60 s"), breaker.call():
            raise AssertionError("no call is made")
    (said,) = [each.message for each in caplog.records if each.levelno == logging.WARNING]
    assert "Nova of R2 does not answer" in said


def test_one_call_looks_whether_it_is_back_and_the_others_go_on_when_it_is(breaker, clock, caplog):
    caplog.set_level(logging.INFO)
    opened(breaker, clock)
    clock.now += PAUSE
    with breaker.call() as look:
        with pytest.raises(CloudUnavailable), breaker.call():
            raise AssertionError("one is enough")
        look.note_answer()
    answered(breaker)
    assert "Nova of R2 answers again" in caplog.text


def test_a_look_in_vain_closes_it_again_and_is_not_logged_again(breaker, clock, caplog):
    opened(breaker, clock)
    clock.now += PAUSE
    waited_in_vain(breaker, clock)
    with pytest.raises(CloudUnavailable), breaker.call():
        raise AssertionError("no call is made")
    assert caplog.text.count("does not answer") == 1


def test_an_answer_in_between_begins_the_count_again(breaker, clock):
    for _ in range(3):
        for _ in range(FAILURES - 1):
            waited_in_vain(breaker, clock)
        answered(breaker)


def test_what_fails_at_once_costs_no_thread_and_does_not_count(breaker, clock):
    for _ in range(50):
        waited_in_vain(breaker, clock, 0.1)
    answered(breaker)


def test_a_service_that_has_just_stopped_to_answer_is_waited_for_by_few(breaker, clock):
    calls = [breaker.call() for _ in range(WAITING)]
    for call in calls:
        call.__enter__()
    answered(breaker)
    clock.now += PATIENCE + 1
    with pytest.raises(CloudUnavailable, match="8 calls wait"), breaker.call():
        raise AssertionError("no call is made")
    calls.pop().__exit__(None, None, None)
    answered(breaker)


def test_a_service_with_many_calls_that_answers_is_called_by_all(breaker, clock):
    calls = [breaker.call() for _ in range(10 * WAITING)]
    for call in calls:
        call.__enter__().note_answer()
        clock.now += 1
        answered(breaker)
    for call in calls:
        call.__exit__(None, None, None)


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(128)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def an_access(region):
    auth = v3.Password(auth_url=KEYSTONE, username="blazar", password="p", project_name="service")
    return Access(Credentials(auth=auth, region=region, timeout=0.5, attempts=1))


@pytest.mark.slow
def test_threads_that_call_a_silent_region_are_free_soon_and_those_of_another_never_wait():
    token = fixture.V3Token()
    with silent() as nowhere, requests_mock.Mocker() as web:
        nova = token.add_service("compute")
        for region, url in (("R1", "http://nova.r1.test/v2.1"), ("R2", f"{nowhere}/v2.1")):
            nova.add_standard_endpoints(public=url, internal=url, admin=url, region=region)
        web.get(KEYSTONE, json=fixture.V3Discovery(KEYSTONE))
        web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t"})
        web.get("http://nova.r1.test/v2.1/x", json={})
        web.get(re.compile(nowhere), real_http=True)
        here, there = an_access("R1"), an_access("R2")
        took: list[float] = []

        def ask() -> None:
            began = time.monotonic()
            with pytest.raises(CloudUnavailable):
                there.compute.get("/x")
            took.append(time.monotonic() - began)

        here.compute.get("/x")
        first = [threading.Thread(target=ask) for _ in range(FAILURES)]
        for thread in first:
            thread.start()
        for thread in first:
            thread.join()
        began = time.monotonic()
        for _ in range(30):
            ask()
        # Without it: 30 times half a second.
        assert time.monotonic() - began < 5
        assert sorted(took)[len(took) // 2] < 0.1
        assert here.compute.get("/x") == {}
