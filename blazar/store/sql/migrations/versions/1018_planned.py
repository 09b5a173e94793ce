# SPDX-License-Identifier: Apache-2.0
"""What is planned belongs to an account: a project that gave a lease away, and got it back, has two of one lease.

Revision ID: 1018
"""

import sqlalchemy as sa
from alembic import op

ID = sa.String(36)

revision = "1018"
down_revision = "1017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the account of each row: the one of its lease that is open."""
    op.add_column("planned", sa.Column("account_id", ID, nullable=True))
    op.execute(
        "UPDATE planned SET account_id = (SELECT accounts.id FROM accounts WHERE accounts.state = 'open'"
        " AND accounts.lease_id = planned.lease_id AND accounts.project_id = planned.project_id)"
        " WHERE account_id IS NULL"
    )
    op.execute("DELETE FROM planned WHERE account_id IS NULL")
    with op.batch_alter_table("planned") as batch:
        batch.alter_column("account_id", existing_type=ID, nullable=False)
    _key_by("account_id", "month")
    op.create_index("ix_planned_lease_id", "planned", ["lease_id"])


def downgrade() -> None:
    """Keep what is planned for the account of a lease that is open. Energy that is untold then stays so."""
    op.execute("UPDATE accounts SET due_at = NULL, claimed_by = NULL WHERE state <> 'open'")
    op.drop_index("ix_planned_lease_id", "planned")
    if "account_id" in _list_keys():
        op.execute("DELETE FROM planned WHERE account_id IN (SELECT accounts.id FROM accounts WHERE state <> 'open')")
    _key_by("lease_id", "project_id", "month")
    op.drop_column("planned", "account_id")


def _list_keys() -> list[str]:
    return list(sa.inspect(op.get_bind()).get_pk_constraint("planned")["constrained_columns"])


def _key_by(*columns: str) -> None:
    """Make columns the primary key; on MariaDB, where each change commits by itself, in one of them."""
    if _list_keys() == list(columns):
        return
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        op.execute(f"ALTER TABLE planned DROP PRIMARY KEY, ADD PRIMARY KEY ({', '.join(columns)})")
        return
    with op.batch_alter_table("planned") as batch:
        batch.drop_constraint("pk_planned", type_="primary")
        batch.create_primary_key("pk_planned", list(columns))
