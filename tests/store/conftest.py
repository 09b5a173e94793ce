"""One database with tables on each server for all tests of the store, emptied between them: making tables is slow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy.engine import Engine

from blazar.store.engine import WRITES
from blazar.store.tables import metadata
from tests.conftest import fresh_database, opened


@pytest.fixture(scope="session", params=["sqlite", "postgresql", "mariadb"])
def kept_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    for url in fresh_database(request.param, tmp_path_factory.mktemp("store")):
        yield from opened(url)


@pytest.fixture
def engine(kept_engine: Engine) -> Iterator[Engine]:
    """An engine on each of the three databases, with empty tables."""
    yield kept_engine
    with kept_engine.execution_options(**{WRITES: True}).begin() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())
