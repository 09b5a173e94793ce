# SPDX-License-Identifier: Apache-2.0
"""One line in the log for each request: what was asked, what became of it, how long it took, and for whom."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from werkzeug.wsgi import ClosingIterator

from blazar.api.urls import logged
from blazar.context import CallerIds, scope
from blazar.model.log_text import printable

if TYPE_CHECKING:
    from blazar.api.middleware import Wsgi

LOG = logging.getLogger("blazar.access")

_KEY = "blazar.noted"


@dataclass(slots=True)
class Noted:
    """What the application knows of a request, for the log."""

    request_id: str | None = None
    global_id: str | None = None
    caller: CallerIds | None = None
    error: str | None = None


def note_of(environ: dict[str, Any]) -> Noted:
    """Return what is noted of a request, to add to it."""
    noted: Noted = environ.setdefault(_KEY, Noted())
    return noted


class AccessLog:
    """Logs each request when its answer has been sent: files of the pages, health checks and preflights at DEBUG."""

    def __init__(self, app: Wsgi, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._clock = clock

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request and log it."""
        begin, noted, status = self._clock(), note_of(environ), ["500"]
        # The request is what is logged, not what a library makes of it on its way.
        asked = dict(environ)

        def started(line: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            status[0] = line.partition(" ")[0]
            return start_response(line, headers, *more)

        def finished() -> None:
            _say(asked, noted, status[0], self._clock() - begin)

        try:
            body = self._app(environ, started)
        except BaseException:
            finished()
            raise
        return ClosingIterator(body, finished)


def _say(environ: dict[str, Any], noted: Noted, status: str, seconds: float) -> None:
    method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
    level = logging.DEBUG if _is_quiet(environ, method, path, status) else logging.INFO
    # The server tells bytes as characters of Latin 1.
    shown = logged((environ.get("SCRIPT_NAME", "") + path).encode("latin-1", "replace").decode("utf-8", "replace"))
    caller = noted.caller
    with scope(
        request_id=noted.global_id or noted.request_id,
        local_id=noted.request_id if noted.global_id else None,
        caller=caller,
    ):
        LOG.log(
            level,
            "%s %s %s %d ms, project %s, request %s, global request %s%s",
            printable(method, 20),
            shown,
            status,
            round(seconds * 1000),
            printable(caller.project_id) if caller is not None and caller.project_id else "-",
            noted.request_id or "-",
            noted.global_id or "-",
            f", error {noted.error}" if noted.error is not None else "",
        )


def _is_quiet(environ: dict[str, Any], method: str, path: str, status: str) -> bool:
    if status >= "400" and method != "OPTIONS":
        return False
    if method == "OPTIONS":
        return "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    is_file = path.startswith("/ui/") and not path.startswith("/ui/session")
    return path == "/healthcheck" or (is_file and method in ("GET", "HEAD"))
