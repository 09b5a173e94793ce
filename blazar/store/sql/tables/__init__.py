# SPDX-License-Identifier: Apache-2.0
"""The tables, by noun. The migrations create them; a test compares the two."""

from blazar.store.sql.tables.billing_tables import price_lists, rules
from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, UtcTime, metadata
from blazar.store.sql.tables.journal_tables import journal, journal_numbering
from blazar.store.sql.tables.lease_tables import (
    LEASE_ORDERS,
    allocations,
    calendar_changes,
    events,
    feeds,
    idempotency_keys,
    leases,
    managers,
    outbox,
    project_uses,
    reservations,
    turns,
    usage_changes,
    waiting_list,
)
from blazar.store.sql.tables.ledger_tables import accounts, charges, outages, planned
from blazar.store.sql.tables.maintenance_tables import maintenance_leases, maintenance_resources, maintenance_windows
from blazar.store.sql.tables.power_tables import carbon_hours, host_hours, host_power, power_log
from blazar.store.sql.tables.report_tables import capacity_days, demand_days, demand_seen, usage_closed_days, usage_days
from blazar.store.sql.tables.resource_tables import (
    findings,
    inventory_versions,
    lent_hosts,
    preemptions,
    resource_capabilities,
    resource_properties,
    resources,
)
from blazar.store.sql.tables.series_tables import occurrences, series
from blazar.store.sql.tables.subscription_tables import delivery_failures, subscriptions

__all__ = ["LEASE_ORDERS", "UTC_TIME", "Id", "LongText", "UtcTime", "metadata"]
__all__ += ["capacity_days", "demand_days", "demand_seen", "usage_closed_days", "usage_days"]
__all__ += ["findings", "price_lists", "rules"]
__all__ += ["carbon_hours", "host_hours"]
__all__ += ["inventory_versions", "resource_capabilities", "resource_properties", "resources"]
__all__ += ["allocations", "calendar_changes", "events", "leases", "managers", "outbox", "reservations"]
__all__ += [
    "feeds",
    "idempotency_keys",
    "journal",
    "journal_numbering",
    "project_uses",
    "usage_changes",
    "waiting_list",
]
__all__ += ["accounts", "charges", "outages", "planned"]
__all__ += ["maintenance_leases", "maintenance_resources", "maintenance_windows", "occurrences", "series"]
__all__ += ["delivery_failures", "subscriptions"]
__all__ += ["host_power", "lent_hosts", "power_log", "preemptions", "turns"]
