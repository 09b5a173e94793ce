# SPDX-License-Identifier: Apache-2.0
"""Pages of a list in SQL: by the value of the sort key and then by id, never by a number of rows to skip."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from blazar.model.paging import Page, unknown_marker

Column = sa.ColumnElement[Any]


def ordered_by(page: Page, key: Column, id_: Column) -> tuple[Column, Column]:
    """Return the order of a list."""
    return (key.desc(), id_.desc()) if page.descending else (key, id_)


def follows(page: Page, key: Column, id_: Column, place: Any, place_id: str) -> sa.ColumnElement[bool]:
    """Return the condition for the items after a place: a value of the sort key and an id.

    What both parts of the alternative have in common stands before it: databases begin at that place of an index.
    """
    if page.descending:
        return sa.and_(key <= place, sa.or_(key < place, id_ < place_id))
    return sa.and_(key >= place, sa.or_(key > place, id_ > place_id))


def after_marker(
    connection: Connection, page: Page, created_at: Column, id_: Column, where: Sequence[sa.ColumnElement[bool]]
) -> list[sa.ColumnElement[bool]]:
    """Return the condition for what follows the marker of a page of a list in the order in which it was created.

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
        place, marker = instant_of(page.after.value or ""), page.after.id
    return [follows(page, created_at, id_, place, marker)]


def instant_of(text: str) -> datetime:
    """Return the instant in a marker of ours, which is in UTC; InvalidInput if there is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise unknown_marker() from None
    if found.utcoffset() != timedelta(0):
        raise unknown_marker()
    return found
