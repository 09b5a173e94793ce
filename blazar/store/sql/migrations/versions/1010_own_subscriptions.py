# SPDX-License-Identifier: Apache-2.0
"""Subscriptions of users to their own leases; how many refused messages are not kept any more.

Revision ID: 1010
"""

import sqlalchemy as sa
from alembic import op

revision = "1010"
down_revision = "1009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns."""
    with op.batch_alter_table("subscriptions") as batch:
        batch.add_column(sa.Column("own", sa.Boolean(), nullable=False, server_default=sa.false()))
        batch.add_column(sa.Column("digest", sa.String(8), nullable=False, server_default="none"))
        batch.add_column(sa.Column("time_zone", sa.String(64), nullable=False, server_default="UTC"))
        batch.add_column(sa.Column("dropped", sa.Integer(), nullable=False, server_default="0"))
    op.create_index("ix_subscriptions_user_id", "subscriptions", ["user_id"])


def downgrade() -> None:
    """Drop the columns, and the subscriptions that cannot be without them."""
    # An attempt that was interrupted may have dropped it last.
    if any(column["name"] == "own" for column in sa.inspect(op.get_bind()).get_columns("subscriptions")):
        subscriptions = sa.table("subscriptions", sa.column("own"))
        op.execute(subscriptions.delete().where(subscriptions.c.own.is_(sa.true())))
    op.drop_index("ix_subscriptions_user_id", "subscriptions")
    with op.batch_alter_table("subscriptions") as batch:
        for name in ("dropped", "time_zone", "digest", "own"):
            batch.drop_column(name)
