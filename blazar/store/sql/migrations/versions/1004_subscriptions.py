# SPDX-License-Identifier: Apache-2.0
"""Subscriptions, and what their receivers have refused.

Revision ID: 1004
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
ID = sa.String(36)

revision = "1004"
down_revision = "1003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "subscriptions",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("channel", sa.String(16), nullable=False),
        sa.Column("url", sa.String(1024), nullable=False),
        sa.Column("events", sa.JSON(), nullable=False),
        sa.Column("lease_id", ID, nullable=True),
        sa.Column("batch", sa.Boolean(), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("secret_changed_at", UTC_TIME, nullable=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("newest", sa.BigInteger(), nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("claimed_by", sa.String(255), nullable=True),
        sa.Column("testing", sa.Boolean(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("refusals", sa.JSON(), nullable=False),
        sa.Column("failing_since", UTC_TIME, nullable=True),
        sa.Column("last_delivered_at", UTC_TIME, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("updated_at", UTC_TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_subscriptions"),
        **table_options(),
    )
    op.create_index("ix_subscriptions_due_at", "subscriptions", ["due_at"])
    op.create_index("ix_subscriptions_project_id_created_at", "subscriptions", ["project_id", "created_at"])
    op.create_index("ix_subscriptions_created_at", "subscriptions", ["created_at"])
    op.create_table(
        "delivery_failures",
        sa.Column("subscription_id", ID, nullable=False),
        sa.Column("id", ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("type", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.ForeignKeyConstraint(["subscription_id"], ["subscriptions.id"], name="fk_delivery_failures_subscription_id"),
        sa.PrimaryKeyConstraint("subscription_id", "id", name="pk_delivery_failures"),
        **table_options(),
    )
    op.create_index("ix_delivery_failures_subscription_id_at", "delivery_failures", ["subscription_id", "at"])
    op.create_index("ix_delivery_failures_at", "delivery_failures", ["at"])


def downgrade() -> None:
    """Drop the tables, each before that which it refers to."""
    op.drop_table("delivery_failures")
    op.drop_table("subscriptions")
