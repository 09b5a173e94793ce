# SPDX-License-Identifier: Apache-2.0
"""Hooks and Ironic in front of simulated machines: what the worker asks of them goes through their adapters.

The machines have all faults of the simulated cloud, and what becomes of them is told as a receiver or Ironic tells it.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from keystoneauth1 import fixture

from blazar.clouds.hooks.power import HookPower
from blazar.clouds.openstack.ironic import IronicPower
from blazar.clouds.ports.power import MachinePower, Power, PowerRef
from blazar.model.base.errors import CloudRefused, CloudUnavailable
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from tests.clouds.receivers import Receiver, answer, hooks, receiver
from tests.clouds.test_access import KEYSTONE, an_access
from tests.manager.power.nights import hosts_of
from tests.world import World

IRONIC = "http://ironic.test:6385"
NODE = re.compile(rf"{IRONIC}/v1/nodes/([a-z0-9-]+)(/states/power)?(\?.*)?$")
ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN
TARGETS = {"power on": (ON, False), "power off": (OFF, False), "soft power off": (OFF, True)}
STATES: dict[MachinePower, str | None] = {ON: "power on", OFF: "power off", UNKNOWN: None}


class Machines:
    """The machines of a simulated cloud."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._power = world.simulated.cloud.power

    def read(self, host: str) -> MachinePower:
        return self._power.power_states((_machine(host),))[host].state

    def switch(self, host: str, to: MachinePower, *, soft: bool) -> None:
        self._power.begin_switch(_machine(host), to, soft=soft)


def _machine(host: str) -> PowerRef:
    return PowerRef(host, host, PowerAddress(PowerAdapter.SIMULATED, host))


@contextmanager
def by_hooks(machines: Machines) -> Iterator[tuple[Power, PowerAdapter, str]]:
    """Switch machines by the receiver of a hook; yield the adapter, its name and a target."""

    def respond(wire: socket.socket) -> None:
        wire.sendall(_answer_hook(machines, json.loads(heard.heard[-1][2])))

    heard: Receiver
    with receiver(respond) as heard:
        yield HookPower(hooks(), machines.world.clock), PowerAdapter.HOOK, heard.url


def _answer_hook(machines: Machines, message: dict[str, Any]) -> bytes:
    kind, data = message["type"], message["data"]
    if kind == "host.power_state":
        said = {one["id"]: machines.read(one["name"]) for one in data["resources"]}
        if UNKNOWN in said.values():
            return answer(503, {"message": "its BMC did not answer in time"})
        return answer(200, {"states": {id_: str(state) for id_, state in said.items()}})
    try:
        machines.switch(data["resource"]["name"], ON if kind == "host.power_on" else OFF, soft=data["soft"])
    except CloudRefused as error:
        return answer(403, {"message": error.message})
    except CloudUnavailable as error:
        return answer(503, {"message": error.message})
    return answer(202)


class Ironic:
    """An Ironic whose nodes are machines.

    It takes what it is told, and works on it: a node that is at work is locked, and what could not be done is seen from
    its state alone.
    """

    def __init__(self, machines: Machines) -> None:
        self._machines = machines
        self._work: dict[str, tuple[str, datetime]] = {}

    def get(self, request: Any, context: Any) -> dict[str, Any]:
        host = self._find(request)
        said = self._machines.read(host)
        return {"uuid": f"uuid-{host}", "name": host, "power_state": STATES[said], "target_power_state": self._at(host)}

    def put(self, request: Any, context: Any) -> dict[str, Any] | None:
        host, body = self._find(request), request.json()
        if self._at(host) is not None:
            context.status_code = 409
            return {"error_message": f"Node {host} is locked"}
        target, now = body["target"], self._machines.world.clock.now()
        to, soft = TARGETS[target]
        try:
            self._machines.switch(host, to, soft=soft)
            # By default Ironic waits ten minutes for the operating system of a node, and it looks now and then.
            self._work[host] = target, now + timedelta(seconds=body.get("timeout", 600) + 20 if soft else 30)
        except (CloudRefused, CloudUnavailable):
            self._work.pop(host, None)
        context.status_code = 202
        return None

    def _find(self, request: Any) -> str:
        found = NODE.match(request.url)
        assert found is not None
        return found[1]

    def _at(self, host: str) -> str | None:
        """Return the target on which it works still."""
        target, until = self._work.get(host, ("", self._machines.world.clock.now()))
        if not target or self._machines.world.clock.now() >= until or self._machines.read(host) is TARGETS[target][0]:
            self._work.pop(host, None)
            return None
        return target


@contextmanager
def by_ironic(machines: Machines, web: Any) -> Iterator[tuple[Power, PowerAdapter, str | None]]:
    """Switch machines by Ironic; yield the adapter and its name; the targets are the names of hosts."""
    serve_ironic(web)
    ironic = Ironic(machines)
    web.get(NODE, json=ironic.get)
    web.put(NODE, json=ironic.put)
    shutdown = machines.world.settings.power.shutdown_timeout
    yield IronicPower(an_access(), shutdown_timeout=shutdown), PowerAdapter.IRONIC, None


def serve_ironic(web: Any) -> None:
    """Let the catalog of Keystone have an Ironic, which says its versions."""
    token = fixture.V3Token(user_name="blazar", project_name="service")
    token.add_service("baremetal").add_standard_endpoints(public=IRONIC, region="RegionOne")
    web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t"})
    version = {
        "id": "v1",
        "status": "CURRENT",
        "min_version": "1.1",
        "version": "1.95",
        "links": [{"rel": "self", "href": f"{IRONIC}/v1/"}],
    }
    for url in (IRONIC, f"{IRONIC}/"):
        web.get(url, json={"default_version": version, "versions": [version]})
    web.get(f"{IRONIC}/v1/", json={"id": "v1", "version": version, "links": version["links"]})


def give_adapter(world: World, power: Power, adapter: PowerAdapter, target: str | None) -> None:
    """Have the hosts of a world switched by an adapter."""
    world.power = power
    world.manager = world.another_manager()
    for host in hosts_of(world):
        address = PowerAddress(adapter, target or host.name)
        world.store.power_hosts.change(host.external_id, PowerChange(address), at=world.clock.now())
