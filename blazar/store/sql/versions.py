# SPDX-License-Identifier: Apache-2.0
"""Versions of what processes keep of a database: the catalog of each kind of resources, rules, price lists."""

from __future__ import annotations

import time

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.store.sql.tables import inventory_versions

PRICES = "price lists"
"""What has a version beside the kinds of resources; it can be the name of none."""

_SECONDS_OF_2026 = 1_767_225_600


def select_version(kind: str | sa.ColumnElement[str]) -> sa.ScalarSelect[int]:
    """Return the query for a version; it finds none of what was never there."""
    return sa.select(inventory_versions.c.version).where(inventory_versions.c.kind == kind).scalar_subquery()


def raise_version(connection: Connection, kind: str) -> None:
    """Invalidate what every process keeps of this kind.

    Versions are at least the seconds of a clock: those of a restored database do not come again for something else.
    """
    seconds, following = read_seconds(), inventory_versions.c.version + 1
    raised = connection.execute(
        inventory_versions.update()
        .where(inventory_versions.c.kind == str(kind))
        .values(version=sa.case((following > seconds, following), else_=seconds))
    )
    if not raised.rowcount:
        connection.execute(inventory_versions.insert().values(kind=str(kind), version=seconds))


def read_seconds() -> int:
    """Return the seconds since 2026, as a number that fits until 2094."""
    return int(time.time()) - _SECONDS_OF_2026
