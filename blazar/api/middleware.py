# SPDX-License-Identifier: Apache-2.0
"""What stands in front of the application in an OpenStack cloud, outermost first.

CORS, the proxy's view of the URL, the health check of load balancers, and Keystone's check of the token. The
application itself decides what needs a token: version documents do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystonemiddleware.auth_token import AuthProtocol, InvalidToken, ServiceError
from oslo_config import cfg
from oslo_middleware import cors, healthcheck, http_proxy_to_wsgi

from blazar.api.identity import STATUS, UNKNOWN

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LOG = logging.getLogger(__name__)

HEALTHCHECK = "/healthcheck"

HIDDEN = "***"


CORS_HEADERS = {
    "allow_headers": ["Content-Type", "OpenStack-API-Version", "X-Auth-Token", "X-OpenStack-Request-ID"],
    "expose_headers": ["OpenStack-API-Version", "X-OpenStack-Request-ID"],
}
"""What a web page of an allowed origin may send, and read, where ``[cors]`` does not say otherwise."""


class _Unanswered(Exception):
    """Keystone did not tell whether a token is good."""


class KeystoneGuard(AuthProtocol):  # type: ignore[misc]  # a library without types
    """Keystone's middleware, which also tells a token that is bad from one that nobody could be asked about.

    It lets every request through and leaves it to the application which needs a token. By itself it calls a token bad
    if Keystone is away, for which clients would throw away good tokens.
    """

    def process_request(self, request: Any) -> Any:
        """Note in the request whose token it has."""
        try:
            return super().process_request(request)
        except _Unanswered:
            # Whatever a client sent under this name was taken out before.
            request.headers[STATUS] = UNKNOWN
            return None

    def fetch_token(self, token: str, **more: Any) -> Any:
        """Return what Keystone knows of a token."""
        try:
            return super().fetch_token(token, **more)
        except InvalidToken as error:
            if isinstance(error.__context__, _NO_ANSWER):
                raise _Unanswered from error
            raise
        except (ServiceError, ksa.ClientException) as error:
            LOG.error("Keystone can not be asked about tokens: %s", error)
            raise _Unanswered from error


_NO_ANSWER = (ksa.ConnectFailure, ksa.DiscoveryFailure, ksa.RequestTimeout, ServiceError)


def behind_keystone(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """Return the application as a cloud serves it."""
    guarded = KeystoneGuard(app, {"oslo_config_config": conf, "delay_auth_decision": True})
    health = healthcheck.Healthcheck(guarded, {"path": HEALTHCHECK, "oslo_config_config": conf})

    def routed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # Some versions of the library leave it to their caller which path is meant, and answer on every one.
        app: Wsgi = health if environ.get("PATH_INFO") == HEALTHCHECK else guarded
        return app(environ, start_response)

    proxied: Wsgi = http_proxy_to_wsgi.HTTPProxyToWSGI(routed, conf)
    cors.set_defaults(**CORS_HEADERS)
    shared: Wsgi = cors.CORS(proxied, conf)

    def entered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # To the library every OPTIONS is a question of a browser; a load balancer's is not, and wants its 401.
        app = shared if "HTTP_ORIGIN" in environ else proxied
        return app(environ, start_response)

    return entered


class ExchangeLog:
    """Logs every request and its answer, for ``log_exchange``; what is secret stays out."""

    _SECRET = ("TOKEN", "AUTHORIZATION", "COOKIE", "REFERER")

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        shown = {
            key: HIDDEN if any(word in key for word in self._SECRET) else value
            for key, value in sorted(environ.items())
            if isinstance(value, str) and (key.startswith("HTTP_") or key in ("REQUEST_METHOD", "PATH_INFO"))
        }
        if query := environ.get("QUERY_STRING"):
            shown["QUERY_STRING"] = _masked_query(query)
        LOG.info("Request: %s", shown)

        def noted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            told = [(name, HIDDEN if self._is_secret(name) else value) for name, value in headers]
            LOG.info("Answer: %s %s", status, told)
            return start_response(status, headers, *more)

        return self._app(environ, noted)

    def _is_secret(self, header: str) -> bool:
        return any(word in header.upper() for word in self._SECRET)


def _masked_query(query: str) -> str:
    """Return a query string with its values hidden: nobody knows what clients put there, in whatever encoding."""
    parts = (part.partition("=") for part in query.split("&"))
    return "&".join(f"{name[:80]}={HIDDEN}" if sign else HIDDEN for name, sign, _ in parts)
