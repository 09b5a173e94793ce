# SPDX-License-Identifier: Apache-2.0
"""What leases are charged by: facts that were not kept, who pays, what is planned, and what was charged.

Revision ID: 1013
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
ID = sa.String(36)

revision = "1013"
down_revision = "1012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and tables. Of what was before, nothing is known, and nothing is charged."""
    op.add_column("reservations", sa.Column("handed_over_at", UTC_TIME, nullable=True))
    op.add_column("allocations", sa.Column("skus", sa.JSON(), nullable=True))
    op.add_column("allocations", sa.Column("booked_at", UTC_TIME, nullable=True))
    _create_outages()
    _create_accounts()
    _create_charges()


def _create_outages() -> None:
    op.create_table(
        "outages",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("reservation_id", ID, nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("since", UTC_TIME, nullable=False),
        sa.Column("until", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_outages_lease_id"),
        sa.PrimaryKeyConstraint("id", name="pk_outages"),
        **table_options(),
    )
    op.create_index("ix_outages_lease_id", "outages", ["lease_id"])
    op.create_index("ix_outages_reservation_id", "outages", ["reservation_id"])


def _create_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", ID, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("opened_at", UTC_TIME, nullable=False),
        sa.Column("closed_until", UTC_TIME, nullable=False),
        sa.Column("booked_until", UTC_TIME, nullable=False),
        sa.Column("terms", sa.JSON(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("checked_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint("lease_id", "project_id", "opened_at", name="uq_accounts_lease_id_project_id_opened_at"),
        **table_options(),
    )
    op.create_index("ix_accounts_due_at", "accounts", ["due_at"])
    op.create_index("ix_accounts_project_id_state", "accounts", ["project_id", "state"])
    op.create_index("ix_accounts_state_checked_at_id", "accounts", ["state", "checked_at", "id"])
    op.create_table(
        "planned",
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("nano", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("lease_id", "project_id", "month", name="pk_planned"),
        **table_options(),
    )
    op.create_index("ix_planned_project_id_month", "planned", ["project_id", "month"])


def _create_charges() -> None:
    op.create_table(
        "charges",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("reservation_id", ID, nullable=True),
        sa.Column("region", sa.String(64), nullable=False, server_default=""),
        sa.Column("sku", sa.String(64), nullable=True),
        sa.Column("category", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("resource_seconds", sa.BigInteger(), nullable=False),
        sa.Column("unit_nano", sa.BigInteger(), nullable=False),
        sa.Column("factor", sa.String(255), nullable=False),
        sa.Column("nano", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("version", sa.Integer(), nullable=True),
        sa.Column("corrects", sa.BigInteger(), nullable=True),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_charges"),
        **table_options(),
    )
    op.create_index("ix_charges_project_id_month_id", "charges", ["project_id", "month", "id"])
    op.create_index("ix_charges_month_id", "charges", ["month", "id"])
    op.create_index("ix_charges_lease_id_id", "charges", ["lease_id", "id"])
    op.create_index("ix_charges_corrects", "charges", ["corrects"])


def downgrade() -> None:
    """Drop all of it. What was charged is forgotten."""
    for table in ("charges", "planned", "accounts", "outages"):
        op.drop_table(table)
    op.drop_column("allocations", "booked_at")
    op.drop_column("allocations", "skus")
    op.drop_column("reservations", "handed_over_at")
