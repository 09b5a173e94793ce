# SPDX-License-Identifier: Apache-2.0
"""Offers of leases to other projects."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("offered_to", sa.String(255)))
    op.add_column("leases", sa.Column("offered_to_user", sa.String(255)))
    op.add_column("leases", sa.Column("offer_expires_at", UTC_TIME))
    op.add_column("leases", sa.Column("offer_terms", sa.JSON(none_as_null=True)))
    op.create_index(op.f("ix_leases_offered_to_offer_expires_at"), "leases", ["offered_to", "offer_expires_at"])


def downgrade() -> None:
    op.drop_index(op.f("ix_leases_offered_to_offer_expires_at"), table_name="leases")
    op.drop_column("leases", "offer_terms")
    op.drop_column("leases", "offer_expires_at")
    op.drop_column("leases", "offered_to_user")
    op.drop_column("leases", "offered_to")
