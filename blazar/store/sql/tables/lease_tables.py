# SPDX-License-Identifier: Apache-2.0
"""Tables of leases: what they are, what is promised to them, what belongs to each, shows them, and works on them."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.model.leases.details import LEASE_SORT_KEYS
from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

_SORTED = {
    "updated_at": "changed_at",
    "start_date": "starts_at",
    "end_date": "ends_at",
    "status": "shown_status",
    "release_at": "leaves_at",
}
LEASE_ORDERS = {key: _SORTED.get(key, key) for key in LEASE_SORT_KEYS}
"""The columns by which pages of leases are sorted, by the key that a page names."""

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("trust_id", sa.String(36)),
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
    sa.Column("kind", sa.String(16), nullable=False, server_default="scheduled"),
    sa.Column("status", sa.String(16), nullable=False),
    # NULL before its end.
    sa.Column("end_reason", sa.String(16)),
    # What looks have found, and when it is, or in a dry run would be, released; NULL while nobody looks at it.
    sa.Column("usage", sa.String(16)),
    sa.Column("used_at", UTC_TIME),
    sa.Column("release_at", UTC_TIME),
    sa.Column("would_release_at", UTC_TIME),
    sa.Column("held", sa.Boolean),
    sa.Column("degraded", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.Column("deleted_at", UTC_TIME),
    # NULL in leases that never waited.
    sa.Column("queued_at", UTC_TIME),
    sa.Column("wait_until", UTC_TIME),
    sa.Column("wait_earliest", UTC_TIME),
    sa.Column("wait_position", sa.Integer),
    sa.Column("wait_estimate", UTC_TIME),
    sa.Column("wait_reason", LongText),
    # What it asks for besides, and what became of its tries (``blazar.model.queue``).
    sa.Column("wait_terms", sa.JSON(none_as_null=True)),
    # NULL in leases that end when they end.
    sa.Column("extend_until", UTC_TIME),
    sa.Column("extend_reason", LongText),
    # NULL in leases that are no occurrence of a series; without a foreign key, as a lease may outlive its series. The
    # local start by the rule, and whether somebody changed the lease by itself.
    sa.Column("series_id", Id),
    sa.Column("recurrence_id", sa.String(19)),
    sa.Column("series_changed", sa.Boolean, nullable=False, server_default=sa.false()),
    # NULL in leases that are not offered: to which project, and user of it, until when, and the rest (``store.rows``).
    sa.Column("offered_to", sa.String(255)),
    sa.Column("offered_to_user", sa.String(255)),
    sa.Column("offer_expires_at", UTC_TIME),
    sa.Column("offer_terms", sa.JSON(none_as_null=True)),
    # NULL in leases without reminders (``blazar.model.leases.reminders``).
    sa.Column("reminders", sa.JSON(none_as_null=True)),
    sa.Column("keep_hosts", sa.Boolean, nullable=False, server_default=sa.false()),
    # By what lists sort and are parted; the database derives it, so that no writer can forget it.
    sa.Column("changed_at", UTC_TIME, sa.Computed("coalesce(updated_at, created_at)")),
    sa.Column("leaves_at", UTC_TIME, sa.Computed("coalesce(release_at, ends_at)")),
    sa.Column(
        "shown_status",
        sa.String(16),
        sa.Computed("CASE WHEN deleted_at IS NULL THEN status ELSE 'TERMINATED' END"),
    ),
    sa.Column(
        "is_over",
        sa.SmallInteger,
        sa.Computed("CASE WHEN deleted_at IS NULL AND status <> 'TERMINATED' THEN 0 ELSE 1 END"),
    ),
    # The waiting list; and what may be prolonged.
    sa.Index(None, "status", "queued_at"),
    sa.Index(None, "extend_until"),
    sa.Index(None, "series_id"),
    sa.Index(None, "offered_to", "offer_expires_at"),
    # What is not as it was promised, and what is about to be released: few of many.
    sa.Index(None, "degraded", "deleted_at"),
    sa.Index(None, "release_at"),
    # The list of 1.0, oldest first: of a project; and of all.
    sa.Index(None, "project_id", "deleted_at", "created_at", "id"),
    # What a project has had since an instant.
    sa.Index(None, "project_id", "ends_at"),
    sa.Index(None, "deleted_at", "created_at"),
    # What was made since an instant; and all that is not deleted, by its dates.
    sa.Index(None, "created_at"),
    sa.Index(None, "deleted_at", "starts_at"),
    sa.Index(None, "deleted_at", "ends_at"),
    # A page in any order (``store.leases.pages``): of all, and of a project.
    *(sa.Index(None, "is_over", key, "id") for key in LEASE_ORDERS.values()),
    *(sa.Index(None, "project_id", "is_over", key, "id") for key in LEASE_ORDERS.values()),
)

reservations = sa.Table(
    "reservations",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("resource_type", sa.String(66), nullable=False),
    sa.Column("resource_id", Id),
    # That of its resources, chosen when it is made; empty as that of resources is.
    sa.Column("region", sa.String(64), nullable=False, server_default=""),
    # The reservation of the same lease that it is a part of; NULL for one that a user asked for.
    sa.Column("parent_id", Id),
    sa.Column("status", sa.String(13), nullable=False),
    sa.Column("missing_resources", sa.Boolean, nullable=False),
    sa.Column("resources_changed", sa.Boolean, nullable=False),
    # Since when these hold; NULL where they do not, or where that is not known.
    sa.Column("missing_since", UTC_TIME),
    sa.Column("changed_since", UTC_TIME),
    # When its start was done; NULL before, and where that is not known.
    sa.Column("handed_over_at", UTC_TIME),
    sa.Column("parameters", sa.JSON, nullable=False),
    sa.Column("cloud_ids", sa.JSON, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.Index(None, "lease_id"),
    # Reservations to be healed.
    sa.Index(None, "missing_resources", "lease_id"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("event_type", sa.String(66), nullable=False),
    sa.Column("time", UTC_TIME),
    sa.Column("status", sa.String(13)),
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("claimed_at", UTC_TIME),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", LongText),
    # The reason as a code and numbers; NULL for a reason that was written before there were codes.
    sa.Column("cause", sa.JSON(none_as_null=True)),
    # Since when it is late, or when it failed for good.
    sa.Column("trouble_since", UTC_TIME),
    sa.Column("saved_state", sa.JSON(none_as_null=True)),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    sa.Index(None, "lease_id"),
    # Due events, earliest first.
    sa.Index(None, "due_at"),
    # For the heartbeat of a manager.
    sa.Index(None, "claimed_by"),
    # Creations that were undone: their leases never were.
    sa.Index(None, "event_type", "status", "lease_id"),
)

allocations = sa.Table(
    "allocations",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), nullable=False),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    sa.Column("reservation_id", Id, sa.ForeignKey("reservations.id"), nullable=False),
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
    # The end of the use and of the cleaning after it: until then the resource is not promised to others.
    sa.Column("blocks_until", UTC_TIME, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("per_instance", sa.JSON(none_as_null=True)),
    # The start of the use, if it was added to a lease that had begun.
    sa.Column("added_at", UTC_TIME),
    sa.Column("released_at", UTC_TIME),
    # Until when it was promised before its owner gave back time; NULL where nobody did.
    sa.Column("returned_until", UTC_TIME),
    # By which prices it is charged, each with how many of its measure the reservation was booked with: chosen when it
    # was booked, and passed on to what takes its place. NULL where there were no prices. ``booked_at``: NULL of what
    # was booked with the lease.
    sa.Column("skus", sa.JSON(none_as_null=True)),
    sa.Column("booked_at", UTC_TIME),
    # What is promised in a window; an index-only scan.
    sa.Index("ix_allocations_calendar", "kind", "blocks_until", "starts_at", "resource_id"),
    # Late users, who have not returned their resources: of all resources, and of one.
    sa.Index("ix_allocations_open", "kind", "released_at", "ends_at", "resource_id"),
    sa.Index("ix_allocations_resource", "resource_id", "released_at", "ends_at"),
    sa.Index(None, "lease_id"),
    sa.Index(None, "reservation_id"),
    # What was given back in a period.
    sa.Index(None, "returned_until"),
)

calendar_changes = sa.Table(
    "calendar_changes",
    metadata,
    # Resources of which what was promised is another, and not just more, since a transaction: who keeps the calendar
    # reads these again. Rows are numbered when they are inserted, which is not the order in which they are committed.
    sa.Column("seq", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), primary_key=True, autoincrement=True),
    sa.Column("kind", sa.String(32), nullable=False),
    # No foreign key: it keeps no resource.
    sa.Column("resource_id", sa.Integer, nullable=False),
    # Of the write: tells two rows of one number, of which one was lost with a restored database.
    sa.Column("token", sa.String(36), nullable=False),
    sa.Column("at", UTC_TIME, nullable=False),
    # What is old enough to be forgotten.
    sa.Index(None, "at"),
    sqlite_autoincrement=True,
)

usage_changes = sa.Table(
    "usage_changes",
    metadata,
    # A look at a lease that found another usage than the one before; it holds until the next row.
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), primary_key=True),
    sa.Column("at", UTC_TIME, primary_key=True),
    sa.Column("usage", sa.String(16), nullable=False),
)

managers = sa.Table(
    "managers",
    metadata,
    # What the tokens of its claims begin with.
    sa.Column("id", sa.String(255), primary_key=True),
    sa.Column("host", sa.String(255), nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("version", sa.String(32), nullable=False),
    sa.Column("rpc_version", sa.String(16), nullable=False),
    sa.Column("started_at", UTC_TIME, nullable=False),
    # Written by each heartbeat: without an index on it, PostgreSQL writes the row only.
    sa.Column("seen_at", UTC_TIME, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("clock_offset_ms", sa.BigInteger, nullable=False),
    # Regions, threads, and a hash of the options that have to agree.
    sa.Column("info", sa.JSON, nullable=False),
)

outbox = sa.Table(
    "outbox",
    metadata,
    # Messages about one lease are delivered in this order.
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", Id, nullable=False, unique=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), nullable=False),
    # NULL once it is delivered.
    sa.Column("content", LongText),
    sa.Column("delivered_to", sa.JSON, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    # NULL once it is delivered, or given up.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("reason", LongText),
    sa.Column("finished_at", UTC_TIME),
    # Messages to deliver: of a lease, and of all, earliest first.
    sa.Index(None, "lease_id", "due_at"),
    sa.Index(None, "due_at"),
)

project_uses = sa.Table(
    "project_uses",
    metadata,
    sa.Column("project_id", sa.String(255), primary_key=True),
    # Raised by every booking of a project with limited usage, as generations are for resources.
    sa.Column("version", sa.Integer, nullable=False),
)

waiting_list = sa.Table(
    "waiting_list",
    metadata,
    # One row for all kinds of resource, as a lease may have several.
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    # Raised by each plan that is carried out, so that of two managers with plans of the same state one makes another.
    sa.Column("version", sa.Integer, nullable=False),
    # What the last plan was made of, and when another is due without any change.
    sa.Column("seen", sa.String(255)),
    sa.Column("due_at", UTC_TIME),
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    # A hash of user, project, route and key.
    sa.Column("scope", sa.String(64), primary_key=True),
    # A hash of the body that was sent with it.
    sa.Column("fingerprint", sa.String(64), nullable=False),
    # Of a lease, or a series. Without a foreign key: it is written before it, in the same transaction.
    sa.Column("lease_id", Id, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Index(None, "created_at"),
    sa.Index(None, "lease_id"),
)

feeds = sa.Table(
    "feeds",
    metadata,
    sa.Column("id", Id, primary_key=True),
    # SHA-256 of the secret in its link, in hexadecimal.
    sa.Column("secret_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("kind", sa.String(16), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("user_id", sa.String(255), nullable=False),
    sa.Column("project_id", sa.String(255), nullable=False),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id")),
    sa.Column("resource_type", sa.String(66)),
    sa.Column("requirement", LongText),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("expires_at", UTC_TIME, nullable=False),
    sa.Column("last_used_at", UTC_TIME),
    # The feeds of a user, oldest first; and of all.
    sa.Index(None, "project_id", "user_id", "created_at"),
    sa.Index(None, "created_at"),
)

# Work that one of the managers does at a time, for all of them: a row for each, from its first turn on.
turns = sa.Table(
    "turns",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("due_at", UTC_TIME, nullable=False),
    sa.Column("claimed_by", sa.String(255)),
)
