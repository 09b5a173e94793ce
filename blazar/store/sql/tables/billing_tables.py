# SPDX-License-Identifier: Apache-2.0
"""Tables of what leases cost."""

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
