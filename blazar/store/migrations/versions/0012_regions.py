# SPDX-License-Identifier: Apache-2.0
"""The regions of resources and of reservations; names of resources are unique within a region."""

import sqlalchemy as sa
from alembic import op

from blazar.store.migrations.repeatable import has_column

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("resources") as table:
        table.add_column(sa.Column("region", sa.String(64), nullable=False, server_default=""))
        table.drop_constraint("uq_resources_kind_name_live", type_="unique")
        table.create_unique_constraint("uq_resources_kind_region_name_live", ["kind", "region", "name", "live"])
    op.add_column("reservations", sa.Column("region", sa.String(64), nullable=False, server_default=""))


def downgrade() -> None:
    op.drop_column("reservations", "region")
    if has_column("resources", "region"):
        _rename_namesakes(op.get_bind())
    with op.batch_alter_table("resources") as table:
        table.drop_constraint("uq_resources_kind_region_name_live", type_="unique")
        table.create_unique_constraint("uq_resources_kind_name_live", ["kind", "name", "live"])
        table.drop_column("region")


def _rename_namesakes(connection: sa.Connection) -> None:
    """Put the region before the names that are taken in another region: a name was unique before."""
    table = sa.table("resources", *map(sa.column, ("id", "kind", "name", "region", "live")))
    rows = connection.execute(sa.select(table).where(table.c.live == 1).order_by(table.c.id)).all()
    known: set[tuple[str, str]] = set()
    for row in rows:
        if (row.kind, row.name) in known:
            name = f"{row.region}:{row.name}"[:255]
            connection.execute(table.update().where(table.c.id == row.id).values(name=name))
        known.add((row.kind, row.name))
