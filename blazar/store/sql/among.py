# SPDX-License-Identifier: Apache-2.0
"""Rows in which a column has one of some values."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def select_among(
    connection: Connection, query: sa.Select[Any], column: sa.Column[Any], values: Collection[Any]
) -> sa.CursorResult[Any]:
    """Return the rows of a query in which a column has one of some values.

    The query is one of a few that are built once.
    """
    dialect = connection.dialect.name
    among = write_array(values) if _is_array_text(column, dialect) else list(values)
    return connection.execute(_narrow(query, column, dialect), {"among": among})


@cache
def _narrow(query: sa.Select[Any], column: sa.Column[Any], dialect: str) -> sa.Select[Any]:
    if dialect == "postgresql":
        # One array, so that the statement is the same for any number: it is planned once, which is most of its cost.
        array: sa.ColumnElement[Any]
        if _is_array_text(column, dialect):
            # Of no length: a cast to a shorter one would cut values off, which then may be those of others.
            array = sa.cast(sa.bindparam("among", type_=sa.Text()), sa.ARRAY(sa.Text()))
        else:
            array = sa.bindparam("among", type_=sa.ARRAY(column.type))
        return query.where(column == sa.any_(array))
    return query.where(column.in_(sa.bindparam("among", expanding=True)))


def _is_array_text(column: sa.Column[Any], dialect: str) -> bool:
    """Return whether values of a column are sent as the text of an array: the driver looks at each of hundreds."""
    return dialect == "postgresql" and isinstance(column.type, sa.String)


def write_array(texts: Collection[str]) -> str:
    """Return texts as PostgreSQL reads an array of them."""
    if not texts:
        return "{}"
    joined = "\n".join(texts)
    if '"' in joined or "\\" in joined:
        texts = [text.replace("\\", "\\\\").replace('"', '\\"') for text in texts]
    return '{"' + '","'.join(texts) + '"}'
