# SPDX-License-Identifier: Apache-2.0
"""One line in the log for each request: what was asked, the answer, how long it took, and for whom; and metrics of it.

Also what a log may have of a path.
"""

from __future__ import annotations

import logging
import re
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from werkzeug.wsgi import ClosingIterator

from blazar.context import CallerIds, scope
from blazar.model.base.log_lines import printable
from blazar.model.base.values import dataclass
from blazar.observe import metrics

LOG = logging.getLogger("blazar.access")

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_KEY = "blazar.noted"

FEEDS = "/feeds/"
"""What follows it in a path is the secret of a feed."""

LONGEST = 200
"""Characters of a path in a log."""

UNSUBSCRIBE = "/unsubscribe/"
"""What follows it in a path is the id of a subscription, and the secret of the link in its mails."""

# A path that is not quite that of a feed may have its secret all the same.
_FEED = re.compile(r"(?:.*?/)?(?:feeds|unsubscribe)(?:/|%2f)", re.IGNORECASE | re.DOTALL)
_FEED_BY_ID = re.compile(r"/v1/feeds/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


_GLOBAL_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
REQUEST_ID, GLOBAL_ID = "openstack.request_id", "openstack.global_request_id"
"""Where in the environment of a request its ids are, as libraries of OpenStack look for them."""


def take_ids(environ: dict[str, Any]) -> tuple[str, str | None]:
    """Return the id of a request and the one that its caller gave it, None without; they are made where asked first."""
    if (own := environ.get(REQUEST_ID)) is None:
        given = environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "")
        own = environ[REQUEST_ID] = f"req-{uuid.uuid4()}"
        environ[GLOBAL_ID] = given if _GLOBAL_ID.fullmatch(given) else None
    return own, environ[GLOBAL_ID]


def has_secret(path: str) -> bool:
    """Return whether a path may have the secret of a feed in it."""
    return _FEED.match(path) is not None and _FEED_BY_ID.fullmatch(path) is None


@dataclass(slots=True)
class Noted:
    """What the application knows of a request, for the log and for metrics.

    ``route`` is the URL of the row that serves it, ``error`` the code of the error that it is answered with.
    """

    request_id: str | None = None
    global_id: str | None = None
    caller: CallerIds | None = None
    error: str | None = None
    route: str | None = None


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
        take_ids(environ)
        # The request is what is logged, not what a library makes of it on its way.
        asked = dict(environ)
        metrics.HTTP_REQUESTS_IN_PROGRESS.raise_by(1)

        def started(line: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            status[0] = line.partition(" ")[0]
            return start_response(line, headers, *more)

        def finished() -> None:
            took = self._clock() - begin
            metrics.HTTP_REQUESTS_IN_PROGRESS.raise_by(-1)
            _count(asked, noted, status[0], took)
            _say(asked, noted, status[0], took)

        try:
            body = self._app(environ, started)
        except BaseException:
            finished()
            raise
        return ClosingIterator(body, finished)


def _count(environ: dict[str, Any], noted: Noted, status: str, seconds: float) -> None:
    route = noted.route or _route_beside(environ.get("PATH_INFO", ""))
    metrics.HTTP_REQUESTS.add(environ.get("REQUEST_METHOD", ""), route, status)
    metrics.HTTP_REQUEST_DURATION.note(seconds, route)
    if noted.error is not None:
        metrics.REFUSALS.add(noted.error)


def _route_beside(path: str) -> str:
    """Return what serves a path that is none of the application's."""
    if path == "/healthcheck":
        return path
    return "/ui" if path == "/ui" or path.startswith("/ui/") else "unmatched"


def _say(environ: dict[str, Any], noted: Noted, status: str, seconds: float) -> None:
    method, path = environ.get("REQUEST_METHOD", ""), environ.get("PATH_INFO", "")
    level = logging.DEBUG if _is_quiet(environ, method, path, status) else logging.INFO
    # The server tells bytes as characters of Latin 1.
    shown = quote_for_log(
        (environ.get("SCRIPT_NAME", "") + path).encode("latin-1", "replace").decode("utf-8", "replace")
    )
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
            f", error {noted.error}" if noted.error is not None and status >= "500" else "",
        )


def _is_quiet(environ: dict[str, Any], method: str, path: str, status: str) -> bool:
    if status >= "400" and method != "OPTIONS":
        return False
    if method == "OPTIONS":
        return "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in environ
    is_file = path.startswith("/ui/") and not path.startswith("/ui/session")
    return path == "/healthcheck" or (is_file and method in ("GET", "HEAD"))


def quote_for_log(path: str) -> str:
    """Return a path as a log may have it: quoted, so that it cannot forge a line, and without the secret of a link."""
    if (found := _FEED.match(path)) is not None and not _FEED_BY_ID.fullmatch(path):
        path = path[: found.end()] + "***"
    quoted = urllib.parse.quote(path, safe="/*")
    return quoted if len(quoted) <= LONGEST else f"{quoted[: LONGEST - 1]}…"
