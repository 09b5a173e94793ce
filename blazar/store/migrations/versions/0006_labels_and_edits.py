# SPDX-License-Identifier: Apache-2.0
"""Labels of resources, counters of their edits, and why and for how long operators have disabled them."""

import secrets

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql

UTC_TIME = sa.DateTime().with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("resources") as table:
        table.add_column(sa.Column("label", sa.String(16), nullable=True))
        table.add_column(sa.Column("edits", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("disabled_reason", LONG_TEXT, nullable=True))
        table.add_column(sa.Column("disabled_since", UTC_TIME, nullable=True))
        table.add_column(sa.Column("disabled_until", UTC_TIME, nullable=True))
        table.create_index("ix_resources_disabled_until", ["disabled_until"])
    _label_all(op.get_bind())
    with op.batch_alter_table("resources") as table:
        table.alter_column("label", existing_type=sa.String(16), nullable=False)
        table.create_unique_constraint("uq_resources_label", ["label"])


def _label_all(connection: sa.Connection) -> None:
    """Give a label to every resource, retired ones too. Labels are random, so that they tell nothing."""
    table = sa.table("resources", sa.column("id"), sa.column("kind"), sa.column("label"))
    labels: dict[str, int] = {}
    for id_, kind in connection.execute(sa.select(table.c.id, table.c.kind)).all():
        while (label := kind[0] + "-" + "".join(secrets.choice(ALPHABET) for _ in range(6))) in labels:
            pass
        labels[label] = id_
    if labels:
        connection.execute(
            table.update().where(table.c.id == sa.bindparam("of")).values(label=sa.bindparam("made")),
            [{"of": id_, "made": label} for label, id_ in labels.items()],
        )


def downgrade() -> None:
    with op.batch_alter_table("resources") as table:
        table.drop_constraint("uq_resources_label", type_="unique")
        table.drop_index("ix_resources_disabled_until")
        table.drop_column("disabled_until")
        table.drop_column("disabled_since")
        table.drop_column("disabled_reason")
        table.drop_column("edits")
        table.drop_column("label")
