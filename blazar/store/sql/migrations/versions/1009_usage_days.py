# SPDX-License-Identifier: Apache-2.0
"""Days of usage that are closed.

Revision ID: 1009
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "1009"
down_revision = "1008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables; a manager closes the last days."""
    op.create_table(
        "usage_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("lease_id", sa.String(36), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("resource_type", sa.String(66), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("lease_kind", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("region", sa.String(64), nullable=False),
        *(
            sa.Column(measure, sa.BigInteger(), nullable=False)
            for measure in ("reserved", "used", "idle", "unseen", "lost", "overrun", "returned")
        ),
        sa.PrimaryKeyConstraint("day", "lease_id", "resource_id", "resource_type", name="pk_usage_days"),
        **table_options(),
    )
    op.create_index("ix_usage_days_project_id_day", "usage_days", ["project_id", "day"])
    op.create_table(
        "usage_closed_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("computed_through", sa.BigInteger(), nullable=False),
        sa.Column("computed_at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("day", name="pk_usage_closed_days"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop the tables. What purged leases had is forgotten."""
    op.drop_table("usage_closed_days")
    op.drop_table("usage_days")
