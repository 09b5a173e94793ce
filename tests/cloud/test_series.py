# SPDX-License-Identifier: Apache-2.0
"""A series of leases on a real OpenStack: each occurrence has its hosts in its own time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.cloud.deployment import NEWEST, Deployment
from tests.cloud.looks import pool

pytestmark = pytest.mark.usefixtures("nothing_left")


def local(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%S}"


def test_each_occurrence_has_hosts_in_its_time_and_gives_them_back(service: Deployment, compute, mine):
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=8)
    second = first + timedelta(seconds=35)
    body = {
        "name": "practical",
        "rule": "FREQ=DAILY;COUNT=1",
        "start": local(first),
        "rdates": [local(second)],
        "duration": "PT20S",
        "reservations": [{"resource_type": "physical:host", "min": 2}],
    }
    answer = service.call("demo", "POST", "/series", body, version=NEWEST)
    assert answer.status == 201, answer
    series = answer["series"]
    leases = [occurrence["lease_id"] for occurrence in series["occurrences"]]
    assert len(set(leases)) == 2

    reservation = service.reaches(leases[0], "ACTIVE")["reservations"][0]["id"]
    assert len(pool(compute, reservation)) == 2
    assert service.lease(leases[1])["status"] == "PENDING"
    server = mine.boot("lesson", hint=reservation)
    assert server["status"] == "ACTIVE", server.get("fault")
    service.reaches(leases[0], "TERMINATED")
    assert compute.aggregate(reservation) is None

    again = service.reaches(leases[1], "ACTIVE")["reservations"][0]["id"]
    assert len(pool(compute, again)) == 2
    # What ran in the first one is gone: the next has empty hosts.
    assert all(compute.servers_on(host) == () for host in pool(compute, again))
    service.reaches(leases[1], "TERMINATED")
    path = f"/series/{series['id']}"
    over = service.call("demo", "GET", path, version=NEWEST)["series"]
    assert [occurrence["state"] for occurrence in over["occurrences"]] == ["over", "over"]
