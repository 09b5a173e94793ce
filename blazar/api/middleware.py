"""What stands in front of the application in an OpenStack cloud, outermost first.

CORS, the proxy's view of the URL, the health check of load balancers, and Keystone's check of the token. The
application itself decides what needs a token: version documents do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from keystonemiddleware.auth_token import AuthProtocol
from oslo_config import cfg
from oslo_middleware import cors, healthcheck, http_proxy_to_wsgi

Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

LOG = logging.getLogger(__name__)

HEALTHCHECK = "/healthcheck"


def behind_keystone(app: Wsgi, conf: cfg.ConfigOpts) -> Wsgi:
    """Return the application as a cloud serves it."""
    guarded = AuthProtocol(app, {"oslo_config_config": conf, "delay_auth_decision": True})
    health = healthcheck.Healthcheck(guarded, {"path": HEALTHCHECK, "oslo_config_config": conf})

    def routed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # Some versions of the library leave it to their caller which path is meant, and answer on every one.
        app: Wsgi = health if environ.get("PATH_INFO") == HEALTHCHECK else guarded
        return app(environ, start_response)

    proxied: Wsgi = http_proxy_to_wsgi.HTTPProxyToWSGI(routed, conf)
    shared: Wsgi = cors.CORS(proxied, conf)

    def entered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # To the library every OPTIONS is a question of a browser; a load balancer's is not, and wants its 401.
        app = shared if "HTTP_ORIGIN" in environ else proxied
        return app(environ, start_response)

    return entered


class ExchangeLog:
    """Logs every request and its answer, for ``log_exchange``; what is secret stays out."""

    _SECRET = frozenset({"HTTP_X_AUTH_TOKEN", "HTTP_X_SERVICE_TOKEN", "HTTP_AUTHORIZATION", "HTTP_COOKIE"})

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        shown = {
            key: "***" if key in self._SECRET else value
            for key, value in sorted(environ.items())
            if isinstance(value, str)
            and (key.startswith("HTTP_") or key in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
        }
        LOG.info("Request: %s", shown)

        def noted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            LOG.info("Answer: %s %s", status, headers)
            return start_response(status, headers, *more)

        return self._app(environ, noted)
