# SPDX-License-Identifier: Apache-2.0
"""The providers nested in a host, as its cards, with the amount, traits and limits of each.

Revision ID: 1021
"""

import sqlalchemy as sa
from alembic import op

revision = "1021"
down_revision = "1020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. NULL is none; a refresh writes those that a host has."""
    with op.batch_alter_table("resources") as batch:
        batch.add_column(sa.Column("pools", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Drop it."""
    with op.batch_alter_table("resources") as batch:
        batch.drop_column("pools")
