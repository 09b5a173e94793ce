# SPDX-License-Identifier: Apache-2.0
"""What all parts of a manager share: database, clock, claims, types, and the tasks that a lease is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from functools import partial

from blazar.calendar.repack.refused import RefusedSearches
from blazar.clouds.curve_file import NO_CARBON
from blazar.clouds.ports.compute import Metrics, NoMetrics
from blazar.clouds.ports.energy import CarbonSource, HostMeters, NoMeters
from blazar.clouds.ports.people import Mail, NoMail, NoPeople, People
from blazar.clouds.ports.power import NoPower, Power
from blazar.clouds.ports.webhooks import NoWebhooks, Webhooks
from blazar.enforcement import Enforcement
from blazar.manager.common.background import Signals
from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.power_classes import NONE, PowerClasses
from blazar.manager.common.settings import Settings
from blazar.model.base.amounts import Amounts
from blazar.model.base.clock import Clock
from blazar.model.base.errors import NotFound
from blazar.model.base.values import dataclass, field, replace
from blazar.model.calendar.allocations import Allocation
from blazar.model.leases.lease import Lease
from blazar.model.leases.limits import Bounds
from blazar.model.leases.reservation import Reservation
from blazar.model.power.classes import LearnedClasses
from blazar.model.resources.regions import Regions
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.model.subscriptions.details import Channel
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Reference, Task
from blazar.store.resources.catalog import ResourceCatalog
from blazar.store.store import Store

NO_METRICS = NoMetrics()
NO_WEBHOOKS = NoWebhooks()
NO_MAIL_SERVER, NOBODY = NoMail(), NoPeople()
NO_POWER = NoPower()
NO_METERS = NoMeters()


@dataclass(frozen=True, slots=True)
class Runtime:
    """Database, clock, claims, settings, notifications, types, enforcement and signals of one manager.

    ``metrics`` measures servers, where policies name that. ``webhooks`` sends messages to subscribers, and
    ``mail`` those to users, whose addresses ``people`` knows. ``carbon`` tells what the power of the site emits,
    and ``meters`` keeps what hosts drew. ``powers`` switches the hosts of each region, and ``power_classes`` keeps
    what is learned of their sleep. ``refused_searches`` are those for hosts that others leave.
    """

    store: Store
    clock: Clock
    claims: Claims
    settings: Settings
    notifier: Notifier
    types: Mapping[str, ResourceType]
    regions: Regions = Regions()
    metrics: Metrics = NO_METRICS
    enforcement: Enforcement = field(default_factory=Enforcement)
    signals: Signals = field(default_factory=Signals)
    webhooks: Webhooks = NO_WEBHOOKS
    mail: Mail = NO_MAIL_SERVER
    people: People = NOBODY
    carbon: CarbonSource = NO_CARBON
    meters: HostMeters = NO_METERS
    powers: Mapping[str, Power] = field(default_factory=dict)
    power_classes: PowerClasses = field(default_factory=PowerClasses)
    refused_searches: RefusedSearches = field(default_factory=RefusedSearches)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The ways by which subscribers can be told."""
        ways = {Channel.WEBHOOK: self.webhooks.enabled, Channel.MAIL: self.mail.enabled}
        return tuple(channel for channel, enabled in ways.items() if enabled)

    def power_of(self, resource: Resource) -> Power:
        """Return what switches the power of a host."""
        return self.powers.get(resource.region or self.regions.default, NO_POWER)

    def learned_power(self, now: datetime, seen: Mapping[int, str] = NONE) -> LearnedClasses:
        """Return what is learned of the classes of hosts that may sleep, some of which were ``seen`` to have these.

        Four statements an hour.
        """
        return self.power_classes.read(self.store, self.settings, now, seen)

    def bounds_of(self, project_id: str) -> Bounds:
        """Return the limits on what a project has: none if it is exempt from enforcement."""
        return Bounds() if self.enforcement.exempts(project_id) else self.settings.bounds

    def most_series_of(self, project_id: str) -> int | None:
        """Return how many series a project may have; None: any number."""
        return None if self.enforcement.exempts(project_id) else self.settings.max_series

    def type_of(self, reservation: Reservation) -> ResourceType:
        """Return the resource type of a reservation. NotFound if it is no longer enabled."""
        if reservation.resource_type not in self.types:
            raise NotFound(
                f"resource type {reservation.resource_type} is no longer enabled; an operator can enable it again",
                code="invalid_state",
            )
        return self.types[reservation.resource_type]

    def lead_before_end(self, lease: Lease) -> timedelta:
        """Return how long before its end a lease is warned of it by default; zero: it is not."""
        return self.settings.lead_before_end([reservation.resource_type for reservation in lease.reservations])

    def kinds_of(self, lease: Lease) -> Mapping[str, ResourceKind]:
        """Return the kind of resource that each reservation of a lease takes. NotFound as for ``type_of``."""
        return {reservation.id: self.type_of(reservation).kind for reservation in lease.reservations}

    def references(self, reservation: Reservation) -> tuple[Reference, ...]:
        """Return the references of a reservation; none if its type is no longer enabled."""
        known = self.types.get(reservation.resource_type)
        return () if known is None else known.references(reservation.parameters)

    def tasks(self, lease: Lease, allocations: Collection[Allocation]) -> tuple[Task, ...]:
        """Return the reservations of a lease, each with the resources of its part of the allocations."""
        history = self.history(lease)
        ids = {a.resource_id for a in allocations}.union(*history.values())
        resources = self.store.resources.by_ids(ids) if ids else {}
        return self.with_shares(tasks_of(lease, allocations, resources, history))

    def with_shares(self, tasks: Collection[Task]) -> tuple[Task, ...]:
        """Return tasks; those whose types must know it can tell what the project has in its other reservations."""
        return tuple(self._with_shares(task) for task in tasks)

    def _with_shares(self, task: Task) -> Task:
        known = self.types.get(task.reservation.resource_type)
        if known is None or not known.reads_shares:
            return task
        return replace(task, shares=partial(self._shares, task.lease.project_id, task.reservation.id))

    def _shares(
        self, project_id: str, besides: str, resource_ids: Collection[int]
    ) -> Mapping[int, Mapping[str, Amounts]]:
        now = self.clock.now()
        return self.store.calendar.project_shares(project_id, resource_ids, besides=besides, now=now)

    def reads_history(self, lease: Lease) -> bool:
        """Return whether a type of a reservation of a lease must know its history."""
        return any(self._reads_history(reservation) for reservation in lease.reservations)

    def _reads_history(self, reservation: Reservation) -> bool:
        known = self.types.get(reservation.resource_type)
        return known is not None and known.reads_history

    def history(self, lease: Lease) -> History:
        """Return the history of the reservations whose types must know it; no statement if there are none."""
        if not self.reads_history(lease):
            return {}
        used = self.store.calendar.load_assignment_counts(lease.id)
        return {r.id: used.get(r.id, {}) for r in lease.reservations if self._reads_history(r)}


def with_capabilities(task: Task, catalog: ResourceCatalog) -> Task:
    """Return a task whose registered resources have their capabilities, which requirements may name."""
    known = {id_: catalog.by_id[id_] for id_ in task.counts if id_ in catalog.by_id}
    return replace(task, resources=tuple(known.get(resource.id, resource) for resource in task.resources))


History = Mapping[str, Mapping[int, int]]
"""How often each resource was assigned to each reservation, by its id and calendar id."""


def tasks_of(
    lease: Lease, allocations: Collection[Allocation], resources: Mapping[int, Resource], history: History | None = None
) -> tuple[Task, ...]:
    """Return the reservations of a lease, each with the resources of its part of the allocations."""
    tasks = []
    for reservation in lease.reservations:
        counts: Counter[int] = Counter()
        for allocation in allocations:
            if allocation.reservation_id == reservation.id:
                counts[allocation.resource_id] += allocation.count
        turns = (history or {}).get(reservation.id, {})
        former = tuple(resources[id_] for id_ in sorted(turns.keys() - counts.keys()))
        held = tuple(resources[id_] for id_ in counts)
        tasks.append(Task(lease, reservation, held, counts, former=former, turns=turns))
    return tuple(tasks)
