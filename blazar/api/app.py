# SPDX-License-Identifier: Apache-2.0
"""The WSGI application."""

from __future__ import annotations

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException

from blazar.api import parts
from blazar.api.http import access, dispatch, microversion
from blazar.api.http.context import EXTENSION, Services, services
from blazar.api.http.errors import (
    application_error,
    frame_error,
    refuse_nobody,
    speaks_v2,
    unexpected_error,
    version_error,
)
from blazar.api.http.faults import BadFrame
from blazar.api.http.identity import Caller, Identity, Unauthenticated
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.leases.services import MOST, LeaseServices, Waiters
from blazar.api.leases.v1_0.routes import new_caches
from blazar.api.search.routes import Turns
from blazar.context import CallerIds, effects, note_caller
from blazar.context import scope as enter_scope
from blazar.model.base.errors import BlazarError
from blazar.model.base.paging import DEFAULT_BOUNDS, ApiBounds
from blazar.model.leases.requests import USUAL, LeaseDefaults
from blazar.observe import metrics
from blazar.observe.spans import PARENT, span_of_request
from blazar.rpc.interface import Manager

MAX_BODY_BYTES = 1024 * 1024
REQUEST_ID = "x-openstack-request-id"


def create_app(
    manager: Manager,
    *,
    identity: Identity,
    policy: Policy | None = None,
    served: Served | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    auth_uri: str | None = "standalone",
    searches: int = 2,
    defaults: LeaseDefaults = USUAL,
    bounds: ApiBounds = DEFAULT_BOUNDS,
    waiting: int = MOST,
    final_refusals: bool = False,
) -> Flask:
    """Return the application on top of a manager.

    ``served`` has the routes, by default those of all parts in all versions. ``max_body_bytes`` limits the size of a
    request body. ``auth_uri`` is the Keystone URI in 401 responses (None: Keystone's middleware sets it).
    ``searches`` is how many searches for free time a project may have in progress, ``bounds`` limit lists.
    ``waiting`` is how many requests may wait for an immediate lease. ``final_refusals``: at 1.0 and in version 2
    a lease that cannot be had is a 400.
    """
    served = served or Served(parts.all_parts())
    app = _empty_app(max_body_bytes, auth_uri)
    app.extensions[EXTENSION] = Services(
        manager,
        identity,
        policy or Policy(parts=parts.all_parts()),
        served,
        {
            LeaseServices: LeaseServices(new_caches(), Waiters(most=waiting), defaults),
            Turns: Turns(searches),
        },
        bounds,
        final_refusals,
    )
    dispatch.register(app, served)
    return app


def _empty_app(max_body_bytes: int, auth_uri: str | None) -> Flask:
    """Return an application without routes, which answers errors in our shapes."""
    app = Flask("blazar.api", static_folder=None)
    app.json.sort_keys = False  # type: ignore[attr-defined]
    app.json.compact = True  # type: ignore[attr-defined]
    app.config["MAX_CONTENT_LENGTH"] = max_body_bytes
    app.config["BLAZAR_AUTH_URI"] = auth_uri
    app.url_rule_class = dispatch.UrlRule
    app.url_map.strict_slashes = True
    app.url_map.merge_slashes = False
    app.before_request(_before)
    app.after_request(_after)
    app.teardown_request(_teardown)
    app.register_error_handler(BlazarError, application_error)
    app.register_error_handler(BadFrame, frame_error)
    app.register_error_handler(microversion.BadVersion, version_error)
    app.register_error_handler(HTTPException, frame_error)
    app.register_error_handler(Exception, unexpected_error)
    return app


def _before() -> Response | None:
    g.request_id, g.global_id = access.take_ids(request.environ)
    g.version = g.asked = None
    if not request.host and request.headers.get("Host"):
        raise BadFrame(400, "The Host header is not a valid host name; send the name and port of this service.")
    g.scope = enter_scope(request_id=g.global_id or g.request_id, local_id=g.request_id if g.global_id else None)
    g.scope.__enter__()
    g.span = span_of_request(
        f"{request.method} {request.url_rule or 'unmatched'}", request.headers.get(PARENT), request_id=g.request_id
    )
    g.note = g.span.__enter__()
    noted = access.note_of(request.environ)
    noted.request_id, noted.global_id, noted.route = g.request_id, g.global_id, dispatch.find_route()
    if dispatch.is_open():
        return None
    if not speaks_v2():
        g.asked = microversion.readable(request.headers.get(microversion.HEADER), services().served.newest)
    try:
        with effects():
            g.caller = _authenticate()
    except Unauthenticated:
        return refuse_nobody()
    note_caller(g.caller.user_id, g.caller.project_id)
    noted.caller = CallerIds(g.caller.user_id, g.caller.project_id)
    dispatch.choose_version()
    return None


def _authenticate() -> Caller:
    """Return who sends the request. Unauthenticated, CloudUnavailable."""
    outcome = "unavailable"
    try:
        caller = services().identity.authenticate(dict(request.headers))
        outcome = "valid"
    except Unauthenticated:
        outcome = "invalid"
        raise
    finally:
        # Without a token there was nothing to validate.
        if request.headers.get("X-Auth-Token"):
            metrics.TOKEN_VALIDATIONS.add(outcome)
    return caller


def _after(response: Response) -> Response:
    response.headers[REQUEST_ID] = g.request_id
    if (note := g.get("note")) is not None:
        note.note_status(response.status_code)
    # Responses depend on the caller: from 1.1 on a row says what may be kept, and before nothing.
    response.headers.setdefault("Cache-Control", "no-store")
    # No browser may guess the type of a response.
    response.headers["X-Content-Type-Options"] = "nosniff"
    modern = microversion.has_conventions(g.asked)
    version = g.asked if modern else g.version
    if modern:
        response.headers.setdefault("Vary", microversion.HEADER)
    else:
        said = ["X-Auth-Token", *([] if version is None else [microversion.HEADER]), *response.vary]
        response.headers["Vary"] = ", ".join(said)
    if version is not None:
        response.headers[microversion.HEADER] = f"{microversion.SERVICE} {microversion.as_text(version)}"
    if response.status_code == 204:
        # Clients treat a body, or the announcement of one, in a 204 as an error.
        response.headers.pop("Content-Type", None)
    return response


def _teardown(error: BaseException | None) -> None:
    # The thread serves other requests later, which must not inherit this request's scope.
    for name in ("span", "scope"):
        if (entered := g.pop(name, None)) is not None:
            entered.__exit__(None, None, None)
