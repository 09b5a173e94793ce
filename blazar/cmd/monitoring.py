# SPDX-License-Identifier: Apache-2.0
"""The port for those who watch a process: metrics, and pages that other modules add.

It is apart from the port of the API, so that no proxy publishes it by mistake.
"""

from __future__ import annotations

import hmac
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from oslo_config import cfg

from blazar import __version__
from blazar.cmd import web
from blazar.cmd.config import ConfigurationError
from blazar.cmd.monitoring_options import SECTION, ListenAddress, read_address
from blazar.messaging import VERSION
from blazar.model.base.values import dataclass
from blazar.observe import exposition, metrics
from blazar.observe.exposition import Value

LOG = logging.getLogger(__name__)

THREADS = 2
CONNECTIONS = 20
RETRY_SECONDS = 1.0
"""Seconds between two tries to have a port that another process of the same API has."""


STANDALONE = "127.0.0.1:9320"
"""Where standalone mode serves metrics."""


@dataclass(frozen=True, slots=True)
class PortAnswer:
    """What a page of the port says."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    content_type: str = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class PortPage:
    """A page: its handler gets the parameters of the query. Its answer comes from memory, as a port has two threads."""

    handler: Callable[[Mapping[str, str]], PortAnswer]
    needs_token: bool = True


def list_pages(*reads: Callable[[], Iterable[Value]]) -> dict[str, PortPage]:
    """Return the pages of a process: all metrics, with what ``reads`` return when they are asked for."""
    read_now = [exposition.Readings(read) for read in reads]
    rendered = PortPage(lambda _: PortAnswer(exposition.render(read_now), content_type=exposition.CONTENT_TYPE))
    return {"/metrics": rendered}


class MonitoringApp:
    """The WSGI application: GET and HEAD of a few pages, with a token if there is one."""

    def __init__(self, pages: Mapping[str, PortPage], token: str = "") -> None:
        self._pages = dict(pages)
        self._expected = f"Bearer {token}".encode() if token else None

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Serve a request."""
        answer, headers = self._answer(environ)
        body = answer.body if answer.body.endswith(b"\n") else answer.body + b"\n"
        headers |= {"Content-Type": answer.content_type, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
        start_response(f"{answer.status.value} {answer.status.phrase}", list(headers.items()))
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]

    def _answer(self, environ: Mapping[str, Any]) -> tuple[PortAnswer, dict[str, str]]:
        page = self._pages.get(environ.get("PATH_INFO", ""))
        if page is None:
            return PortAnswer(f"There is {', '.join(self._pages)}.".encode(), HTTPStatus.NOT_FOUND), {}
        if environ.get("REQUEST_METHOD") not in ("GET", "HEAD"):
            return PortAnswer(b"This can only be read.", HTTPStatus.METHOD_NOT_ALLOWED), {"Allow": "GET, HEAD"}
        if page.needs_token and not self._is_admitted(str(environ.get("HTTP_AUTHORIZATION", ""))):
            refusal = PortAnswer(b"Send the token of [monitoring] token.", HTTPStatus.UNAUTHORIZED)
            return refusal, {"WWW-Authenticate": "Bearer"}
        try:
            return page.handler(dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))), {}
        except Exception:
            # The edge of a thread: who watches hears that something is wrong, and the log says what.
            LOG.exception("Page %s of the monitoring port cannot be made", environ.get("PATH_INFO"))
            return PortAnswer(b"It cannot be made; the log says why.", HTTPStatus.INTERNAL_SERVER_ERROR), {}

    def _is_admitted(self, given: str) -> bool:
        expected = self._expected
        return expected is None or hmac.compare_digest(given.encode("latin-1", "replace"), expected)


class MonitoringPort:
    """Serves an application at places, each in a thread of its own.

    ``is_shared``: other processes of the same API may have a place; it is taken over as soon as it is free.
    """

    def __init__(self, app: MonitoringApp, places: Iterable[ListenAddress], *, is_shared: bool = False) -> None:
        self._app = app
        self._places = tuple(places)
        self._is_shared = is_shared
        self._stopping = threading.Event()
        self._servings: list[web.Serving] = []
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Listen; OSError if a place cannot be had, unless another process may have it."""
        for place in self._places:
            server = None if self._is_shared else self._listen(place)
            work = threading.Thread(target=self._serve, args=(place, server), name=f"monitoring-{place}", daemon=True)
            self._threads.append(work)
            work.start()

    def stop(self) -> None:
        """Finish the answers in progress, and return."""
        self._stopping.set()
        for serving in self._servings:
            serving.begin_stop()
        for thread in self._threads:
            thread.join()

    def _listen(self, place: ListenAddress) -> Any:
        return web.server(
            self._app, host=place.host, port=place.port, threads=THREADS, connections=CONNECTIONS, trusts_proxy=False
        )

    def _serve(self, place: ListenAddress, server: Any) -> None:
        while server is None:
            try:
                server = self._listen(place)
            except OSError:
                # Another process has it, and answers for all.
                if self._stopping.wait(RETRY_SECONDS):
                    return
        LOG.info("Metrics are served at %s", place)
        serving = web.Serving(server)
        self._servings.append(serving)
        if self._stopping.is_set():
            serving.begin_stop()
        try:
            serving.run()
        finally:
            server.close()


def open_port(conf: cfg.ConfigOpts, pages: Mapping[str, PortPage], *, is_shared: bool = False) -> MonitoringPort:
    """Return the port that is configured, listening; none of its places if there are none. ConfigurationError."""
    metrics.BUILD_INFO.set(1, __version__, VERSION)
    places = [read_address(text) for text in conf.monitoring.listen]
    token = conf.monitoring.token
    for place in places:
        if not place.is_loopback and not token:
            LOG.warning(
                "Everybody who reaches %s reads metrics; set [monitoring] token, or keep it to a private network", place
            )
    if places and is_shared and not os.environ.get(exposition.FOLDER):
        LOG.warning(
            "%s is not set: of several API processes only the one that has the port is seen. See docs/metrics.md",
            exposition.FOLDER,
        )
    port = MonitoringPort(MonitoringApp(pages, token), places, is_shared=is_shared)
    try:
        port.start()
    except OSError as error:
        port.stop()
        listed = ", ".join(conf.monitoring.listen)
        raise ConfigurationError(f"[monitoring] listen {listed}: {error.strerror or error}") from error
    return port


def listen_by_default(conf: cfg.ConfigOpts) -> None:
    """Let a process in standalone mode listen at one place, if its file names none."""
    conf.set_default("listen", [STANDALONE], group=SECTION)


def open_trial_port(conf: cfg.ConfigOpts, pages: Mapping[str, PortPage]) -> MonitoringPort:
    """Return the port of standalone mode; without it the service works all the same."""
    try:
        return open_port(conf, pages)
    except ConfigurationError as error:
        LOG.warning("Metrics are not served, as after a second start: %s", error.message)
        return MonitoringPort(MonitoringApp({}), ())
