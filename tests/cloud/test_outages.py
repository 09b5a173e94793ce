# SPDX-License-Identifier: Apache-2.0
"""Two managers and two API processes, and what they need taken away from them in the middle of a start or an end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from blazar.clouds.ports.volumes import VolumeQuota
from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, a_host, in_minutes
from tests.contract.builders import RealBuilder
from tests.contract.storage import NAME, THICK, RealStorage, ready
from tests.isolation import lease_in
from tests.openstack import HOME, ExternalNetwork, eventually

OUTAGE = 30.0
"""Seconds."""

ANSWERS_WITHIN = 35.0
"""Seconds in which a user hears something, whatever is broken."""


@contextlib.contextmanager
def stopped(name: str) -> Iterator[None]:
    """An API of the cloud hangs: it takes connections, and answers nothing."""
    pid = json.loads((HOME / "run" / f"{name}.json").read_text())["pid"]
    os.killpg(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.killpg(pid, signal.SIGCONT)


nova_stopped = partial(stopped, "nova-api")
neutron_stopped = partial(stopped, "neutron")
cinder_stopped = partial(stopped, "cinder-api")


def owner(pair: Deployment, lease_id: str, event: str) -> str | None:
    """Return which manager has an event in its hands."""
    (row,) = pair.sql(f"SELECT claimed_by FROM events WHERE lease_id = '{lease_id}' AND event_type = '{event}'")
    pids = {str(process.pid): name for name, process in pair.processes.items()}
    return pids[row["claimed_by"].split(":")[1]] if row["claimed_by"] else None


def pools() -> dict[str, list[str]]:
    """Return which pools each host is in, by the names of the aggregates."""
    found: dict[str, list[str]] = {f"compute-{number}": [] for number in (1, 2, 3)}
    for aggregate in openstack.admin_compute().aggregates():
        for host in aggregate.hosts:
            if host in found:
                found[host].append(aggregate.name)
    return found


def is_settled(pair: Deployment) -> bool:
    """Tell whether nothing is left in anybody's hands."""
    return not pair.sql("SELECT id FROM events WHERE status = 'IN_PROGRESS' OR claimed_by IS NOT NULL")


def test_a_manager_dies_in_a_start_and_in_an_end(pair: Deployment):
    (lease,) = pair.book(("compute-1", 12, 600))
    with nova_stopped():
        victim = eventually(lambda: owner(pair, lease, "start_lease"))
        pair.kill(victim)
    began = time.monotonic()
    reservation = pair.reaches(lease, "ACTIVE")["reservations"][0]["id"]
    print(f"taken over and ACTIVE {time.monotonic() - began:.1f} s after the death of {victim}")
    assert pools() == {"compute-1": [reservation], "compute-2": ["freepool"], "compute-3": ["freepool"]}
    pair.start_one(victim)

    with openstack.servers("demo") as mine:
        server = mine.boot("work", hint=reservation)
        assert server["status"] == "ACTIVE"
        time.sleep(3)
        with nova_stopped():
            pair.end(lease)
            victim = eventually(lambda: owner(pair, lease, "end_lease"))
            pair.kill(victim)
        began = time.monotonic()
        pair.reaches(lease, "TERMINATED")
        print(f"taken over and TERMINATED {time.monotonic() - began:.1f} s after the death of {victim}")
        assert openstack.admin_compute().servers_on("compute-1") == ()
    assert pools() == {f"compute-{number}": ["freepool"] for number in (1, 2, 3)}
    assert openstack.admin_compute().aggregate(reservation) is None
    eventually(lambda: is_settled(pair))


