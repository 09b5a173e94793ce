# SPDX-License-Identifier: Apache-2.0
"""Run by Alembic: migrates over the connection that the caller hands in."""

from alembic import context

from blazar.store.sql.migrations import mysql
from blazar.store.sql.tables import metadata

# Its classes register themselves for their databases.
assert mysql.RepeatableMySQL.__dialect__ == "mysql"
connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=True,
    # SQLite can undo changes of tables as PostgreSQL can, now that transactions begin where we say.
    transactional_ddl=connection.dialect.name in ("sqlite", "postgresql"),
)
with context.begin_transaction():
    context.run_migrations()
