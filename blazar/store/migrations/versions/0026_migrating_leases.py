# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows that have leases in use migrated, and how far that is.

Revision ID: 0026
Revises: 0025
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("maintenances", sa.Column("active", sa.String(16), nullable=False, server_default="list"))
    op.add_column("maintenance_leases", sa.Column("note", LONG_TEXT, nullable=True))


def downgrade() -> None:
    """Let leases that are migrated keep all the hosts that they have by now."""
    op.execute(
        "UPDATE maintenance_leases SET outcome = 'active', content = NULL "
        "WHERE outcome IN ('migrated', 'partly_migrated')"
    )
    with op.batch_alter_table("maintenance_leases") as table:
        table.drop_column("note")
    with op.batch_alter_table("maintenances") as table:
        table.drop_column("active")
