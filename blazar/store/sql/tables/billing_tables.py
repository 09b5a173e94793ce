# SPDX-License-Identifier: Apache-2.0
"""Tables of what operators publish: what leases cost, and rules on when projects may have them."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, LongText, metadata

# Rows are only added: what was booked is charged by the lists of that time.
price_lists = sa.Table(
    "price_lists",
    metadata,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("published_at", UTC_TIME, nullable=False),
    sa.Column("valid_from", UTC_TIME, nullable=False),
    # The user; empty if nobody is known.
    sa.Column("published_by", sa.String(255), nullable=False),
    # A hash of the content.
    sa.Column("digest", sa.String(64), nullable=False),
    # The document as JSON.
    sa.Column("content", LongText, nullable=False),
)

rules = sa.Table(
    "rules",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    # Each writing of any rule has a higher one than all before it.
    sa.Column("revision", sa.Integer, nullable=False),
    # The document as JSON.
    sa.Column("content", LongText, nullable=False),
    sa.Column("created_at", UTC_TIME, nullable=False),
    sa.Column("updated_at", UTC_TIME),
)
