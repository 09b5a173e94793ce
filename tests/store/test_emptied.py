# SPDX-License-Identifier: Apache-2.0
"""A database on a server, which tests share, is left as if nobody had used it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from blazar.store.sql.engine import WRITES
from blazar.store.sql.tables import metadata
from tests.tables import empty

CHANGES = metadata.tables["calendar_changes"]
CHANGE = {"kind": "host", "resource_id": 1, "token": "t", "at": datetime(2026, 1, 1, tzinfo=UTC)}


@pytest.mark.parametrize("kept_engine", ["postgresql", "mariadb"], indirect=True)
@pytest.mark.parametrize("deleted", [False, True], ids=["of-rows-that-stay", "of-rows-that-are-deleted"])
def test_rows_are_numbered_from_one_again(engine: Engine, deleted: bool):
    seen = []
    for _ in range(2):
        with engine.execution_options(**{WRITES: True}).begin() as connection:
            connection.execute(CHANGES.insert(), [CHANGE, CHANGE, CHANGE])
            seen += connection.scalars(sa.select(CHANGES.c.seq).order_by(CHANGES.c.seq)).all()
            if deleted:
                connection.execute(CHANGES.delete())
        empty(engine)
    assert seen == [1, 2, 3, 1, 2, 3]
