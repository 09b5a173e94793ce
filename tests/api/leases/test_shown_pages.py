# SPDX-License-Identifier: Apache-2.0
"""A page that is asked for again has the bytes that an API has that never answered it, in one statement."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.leases.shown_pages import ShownPages
from blazar.model.leases.details import LeaseMark
from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import resources
from tests.api.conftest import token
from tests.prices import publish
from tests.statements import counted
from tests.world import NOON, a_host

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
HOUR = timedelta(hours=1)
CALLERS = (VERSION, {**VERSION, **token("curie", "physics")}, {**VERSION, **token("frida", "art")})
"""The operator, the project whose leases they are, and another one."""
QUESTIONS = ("", "?state=all&with_count=true", "?limit=1&sort_key=name", "?fields=name,reservations", "?state=past")
CASES = max(30, int(os.environ.get("BLAZAR_CASES", "150")) // 10)


def client(world):
    return create_app(world.manager, identity=StandaloneIdentity()).test_client()


def read(http, query, headers):
    answer = http.get(f"/v1/leases{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.data, answer.headers["ETag"]


@pytest.fixture
def http(world):
    return client(world)


def compare(http, world):
    """Compare what an API answers that has answered before with what a new one does."""
    other = client(world)
    for headers in CALLERS:
        for query in QUESTIONS:
            assert read(http, query, headers) == read(other, query, headers), (query, headers)


@pytest.mark.slow
def test_whatever_happens_to_leases_a_known_page_is_as_one_that_is_read_again(http, world):
    compare(http, world)
    first = world.lease(a_host(), start=HOUR, name="first")
    second = world.lease(a_host(), hours=9, name="second — ß")
    compare(http, world)
    world.change(first, name="renamed")
    compare(http, world)
    world.run()
    compare(http, world)
    with world.engine.execution_options(**{WRITES: True}).begin() as connection:
        # As a refresh does that finds another name in the cloud.
        named = {"name": sa.literal("node-") + sa.cast(resources.c.id, sa.String), "revision": resources.c.revision + 1}
        connection.execute(resources.update().values(named))
    compare(http, world)
    world.run_to(NOON + 2 * HOUR)
    compare(http, world)
    waiting = world.lease(a_host(), start=HOUR, hours=30, name="third")
    compare(http, world)
    publish(world)
    world.lease(a_host(), start=50 * HOUR, name="dear")
    compare(http, world)
    world.manager.leases.delete(second.id)
    world.run()
    compare(http, world)
    world.manager.leases.delete(waiting.id)
    world.run_to(NOON + 60 * HOUR)
    compare(http, world)


def test_a_known_page_shows_the_region_that_was_given_to_what_had_none(http, world):
    world.lease(a_host(), start=HOUR)
    compare(http, world)
    world.store.regions.adopt_region("R1")
    ((shown,),) = [one["reservations"] for one in http.get("/v1/leases", headers=VERSION).json["leases"]]
    assert shown["region"] == "R1"
    compare(http, world)


def test_a_page_that_is_asked_for_again_is_one_statement_and_a_changed_lease_three_more(http, world):
    lease = world.lease(a_host(), start=HOUR)
    world.lease(a_host(), start=HOUR)
    for expected in (4, 1):
        with counted(world.engine) as statements:
            read(http, "", VERSION)
        assert statements.count == expected
    world.change(lease, name="renamed")
    for expected in (4, 1):
        with counted(world.engine) as statements:
            read(http, "", VERSION)
        assert statements.count == expected


@settings(max_examples=CASES)
@given(st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 3000), max_size=4)), max_size=20))
def test_pages_that_are_kept_are_the_last_ones_and_never_too_many(answers):
    pages, asked = ShownPages(most_bytes=8000), []
    for question, sizes in answers:
        texts = {LeaseMark(str(number), 1, 0): "x" * size for number, size in enumerate(sizes)}
        pages.keep(question, texts)
        asked = [(q, t) for q, t in asked if q != question] + [(question, texts)] * bool(texts)
        left = dict(asked)
        while len(left) + sum(len(text) + 400 for texts in left.values() for text in texts.values()) > 8000:
            del left[next(iter(left))]
        asked = list(left.items())
        assert pages.size <= 8000
        assert all(pages.find(q) == left.get(q, {}) for q in range(6))
        # To look at them in order leaves them in this order.
        for q, _ in asked:
            pages.find(q)


def test_questions_that_have_no_answer_or_are_long_do_not_fill_the_memory():
    pages = ShownPages(most_bytes=8000)
    for number in range(1000):
        pages.keep(f"name={number}", {})
    assert pages.size == 0
    assert len(pages) == 0
    for number in range(1000):
        pages.keep(f"name={number}{'x' * 3000}", {LeaseMark("a", 1, 0): "{}"})
    assert pages.size <= 8000
    assert len(pages) == 2
