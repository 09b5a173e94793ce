# SPDX-License-Identifier: Apache-2.0
"""What hosts drew and the carbon of their power, by the hour, and both beside charges and in closed days.

Revision ID: 1015
"""

import sqlalchemy as sa
from alembic import op

from blazar.store.sql.migrations.mysql import table_options

revision = "1015"
down_revision = "1014"
branch_labels = None
depends_on = None

CHARGED = (
    ("wh", sa.BigInteger()),
    ("gco2", sa.BigInteger()),
    ("energy_source", sa.String(16)),
    ("carbon_state", sa.String(16)),
)


def upgrade() -> None:
    """Add the tables and columns. Of what was before, nothing is measured."""
    op.create_table(
        "host_hours",
        sa.Column("resource_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("milliwatts", sa.BigInteger(), nullable=False),
        sa.Column("readings", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", "hour", name="pk_host_hours"),
        **table_options(),
    )
    op.create_index("ix_host_hours_hour", "host_hours", ["hour"])
    op.create_table(
        "carbon_hours",
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("micrograms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", name="pk_carbon_hours"),
        **table_options(),
    )
    for name, type_ in CHARGED:
        op.add_column("charges", sa.Column(name, type_, nullable=True))
    for name in ("milliwatt_seconds", "carbon_mg"):
        op.add_column("usage_days", sa.Column(name, sa.BigInteger(), nullable=True))


def downgrade() -> None:
    """Drop all of it. What was measured is forgotten."""
    for name in ("carbon_mg", "milliwatt_seconds"):
        op.drop_column("usage_days", name)
    for name, _ in reversed(CHARGED):
        op.drop_column("charges", name)
    for table in ("carbon_hours", "host_hours"):
        op.drop_table(table)
