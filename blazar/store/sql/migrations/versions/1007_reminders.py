# SPDX-License-Identifier: Apache-2.0
"""Reminders of leases.

Revision ID: 1007
"""

import sqlalchemy as sa
from alembic import op

revision = "1007"
down_revision = "1006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; leases that exist have none."""
    op.add_column("leases", sa.Column("reminders", sa.JSON(), nullable=True))


def downgrade() -> None:
    """Drop the column, and the events that would tell what it has."""
    op.execute(sa.text("DELETE FROM events WHERE event_type = 'remind'"))
    op.drop_column("leases", "reminders")
