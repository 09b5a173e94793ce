# SPDX-License-Identifier: Apache-2.0
"""Stacks on a real Heat: managers that are killed at each step of a start and of an end, and a Heat that is away.

The managers reach Heat through a proxy: it can be cut, and lose a request or the answer to it.
"""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports.stacks import Stack, StackPlan
from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, deployed, in_minutes
from tests.cloud.test_outages import owner
from tests.cloud.test_regions import LATE, SECOND, lateness, second_region
from tests.conftest import fresh_database
from tests.openstack import eventually
from tests.proxy import Proxy

pytestmark = pytest.mark.nightly

PLAIN = ("identity", "compute", "placement", "network", "image", "block-storage")
CONF = f"\n[DEFAULT]\nos_region_name = {SECOND}\n"
STARTED = "has started"
CREATION = re.compile(rb"POST /v1/[0-9a-f]+/stacks HTTP")
DELETION = re.compile(rb"DELETE /v1/[0-9a-f]+/stacks/")
STACK = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "one": {
            "type": "OS::Nova::Server",
            "properties": {"flavor": "tiny", "image": "tiny", "networks": [{"allocate_network": "none"}]},
        },
        "slow": {
            "type": "OS::Heat::TestResource",
            "properties": {"action_wait_secs": {"create": 4, "delete": 4}},
        },
    },
}

NOTHING = {"heat_template_version": "2018-08-31", "resources": {"text": {"type": "OS::Heat::RandomString"}}}


class HeatProxy(Proxy):
    """A way to Heat that can lose a request of a kind, or the answer to it, and everything after that."""

    def __init__(self, host: str, port: int) -> None:
        self.lost = threading.Event()
        self._loses: re.Pattern[bytes] | None = None
        self._reaches = False
        super().__init__(host, port)

    def lose(self, request: re.Pattern[bytes], *, reaches: bool) -> None:
        """Lose the next such request; if it ``reaches`` Heat, the answer."""
        self._reaches, self._loses = reaches, request

    def restore(self) -> None:
        """Lose nothing any more."""
        self.cut()
        self._loses = None
        self.lost.clear()
        self.mend()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        outward = sink.getpeername() == self._to
        super()._pump(_Losing(self, source, outward=outward), sink)  # type: ignore[arg-type]

    def passes(self, data: bytes, *, outward: bool) -> bool:
        """Tell whether data is passed on, ``outward`` to Heat; the body of a request comes after its first line."""
        if outward and self._loses is not None and self._loses.match(data):
            self.lost.set()
        return not self.lost.is_set() or (outward and self._reaches)


class _Losing:
    """One end of a connection, of which some data is lost."""

    def __init__(self, proxy: HeatProxy, end: socket.socket, *, outward: bool) -> None:
        self._proxy = proxy
        self._end = end
        self._outward = outward

    def recv(self, most: int) -> bytes:
        while data := self._end.recv(most):
            if self._proxy.passes(data, outward=self._outward):
                return data
        return b""

    def shutdown(self, how: int) -> None:
        self._end.shutdown(how)

    def close(self) -> None:
        self._end.close()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Deployment, HeatProxy]]:
    """Two managers, for which Heat is behind a proxy."""
    folder = tmp_path_factory.mktemp("stacks")
    with ExitStack() as stack:
        (proxy,) = stack.enter_context(second_region(("orchestration",), plain=PLAIN, make=HeatProxy))
        assert isinstance(proxy, HeatProxy)
        for url in fresh_database("postgresql", folder):
            yield stack.enter_context(deployed(folder, url, managers=2, more=CONF)), proxy


@pytest.fixture
def pair(started: tuple[Deployment, HeatProxy]) -> Iterator[Deployment]:
    """Two managers, as if they were new."""
    service, proxy = started
    service.revive()
    yield service
    proxy.restore()
    service.revive()
    service.forget_leases()


@pytest.fixture
def heat(started: tuple[Deployment, HeatProxy]) -> HeatProxy:
    """The way of the managers to Heat."""
    return started[1]


def stacks(lease: Mapping[str, Any]) -> tuple[Stack, ...]:
    """Return the stacks of a lease, as Heat lists them."""
    cloud = open_cloud(openstack.access("blazar"))
    return cloud.stacks.stacks_tagged(lease["project_id"], f"reservation:{lease['reservations'][0]['id']}")


def dates() -> dict[str, str]:
    return {"start_date": "now", "end_date": in_minutes(61)}


def a_stack(**more: Any) -> dict[str, Any]:
    return {"reservations": [{"resource_type": "virtual:stack", "template": STACK, **more}]}


def killed(pair: Deployment, lease: Mapping[str, Any], event: str) -> None:
    """Kill the manager that works on an event; the other takes over."""
    pair.kill(eventually(lambda: owner(pair, lease["id"], event)))


def revive(pair: Deployment) -> None:
    """Start the managers that were killed, and wait until each works: the next to be killed may be the other."""
    dead = {name: pair.log(name).count(STARTED) for name, run in pair.processes.items() if run.poll() is not None}
    pair.revive()
    for name, times in dead.items():
        eventually(lambda name=name: pair.log(name).count(STARTED), lambda now, times=times: now > times)


def free_hosts(pair: Deployment, lease: Mapping[str, Any]) -> list[str]:
    """Return the names of the hosts that a lease does not have."""
    shown = pair.call("admin", "GET", f"/leases/{lease['id']}", version=NEWEST)["lease"]
    (servers,) = shown["reservations"][0]["children"]
    has = {each["resource"]["name"] for each in servers["allocations"]}
    return sorted({"compute-1", "compute-2", "compute-3"} - has)


