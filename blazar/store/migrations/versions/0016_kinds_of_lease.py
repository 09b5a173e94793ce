# SPDX-License-Identifier: Apache-2.0
"""Kinds of lease, and why a lease has ended."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("kind", sa.String(16), nullable=False, server_default="scheduled"))
    op.add_column("leases", sa.Column("end_reason", sa.String(16)))


def downgrade() -> None:
    # Earlier versions cannot work on what is due of types that they do not know.
    op.execute("DELETE FROM events WHERE event_type = 'immediate_by'")
    op.drop_column("leases", "end_reason")
    op.drop_column("leases", "kind")
