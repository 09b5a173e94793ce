# SPDX-License-Identifier: Apache-2.0
"""One database with tables on each server for all tests of the store, emptied between them: making tables is slow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import Engine

from blazar.store.sql.engine import make_engine
from tests.conftest import KeptDatabases
from tests.tables import empty, new_sqlite


@pytest.fixture(scope="session", params=["sqlite", "postgresql", "mariadb"])
def kept_engine(
    request: pytest.FixtureRequest, kept: KeptDatabases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    if request.param == "sqlite":
        engine = new_sqlite(tmp_path_factory.mktemp("store") / "blazar.sqlite")
    else:
        engine = make_engine(kept.url(request.param))
    yield engine
    engine.dispose()


@pytest.fixture
def engine(kept_engine: Engine) -> Iterator[Engine]:
    """An engine on each of the three databases, with empty tables."""
    yield kept_engine
    empty(kept_engine)
