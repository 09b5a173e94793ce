# SPDX-License-Identifier: Apache-2.0
"""Feeds of calendar programs: what they show, and the hashes of the secrets in their links."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0008"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feeds",
        sa.Column("id", sa.String(36), nullable=False),
        sa.Column("secret_hash", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=False),
        sa.Column("resource_id", sa.Integer(), nullable=True),
        sa.Column("resource_type", sa.String(66), nullable=True),
        sa.Column("requirement", LONG_TEXT, nullable=True),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("expires_at", UTC_TIME, nullable=False),
        sa.Column("last_used_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["resource_id"], ["resources.id"], name=op.f("fk_feeds_resource_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_feeds")),
        sa.UniqueConstraint("secret_hash", name=op.f("uq_feeds_secret_hash")),
        **table_options(),
    )
    op.create_index("ix_feeds_project_id_user_id_created_at", "feeds", ["project_id", "user_id", "created_at"])
    op.create_index("ix_feeds_created_at", "feeds", ["created_at"])


def downgrade() -> None:
    op.drop_table("feeds")
