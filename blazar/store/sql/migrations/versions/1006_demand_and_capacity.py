# SPDX-License-Identifier: Apache-2.0
"""What was refused, and what became of the capacity, by days.

Revision ID: 1006
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "1006"
down_revision = "1005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "demand_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource_type", sa.String(66), nullable=False),
        sa.Column("code", sa.String(64), nullable=False),
        sa.Column("requirement_key", sa.String(64), nullable=False),
        sa.Column("requirement", LONG_TEXT, nullable=False),
        sa.Column("refused", sa.BigInteger(), nullable=False),
        sa.Column("refused_distinct", sa.BigInteger(), nullable=False),
        sa.Column("refused_seconds", sa.BigInteger(), nullable=False),
        sa.Column("refused_amounts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("day", "project_id", "resource_type", "code", "requirement_key", name="pk_demand_days"),
        **table_options(),
    )
    op.create_index("ix_demand_days_project_id_day", "demand_days", ["project_id", "day"])
    op.create_table(
        "demand_seen",
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("hour", UTC_TIME, nullable=False),
        sa.Column("seconds", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("fingerprint", name="pk_demand_seen"),
        **table_options(),
    )
    op.create_index("ix_demand_seen_hour", "demand_seen", ["hour"])
    op.create_table(
        "capacity_days",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("cell", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("region", sa.String(64), nullable=False),
        sa.Column("open_to", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("properties", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("promised_before", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("day", "cell", name="pk_capacity_days"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop the tables: the journal has what reports of capacity are made of, and nothing has refused requests."""
    op.drop_table("capacity_days")
    op.drop_table("demand_seen")
    op.drop_table("demand_days")
