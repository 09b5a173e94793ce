# SPDX-License-Identifier: Apache-2.0
"""The clouds that keep the contract: the simulated one, with either storage, and the real one of ``make cloud``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor, Server
from blazar.clouds.simulated import FileStorage, MemoryStorage, State, of_size
from blazar.clouds.simulated.server_state import MoveFault
from blazar.clouds.simulated.state import HostState
from tests import openstack
from tests.people import PeopledCloud
from tests.world import ManualClock


class Outside(Protocol):
    """An external network of a cloud, made when it is first asked for."""

    @property
    def id(self) -> str: ...

    @property
    def subnet_id(self) -> str: ...

    @property
    def cidr(self) -> str: ...

    def attach(self, floating_ip_id: str) -> None: ...

    def take_address(self, address: str) -> None: ...


@dataclass
class SimulatedOutside:
    """The one of the simulated cloud."""

    simulated: PeopledCloud
    id: str = "public"
    subnet_id: str = "public-subnet"
    cidr: str = "203.0.113.0/24"

    def attach(self, floating_ip_id: str) -> None:
        self.simulated.users.attach(floating_ip_id)

    def take_address(self, address: str) -> None:
        self.simulated.operators.take_address(self.id, address)


@dataclass
class Site:
    """A cloud to try the ports on, whose hosts are all in one operator's zone.

    ``boot`` lets a server run on a host by whatever means the cloud has, ``boot_reserved`` one with a flavor wherever
    the cloud puts it, and ``shelve`` takes one from its host; ``soon`` looks again until it is true, for clouds that
    take their time. ``service`` lets the nova-compute of a host be up or down, enabled or disabled. ``inventories``
    tells what a host's own provider has, in Placement's words; ``nest`` gives it a nested provider of a name with such
    inventories, and ``mark`` a trait of its own. ``public_flavor`` is the id of one.
    ``spoil_move`` lets the next live move of a server fail, hang, or be beyond the point of return (None: none of it);
    ``finish_move`` lets the latter two complete.
    ``external`` is an external network with one subnet, whose addresses from .128 on are its pool; ``attach`` attaches
    a floating IP to a port, ``take_address`` lets a port have an address.
    """

    cloud: Cloud
    hosts: list[str]
    zone: str
    project: str
    boot: Callable[..., Server]
    boot_reserved: Callable[[str], str]
    shelve: Callable[[str], None]
    inventories: Callable[[str], Mapping[str, Mapping[str, Any]]]
    nest: Callable[[str, str, Mapping[str, Mapping[str, Any]]], None]
    mark: Callable[[str, str], None]
    service: Callable[..., None]
    spoil_move: Callable[[str, MoveFault | None], None]
    finish_move: Callable[[str], None]
    public_flavor: str
    outside: Outside
    patience: float = 0.0

    @property
    def external(self) -> str:
        return self.outside.id

    @property
    def subnet(self) -> str:
        return self.outside.subnet_id

    @property
    def cidr(self) -> str:
        return self.outside.cidr

    def address(self, number: int) -> str:
        return f"{self.cidr.rpartition('.')[0]}.{number}"

    def attach(self, floating_ip_id: str) -> None:
        self.outside.attach(floating_ip_id)

    def take_address(self, address: str) -> None:
        self.outside.take_address(address)

    def soon(self, look: Callable[[], Any], good: Callable[[Any], bool] = bool) -> Any:
        return openstack.eventually(look, good, patience=self.patience)


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def site(request, tmp_path) -> Iterator[Site]:
    yield from real_site() if request.param == "openstack" else simulated_site(request.param, tmp_path)


@pytest.fixture
def cloud(site: Site) -> Cloud:
    """The ports alone."""
    return site.cloud


def simulated_site(keeping: str, tmp_path: Path) -> Iterator[Site]:
    state = of_size(12)
    storage = MemoryStorage(state) if keeping == "memory" else FileStorage(tmp_path / "cloud.json", state)
    simulated = PeopledCloud(storage, clock=ManualClock())

    def boot(host: str, **more: Any) -> Server:
        return simulated.users.boot_server("work", project_id="p", user_id="u", host=host, **more)

    def boot_reserved(flavor_id: str) -> str:
        return simulated.users.boot_reserved(flavor_id, project_id="p").id

    def inventories(host: str) -> Mapping[str, Mapping[str, Any]]:
        with simulated.inspect() as kept:
            found = _named(kept, host)
            sizes = {"VCPU": found.vcpus, "MEMORY_MB": found.memory_mb, "DISK_GB": found.local_gb}
            return {
                name: {"total": size, "reserved": 0, "allocation_ratio": 1.0, **found.inventories.get(name, {})}
                for name, size in sizes.items()
            }

    def nest(host: str, name: str, inventories: Mapping[str, Mapping[str, Any]]) -> None:
        with simulated.change_state() as kept:
            _named(kept, host).nested[name] = {key: dict(value) for key, value in inventories.items()}

    def mark(host: str, trait: str) -> None:
        with simulated.change_state() as kept:
            _named(kept, host).traits.append(trait)

    def service(host: str, *, up: bool = True, enabled: bool = True) -> None:
        (simulated.operators.host_up if up else simulated.operators.host_down)(host)
        (simulated.operators.host_enabled if enabled else simulated.operators.host_disabled)(host)

    simulated.operators.offer_flavor(Flavor("tiny", "tiny", 1, 64, 0, public=True))
    with simulated.change_state() as kept:
        _named(kept, "node-1").inventories = {"VCPU": {"allocation_ratio": 4.0}, "MEMORY_MB": {"reserved": 512}}
    hosts = ["node-1", "node-3", "node-5"]
    yield Site(
        simulated.cloud,
        hosts,
        "az-2",
        "p",
        boot,
        boot_reserved,
        simulated.users.shelve,
        inventories,
        nest,
        mark,
        service,
        simulated.operators.spoil_move,
        simulated.operators.finish_move,
        "tiny",
        SimulatedOutside(simulated),
    )


def _named(state: State, name: str) -> HostState:
    return next(host for host in state.hosts.values() if host.name == name)


_WORDS = {MoveFault.FAILS: "fail", MoveFault.HANGS: "hang", MoveFault.POST_COPY: "post-copy"}
"""The faults of a move in the words of the test cloud's driver."""


