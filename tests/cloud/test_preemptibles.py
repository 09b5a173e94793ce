# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers on a real OpenStack: they give way to leases, and nobody else's servers do."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from tests import openstack
from tests.cloud.deployment import in_minutes
from tests.cloud.looks import gone, pool
from tests.openstack import Servers, eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

ALLOWED = "allow_preemptibles = true"


@pytest.fixture
def operator() -> Iterator[Servers]:
    with openstack.servers("admin") as servers:
        yield servers


@pytest.fixture
def spot(compute: Any, operator: Servers, mine: Servers) -> Iterator[str]:
    """A preemptible flavor that operator and user may use."""
    id_ = str(uuid.uuid4())
    compute.create_flavor(Flavor(id_, f"spot-{id_}", 4, 512, 1, extra_specs={"blazar:preemptible": "true"}))
    for servers in (operator, mine):
        compute.grant_flavor(id_, servers.show_project())
    yield id_
    compute.delete_flavor(id_)


def closed(compute: Any) -> set[str]:
    return {key for key in compute.aggregate("freepool").metadata if key.startswith("blazar:closed:")}


def test_a_preemptible_server_goes_when_a_lease_starts_on_its_host(service, operator, compute, spot):
    there = operator.boot("spot", flavor_id=spot, forced="compute-1")
    elsewhere = operator.boot("elsewhere", flavor_id=spot, forced="compute-2")
    assert there["status"] == elsewhere["status"] == "ACTIVE"
    lease = service.reaches(service.create(host="compute-1")["id"], "ACTIVE")
    assert gone(operator, there)
    assert not gone(operator, elsewhere)
    assert pool(compute, lease["reservations"][0]["id"]) == {"compute-1"}
    assert pool(compute, "freepool") == {"compute-2", "compute-3"}
    assert closed(compute) == set()


@pytest.mark.nightly
def test_a_server_that_is_not_preemptible_stops_its_host_alone_and_stays(service, operator, compute, spot):
    stray = operator.boot("stray", forced="compute-2")
    beside = operator.boot("beside", flavor_id=spot, forced="compute-2")
    mine = operator.boot("spot", flavor_id=spot, forced="compute-3")
    assert {server["status"] for server in (stray, beside, mine)} == {"ACTIVE"}
    made = service.create(minimum=3, maximum=3)
    reservation = made["reservations"][0]["id"]
    eventually(lambda: pool(compute, reservation), lambda hosts: hosts == {"compute-1", "compute-3"})
    assert gone(operator, mine)
    assert not gone(operator, stray)
    assert not gone(operator, beside)
    assert service.lease(made["id"])["status"] == "STARTING"
    query = f"SELECT reason FROM events WHERE lease_id = '{made['id']}' AND event_type = 'start_lease'"
    told = eventually(lambda: service.sql(query)[0]["reason"], lambda reason: bool(reason) and "compute-2" in reason)
    assert f"host compute-2 runs 1 server that belongs to no reservation, as {stray['id']}" in told
    compute.begin_server_deletion(stray["id"])
    service.reaches(made["id"], "ACTIVE")
    assert gone(operator, beside)
    assert pool(compute, reservation) == {"compute-1", "compute-2", "compute-3"}


@pytest.mark.nightly
def test_slots_have_room_whatever_preemptible_servers_were_there(service, operator, compute, spot):
    """A host has 16 VCPUs; four of four take all of it."""
    spots = [operator.boot(f"spot-{n}", flavor_id=spot, forced="compute-1") for n in range(4)]
    assert {server["status"] for server in spots} == {"ACTIVE"}
    room = {
        "resource_type": "virtual:instance",
        "amount": 2,
        "vcpus": 4,
        "memory_mb": 512,
        "disk_gb": 1,
        "affinity": None,
        "resource_properties": '["==", "$hypervisor_hostname", "compute-1"]',
    }
    body = {"reservations": [room], "end_date": in_minutes(30)}
    lease = service.reaches(service.create("admin", body=body)["id"], "ACTIVE", login="admin")
    assert sum(gone(operator, server) for server in spots) == 2
    flavor = lease["reservations"][0]["id"]
    booted = [operator.boot(f"work-{n}", flavor_id=flavor) for n in range(2)]
    assert {server["status"] for server in booted} == {"ACTIVE"}


@pytest.mark.nightly
def test_a_user_gets_hosts_of_the_freepool_until_they_are_needed(service, mine, compute, spot):
    conf = openstack.HOME / "etc" / "nova" / "scheduler.conf"
    if ALLOWED not in conf.read_text(encoding="utf-8"):
        pytest.skip(f"the test cloud was started without {ALLOWED}; start it again")
    server = mine.boot("spot", flavor_id=spot)
    assert server["status"] == "ACTIVE", server.get("fault")
    made = service.create(minimum=3, maximum=3)
    service.reaches(made["id"], "ACTIVE")
    assert gone(mine, server)
    refused = mine.boot("too late", flavor_id=spot)
    assert refused["status"] == "ERROR"
