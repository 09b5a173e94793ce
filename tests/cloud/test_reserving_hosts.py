# SPDX-License-Identifier: Apache-2.0
"""A host lease from request to release on a real OpenStack, by the programs that users have."""

from __future__ import annotations

import json
import time

import pytest

from blazar.model.base.errors import BlazarError
from tests import openstack
from tests.cloud.deployment import Deployment, a_host, in_minutes
from tests.cloud.looks import gone, host_of, pool
from tests.openstack import eventually

pytestmark = pytest.mark.usefixtures("nothing_left")

OPEN_HOST = "compute-4"
"""The one host that nobody registers."""


def test_a_lease_from_request_to_release_with_the_clients_that_everybody_has(service: Deployment, compute, theirs):
    hosts = json.loads(service.blazar("admin", "host-list", "-f", "json"))
    assert [host["hypervisor_hostname"] for host in hosts] == ["compute-1", "compute-2", "compute-3"]
    assert pool(compute, "freepool") == {"compute-1", "compute-2", "compute-3"}

    end = in_minutes(2)
    room = 'min=1,max=1,hypervisor_properties=["==","$hypervisor_hostname","compute-2"]'
    service.blazar(
        "demo", "lease-create", "story", "--physical-reservation", room, "--start-date", "now", "--end-date", end
    )
    shown = json.loads(service.openstack("demo", "reservation", "lease", "show", "story", "-f", "json"))
    lease = service.reaches(shown["id"], "ACTIVE")
    reservation = lease["reservations"][0]["id"]
    assert pool(compute, reservation) == {"compute-2"}
    assert pool(compute, "freepool") == {"compute-1", "compute-3"}

    boot = ("server", "create", "--image", "tiny", "--flavor", "tiny", "--nic", "none", "--wait", "-f", "json")
    hint = ("--hint", f"reservation={reservation}")
    mine = json.loads(service.openstack("demo", *boot, *hint, "thesis"))
    assert (mine["status"], host_of(mine)) == ("ACTIVE", "compute-2")

    # Nobody else gets onto the reserved host, with the hint or without.
    assert theirs.boot("thief", hint=reservation)["status"] == "ERROR"
    plain = [theirs.boot(f"plain-{number}") for number in range(3)]
    assert {host_of(server) for server in plain} == {OPEN_HOST}

    service.reaches(lease["id"], "TERMINATED", patience=240)
    with pytest.raises(BlazarError):
        openstack.access("demo").compute.get(f"/servers/{mine['id']}")
    assert compute.aggregate(reservation) is None
    assert pool(compute, "freepool") == {"compute-1", "compute-2", "compute-3"}
    (ended,) = [e for e in lease["events"] if e["event_type"] == "end_lease"]
    assert ended["time"].startswith(end.replace(" ", "T"))
    assert {host_of(server) for server in plain} == {OPEN_HOST}
    service.blazar("demo", "lease-delete", "story")
    assert json.loads(service.blazar("demo", "lease-list", "-f", "json")) == []


@pytest.mark.nightly
def test_a_full_cloud_boots_nothing_on_hosts_that_can_be_reserved(service: Deployment, theirs):
    compute = openstack.admin_compute()
    # The flavor takes so much that the one open host holds two of them.
    servers = [theirs.boot(f"big-{number}", flavor="large") for number in range(4)]
    taken = [host_of(server) for server in servers if server["status"] == "ACTIVE"]
    assert set(taken) == {OPEN_HOST}
    assert all(not compute.servers_on(host) for host in ("compute-1", "compute-2", "compute-3"))


@pytest.mark.nightly
def test_a_snapshot_is_an_image_of_the_project_before_its_server_goes(service: Deployment, mine):
    lease = service.create(host="compute-1", before_end="snapshot")
    lease = service.reaches(lease["id"], "ACTIVE")
    server = mine.boot("thesis", hint=lease["reservations"][0]["id"])
    assert server["status"] == "ACTIVE"
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert gone(mine, server)
    images = json.loads(service.openstack("demo", "image", "list", "-f", "json"))
    (image,) = [image for image in images if image["Name"] == "reserved_thesis"]
    assert image["Status"] == "active"
    shown = json.loads(service.openstack("demo", "image", "show", image["ID"], "-f", "json"))
    assert shown["owner"] == mine.show_project()


