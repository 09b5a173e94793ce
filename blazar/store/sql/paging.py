# SPDX-License-Identifier: Apache-2.0
"""Pages of a list in SQL: by the value of the sort key and then by id, never by a number of rows to skip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.visitors import InternalTraversal

from blazar.model.base.paging import Page, Position, unknown_marker
from blazar.model.base.values import dataclass

Column = sa.ColumnElement[Any]


def order_columns(page: Page, key: Column, id_: Column) -> tuple[Column, Column]:
    """Return the order of a list."""
    return (key.desc(), id_.desc()) if page.descending else (key, id_)


class _Beyond(sa.ColumnElement[bool]):
    """The condition that (key, id) is beyond a place in an order: a database begins at that place of an index.

    MariaDB reads no range for a comparison of rows; the others read none for the alternative of both parts.
    """

    inherit_cache = True
    type = sa.Boolean()
    _traverse_internals = [
        ("compared", InternalTraversal.dp_clauseelement),
        ("spelled", InternalTraversal.dp_clauseelement),
    ]

    def __init__(self, key: Column, id_: Column, place: Any, place_id: str, *, descending: bool) -> None:
        at = place if isinstance(place, sa.ClauseElement) else sa.literal(place, key.type)
        name = sa.literal(place_id, id_.type)
        here, there = sa.tuple_(key, id_), sa.tuple_(at, name)
        self.compared = here < there if descending else here > there
        further, later = (key < at, id_ < name) if descending else (key > at, id_ > name)
        # What both parts have in common stands before them: so a range is found, and not only the part of the index.
        self.spelled = sa.and_(key <= at if descending else key >= at, sa.or_(further, sa.and_(key == at, later)))

    def self_group(self, against: Any = None) -> Any:
        """Return the condition itself: where there are no booleans it needs no comparison with one."""
        return self


@compiles(_Beyond)
def _compare_rows(element: _Beyond, compiler: Any, **more: Any) -> str:
    return str(compiler.process(element.compared, **more))


@compiles(_Beyond, "mysql", "mariadb")
def _spell_rows(element: _Beyond, compiler: Any, **more: Any) -> str:
    return f"({compiler.process(element.spelled, **more)})"


def follow_place(page: Page, key: Column, id_: Column, place: Any, place_id: str) -> sa.ColumnElement[bool]:
    """Return the condition for the items after a place: a value of the sort key and an id; one range of an index."""
    return _Beyond(key, id_, place, place_id, descending=page.descending)


@dataclass(frozen=True, slots=True)
class PageRows:
    """The rows of a page, the place of the last one if others follow, and how many there are in all if asked for."""

    rows: Sequence[sa.Row[*tuple[Any, ...]]]
    last: Position | None
    count: int | None


def read_page(
    connection: Connection,
    page: Page,
    query: sa.Select[Any],
    order: tuple[sa.Column[Any], sa.Column[Any]],
    where: Sequence[sa.ColumnElement[bool]],
) -> PageRows:
    """Return a page of a list in the order of an instant and an id, two columns of one table; three statements at most.

    InvalidInput if its marker names no item of the list.
    """
    instant, id_ = order
    after = _follow_marker(connection, page, instant, id_, where)
    ordered = query.where(*where, *after).order_by(*order_columns(page, instant, id_)).limit(page.limit + 1)
    rows = connection.execute(ordered).all()
    count = None
    if page.with_count:
        count = connection.execute(sa.select(sa.func.count()).select_from(id_.table).where(*where)).scalar_one()
    shown, last = rows[: page.limit], None
    if len(rows) > page.limit:
        ends = shown[-1]._mapping
        last = Position(ends[instant].isoformat(), ends[id_])
    return PageRows(shown, last, count)


def _follow_marker(
    connection: Connection, page: Page, created_at: Column, id_: Column, where: Sequence[sa.ColumnElement[bool]]
) -> list[sa.ColumnElement[bool]]:
    """Return the condition for what follows the marker of a page.

    A marker that is an id must be one of the list, of which ``where`` are the conditions; InvalidInput if it is none.
    """
    if page.after is None:
        return []
    if isinstance(page.after, str):
        query = sa.select(created_at).where(id_ == page.after, *where)
        place, marker = connection.execute(query).scalar_one_or_none(), page.after
        if place is None:
            raise unknown_marker()
    else:
        place, marker = parse_instant(page.after.value or ""), page.after.id
    return [follow_place(page, created_at, id_, place, marker)]


def parse_instant(text: str) -> datetime:
    """Return the instant in a marker of ours, which is in UTC; InvalidInput if there is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise unknown_marker() from None
    if found.utcoffset() != timedelta(0):
        raise unknown_marker()
    return found