@pytest.mark.nightly
def test_the_message_bus_is_away_for_half_a_minute(pair: Deployment):
    due, ends = pair.book(("compute-1", 15, 600), ("compute-2", 2, 18))
    pair.reaches(ends, "ACTIVE")
    pair.rabbitmq.cut()
    away = time.monotonic()
    while time.monotonic() - away < OUTAGE:
        for api in ("api-0", "api-1"):
            answer = pair.call("demo", "GET", "/leases", api=api)
            assert answer.status == 503, answer
            assert "message bus" in answer["error_message"] or "blazar-manager" in answer["error_message"]
            assert answer.took < ANSWERS_WITHIN
            refused = pair.call("demo", "POST", "/leases", new_lease(), api=api)
            assert refused.status == 503, refused
    # What was due went on without the bus, on the second.
    found = {
        (row["lease_id"], row["event_type"]): row
        for row in pair.sql("SELECT lease_id, event_type, time, status, updated_at FROM events")
    }
    for lease_id, event in ((due, "start_lease"), (ends, "end_lease")):
        row = found[lease_id, event]
        assert row["status"] == "DONE"
        assert row["updated_at"] - row["time"] < timedelta(seconds=5)
    pair.rabbitmq.mend()
    back = time.monotonic()
    for api in ("api-0", "api-1"):
        eventually(lambda api=api: pair.call("demo", "GET", "/leases", api=api).status, lambda status: status == 200)
    print(f"requests are answered again {time.monotonic() - back:.1f} s after the bus came back")
    assert pair.lease(due)["status"] == "ACTIVE"
    assert pair.lease(ends)["status"] == "TERMINATED"
    # Of what was refused meanwhile nothing was done later.
    assert {lease["name"] for lease in pair.call("demo", "GET", "/leases")["leases"]} == {
        "on compute-1",
        "on compute-2",
    }
    reservation = pair.lease(due)["reservations"][0]["id"]
    assert pools() == {"compute-1": [reservation], "compute-2": ["freepool"], "compute-3": ["freepool"]}
    # Nor does a bus that is away keep a manager from stopping in good order.
    pair.rabbitmq.cut()
    pair.kill("manager-0", signal.SIGTERM)
    assert pair.processes["manager-0"].returncode == 0


def test_nova_is_away_for_half_a_minute_during_a_start(pair: Deployment):
    lease, ending = pair.book(("compute-1", 8, 600), ("compute-2", 2, 14))
    pair.reaches(ending, "ACTIVE")
    with nova_stopped():
        away = time.monotonic()
        eventually(lambda: pair.lease(lease)["status"], lambda status: status == "STARTING")
        slowest = 0.0
        while time.monotonic() - away < OUTAGE:
            assert pair.call("demo", "GET", "/leases").took < 2
            answer = pair.call("demo", "POST", "/leases", new_lease(host="compute-3"))
            slowest = max(slowest, answer.took)
            assert answer.status == 503, answer
            assert "Nova" in answer["error_message"]
            answer = pair.call("demo", "PUT", f"/leases/{lease}", {"end_date": in_minutes(90)})
            assert answer.status == 409, answer
            assert "STARTING" in answer["error_message"]
        print(f"a creation was refused after at most {slowest:.1f} s")
        assert slowest < ANSWERS_WITHIN
    back = time.monotonic()
    reservation = pair.reaches(lease, "ACTIVE")["reservations"][0]["id"]
    print(f"ACTIVE {time.monotonic() - back:.1f} s after Nova came back")
    pair.reaches(ending, "TERMINATED")
    print(f"TERMINATED {time.monotonic() - back:.1f} s after Nova came back")
    assert pools() == {"compute-1": [reservation], "compute-2": ["freepool"], "compute-3": ["freepool"]}
    eventually(lambda: is_settled(pair))
    names = {lease["name"] for lease in pair.call("demo", "GET", "/leases")["leases"]}
    assert names == {"on compute-1", "on compute-2"}
    # Nothing is left of the refused ones, in the cloud neither.
    zones = [
        a.name for a in openstack.admin_compute().aggregates() if (a.availability_zone or "").startswith("blazar_")
    ]
    eventually(lambda: zones, lambda zones: zones == [reservation])
    assert pair.create(host="compute-3")["status"] == "PENDING"


@pytest.mark.nightly
def test_a_deletion_while_nova_is_away_answers_and_is_carried_out_later(pair: Deployment):
    (lease,) = pair.book(("compute-1", 1, 600))
    pair.reaches(lease, "ACTIVE")
    with nova_stopped():
        answer = pair.call("demo", "DELETE", f"/leases/{lease}")
        assert answer.status == 204
        assert answer.took < ANSWERS_WITHIN
        assert pair.lease(lease)["status"] == "DELETING"
    eventually(lambda: pair.call("demo", "GET", f"/leases/{lease}").status, lambda status: status == 404)
    assert pools() == {f"compute-{number}": ["freepool"] for number in (1, 2, 3)}


