# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows on a real OpenStack: leases get other hosts, and Nova is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, a_host
from tests.cloud.looks import host_of, pool
from tests.openstack import Moves, Servers, eventually

pytestmark = pytest.mark.usefixtures("nothing_left", "all_enabled")


@pytest.fixture
def all_enabled(compute):
    """Every nova-compute is enabled when a test ends, whatever became of it."""
    yield
    for hypervisor in compute.hypervisors():
        compute.enable_service(hypervisor.service_name)


def state_of(compute, name: str):
    found = compute.hypervisor(hostname=name)
    return found.enabled, found.disabled_reason


def opened(service: Deployment, *names: str, **more):
    ids = [host["id"] for host in service.hosts() if host["hypervisor_hostname"] in names]
    body = {"name": "firmware", "hosts": ids, "end_date": "+PT2H", "disable_service": True, **more}
    answer = service.call("admin", "POST", "/maintenances", body, version=NEWEST)
    assert answer.status == 201, answer
    return answer["maintenance"]


def reaches(service: Deployment, window, status: str):
    path = f"/maintenances/{window['id']}"
    return eventually(
        lambda: service.call("admin", "GET", path, version=NEWEST)["maintenance"],
        lambda found: found["status"] == status,
    )


def ended(service: Deployment, window) -> None:
    answer = service.call("admin", "POST", f"/maintenances/{window['id']}/end", version=NEWEST)
    assert answer.status in (200, 202), answer


def test_a_window_moves_leases_and_closes_its_host_for_its_time(service: Deployment, compute):
    begin = (datetime.now(UTC) + timedelta(seconds=25)).isoformat(timespec="seconds")
    room = {"resource_type": "physical:host", "min": 1}
    body = {"name": "work", "start_date": begin, "end_date": "+PT1H", "reservations": [room]}
    answer = service.call("demo", "POST", "/leases", body, version=NEWEST)
    assert answer.status == 201, answer
    lease = answer["lease"]
    allocated = service.call("admin", "GET", "/os-hosts/allocations")["allocations"]
    number = next(one["resource_id"] for one in allocated if one["reservations"])
    name = next(host["hypervisor_hostname"] for host in service.hosts() if host["id"] == number)

    window = opened(service, name, start_date="now")
    shown = reaches(service, window, "ACTIVE")
    assert state_of(compute, name) == (False, f"blazar maintenance {window['id']}")
    # The polls of health take the host for neither failed nor well, and the lease has another one.
    assert [one["outcome"] for one in shown["leases"]] == ["moved"]
    with openstack.servers("admin") as operator:
        refused = operator.boot("too late", host=name)
        assert refused["status"] == "ERROR", "Nova places servers on a host in maintenance"
    reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
    hosts = pool(compute, reservation)
    assert len(hosts) == 1
    assert name not in hosts

    ended(service, window)
    reaches(service, window, "DONE")
    assert state_of(compute, name) == (True, None)
    assert {host["reservable"] for host in service.hosts()} == {True}


def test_a_host_that_an_operator_had_disabled_stays_so(service: Deployment, compute):
    openstack.set_service("compute-1", status="disabled", disabled_reason="fans")
    window = opened(service, "compute-1", "compute-2", start_date="now")
    reaches(service, window, "ACTIVE")
    assert state_of(compute, "compute-1") == (False, "fans")
    assert state_of(compute, "compute-2") == (False, f"blazar maintenance {window['id']}")
    ended(service, window)
    reaches(service, window, "DONE")
    assert state_of(compute, "compute-1") == (False, "fans")
    assert state_of(compute, "compute-2") == (True, None)


def test_a_window_ends_by_itself(service: Deployment, compute):
    end = datetime.now(UTC) + timedelta(seconds=12)
    window = opened(service, "compute-3", start_date="now", end_date=end.isoformat(timespec="seconds"))
    reaches(service, window, "ACTIVE")
    assert not state_of(compute, "compute-3")[0]
    reaches(service, window, "DONE")
    assert state_of(compute, "compute-3") == (True, None)
    # The host can be booked again at once.
    lease = service.create(body={"reservations": [a_host(host="compute-3")]})
    service.reaches(lease["id"], "ACTIVE")


@pytest.mark.nightly
def test_a_lease_in_use_leaves_its_host_with_its_servers(service: Deployment, compute, mine: Servers):
    lease = service.create(body={"reservations": [a_host()]})
    reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
    (old,) = pool(compute, reservation)
    servers = [mine.boot(name, hint=reservation) for name in ("one", "two")]
    assert {host_of(server) for server in servers} == {old}

    window = opened(service, old, start_date="now", active="migrate")
    assert [(each["outcome"], each["done"]) for each in window["leases"]] == [("migrated", False)]
    path = f"/maintenances/{window['id']}"
    shown = eventually(
        lambda: service.call("admin", "GET", path, version=NEWEST)["maintenance"],
        lambda found: found["leases"][0]["done"],
    )
    assert (shown["leases"][0]["outcome"], shown["leases"][0]["note"]) == ("migrated", None)
    (new,) = pool(compute, reservation)
    assert new != old
    assert {host_of(server) for server in servers} == {new}
    assert {mine.show(server["id"])["status"] for server in servers} == {"ACTIVE"}
    assert compute.servers_on(old) == ()
    assert service.lease(lease["id"])["status"] == "ACTIVE"
    assert mine.boot("three", hint=reservation)["status"] == "ACTIVE"
    ended(service, window)
    reaches(service, window, "DONE")
    assert old in pool(compute, "freepool")


@pytest.mark.nightly
def test_a_move_that_hangs_is_aborted_when_the_window_is_ended_and_the_lease_is_as_before(
    service: Deployment, compute, mine: Servers
):
    lease = service.create(body={"reservations": [a_host()]})
    reservation = service.reaches(lease["id"], "ACTIVE")["reservations"][0]["id"]
    (old,) = pool(compute, reservation)
    server = mine.boot("hanging", hint=reservation)
    Moves().spoil(server["id"], "hang")
    try:
        window = opened(service, old, start_date="now", active="migrate", disable_service=False)
        eventually(lambda: pool(compute, reservation), lambda hosts: len(hosts) == 2)
        eventually(lambda: mine.show(server["id"])["status"], lambda status: status == "MIGRATING")
        reaches(service, window, "ACTIVE")
        ended(service, window)
        eventually(lambda: pool(compute, reservation), lambda hosts: hosts == {old})
        eventually(lambda: mine.show(server["id"])["status"], lambda status: status == "ACTIVE")
        assert host_of(server) == old
        assert reaches(service, window, "DONE")["leases"][0]["outcome"] == "active"
    finally:
        Moves().clean()
