# SPDX-License-Identifier: Apache-2.0
"""Reads of the cloud that those who ask at the same time share."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta

import pytest

from blazar.clouds.shared_read import MAX_CONCURRENT, SharedRead
from blazar.context import scope
from blazar.model.base.errors import CloudUnavailable


class Turnstile:
    """A lock that counts how often it was let go."""

    def __init__(self) -> None:
        self.passed = 0
        self._changed = threading.Condition()

    def __enter__(self) -> None:
        self._changed.acquire()

    def __exit__(self, *_: object) -> None:
        self.passed += 1
        self._changed.notify_all()
        self._changed.release()

    def count(self) -> int:
        with self._changed:
            return self.passed

    def wait(self, passed: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.passed >= passed, 10)


class Cloud:
    """Answers each read when it is told to."""

    def __init__(self, *, patience: float = 60.0) -> None:
        self.pool = ThreadPoolExecutor(40)
        self.answers: list[Future[object]] = []
        self.read = SharedRead(self._read, wait_seconds=patience)
        self.asked = self.read._lock = Turnstile()
        self._begun = threading.Condition()

    def _read(self) -> object:
        answer: Future[object] = Future()
        with self._begun:
            self.answers.append(answer)
            self._begun.notify_all()
        return answer.result(10)

    def ask(self, count: int) -> list[Future[object]]:
        """Let so many ask; they have, when this returns, and wait for an answer."""
        before = self.asked.count()
        asking = [self.pool.submit(self.read) for _ in range(count)]
        self.asked.wait(before + count)
        return asking

    def until(self, reads: int) -> None:
        """Return when so many reads have begun."""
        with self._begun:
            assert self._begun.wait_for(lambda: len(self.answers) >= reads, 10)
        assert len(self.answers) == reads

    def busy(self) -> list[Future[object]]:
        """Have as many reads under way as may be; return those who asked."""
        first = self.ask(MAX_CONCURRENT)
        self.until(MAX_CONCURRENT)
        return first


@pytest.fixture
def cloud():
    made = Cloud()
    yield made
    made.pool.shutdown()


def test_a_burst_shares_the_next_read_and_none_that_began_before_it(cloud):
    first = cloud.busy()
    burst = cloud.ask(30)
    cloud.until(MAX_CONCURRENT)
    cloud.answers[0].set_result("old")
    cloud.until(MAX_CONCURRENT + 1)
    assert not any(asker.done() for asker in burst)
    late = cloud.ask(5)
    cloud.until(MAX_CONCURRENT + 1)
    cloud.answers[MAX_CONCURRENT].set_result("new")
    assert {asker.result(10) for asker in burst} == {"new"}
    cloud.until(MAX_CONCURRENT + 2)
    cloud.answers[MAX_CONCURRENT + 1].set_result("newest")
    assert {asker.result(10) for asker in late} == {"newest"}
    for answer in cloud.answers[1:MAX_CONCURRENT]:
        answer.set_result("old")
    assert {asker.result(10) for asker in first} == {"old"}
    assert len(cloud.answers) == MAX_CONCURRENT + 2


def test_one_after_another_reads_each_time(cloud):
    for number in range(3):
        (asker,) = cloud.ask(1)
        cloud.until(number + 1)
        cloud.answers[number].set_result(number)
        assert asker.result(10) == number


def test_nobody_is_told_what_was_so_before_the_asking():
    so_far, lock = [0], threading.Lock()

    def slowly():
        seen = so_far[0]
        time.sleep(0.002)
        return seen

    read = SharedRead(slowly)

    def ask(_):
        with lock:
            so_far[0] += 1
            before = so_far[0]
        return read() >= before

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(ask, range(800)))


def test_an_error_is_told_to_those_who_shared_the_read_and_the_next_one_is_a_new_try(cloud):
    first, burst = cloud.busy(), cloud.ask(5)
    cloud.until(MAX_CONCURRENT)
    cloud.answers[0].set_result("old")
    cloud.until(MAX_CONCURRENT + 1)
    cloud.answers[MAX_CONCURRENT].set_exception(CloudUnavailable("Nova is away"))
    for asker in burst:
        with pytest.raises(CloudUnavailable, match="Nova is away"):
            asker.result(10)
    (later,) = cloud.ask(1)
    cloud.until(MAX_CONCURRENT + 2)
    cloud.answers[-1].set_result("well")
    assert later.result(10) == "well"
    cloud.answers[1].set_result("old")
    assert {asker.result(10) for asker in first} == {"old"}


def test_a_bug_in_one_thread_is_no_answer_for_others(cloud):
    first, burst = cloud.busy(), cloud.ask(5)
    cloud.until(MAX_CONCURRENT)
    cloud.answers[0].set_result("old")
    cloud.until(MAX_CONCURRENT + 1)
    cloud.answers[MAX_CONCURRENT].set_exception(ZeroDivisionError())
    cloud.until(MAX_CONCURRENT + 5)
    for answer in (cloud.answers[1], *cloud.answers[MAX_CONCURRENT + 1 :]):
        answer.set_result("own")
    failed = [asker for asker in burst if isinstance(asker.exception(10), ZeroDivisionError)]
    assert len(failed) == 1
    assert {asker.result(10) for asker in burst if asker not in failed} == {"own"}
    assert all(asker.result(10) for asker in first)


def test_who_has_a_limit_waits_for_nobody(cloud):
    def in_time():
        with scope(limit=timedelta(seconds=5)):
            return cloud.read()

    first = cloud.busy()
    hurried = cloud.pool.submit(in_time)
    cloud.until(MAX_CONCURRENT + 1)
    cloud.answers[-1].set_result("at once")
    assert hurried.result(10) == "at once"
    for answer in cloud.answers[:MAX_CONCURRENT]:
        answer.set_result("old")
    assert {asker.result(10) for asker in first} == {"old"}


def test_calls_that_hang_delay_nobody_else_for_long():
    cloud = Cloud(patience=0.01)
    first = cloud.busy()
    second = cloud.ask(2)
    # The one that was to make the next call makes it, and the one that was to share it reads alone.
    cloud.until(MAX_CONCURRENT + 2)
    for answer in cloud.answers[MAX_CONCURRENT:]:
        answer.set_result("new")
    assert {asker.result(10) for asker in second} == {"new"}
    for answer in cloud.answers[:MAX_CONCURRENT]:
        answer.set_result("old")
    assert {asker.result(10) for asker in first} == {"old"}
    cloud.pool.shutdown()
