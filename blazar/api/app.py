# SPDX-License-Identifier: Apache-2.0
"""The WSGI application."""

from __future__ import annotations

import json
import logging
import re
import urllib.parse
import uuid
from collections.abc import Collection, Iterator
from typing import Any

from flask import Blueprint, Flask, Response, g, jsonify, request
from werkzeug.exceptions import HTTPException

from blazar.api import floating_ips, host_calendar, microversion, openapi, v1
from blazar.api.context import EXTENSION, Services, services, speaks_v2
from blazar.api.errors import BadFrame, application_error, frame_error, unauthenticated, unexpected_error
from blazar.api.hosts import Hosts
from blazar.api.identity import Identity, Unauthenticated
from blazar.api.leases import Leases
from blazar.api.policy import Policy
from blazar.api.rendered import RenderedLeases
from blazar.api.v2 import forms as v2
from blazar.context import scope as enter_scope
from blazar.model.errors import BlazarError
from blazar.rpc.interface import Manager

LOG = logging.getLogger(__name__)

MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID = "x-openstack-request-id"
_GLOBAL_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MARK = "\x00url"
"""Placeholder for the URL of the service in the document; nothing else in it has a NUL character."""
_OPEN = frozenset({"/", "/versions", "/v1", "/v1/", "/healthcheck", "/openapi.json"})


def create_app(
    manager: Manager,
    *,
    identity: Identity,
    policy: Policy | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    auth_uri: str | None = "standalone",
    enable_v1: bool = True,
    v2_controllers: Collection[str] = v2.CONTROLLERS,
) -> Flask:
    """Return the application on top of a manager.

    ``max_body_bytes`` limits the size of a request body. ``auth_uri`` is the Keystone URI in 401 responses (None:
    Keystone's middleware sets it). ``enable_v1`` and ``v2_controllers`` select what is served, like the options
    ``enable_v1_api`` and ``[api] api_v2_controllers``.
    """
    app = Flask("blazar.api", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.compact = True  # type: ignore[attr-defined]
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    app.config["BLAZAR_AUTH_URI"] = auth_uri
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    rendered = {form.version: RenderedLeases(form.shown) for form in (v1.LEASES, v2.LEASES)}
    app.extensions[EXTENSION] = Services(
        manager, identity, policy or Policy(), rendered, enable_v1, frozenset(v2_controllers)
    )
    for routes in _routes(app.extensions[EXTENSION]):
        app.register_blueprint(routes)
    for path in ("/", "/versions"):
        app.add_url_rule(path, f"versions{path}", _versions, methods=["GET"])
    for path in ("/v1", "/v1/") if enable_v1 else ():
        app.add_url_rule(path, f"version{path}", _version_one, methods=["GET"])
    if v2_controllers:
        # As in the existing Blazar: version 2 has no version document of its own and answers 405 here.
        app.add_url_rule("/v2", "version/v2", _versions, methods=[])
    app.add_url_rule("/healthcheck", "healthcheck", _healthcheck, methods=["GET"])
    app.add_url_rule("/openapi.json", "openapi", _Document(app.extensions[EXTENSION]), methods=["GET"])
    app.before_request(_before)
    app.after_request(_after)
    app.teardown_request(_teardown)
    app.register_error_handler(BlazarError, application_error)
    app.register_error_handler(BadFrame, frame_error)
    app.register_error_handler(HTTPException, frame_error)
    app.register_error_handler(Exception, unexpected_error)
    return app


def _routes(served: Services) -> Iterator[Blueprint]:
    if served.enable_v1:
        yield Leases(v1.LEASES).blueprint()
        yield Hosts(v1.HOSTS).blueprint()
        yield host_calendar.blueprint()
        yield floating_ips.blueprint()
    if "leases" in served.v2_controllers:
        yield Leases(v2.LEASES).blueprint()
    if "oshosts" in served.v2_controllers:
        yield Hosts(v2.HOSTS).blueprint()


def _before() -> Response | None:
    g.request_id = f"req-{uuid.uuid4()}"
    g.version = None
    given = request.headers.get("X-OpenStack-Request-ID", "")
    g.global_id = given if _GLOBAL_ID.fullmatch(given) else None
    if not request.host and request.headers.get("Host"):
        raise BadFrame(400, "The Host header is not a valid host name; send the name and port of this service.")
    g.scope = enter_scope(request_id=g.global_id or g.request_id)
    g.scope.__enter__()
    if request.path in _OPEN and request.method in ("GET", "HEAD"):
        return None
    try:
        g.caller = services().identity.authenticate(dict(request.headers))
    except Unauthenticated:
        return unauthenticated()
    if request.url_rule is not None and not speaks_v2():
        g.version = microversion.requested(request.headers.get(microversion.HEADER))
    return None


def _after(response: Response) -> Response:
    response.headers[REQUEST_ID] = g.request_id
    # Responses depend on the caller, so no cache may store them; and no browser may guess their type.
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Vary"] = "X-Auth-Token"
    if g.version is not None:
        response.headers["Vary"] = f"X-Auth-Token, {microversion.HEADER}"
        response.headers[microversion.HEADER] = f"{microversion.SERVICE} {microversion.as_text(g.version)}"
    if response.status_code == 204:
        # Clients treat a body, or the announcement of one, in a 204 as an error.
        response.headers.pop("Content-Type", None)
    # The path is quoted, so that a line break in it cannot forge a line of the log.
    path = urllib.parse.quote(request.path)
    LOG.debug("%s %s %d %s %s", request.method, path, response.status_code, g.request_id, g.global_id or "-")
    return response


def _teardown(error: BaseException | None) -> None:
    # The thread serves other requests later, which must not inherit this request's scope.
    if (entered := g.pop("scope", None)) is not None:
        entered.__exit__(None, None, None)


def _link(path: str) -> str:
    # The prefix of a proxy or mount point is part of the URL that clients use.
    return request.host_url.rstrip("/") + request.script_root + path


def _version() -> dict[str, Any]:
    return {
        "id": "v1.0",
        "status": "CURRENT",
        "min_version": microversion.as_text(microversion.MIN_VERSION),
        "max_version": microversion.as_text(microversion.MAX_VERSION),
        "links": [{"rel": "self", "href": _link("/v1")}],
    }


def _versions() -> tuple[Response, int]:
    second = {"id": "v2.0", "status": "DEPRECATED", "links": [{"rel": "self", "href": _link("/v2")}]}
    served = [_version()] if services().enable_v1 else []
    if services().v2_controllers:
        served.append(second)
    return jsonify({"versions": served}), 300


def _version_one() -> Response:
    return jsonify({"version": _version()})


def _healthcheck() -> tuple[Response, int]:
    try:
        services().manager.host_properties(include_private=False)
    except BlazarError as error:
        return jsonify({"status": "failing", "reason": error.message}), 503
    return jsonify({"status": "ok"}), 200


class _Document:
    """Serves the OpenAPI document, rendered once; only the URL of the service differs between requests."""

    def __init__(self, served: Services) -> None:
        document = openapi.document(_MARK, with_v1=served.enable_v1, v2_controllers=served.v2_controllers)
        self._parts = json.dumps(document, separators=(",", ":")).split(json.dumps(_MARK))

    def __call__(self) -> Response:
        return Response(json.dumps(_link("") or "/").join(self._parts), mimetype="application/json")
