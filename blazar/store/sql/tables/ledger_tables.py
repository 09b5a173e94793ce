# SPDX-License-Identifier: Apache-2.0
"""Tables of the ledger: who pays for a lease from when on, what the rest of it will cost, and what it has cost.

Amounts of money are integers of 10⁻⁹ of the currency: SQLite keeps decimals as floating-point numbers. Each booking
writes an account and what is planned for it: they have few indexes, and SQLite keeps them in the order of their key.
"""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

# A resource that a reservation cannot use; ``until`` is NULL while that lasts, and where the reservation has ended.
outages = sa.Table(
    "outages",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("reservation_id", Id, nullable=False),
    sa.Column("resource_id", sa.Integer, nullable=False),
    sa.Column("since", UTC_TIME, nullable=False),
    sa.Column("until", UTC_TIME),
    sa.Index(None, "lease_id"),
    sa.Index(None, "reservation_id"),
)

# Who pays for a lease from ``opened_at`` on. Without a foreign key to leases, as charges are: purging leaves them.
accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("lease_id", Id, nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("opened_at", UTC_TIME, nullable=False),
    # What was used until then is charged, and stays so.
    sa.Column("closed_until", UTC_TIME, nullable=False),
    # Its end, as it is booked now.
    sa.Column("booked_until", UTC_TIME, nullable=False),
    # When the parts of the lease were booked, whether its fee is still to be charged, what was so far by month, and of
    # what hosts the energy is still to be told (``store.billing.accounts``).
    sa.Column("terms", sa.JSON, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    # When more is to be charged, or the claim of who does that ends; NULL once all is.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    # When all of it was charged, and that was computed once more; NULL of what is to be looked at first.
    sa.Column("checked_at", UTC_TIME),
    sa.UniqueConstraint("lease_id", "project_id", "opened_at"),
    # Accounts to close, earliest first; and those without more to charge, which are to be computed once more.
    sa.Index(None, "due_at", "checked_at", "id"),
    sqlite_with_rowid=False,
)

# What an account is still to be charged for a month: for the rest of what is booked, and for energy that is untold.
# Replaced whenever that changes.
planned = sa.Table(
    "planned",
    metadata,
    sa.Column("lease_id", Id, primary_key=True),
    sa.Column("account_id", Id, primary_key=True),
    # Its first day.
    sa.Column("month", sa.Date, primary_key=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("nano", sa.BigInteger, nullable=False),
    # What of it is for energy; NULL: nothing is.
    sa.Column("estimated_nano", sa.BigInteger),
    sa.Index(None, "project_id", "month"),
    sqlite_with_rowid=False,
)

# What was charged: rows are added, and never changed.
charges = sa.Table(
    "charges",
    metadata,
    sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("lease_id", Id, nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    # Its first day, in UTC.
    sa.Column("month", sa.Date, nullable=False),
    # NULL of what is charged for the lease as a whole, as its fee.
    sa.Column("reservation_id", Id),
    sa.Column("region", sa.String(64), nullable=False, server_default=""),
    sa.Column("sku", sa.String(64)),
    sa.Column("category", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
    sa.Column("resource_seconds", sa.BigInteger, nullable=False),
    sa.Column("unit_nano", sa.BigInteger, nullable=False),
    # Exact, as a decimal number.
    sa.Column("factor", sa.String(255), nullable=False),
    sa.Column("nano", sa.BigInteger, nullable=False),
    # Of lines that tell energy: watt-hours and how they are known, grams of CO2e and whether all of these are known.
    sa.Column("wh", sa.BigInteger),
    sa.Column("gco2", sa.BigInteger),
    sa.Column("energy_source", sa.String(16)),
    sa.Column("carbon_state", sa.String(16)),
    sa.Column("currency", sa.String(8), nullable=False),
    # That of the price list; NULL of time for which there was none.
    sa.Column("version", sa.Integer),
    # The charge that this one corrects, and why; NULL of others.
    sa.Column("corrects", sa.BigInteger),
    sa.Column("reason", LongText),
    sa.Column("at", UTC_TIME, nullable=False),
    # The statement of a project, and of all, in the order in which it is read; and the charges of a lease.
    sa.Index(None, "project_id", "month", "id"),
    sa.Index(None, "month", "id"),
    sa.Index(None, "lease_id", "id"),
    sa.Index(None, "corrects"),
)
