# SPDX-License-Identifier: Apache-2.0
"""The store: the queries and writes of the rest of the service, by noun, each in one transaction."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.engine import Engine

from blazar.calendar.kept import KEPT_USES
from blazar.model.base.values import dataclass
from blazar.model.energy.book import NO_ENERGY, EnergyTerms
from blazar.store.billing.charges import ChargeStore
from blazar.store.billing.closings import ClosingStore
from blazar.store.billing.price_lists import PriceListCache, PriceListStore
from blazar.store.billing.recomputations import RecomputationStore
from blazar.store.booking.bookings import BookingStore
from blazar.store.booking.history import HistoryStore
from blazar.store.booking.ledger import Ledger
from blazar.store.calendar.kept import KeptCalendars
from blazar.store.calendar.views import CalendarStore
from blazar.store.energy.book import EnergyStore
from blazar.store.feeds import FeedStore
from blazar.store.journal.journal import KEPT_ENTRIES, JournalStore
from blazar.store.leases.leases import LeaseStore
from blazar.store.leases.pages import CloudObjectStore, LeasePages
from blazar.store.leases.row_reads import LeaseRowStore
from blazar.store.maintenance.plans import MaintenancePlanStore
from blazar.store.maintenance.windows import MaintenanceStore
from blazar.store.managers.presence import ManagerStore
from blazar.store.observe.sample import SampleStore
from blazar.store.power.hosts import PowerHostStore
from blazar.store.power.states import PowerStore
from blazar.store.power.switches import SwitchStore
from blazar.store.problems.checks import BookCheckStore
from blazar.store.problems.findings import FindingStore
from blazar.store.problems.troubles import TroubleStore
from blazar.store.queue.waiting_list import ExtensionStore, WaitingListStore
from blazar.store.reports.capacity import CapacityStore
from blazar.store.reports.days import UsageDayStore
from blazar.store.reports.demand import DemandStore
from blazar.store.reports.reports import ReportStore
from blazar.store.resources.catalog import CatalogCache, RegionStore
from blazar.store.resources.health import ResourceHealthStore
from blazar.store.resources.resources import ResourceStore
from blazar.store.resources.sought import SoughtStore
from blazar.store.rules.rules import RuleCache, RuleStore
from blazar.store.series.series import SeriesStore
from blazar.store.series.work import SeriesWorkStore
from blazar.store.sql.transactions import Transactions
from blazar.store.subscriptions.dead_letters import DeadLetterStore
from blazar.store.subscriptions.subscriptions import SubscriptionStore
from blazar.store.subscriptions.work import SubscriptionWorkStore
from blazar.store.surgery.offers import OfferStore
from blazar.store.use.lending import LendingStore
from blazar.store.use.preemption import PreemptionStore
from blazar.store.use.unused import UnusedStore
from blazar.store.work.claims import ClaimStore
from blazar.store.work.events import EventStore
from blazar.store.work.idempotency import IdempotencyStore
from blazar.store.work.outbox import OutboxStore


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How many of the last entries of an object the journal keeps, and leases that are over a list as a whole has.

    ``kept_uses`` is how much of the calendar is kept in memory.
    """

    history_entries: int = KEPT_ENTRIES
    ended_leases: int = 10_000
    kept_uses: int = KEPT_USES


USUAL_LIMITS = StoreLimits()


class Store:
    """Reads and writes domain values. Raises StoreUnavailable besides what each method names.

    ``cleaning_time`` is kept free between two users of a resource. ``energy`` is what the site tells of that.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        cleaning_time: timedelta = timedelta(0),
        limits: StoreLimits = USUAL_LIMITS,
        energy: EnergyTerms = NO_ENERGY,
    ) -> None:
        self.transactions = Transactions(engine)
        catalogs = CatalogCache((rules := RuleCache()).read)
        self.lease_pages, self.cloud_objects = LeasePages(self.transactions), CloudObjectStore(self.transactions)
        self.idempotency, self.lease_rows = IdempotencyStore(self.transactions), LeaseRowStore(self.transactions)
        self.kept_calendars = kept = KeptCalendars(self.transactions, catalogs, most=limits.kept_uses)
        self.calendar = CalendarStore(self.transactions, catalogs, kept, cleaning_time=cleaning_time)
        prices = PriceListCache()
        self.price_lists = PriceListStore(self.transactions, prices, lambda: catalogs.price_version)
        self.closings = ClosingStore(self.transactions, prices, energy)
        self.recomputations = RecomputationStore(self.transactions, prices)
        self.bookings = BookingStore(
            self.transactions, Ledger(prices, catalogs, energy), kept, cleaning_time=cleaning_time
        )
        self.leases = LeaseStore(
            self.transactions, self.bookings, cleaning_time=cleaning_time, ended_leases=limits.ended_leases
        )
        self.resources = ResourceStore(self.transactions, catalogs)
        self.resource_health = ResourceHealthStore(self.transactions)
        self.regions, self.sample = RegionStore(self.transactions), SampleStore(self.transactions)
        self.outbox, self.events = OutboxStore(self.transactions), EventStore(self.transactions)
        self.claims, self.managers = ClaimStore(self.transactions), ManagerStore(self.transactions)
        self.feeds, self.history = FeedStore(self.transactions), HistoryStore(self.transactions)
        self.journal = JournalStore(self.transactions, kept=limits.history_entries)
        self.subscriptions = SubscriptionStore(self.transactions)
        self.subscription_work = SubscriptionWorkStore(self.transactions)
        self.dead_letters = DeadLetterStore(self.transactions)
        bookings = self.transactions, self.bookings
        self.series, self.series_work = SeriesStore(*bookings), SeriesWorkStore(*bookings)
        self.offers, self.unused = OfferStore(self.transactions), UnusedStore(self.transactions)
        self.capacity, self.usage_days = CapacityStore(self.transactions, catalogs), UsageDayStore(self.transactions)
        self.extensions, self.waiting_list = ExtensionStore(self.transactions), WaitingListStore(self.transactions)
        self._add_operations(catalogs, energy, rules)

    def _add_operations(self, catalogs: CatalogCache, energy: EnergyTerms, rules: RuleCache) -> None:
        """Add the nouns of operators: what is sought, power and energy, maintenance, reports, what is in trouble."""
        self.sought, self.rules = SoughtStore(self.transactions, catalogs), RuleStore(self.transactions, rules)
        self.power, self.switches = PowerStore(self.transactions, catalogs), SwitchStore(self.transactions, catalogs)
        self.power_hosts = PowerHostStore(self.transactions, catalogs)
        self.preemption, self.lending = PreemptionStore(self.transactions), LendingStore(self.transactions)
        self.maintenances = MaintenanceStore(self.transactions, catalogs)
        self.maintenance_plans = MaintenancePlanStore(self.transactions)
        self.energy = EnergyStore(self.transactions, energy)
        self.reports, self.demand = ReportStore(self.transactions), DemandStore(self.transactions)
        self.book_checks, self.charges = BookCheckStore(self.transactions), ChargeStore(self.transactions)
        self.findings, self.troubles = FindingStore(self.transactions), TroubleStore(self.transactions)

    def overwrite_deleted(self) -> bool:
        """Write over what was deleted or replaced in files that are our own; return whether it is gone from them."""
        return self.transactions.overwrite_deleted()
