# SPDX-License-Identifier: Apache-2.0
"""Resource-hours: since when something is held, and what a project has held since then."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("allocations", sa.Column("added_at", UTC_TIME, nullable=True))
    op.create_index("ix_leases_project_id_ends_at", "leases", ["project_id", "ends_at"], unique=False)


def downgrade() -> None:
    op.drop_index("ix_leases_project_id_ends_at", table_name="leases")
    op.drop_column("allocations", "added_at")
