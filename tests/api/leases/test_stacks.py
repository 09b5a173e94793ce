# SPDX-License-Identifier: Apache-2.0
"""Reservations of stacks over HTTP: every version shows them as the document says, through all of their life."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.model.resources.resource import HOST
from tests.api.conftest import token
from tests.resources.stacks.test_life import (
    FLAVORS,
    HOUR,
    MINUTE,
    address,
    server,
    template,
    volume,
)
from tests.world import NOON, World

ADMIN = token("root", "demo", "admin")
VERSIONS = ("1.0", "1.1")
STACK = {
    "resource_type": "virtual:stack",
    "template": template(
        {"word": {"type": "string", "hidden": True}},
        one=server(user_data={"get_param": "word"}),
        disk=volume(),
        outside=address(),
    ),
    "parameters": {"word": "s3cr3t"},
    "environment": "parameter_defaults: {word: s3cr3t}",
}


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.register_pools(1)
    world.register_addresses(100)
    for flavor in FLAVORS:
        world.simulated.operators.offer_flavor(flavor)
    return world


def headers(version, who):
    return {**who, "OpenStack-API-Version": f"reservation {version}"}


def test_every_version_shows_a_stack_and_no_secret_at_every_time(http, world):
    asked = {"name": "x", "start_date": "2030-04-01T13:00Z", "end_date": "2030-04-01T15:00Z", "reservations": [STACK]}
    made = http.post("/v1/leases", json=asked, headers=headers("1.1", token()))
    assert made.status_code == 201, made.text
    lease = made.json["lease"]["id"]
    stack, *children = world.manager.leases.one(lease).reservations

    def look() -> set[tuple[str, bool]]:
        """Return status and flag of the stack, as versions show it; the client holds the answers to the document."""
        shown = set()
        for version in VERSIONS:
            for who in (token(), ADMIN):
                listed = http.get("/v1/leases", headers=headers(version, who))
                one = http.get(f"/v1/leases/{lease}", headers=headers(version, who))
                assert (listed.status_code, one.status_code) == (200, 200)
                assert "s3cr3t" not in listed.text + one.text
                (found,) = one.json["lease"]["reservations"]
                assert found["id"] == stack.id
                if version == "1.1":
                    assert [each["id"] for each in found["children"]] == [each.id for each in children]
                else:
                    assert not any(each.id in one.text for each in children)
                shown.add((found["status"], found["missing_resources"]))
        return shown

    assert look() == {("pending", False)}
    world.run_to(NOON + HOUR)
    assert look() == {("pending", False)}
    world.run_to(NOON + HOUR + MINUTE)
    assert look() == {("active", False)}
    hosts = {each.id: "it burns" for each in world.store.resources.catalog(HOST).resources}
    world.store.resource_health.set_failed(HOST, hosts, at=world.clock.now())
    world.manager.monitor.heal(at_once=True)
    assert look() == {("active", True)}
    world.run_to(NOON + 3 * HOUR + timedelta(minutes=10))
    assert {status for status, _ in look()} == {"deleted"}
