# SPDX-License-Identifier: Apache-2.0
"""Indexes of the lists of leases in the orders that are asked for, and of the creations that were undone."""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

INDEXES = (
    ("leases", ("created_at",)),
    ("leases", ("deleted_at", "starts_at")),
    ("leases", ("deleted_at", "ends_at")),
    ("leases", ("deleted_at", "name")),
    ("events", ("event_type", "status", "lease_id")),
)


def upgrade() -> None:
    for table, columns in INDEXES:
        op.create_index(f"ix_{table}_{'_'.join(columns)}", table, list(columns))


def downgrade() -> None:
    for table, columns in reversed(INDEXES):
        op.drop_index(f"ix_{table}_{'_'.join(columns)}", table)
