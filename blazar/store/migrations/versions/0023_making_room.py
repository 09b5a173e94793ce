# SPDX-License-Identifier: Apache-2.0
"""Leases for which room is made: earlier versions know neither their kind nor what makes it.

Revision ID: 0023
Revises: 0022
"""

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change nothing: the kind, the state and the event are values of columns that there are."""


def downgrade() -> None:
    """Let leases for which room is being made start at once, as far as their hosts are free."""
    op.execute(
        "UPDATE events SET due_at = events.time WHERE event_type = 'start_lease' AND status = 'UNDONE' "
        "AND due_at IS NULL AND lease_id IN (SELECT id FROM leases WHERE status = 'IN_PROGRESS')"
    )
    op.execute("UPDATE leases SET status = 'PENDING' WHERE status = 'IN_PROGRESS'")
    op.execute("UPDATE leases SET kind = 'scheduled' WHERE kind = 'best_effort'")
    op.execute("DELETE FROM events WHERE event_type = 'evacuate'")
