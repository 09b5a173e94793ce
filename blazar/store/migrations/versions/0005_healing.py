# SPDX-License-Identifier: Apache-2.0
"""Healing: what has failed, what operators have taken out of use, and whom a resource is for."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("resources") as table:
        table.add_column(sa.Column("disabled", sa.Boolean(), nullable=False, server_default=sa.false()))
        table.add_column(sa.Column("failed_since", UTC_TIME, nullable=True))
        table.add_column(sa.Column("failure", LONG_TEXT, nullable=True))
        table.add_column(sa.Column("authorized_projects", sa.JSON(), nullable=True))
    op.create_index("ix_reservations_missing_resources_lease_id", "reservations", ["missing_resources", "lease_id"])


def downgrade() -> None:
    op.drop_index("ix_reservations_missing_resources_lease_id", table_name="reservations")
    with op.batch_alter_table("resources") as table:
        table.drop_column("authorized_projects")
        table.drop_column("failure")
        table.drop_column("failed_since")
        table.drop_column("disabled")
