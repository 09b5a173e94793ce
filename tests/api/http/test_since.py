# SPDX-License-Identifier: Apache-2.0
"""Parameters that are newer than their resource type: 1.0 refuses them, and does not show them."""

from __future__ import annotations

import pytest

from tests.api.conftest import app_of
from tests.api.leases.test_references import ask, create
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


def test_at_1_0_a_subnet_is_refused_and_not_shown(http):
    refused = create(http, "1.0", LAB)
    assert (refused.status_code, "subnet" in refused.text) == (400, True)
    assert "reservations[0].subnet is unknown at microversion 1.0" in refused.text
    assert "OpenStack-API-Version: reservation 1.1" in refused.text
    made = create(http, "1.1", LAB).json["lease"]
    assert made["reservations"][0]["subnet"]["cidr"] == SUBNET["cidr"]
    path = f"/v1/leases/{made['id']}"
    for where in (path, "/v1/leases"):
        assert "subnet" not in ask(http, "GET", where, "1.0").text
        assert "subnet" in ask(http, "GET", where, "1.1").text
    change = {"reservations": [{"id": made["reservations"][0]["id"], "subnet": None}]}
    refused = ask(http, "PUT", path, "1.0", change)
    assert (refused.status_code, "subnet" in refused.text) == (400, True)
    # What it does not know stays.
    change = {"reservations": [{"id": made["reservations"][0]["id"], "network_name": "other"}]}
    assert ask(http, "PUT", path, "1.0", change).status_code == 200
    assert ask(http, "GET", path, "1.1").json["lease"]["reservations"][0]["subnet"]["cidr"] == SUBNET["cidr"]


def test_version_two_of_the_api_knows_no_subnet(http):
    dates = {"start_date": "2030-04-02 12:00", "end_date": "2030-04-03 12:00"}
    refused = ask(http, "POST", "/v2/leases", "1.0", {"name": "lab", **dates, "reservations": [LAB]})
    assert (refused.status_code, "subnet" in refused.text) == (400, True)


def test_it_is_asked_when_a_network_with_a_subnet_is_free(http):
    question = {"reservations": [LAB], "duration": "PT1H"}
    assert ask(http, "POST", "/v1/availability", "1.1", question).status_code == 200


@pytest.mark.parametrize("id_", [[], {}, [{"uuid": "x"}]])
def test_an_id_of_a_reservation_that_is_no_text_is_no_error_of_the_service(http, id_):
    """It has no meaning in a request for a lease of 1.0, and names no reservation in a change."""
    assert create(http, "1.0", {"resource_type": "network", "network_name": "lab", "id": id_}).status_code < 500
    made = create(http, "1.1", {**LAB, "network_name": "other"}).json
    if "lease" in made:
        change = {"reservations": [{"id": id_, "network_name": "third"}]}
        assert ask(http, "PUT", f"/v1/leases/{made['lease']['id']}", "1.0", change).status_code == 400
