# SPDX-License-Identifier: Apache-2.0
"""Immediate leases on a real OpenStack, over the message bus: hosts with the answer, or nothing."""

from __future__ import annotations

import threading

import pytest

from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment
from tests.cloud.looks import host_of, pool
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

REGISTERED = {"compute-1", "compute-2", "compute-3"}


def now(service: Deployment, minimum: int = 1):
    room = {"resource_type": "physical:host", "min": minimum}
    body = {"name": "ci", "kind": "immediate", "end_date": "+PT1H", "reservations": [room]}
    return service.call("demo", "POST", "/leases", body, version=NEWEST)


def test_hosts_are_there_with_the_answer(service: Deployment, compute, mine):
    answer = now(service)
    assert answer.status == 201, answer
    lease = answer["lease"]
    assert (lease["kind"], lease["status"]) == ("immediate", "ACTIVE")
    reservation = lease["reservations"][0]["id"]
    (host,) = pool(compute, reservation)
    server = mine.boot("job", hint=reservation)
    assert (server["status"], host_of(server)) == ("ACTIVE", host)
    assert "kind" not in service.lease(lease["id"])


def test_of_two_that_race_for_the_last_host_one_gets_it(service: Deployment, compute):
    service.create(minimum=2, maximum=2)
    answers = []
    racing = [threading.Thread(target=lambda: answers.append(now(service))) for _ in range(2)]
    for each in racing:
        each.start()
    for each in racing:
        each.join(90)
    assert sorted(answer.status for answer in answers) == [201, 409], answers


def test_a_host_that_is_not_empty_in_time_is_refused_and_nothing_is_left(service: Deployment, compute):
    with openstack.servers("admin") as operator:
        # It belongs to no reservation, so that Blazar may not delete it.
        assert operator.boot("stray", forced="compute-1")["status"] == "ACTIVE"
        answer = now(service, 3)
        assert (answer.status, answer["errors"][0]["code"]) == (409, "reservation.not_handed_over"), answer
        assert answer["errors"][0]["data"]["reason"]["code"] == "server_in_the_way"
        assert answer.took < 55
        lease_id = answer["errors"][0]["data"]["lease_id"]
        shown = service.call("demo", "GET", f"/leases/{lease_id}", version=NEWEST)["lease"]
        assert (shown["status"], shown["end_reason"]) == ("TERMINATED", "refused")
        assert compute.aggregate(shown["reservations"][0]["id"]) is None
        assert service.call("demo", "GET", "/leases")["leases"] == []
    eventually(lambda: pool(compute, "freepool"), lambda hosts: hosts == REGISTERED)
