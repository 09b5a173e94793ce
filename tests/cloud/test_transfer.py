# SPDX-License-Identifier: Apache-2.0
"""A lease goes to another project on a real OpenStack: what it has in Nova is the taker's then, and nobody else's."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import BlazarError
from tests.cloud.deployment import NEWEST, Deployment, in_minutes
from tests.cloud.looks import host_of, pool
from tests.openstack import Servers, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")


def asked(service: Deployment, room, **more):
    body = {"name": "handed on", "end_date": "+PT1H", "reservations": [room], **more}
    answer = service.call("demo", "POST", "/leases", body, version=NEWEST)
    assert answer.status == 201, answer
    return answer["lease"]


def reaches(service: Deployment, lease, status: str, login: str):
    def shown():
        answer = service.call(login, "GET", f"/leases/{lease['id']}", version=NEWEST)
        assert answer.status == 200, answer
        return answer["lease"]

    return eventually(shown, lambda found: found["status"] == status)


def offered(service: Deployment, lease, to: Servers) -> None:
    body = {"project_id": to.show_project()}
    answer = service.call("demo", "POST", f"/leases/{lease['id']}/transfer", body, version=NEWEST)
    assert answer.status == 201, answer


def accept(service: Deployment, lease):
    return service.call("alt_demo", "POST", f"/transfers/{lease['id']}/accept", version=NEWEST)


def test_hosts_in_use_are_handed_on_when_they_are_empty(service: Deployment, compute, mine, theirs):
    lease = asked(service, {"resource_type": "physical:host", "min": 1})
    reservation = reaches(service, lease, "ACTIVE", "demo")["reservations"][0]["id"]
    server = mine.boot("mine", hint=reservation)
    assert server["status"] == "ACTIVE", server.get("fault")
    refused = service.call(
        "demo", "POST", f"/leases/{lease['id']}/transfer", {"project_id": theirs.show_project()}, version=NEWEST
    )
    assert (refused.status, refused["errors"][0]["code"]) == (409, "reservation.lease_has_servers"), refused
    assert server["id"] in refused["errors"][0]["detail"]
    mine.clean()

    offered(service, lease, theirs)
    (listed,) = service.call("alt_demo", "GET", "/transfers", version=NEWEST)["transfers"]
    assert listed["lease"]["id"] == lease["id"]
    taken = accept(service, lease)
    assert taken.status == 200, taken
    assert service.call("demo", "GET", f"/leases/{lease['id']}", version=NEWEST).status == 404
    host = pool(compute, reservation)
    # Nova lets the taker in, and the giver no more.
    their_server = theirs.boot("theirs", hint=reservation)
    assert their_server["status"] == "ACTIVE", their_server.get("fault")
    assert {host_of(their_server)} == host
    assert mine.boot("too late", hint=reservation)["status"] == "ERROR"

    service.end(lease["id"], "alt_demo")
    eventually(lambda: pool(compute, "freepool"), lambda hosts: host <= hosts)


def test_instances_are_the_takers_with_their_group_and_flavor(service: Deployment, compute, mine, theirs):
    room = {
        "resource_type": "virtual:instance",
        "amount": 1,
        "affinity": False,
        "vcpus": 1,
        "memory_mb": 64,
        "disk_gb": 1,
    }
    lease = asked(service, room, start_date=in_minutes(1))
    reservation = lease["reservations"][0]["id"]
    (group,) = compute.server_groups(f"reservation:{reservation}")
    assert group.project_id == mine.show_project()
    offered(service, lease, theirs)
    assert accept(service, lease).status == 200
    (group,) = compute.server_groups(f"reservation:{reservation}")
    assert group.project_id == theirs.show_project()

    shown = reaches(service, lease, "ACTIVE", "alt_demo")["reservations"][0]["use"]
    assert shown["server_group_id"] == group.id
    server = theirs.boot("theirs", flavor_id=shown["flavor_id"], group=shown["server_group_id"])
    assert server["status"] == "ACTIVE", server.get("fault")
    with pytest.raises(BlazarError):
        mine.boot("mine", flavor_id=shown["flavor_id"])
