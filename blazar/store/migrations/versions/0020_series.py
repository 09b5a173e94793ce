# SPDX-License-Identifier: Apache-2.0
"""Series of leases."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options
from blazar.store.migrations.repeatable import has_column

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "series",
        sa.Column("id", sa.String(36), nullable=False),
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
        sa.Column("previous_id", sa.String(36), nullable=True),
        sa.Column("booked_until", UTC_TIME, nullable=True),
        sa.Column("ends_running", sa.Boolean(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.Column("deleted_at", UTC_TIME, nullable=True),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        **table_options(),
    )
    op.create_index("ix_series_project_id_deleted_at_created_at", "series", ["project_id", "deleted_at", "created_at"])
    op.create_index("ix_series_deleted_at_created_at", "series", ["deleted_at", "created_at"])
    op.create_index("ix_series_due_at", "series", ["due_at"])
    op.create_index("ix_series_claimed_by", "series", ["claimed_by"])
    op.create_table(
        "occurrences",
        sa.Column("series_id", sa.String(36), nullable=False),
        sa.Column("recurrence_id", sa.String(19), nullable=False),
        sa.Column("starts_at", UTC_TIME, nullable=False),
        sa.Column("ends_at", UTC_TIME, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("lease_id", sa.String(36), nullable=True),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("opening_starts_at", UTC_TIME, nullable=True),
        sa.Column("opening_ends_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["series_id"], ["series.id"], name=op.f("fk_occurrences_series_id")),
        sa.PrimaryKeyConstraint("series_id", "recurrence_id", name=op.f("pk_occurrences")),
        **table_options(),
    )
    op.create_index("ix_occurrences_series_id_starts_at", "occurrences", ["series_id", "starts_at"])
    op.create_index("ix_occurrences_lease_id", "occurrences", ["lease_id"])
    op.add_column("leases", sa.Column("series_id", sa.String(36)))
    op.add_column("leases", sa.Column("recurrence_id", sa.String(19)))
    op.add_column("leases", sa.Column("series_changed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_index("ix_leases_series_id", "leases", ["series_id"])


# Nothing earlier goes on with leases that a series is being booked with: they are undone.
UNDO = """
UPDATE events SET due_at = time WHERE event_type = 'create_lease' AND due_at IS NULL AND lease_id IN
(SELECT id FROM leases WHERE series_id IS NOT NULL AND status = 'CREATING' AND deleted_at IS NULL)
"""


def downgrade() -> None:
    if has_column("leases", "series_id"):
        op.execute(UNDO)
    op.drop_index("ix_leases_series_id", "leases")
    with op.batch_alter_table("leases") as leases:
        for name in ("series_changed", "recurrence_id", "series_id"):
            leases.drop_column(name)
    op.drop_table("occurrences")
    op.drop_table("series")
