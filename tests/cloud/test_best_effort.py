# SPDX-License-Identifier: Apache-2.0
"""Leases that have room made for them on a real OpenStack: servers of others move live, or nothing is touched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports.compute import Compute
from blazar.clouds.ports.evacuation import MovePhase
from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, deployed
from tests.cloud.looks import pool
from tests.conftest import fresh_database
from tests.openstack import Moves, Servers, eventually

pytestmark = pytest.mark.usefixtures("all_as_before")

OPTIONS = """
[evacuation]
limit = 1

[oslo_messaging_notifications]
driver = log
"""

OPEN = ("compute-3", "compute-4")
"""Hosts that Blazar does not know: everybody's servers may go there."""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment with two hosts that can be emptied, and a minute to do so."""
    folder = tmp_path_factory.mktemp("best-effort")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url, hosts=0, more=OPTIONS) as running:
            for name in ("compute-1", "compute-2"):
                body = {"name": name, "evacuable": True}
                answer = running.call("admin", "POST", "/resources/host", body, version=NEWEST)
                assert answer.status == 201, answer
            yield running


@pytest.fixture
def all_as_before(service: Deployment) -> Iterator[None]:
    """Moves that hang are let go, and leases are gone."""
    yield
    Moves().clean()
    service.forget_leases()


@pytest.fixture
def others() -> Iterator[Servers]:
    """Servers that belong to no lease; only operators can put them onto a host by name."""
    with openstack.servers("admin") as servers:
        yield servers


@dataclass
class Seen:
    """The servers of others, and where they are by every account."""

    evacuation: object = field(default_factory=lambda: open_cloud(openstack.access("admin")).evacuation)
    hosts: tuple[str, ...] = ("compute-1", "compute-2", *OPEN)

    def places(self) -> dict[str, tuple[str, str]]:
        """Return host and status of each server that nothing is done to."""
        found = [o for host in self.hosts for o in self.evacuation.occupants(host)]
        return {o.id: (o.host, o.status) for o in found if o.task_state is None}

    def consumers(self) -> list[tuple[str, str]]:
        """Return who holds something on which host in Placement."""
        rooms = self.evacuation.rooms(self.hosts)
        return sorted((consumer, host) for host, room in rooms.items() for consumer in room.consumers)

    def in_order(self) -> bool:
        """Tell whether each server is idle on one host, in Placement as in Nova, and no move is open."""
        places = self.places()
        idle = all(status in ("ACTIVE", "SHUTOFF") for _, status in places.values())
        still = not any(self.evacuation.open_moves(host) for host in self.hosts)
        return idle and still and self.consumers() == sorted((id_, host) for id_, (host, _) in places.items())

    def moves(self, *servers: str) -> list[MovePhase]:
        return [move.phase for server in servers for move in self.evacuation.moves_of(server)]


@pytest.fixture
def seen() -> Seen:
    return Seen()


def wanted(service: Deployment, minimum: int = 1, **more):
    room = {"resource_type": "physical:host", "min": minimum, **more}
    body = {"name": "urgent", "kind": "best_effort", "end_date": "+PT1H", "reservations": [room]}
    return service.call("admin", "POST", "/leases", body, version=NEWEST)


def reaches(service: Deployment, lease, status: str):
    def look():
        return service.call("admin", "GET", f"/leases/{lease['id']}", version=NEWEST)["lease"]

    return eventually(look, lambda found: found["status"] == status)


def moves_told(service: Deployment) -> list[dict[str, Any]]:
    """Return what projects were told of servers that were moved, so far."""
    found = re.findall(r'(\{.*"event_type": "servers[.]moved".*\})', service.log("manager-0"))
    return [json.loads(each)["payload"] for each in found]


def on(name: str) -> str:
    return f'["==", "$hypervisor_hostname", "{name}"]'


def test_servers_of_others_move_live_and_the_lease_starts(
    service: Deployment, compute: Compute, others: Servers, seen: Seen
):
    servers = [others.boot("one", forced="compute-1")["id"], others.boot("two", forced="compute-1")["id"]]
    answer = wanted(service, hypervisor_properties=on("compute-1"))
    assert (answer.status, answer["lease"]["status"]) == (201, "IN_PROGRESS"), answer
    lease = reaches(service, answer["lease"], "ACTIVE")
    assert pool(compute, lease["reservations"][0]["id"]) == {"compute-1"}
    assert compute.servers_on("compute-1") == ()
    eventually(seen.in_order)
    assert set(seen.places()) == set(servers)
    assert {status for _, status in seen.places().values()} == {"ACTIVE"}
    assert seen.moves(*servers) == [MovePhase.COMPLETED] * 2
    (told,) = moves_told(service)
    assert (told["project_id"], {each["id"] for each in told["servers"]}) == (others.show_project(), set(servers))

    service.end(lease["id"], "admin")
    # At its end the host is everybody's again.
    reaches(service, lease, "TERMINATED")
    eventually(lambda: not any("compute-1" in aggregate.hosts for aggregate in compute.aggregates()))
    assert others.boot("three", host="compute-1")["status"] == "ACTIVE"


def test_a_server_that_has_to_stay_keeps_its_host_and_nothing_is_touched(
    service: Deployment, compute: Compute, others: Servers, seen: Seen
):
    locked = others.boot("locked", forced="compute-1")["id"]
    others.act(locked, {"lock": None})
    tagged = others.boot("tagged", forced="compute-2", tags=("blazar:keep",))["id"]
    before = seen.places()
    answer = wanted(service)
    assert (answer.status, answer["errors"][0]["code"]) == (409, "reservation.not_enough_resources"), answer
    assert seen.places() == before
    assert seen.moves(locked, tagged) == []
    assert pool(compute, "freepool") == set()


def test_too_few_hosts_that_can_be_emptied_are_refused_and_nothing_moves(
    service: Deployment, compute: Compute, others: Servers, seen: Seen
):
    movable = others.boot("movable", forced="compute-1")["id"]
    kept = others.boot("kept", forced="compute-2", tags=("blazar:keep",))["id"]
    before = seen.places()
    answer = wanted(service, 2)
    assert (answer.status, answer["errors"][0]["code"]) == (409, "reservation.not_enough_resources"), answer
    assert (seen.places(), seen.moves(movable, kept)) == (before, [])
    assert seen.in_order()


@pytest.mark.nightly
def test_a_move_that_hangs_is_aborted_at_the_limit_and_all_is_in_order(
    service: Deployment, compute: Compute, others: Servers, seen: Seen
):
    hanging, queued = (others.boot(name, forced="compute-1")["id"] for name in ("hanging", "queued"))
    Moves().spoil(hanging, "hang")
    answer = wanted(service, hypervisor_properties=on("compute-1"))
    assert (answer.status, answer["lease"]["status"]) == (201, "IN_PROGRESS"), answer
    # It is in the freepool, where nobody boots, while its servers are moved away.
    eventually(lambda: pool(compute, "freepool"), lambda hosts: hosts == {"compute-1"})
    lease = reaches(service, answer["lease"], "TIMED_OUT")
    eventually(seen.in_order)
    places = seen.places()
    assert places[hanging] == ("compute-1", "ACTIVE")
    assert places[queued][1] == "ACTIVE"
    assert MovePhase.CANCELLED in seen.moves(hanging)
    assert pool(compute, "freepool") == set()
    assert compute.aggregate(lease["reservations"][0]["id"]) is None
