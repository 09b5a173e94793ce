# SPDX-License-Identifier: Apache-2.0
"""The manager as a whole: builds its parts, and implements the interface that the API uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from blazar.clouds.ports.metrics import Metrics
from blazar.enforcement import Enforcement
from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.runtime import NO_METRICS, Runtime
from blazar.manager.common.settings import Settings
from blazar.manager.events.cloud_change import CloudChanges
from blazar.manager.events.engine import Engine
from blazar.manager.events.leftovers import Leftovers
from blazar.manager.events.starting import StartReplacements
from blazar.manager.events.sweep import Sweep
from blazar.manager.events.worker import Worker
from blazar.manager.health.enabling import Enabling
from blazar.manager.health.healing import Healing
from blazar.manager.health.healing_decisions import HealingDecisions
from blazar.manager.health.health import Health
from blazar.manager.health.in_use import InUse
from blazar.manager.health.missing import MissingResources
from blazar.manager.health.monitor import Monitor
from blazar.manager.lease.booking import Booking
from blazar.manager.lease.replanning import Replanner
from blazar.manager.maintenance.migrating import Migrating
from blazar.manager.maintenance.moving import Moving
from blazar.manager.maintenance.service import MaintenanceService
from blazar.manager.maintenance.worker import MaintenanceWork
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.requests.availability import AvailabilityService
from blazar.manager.requests.calendar import CalendarService
from blazar.manager.requests.creation import Creation
from blazar.manager.requests.deletion import Deletion
from blazar.manager.requests.extensions import Extensions
from blazar.manager.requests.facts import FactService
from blazar.manager.requests.feeds import FeedService
from blazar.manager.requests.forgetting import Forgetting
from blazar.manager.requests.keeping import Keeping
from blazar.manager.requests.leases import LeaseService
from blazar.manager.requests.refusals import Refusals
from blazar.manager.requests.resources import ResourceService
from blazar.manager.requests.series import SeriesService
from blazar.manager.requests.series_changes import SeriesChanging
from blazar.manager.requests.series_work import SeriesWork
from blazar.manager.requests.surgery import SurgeryService
from blazar.manager.requests.transfers import TransferService
from blazar.manager.requests.updates import Updates
from blazar.manager.requests.waiting_list import WaitingList
from blazar.model.clock import Clock
from blazar.model.regions import Regions
from blazar.model.resource import ResourceKind
from blazar.resources.base import ResourceType
from blazar.resources.complete import CompleteType
from blazar.resources.kinds import CompleteKind, Kind
from blazar.store.store import Store


@dataclass(frozen=True, slots=True)
class Plugins:
    """What is configured of a manager besides settings: kinds and types of resources, notifications, enforcement.

    With several ``regions`` the types and kinds are those of all (``resources.regional``).
    """

    types: tuple[ResourceType | CompleteType, ...]
    kinds: Mapping[ResourceKind, Kind | CompleteKind]
    notifier: Notifier
    enforcement: Enforcement = field(default_factory=Enforcement)
    regions: Regions = Regions()
    metrics: Metrics = NO_METRICS


class ManagerService:
    """A manager: answers requests in the caller's thread, and works on events in its own threads."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, plugins: Plugins) -> None:
        by_name = {
            plain.resource_type: plain if isinstance(plain, CompleteType) else CompleteType(plain)
            for plain in plugins.types
        }
        notifier, enforcement = plugins.notifier, plugins.enforcement
        self._store = store
        self.clock = clock
        self.claims = Claims(store, clock, settings.claim_ttl)
        runtime = Runtime(
            store,
            clock,
            self.claims,
            settings,
            notifier,
            by_name,
            wake=self._wake,
            freed=lambda: self.waiting_list.wake(),
            regions=plugins.regions,
            metrics=plugins.metrics,
        )
        self.outbox = Outbox(runtime, enforcement)
        booking = Booking(store, clock, settings)
        replanner = Replanner(runtime, booking)
        replacements = StartReplacements(runtime, replanner, booking)
        self.sweeps = tuple(Sweep(runtime, region) for region in plugins.regions)
        self.sweep = self.sweeps[0]
        self.leftovers = Leftovers(runtime, self.sweeps)
        worker = Worker(
            runtime,
            self.outbox,
            replacements,
            taken_over=self._sweep_soon,
            extendable_until=lambda lease: self.extensions.offer(lease),
        )
        changes = CloudChanges(runtime, worker)
        self.engine = Engine(runtime, worker)
        self._healing = Healing(runtime, replanner, booking, changes)
        self.missing_resources = MissingResources(runtime, booking)
        updates = Updates(runtime, booking, changes, self.outbox, self._healing)
        self.availability = AvailabilityService(runtime, updates, enforcement)
        creation = Creation(runtime, booking, changes, self.outbox)
        self.waiting_list = WaitingList(runtime, booking, creation, updates, self.outbox)
        deletion = Deletion(runtime, worker, self.outbox)
        self.leases = LeaseService(
            runtime,
            booking,
            creation,
            updates,
            deletion,
            Refusals(self.availability, enabled=settings.explain_refusals),
            Keeping(runtime),
            self.waiting_list,
        )
        self.surgery = SurgeryService(runtime, booking, replanner, updates, self.leases, self.outbox)
        self.transfers = TransferService(runtime, booking, updates, self.leases, enforcement)
        self.series_work = SeriesWork(runtime, booking, self.outbox, deletion, self.waiting_list)
        changing = SeriesChanging(runtime, booking, self.outbox, self.series_work)
        self.series = SeriesService(runtime, self.series_work, self.outbox, changing)
        self.extensions = Extensions(runtime, self.leases, self.availability, self.waiting_list)
        health = Health(store, clock, settings)
        kinds = {
            name: kind if isinstance(kind, CompleteKind) else CompleteKind(kind) for name, kind in plugins.kinds.items()
        }
        self.monitor = Monitor(runtime, kinds, health, self._healing, self.missing_resources)
        decisions = HealingDecisions(runtime, replanner)
        moving = Moving(runtime, booking, decisions)
        migrating = Migrating(runtime, decisions, InUse(runtime, decisions, booking, changes))
        self.maintenance_work = MaintenanceWork(runtime, kinds, moving, migrating, opened=self._opened)
        self.maintenances = MaintenanceService(runtime, wake=self.maintenance_work.wake)
        self.calendar = CalendarService(runtime, kinds)
        self.feeds = FeedService(runtime, kinds)
        self.service = FactService(runtime, enforcement)
        self.enabling = Enabling(runtime, enabled=self.monitor.heal_soon)
        self.forgetting = Forgetting(runtime)
        self.resources = ResourceService(runtime, kinds, self._healing, self.monitor, self.enabling)

    def start(self, *, alone: bool = False) -> None:
        """Start working on events. ``alone``: no other manager runs, so all old claims are dropped at once."""
        if alone:
            self._store.events.drop_claims(at=self.clock.now() - timedelta(seconds=1))
            self._store.maintenances.drop_claims(at=self.clock.now() - timedelta(seconds=1))
        self.claims.start()
        self.engine.start()
        self.outbox.start()
        self.waiting_list.start()
        self.extensions.start()
        self.series_work.start()
        self.monitor.start()
        self.enabling.start()
        self.maintenance_work.start()
        self.forgetting.start()
        for sweep in self.sweeps:
            sweep.start()

    def _wake(self) -> None:
        self.engine.wake()
        self.waiting_list.wake()

    def _opened(self) -> None:
        """Look again at hosts that were in maintenance, and at who waits for them."""
        self.monitor.heal_soon()
        self.waiting_list.wake()

    def _sweep_soon(self) -> None:
        for sweep in self.sweeps:
            sweep.wake()

    def begin_stop(self) -> None:
        """Begin no new work in any part; work in progress continues, and ``stop`` waits for it."""
        self.engine.begin_stop()
        self.waiting_list.begin_stop()
        self.extensions.begin_stop()
        self.series_work.begin_stop()
        self.monitor.begin_stop()
        self.enabling.begin_stop()
        self.maintenance_work.begin_stop()
        self.forgetting.begin_stop()
        for sweep in self.sweeps:
            sweep.begin_stop()

    def stop(self) -> None:
        """Finish the work in progress and stop; its claims are renewed until then."""
        # Tell all parts first, and wait after that: waiting for one after the other could exceed the time for a stop.
        self.begin_stop()
        for sweep in self.sweeps:
            sweep.stop()
        self.waiting_list.stop()
        self.extensions.stop()
        self.series_work.stop()
        self.monitor.stop()
        self.enabling.stop()
        self.maintenance_work.stop()
        self.forgetting.stop()
        self.engine.stop()
        self.outbox.stop()
        self.claims.stop()
