# SPDX-License-Identifier: Apache-2.0
"""What reports need besides: until when time was promised that was given back, and what looks at leases have found.

Revision ID: 1008
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "1008"
down_revision = "1007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column and the table. Of what was given back or looked at before, reports know nothing."""
    op.add_column("allocations", sa.Column("returned_until", UTC_TIME, nullable=True))
    op.create_index("ix_allocations_returned_until", "allocations", ["returned_until"])
    op.create_table(
        "usage_changes",
        sa.Column("lease_id", sa.String(36), nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("usage", sa.String(16), nullable=False),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_usage_changes_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", "at", name="pk_usage_changes"),
        **table_options(),
    )


def downgrade() -> None:
    """Drop both."""
    op.drop_table("usage_changes")
    op.drop_index("ix_allocations_returned_until", table_name="allocations")
    op.drop_column("allocations", "returned_until")