@pytest.mark.nightly
def test_a_manager_dies_while_neutron_is_away_in_the_start_and_the_end_of_an_address_and_a_network(
    pair: Deployment, outside: ExternalNetwork, builder: RealBuilder
):
    neutron = builder.cloud
    body = {"floating_network_id": outside.id, "floating_ip_address": "198.51.106.10"}
    assert pair.call("admin", "POST", "/floatingips", body).status == 201
    body = {"network_type": "vlan", "physical_network": builder.physical, "segment_id": 1873}
    assert pair.call("admin", "POST", "/networks", body).status == 201
    rooms = [
        {"resource_type": "virtual:floatingip", "network_id": outside.id, "amount": 1},
        {"resource_type": "network", "network_name": "lab"},
    ]
    soon = datetime.now(UTC) + timedelta(seconds=6)
    dates = {"start_date": f"{soon:%FT%TZ}", "end_date": f"{soon + timedelta(hours=1):%FT%TZ}"}
    answer = pair.call("demo", "POST", "/leases", {"name": "away", "reservations": rooms, **dates}, root="/v2")
    assert answer.status == 201, answer
    lease = lease_in(answer.body)["id"]
    with neutron_stopped():
        pair.kill(eventually(lambda: owner(pair, lease, "start_lease")))
        assert pair.lease(lease)["status"] == "STARTING"
    reservations = pair.reaches(lease, "ACTIVE")["reservations"]
    (address,) = neutron.network.floating_ips(network_id=outside.id)
    (network,) = neutron.segments.segment_networks(id=reservations[1]["network_id"])
    assert (address.project_id, network.project_id) == (builder.project, builder.project)
    pair.revive()

    builder.port(network.id, "compute:nova")
    with neutron_stopped():
        pair.end(lease)
        pair.kill(eventually(lambda: owner(pair, lease, "end_lease")))
    pair.reaches(lease, "TERMINATED")
    assert neutron.network.floating_ips(network_id=outside.id) == ()
    assert neutron.segments.segment_networks(id=network.id) == ()
    eventually(lambda: is_settled(pair))


@pytest.mark.nightly
def test_a_manager_dies_while_cinder_is_away_in_the_start_and_the_end_of_volumes(
    pair: Deployment, storage: RealStorage, away: Callable[[], None]
):
    away()
    volumes = storage.cloud.volumes
    pool = next(each for each in volumes.volume_pools() if each.pool_name == THICK)
    given = {"pool": pool.name, "volume_type": NAME, "gigabytes": 20}
    answer = pair.call("admin", "POST", "/resources/volume", given, version=NEWEST)
    assert answer.status == 201, answer
    registered = answer.body["resource"]["id"]
    room = {"resource_type": "virtual:volume", "size": 3, "amount": 2, "volume_type": NAME, "name": "data"}
    soon = datetime.now(UTC) + timedelta(seconds=6)
    dates = {"start_date": f"{soon:%FT%TZ}", "end_date": f"{soon + timedelta(hours=1):%FT%TZ}"}
    answer = pair.call("demo", "POST", "/leases", {"name": "away", "reservations": [room], **dates}, root="/v2")
    assert answer.status == 201, answer
    lease = lease_in(answer.body)["id"]
    with cinder_stopped():
        pair.kill(eventually(lambda: owner(pair, lease, "start_lease")))
        assert pair.lease(lease)["status"] == "STARTING"
    (reservation,) = pair.reaches(lease, "ACTIVE")["reservations"]
    made = [ready(storage, id_) for id_ in reservation["volume_ids"]]
    assert [(each.name, each.size_gb) for each in made] == [("data-1", 3), ("data-2", 3)]
    assert volumes.volume_quota(storage.project, NAME) == VolumeQuota(6, 2)
    pair.revive()

    storage.attach(made[0].id, storage.server())
    with cinder_stopped():
        pair.end(lease)
        pair.kill(eventually(lambda: owner(pair, lease, "end_lease")))
    pair.reaches(lease, "TERMINATED")
    assert [volumes.volume(each.id) for each in made] == [None, None]
    assert volumes.volume_type_access(storage.type_id) == frozenset()
    assert volumes.volume_quota(storage.project, NAME) == VolumeQuota(0, 0)
    eventually(lambda: is_settled(pair))
    pair.forget_leases()
    assert pair.call("admin", "DELETE", f"/resources/volume/{registered}", version=NEWEST).status == 204


def new_lease(**room: str) -> dict[str, object]:
    return {
        "name": "refused",
        "start_date": in_minutes(600),
        "end_date": in_minutes(660),
        "reservations": [a_host(**room)],
        "events": [],
    }


@pytest.fixture(autouse=True)
def the_cloud_goes_on() -> Iterator[None]:
    """Whatever becomes of a test, the cloud is left running."""
    yield
    for name in ("nova-api", "neutron", "cinder-api"):
        pid = json.loads((HOME / "run" / f"{name}.json").read_text())["pid"]
        os.killpg(pid, signal.SIGCONT)


@pytest.fixture
def outside() -> Iterator[ExternalNetwork]:
    network = ExternalNetwork(106)
    yield network
    network.clean()


@pytest.fixture
def builder() -> Iterator[RealBuilder]:
    made = RealBuilder()
    yield made
    made.clean()
