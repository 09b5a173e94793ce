# SPDX-License-Identifier: Apache-2.0
"""Somebody who cuts the connections of the service to its database, all at once, again and again."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Engine, make_url

from blazar.store.sql.engine import make_engine
from tests.conftest import SERVERS

OTHERS = {
    "postgresql": "SELECT pid FROM pg_stat_activity WHERE datname = :name",
    "mysql": "SELECT id FROM information_schema.processlist WHERE db = :name",
}
CUT = {"postgresql": "SELECT pg_terminate_backend({})", "mysql": "KILL {}"}


class Spared:
    """The sessions of an engine on a server, which are not cut: those of who checks."""

    def __init__(self, engine: Engine) -> None:
        self.sessions: set[int] = set()
        event.listen(engine, "connect", self._note)

    def _note(self, connection: Any, _: object) -> None:
        found = connection.info.backend_pid if hasattr(connection, "info") else connection.thread_id()
        self.sessions.add(int(found))


class Cutter(threading.Thread):
    """Cuts all sessions of a database but some, each so many seconds; never if that is None."""

    def __init__(self, database_url: str, every: float | None, spared: Spared, deeds: Counter[str]) -> None:
        super().__init__(name="cutter", daemon=True)
        self.stopping = threading.Event()
        self._every = every
        self._spared = spared
        self._deeds = deeds
        self._url = make_url(database_url)

    def run(self) -> None:
        """Cut until told to stop."""
        if self._every is None:
            return
        kind = self._url.get_backend_name()
        base, maintenance = SERVERS["postgresql" if kind == "postgresql" else "mariadb"]
        # A session of another database: it would cut itself.
        engine = make_engine(f"{base}/{maintenance}", pool_size=1).execution_options(isolation_level="AUTOCOMMIT")
        try:
            while not self.stopping.wait(self._every):
                self._deeds["connections cut"] += self.cut(engine)
        finally:
            engine.dispose()

    def cut(self, engine: Engine) -> int:
        """Cut all at once; return how many were cut."""
        kind = engine.dialect.name
        number = 0
        with engine.connect() as connection:
            found = connection.execute(sa.text(OTHERS[kind]), {"name": self._url.database}).scalars().all()
            for session in set(found) - self._spared.sessions:
                # One that has ended meanwhile is an error in MariaDB.
                with suppress(sa.exc.OperationalError):
                    connection.exec_driver_sql(CUT[kind].format(session))
                    number += 1
        return number
