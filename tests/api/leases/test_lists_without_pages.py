# SPDX-License-Identifier: Apache-2.0
"""Lists of 1.0 and version 2, which have no pages, do not grow with what has ended."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.api.http.routes import Root, Route
from blazar.api.parts import BUILTIN
from tests.api.conftest import app_of, client_of, token
from tests.world import World, a_host, a_network, devices

HOUR = timedelta(hours=1)
OPERATOR = token("root", "demo", "admin")
OF_LEASES = {"list_leases", "list_leases_v2"}
"""They have the last that have ended, as many as ``[api] ended_leases`` says: ``tests/store/test_listed.py``."""


def _without_pages() -> list[Route]:
    rows = [route for part in BUILTIN for route in part.routes if route.root is not Root.SERVICE]
    return [
        route
        for route in rows
        if route.method == "GET" and "{" not in route.path and (route.root is Root.V2 or route.until == (1, 0))
    ]


def _live(world: World, *, ended: int) -> None:
    """Make a lease of each kind that stays, after so many that end; every other one of these is deleted."""
    rooms = (a_host(), a_network(), devices())
    for number in range(ended):
        leases = [world.lease(room, hours=1) for room in rooms]
        world.run_to(world.clock.now() + HOUR + timedelta(minutes=1))
        for lease in leases if number % 2 else ():
            world.manager.leases.delete(lease.id)
    for room in rooms:
        world.lease(room, start=HOUR)


@pytest.fixture
def sizes(world):
    """Return what measures the lists, in bytes."""
    world.register_segments(100)
    world.register_device()
    http = client_of(app_of(world.manager))

    def measure() -> dict[str, int]:
        found = {}
        for route in _without_pages():
            answer = http.get(f"{route.root.value}{route.path}", headers=OPERATOR)
            assert answer.status_code == 200, (route.path, answer.text)
            found[route.name] = len(answer.data)
        return found

    return measure


def test_only_lists_of_leases_grow_with_what_has_ended(world, sizes):
    _live(world, ended=0)
    before = sizes()
    assert before.keys() > OF_LEASES
    assert {"list_allocations", "list_network_allocations", "list_device_allocations"} < before.keys()
    for lease in world.manager.leases.all(None):
        world.manager.leases.delete(lease.id)
    world.run()
    _live(world, ended=6)
    after = sizes()
    assert {name for name in before if after[name] > before[name]} == OF_LEASES
