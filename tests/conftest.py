# SPDX-License-Identifier: Apache-2.0
"""Fixtures that every kind of test may use: fresh databases on three servers, and a world on each."""

from __future__ import annotations

import gc
import inspect
import os
import threading
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from oslo_policy import _checks
from sqlalchemy.engine import Engine

from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from tests.cases import cases
from tests.tables import empty, new_sqlite
from tests.world import World

if TYPE_CHECKING:
    from playwright.sync_api import Browser

POSTGRESQL = os.environ.get("BLAZAR_TEST_POSTGRESQL", "postgresql+psycopg://postgres@127.0.0.1:5432")
MARIADB = os.environ.get("BLAZAR_TEST_MARIADB", "mysql+pymysql://root@127.0.0.1:3306")
RABBITMQ = os.environ.get("BLAZAR_TEST_RABBITMQ", "rabbit://guest:guest@127.0.0.1:5672/")
SERVERS = {"postgresql": (POSTGRESQL, "postgres"), "mariadb": (MARIADB, "mysql")}

ALIKE = "CI" in os.environ and "FULL" not in os.environ
"""Each change is tried with the same random cases, and not refused for a fault of another; each night has new ones."""
settings.register_profile(
    "blazar",
    max_examples=cases(100),
    deadline=None,
    derandomize=ALIKE,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)
settings.load_profile("blazar")


@cache
def _arguments(method: Any) -> inspect.FullArgSpec:
    return inspect.getfullargspec(method)


# oslo.policy asks it of each part of a rule again and again: a twentieth of the time of a test with HTTP.
_checks.inspect = SimpleNamespace(getfullargspec=lambda call: _arguments(getattr(call, "__func__", call)))


def pytest_configure() -> None:
    """Collect no garbage while tests are collected: all of them stay, and looking at them takes nine seconds."""
    gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what is more of the same, and as a property what is tried with random cases.

    More of the same is each test on a second and third database, and the cases of a test beyond the sample that it
    names: ``sample(5)`` leaves ``make test`` five of them, spread evenly. Of the slow cases of a test that costs
    minutes each change tries a share, and each night all: ``share(3)`` is a third, always the same one. Of PostgreSQL
    and MariaDB each change tries one above the store.
    """
    samples: dict[tuple[str, Any], list[pytest.Function]] = {}
    for item in items:
        if not isinstance(item, pytest.Function):
            continue
        # Two processes that share the tests have to see the same names, and each lists a set in an order of its own.
        if "frozenset({" in item.nodeid or " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: the name of this test is another in each process; give it an id")
        if getattr(item.obj, "is_hypothesis_test", False):
            item.add_marker("property")
        if SERVERS.keys() & set(_parameters(item).values()):
            item.add_marker("slow")
        elif item.get_closest_marker("sample"):
            samples.setdefault((item.nodeid.partition("[")[0], item.obj), []).append(item)
    for cases_of in samples.values():
        (number,) = cases_of[0].get_closest_marker("sample").args  # type: ignore[union-attr]
        kept = {len(cases_of) * index // number for index in range(number)}
        for index, item in enumerate(cases_of):
            if index not in kept:
                item.add_marker("slow")
    for item in items:
        if _is_left_to_the_night(item):
            item.add_marker("nightly")
        share = item.get_closest_marker("share")
        # By the name, as what repeats in the list of cases, like the kinds of database, must not decide.
        if share and item.get_closest_marker("slow") and zlib.crc32(item.nodeid.encode()) % share.args[0]:
            item.add_marker("nightly")


def _is_left_to_the_night(item: pytest.Item) -> bool:
    """Return whether a test above the store is tried, with each change, on the other one of both servers only.

    Which one its name decides, so that each change sees half of them on either. What counts statements sees both.
    """
    if not item.nodeid.startswith(("tests/api/", "tests/manager/")) or "statement" in item.nodeid:
        return False
    assert isinstance(item, pytest.Function)
    tried = SERVERS.keys() & set(_parameters(item).values())
    other = sorted(SERVERS)[zlib.crc32(item.nodeid.partition("[")[0].encode()) % len(SERVERS)]
    return tried == {other}


def _parameters(item: pytest.Function) -> dict[str, Any]:
    """Return what a test is tried with, as far as it can be a name of a database."""
    spec = getattr(item, "callspec", None)
    return {name: value for name, value in spec.params.items() if isinstance(value, str)} if spec else {}


def pytest_collection_finish() -> None:
    """Let the collector of garbage pass over what stays until the end: sixteen thousand tests, and all modules."""
    gc.collect()
    gc.freeze()
    # A whole collection waits until there is a quarter more than after the last one, which saw all that is frozen now:
    # properties that try thousands of cases would leave gigabytes before the first.
    gc.collect()
    gc.enable()
    gc.set_threshold(20_000, 20, 5)


@pytest.fixture(scope="session", autouse=True)
def settled() -> Iterator[None]:
    """Have programs that run in this process leave its memory alone.

    Each would go on to collect garbage every ten seconds until the end of all tests.
    """
    with mock.patch("blazar.cmd.process.settle"):
        yield
    assert "memory" not in {thread.name for thread in threading.enumerate()}


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Close the connections of a test to the real cloud: sessions are cyclic, and Keystone takes no more than 500."""
    if item.get_closest_marker("cloud"):
        gc.collect()