def real_site() -> Iterator[Site]:
    openstack.tidy()
    cloud = open_cloud(openstack.access("blazar"))
    compute = cloud.compute
    before = {aggregate.id for aggregate in compute.aggregates()}
    hosts = sorted(hypervisor.service_name for hypervisor in compute.hypervisors())[:3]
    zone = compute.create_aggregate("contract-zone", "contract-zone", {})
    for host in hosts:
        compute.add_host(zone.id, host)
    with openstack.servers("admin") as servers:

        def boot(
            host: str,
            *,
            locked: bool = False,
            status: str = "ACTIVE",
            group: str | None = None,
            tags: tuple[str, ...] = (),
        ) -> Server:
            made = servers.boot(host=host, group=group, tags=tags)
            if locked:
                servers.act(made["id"], {"lock": None})
            if status == "ERROR":
                servers.act(made["id"], {"os-resetState": {"state": "error"}})
            elif status == "SHUTOFF":
                servers.act(made["id"], {"os-stop": None})
                servers.settled(made["id"], ("SHUTOFF",))
            return next(server for server in compute.servers_on(host) if server.id == made["id"])

        def boot_reserved(flavor_id: str) -> str:
            made = servers.boot(flavor_id=flavor_id)
            assert made["status"] == "ACTIVE", made.get("fault")
            return str(made["id"])

        def service(host: str, *, up: bool = True, enabled: bool = True) -> None:
            openstack.set_service(host, forced_down=not up, status="enabled" if enabled else "disabled")

        def shelve(server_id: str) -> None:
            servers.act(server_id, {"shelve": None})
            servers.settled(server_id, ("SHELVED_OFFLOADED",))
            # Nova calls it offloaded a moment before it takes it from its host.
            openstack.eventually(lambda: not servers.show(server_id)["OS-EXT-SRV-ATTR:host"])

        project = servers.show_project()
        providers, outside, moves = openstack.Providers(), openstack.ExternalNetwork(), openstack.Moves()
        try:
            yield Site(
                cloud,
                hosts,
                zone.name,
                project,
                boot,
                boot_reserved,
                shelve,
                providers.inventories,
                providers.nest,
                providers.mark,
                service,
                lambda server_id, fault: moves.spoil(server_id, _WORDS[fault]) if fault else moves.finish(server_id),
                moves.finish,
                servers.flavor_id("tiny"),
                outside,
                patience=openstack.PATIENCE,
            )
        finally:
            moves.clean()
            # A server that is deleted while it moves leaves what the move holds in Placement for good.
            for host in hosts:
                openstack.eventually(lambda host=host: not cloud.evacuation.open_moves(host))
            providers.clean()
            servers.clean()
            for host in hosts:
                service(host)
            outside.clean()
            openstack.forget_images()
            for aggregate in compute.aggregates():
                if aggregate.id not in before:
                    for host in aggregate.hosts:
                        openstack.eventually(
                            lambda host=host, aggregate=aggregate: openstack.has_left(compute, aggregate.id, host)
                        )
                    compute.delete_aggregate(aggregate.id)
