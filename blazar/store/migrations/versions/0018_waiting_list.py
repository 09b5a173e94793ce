# SPDX-License-Identifier: Apache-2.0
"""Leases that wait for their turn."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

TIMES = ("queued_at", "wait_until", "wait_earliest", "wait_estimate")


def upgrade() -> None:
    for name in TIMES:
        op.add_column("leases", sa.Column(name, UTC_TIME))
    op.add_column("leases", sa.Column("wait_position", sa.Integer()))
    op.add_column("leases", sa.Column("wait_reason", LONG_TEXT))
    op.create_index("ix_leases_status_queued_at", "leases", ["status", "queued_at"])
    op.create_table(
        "waiting_list",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seen", sa.String(255), nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_waiting_list")),
        **table_options(),
    )


def downgrade() -> None:
    # Earlier versions cannot read these. Such a lease has nothing, and its owner can delete it.
    op.execute("UPDATE leases SET status = 'ERROR' WHERE status IN ('WAITING', 'TIMED_OUT')")
    op.drop_table("waiting_list")
    op.drop_index("ix_leases_status_queued_at", "leases")
    for name in (*TIMES, "wait_position", "wait_reason"):
        op.drop_column("leases", name)
