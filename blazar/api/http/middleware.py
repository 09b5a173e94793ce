# SPDX-License-Identifier: Apache-2.0
"""The WSGI middleware in front of the application in an OpenStack cloud, outermost first.

CORS, URLs as seen by the proxy, the health check for load balancers, and Keystone's validation of tokens. The
application itself decides which requests need a token: version documents do not.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from keystoneauth1 import exceptions as ksa
from keystonemiddleware.auth_token import AuthProtocol, InvalidToken, ServiceError
from keystonemiddleware.opts import list_auth_token_opts
from oslo_config import cfg
from oslo_middleware import cors, healthcheck, http_proxy_to_wsgi

from blazar.api.http.access import Wsgi, quote_for_log
from blazar.api.http.identity import STATUS, UNKNOWN
from blazar.model.base.log_lines import Trouble

LOG = logging.getLogger(__name__)

HEALTHCHECK = "/healthcheck"

HIDDEN = "***"


CORS_HEADERS = {
    "allow_headers": [
        "Content-Type",
        "Idempotency-Key",
        "If-Match",
        "If-None-Match",
        "OpenStack-API-Version",
        "X-Auth-Token",
        "X-OpenStack-Request-ID",
    ],
    "expose_headers": [
        "ETag",
        "Idempotency-Replayed",
        "Link",
        "Location",
        "OpenStack-API-Version",
        "Retry-After",
        "X-OpenStack-Request-ID",
    ],
}
"""Headers that a page of an allowed origin may send and read; ``[cors]`` overrides them."""


class _Unanswered(Exception):
    """Keystone gave no answer about the validity of a token."""


class KeystoneGuard(AuthProtocol):  # type: ignore[misc]  # a library without types
    """Keystone's middleware, with a separate status for tokens that could not be validated.

    It passes every request on; the application decides which requests need a token. The base class reports a token
    as invalid while Keystone is unreachable, and clients would discard valid tokens.
    """

    def __init__(self, app: Wsgi, conf: dict[str, Any]) -> None:
        super().__init__(app, conf)
        self._trouble = Trouble(LOG, "Keystone validates tokens")

    def process_request(self, request: Any) -> Any:
        """Set the identity headers of the request from its token."""
        try:
            return super().process_request(request)
        except _Unanswered:
            # The base class has already removed a header of this name that the client sent.
            request.headers[STATUS] = UNKNOWN
            return None

    def fetch_token(self, token: str, **more: Any) -> Any:
        """Return Keystone's data of a token; ``_Unanswered`` if Keystone does not answer."""
        try:
            found = super().fetch_token(token, **more)
        except InvalidToken as error:
            if isinstance(error.__context__, _NO_ANSWER):
                self._trouble.log_failure(f"Keystone cannot validate tokens: {_explain(error.__context__)}")
                raise _Unanswered from error
            raise
        except (ServiceError, ksa.ClientException) as error:
            self._trouble.log_failure(f"Keystone cannot validate tokens: {_explain(error)}")
            raise _Unanswered from error
        self._trouble.log_recovery()
        return found


_NO_ANSWER = (ksa.ConnectFailure, ksa.DiscoveryFailure, ksa.RequestTimeout, ServiceError)


def _explain(error: BaseException) -> str:
    """Return why Keystone does not answer; of a refused login the library says neither whose it is nor the status."""
    refused = isinstance(error, ksa.Unauthorized) or isinstance(error.__context__, ksa.Unauthorized)
    return "it answers 401 to the user and the password of [keystone_authtoken]" if refused else str(error)


def behind_keystone(
    app: Wsgi,
    conf: cfg.ConfigOpts,
    pages: Callable[[Wsgi], Wsgi] = lambda guarded: guarded,
    *,
    cafile: str | None = None,
    explain_refusal: Callable[[], str | None] = lambda: None,
) -> Wsgi:
    """Return the application wrapped in the middleware.

    ``pages`` wraps it further, between the headers of the proxy and the validation of tokens. ``cafile`` is trusted
    for validating tokens unless ``[keystone_authtoken]`` names another one. ``explain_refusal`` returns why a load
    balancer should send nothing.
    """
    settings = {"oslo_config_config": conf, "delay_auth_decision": True}
    if trusted := _cafile(conf) or cafile:
        settings["cafile"] = trusted
    guarded = pages(KeystoneGuard(app, settings))
    # Its details would show the stacks of all threads to anybody.
    settled = {"path": HEALTHCHECK, "oslo_config_config": conf, "detailed": False}
    health = Health(healthcheck.Healthcheck(guarded, settled), explain_refusal)

    def routed(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # Some versions of the library do not compare the path and answer on every path.
        app: Wsgi = health if environ.get("PATH_INFO") == HEALTHCHECK else guarded
        return app(environ, start_response)

    proxied: Wsgi = http_proxy_to_wsgi.HTTPProxyToWSGI(routed, conf)
    cors.set_defaults(**CORS_HEADERS)
    shared: Wsgi = cors.CORS(proxied, conf)

    def entered(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # The library treats every OPTIONS request as a CORS preflight; a load balancer's probe has to get 401.
        app = shared if "HTTP_ORIGIN" in environ else proxied
        return app(environ, start_response)

    return entered


class Health:
    """The health check: 503 with the reason while a load balancer should send nothing, else what the library says."""

    def __init__(self, app: Wsgi, explain_refusal: Callable[[], str | None]) -> None:
        self._app = app
        self._explain_refusal = explain_refusal

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request."""
        reason = self._explain_refusal()
        if reason is None:
            return self._app(environ, start_response)
        body = f"{reason}\n".encode()
        headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
        start_response("503 Service Unavailable", [*headers, ("Cache-Control", "no-store"), ("Retry-After", "5")])
        return [] if environ.get("REQUEST_METHOD") == "HEAD" else [body]


def _cafile(conf: cfg.ConfigOpts) -> str | None:
    """Return the cafile of the section by which the library validates tokens; it registers its options later."""
    for group, options in list_auth_token_opts():
        for option in options:
            if option.dest == "cafile":
                conf.register_opt(option, group=group)
    found: str | None = conf.keystone_authtoken.cafile
    return found


class ExchangeLog:
    """Log every request and its response, for ``log_exchange``, with secrets masked."""

    _SECRET = ("TOKEN", "AUTHORIZATION", "COOKIE", "REFERER")

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Serve a request and log it."""
        shown = {
            key: HIDDEN if any(word in key for word in self._SECRET) else value
            for key, value in sorted(environ.items())
            if isinstance(value, str) and (key.startswith("HTTP_") or key in ("REQUEST_METHOD", "PATH_INFO"))
        }
        if "PATH_INFO" in shown:
            shown["PATH_INFO"] = quote_for_log(shown["PATH_INFO"])
        if query := environ.get("QUERY_STRING"):
            shown["QUERY_STRING"] = _masked_query(query)
        LOG.info("Request: %s", shown)

        def noted(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            told = [(name, HIDDEN if self._is_secret(name) else value) for name, value in headers]
            LOG.info("Response: %s %s", status, told)
            return start_response(status, headers, *more)

        return self._app(environ, noted)

    def _is_secret(self, header: str) -> bool:
        return any(word in header.upper() for word in self._SECRET)


def _masked_query(query: str) -> str:
    """Return a query string with all values masked: any of them may be a secret, in any encoding."""
    parts = (part.partition("=") for part in query.split("&"))
    return "&".join(f"{name[:80]}={HIDDEN}" if sign else HIDDEN for name, sign, _ in parts)
