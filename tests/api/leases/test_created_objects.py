# SPDX-License-Identifier: Apache-2.0
"""What reservations have made, as leases of microversion 1.1 show it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.api.conftest import app_of, client_of, token
from tests.world import NOON, servers


@pytest.fixture
def started(world):
    lease = world.lease(servers(2))
    world.run_to(NOON + timedelta(minutes=2))
    return world.now(lease)


def reservation(world, lease, version: str = "1.1"):
    sent = {"OpenStack-API-Version": f"reservation {version}", **token()}
    return client_of(app_of(world.manager)).get(f"/v1/leases/{lease.id}", headers=sent).json["lease"]["reservations"][0]


def test_each_server_is_shown_with_the_time_at_which_it_was_seen_to_be_gone(world, started):
    first, second = started.reservations[0].made_ids
    assert reservation(world, started)["made"] == [
        {"id": first, "deleted_at": None},
        {"id": second, "deleted_at": None},
    ]
    world.simulated.compute.begin_server_deletion(first)
    world.manager.sweep.deleted.run_once()
    world.faults.calls.clear()
    assert reservation(world, started)["made"] == [
        {"id": first, "deleted_at": "2030-04-01T12:02:00Z"},
        {"id": second, "deleted_at": None},
    ]
    assert not world.faults.calls, "reading a lease asks no cloud"


def test_after_the_end_nothing_is_there(world, started):
    world.run_to(started.window.end + timedelta(minutes=2))
    assert reservation(world, started)["made"] == []


def test_1_0_shows_nothing_of_it(world, started):
    assert "made" not in reservation(world, started, "1.0")
