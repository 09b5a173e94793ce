# SPDX-License-Identifier: Apache-2.0
"""Reasons of events as codes and numbers, and since when a lease is not as it was promised.

All of it is NULL in rows that are there already: their codes are read from the texts.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("cause", sa.JSON(), nullable=True))
    op.add_column("events", sa.Column("trouble_since", UTC_TIME, nullable=True))
    op.add_column("reservations", sa.Column("missing_since", UTC_TIME, nullable=True))
    op.add_column("reservations", sa.Column("changed_since", UTC_TIME, nullable=True))


def downgrade() -> None:
    with op.batch_alter_table("reservations") as table:
        table.drop_column("changed_since")
        table.drop_column("missing_since")
    with op.batch_alter_table("events") as table:
        table.drop_column("trouble_since")
        table.drop_column("cause")
