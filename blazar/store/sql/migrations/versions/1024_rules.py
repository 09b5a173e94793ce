# SPDX-License-Identifier: Apache-2.0
"""Rules of operators on when projects may have leases.

Revision ID: 1024
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "1024"
down_revision = "1023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "rules",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("content", LONG_TEXT, nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_rules"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop the table. The rules are forgotten."""
    op.drop_table("rules")
