# SPDX-License-Identifier: Apache-2.0
"""All that is measured can be: on a few resources, as what it uses of the service is there under the name it has."""

from __future__ import annotations

import pytest

from bench import ended, maintenance, requests, starts
from bench.ground import Ground, database
from bench.kinds import KINDS
from bench.requests import SORT_KEYS
from blazar.store.resources import inventory

pytestmark = pytest.mark.slow

HOSTS, LEASES = 20, 40
OF_ALL = {"show", "find a time", "calendar", "calendar, operator", "capacity", "list", "list, past", "list, cold"}


@pytest.mark.parametrize("name", KINDS)
def test_each_request_of_a_type(name):
    figures = list(requests.measure("sqlite", [HOSTS], [LEASES], [KINDS[name]], lambda figure: None))
    measured = {figure.request for figure in figures}
    assert measured >= OF_ALL | {f"list by {key}" for key in SORT_KEYS} | set(KINDS[name].lists)
    assert measured & set(KINDS[name].creates)
    assert all(figure.median_ms > 0 and figure.statements > 0 for figure in figures)


def test_resources_of_a_ground_never_clash(monkeypatch):
    monkeypatch.setattr(inventory, "new_label", lambda kind: "h-0123ab")
    with database("sqlite") as engine:
        assert len(Ground(engine, HOSTS).ids) == HOSTS


def test_creators_who_book_at_once():
    made = requests.throughput("sqlite", hosts=HOSTS, leases=LEASES, each=1)
    assert (made["created"], made["refused"]) == (requests.CREATORS, 0)


def test_starts_at_once():
    started = starts.burst("sqlite", KINDS["physical:host"], count=3)
    assert started["starts"] == 3
    assert started["last_late_s"] < 60


def test_a_start_beside_many():
    assert starts.crowd("sqlite", count=20)["other_late_s"] < 60


def test_starts_beside_slow_ends():
    assert starts.beside_slow_ends("sqlite", starts=2, ends=1)["ends_still_going"] == 1


def test_requests_before_and_after_leases_that_have_ended(postgresql_url):
    """The fixture skips where there is no PostgreSQL; the bench makes a database of its own."""
    found = list(ended.measure(hosts=HOSTS, leases_now=LEASES, ended=3 * LEASES, turns=1))
    assert {"page of 100", "calendar"} <= {figure["request"] for figure in found}
    assert all(figure["ratio"] > 0 for figure in found)


def test_a_window_over_leases_of_one_type_and_of_several(monkeypatch):
    for name, small in {"HOSTS": HOSTS, "LEASES": LEASES, "MIXED_HOSTS": HOSTS, "MIXED_LEASES": (LEASES,)}.items():
        monkeypatch.setattr(maintenance, name, small)
    planned = [*maintenance.plan("sqlite"), *maintenance.mixed("sqlite")]
    assert [window["hosts"] for window in planned] == [1, 10, 2]
    assert all(window["affected"] for window in planned)
