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


# Every request reads them.
CATALOG_VERSION = select_version(sa.bindparam("of", type_=inventory_versions.c.kind.type))
"""The version of the catalog of the kind ``of``."""
PRICE_VERSION = select_version(PRICES)
"""The version of all price lists together: not the number of the last one, which may be another's after a restore."""
_VERSIONS = sa.select(CATALOG_VERSION, PRICE_VERSION)

Versions = tuple[int, int]
"""The version of the catalog of a kind, and that of all price lists; 0 where there is none."""


def read_versions(connection: Connection, kind: str) -> Versions:
    """Return the versions that are valid for a kind; one statement."""
    catalog, prices = connection.execute(_VERSIONS, {"of": str(kind)}).one()
    return catalog or 0, prices or 0


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
