# SPDX-License-Identifier: Apache-2.0
"""The store: the queries and writes of the rest of the service, by noun, each in one transaction."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy.engine import Engine

from blazar.store.calendar import CalendarStore
from blazar.store.catalog import CatalogCache
from blazar.store.events import EventStore
from blazar.store.extensions import ExtensionStore
from blazar.store.feeds import FeedStore
from blazar.store.history import HistoryStore
from blazar.store.idempotency import IdempotencyStore
from blazar.store.lease_pages import LeasePages
from blazar.store.leases import LeaseStore
from blazar.store.made import MadeStore
from blazar.store.maintenances import MaintenanceStore
from blazar.store.offers import OfferStore
from blazar.store.outbox import OutboxStore
from blazar.store.regions import RegionStore
from blazar.store.resources import ResourceStore
from blazar.store.series import SeriesStore
from blazar.store.series_changes import SeriesChanges
from blazar.store.surgery import SurgeryStore
from blazar.store.transactions import HISTORY_ENTRIES, Transactions
from blazar.store.unused import UnusedStore
from blazar.store.waiting_list import WaitingListStore


class Store:
    """Reads and writes domain values. Raises StoreUnavailable besides what each method names.

    ``cleaning_time`` is kept free between two users of a resource. ``history_entries`` is how many of the last entries
    of a lease's history are kept, ``ended_leases`` how many leases that are over a list as a whole has at most.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        cleaning_time: timedelta = timedelta(0),
        history_entries: int = HISTORY_ENTRIES,
        ended_leases: int = 10_000,
    ) -> None:
        self.transactions = Transactions(engine, history_entries=history_entries)
        catalogs = CatalogCache()
        self.lease_pages = LeasePages(self.transactions)
        self.idempotency = IdempotencyStore(self.transactions)
        self.leases = LeaseStore(self.transactions, cleaning_time=cleaning_time, ended_leases=ended_leases)
        self.made = MadeStore(self.transactions)
        self.calendar = CalendarStore(self.transactions, catalogs, cleaning_time=cleaning_time)
        self.resources = ResourceStore(self.transactions, catalogs)
        self.regions = RegionStore(self.transactions)
        self.outbox = OutboxStore(self.transactions)
        self.events = EventStore(self.transactions)
        self.feeds = FeedStore(self.transactions)
        self.history = HistoryStore(self.transactions)
        self.series = SeriesStore(self.transactions, cleaning_time=cleaning_time)
        self.series_changes = SeriesChanges(self.transactions, cleaning_time=cleaning_time)
        self.surgery = SurgeryStore(self.transactions, cleaning_time=cleaning_time)
        self.offers = OfferStore(self.transactions)
        self.unused = UnusedStore(self.transactions)
        self.extensions = ExtensionStore(self.transactions)
        self.waiting_list = WaitingListStore(self.transactions)
        self.maintenances = MaintenanceStore(self.transactions, catalogs)

    def erase(self) -> bool:
        """Write over what was deleted or replaced in files that are our own; return whether it is gone from them."""
        return self.transactions.erase()
