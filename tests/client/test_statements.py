# SPDX-License-Identifier: Apache-2.0
"""The client and statements: the library and the commands before the service itself, with the same figures."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from blazarclient.exception import Forbidden, NotFound
from blazarclient.shell import main

from tests.api.conftest import app_of
from tests.client.serving import library, serving
from tests.manager.billing.ledger import HOUR, close, publish
from tests.model.billing.focus_check import check_bill
from tests.world import NOON, World, a_host

OPERATOR, MEMBER = "root:admin:admin", "curie:physics"


@pytest.fixture
def way(sqlite):
    """A service on which a project had two hosts for ten hours of last month, each for one EUR an hour."""
    world = World(sqlite)
    publish(world)
    world.lease(a_host(2), start=HOUR, hours=10)
    close(world, NOON + timedelta(days=31))
    with serving(app_of(world.manager)) as way:
        yield way


def run(way, *words: str, who: str = MEMBER) -> int:
    return main(["--os-auth-type", "admin_token", "--os-token", who, "--os-endpoint", way.url, *words])


def test_the_library_returns_what_the_service_tells(way):
    (statement,) = library(way.url, MEMBER).statements.list()
    assert (statement.month, statement.amount, statement.state) == ("2030-04", "20.00", "final")
    whole = library(way.url, MEMBER).statements.get("2030-04")
    assert [(one.amount, one.start, one.factor) for one in whole.charges] == [("20.000000000", NOON + HOUR, "1")]
    assert tuple(library(way.url, MEMBER).charges.list(month="2030-04")) == whole.charges
    with pytest.raises(NotFound):
        library(way.url, MEMBER).statements.get("2031-01")
    with pytest.raises(Forbidden):
        library(way.url, MEMBER).charges.correct(1, "-1", "slow")
    made = library(way.url, OPERATOR).charges.correct(whole.charges[0].id, "-2.5", "slow")
    assert (made.amount, made.corrects, made.month) == ("-2.500000000", whole.charges[0].id, "2030-05")


def test_the_commands_show_and_correct(way, capsys):
    assert run(way, "statement", "list", "-f", "value", "-c", "month", "-c", "amount") == 0
    assert capsys.readouterr().out == "2030-04 20.00\n"
    assert run(way, "statement", "show", "2030-04", "-f", "json") == 0
    told = capsys.readouterr()
    (row,) = json.loads(told.out)
    assert (row["amount"], row["sku"]) == ("20.000000000", "host")
    assert "Statement 2030-04/physics is final: 20.00 EUR" in told.err
    assert run(way, "charge", "correct", str(row["id"]), "-2.50", "--reason", "slow", who=OPERATOR) == 0
    capsys.readouterr()
    assert run(way, "charge", "list", "--category", "correction", "-f", "value", "-c", "amount") == 0
    assert capsys.readouterr().out == "-2.500000000\n"


def test_a_bill_is_exported_in_the_columns_of_focus(way, capsys):
    assert run(way, "statement", "export", "2030-04") == 0
    bill = capsys.readouterr().out
    check_bill(bill, amount="20.00", currency="EUR")
    assert bill == library(way.url, MEMBER).statements.export("2030-04").replace("\r\n", "\n")
    assert run(way, "statement", "export", "2031-01") != 0
    told = capsys.readouterr()
    assert (told.out, "nothing was charged in that month" in told.err) == ("", True)
