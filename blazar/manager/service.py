# SPDX-License-Identifier: Apache-2.0
"""The manager as a whole: builds its parts, and implements the interface that the API uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from blazar.clouds.curve_file import NO_CARBON
from blazar.clouds.ports.compute import Metrics
from blazar.clouds.ports.energy import CarbonSource, HostMeters
from blazar.clouds.ports.people import Mail, People
from blazar.clouds.ports.power import Power
from blazar.clouds.ports.webhooks import Webhooks
from blazar.enforcement import Enforcement
from blazar.manager.billing.budgets import BudgetService
from blazar.manager.billing.closing import Closings
from blazar.manager.billing.price_lists import PriceListService
from blazar.manager.billing.recomputing import Recomputation
from blazar.manager.billing.statements import ChargeService, StatementService
from blazar.manager.booking.booking import Booker
from blazar.manager.booking.ranking import Ranking
from blazar.manager.changing.creation import Creation
from blazar.manager.changing.deletion import Deletion
from blazar.manager.changing.updates import Updates
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.claims import Claims
from blazar.manager.common.notifications import Notifier
from blazar.manager.common.presence import Presence
from blazar.manager.common.request_keys import KeyExpiry
from blazar.manager.common.runtime import NO_MAIL_SERVER, NO_METERS, NO_METRICS, NO_WEBHOOKS, NOBODY, Runtime
from blazar.manager.common.settings import Settings
from blazar.manager.events.cloud_changes import CloudChanges
from blazar.manager.events.engine import Engine
from blazar.manager.events.starts import StartReplacements
from blazar.manager.events.sweep import Sweep
from blazar.manager.events.worker import Worker
from blazar.manager.health.healing import Healing
from blazar.manager.health.missing_resources import MissingResources
from blazar.manager.health.monitor import Monitor
from blazar.manager.health.replacement import Replacement
from blazar.manager.health.resource_states import ResourceEnabler, ResourceStates
from blazar.manager.journal.journal import JournalNumbering, JournalService
from blazar.manager.maintenance.migration import LeaseMigrator
from blazar.manager.maintenance.rebooking import LeaseRebooker
from blazar.manager.maintenance.service import MaintenanceService
from blazar.manager.maintenance.work import MaintenanceWork
from blazar.manager.observe.readings import ManagerReadings
from blazar.manager.observe.sampling import Sampling
from blazar.manager.outbox.outbox import Outbox
from blazar.manager.power.energy import EnergyWork
from blazar.manager.power.service import PowerService
from blazar.manager.power.switching import make_power_work
from blazar.manager.repair.drift import Drift
from blazar.manager.repair.ends import Ends
from blazar.manager.repair.events import EventRepairs
from blazar.manager.repair.problems import ProblemService, Repairs
from blazar.manager.repair.settling import DeliveryRepairs, ResourceRepairs
from blazar.manager.reports.records import CapacityRecords
from blazar.manager.reports.refused_requests import RefusedRequests
from blazar.manager.reports.service import ReportService
from blazar.manager.reports.usage_days import UsageDays
from blazar.manager.requests.calendar_view import CalendarService
from blazar.manager.requests.feeds import FeedService
from blazar.manager.requests.leases import LeaseCreator, LeaseService
from blazar.manager.requests.prolongation import Prolongation
from blazar.manager.requests.resources import ResourceService
from blazar.manager.requests.rules import RuleService
from blazar.manager.search.availability import AvailabilityService
from blazar.manager.search.refusals import Refusals
from blazar.manager.series.changes import SeriesChanger
from blazar.manager.series.service import SeriesService
from blazar.manager.series.work import SeriesWork
from blazar.manager.subscriptions.delivery import Delivery
from blazar.manager.subscriptions.service import SubscriptionService
from blazar.manager.surgery.service import SurgeryService
from blazar.manager.surgery.transfers import TransferService
from blazar.manager.use.preemption import PreemptionWork
from blazar.manager.waiting.waiting_list import WaitingList
from blazar.model.base.clock import Clock
from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.log_lines import Trouble
from blazar.model.base.service_info import ServiceFacts
from blazar.model.base.values import dataclass, field
from blazar.model.leases.lease import Lease
from blazar.model.managers.presence import KnownManager, ManagerState, Pong
from blazar.model.resources.regions import Regions
from blazar.model.resources.resource import ResourceKind
from blazar.resources.contract.actions import action_of
from blazar.resources.contract.kind import Kind
from blazar.resources.contract.regional import check_answers
from blazar.resources.contract.type import ResourceType
from blazar.store.store import Store


class FactService:
    """Answers the calls about the service itself."""

    def __init__(self, runtime: Runtime, presence: Presence) -> None:
        self._runtime = runtime
        self._presence = presence

    def ping(self) -> Pong:
        """Say that this manager is there, and whether its database answers; one statement."""
        facts, seconds, trouble = self._presence.facts(), None, None
        try:
            seconds = self._runtime.store.managers.measure_answer()
        except StoreUnavailable as error:
            trouble = error.message
        now = self._runtime.clock.now()
        return Pong(facts.id, facts.version, facts.rpc_version, facts.state, now, seconds, trouble)

    def managers(self) -> tuple[KnownManager, ...]:
        """Return the managers that run, or were seen within a day, with their work; two statements."""
        return self._runtime.store.managers.all(now=self._runtime.clock.now(), claim_ttl=self._runtime.claims.ttl)

    def facts(self, project_id: str) -> ServiceFacts:
        """Return the facts that are the same for all leases of a project. No statement."""
        settings = self._runtime.settings
        return ServiceFacts(
            now=self._runtime.clock.now(),
            resource_types=tuple(self._runtime.types),
            before_end=str(action_of("default", settings.before_end)),
            lead=settings.before_end_lead,
            cleaning=self._runtime.store.calendar.cleaning_time,
            search_range=settings.search_range,
            reads=settings.reads,
            idempotency=settings.idempotency_retention,
            limits=(*settings.bounds.list_set_limits(), *self._runtime.enforcement.stated_limits(project_id)),
            channels=tuple(map(str, self._runtime.channels)),
            confirm_within=settings.confirm_within,
        )


@dataclass(frozen=True, slots=True)
class Plugins:
    """What is configured of a manager besides settings: kinds and types of resources, notifications, enforcement.

    With several ``regions`` the types and kinds are those of all (``resources.regional``). ``log_troubles`` are those
    of what writes the log of the process.
    """

    types: tuple[ResourceType, ...]
    kinds: Mapping[ResourceKind, Kind]
    notifier: Notifier
    enforcement: Enforcement = field(default_factory=Enforcement)
    regions: Regions = Regions()
    metrics: Metrics = NO_METRICS
    webhooks: Webhooks = NO_WEBHOOKS
    mail: Mail = NO_MAIL_SERVER
    people: People = NOBODY
    carbon: CarbonSource = NO_CARBON
    meters: HostMeters = NO_METERS
    powers: Mapping[str, Power] = field(default_factory=dict)
    log_troubles: tuple[Trouble, ...] = ()


def _make_runtime(
    store: Store, clock: Clock, claims: Claims, settings: Settings, plugins: Plugins, types: Iterable[ResourceType]
) -> Runtime:
    return Runtime(
        store=store,
        clock=clock,
        claims=claims,
        settings=settings,
        notifier=plugins.notifier,
        types={type_.resource_type: type_ for type_ in types},
        regions=plugins.regions,
        metrics=plugins.metrics,
        enforcement=plugins.enforcement,
        webhooks=plugins.webhooks,
        mail=plugins.mail,
        people=plugins.people,
        carbon=plugins.carbon,
        meters=plugins.meters,
        powers=plugins.powers,
    )


class ManagerService:
    """A manager: answers requests in the caller's thread, and works on events in its own threads.

    ``parts`` work in the background. ``carriers`` carry them: these start before them, and stop after them.
    """

    def __init__(self, store: Store, clock: Clock, settings: Settings, plugins: Plugins) -> None:
        types, kinds = check_answers(plugins.types, plugins.kinds)
        self.clock = clock
        self.claims = Claims(store, clock, settings.claim_ttl)
        runtime = _make_runtime(store, clock, self.claims, settings, plugins, types)
        self.outbox = Outbox(runtime)
        booker = Booker(runtime, self.outbox)
        replacements = StartReplacements(runtime, booker)
        worker = Worker(runtime, replacements, extendable_until=self._extendable_until)
        changes = CloudChanges(runtime, worker)
        self.engine = Engine(runtime, worker)
        self.sweeps = tuple(Sweep(runtime, region) for region in plugins.regions)
        self.sweep = self.sweeps[0]
        self._add_resources(runtime, kinds, booker, changes)
        updates = Updates(runtime, booker, changes, self.outbox, self._healing)
        creation, deletion = Creation(runtime, changes), Deletion(runtime, worker)
        self.availability = AvailabilityService(runtime, updates)
        self.refused_requests = refused = RefusedRequests(runtime)
        refusals = Refusals(
            self.availability, refused, enabled=settings.explain_refusals, longest=settings.search_range
        )
        self.waiting_list = waiting_list = WaitingList(runtime, booker, creation, updates)
        creator = LeaseCreator(runtime, booker, creation, refusals, waiting_list)
        self.leases = LeaseService(runtime, creator, updates, deletion, refusals)
        self.surgery = SurgeryService(runtime, booker, updates, self.leases)
        self.transfers = TransferService(runtime, booker, updates, self.leases)
        self.series_work = SeriesWork(runtime, booker, deletion, waiting_list)
        self.series = SeriesService(runtime, self.series_work, SeriesChanger(runtime, booker, self.series_work))
        self.calendar, self.reports = CalendarService(runtime, kinds), ReportService(runtime, kinds)
        self.feeds, self.key_expiry, self.closing = FeedService(runtime, kinds), KeyExpiry(runtime), Closings(runtime)
        self.subscriptions, self.delivery = SubscriptionService(runtime), Delivery(runtime)
        self.prolongation = Prolongation(runtime, self.leases, self.availability, waiting_list)
        self.usage_days, self.capacity_records = UsageDays(runtime), CapacityRecords(runtime)
        self.readings, self.sampling = ManagerReadings(store, self.claims, self.engine, self.outbox), Sampling(runtime)
        self.ranking = Ranking(runtime)
        requested = (self.ranking, self.delivery, waiting_list, self.prolongation, self.series_work, self.key_expiry)
        told = (self.sampling, self.capacity_records, self.usage_days, self.closing, self.recomputation)
        kept = (*self._resource_work, *told)
        self.journal, self.journal_numbering = JournalService(runtime), JournalNumbering(runtime)
        self.carriers: tuple[BackgroundThread, ...] = (self.claims, self.outbox, self.journal_numbering, refused)
        self.parts: tuple[BackgroundThread, ...] = (self.engine, *requested, *kept, *self.sweeps)
        self._add_repair(runtime, worker, plugins.log_troubles)

    def _add_money(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        """Add what answers questions about money, and about what projects may have."""
        self.price_lists, self.rules = PriceListService(runtime, kinds), RuleService(runtime)
        self.budgets, self.statements = BudgetService(runtime), StatementService(runtime)
        self.charges, self.recomputation = ChargeService(runtime), Recomputation(runtime)

    def _add_repair(self, runtime: Runtime, worker: Worker, log_troubles: tuple[Trouble, ...]) -> None:
        """Add what operators see of the service and of trouble, and do about it."""
        threads, polls = (*self.carriers, *self.parts), self.monitor.polls
        self.presence = Presence(runtime, threads, log_troubles, polls.list_conditions)
        self.service = FactService(runtime, self.presence)
        events = EventRepairs(runtime, worker, self.resources)
        ends, deliveries = Ends(runtime, self.leases), DeliveryRepairs(runtime)
        repairs = Repairs(events, ends, self.drift, deliveries, ResourceRepairs(self.resources))
        self.problems = ProblemService(runtime, repairs)

    def _add_resources(
        self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind], booker: Booker, changes: CloudChanges
    ) -> None:
        """Add what cares for resources: registration, health, maintenance, and prices."""
        self._healing = Healing(runtime, booker, changes)
        self.missing_resources = MissingResources(runtime, booker)
        states = ResourceStates(runtime.store, runtime.clock, runtime.settings)
        self.monitor = Monitor(runtime, kinds, states, self._healing, self.missing_resources)
        self.enabler = ResourceEnabler(runtime, enabled=self.monitor.heal_soon)
        self.resources = ResourceService(runtime, kinds, self._healing, self.monitor, self.enabler)
        rebooker = LeaseRebooker(runtime, booker)
        replacement = Replacement(runtime, booker, changes)
        self.drift = Drift(runtime, replacement)
        migrator = LeaseMigrator(runtime, replacement)
        self.maintenance_work = MaintenanceWork(runtime, kinds, rebooker, migrator)
        self._add_money(runtime, kinds)
        self.power_work = make_power_work(runtime, kinds)
        self.power, self.energy_work = PowerService(runtime, kinds), EnergyWork(runtime)
        self.preemption_work = PreemptionWork(runtime)
        idle = (*self.power_work, self.energy_work, self.preemption_work)
        self._resource_work = (self.monitor, self.enabler, self.maintenance_work, self.drift, *idle)
        self.maintenances = MaintenanceService(runtime, wake=self.maintenance_work.wake)

    def _extendable_until(self, lease: Lease) -> datetime | None:
        # The worker is made before what it asks: that needs what changes leases, and this needs the worker.
        return self.prolongation.offer(lease)

    def start(self, *, alone: bool = False) -> None:
        """Start working on events. ``alone``: no other manager runs, so all old claims are dropped at once."""
        if alone:
            self.claims.drop_all()
            self.presence.forget_others()
        self.presence.appear()
        for part in (*self.carriers, *self.parts):
            part.start()

    def begin_stop(self, state: ManagerState = ManagerState.STOPPING) -> None:
        """Begin no new work in any part; work in progress continues, and ``stop`` waits for it."""
        self.presence.enter(state)
        for part in self.parts:
            part.begin_stop()

    def stop(self) -> None:
        """Finish the work in progress and stop; its claims are renewed until then."""
        # Tell all parts first, and wait after that: waiting for one after the other could exceed the time for a stop.
        drains = self.presence.state is ManagerState.DRAINING
        self.begin_stop(ManagerState.DRAINING if drains else ManagerState.STOPPING)
        for part in (*reversed(self.parts), *reversed(self.carriers)):
            part.stop()
        self.presence.leave()
