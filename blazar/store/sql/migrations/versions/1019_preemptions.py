# SPDX-License-Identifier: Apache-2.0
"""Which preemptible servers were told when they are deleted.

Revision ID: 1019
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

revision = "1019"
down_revision = "1018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "preemptions",
        sa.Column("server_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("saved", sa.Boolean(), nullable=False),
        sa.Column("reservation_id", sa.String(36), nullable=False),
        sa.Column("resource_type", sa.String(66), nullable=False),
        sa.Column("ends_at", sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), nullable=False),
        sa.PrimaryKeyConstraint("server_id", name="pk_preemptions"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("preemptions")
