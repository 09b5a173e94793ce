# SPDX-License-Identifier: Apache-2.0
"""The client and leases that are booked to be confirmed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from blazarclient.exception import Conflict
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.world import NOON, World

WHO = "curie:physics"
BY = NOON + timedelta(minutes=10)
HOST = {"resource_type": "physical:host", "min": 1}


@pytest.fixture
def way(world: World):
    with serving(app_of(world.manager)) as way:
        yield way


@pytest.fixture
def run(way, capsys):
    login = ("--os-auth-type", "admin_token", "--os-token", WHO, "--os-endpoint", way.url)

    def run(*arguments: str) -> tuple[int, str, str]:
        code = main([*login, *arguments])
        out, error = capsys.readouterr()
        return code, out, error

    return run


def book(way, **more):
    dates = {"start_date": NOON + timedelta(hours=2), "end_date": NOON + timedelta(hours=4)}
    return library(way.url, WHO).leases.create("training", reservations=[HOST], **dates, **more)


def test_a_lease_is_booked_and_confirmed(way, run):
    lease = book(way, confirm_within="PT10M")
    assert lease.confirm_by == BY
    assert "or it is deleted" in run("lease", "show", "training", "--long")[1]
    code, out, _ = run("lease", "confirm", "training")
    assert (code, "training" in out) == (0, True)
    assert library(way.url, WHO).leases.get(lease.id).confirm_by is None
    assert "or it is deleted" not in run("lease", "show", "training", "--long")[1]


def test_who_books_reads_how_to_confirm(way, run):
    dates = (
        "--start",
        "2030-04-01 14:00",
        "--end",
        "2030-04-01 16:00",
        "--reservation",
        "resource_type=physical:host,min=1,max=1",
    )
    code, out, told = run("lease", "create", "practical", *dates, "--confirm-within", "10m")
    (lease,) = library(way.url, WHO).leases.list()
    assert (code, lease.id in out) == (0, True)
    assert f"It is deleted in 10m, unless it is confirmed: lease confirm {lease.id}" in told


def test_what_nobody_confirms_is_gone(way, run, world):
    lease = book(way, confirm_within="PT10M")
    world.run_to(BY)
    leases = library(way.url, WHO).leases
    assert leases.get(lease.id).end_reason == "unconfirmed"
    with pytest.raises(Conflict, match="book another one"):
        leases.confirm(lease.id)


def test_a_firm_one_is_not_confirmed(way, run):
    book(way)
    code, _, error = run("lease", "confirm", "training")
    assert code != 0
    assert "the lease is firm" in error
