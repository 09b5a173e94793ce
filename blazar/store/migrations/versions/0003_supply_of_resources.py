# SPDX-License-Identifier: Apache-2.0
"""What resources have beside their capacity: limits of a unit by class, and traits."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("resources", sa.Column("limits", sa.JSON(), nullable=True))
    op.add_column("resources", sa.Column("traits", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("resources", "traits")
    op.drop_column("resources", "limits")
