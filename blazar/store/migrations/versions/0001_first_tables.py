# SPDX-License-Identifier: Apache-2.0
"""The first tables: resources, leases, reservations, events, allocations."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "inventory_versions",
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_inventory_versions")),
        **table_options(),
    )
    op.create_table(
        "leases",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("user_id", sa.String(length=255), nullable=False),
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("trust_id", sa.String(length=36), nullable=True),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("deleted_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_leases")),
        **table_options(),
    )
    op.create_index("ix_leases_deleted_at_created_at", "leases", ["deleted_at", "created_at"], unique=False)
    op.create_index(
        "ix_leases_project_id_deleted_at_created_at", "leases", ["project_id", "deleted_at", "created_at"], unique=False
    )

    op.create_table(
        "resource_properties",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_properties")),
        sa.UniqueConstraint("kind", "name", name=op.f("uq_resource_properties_kind_name")),
        **table_options(),
    )
    op.create_table(
        "resources",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("external_id", sa.String(length=255), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("capacity", sa.JSON(), nullable=False),
        sa.Column("reservable", sa.Boolean(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("retired_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resources")),
        sa.UniqueConstraint("kind", "external_id", "live", name=op.f("uq_resources_kind_external_id_live")),
        sa.UniqueConstraint("kind", "name", "live", name=op.f("uq_resources_kind_name_live")),
        **table_options(),
    )
    op.create_table(
        "events",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("lease_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("event_type", sa.String(length=66), nullable=False),
        sa.Column("time", UTC_TIME, nullable=True),
        sa.Column("status", sa.String(length=13), nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(length=255), nullable=True),
        sa.Column("claimed_at", UTC_TIME, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column(
            "reason",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mariadb").with_variant(mysql.MEDIUMTEXT(), "mysql"),
            nullable=True,
        ),
        sa.Column("memo", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_events_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
        **table_options(),
    )
    op.create_index("ix_events_claimed_by", "events", ["claimed_by"], unique=False)
    op.create_index("ix_events_due_at", "events", ["due_at"], unique=False)
    op.create_index("ix_events_lease_id", "events", ["lease_id"], unique=False)

    op.create_table(
        "reservations",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("lease_id", sa.String(length=36), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("resource_type", sa.String(length=66), nullable=False),
        sa.Column("resource_id", sa.String(length=36), nullable=True),
        sa.Column("status", sa.String(length=13), nullable=False),
        sa.Column("missing_resources", sa.Boolean(), nullable=False),
        sa.Column("resources_changed", sa.Boolean(), nullable=False),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("artefacts", sa.JSON(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_reservations_lease_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reservations")),
        **table_options(),
    )
    op.create_index("ix_reservations_lease_id", "reservations", ["lease_id"], unique=False)

    op.create_table(
        "resource_capabilities",
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("property_id", sa.String(length=36), nullable=False),
        sa.Column(
            "value",
            sa.Text().with_variant(mysql.MEDIUMTEXT(), "mariadb").with_variant(mysql.MEDIUMTEXT(), "mysql"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["property_id"], ["resource_properties.id"], name=op.f("fk_resource_capabilities_property_id")
        ),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name=op.f("fk_resource_capabilities_resource_id")),
        sa.PrimaryKeyConstraint("resource_id", "property_id", name=op.f("pk_resource_capabilities")),
        **table_options(),
    )
    op.create_index("ix_resource_capabilities_property_id", "resource_capabilities", ["property_id"], unique=False)

    op.create_table(
        "allocations",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("lease_id", sa.String(length=36), nullable=False),
        sa.Column("reservation_id", sa.String(length=36), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("blocks_until", UTC_TIME, nullable=False),
        sa.Column("units", sa.Integer(), nullable=False),
        sa.Column("unit", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("released_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_allocations_lease_id")),
        sa.ForeignKeyConstraint(["reservation_id"], ["reservations.id"], name=op.f("fk_allocations_reservation_id")),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name=op.f("fk_allocations_resource_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_allocations")),
        **table_options(),
    )
    op.create_index(
        "ix_allocations_calendar", "allocations", ["kind", "blocks_until", "starts_at", "resource_id"], unique=False
    )
    op.create_index("ix_allocations_lease_id", "allocations", ["lease_id"], unique=False)
    op.create_index(
        "ix_allocations_open", "allocations", ["kind", "released_at", "ends_at", "resource_id"], unique=False
    )
    op.create_index("ix_allocations_reservation_id", "allocations", ["reservation_id"], unique=False)
    op.create_index("ix_allocations_resource", "allocations", ["resource_id", "released_at", "ends_at"], unique=False)


def downgrade() -> None:

    op.drop_table("allocations")

    op.drop_table("resource_capabilities")

    op.drop_table("reservations")

    op.drop_table("events")
    op.drop_table("resources")
    op.drop_table("resource_properties")

    op.drop_table("leases")
    op.drop_table("inventory_versions")
