# SPDX-License-Identifier: Apache-2.0
"""Leases of so many parts that only some of them are shown from 1.1 on."""

from __future__ import annotations

from datetime import timedelta

import sqlalchemy as sa

from blazar.model.leases.requests import EventRequest, LeaseRequest
from blazar.store.sql.tables import reservations
from tests.api.conftest import token
from tests.world import NOON, a_host, instances

CURIE = {**token(), "OpenStack-API-Version": "reservation 1.1"}
MOST = 100


def shown(http, lease_id):
    answer = http.get(f"/v1/leases/{lease_id}", headers=CURIE)
    assert answer.status_code == 200
    return answer.json["lease"]


def test_a_hundred_events_of_a_lease_are_shown(http, world):
    own = tuple(EventRequest(f"reminder_{number}", NOON + timedelta(hours=2)) for number in range(MOST + 20))
    lease = world.manager.leases.create(
        LeaseRequest(
            name="many events",
            user_id="curie",
            project_id="physics",
            start=NOON + timedelta(hours=1),
            end=NOON + timedelta(hours=3),
            reservations=(a_host(),),
            events=own,
        )
    )
    assert len(world.now(lease).events) > MOST
    events = shown(http, lease.id)["events"]
    assert len(events) == MOST
    # Those of the service are among them.
    assert {"start_lease", "before_end_lease", "end_lease"} <= {each["event_type"] for each in events}


def test_a_hundred_conditions_of_a_lease_are_shown(http, world):
    lease = world.lease(*[instances(vcpus=1, memory_mb=64, disk_gb=1)] * 60, start=timedelta(hours=1))
    with world.engine.begin() as connection:
        connection.execute(sa.update(reservations).values(missing_resources=True, resources_changed=True))
    assert len(lease.reservations) == 60
    assert len(shown(http, lease.id)["conditions"]) == MOST
