# SPDX-License-Identifier: Apache-2.0
"""Which leases an operator holds, so that they show it.

Revision ID: 0027
Revises: 0026
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Take over what the looks have kept with their events."""
    op.add_column("leases", sa.Column("held", sa.Boolean, nullable=True))
    leases = sa.table("leases", sa.column("id"), sa.column("usage"), sa.column("held", sa.Boolean))
    events = sa.table("events", *map(sa.column, ("lease_id", "event_type", "memo")))
    watched = sa.select(events.c.lease_id).where(events.c.event_type == "usage_check")
    held = watched.where(sa.cast(events.c.memo, sa.Text).like('%"held": true%'))
    op.execute(leases.update().where(leases.c.usage.is_not(None)).values(held=leases.c.id.in_(held)))


def downgrade() -> None:
    with op.batch_alter_table("leases") as table:
        table.drop_column("held")
