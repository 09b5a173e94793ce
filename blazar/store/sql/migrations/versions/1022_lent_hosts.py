# SPDX-License-Identifier: Apache-2.0
"""Which hosts of leases are, and were, lent to preemptible servers.

Revision ID: 1022
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

revision = "1022"
down_revision = "1021"
branch_labels = None
depends_on = None


def instant(name: str, *, nullable: bool) -> sa.Column[object]:
    """Return a column of an instant."""
    return sa.Column(name, sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb"), nullable=nullable)


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "lent_hosts",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("reservation_id", sa.String(36), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        instant("since", nullable=False),
        instant("ends_at", nullable=True),
        instant("ended_at", nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_lent_hosts"),
        **table_options(),
    )
    op.create_index("ix_lent_hosts_ended_at", "lent_hosts", ["ended_at"])
    op.create_index("ix_lent_hosts_reservation_id", "lent_hosts", ["reservation_id"])


def downgrade() -> None:
    """Drop it."""
    op.drop_table("lent_hosts")
