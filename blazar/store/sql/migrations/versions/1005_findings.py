# SPDX-License-Identifier: Apache-2.0
"""What the last looks at the clouds have found.

Revision ID: 1005
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "1005"
down_revision = "1004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "findings",
        sa.Column("what", sa.String(16), nullable=False),
        sa.Column("region", sa.String(64), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("resource_type", sa.String(255), nullable=False),
        sa.Column("lease_id", sa.String(36), nullable=True),
        sa.Column("since", UTC_TIME, nullable=False),
        sa.Column("seen_at", UTC_TIME, nullable=False),
        sa.Column("detail", LONG_TEXT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("next_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("what", "region", "key", name="pk_findings"),
        **table_options(),
    )
    op.create_index("ix_findings_lease_id", "findings", ["lease_id"])


def downgrade() -> None:
    """Drop the table; the next looks find the same again, where it is still there."""
    op.drop_table("findings")
