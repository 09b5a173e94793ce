# SPDX-License-Identifier: Apache-2.0
"""Tables of series and of their occurrences."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

series = sa.Table(
    "series",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    # The rule as RFC 5545 has it, and its first start, a local time of the zone.
    sa.Column("rule", sa.String(500), nullable=False),
    sa.Column("starts_local", sa.String(19), nullable=False),
    sa.Column("zone", sa.String(64), nullable=False),
    # Seconds that pass; or, if NULL, the wall clock at the end, days after the start.
    sa.Column("duration", sa.Integer),
    sa.Column("until_local", sa.String(8)),
    sa.Column("until_days", sa.Integer),
    sa.Column("exdates", sa.JSON, nullable=False),
    sa.Column("rdates", sa.JSON, nullable=False),
    # What each lease is made of.
    sa.Column("template", sa.JSON, nullable=False),
    sa.Column("fit", sa.String(16), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("reason", LongText),
    sa.Column("previous_id", Id),
    # Up to which start occurrences are on record; NULL if all of them are.
    sa.Column("booked_until", UTC_TIME),
    sa.Column("ends_running", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.Column("deleted_at", UTC_TIME),
    # When there is work on it, or the claim of who works on it expires; as of events.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("attempts", sa.Integer, nullable=False),
    # The list of a project, and of all.
    sa.Index(None, "project_id", "deleted_at", "created_at"),
    sa.Index(None, "deleted_at", "created_at"),
    sa.Index(None, "due_at"),
    # For the heartbeat of a manager.
    sa.Index(None, "claimed_by"),
)

occurrences = sa.Table(
    "occurrences",
    metadata,
    sa.Column("series_id", Id, sa.ForeignKey("series.id"), primary_key=True),
    # The local start by the rule: it never changes.
    sa.Column("recurrence_id", sa.String(19), primary_key=True),
    # By the rule; the end need not be after the start on a day on which the clocks change.
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
    # What has become of a lease is not written here: the lease says it.
    sa.Column("state", sa.String(16), nullable=False),
    # Without a foreign key: leases are purged before their series.
    sa.Column("lease_id", Id),
    sa.Column("reason", LongText),
    sa.Column("opening_starts_at", UTC_TIME),
    sa.Column("opening_ends_at", UTC_TIME),
    sa.Index(None, "series_id", "starts_at"),
    sa.Index(None, "lease_id"),
)
