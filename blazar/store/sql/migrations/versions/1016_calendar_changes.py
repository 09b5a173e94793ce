# SPDX-License-Identifier: Apache-2.0
"""What has changed in the calendar besides what was added, so that it can be kept in memory.

Revision ID: 1016
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

revision = "1016"
down_revision = "1015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table. Who keeps the calendar begins by reading all of it."""
    op.create_table(
        "calendar_changes",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("token", sa.String(36), nullable=False),
        sa.Column("at", sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_calendar_changes"),
        sqlite_autoincrement=True,
        **table_options(),
    )
    op.create_index("ix_calendar_changes_at", "calendar_changes", ["at"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("calendar_changes")
