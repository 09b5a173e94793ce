# SPDX-License-Identifier: Apache-2.0
"""The journal takes the place of the histories of leases.

Revision ID: 1003
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

from blazar.store.sql.migrations.mysql import table_options

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
ID = sa.String(36)

revision = "1003"
down_revision = "1002"
branch_labels = None
depends_on = None

IDS = {
    "postgresql": "CAST(gen_random_uuid() AS VARCHAR(36))",
    "mysql": "UUID()",
    "mariadb": "UUID()",
    "sqlite": "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) "
    "|| '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6)))",
}
"""An id of its own for each row, as each database makes one."""

CARRY = """
    INSERT INTO journal (position, id, at, object_type, object_id, object_name, revision, verb, project_id, user_id,
        by_user_id, by_project_id, by_operator, changes, moves, reason)
    SELECT ROW_NUMBER() OVER (ORDER BY told.since, told.lease_id, told.revision), {id}, told.at, 'lease',
        told.lease_id, told.name, told.revision, told.verb, told.whose, told.owner, told.user_id, told.project_id,
        told.operator, told.changes, told.moves, told.reason
    FROM (
        SELECT h.*, leases.name, leases.project_id AS whose, leases.user_id AS owner,
            MAX(h.at) OVER (PARTITION BY h.lease_id ORDER BY h.revision) AS since
        FROM lease_history h JOIN leases ON leases.id = h.lease_id
    ) told
    ORDER BY 1
"""
"""In the order of time, and of one lease always in that of its revisions. In the database alone, however many."""

CARRY_BACK = """
    INSERT INTO lease_history (lease_id, revision, at, verb, user_id, project_id, operator, changes, moves, reason)
    SELECT object_id, revision, at, verb, by_user_id, by_project_id, by_operator, changes, moves, reason
    FROM journal
    WHERE object_type = 'lease' AND revision IS NOT NULL AND object_id IN (SELECT id FROM leases)
        AND NOT EXISTS (
            SELECT 1 FROM journal earlier
            WHERE earlier.object_type = 'lease' AND earlier.object_id = journal.object_id
                AND earlier.revision = journal.revision AND earlier.seq < journal.seq
        )
"""
"""Of one revision its first entry: what owners were told besides has no place there."""


def upgrade() -> None:
    """Create the journal, and carry the histories over, all numbered."""
    op.create_table(
        "journal",
        sa.Column(
            "seq",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=True,
            nullable=False,
        ),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("id", ID, nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("object_type", sa.String(16), nullable=False),
        sa.Column("object_id", sa.String(255), nullable=False),
        sa.Column("object_name", sa.String(255), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("verb", sa.String(32), nullable=False),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("user_id", sa.String(255), nullable=True),
        sa.Column("by_user_id", sa.String(255), nullable=True),
        sa.Column("by_project_id", sa.String(255), nullable=True),
        sa.Column("by_operator", sa.Boolean(), nullable=False),
        sa.Column("request_id", sa.String(255), nullable=True),
        sa.Column("global_request_id", sa.String(255), nullable=True),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("moves", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(64), nullable=True),
        sa.Column("snapshot", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("seq", name="pk_journal"),
        **table_options(),
    )
    op.create_table(
        "journal_numbering",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal_numbering"),
        **table_options(),
    )
    # Rows first: an index is made at once faster than row by row. After an interruption, all of them once more, unless
    # the histories went last time.
    if sa.inspect(op.get_bind()).has_table("lease_history"):
        op.execute("DELETE FROM journal")
        op.execute("DELETE FROM journal_numbering")
        op.execute(CARRY.format(id=IDS[op.get_bind().dialect.name]))
        op.execute("INSERT INTO journal_numbering (id, position) SELECT 1, COALESCE(MAX(position), 0) FROM journal")
    op.create_index("ix_journal_object", "journal", ["object_type", "object_id", "revision"])
    op.create_index("ix_journal_position_seq", "journal", ["position", "seq"])
    op.create_index("ix_journal_project_id_position", "journal", ["project_id", "position"])
    op.create_index("ix_journal_by_user_id_at", "journal", ["by_user_id", "at"])
    op.drop_table("lease_history")


def downgrade() -> None:
    """Carry the histories of leases back, and drop what else the journal says."""
    op.create_table(
        "lease_history",
        sa.Column("lease_id", ID, nullable=False),
        sa.Column("revision", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", UTC_TIME, nullable=False),
        sa.Column("verb", sa.String(32), nullable=False),
        sa.Column("user_id", sa.String(255), nullable=True),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("operator", sa.Boolean(), nullable=False),
        sa.Column("changes", sa.JSON(), nullable=False),
        sa.Column("moves", sa.JSON(), nullable=False),
        sa.Column("reason", sa.String(64), nullable=True),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], name="fk_lease_history_lease_id"),
        sa.PrimaryKeyConstraint("lease_id", "revision", name="pk_lease_history"),
        **table_options(),
    )
    if sa.inspect(op.get_bind()).has_table("journal"):
        op.execute("DELETE FROM lease_history")
        op.execute(CARRY_BACK)
    # The journal first: while it is there, an interrupted downgrade carries back once more.
    op.drop_table("journal")
    op.drop_table("journal_numbering")
