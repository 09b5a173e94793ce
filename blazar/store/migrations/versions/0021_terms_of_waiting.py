# SPDX-License-Identifier: Apache-2.0
"""What leases on the waiting list ask for besides, and what became of their tries."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("wait_terms", sa.JSON(none_as_null=True)))


def downgrade() -> None:
    op.drop_column("leases", "wait_terms")
