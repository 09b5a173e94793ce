# SPDX-License-Identifier: Apache-2.0
"""Parameters that are newer than their resource type: before their microversion they are refused, and not shown."""

from __future__ import annotations

import pytest

from tests.api.conftest import app_of
from tests.api.test_references import ask, create
from tests.world import World

SUBNET = {"cidr": "10.0.0.0/24"}
LAB = {"resource_type": "network", "network_name": "lab", "subnet": SUBNET}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite, register=False)
    world.register_segments(101)
    return world


@pytest.fixture
def http(world):
    return app_of(world.manager).test_client()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_before_1_2_a_subnet_is_refused_and_not_shown(http, world, version):
    refused = create(http, version, LAB)
    assert (refused.status_code, "subnet" in refused.text) == (400, True)
    if version == "1.0":
        assert "reservations[0].subnet is unknown at microversion 1.0" in refused.text
        assert "OpenStack-API-Version: reservation 1.2" in refused.text
    made = create(http, "1.2", LAB).json["lease"]
    assert made["reservations"][0]["subnet"]["cidr"] == SUBNET["cidr"]
    path = f"/v1/leases/{made['id']}"
    for where in (path, "/v1/leases"):
        assert "subnet" not in ask(http, "GET", where, version).text
        assert "subnet" in ask(http, "GET", where, "1.2").text
    change = {"reservations": [{"id": made["reservations"][0]["id"], "subnet": None}]}
    refused = ask(http, "PUT", path, version, change)
    assert (refused.status_code, "subnet" in refused.text) == (400, True)
    # What these versions do not know stays.
    change = {"reservations": [{"id": made["reservations"][0]["id"], "network_name": "other"}]}
    assert ask(http, "PUT", path, version, change).status_code == 200
    assert ask(http, "GET", path, "1.2").json["lease"]["reservations"][0]["subnet"]["cidr"] == SUBNET["cidr"]


def test_version_two_of_the_api_knows_no_subnet(http):
    dates = {"start_date": "2030-04-02 12:00", "end_date": "2030-04-03 12:00"}
    refused = ask(http, "POST", "/v2/leases", "1.0", {"name": "lab", **dates, "reservations": [LAB]})
    assert (refused.status_code, "subnet" in refused.text) == (400, True)


def test_a_question_when_a_network_with_a_subnet_is_free_needs_1_2(http):
    question = {"reservations": [LAB], "duration": "PT1H"}
    asked = {version: ask(http, "POST", "/v1/availability", version, question) for version in ("1.1", "1.2")}
    assert {version: answer.status_code for version, answer in asked.items()} == {"1.1": 400, "1.2": 200}


@pytest.mark.parametrize("id_", [[], {}, [{"uuid": "x"}]])
def test_an_id_of_a_reservation_that_is_no_text_is_no_error_of_the_service(http, id_):
    """It has no meaning in a request for a lease of 1.0, and names no reservation in a change."""
    assert create(http, "1.0", {"resource_type": "network", "network_name": "lab", "id": id_}).status_code < 500
    made = create(http, "1.2", {**LAB, "network_name": "other"}).json
    if "lease" in made:
        change = {"reservations": [{"id": id_, "network_name": "third"}]}
        assert ask(http, "PUT", f"/v1/leases/{made['lease']['id']}", "1.0", change).status_code == 400
