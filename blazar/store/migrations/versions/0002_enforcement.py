# SPDX-License-Identifier: Apache-2.0
"""Usage enforcement: versions of what projects hold, and notices for those who keep books about leases."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.migrations.options import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "project_uses",
        sa.Column("project_id", sa.String(length=255), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", name=op.f("pk_project_uses")),
        **table_options(),
    )
    op.create_table(
        "notices",
        sa.Column("number", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("lease_id", sa.String(length=36), nullable=False),
        sa.Column("content", LONG_TEXT, nullable=True),
        sa.Column("told", sa.JSON(), nullable=False),
        sa.Column("created_at", UTC_TIME, nullable=False),
        sa.Column("due_at", UTC_TIME, nullable=True),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("reason", LONG_TEXT, nullable=True),
        sa.Column("finished_at", UTC_TIME, nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name=op.f("fk_notices_lease_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_notices")),
        sa.UniqueConstraint("id", name=op.f("uq_notices_id")),
        **table_options(),
    )
    op.create_index("ix_notices_due_at", "notices", ["due_at"], unique=False)
    op.create_index("ix_notices_lease_id_due_at", "notices", ["lease_id", "due_at"], unique=False)


def downgrade() -> None:
    op.drop_table("notices")
    op.drop_table("project_uses")
