# SPDX-License-Identifier: Apache-2.0
"""Tables of maintenance windows: what they close, and what they do to leases."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, Id, LongText, metadata

maintenance_windows = sa.Table(
    "maintenance_windows",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("reason", LongText),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("ends_at", UTC_TIME, nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    # What its hosts were chosen by; NULL if by their ids.
    sa.Column("requirement", LongText),
    sa.Column("pending", sa.String(16), nullable=False),
    sa.Column("active", sa.String(16), nullable=False, server_default="list"),
    sa.Column("disable_service", sa.Boolean, nullable=False),
    sa.Column("revision", sa.Integer, nullable=False),
    # When there is something to do, or the claim of who does it ends; NULL when nothing follows.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    sa.Column("trouble", LongText),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
    # What is due; and the list, oldest first.
    sa.Index(None, "due_at"),
    sa.Index(None, "created_at"),
)

maintenance_resources = sa.Table(
    "maintenance_resources",
    metadata,
    sa.Column("maintenance_id", Id, sa.ForeignKey("maintenance_windows.id"), primary_key=True),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    # The window, or what became of it: the resource is promised to nobody then.
    sa.Column("starts_at", UTC_TIME, nullable=False),
    sa.Column("blocks_until", UTC_TIME, nullable=False),
    # How many servers it ran at the start; NULL if that is not known.
    sa.Column("servers", sa.Integer),
    # What is in maintenance in a window.
    sa.Index("ix_maintenance_resources_calendar", "kind", "blocks_until", "starts_at", "resource_id"),
    sa.Index(None, "resource_id"),
)

maintenance_leases = sa.Table(
    "maintenance_leases",
    metadata,
    # A lease has one row in a maintenance window, and its owner one message of each content.
    sa.Column("maintenance_id", Id, sa.ForeignKey("maintenance_windows.id"), primary_key=True),
    sa.Column("lease_id", Id, sa.ForeignKey("leases.id"), primary_key=True),
    # The order in which leases are moved.
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String(32), nullable=False),
    sa.Column("makes_room", sa.Boolean, nullable=False),
    sa.Column("targets", sa.JSON, nullable=False),
    sa.Column("openings", sa.JSON, nullable=False),
    sa.Column("done", sa.Boolean, nullable=False),
    # What its owner should know, NULL for nothing; what it was told last, and when.
    sa.Column("content", sa.String(255)),
    sa.Column("notified", sa.String(255)),
    sa.Column("notified_at", UTC_TIME),
    # Why a lease in use keeps hosts, or how far the moves of its servers are.
    sa.Column("note", LongText),
    sa.Index(None, "lease_id"),
)
