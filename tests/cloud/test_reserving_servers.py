# SPDX-License-Identifier: Apache-2.0
"""A lease of servers from request to release on a real OpenStack."""

from __future__ import annotations

import base64

import pytest

from tests.cloud.deployment import Deployment, in_minutes
from tests.contract.test_booting import RealNova
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

SECRET = base64.b64encode(b"#!/bin/sh").decode()
SIZE = {"vcpus": 1, "memory_mb": 64, "disk_gb": 1}


@pytest.fixture
def nova():
    """The project ``demo``, whose user has a key pair."""
    real = RealNova()
    try:
        yield real
    finally:
        real.clean()


@pytest.fixture
def nothing_left(service: Deployment):
    """Each test begins without leases."""
    yield
    service.forget_leases()


def room(nova: RealNova, **more):
    return {"resource_type": "virtual:server", **SIZE, "image": nova.image, "networks": "none", **more}


def of_flavor(nova: RealNova, reservation_id: str) -> dict[str, str]:
    """Return the status of the servers of a reservation, by name."""
    return {each.name: each.status for each in nova.cloud.compute.servers_of_flavor(reservation_id)}


def test_servers_from_request_to_release(service: Deployment, nova: RealNova):
    network = nova.new_network()
    wanted = room(nova, name="web", networks=[{"uuid": network}], key_name="mine", user_data=SECRET)
    lease = service.create(body={"reservations": [wanted]})
    (reservation,) = service.reaches(lease["id"], "ACTIVE")["reservations"]
    (server_id,) = reservation["server_ids"]
    assert SECRET not in f"{lease} {reservation}"
    assert of_flavor(nova, reservation["id"]) == {"web": "ACTIVE"}
    shown = nova.shown(server_id)
    assert (shown["user_data"], shown["has_key"]) == (SECRET, True)
    assert nova.cloud.compute.flavor_access(reservation["id"]) == frozenset()

    answer = service.call(
        "demo", "PUT", f"/leases/{lease['id']}", {"reservations": [{"id": reservation["id"], "amount": 2}]}
    )
    assert answer.status == 200, answer
    assert of_flavor(nova, reservation["id"]) == {"web": "ACTIVE", "web-1": "ACTIVE"}
    (reservation,) = service.lease(lease["id"])["reservations"]
    assert len(reservation["server_ids"]) == 2

    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert [nova.cloud.booting.booted_server(id_) for id_ in reservation["server_ids"]] == [None, None]
    assert nova.cloud.compute.flavor(reservation["id"]) is None


def test_what_belongs_to_others_is_refused_and_a_deletion_before_the_start_leaves_nothing(service, nova):
    foreign = {
        "image": nova.new_image(own=False),
        "networks": [{"uuid": nova.new_network(own=False)}],
        "key_name": "theirs",
        "flavor": "no-such-flavor",
    }
    for field, value in foreign.items():
        answer = service.call("demo", "POST", "/leases", _body(room(nova, **{field: value})))
        assert (answer.status, field in str(answer.body)) == (404, True), answer
    lease = service.create(
        body={"reservations": [room(nova)], "start_date": in_minutes(30), "end_date": in_minutes(60)}
    )
    reservation = lease["reservations"][0]["id"]
    assert nova.cloud.compute.flavor(reservation) is not None
    assert service.call("demo", "DELETE", f"/leases/{lease['id']}").status in (200, 204)
    assert eventually(lambda: nova.cloud.compute.flavor(reservation), lambda left: left is None) is None


def _body(reservation):
    dates = {"start_date": in_minutes(10), "end_date": in_minutes(20)}
    return {"name": "foreign", **dates, "events": [], "reservations": [reservation]}
