# SPDX-License-Identifier: Apache-2.0
"""Connections that the database, or something on the way to it, has cut: they are found, replaced, and logged."""

from __future__ import annotations

import logging
import time
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine, ExceptionContext
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import PoolResetState

from blazar.model.base.log_lines import Trouble
from blazar.store.sql.silent_server import answering_within

LOG = logging.getLogger(__name__)

IDLE_SECONDS = 5

PING_SECONDS = 10
"""How long a check waits for its answer, as long as a new connection is waited for: a silent server costs each
connection one, and a turn of a thread must not be taken for stuck because of several."""


def replace_lost_connections(engine: Engine) -> None:
    """Check a connection before it is used, if there is doubt whether it is still open; most need no check.

    There is doubt after an idle time, and after another connection was lost since its last use. Then the server may
    have restarted, or not: so a connection is never discarded only because another one was lost. The engine is to be
    made with ``reset_on_return=None``: connections that are returned are rolled back here.
    """
    _Connections(engine).listen()


class _Connections:
    """The connections of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lost_at = float("-inf")
        self._cut = Trouble(LOG, "Connections to the database stay open")

    def listen(self) -> None:
        """Watch them from their first use on."""
        event.listen(self._engine, "checkin", self._note_idle)
        event.listen(self._engine, "checkout", self._check)
        event.listen(self._engine, "handle_error", self._note_lost)
        event.listen(self._engine, "reset", self._roll_back)

    def _note_idle(self, connection: object, record: Any) -> None:
        record.info["idle_since"] = time.monotonic()

    def _check(self, connection: Any, record: Any, proxy: object) -> None:
        since = record.info.get("idle_since")
        if since is None or (since > self._lost_at and time.monotonic() - since < IDLE_SECONDS):
            return
        try:
            with answering_within(connection, PING_SECONDS):
                alive = self._engine.dialect.do_ping(connection)
        except self._engine.dialect.loaded_dbapi.Error:
            alive = False
        if not alive:
            raise DisconnectionError("the connection was closed while it was idle")

    def _note_lost(self, context: ExceptionContext) -> None:
        if context.is_disconnect:
            context.invalidate_pool_on_disconnect = False
            self._lost_at = time.monotonic()

    def _roll_back(self, connection: Any, record: Any, state: PoolResetState) -> None:
        """End the transaction of a connection that is returned, as the pool does; one that was cut is replaced.

        The pool would log each with a traceback, although nobody's work has failed: it was committed. Any other error
        is the pool's to log.
        """
        if state.transaction_was_reset or not state.asyncio_safe:
            return
        dialect = self._engine.dialect
        try:
            dialect.do_rollback(connection)
        except dialect.loaded_dbapi.Error as error:
            if record is None or not self._is_lost(error, connection):
                raise
            self._lost_at = time.monotonic()
            reason = str(error).partition("\n")[0]
            self._cut.log_failure(
                f"A connection to the database was cut, and is replaced: {type(error).__name__}: {reason}",
                level=logging.WARNING,
            )
            record.invalidate(error)
        else:
            self._cut.log_recovery()

    def _is_lost(self, error: Any, connection: Any) -> bool:
        """Return whether a rollback failed since the connection can serve no more.

        Some that were cut among several statements at once are not yet known to be: psycopg then says that they cannot
        leave pipeline mode. A rollback has no other cause for an operational error.
        """
        dialect = self._engine.dialect
        dbapi = dialect.loaded_dbapi
        return isinstance(error, (dbapi.OperationalError, dbapi.InterfaceError)) or dialect.is_disconnect(
            error, connection, None
        )
