# SPDX-License-Identifier: Apache-2.0
"""The store: the queries and writes of the rest of the service, by noun, each in one transaction."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.engine import Engine

from blazar.store.booking.bookings import BookingStore
from blazar.store.booking.history import HistoryStore
from blazar.store.booking.idempotency import IdempotencyStore
from blazar.store.calendar.views import CalendarStore
from blazar.store.feeds import FeedStore
from blazar.store.journal.journal import KEPT_ENTRIES, JournalStore
from blazar.store.leases.leases import LeaseStore
from blazar.store.leases.pages import CloudObjectStore, LeasePages
from blazar.store.maintenance.plans import MaintenancePlanStore
from blazar.store.maintenance.windows import MaintenanceStore
from blazar.store.managers.presence import ManagerStore
from blazar.store.observe.sample import SampleStore
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
from blazar.store.series.series import SeriesStore
from blazar.store.series.work import SeriesWorkStore
from blazar.store.sql.transactions import Transactions
from blazar.store.subscriptions.dead_letters import DeadLetterStore
from blazar.store.subscriptions.subscriptions import SubscriptionStore
from blazar.store.subscriptions.work import SubscriptionWorkStore
from blazar.store.surgery.offers import OfferStore
from blazar.store.use import UnusedStore
from blazar.store.work.claims import ClaimStore
from blazar.store.work.events import EventStore
from blazar.store.work.outbox import OutboxStore


class Store:
    """Reads and writes domain values. Raises StoreUnavailable besides what each method names.

    ``cleaning_time`` is kept free between two users of a resource. ``history_entries`` is how many of the last entries
    of an object are kept in the journal, ``ended_leases`` how many leases that are over a list as a whole has at most.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        cleaning_time: timedelta = timedelta(0),
        history_entries: int = KEPT_ENTRIES,
        ended_leases: int = 10_000,
    ) -> None:
        self.transactions = Transactions(engine)
        catalogs = CatalogCache()
        self.lease_pages = LeasePages(self.transactions)
        self.idempotency = IdempotencyStore(self.transactions)
        self.cloud_objects = CloudObjectStore(self.transactions)
        self.calendar = CalendarStore(self.transactions, catalogs, cleaning_time=cleaning_time)
        self.bookings = BookingStore(self.transactions, cleaning_time=cleaning_time)
        self.leases = LeaseStore(
            self.transactions, self.bookings, cleaning_time=cleaning_time, ended_leases=ended_leases
        )
        self.resources = ResourceStore(self.transactions, catalogs)
        self.resource_health = ResourceHealthStore(self.transactions)
        self.regions = RegionStore(self.transactions)
        self.outbox = OutboxStore(self.transactions)
        self.events = EventStore(self.transactions)
        self.sample = SampleStore(self.transactions)
        self.claims, self.managers = ClaimStore(self.transactions), ManagerStore(self.transactions)
        self.feeds = FeedStore(self.transactions)
        self.journal = JournalStore(self.transactions, kept=history_entries)
        self.history = HistoryStore(self.transactions)
        self.subscriptions = SubscriptionStore(self.transactions)
        self.subscription_work = SubscriptionWorkStore(self.transactions)
        self.dead_letters = DeadLetterStore(self.transactions)
        self.series = SeriesStore(self.transactions, self.bookings)
        self.series_work = SeriesWorkStore(self.transactions, self.bookings)
        self.offers, self.unused = OfferStore(self.transactions), UnusedStore(self.transactions)
        self.reports, self.demand = ReportStore(self.transactions), DemandStore(self.transactions)
        self.capacity, self.usage_days = CapacityStore(self.transactions, catalogs), UsageDayStore(self.transactions)
        self.extensions, self.waiting_list = ExtensionStore(self.transactions), WaitingListStore(self.transactions)
        self.maintenances = MaintenanceStore(self.transactions, catalogs)
        self.maintenance_plans = MaintenancePlanStore(self.transactions)
        self.findings, self.troubles = FindingStore(self.transactions), TroubleStore(self.transactions)
        self.book_checks = BookCheckStore(self.transactions)

    def overwrite_deleted(self) -> bool:
        """Write over what was deleted or replaced in files that are our own; return whether it is gone from them."""
        return self.transactions.overwrite_deleted()
