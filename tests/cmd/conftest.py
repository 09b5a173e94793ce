# SPDX-License-Identifier: Apache-2.0
"""Programs with configurations of all kinds, and a cloud that answers as a test wants it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

import pytest
import sqlalchemy as sa
from oslo_config import cfg

from blazar.cmd import config
from tests.cmd.stub import PASSWORD, StubCloud
from tests.tables import new_sqlite

Load = Callable[..., cfg.ConfigOpts]
Start = Callable[..., "Program"]


@pytest.fixture
def file(tmp_path: Path) -> Callable[..., str]:
    """Write a blazar.conf and return its path."""

    def write(*lines: str) -> str:
        path = tmp_path / "blazar.conf"
        path.write_text("\n".join([*lines, ""]), encoding="utf-8")
        return str(path)

    return write


@pytest.fixture
def load(file) -> Load:
    """Load a configuration of these lines."""
    return lambda *lines: config.load(["--config-file", file(*lines)], program="blazar-test")


@pytest.fixture
def stub() -> Iterator[StubCloud]:
    """A cloud that has a freepool."""
    cloud = StubCloud()
    cloud.add_aggregate("freepool")
    yield cloud
    cloud.close()


@pytest.fixture(scope="session")
def tables(tmp_path_factory) -> str:
    """The URL of a database at the newest revision, that nobody writes to."""
    engine = new_sqlite(tmp_path_factory.mktemp("tables") / "blazar.sqlite")
    return str(engine.url)


@pytest.fixture
def own_tables(tmp_path) -> str:
    """The URL of a database of this test."""
    engine = new_sqlite(tmp_path / "own.sqlite")
    engine.dispose()
    return str(engine.url)


@pytest.fixture
def their_database(tmp_path) -> str:
    """The URL of a database of the existing Blazar, as far as it takes to know it."""
    url = f"sqlite:///{tmp_path / 'theirs.sqlite'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE computehosts (id VARCHAR(36) PRIMARY KEY)")
    engine.dispose()
    return url


@pytest.fixture
def working(stub, tables) -> Callable[..., list[str]]:
    """Return a configuration that works, with other values where the test gives them."""

    def lines(**changes: object) -> list[str]:
        values = {
            "port": stub.port,
            "password": PASSWORD,
            "bus": "fake://",
            "database": tables,
            "wait": 0,
            **changes,
        }
        return [
            "[DEFAULT]",
            f"os_auth_port = {values['port']}",
            f"os_admin_password = {values['password']}",
            f"transport_url = {values['bus']}",
            "[database]",
            f"connection = {values['database']}",
            "[manager]",
            f"startup_wait = {values['wait']}",
        ]

    return lines


class Program:
    """A process, and what it says: its log on one stream and its last words on the other are both of interest."""

    def __init__(self, *command: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **environment},
        )
        self.said = ""
        self._lines: SimpleQueue[str | None] = SimpleQueue()
        # A program whose words nobody reads stands still once the pipe is full.
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            self._lines.put(line)
        self._lines.put(None)

    def says(self, words: str) -> str:
        """Wait for a line with these words and return it."""
        while (line := self._lines.get()) is not None:
            if words in line:
                return line
        raise AssertionError(f"it ended without {words!r}: {self.said}")

    def ended(self) -> int:
        """Wait for the end; return the exit code."""
        code = self.process.wait(30)
        self._reader.join(30)
        return code

    def stop(self) -> int:
        """Ask it to end as an operator does; return the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    @property
    def last_words(self) -> str:
        return self.said.strip().splitlines()[-1]


@pytest.fixture
def start(file) -> Iterator[Start]:
    """Start ``manager`` or ``api`` with a configuration of these lines."""
    programs: list[Program] = []

    def begin(name: str, *lines: str, arguments: tuple[str, ...] | None = None) -> Program:
        given = ("--config-file", file(*lines)) if arguments is None else arguments
        programs.append(Program("-m", f"blazar.cmd.{name}", *given))
        return programs[-1]

    yield begin
    for program in programs:
        if program.process.poll() is None:
            program.process.kill()
            program.ended()
