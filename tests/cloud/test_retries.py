# SPDX-License-Identifier: Apache-2.0
"""Leases that are tried again on a real OpenStack: a start that Nova refuses, and one that it does not."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.cloud.deployment import NEWEST, Deployment
from tests.contract.test_booting import RealNova
from tests.openstack import Servers, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def nova() -> Iterator[RealNova]:
    """The project ``demo`` as Nova has it."""
    real = RealNova()
    try:
        yield real
    finally:
        real.clean()


def shown(service: Deployment, lease):
    answer = service.call("demo", "GET", f"/leases/{lease['id']}", version=NEWEST)
    assert answer.status == 200, answer
    return answer["lease"]


def reaches(service: Deployment, lease, status: str):
    return eventually(lambda: shown(service, lease), lambda found: found["status"] == status)


@pytest.mark.nightly
def test_a_start_that_a_quota_forbids_is_tried_again_when_it_does_not(
    service: Deployment, nova: RealNova, mine: Servers
):
    nova.allow(servers=1)
    room = {"resource_type": "virtual:server", "vcpus": 1, "memory_mb": 64, "disk_gb": 1, "amount": 1}
    # A start is repeated as long as the lease lasts: that nothing is there by its end is a failed try.
    start, length = datetime.now(UTC) + timedelta(seconds=15), timedelta(seconds=45)
    body = {
        "name": "stubborn",
        "kind": "retries",
        "start_date": start.isoformat(timespec="seconds"),
        "end_date": (start + length).isoformat(timespec="seconds"),
        "wait": {"until": "+PT1H", "tries": 2},
        "reservations": [{**room, "image": nova.image, "networks": "none"}],
    }
    answer = service.call("demo", "POST", "/leases", body, version=NEWEST)
    assert answer.status == 201, answer
    lease = answer["lease"]
    assert (lease["status"], lease["wait"]["tries"], lease["wait"]["failed_tries"]) == ("PENDING", 2, [])
    # The only server that the quota allows is one of the user's own by the time the lease starts.
    own = mine.boot("own")
    assert own["status"] == "ACTIVE", own.get("fault")

    waiting = reaches(service, lease, "WAITING")
    (failed,) = waiting["wait"]["failed_tries"]
    assert failed["reason"]["code"] == "not_started", failed
    assert "quota" in failed["reason"]["message"], failed
    assert waiting["wait"]["queued_at"] == lease["wait"]["queued_at"]
    assert nova.cloud.compute.flavor(lease["reservations"][0]["id"]) is None

    mine.clean()
    started = reaches(service, lease, "ACTIVE")
    assert started["wait"]["failed_tries"] == [failed]
    begin, end = (datetime.fromisoformat(started[key]) for key in ("start_date", "end_date"))
    assert (begin > start + length, end - begin) == (True, length)
    (server,) = nova.cloud.compute.servers_of_flavor(started["reservations"][0]["id"])
    assert server.status == "ACTIVE"
