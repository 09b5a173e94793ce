# SPDX-License-Identifier: Apache-2.0
"""Price lists.

Revision ID: 1012
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "1012"
down_revision = "1011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "price_lists",
        sa.Column("version", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("published_at", UTC_TIME, nullable=False),
        sa.Column("valid_from", UTC_TIME, nullable=False),
        sa.Column("published_by", sa.String(255), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("content", LONG_TEXT, nullable=False),
        sa.PrimaryKeyConstraint("version", name="pk_price_lists"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop the table. The prices are forgotten."""
    op.drop_table("price_lists")