@pytest.mark.nightly
def test_migration_moves_servers_out_and_they_live_on(service: Deployment, mine, compute):
    lease = service.create(host="compute-1", before_end_action="migration")
    lease = service.reaches(lease["id"], "ACTIVE")
    reservation = lease["reservations"][0]["id"]
    running, stopped = mine.boot("running", hint=reservation), mine.boot("stopped", hint=reservation)
    assert running["status"] == stopped["status"] == "ACTIVE"
    mine.act(stopped["id"], {"os-stop": None})
    mine.settled(stopped["id"], ("SHUTOFF",))
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert (host_of(running), host_of(stopped)) == (OPEN_HOST, OPEN_HOST)
    assert mine.settled(running["id"], ("ACTIVE",))
    assert mine.settled(stopped["id"], ("SHUTOFF",))
    assert {"compute-1"} <= pool(compute, "freepool")
    assert compute.aggregate(reservation) is None


@pytest.mark.nightly
def test_the_end_deletes_servers_in_every_state(service: Deployment, mine, compute):
    lease = service.create(host="compute-3")
    lease = service.reaches(lease["id"], "ACTIVE")
    reservation = lease["reservations"][0]["id"]
    states = {
        "locked": ({"lock": None}, "ACTIVE"),
        "stopped": ({"os-stop": None}, "SHUTOFF"),
        "paused": ({"pause": None}, "PAUSED"),
        "suspended": ({"suspend": None}, "SUSPENDED"),
        "shelved": ({"shelve": None}, "SHELVED_OFFLOADED"),
        "broken": ({"os-resetState": {"state": "error"}}, "ERROR"),
    }
    servers = {name: mine.boot(name, hint=reservation) for name in states}
    operator = openstack.Servers("admin")
    for name, (action, status) in states.items():
        (operator if name == "broken" else mine).act(servers[name]["id"], action)
        mine.settled(servers[name]["id"], (status,))
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    for server in servers.values():
        assert gone(mine, server)
    assert "compute-3" in pool(compute, "freepool")


@pytest.mark.nightly
def test_a_deletion_answers_at_once_and_finishes_in_the_background(service: Deployment, mine, compute):
    lease = service.create(host="compute-1")
    lease = service.reaches(lease["id"], "ACTIVE")
    for number in range(3):
        mine.boot(f"work-{number}", hint=lease["reservations"][0]["id"], wait=False)
    answer = service.call("demo", "DELETE", f"/leases/{lease['id']}")
    assert answer.status == 204
    assert answer.took < 15
    eventually(lambda: service.call("demo", "GET", f"/leases/{lease['id']}").status, lambda status: status == 404)
    eventually(lambda: "compute-1" in pool(compute, "freepool"))
    assert compute.servers_on("compute-1") == ()


@pytest.mark.nightly
def test_hosts_that_follow_each_other_wait_for_the_last_server(service: Deployment, mine):
    first = service.create(host="compute-1", body={"end_date": in_minutes(2)})
    second = service.create(
        "alt_demo", host="compute-1", body={"start_date": in_minutes(2), "end_date": in_minutes(62)}
    )
    first = service.reaches(first["id"], "ACTIVE")
    server = mine.boot("late", hint=first["reservations"][0]["id"])
    began = time.monotonic()
    service.reaches(second["id"], "ACTIVE", login="alt_demo", patience=200)
    assert time.monotonic() - began < 130
    assert service.lease(first["id"])["status"] == "TERMINATED"
    assert gone(mine, server)
    assert service.call("alt_demo", "DELETE", f"/leases/{second['id']}").status == 204


def test_a_lease_without_enough_hosts_is_refused_with_a_reason(service: Deployment):
    answer = service.call(
        "demo",
        "POST",
        "/leases",
        {"name": "big", "start_date": "now", "end_date": in_minutes(5), "reservations": [a_host(4, 4)], "events": []},
    )
    assert answer.status == 409
    assert "Not enough hosts available" in json.dumps(answer.body)
