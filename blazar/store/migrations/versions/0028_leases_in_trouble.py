# SPDX-License-Identifier: Apache-2.0
"""Find leases that are degraded or about to be released among many.

Revision ID: 0028
Revises: 0027
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the indexes."""
    op.create_index("ix_leases_degraded_deleted_at", "leases", ["degraded", "deleted_at"])
    op.create_index("ix_leases_release_at", "leases", ["release_at"])


def downgrade() -> None:
    op.drop_index("ix_leases_release_at", "leases")
    op.drop_index("ix_leases_degraded_deleted_at", "leases")
