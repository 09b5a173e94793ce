# SPDX-License-Identifier: Apache-2.0
"""The power of hosts.

Revision ID: 1014
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "1014"
down_revision = "1013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the tables."""
    op.create_table(
        "host_power",
        sa.Column("resource_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("policy", sa.String(16), server_default="auto", nullable=False),
        sa.Column("state", sa.String(16), server_default="on", nullable=False),
        sa.Column("reason", sa.String(16), server_default="done", nullable=False),
        sa.Column("since", UTC_TIME, nullable=False),
        sa.Column("rehearsed", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("adapter", sa.String(16), nullable=True),
        sa.Column("target", sa.String(1024), nullable=True),
        sa.Column("kept_until", UTC_TIME, nullable=True),
        sa.Column("attempts", sa.Integer(), server_default="0", nullable=False),
        sa.Column("tried_at", UTC_TIME, nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_host_power_resource_id"),
        sa.PrimaryKeyConstraint("resource_id", name="pk_host_power"),
        **table_options(),
    )
    op.create_index("ix_host_power_due_at", "host_power", ["due_at"])
    op.create_table(
        "power_log",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("before", sa.String(16), nullable=False),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("after", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("rehearsed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_power_log_resource_id"),
        sa.PrimaryKeyConstraint("id", name="pk_power_log"),
        **table_options(),
    )
    op.create_index("ix_power_log_at", "power_log", ["at"])
    op.create_index("ix_power_log_resource_id_at", "power_log", ["resource_id", "at"])
    op.create_table(
        "turns",
        sa.Column("id", sa.String(16), nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=False),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_turns"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop the tables. Hosts that sleep are not woken any more."""
    for name in ("turns", "power_log", "host_power"):
        op.drop_table(name)
