# SPDX-License-Identifier: Apache-2.0
"""Tables of power: the state of each host that sleeps or may sleep, what has changed, and what hosts drew."""

from __future__ import annotations

import sqlalchemy as sa

from blazar.store.sql.tables.columns import UTC_TIME, metadata

# A host without a row is on, and may sleep.
host_power = sa.Table(
    "host_power",
    metadata,
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), primary_key=True, autoincrement=False),
    # ``keep``: it is never switched off.
    sa.Column("policy", sa.String(16), nullable=False, server_default="auto"),
    # Its power state, why it came into it, and when.
    sa.Column("state", sa.String(16), nullable=False, server_default="on"),
    sa.Column("reason", sa.String(16), nullable=False, server_default="done"),
    sa.Column("since", UTC_TIME, nullable=False),
    # True of states that a dry run alone has given it: then it is on.
    sa.Column("rehearsed", sa.Boolean, nullable=False, server_default=sa.false()),
    # Where its power is switched, by an operator's word; NULL: nowhere.
    sa.Column("adapter", sa.String(16)),
    sa.Column("target", sa.String(1024)),
    # Until when it stays on, because a server was found on it, or somebody else switched it on.
    sa.Column("kept_until", UTC_TIME),
    # What was done so far to reach the next state, and when it was last switched for that.
    sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
    sa.Column("tried_at", UTC_TIME),
    # When it is looked at next, and who does so: see ``work.claims``.
    sa.Column("due_at", UTC_TIME),
    sa.Column("claimed_by", sa.String(255)),
    sa.Index(None, "due_at"),
)

# Rows are only added, and dropped after 400 days, those of dry runs after two months. Of each move the state before,
# for how many seconds it had lasted, the state after, and why.
power_log = sa.Table(
    "power_log",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("resource_id", sa.Integer, sa.ForeignKey("resources.id"), nullable=False),
    sa.Column("at", UTC_TIME, nullable=False),
    sa.Column("before", sa.String(16), nullable=False),
    sa.Column("seconds", sa.Integer, nullable=False),
    sa.Column("after", sa.String(16), nullable=False),
    sa.Column("reason", sa.String(16), nullable=False),
    # As in ``host_power``.
    sa.Column("rehearsed", sa.Boolean, nullable=False),
    # What has changed lately; and what of one host.
    sa.Index(None, "at"),
    sa.Index(None, "resource_id", "at"),
)

# What hosts drew and what that emitted, by hours of UTC, each given by its first second since the epoch. Rows are
# dropped after 400 days.

# The mean of an hour, in milliwatts, of so many readings. Without a foreign key: it is read as long as leases are.
host_hours = sa.Table(
    "host_hours",
    metadata,
    sa.Column("resource_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("milliwatts", sa.BigInteger, nullable=False),
    sa.Column("readings", sa.Integer, nullable=False),
    # What is dropped.
    sa.Index(None, "hour"),
)

# Micrograms of CO2e a kilowatt-hour.
carbon_hours = sa.Table(
    "carbon_hours",
    metadata,
    sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("micrograms", sa.BigInteger, nullable=False),
)
