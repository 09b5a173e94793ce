# SPDX-License-Identifier: Apache-2.0
"""Leases that keep their hosts until they start.

Revision ID: 1020
"""

import sqlalchemy as sa
from alembic import op

revision = "1020"
down_revision = "1019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; others may move leases that exist."""
    op.add_column("leases", sa.Column("keep_hosts", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("leases", "keep_hosts")
