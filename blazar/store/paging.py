# SPDX-License-Identifier: Apache-2.0
"""Pages of a list in SQL: by the value of the sort key and then by id, never by a number of rows to skip."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

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


def instant_of(text: str) -> datetime:
    """Return the instant in a marker of ours, which is in UTC; InvalidInput if there is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise unknown_marker() from None
    if found.utcoffset() != timedelta(0):
        raise unknown_marker()
    return found
