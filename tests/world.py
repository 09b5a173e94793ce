# SPDX-License-Identifier: Apache-2.0
"""A whole service to test: a manager on a real database, a simulated cloud, and a clock that stands still."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from sqlalchemy.engine import Engine

from blazar.clouds.ports import Cloud
from blazar.clouds.simulated import Faults, MemoryStorage, State, of_size, of_yaml
from blazar.clouds.simulated.people import SimulatedMail, SimulatedPeople
from blazar.clouds.simulated.state import AggregateState
from blazar.clouds.simulated.volume_state import PoolState
from blazar.clouds.simulated.webhooks import SimulatedWebhooks
from blazar.enforcement import CloudIdentity, Enforcement, Filter
from blazar.manager.common.notifications import Parties
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.moments import NOW, Duration, Moment
from blazar.model.energy.book import NO_ENERGY, EnergyTerms
from blazar.model.leases.lease import Lease
from blazar.model.leases.reminders import Reminder
from blazar.model.leases.requests import LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import DEVICE, FLOATING_IP, GENERIC, HOST, NETWORK, VOLUME, Resource, ResourceKind
from blazar.model.series.checks import Fit
from blazar.model.series.details import SeriesRequest, Template
from blazar.model.series.recurrence import LocalEnd, Recurrence
from blazar.model.series.rule_text import parse_rule
from blazar.model.use.preemption import Preemption
from blazar.resources.contract.evacuation import MovedServer
from blazar.resources.contract.kind import CalendarReads
from blazar.resources.contract.type import ResourceType
from blazar.resources.devices.kind import Devices
from blazar.resources.devices.type import DeviceReservation
from blazar.resources.floating_ips.kind import FloatingIps
from blazar.resources.floating_ips.type import VirtualFloatingIp
from blazar.resources.generic.kind import GenericResources
from blazar.resources.generic.type import Generic
from blazar.resources.hosts.kind import Hosts
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.registration import HostRegistration
from blazar.resources.hosts.type import PhysicalHost
from blazar.resources.instances.flavor import FlavorInstance
from blazar.resources.instances.virtual import VirtualInstance
from blazar.resources.networks.kind import NetworkSegments
from blazar.resources.networks.type import NetworkReservation
from blazar.resources.servers.type import VirtualServer
from blazar.resources.stacks.type import VirtualStack
from blazar.resources.volumes.kind import VolumePools
from blazar.resources.volumes.type import VirtualVolume
from blazar.store.store import Store
from blazarconformance.clock import NOON as NOON
from blazarconformance.clock import ManualClock
from tests.people import PeopledCloud, SimulatedMetrics
from tests.tables import contents, fill, new_sqlite

PROJECT = "physics"


@dataclass(slots=True)
class RecordingNotifier:
    """Remembers what the world was told: (type, status of the lease)."""

    told: list[tuple[str, Lease]] = field(default_factory=list)
    extendable_until: datetime | None = None
    transfer: Parties | None = None
    reminded: list[str] = field(default_factory=list)
    moved: list[tuple[str, tuple[MovedServer, ...]]] = field(default_factory=list)
    """Which servers of which project were said to have been moved, by each message."""
    preempted: list[tuple[str, tuple[Preemption, ...]]] = field(default_factory=list)
    """Which servers of which project were said to go, by each message."""

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
        reminder: str | None = None,
    ) -> None:
        self.told.append((notification, lease))
        self.extendable_until = extendable_until
        self.transfer = transfer
        if reminder is not None:
            self.reminded.append(reminder)

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        self.moved.append((project_id, tuple(servers)))

    def notify_preempted(self, project_id: str, told: Collection[Preemption]) -> None:
        self.preempted.append((project_id, tuple(told)))

    @property
    def types(self) -> list[str]:
        return [notification for notification, _ in self.told]


def _addresses(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return VirtualFloatingIp(cloud, before_end=settings.before_end)


def _networks(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return NetworkReservation(cloud, before_end=settings.before_end)


def _devices(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return DeviceReservation(cloud.hooks)


def _things(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return Generic(cloud.hooks, before_end=settings.before_end)


def _volumes(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return VirtualVolume(cloud, before_end=settings.before_end)


def _stacks(cloud: Cloud, settings: HostSettings) -> ResourceType:
    return VirtualStack(cloud, before_end=settings.before_end)


TYPES = (
    PhysicalHost,
    VirtualInstance,
    FlavorInstance,
    _addresses,
    _networks,
    _devices,
    _things,
    _volumes,
    VirtualServer,
    _stacks,
)


def kinds_of(cloud: Cloud, settings: HostSettings) -> Mapping[ResourceKind, Any]:
    """Return our own kinds of resource, on this cloud."""
    hosts = Hosts(HostRegistration(cloud, settings.aggregates))
    return {
        HOST: hosts,
        FLOATING_IP: FloatingIps(cloud.network),
        NETWORK: NetworkSegments(cloud.segments),
        DEVICE: Devices(cloud.hooks),
        GENERIC: GenericResources(cloud.hooks),
        VOLUME: VolumePools(cloud.volumes),
    }


class World:
    """A service with its surroundings. Events run when the test calls ``run``."""

    def __init__(
        self,
        engine: Engine,
        *,
        hosts: int = 3,
        settings: Settings | None = None,
        host_settings: HostSettings | None = None,
        state: State | None = None,
        clock: ManualClock | None = None,
        cloud: PeopledCloud | None = None,
        register: bool = True,
        filters: Sequence[Filter] = (),
        exempt: Collection[str] = (),
        identity: CloudIdentity | None = None,
        shares: Collection[int] = (),
        patience: timedelta = timedelta(0),
        cleaning_time: timedelta = timedelta(0),
        types: Sequence[Callable[[Cloud, HostSettings], ResourceType]] = TYPES,
        kinds: Callable[[Cloud, HostSettings], Mapping[ResourceKind, Any]] = kinds_of,
        energy: EnergyTerms = NO_ENERGY,
    ) -> None:
        usual = state is clock is cloud is host_settings is None and kinds is kinds_of
        if register and usual and fill(engine, _registered(hosts)[0]):
            register, state = False, _registered(hosts)[1].copy()
        self._kinds = kinds
        self._types = types
        self.enforcement = Enforcement(filters, exempt=exempt, identity=identity, shares=shares)
        self.clock = clock or ManualClock()
        self.faults = Faults(sleep=lambda _: None)
        self.simulated = cloud or PeopledCloud(
            MemoryStorage(state or of_size(max(hosts, 1))), clock=self.clock, faults=self.faults
        )
        self.faults = self.simulated.faults
        self.power = self.simulated.cloud.power
        self.store = Store(engine, cleaning_time=cleaning_time, energy=energy)
        self.engine = engine
        self.notifier = RecordingNotifier()
        self.metrics = SimulatedMetrics()
        self.webhooks = SimulatedWebhooks()
        self.mail, self.people = SimulatedMail(), SimulatedPeople()
        # Where starts are promised, a test says so.
        usual_settings = Settings(claim_ttl=timedelta(seconds=30), promises=0)
        self.settings = replace(settings or usual_settings, patience=patience)
        self.waits = False
        """Whether the waiting list works, too."""
        self.host_settings = host_settings or HostSettings()
        self.manager = self.another_manager()
        if register:
            for number in range(1, hosts + 1):
                self.register(f"node-{number}")

    def another_manager(
        self,
        *,
        store: Store | None = None,
        types: Sequence[Callable[[Cloud, HostSettings], ResourceType]] | None = None,
        settings: Settings | None = None,
    ) -> ManagerService:
        """Return one more manager on the same database and cloud, with claims of its own.

        ``store`` is the database as this manager sees it, ``types`` are the types that it offers; by default both are
        as for the others, and so are its settings.
        """
        cloud = self.simulated.cloud
        return ManagerService(
            store or self.store,
            self.clock,
            settings or self.settings,
            Plugins(
                tuple(make(cloud, self.host_settings) for make in (self._types if types is None else types)),
                self._kinds(cloud, self.host_settings),
                self.notifier,
                self.enforcement,
                metrics=self.metrics,
                webhooks=self.webhooks,
                mail=self.mail,
                people=self.people,
                powers={"": self.power},
            ),
        )

    def refresh_hosts(self) -> frozenset[str]:
        """Poll the hosts for their data alone; return the ids of those that changed."""
        calendar, hosts = self.store.calendar, self.store.resources.catalog(HOST).resources
        in_use = lambda: calendar.names_in_use(HOST, self.clock.now())  # noqa: E731
        uses = CalendarReads(
            in_use,
            calendar.names_by_reservation,
            lambda *_: None,
            self.store.leases.map_projects,
            calendar.find_promised,
        )
        polled = kinds_of(self.simulated.cloud, self.host_settings)[HOST].poll(hosts, uses)
        changed = self.store.resources.refresh(HOST, polled.details, at=self.clock.now())
        return frozenset(host.external_id for host in hosts if host.id in changed)

    def register(self, name: str, **capabilities: str) -> Resource:
        return self.manager.resources.register(HOST, host_request(name=name, capabilities=capabilities))

    def register_addresses(self, *numbers: int) -> list[Resource]:
        """Register 203.0.113.N of the external network, for each of these."""
        return [
            self.manager.resources.register(FLOATING_IP, address_request("public", f"203.0.113.{number}"))
            for number in numbers
        ]

    def register_segments(self, *numbers: int) -> list[Resource]:
        """Register VLANs of physnet1 with these ids."""
        return [self.manager.resources.register(NETWORK, segment_request(number)) for number in numbers]

    def register_thing(self, name: str = "microscope-1", **more: Any) -> Resource:
        """Register a thing with a hook."""
        return self.manager.resources.register(GENERIC, thing_request(name, **more))

    def register_device(self, name: str = "edge-1", **more: Any) -> Resource:
        """Register a device with a hook."""
        return self.manager.resources.register(DEVICE, device_request(name, **more))

    def register_pools(self, *numbers: int, gigabytes: int = 30) -> list[Resource]:
        """Add pools of volumes to the cloud, each with a type that leads to it alone, and register them."""
        made = []
        for number in numbers:
            name = f"node@disks#{number}"
            self.simulated.volume_users.add_pool(
                PoolState(name, "disks", str(number), gigabytes), type_name=f"disks-{number}"
            )
            given = {"pool": name, "volume_type": f"disks-{number}", "gigabytes": gigabytes}
            made.append(self.manager.resources.register(VOLUME, Registration(given)))
        return made

    def lease(
        self,
        *reservations: ReservationRequest,
        start: Moment | timedelta = NOW,
        hours: float = 2,
        end: Moment | None = None,
        name: str = "a lease",
        before_end: datetime | None = None,
        project: str = PROJECT,
        operator: bool = False,
        kind: LeaseKind = LeaseKind.SCHEDULED,
        wait: timedelta | None = None,
        tries: int | None = None,
        latest: timedelta | None = None,
        at_least: timedelta | None = None,
        extend: datetime | None = None,
        reminders: tuple[Reminder, ...] = (),
        confirm: timedelta | None = None,
    ) -> Lease:
        """Create a lease; by default on one host, from now on, for two hours."""
        begins = self.clock.now() + start if isinstance(start, timedelta) else start
        if isinstance(begins, datetime):
            begins = begins.replace(second=0, microsecond=0)
        base = begins if isinstance(begins, datetime) else self.clock.now().replace(second=0, microsecond=0)
        return self.manager.leases.create(
            LeaseRequest(
                name=name,
                user_id="curie",
                project_id=project,
                start=begins,
                end=end or base + timedelta(hours=hours),
                before_end=before_end,
                reservations=reservations or (a_host(),),
                operator=operator,
                kind=kind,
                wait_until=None if wait is None else self.clock.now() + wait,
                tries=tries,
                latest_start=None if latest is None else Duration(seconds=int(latest.total_seconds())),
                at_least=None if at_least is None else Duration(seconds=int(at_least.total_seconds())),
                extend_until=extend,
                reminders=reminders,
                confirm_within=None if confirm is None else Duration(seconds=int(confirm.total_seconds())),
            )
        )

    def change(self, lease: Lease, **changes: Any) -> Lease:
        return self.manager.leases.update(lease.id, LeaseChange(**changes))

    def resize(self, lease: Lease, **parameters: Any) -> Lease:
        change = ReservationChange(id=lease.reservations[0].id, parameters=parameters)
        return self.manager.leases.update(lease.id, LeaseChange(reservations=(change,)))

    def run(self) -> None:
        """Work on everything that is due at this moment."""
        self.manager.engine.run_due()
        while self.manager.series_work.run_once():
            self.manager.engine.run_due()
        while self.waits and self.manager.waiting_list.run_once():
            self.manager.engine.run_due()
        self.manager.outbox.run_due()

    def run_to(self, instant: datetime, *, pause: timedelta = timedelta(0)) -> None:
        """Let time pass until then, working on events as they fall due, with a pause of the manager after each work.

        What a manager looks at each second for hours takes long without one.
        """
        while (due := self.store.events.next_due()) is not None and due <= instant:
            self.clock.to(max(due, min(self.clock.now() + pause, instant)))
            self.run()
        self.clock.to(instant)
        self.run()

    def now(self, lease: Lease) -> Lease:
        """Return the lease as it is by now, deleted or not."""
        return self.store.leases.one(lease.id, including_deleted=True)

    def now_of(self, lease_id: str) -> Lease:
        """Return the lease with this id as it is by now, deleted or not."""
        return self.store.leases.one(lease_id, including_deleted=True)

    def pool(self, name: str = "freepool") -> frozenset[str]:
        """Return the hosts of an aggregate; none if it does not exist."""
        return frozenset(host for a in self.aggregates() if a.name == name for host in a.hosts)

    def aggregates(self) -> list[AggregateState]:
        """Return the aggregates of the cloud, past its faults."""
        with self.simulated.inspect() as state:
            return list(state.aggregates.values())

    def hosts_of(self, lease: Lease) -> frozenset[str]:
        """Return the names of the hosts that are promised to a lease."""
        allocations = self.store.calendar.of_lease(lease.id)
        found = self.store.resources.by_ids({a.resource_id for a in allocations})
        return frozenset(resource.name for resource in found.values())

    def reservation_aggregates(self) -> list[str]:
        """Return the aggregates that belong to reservations."""
        return [a.name for a in self.aggregates() if (a.zone or "").startswith("blazar_")]


@cache
def _registered(hosts: int) -> tuple[bytes, State]:
    """Return the database and the cloud of a world with so many hosts: most worlds begin so, and they take long."""
    with TemporaryDirectory() as folder:
        world = World(new_sqlite(Path(folder) / "blazar.sqlite"), hosts=hosts, state=of_size(max(hosts, 1)))
        with world.simulated.inspect() as state:
            return contents(world.engine), state.copy()


def copied(engine: Engine, prepare: Callable[[World], Any]) -> tuple[World, Any]:
    """Return a world on SQLite as ``prepare`` leaves one, and what that returns. It runs once, before time passes."""
    database, state, made = _prepared(prepare)
    assert fill(engine, database), "the database is not a new one on SQLite"
    return World(engine, register=False, state=state.copy()), copy.deepcopy(made)


@cache
def _prepared(prepare: Callable[[World], Any]) -> tuple[bytes, State, Any]:
    with TemporaryDirectory() as folder:
        world = World(new_sqlite(Path(folder) / "blazar.sqlite"))
        made = prepare(world)
        with world.simulated.inspect() as state:
            return contents(world.engine), state.copy(), made


def host_request(
    name: str | None = None, id: str | None = None, capabilities: Mapping[str, str] | None = None, **more: Any
) -> Registration:
    """Ask to register a host."""
    return Registration({"name": name, "id": id}, capabilities or {}, **more)


def address_request(network_id: object, address: object) -> Registration:
    """Ask to register an address."""
    return Registration({"floating_network_id": network_id, "floating_ip_address": address})


def segment_request(
    segment_id: object, *, physical: object = "physnet1", kind: object = "vlan", capabilities: Mapping[str, str] = {}
) -> Registration:
    """Ask to register a segment."""
    given = {"network_type": kind, "physical_network": physical, "segment_id": segment_id}
    return Registration(given, capabilities)


def thing_request(name: str, *, capabilities: Mapping[str, str] | None = None, **more: Any) -> Registration:
    """Ask to register a thing with a hook."""
    usual = {"name": name, "class": "microscope", "hook_url": f"https://lab.example/{name}"}
    return Registration({**usual, **more}, capabilities or {})


def device_request(name: str, *, capabilities: Mapping[str, str] | None = None, **more: Any) -> Registration:
    """Ask to register a device with a hook."""
    return Registration({"name": name, "hook_url": f"https://edge.example/{name}", **more}, capabilities or {})


def a_host(
    minimum: int = 1, maximum: int | None = None, needs: object = "", before_end: str = "default"
) -> ReservationRequest:
    """Ask for hosts."""
    return ReservationRequest(
        "physical:host",
        {
            "min": minimum,
            "max": minimum if maximum is None else maximum,
            "hypervisor_properties": "",
            "resource_properties": needs,
            "before_end": before_end,
        },
    )


def instances(
    amount: int = 1,
    *,
    vcpus: int = 2,
    memory_mb: int = 2048,
    disk_gb: int = 10,
    affinity: object = None,
    needs: object = "",
    before_end: str = "default",
) -> ReservationRequest:
    """Ask for servers of one size."""
    return ReservationRequest(
        "virtual:instance",
        {
            "amount": amount,
            "vcpus": vcpus,
            "memory_mb": memory_mb,
            "disk_gb": disk_gb,
            "affinity": affinity,
            "resource_properties": needs,
            "before_end": before_end,
        },
    )


def flavored(
    amount: int = 1, flavor_id: object = "small", *, affinity: object = None, **more: Any
) -> ReservationRequest:
    """Ask for servers of a flavor."""
    return ReservationRequest(
        "flavor:instance", {"flavor_id": flavor_id, "amount": amount, "affinity": affinity, **more}
    )


def of_hosts(*hosts: Mapping[str, Any]) -> State:
    """Return a cloud of hosts node-1, node-2, … that are as is said, and else have 16 VCPUs."""
    usual = {"zone": "az-1", "vcpus": 16, "memory_mb": 65536, "local_gb": 400}
    named = [{"name": f"node-{number}", **usual, **host} for number, host in enumerate(hosts, start=1)]
    return _described(json.dumps({"zones": ["az-1"], "hosts": named})).copy()


@cache
def _described(text: str) -> State:
    """Return a cloud that JSON describes: reading YAML takes long, and most tests have the same few clouds."""
    return of_yaml(yaml.safe_dump(json.loads(text)))


def addresses(
    amount: object = 1, *, required: object = (), network: object = "public", before_end: str = "default"
) -> ReservationRequest:
    """Ask for floating IPs; required are given as texts, or as the last numbers of 203.0.113.0/24."""
    if isinstance(required, list | tuple):
        required = [f"203.0.113.{item}" if isinstance(item, int) else item for item in required]
    values = {"network_id": network, "amount": amount, "required_floatingips": required, "before_end": before_end}
    return ReservationRequest("virtual:floatingip", values)


def a_network(name: object = "lab", *, needs: object = "", **more: Any) -> ReservationRequest:
    """Ask for a network."""
    return ReservationRequest("network", {"network_name": name, "resource_properties": needs, **more})


def things(minimum: int = 1, maximum: int | None = None, **more: Any) -> ReservationRequest:
    """Ask for whole things of a class."""
    most = minimum if maximum is None else maximum
    return ReservationRequest("generic", {"class": "microscope", "min": minimum, "max": most, **more})


def devices(minimum: int = 1, maximum: int | None = None, **more: Any) -> ReservationRequest:
    """Ask for devices."""
    return ReservationRequest("device", {"min": minimum, "max": minimum if maximum is None else maximum, **more})


def volumes(amount: object = 1, *, size: object = 10, **more: Any) -> ReservationRequest:
    """Ask for volumes."""
    return ReservationRequest("virtual:volume", {"amount": amount, "size": size, **more})


def servers(amount: object = 1, **more: Any) -> ReservationRequest:
    """Ask for servers that are booted at the start."""
    size = {"vcpus": 8, "memory_mb": 4096, "disk_gb": 20}
    return ReservationRequest("virtual:server", {"amount": amount, "image": "cirros", **size, **more})


def stacks(*flavors: object, disks: int = 0, outside: int = 0, **more: Any) -> ReservationRequest:
    """Ask for a stack of a server of each of these flavors, of volumes of disks-1, and of addresses."""
    server = lambda flavor: {"type": "OS::Nova::Server", "properties": {"flavor": flavor, "image": "cirros"}}  # noqa: E731
    disk = {"type": "OS::Cinder::Volume", "properties": {"size": 5, "volume_type": "disks-1"}}
    address = {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}}
    resources = {
        **{f"server-{number}": server(flavor) for number, flavor in enumerate(flavors)},
        **{f"disk-{number}": disk for number in range(disks)},
        **{f"address-{number}": address for number in range(outside)},
    }
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    return ReservationRequest("virtual:stack", {"template": template, **more})


def units(amount: object = 1, **more: Any) -> ReservationRequest:
    """Ask for units of one thing of a class."""
    return ReservationRequest("generic", {"class": "microscope", "amount": amount, **more})


def a_series(
    *reservations: ReservationRequest,
    rule: str = "FREQ=DAILY;COUNT=5",
    start: datetime = datetime(2030, 4, 2, 8),
    zone: str = "UTC",
    length: timedelta | LocalEnd = timedelta(hours=4),
    fit: Fit = Fit.ALL,
    project: str = PROJECT,
    before_end: Duration | None = None,
    **more: Any,
) -> SeriesRequest:
    """Ask for a host from 8 to 12 on five days, from tomorrow on."""
    given = {name: more.pop(name) for name in ("excluded", "added") if name in more}
    recurrence = Recurrence(start, zone, parse_rule(rule), length, **given)
    template = Template(reservations or (a_host(),), before_end)
    return SeriesRequest("practical", "curie", project, recurrence, template, fit, **more)


WorldMaker = Callable[..., World]
