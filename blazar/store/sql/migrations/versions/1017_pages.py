# SPDX-License-Identifier: Apache-2.0
"""A page of leases in any order is one range of an index, for a project and for all.

What lists sort by is derived from other columns by the database itself, so that no writer can forget it.

Revision ID: 1017
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "1017"
down_revision = "1016"
branch_labels = None
depends_on = None

KEYS = ("created_at", "changed_at", "starts_at", "ends_at", "name", "shown_status", "leaves_at")
EARLIER = (
    ("ix_leases_project_id_deleted_at_created_at", ["project_id", "deleted_at", "created_at"]),
    ("ix_leases_deleted_at_name", ["deleted_at", "name"]),
)


def derived() -> list[sa.Column[Any]]:
    """Return the columns; what PostgreSQL derives it has to keep in the row."""
    kept = True if op.get_bind().dialect.name == "postgresql" else None
    instant = sa.DateTime()
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        instant = sa.dialects.mysql.DATETIME(fsp=6)
    return [
        sa.Column("changed_at", instant, sa.Computed("coalesce(updated_at, created_at)", persisted=kept)),
        sa.Column("leaves_at", instant, sa.Computed("coalesce(release_at, ends_at)", persisted=kept)),
        sa.Column(
            "shown_status",
            sa.String(16),
            sa.Computed("CASE WHEN deleted_at IS NULL THEN status ELSE 'TERMINATED' END", persisted=kept),
        ),
        sa.Column(
            "is_over",
            sa.SmallInteger(),
            sa.Computed("CASE WHEN deleted_at IS NULL AND status <> 'TERMINATED' THEN 0 ELSE 1 END", persisted=kept),
        ),
    ]


def upgrade() -> None:
    """Add the columns and their indexes, which take the place of some."""
    for column in derived():
        op.add_column("leases", column)
    for key in KEYS:
        op.create_index(f"ix_leases_is_over_{key}_id", "leases", ["is_over", key, "id"])
        op.create_index(f"ix_leases_project_id_is_over_{key}_id", "leases", ["project_id", "is_over", key, "id"])
    op.create_index("ix_leases_project_id_deleted_at_created_at_id", "leases", [*EARLIER[0][1], "id"])
    for name, _ in EARLIER:
        op.drop_index(name, "leases")


def downgrade() -> None:
    """Bring back what was before."""
    for name, columns in EARLIER:
        op.create_index(name, "leases", columns)
    op.drop_index("ix_leases_project_id_deleted_at_created_at_id", "leases")
    for key in reversed(KEYS):
        op.drop_index(f"ix_leases_project_id_is_over_{key}_id", "leases")
        op.drop_index(f"ix_leases_is_over_{key}_id", "leases")
    for name in ("is_over", "shown_status", "leaves_at", "changed_at"):
        op.drop_column("leases", name)
