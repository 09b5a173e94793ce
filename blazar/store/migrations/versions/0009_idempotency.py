# SPDX-License-Identifier: Apache-2.0
"""Keys of requests that made leases, so that a request that is sent again gets the same lease."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "idempotency_keys",
        sa.Column("scope", sa.String(64), nullable=False),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("lease_id", sa.String(36), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.PrimaryKeyConstraint("scope", name="pk_idempotency_keys"),
    )
    op.create_index("ix_idempotency_keys_created_at", "idempotency_keys", ["created_at"])
    op.create_index("ix_idempotency_keys_lease_id", "idempotency_keys", ["lease_id"])


def downgrade() -> None:
    op.drop_table("idempotency_keys")
