# SPDX-License-Identifier: Apache-2.0
"""Accounts and what is planned have the keys by which they are read, and no others: each is written with a booking.

And price lists get a number of their own that does not come again for others in a restored database.

Revision ID: 1026
"""

import sqlalchemy as sa
from alembic import op

revision = "1026"
down_revision = "1024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Change the keys; SQLite keeps the rows in their order, and so without a second place for each."""
    op.drop_index("ix_planned_lease_id", "planned")
    _key_planned_by("lease_id", "account_id", "month")
    op.create_index("ix_accounts_due_at_checked_at_id", "accounts", ["due_at", "checked_at", "id"])
    op.drop_index("ix_accounts_due_at", "accounts")
    op.drop_index("ix_accounts_project_id_state", "accounts")
    op.drop_index("ix_accounts_state_checked_at_id", "accounts")
    _store_by_key(True, "accounts", "planned")
    _forget_number()
    op.execute(
        "INSERT INTO inventory_versions (kind, version)"
        " SELECT 'price lists', COALESCE((SELECT MAX(price_lists.version) FROM price_lists), 0)"
    )


def downgrade() -> None:
    """Change the keys back."""
    _forget_number()
    _store_by_key(False, "accounts", "planned")
    op.create_index("ix_accounts_state_checked_at_id", "accounts", ["state", "checked_at", "id"])
    op.create_index("ix_accounts_project_id_state", "accounts", ["project_id", "state"])
    op.create_index("ix_accounts_due_at", "accounts", ["due_at"])
    op.drop_index("ix_accounts_due_at_checked_at_id", "accounts")
    _key_planned_by("account_id", "month")
    op.create_index("ix_planned_lease_id", "planned", ["lease_id"])


def _forget_number() -> None:
    op.execute("DELETE FROM inventory_versions WHERE kind = 'price lists'")


def _store_by_key(by_key: bool, *tables: str) -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in tables:
            with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_with_rowid": not by_key}):
                pass


def _key_planned_by(*columns: str) -> None:
    """Make columns the primary key; on MariaDB, where each change commits by itself, in one of them."""
    if list(sa.inspect(op.get_bind()).get_pk_constraint("planned")["constrained_columns"]) == list(columns):
        return
    if op.get_bind().dialect.name in ("mysql", "mariadb"):
        op.execute(f"ALTER TABLE planned DROP PRIMARY KEY, ADD PRIMARY KEY ({', '.join(columns)})")
        return
    with op.batch_alter_table("planned") as batch:
        batch.drop_constraint("pk_planned", type_="primary")
        batch.create_primary_key("pk_planned", list(columns))
