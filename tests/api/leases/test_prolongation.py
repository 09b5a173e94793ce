# SPDX-License-Identifier: Apache-2.0
"""Microversion 1.1: leases that are prolonged by themselves."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.leases.test_waiting import ask, fault
from tests.world import NOON

LEASE = {
    "name": "ours",
    "end_date": "+3h",
    "extend_if_free": {"until": "+1d"},
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}


def test_a_lease_says_up_to_when_it_is_prolonged_and_is(http, world):
    lease = ask(http, body=LEASE).json["lease"]
    assert lease["extend_if_free"] == {"until": "2030-04-02T15:00:00Z", "reason": None}
    world.run_to(NOON + timedelta(hours=2))
    assert world.manager.prolongation.run_once() == 1
    lease = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]
    assert (lease["end_date"], lease["status"], lease["extend_if_free"]) == ("2030-04-02T15:00:00Z", "ACTIVE", None)


def test_a_change_sets_it_and_null_ends_it(http):
    lease = ask(http, body={**LEASE, "extend_if_free": None}).json["lease"]
    path = f"/v1/leases/{lease['id']}"
    assert lease["extend_if_free"] is None
    asked = {"extend_if_free": {"until": "2030-04-01T20:00:00Z"}}
    changed = ask(http, "PUT", path, {**asked, "name": "theirs"}).json["lease"]
    assert (changed["name"], changed["extend_if_free"]["until"]) == ("theirs", "2030-04-01T20:00:00Z")
    kept = ask(http, "PUT", path, {"end_date": "+4h"}).json["lease"]
    assert kept["extend_if_free"]["until"] == "2030-04-01T20:00:00Z"
    assert ask(http, "PUT", path, {"extend_if_free": None}).json["lease"]["extend_if_free"] is None


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"until": "+800d"}, "/extend_if_free/until"),
        ({"until": "2030-04-01T15:00:00Z"}, "/extend_if_free/until"),
        ({"until": "now"}, "/extend_if_free/until"),
        ({"until": "always"}, "/extend_if_free/until"),
        ({"until": None}, "/extend_if_free/until"),
        ({}, "/extend_if_free/until"),
        ({"until": "+1d", "by": "+1h"}, "/extend_if_free/by"),
        (True, "/extend_if_free"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(http, asked, pointer):
    assert fault(ask(http, body={**LEASE, "extend_if_free": asked}))[::2] == (400, pointer)
    lease = ask(http, body={**LEASE, "extend_if_free": None}).json["lease"]
    assert fault(ask(http, "PUT", f"/v1/leases/{lease['id']}", {"extend_if_free": asked}))[::2] == (400, pointer)


def test_1_0_knows_nothing_of_it(http):
    lease = ask(http, body=LEASE).json["lease"]
    shown = ask(http, "GET", f"/v1/leases/{lease['id']}", version="1.0").json["lease"]
    assert "extend_if_free" not in shown
