# SPDX-License-Identifier: Apache-2.0
"""All tables of the first release.

Revision ID: 1001
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
ID = sa.String(36)

revision = "1001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables, each after those that it refers to."""
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_idempotency_keys"),
        **table_options(),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_index("ix_idempotency_keys_lease_id", "idempotency_keys", ["lease_id"])
    op.create_table(
        "inventory_versions",
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("kind", name="pk_inventory_versions"),
        **table_options(),
    )
    op.create_table(
        "leases",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("trust_id", sa.String(36), nullable=True),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False, server_default="scheduled"),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("end_reason", sa.String(16), nullable=True),
        sa.Column("usage", sa.String(16), nullable=True),
        sa.Column("used_at", UTC_TIME, nullable=True),
        sa.Column("release_at", UTC_TIME, nullable=True),
        sa.Column("would_release_at", UTC_TIME, nullable=True),
        sa.Column("held", sa.Boolean(), nullable=True),
        sa.Column("degraded", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("deleted_at", UTC_TIME, nullable=True),
        sa.Column("queued_at", UTC_TIME, nullable=True),
        sa.Column("wait_until", UTC_TIME, nullable=True),
        sa.Column("wait_earliest", UTC_TIME, nullable=True),
        sa.Column("wait_position", sa.Integer(), nullable=True),
        sa.Column("wait_estimate", UTC_TIME, nullable=True),
        sa.Column("wait_reason", LONG_TEXT, nullable=True),
        sa.Column("wait_terms", sa.JSON(), nullable=True),
        sa.Column("extend_until", UTC_TIME, nullable=True),
        sa.Column("extend_reason", LONG_TEXT, nullable=True),
        sa.Column("series_id", ID, nullable=True),
        sa.Column("recurrence_id", sa.String(19), nullable=True),
        sa.Column("series_changed", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("offered_to", sa.String(255), nullable=True),
        sa.Column("offered_to_user", sa.String(255), nullable=True),
        sa.Column("offer_expires_at", UTC_TIME, nullable=True),
        sa.Column("offer_terms", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_leases"),
        **table_options(),
    )
    op.create_index("ix_leases_created_at", "leases", ["created_at"])
    op.create_index("ix_leases_degraded_deleted_at", "leases", ["degraded", "deleted_at"])
    op.create_index("ix_leases_deleted_at_created_at", "leases", ["deleted_at", "created_at"])
    op.create_index("ix_leases_deleted_at_ends_at", "leases", ["deleted_at", "ends_at"])
    op.create_index("ix_leases_deleted_at_name", "leases", ["deleted_at", "name"])
    op.create_index("ix_leases_deleted_at_starts_at", "leases", ["deleted_at", "starts_at"])
    op.create_index("ix_leases_extend_until", "leases", ["extend_until"])
    op.create_index("ix_leases_offered_to_offer_expires_at", "leases", ["offered_to", "offer_expires_at"])
    op.create_index("ix_leases_project_id_deleted_at_created_at", "leases", ["project_id", "deleted_at", "created_at"])
    op.create_index("ix_leases_project_id_ends_at", "leases", ["project_id", "ends_at"])
    op.create_index("ix_leases_release_at", "leases", ["release_at"])
    op.create_index("ix_leases_series_id", "leases", ["series_id"])
    op.create_index("ix_leases_status_queued_at", "leases", ["status", "queued_at"])
    op.create_table(
        "maintenance_windows",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("requirement", LONG_TEXT, nullable=True),
        sa.Column("pending", sa.String(16), nullable=False),
        sa.Column("active", sa.String(16), nullable=False, server_default="list"),
        sa.Column("disable_service", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("trouble", LONG_TEXT, nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_maintenance_windows"),
        **table_options(),
    )
    op.create_index("ix_maintenance_windows_created_at", "maintenance_windows", ["created_at"])
    op.create_index("ix_maintenance_windows_due_at", "maintenance_windows", ["due_at"])
    op.create_table(
        "project_uses",
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name="pk_project_uses"),
        **table_options(),
    )
    op.create_table(
        "resource_properties",
        sa.Column("id", ID, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("private", sa.Boolean(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_resource_properties"),
        sa.UniqueConstraint("kind", "name", name="uq_resource_properties_kind_name"),
        **table_options(),
    )
    op.create_table(
        "resources",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("external_id", sa.String(255), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("region", sa.String(64), nullable=False, server_default=""),
        sa.Column("label", sa.String(16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("attributes", sa.JSON(), nullable=False),
        sa.Column("capacity", sa.JSON(), nullable=False),
        sa.Column("limits", sa.JSON(), nullable=True),
        sa.Column("traits", sa.JSON(), nullable=True),
        sa.Column("reservable", sa.Boolean(), nullable=False),
        sa.Column("disabled", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("disabled_reason", LONG_TEXT, nullable=True),
        sa.Column("disabled_since", UTC_TIME, nullable=True),
        sa.Column("disabled_until", UTC_TIME, nullable=True),
        sa.Column("failed_since", UTC_TIME, nullable=True),
        sa.Column("failure", LONG_TEXT, nullable=True),
        sa.Column("authorized_projects", sa.JSON(), nullable=True),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("live", sa.Integer(), nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("retired_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("kind", "external_id", "live", name="uq_resources_kind_external_id_live"),
        sa.UniqueConstraint("kind", "region", "name", "live", name="uq_resources_kind_region_name_live"),
        sa.UniqueConstraint("label", name="uq_resources_label"),
        **table_options(),
    )
    op.create_index("ix_resources_disabled_until", "resources", ["disabled_until"])
    op.create_table(
        "series",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("rule", sa.String(500), nullable=False),
        sa.Column("starts_local", sa.String(19), nullable=False),
        sa.Column("zone", sa.String(64), nullable=False),
        sa.Column("duration", sa.Integer(), nullable=True),
        sa.Column("until_local", sa.String(8), nullable=True),
        sa.Column("until_days", sa.Integer(), nullable=True),
        sa.Column("exdates", sa.JSON(), nullable=False),
        sa.Column("rdates", sa.JSON(), nullable=False),
        sa.Column("template", sa.JSON(), nullable=False),
        sa.Column("fit", sa.String(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("previous_id", ID, nullable=True),
        sa.Column("booked_until", UTC_TIME, nullable=True),
        sa.Column("ends_running", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("deleted_at", UTC_TIME, nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_series"),
        **table_options(),
    )
    op.create_index("ix_series_claimed_by", "series", ["claimed_by"])
    op.create_index("ix_series_deleted_at_created_at", "series", ["deleted_at", "created_at"])
    op.create_index("ix_series_due_at", "series", ["due_at"])
    op.create_index("ix_series_project_id_deleted_at_created_at", "series", ["project_id", "deleted_at", "created_at"])
    op.create_table(
        "waiting_list",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("seen", sa.String(255), nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_waiting_list"),
        **table_options(),
    )
    op.create_table(
        "events",
        sa.Column("id", ID, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("event_type", sa.String(66), nullable=False),
        sa.Column("time", UTC_TIME, nullable=True),
        sa.Column("status", sa.String(13), nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("claimed_at", UTC_TIME, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("cause", sa.JSON(), nullable=True),
        sa.Column("trouble_since", UTC_TIME, nullable=True),
        sa.Column("saved_state", sa.JSON(), nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_events_lease_id"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
        **table_options(),
    )
    op.create_index("ix_events_claimed_by", "events", ["claimed_by"])
    op.create_index("ix_events_due_at", "events", ["due_at"])
    op.create_index("ix_events_event_type_status_lease_id", "events", ["event_type", "status", "lease_id"])
    op.create_index("ix_events_lease_id", "events", ["lease_id"])
    op.create_table(
        "feeds",
        sa.Column("id", ID, nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=True),
        sa.Column("resource_type", sa.String(66), nullable=True),
        sa.Column("requirement", LONG_TEXT, nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("expires_at", UTC_TIME, nullable=False),
        sa.Column("last_used_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_feeds_resource_id"),
        sa.PrimaryKeyConstraint("id", name="pk_feeds"),
        sa.UniqueConstraint("secret_hash", name="uq_feeds_secret_hash"),
        **table_options(),
    )
    op.create_index("ix_feeds_created_at", "feeds", ["created_at"])
    op.create_index("ix_feeds_project_id_user_id_created_at", "feeds", ["project_id", "user_id", "created_at"])
    op.create_table(
        "lease_history",
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("verb", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=True),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("moves", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(64), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_lease_history_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", "revision", name="pk_lease_history"),
        **table_options(),
    )
    op.create_table(
        "maintenance_leases",
        sa.Column("maintenance_id", ID, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(32), nullable=False),
        sa.Column("makes_room", sa.Boolean(), nullable=False),
        sa.Column("targets", sa.JSON(), nullable=False),
        sa.Column("openings", sa.JSON(), nullable=False),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.Column("content", sa.String(255), nullable=True),
        sa.Column("notified", sa.String(255), nullable=True),
        sa.Column("notified_at", UTC_TIME, nullable=True),
        sa.Column("note", LONG_TEXT, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_maintenance_leases_lease_id"),
        sa.ForeignKeyConstraint(
            ["maintenance_id"], ["maintenance_windows.id"], name="fk_maintenance_leases_maintenance_id"
        ),
        sa.PrimaryKeyConstraint("maintenance_id", "lease_id", name="pk_maintenance_leases"),
        **table_options(),
    )
    op.create_index("ix_maintenance_leases_lease_id", "maintenance_leases", ["lease_id"])
    op.create_table(
        "maintenance_resources",
        sa.Column("maintenance_id", ID, nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("blocks_until", UTC_TIME, nullable=False),
        sa.Column("servers", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["maintenance_id"], ["maintenance_windows.id"], name="fk_maintenance_resources_maintenance_id"
        ),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_maintenance_resources_resource_id"),
        sa.PrimaryKeyConstraint("maintenance_id", "resource_id", name="pk_maintenance_resources"),
        **table_options(),
    )
    op.create_index(
        "ix_maintenance_resources_calendar",
        "maintenance_resources",
        ["kind", "blocks_until", "starts_at", "resource_id"],
    )
    op.create_index("ix_maintenance_resources_resource_id", "maintenance_resources", ["resource_id"])
    op.create_table(
        "outbox",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("content", LONG_TEXT, nullable=True),
        sa.Column("delivered_to", sa.JSON(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("finished_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_outbox_lease_id"),
        sa.PrimaryKeyConstraint("number", name="pk_outbox"),
        sa.UniqueConstraint("id", name="uq_outbox_id"),
        **table_options(),
    )
    op.create_index("ix_outbox_due_at", "outbox", ["due_at"])
    op.create_index("ix_outbox_lease_id_due_at", "outbox", ["lease_id", "due_at"])
    op.create_table(
        "occurrences",
        sa.Column("series_id", ID, nullable=False),
        sa.Column("recurrence_id", sa.String(19), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lease_id", ID, nullable=True),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("opening_starts_at", UTC_TIME, nullable=True),
        sa.Column("opening_ends_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name="fk_occurrences_series_id"),
        sa.PrimaryKeyConstraint("series_id", "recurrence_id", name="pk_occurrences"),
        **table_options(),
    )
    op.create_index("ix_occurrences_lease_id", "occurrences", ["lease_id"])
    op.create_index("ix_occurrences_series_id_starts_at", "occurrences", ["series_id", "starts_at"])
    op.create_table(
        "reservations",
        sa.Column("id", ID, nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("resource_type", sa.String(66), nullable=False),
        sa.Column("resource_id", ID, nullable=True),
        sa.Column("region", sa.String(64), nullable=False, server_default=""),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("status", sa.String(13), nullable=False),
        sa.Column("missing_resources", sa.Boolean(), nullable=False),
        sa.Column("resources_changed", sa.Boolean(), nullable=False),
        sa.Column("missing_since", UTC_TIME, nullable=True),
        sa.Column("changed_since", UTC_TIME, nullable=True),
        sa.Column("parameters", sa.JSON(), nullable=False),
        sa.Column("cloud_ids", sa.JSON(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_reservations_lease_id"),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
        **table_options(),
    )
    op.create_index("ix_reservations_lease_id", "reservations", ["lease_id"])
    op.create_index("ix_reservations_missing_resources_lease_id", "reservations", ["missing_resources", "lease_id"])
    op.create_table(
        "resource_capabilities",
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("property_id", ID, nullable=False),
        sa.Column("value", LONG_TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["property_id"], ["resource_properties.id"], name="fk_resource_capabilities_property_id"
        ),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_resource_capabilities_resource_id"),
        sa.PrimaryKeyConstraint("resource_id", "property_id", name="pk_resource_capabilities"),
        **table_options(),
    )
    op.create_index("ix_resource_capabilities_property_id", "resource_capabilities", ["property_id"])
    op.create_table(
        "allocations",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=False),
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("reservation_id", ID, nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("blocks_until", UTC_TIME, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("per_instance", sa.JSON(), nullable=True),
        sa.Column("added_at", UTC_TIME, nullable=True),
        sa.Column("released_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_allocations_lease_id"),
        sa.ForeignKeyConstraint(["reservation_id"], ["reservations.id"], name="fk_allocations_reservation_id"),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name="fk_allocations_resource_id"),
        sa.PrimaryKeyConstraint("id", name="pk_allocations"),
        **table_options(),
    )
    op.create_index("ix_allocations_calendar", "allocations", ["kind", "blocks_until", "starts_at", "resource_id"])
    op.create_index("ix_allocations_open", "allocations", ["kind", "released_at", "ends_at", "resource_id"])
    op.create_index("ix_allocations_lease_id", "allocations", ["lease_id"])
    op.create_index("ix_allocations_reservation_id", "allocations", ["reservation_id"])
    op.create_index("ix_allocations_resource", "allocations", ["resource_id", "released_at", "ends_at"])


def downgrade() -> None:
    """Drop the tables, each before those that it refers to."""
    op.drop_table("allocations")
    op.drop_table("resource_capabilities")
    op.drop_table("reservations")
    op.drop_table("occurrences")
    op.drop_table("outbox")
    op.drop_table("maintenance_resources")
    op.drop_table("maintenance_leases")
    op.drop_table("lease_history")
    op.drop_table("feeds")
    op.drop_table("events")
    op.drop_table("waiting_list")
    op.drop_table("series")
    op.drop_table("resources")
    op.drop_table("resource_properties")
    op.drop_table("project_uses")
    op.drop_table("maintenance_windows")
    op.drop_table("leases")
    op.drop_table("inventory_versions")
    op.drop_table("idempotency_keys")
