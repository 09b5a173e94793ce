# SPDX-License-Identifier: Apache-2.0
"""Leases that are prolonged by themselves."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("leases", sa.Column("extend_until", UTC_TIME))
    op.add_column("leases", sa.Column("extend_reason", LONG_TEXT))
    op.create_index("ix_leases_extend_until", "leases", ["extend_until"])


def downgrade() -> None:
    op.drop_index("ix_leases_extend_until", "leases")
    op.drop_column("leases", "extend_reason")
    op.drop_column("leases", "extend_until")
