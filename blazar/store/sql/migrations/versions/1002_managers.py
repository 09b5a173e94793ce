# SPDX-License-Identifier: Apache-2.0
"""Running managers.

Revision ID: 1002
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "1002"
down_revision = "1001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of managers."""
    op.create_table(
        "managers",
        sa.Column("id", sa.String(255), nullable=False),
        sa.Column("host", sa.String(255), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(32), nullable=False),
        sa.Column("rpc_version", sa.String(16), nullable=False),
        sa.Column("started_at", UTC_TIME, nullable=False),
        sa.Column("seen_at", UTC_TIME, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("clock_offset_ms", sa.BigInteger(), nullable=False),
        sa.Column("info", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_managers"),
        **table_options(),
    )


def downgrade() -> None:
    """Remove the table of managers."""
    op.drop_table("managers")
