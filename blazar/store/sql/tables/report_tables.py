# SPDX-License-Identifier: Apache-2.0
"""Tables of reports: what was refused, and what became of the capacity, by days of the site."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

demand_days = sa.Table(
    "demand_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    # Empty of requests of which no more is kept than how many were refused.
    sa.Column("project_id", sa.String(255), primary_key=True),
    sa.Column("resource_type", sa.String(66), primary_key=True),
    sa.Column("code", sa.String(64), primary_key=True),
    # A hash of the requirement; empty if there is none.
    sa.Column("requirement_key", sa.String(64), primary_key=True),
    sa.Column("requirement", LongText, nullable=False),
    sa.Column("refused", sa.BigInteger, nullable=False),
    # Different ones within an hour; seconds times units, and times amounts by class, are of these only.
    sa.Column("refused_distinct", sa.BigInteger, nullable=False),
    sa.Column("refused_seconds", sa.BigInteger, nullable=False),
    sa.Column("refused_amounts", sa.JSON, nullable=False),
    sa.Index(None, "project_id", "day"),
)

# What was refused lately, so that the same is known when it comes again, whichever manager refuses it.
demand_seen = sa.Table(
    "demand_seen",
    metadata,
    sa.Column("fingerprint", sa.String(64), primary_key=True),
    sa.Column("hour", UTC_TIME, nullable=False),
    # The longest for which it was asked.
    sa.Column("seconds", sa.BigInteger, nullable=False),
    sa.Index(None, "hour"),
)

# Resources that are alike in what reports tell apart have one row a day together.
capacity_days = sa.Table(
    "capacity_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    # A hash of what they are alike in: kind, region, who may have them, properties.
    sa.Column("cell", sa.String(64), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("region", sa.String(64), nullable=False),
    # The projects that may have them; NULL for all.
    sa.Column("open_to", sa.JSON(none_as_null=True)),
    sa.Column("properties", sa.JSON, nullable=False),
    # Seconds by state, once the day is over; NULL before.
    sa.Column("seconds", sa.JSON(none_as_null=True)),
    # Seconds that were promised so many days before.
    sa.Column("promised_before", sa.JSON, nullable=False),
)

# What a lease had of a resource in a day that is closed, in seconds times units. It stays when the lease is purged.
usage_days = sa.Table(
    "usage_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("lease_id", Id, primary_key=True),
    sa.Column("resource_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("resource_type", sa.String(66), primary_key=True),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("lease_kind", sa.String(16), nullable=False),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("region", sa.String(64), nullable=False),
    *(
        sa.Column(measure, sa.BigInteger, nullable=False)
        for measure in ("reserved", "used", "idle", "unseen", "lost", "overrun", "returned")
    ),
    # What hosts drew for it, and milligrams of CO2e; NULL if that was not on record when the day was closed.
    sa.Column("milliwatt_seconds", sa.BigInteger),
    sa.Column("carbon_mg", sa.BigInteger),
    sa.Index(None, "project_id", "day"),
)

# The days that are closed, by the days of a zone, and until which position of the journal each is computed.
usage_closed_days = sa.Table(
    "usage_closed_days",
    metadata,
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("time_zone", sa.String(64), nullable=False),
    sa.Column("computed_through", sa.BigInteger, nullable=False),
    sa.Column("computed_at", UTC_TIME, nullable=False),
)