def missing(what: str, error: object) -> None:
    """A server that is not there: no test on a contributor's laptop, a failure in CI."""
    text = f"{what} cannot be reached: {str(error).strip().splitlines()[0]}"
    if os.environ.get("CI"):
        pytest.fail(text)
    pytest.skip(text)


def fresh_database(kind: str, folder: Path) -> Iterator[str]:
    """Yield the URL of an empty database and drop it afterwards."""
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'blazar.sqlite'}"
        return
    base, maintenance = SERVERS[kind]
    name = f"blazar_test_{uuid.uuid4().hex[:12]}"
    admin = sa.create_engine(f"{base}/{maintenance}", isolation_level="AUTOCOMMIT", connect_args={"connect_timeout": 5})
    try:
        with admin.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
    except sa.exc.OperationalError as error:
        missing(kind, error.orig)
    try:
        yield f"{base}/{name}"
    finally:
        with admin.connect() as connection:
            force = " WITH (FORCE)" if kind == "postgresql" else ""
            connection.exec_driver_sql(f"DROP DATABASE {name}{force}")
        admin.dispose()


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database on each of the three servers."""
    yield from fresh_database(request.param, tmp_path)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """An empty SQLite database."""
    return f"sqlite:///{tmp_path / 'blazar.sqlite'}"


@pytest.fixture
def postgresql_url(tmp_path: Path) -> Iterator[str]:
    """An empty PostgreSQL database."""
    yield from fresh_database("postgresql", tmp_path)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser of all tests that open pages."""
    # Only now: most runs have no such test.
    from tests.web.conftest import launched

    yield from launched()


class KeptDatabases:
    """A database with tables on each server, for all tests that one process runs: making one takes long."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._drops = ExitStack()

    def url(self, kind: str) -> str:
        """Return where the one of this kind is; each user leaves it empty."""
        if kind not in self._urls:
            url = self._drops.enter_context(contextmanager(fresh_database)(kind, Path()))
            engine = make_engine(url)
            if kind == "postgresql":
                # What is committed needs not outlive the server.
                with engine.connect() as connection:
                    connection.exec_driver_sql(f"ALTER DATABASE {engine.url.database} SET synchronous_commit = off")
                    connection.commit()
                engine.dispose()
            upgrade(engine)
            engine.dispose()
            self._urls[kind] = url
        return self._urls[kind]

    def drop(self) -> None:
        self._drops.close()


@pytest.fixture(scope="session")
def kept() -> Iterator[KeptDatabases]:
    """Databases with tables on the servers, for one test after the other."""
    databases = KeptDatabases()
    yield databases
    databases.drop()


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def engine(request: pytest.FixtureRequest, tmp_path: Path, kept: KeptDatabases) -> Iterator[Engine]:
    """An engine on each of the three databases, with tables."""
    on_a_server = request.param != "sqlite"
    engine = make_engine(kept.url(request.param)) if on_a_server else new_sqlite(tmp_path / "blazar.sqlite")
    yield engine
    # Whatever a failed test left open in the pool locks nothing any more.
    engine.dispose()
    if on_a_server:
        empty(engine)
        engine.dispose()


@pytest.fixture
def sqlite(sqlite_url: str, tmp_path: Path) -> Iterator[Engine]:
    """An engine on SQLite, with tables, at the URL of ``sqlite_url``."""
    engine = new_sqlite(tmp_path / "blazar.sqlite")
    yield engine
    engine.dispose()


@pytest.fixture
def world(sqlite: Engine) -> World:
    """Three registered hosts on SQLite."""
    return World(sqlite)


@pytest.fixture
def a_world(sqlite: Engine) -> Callable[..., World]:
    """Make a world on SQLite as the test wants it."""
    return lambda **requests: World(sqlite, **requests)
