# SPDX-License-Identifier: Apache-2.0
"""Histories of leases."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "lease_history",
        sa.Column("lease_id", sa.String(36), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("verb", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=True),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("moves", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(64), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_lease_history_lease_id")),
        sa.PrimaryKeyConstraint("lease_id", "revision", name=op.f("pk_lease_history")),
        **table_options(),
    )


def downgrade() -> None:
    op.drop_table("lease_history")
