# SPDX-License-Identifier: Apache-2.0
"""Leases that wait or are prolonged by themselves, on a real OpenStack."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from tests.cloud.deployment import NEWEST, Deployment
from tests.cloud.looks import host_of, pool
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

REGISTERED = {"compute-1", "compute-2", "compute-3"}


def asked(service: Deployment, login: str = "demo", *, minimum: int = 1, **more):
    room = {"resource_type": "physical:host", "min": minimum, **more.pop("room", {})}
    body = {"name": "patient", "end_date": "+PT1H", "reservations": [room], **more}
    answer = service.call(login, "POST", "/leases", body, version=NEWEST)
    assert answer.status == 201, answer
    return answer["lease"]


def shown(service: Deployment, lease, login: str = "demo"):
    answer = service.call(login, "GET", f"/leases/{lease['id']}", version=NEWEST)
    assert answer.status == 200, answer
    return answer["lease"]


def reaches(service: Deployment, lease, status: str, login: str = "demo"):
    return eventually(lambda: shown(service, lease, login), lambda found: found["status"] == status)


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_who_waits_gets_the_hosts_of_a_lease_that_ends(service: Deployment, compute, mine, theirs):
    full = asked(service, "alt_demo", minimum=3)
    reaches(service, full, "ACTIVE", "alt_demo")
    first = asked(service, minimum=2, wait={"until": "+PT2H"})
    second = asked(service, minimum=2, wait={"until": "+PT2H"})
    # Those who do not wait are told of those who do.
    refused = service.call("alt_demo", "POST", "/leases", {**_direct(), "start_date": "now"}, version=NEWEST)
    assert (refused.status, refused["errors"][0]["code"]) == (409, "reservation.others_wait"), refused
    promised = [reaches(service, lease, "PENDING") for lease in (first, second)]
    assert [lease["wait"]["advance"] for lease in promised] == [True, True]
    starts = [instant(lease["start_date"]) for lease in promised]
    assert instant(full["end_date"]) <= starts[0] < starts[1]
    assert pool(compute, first["reservations"][0]["id"]) == set()

    service.end(full["id"], "alt_demo")
    started = reaches(service, first, "ACTIVE")
    reservation = started["reservations"][0]["id"]
    hosts = pool(compute, reservation)
    assert len(hosts) == 2
    server = mine.boot("at last", hint=reservation)
    assert server["status"] == "ACTIVE", server.get("fault")
    assert host_of(server) in hosts
    # One host is left, which is too little for the second.
    assert shown(service, second)["status"] == "PENDING"
    assert len(pool(compute, "freepool") - hosts) == 1

    service.end(first["id"])
    later = reaches(service, second, "ACTIVE")
    assert len(pool(compute, later["reservations"][0]["id"])) == 2


def _direct():
    room = {"resource_type": "physical:host", "min": 1}
    return {"name": "direct", "end_date": "+PT1H", "reservations": [room]}


def test_a_lease_is_prolonged_as_far_as_nobody_else_has_booked(service: Deployment, compute):
    lease = asked(service, minimum=3, end_date="+PT2M", extend_if_free={"until": "+PT1H"})
    active = reaches(service, lease, "ACTIVE")
    asked_end = instant(lease["start_date"]) + timedelta(minutes=2)
    longer = eventually(lambda: shown(service, lease), lambda found: instant(found["end_date"]) > asked_end)
    assert instant(longer["end_date"]) - asked_end == timedelta(hours=1)
    assert pool(compute, active["reservations"][0]["id"]) == REGISTERED


@pytest.mark.nightly
def test_a_lease_is_not_prolonged_over_what_another_has_booked(service: Deployment, compute):
    next_start = datetime.now().astimezone() + timedelta(minutes=5)
    start, end = next_start, next_start + timedelta(hours=1)
    dates = {"start_date": start.isoformat(timespec="seconds"), "end_date": end.isoformat(timespec="seconds")}
    other = asked(service, "alt_demo", minimum=3, **dates)
    lease = asked(service, end_date="+PT2M", extend_if_free={"until": "+PT1H"})
    reaches(service, lease, "ACTIVE")
    longer = eventually(
        lambda: shown(service, lease), lambda found: instant(found["end_date"]) > instant(lease["end_date"])
    )
    assert instant(longer["end_date"]) <= instant(other["start_date"])
    assert shown(service, other, "alt_demo")["start_date"] == other["start_date"]
