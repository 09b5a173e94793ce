# SPDX-License-Identifier: Apache-2.0
"""Maintenance windows."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "maintenances",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("requirement", LONG_TEXT, nullable=True),
        sa.Column("pending", sa.String(16), nullable=False),
        sa.Column("disable_service", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("trouble", LONG_TEXT, nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_maintenances")),
        **table_options(),
    )
    op.create_index("ix_maintenances_due_at", "maintenances", ["due_at"])
    op.create_index("ix_maintenances_created_at", "maintenances", ["created_at"])
    op.create_table(
        "maintenance_resources",
        sa.Column("maintenance_id", sa.String(36), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("blocks_until", UTC_TIME, nullable=False),
        sa.Column("servers", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["maintenance_id"], ["maintenances.id"], name=op.f("fk_maintenance_resources_maintenance_id")
        ),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name=op.f("fk_maintenance_resources_resource_id")),
        sa.PrimaryKeyConstraint("maintenance_id", "resource_id", name=op.f("pk_maintenance_resources")),
        **table_options(),
    )
    op.create_index(
        "ix_maintenance_resources_calendar",
        "maintenance_resources",
        ["kind", "blocks_until", "starts_at", "resource_id"],
    )
    op.create_index("ix_maintenance_resources_resource_id", "maintenance_resources", ["resource_id"])
    op.create_table(
        "maintenance_leases",
        sa.Column("maintenance_id", sa.String(36), nullable=False),
        sa.Column("lease_id", sa.String(36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("makes_room", sa.Boolean(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("openings", sa.JSON(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.Column("content", sa.String(255), nullable=True),
        sa.Column("told", sa.String(255), nullable=True),
        sa.Column("told_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["maintenance_id"], ["maintenances.id"], name=op.f("fk_maintenance_leases_maintenance_id")
        ),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_maintenance_leases_lease_id")),
        sa.PrimaryKeyConstraint("maintenance_id", "lease_id", name=op.f("pk_maintenance_leases")),
        **table_options(),
    )
    op.create_index("ix_maintenance_leases_lease_id", "maintenance_leases", ["lease_id"])


def downgrade() -> None:
    op.drop_table("maintenance_leases")
    op.drop_table("maintenance_resources")
    op.drop_table("maintenances")
