# SPDX-License-Identifier: Apache-2.0
"""What of the rest of a lease is for energy, of which only an estimate is known.

Of leases that are booked already it is known once more of them is charged.

Revision ID: 1023
"""

import sqlalchemy as sa
from alembic import op

revision = "1023"
down_revision = "1022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("planned", sa.Column("estimated_nano", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop it."""
    op.drop_column("planned", "estimated_nano")
