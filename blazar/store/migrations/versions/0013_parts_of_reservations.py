# SPDX-License-Identifier: Apache-2.0
"""Reservations that are part of another reservation of their lease."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("reservations", sa.Column("parent_id", sa.String(36)))


def downgrade() -> None:
    op.drop_column("reservations", "parent_id")