def stack_id(pair: Deployment, lease: Mapping[str, Any]) -> str:
    """Return the stack of a lease once it is recorded."""
    return str(eventually(lambda: pair.lease(lease["id"])["reservations"][0]["stack_id"]))


def is_gone(pair: Deployment, lease: Mapping[str, Any]) -> None:
    """Check that a lease ends, and that nothing is left of it."""
    pair.reaches(lease["id"], "TERMINATED")
    assert stacks(lease) == ()
    shown = pair.call("demo", "GET", f"/leases/{lease['id']}", version=NEWEST)["lease"]
    (servers,) = shown["reservations"][0]["children"]
    assert openstack.admin_compute().servers_of_flavor(servers["id"]) == ()
    assert openstack.admin_compute().flavor(servers["id"]) is None


@pytest.mark.parametrize("reaches", [False, True], ids=["before Heat has the call", "before the answer"])
def test_a_manager_is_killed_at_the_calls_of_a_start_and_of_an_end(pair: Deployment, heat: HeatProxy, reaches: bool):
    heat.lose(CREATION, reaches=reaches)
    lease = pair.create(body=a_stack())
    assert heat.lost.wait(30)
    killed(pair, lease, "start_lease")
    made = eventually(lambda: stacks(lease)) if reaches else stacks(lease)
    assert len(made) == (1 if reaches else 0)
    began = time.monotonic()
    heat.restore()
    (reservation,) = pair.reaches(lease["id"], "ACTIVE")["reservations"]
    print(f"taken over and ACTIVE {time.monotonic() - began:.1f} s later")
    (stack,) = stacks(lease)
    assert (stack.id, stack.state) == (reservation["stack_id"], "COMPLETE")
    assert not reaches or stack.id == made[0].id
    revive(pair)

    heat.lose(DELETION, reaches=reaches)
    pair.end(lease["id"])
    assert heat.lost.wait(30)
    killed(pair, lease, "end_lease")
    began = time.monotonic()
    heat.restore()
    is_gone(pair, lease)
    print(f"taken over and TERMINATED {time.monotonic() - began:.1f} s later")


def test_all_managers_are_killed_while_a_stack_is_made_and_while_it_is_deleted(pair: Deployment):
    lease = pair.create(body=a_stack())
    made = stack_id(pair, lease)
    for name in ("manager-0", "manager-1"):
        pair.kill(name)
    (found,) = stacks(lease)
    assert (found.id, found.action, found.state) == (made, "CREATE", "IN_PROGRESS")
    pair.revive()
    pair.reaches(lease["id"], "ACTIVE")
    assert [each.id for each in stacks(lease)] == [made] == [stack_id(pair, lease)]

    pair.end(lease["id"])
    eventually(lambda: stacks(lease), lambda found: bool(found) and found[0].action == "DELETE")
    for name in ("manager-0", "manager-1"):
        pair.kill(name)
    revive(pair)
    is_gone(pair, lease)


def test_while_heat_is_away_only_leases_of_stacks_wait_and_they_catch_up(pair: Deployment, heat: HeatProxy):
    lease = pair.create(body=a_stack())
    made = stack_id(pair, lease)
    heat.cut()
    first, second = free_hosts(pair, lease)
    here, there = pair.book((first, 4, 10), (second, 4, 600))
    pair.reaches(here, "TERMINATED")
    late = [lateness(pair, here, event) for event in ("start_lease", "end_lease")]
    late.append(lateness(pair, there, "start_lease"))
    print(f"others were late by {late} s")
    assert max(late) <= LATE
    assert pair.lease(lease["id"])["status"] == "STARTING"
    answer = pair.call("demo", "POST", "/leases", {"name": "x", **dates(), **a_stack()})
    assert (answer.status, "Heat" in str(answer.body)) == (503, True), answer
    heat.mend()
    began = time.monotonic()
    pair.reaches(lease["id"], "ACTIVE")
    assert stack_id(pair, lease) == made
    print(f"started {time.monotonic() - began:.1f} s after Heat was back")

    heat.cut()
    heat.mend(silent=True)
    pair.end(lease["id"])
    began = time.monotonic()
    pair.end(there)
    pair.reaches(there, "TERMINATED")
    took = time.monotonic() - began
    print(f"another ended in {took:.1f} s")
    assert took <= LATE
    assert pair.lease(lease["id"])["status"] == "TERMINATING"
    heat.restore()
    began = time.monotonic()
    is_gone(pair, lease)
    print(f"ended {time.monotonic() - began:.1f} s after Heat was back")


def test_a_name_that_the_project_has_is_refused_to_a_lease_that_starts_at_once(pair: Deployment):
    cloud, project = open_cloud(openstack.access("blazar")), str(openstack.access("demo").session.get_project_id())
    theirs = cloud.stacks.begin_stack(project, StackPlan("course", NOTHING), tags=frozenset())
    try:
        wanted = {"name": "x", **dates(), **a_stack(stack_name="course")}
        refused = pair.call("demo", "POST", "/leases", wanted)
        assert (refused.status, "has a stack of that name" in str(refused.body)) == (409, True), refused
    finally:
        cloud.stacks.begin_stack_deletion(project, theirs)
        eventually(lambda: cloud.stacks.stacks_named(project, "course"), lambda left: not left)
    assert pair.call("demo", "GET", "/leases")["leases"] == []
